"""Every name that programs and old conversations call tools by, offered or not."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from ragforge_tui.settings.schema import ToolSettings
from ragforge_tui.shared.errors import ToolError
from ragforge_tui.tools.base import Ruling
from ragforge_tui.tools.registry import PreparedCall, RestrictedTools, Toolbox
from tests.tools.test_code_tools import FakeCode

CALLS: dict[str, tuple[dict[str, Any], str]] = {
    "read_file": ({"path": "a.txt"}, "hello"),
    "write_file": ({"path": "b.txt", "content": "x"}, "Created b.txt"),
    "edit_file": ({"path": "a.txt", "old_string": "hello", "new_string": "bye"}, "bye"),
    "create_file": ({"path": "c.txt", "content": "x"}, "Created c.txt"),
    "apply_patch": ({"input": "*** Update File: a.txt\n-hello\n+bye\n"}, "bye"),
    "list_directory": ({"path": "."}, "a.txt (6 B)"),
    "glob_files": ({"pattern": "*.txt"}, "a.txt"),
    "grep_files": ({"pattern": "hel+o"}, "a.txt:1: hello"),
    "search_files": ({"query": "atxt"}, "a.txt"),
    "run_command": ({"command": "echo done"}, "done"),
    "update_todos": ({"todos": ["one"]}, "1 entries"),
    "notify_user": ({"message": "hello"}, "notified"),
    "search_history": ({"query": "lamps"}, "found lamps"),
    "open_turn": ({"turn": 1}, "turn 1"),
    "open_call": ({"turn": 1, "call": 2}, "call 2"),
    "search_functions": ({"query": "Session"}, "Session.send"),
    "get_function_code": ({"name": "Session.send"}, "async def send"),
    "get_function_details": ({"name": "Session.send"}, "Referred to by 1"),
    "get_dependents": ({"name": "Session.send"}, "main"),
    "get_dependencies": ({"name": "Session.send"}, "Session.open"),
    "brain_search": ({"query": "Session"}, "Session.send"),
}
JOINED = {
    "create_file": "write_file",
    "apply_patch": "edit_file",
    "list_directory": "glob_files",
    "search_files": "glob_files",
    "open_call": "open_turn",
    "get_function_details": "get_function_code",
    "get_dependencies": "get_dependents",
}


class Memory:
    """A memory of one turn."""

    async def search(self, query: str, *, also: Sequence[str] = (), topic: str, limit: int) -> str:
        return f"found {query}"

    async def open_turn(self, conversation: str, turn: int) -> str:
        return f"turn {turn}"

    async def open_call(self, conversation: str, turn: int, call: int) -> str:
        return f"call {call}"


def toolbox(tmp_path: Path, **settings: Any) -> Toolbox:
    """A toolbox with every tool, over a workspace of one file."""
    folder = tmp_path / "workspace"
    folder.mkdir(exist_ok=True)
    (folder / "a.txt").write_text("hello\n")
    state = tmp_path / "state"
    return Toolbox(folder, ToolSettings(**settings), undo_dir=state, state_dir=state, memory=Memory(), code=FakeCode())


def offered(tools: Toolbox | RestrictedTools) -> set[str]:
    return {schema["function"]["name"] for schema in tools.schemas()}


def restricted(box: Toolbox, *allowed: str) -> RestrictedTools:
    async def judge(prepared: PreparedCall) -> Ruling:
        return Ruling()

    return RestrictedTools(box, allowed, "The persona", lambda: "ask", judge)


NEWER = {"ask_user", "delegate", "fetch_web_page"}
"""Offered without having replaced a tool of the same kind."""


def test_at_most_sixteen_are_offered(tmp_path: Path) -> None:
    names = offered(toolbox(tmp_path))
    assert names <= set(CALLS) - set(JOINED) | NEWER and len(names) <= 16
    assert set(JOINED.values()) < names


@pytest.mark.parametrize("name", CALLS)
async def test_each_name_is_understood(tmp_path: Path, name: str) -> None:
    box = toolbox(tmp_path)
    arguments, expected = CALLS[name]
    outcome = await (await box.prepare(name, json.dumps({**arguments, "reason": "to see"}))).run()
    await box.close()
    assert outcome.success
    assert expected in outcome.text


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("glob_files", {"path": "."}, "a.txt (6 B)"),
        ("glob_files", {"pattern": "atxt"}, "[No file matches atxt. Files with such names, best first:]\na.txt"),
        ("open_turn", {"turn": 1, "call": 2}, "call 2"),
        ("get_function_code", {"name": "Session.send", "details": True}, "Referred to by 1"),
        ("get_dependents", {"name": "Session.send", "uses": True}, "Session.open"),
    ],
)
async def test_the_tools_that_remain_do_the_work_of_the_joined_ones(
    tmp_path: Path, name: str, arguments: dict[str, Any], expected: str
) -> None:
    outcome = await (await toolbox(tmp_path).prepare(name, json.dumps(arguments))).run()
    assert expected in outcome.text


async def test_who_may_use_a_tool_may_call_what_is_joined_to_it_but_not_the_other_way(tmp_path: Path) -> None:
    box = toolbox(tmp_path)
    writer, creator = restricted(box, "write_file"), restricted(box, "create_file")
    create, write = ('{"path": "new.txt", "content": "x"}',) * 2
    assert "create_file" not in offered(writer)
    assert (await writer.prepare("create_file", create)).name == "create_file"
    assert offered(creator) == {"create_file", "update_todos", "ask_user"}
    with pytest.raises(ToolError, match="may not use write_file"):
        await creator.prepare("write_file", write)
    assert offered(toolbox(tmp_path, enabled=["list_directory"])) == {"list_directory"}
