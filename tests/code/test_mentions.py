"""Code that a turn touches: names in its texts, lines of its calls, and which scope a name means."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from ragforge_tui.code.linker import in_range
from ragforge_tui.code.mentions import Lines, Name, changed_lines, chosen, names_in, touched_by
from ragforge_tui.code.relevance import can_matter, relevant
from ragforge_tui.shared.code_records import Scope, ScopeHit
from ragforge_tui.shared.records import FileAccess, Message, ToolCall, ToolResult, Turn
from tests.support.fake_code import SCOPES, scope

NOW = datetime(2026, 11, 2, tzinfo=UTC)
DIFF = "--- a/a.py\n+++ b/a.py\n@@ -1,4 +1,5 @@\n one\n-two\n+zwei\n+drei\n four\n@@ -20,3 +21,2 @@\n x\n-gone\n y\n"


def named(text: str) -> list[str]:
    return [name.qualified for name in names_in(text)]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Why does `Session.send` call parse_file twice?", ["Session.send", "parse_file"]),
        ("See SessionPool, Store::open and getUserName().", ["SessionPool", "Store.open", "getUserName"]),
        ("`retry` it, e.g. on www.example.com; i.e. later. Thanks!", ["retry"]),
        ("the `print` and `name` of it, `x`", []),
        ("It is in the session, please send it again.", []),
        ("```python\nparse_file(x)\n```\nand after_it", ["after_it"]),
        ("an open fence\n```\nparse_file(x)", []),
    ],
)
def test_names_of_code_are_told_from_words(text: str, names: list[str]) -> None:
    assert named(text) == names


def test_changed_lines_are_those_of_the_new_text() -> None:
    assert changed_lines(DIFF) == [(2, 3), (21, 21)]
    assert changed_lines("") == []


def call(tool: str, arguments: dict[str, Any], result: dict[str, Any], access: str, **more: Any) -> ToolCall:
    """A successful call of a tool on a.py."""
    return ToolCall(
        uuid=tool,
        message_id="m",
        tool_name=tool,
        arguments=json.dumps(arguments),
        timestamp=NOW,
        success=True,
        files=[FileAccess(path="a.py", access=access)],  # type: ignore[arg-type]
        result=ToolResult(uuid="r", tool_call_id=tool, success=True, result=json.dumps(result), timestamp=NOW),
        **more,
    )


def turn(*calls: ToolCall, text: str = "", state: str = "complete") -> Turn:
    asked = Message(uuid="m0", conversation_id="c", role="user", content=text, timestamp=NOW)
    reply = Message(uuid="m1", conversation_id="c", role="assistant", timestamp=NOW, position=1, state=state)  # type: ignore[arg-type]
    reply.tool_calls = list(calls)
    return Turn(turn_index=1, messages=[asked, reply])


def test_calls_touch_the_lines_they_read_and_change_and_the_scopes_they_are_about() -> None:
    numbered = {"text": "     4\tdef run():\n     5\t    return 1"}
    touched = touched_by(
        turn(
            call("read_file", {"path": "a.py"}, numbered, "read"),
            call("read_file", {"path": "a.py", "start_line": 4, "end_line": 5}, numbered, "read"),
            call("edit_file", {"path": "a.py"}, {"text": "Changed.", "diff": DIFF}, "write"),
            call("get_function_code", {"name": "x"}, {"text": "", "scopes": ["u1"]}, "read"),
            call("grep_files", {"pattern": "x"}, {"text": "a.py:1"}, "search"),
        )
    )
    assert touched.scopes == ("u1",)
    assert [(lines.first, lines.last) for lines in touched.lines] == [(0, 0), (4, 5), (2, 3), (21, 21)]
    assert touched.lines[1].texts == ("def run():", "return 1")
    assert touched.lines[2].texts == ("drei", "zwei")


def test_a_replaced_answer_touches_nothing() -> None:
    about = call("get_function_code", {"name": "x"}, {"text": "", "scopes": ["u1"]}, "read")
    assert touched_by(turn(about, state="superseded")).scopes == ()


def test_a_name_that_several_scopes_have_needs_more_than_itself() -> None:
    twin = scope("c9", "Pool.send", "method", "src/pool.py", 1, 9)
    scopes = [*SCOPES, twin]
    assert chosen(Name(("main",)), scopes, []) == "c3"
    assert chosen(Name(("send",)), scopes, []) == ""
    assert chosen(Name(("Session", "send")), scopes, []) == "c1"
    assert chosen(Name(("send",)), scopes, ["src/pool.py"]) == "c9"
    assert chosen(Name(("session", "Session", "send")), scopes, []) == "c1"
    assert chosen(Name(("Other", "send")), scopes, []) == ""


def file_scopes() -> list[Scope]:
    """A module with a class of two methods."""
    return [
        scope("m", "a", "module", "a.py", 1, 40, text="import os"),
        scope("k", "K", "class", "a.py", 3, 30, text="class K:\n    x = 1"),
        scope("one", "K.one", "method", "a.py", 5, 12, text="def one():\n    return 1"),
        scope("two", "K.two", "method", "a.py", 14, 30, text="def two():\n    return 2"),
    ]


@pytest.mark.parametrize(
    ("lines", "uuids"),
    [
        (Lines("a.py"), ["m"]),
        (Lines("a.py", 7, 8), ["one"]),
        (Lines("a.py", 10, 20), ["one", "two"]),
        (Lines("a.py", 1, 40), ["one", "two", "k"]),
        (Lines("a.py", 35, 36), ["m"]),
        (Lines("a.py", 7, 8, ("return 1",)), ["one"]),
        (Lines("a.py", 15, 16, ("of an older text",)), []),
    ],
)
def test_lines_mean_the_innermost_scopes_that_have_them(lines: Lines, uuids: list[str]) -> None:
    assert [one.uuid for one in in_range(file_scopes(), lines)] == uuids


@pytest.mark.parametrize(
    ("message", "uuids"),
    [
        ("thanks!", []),
        ("go on", []),
        ("run the tests again, please", []),
        ("what did we say about the weather in Paris?", []),
        ("why does Session.send try twice?", ["c1"]),
        ("how does the session send a message?", ["c1"]),
        ("what is `open` for", ["c4"]),
    ],
)
def test_only_scopes_that_a_message_is_about_matter(message: str, uuids: list[str]) -> None:
    found = relevant(message, [ScopeHit(scope=one) for one in SCOPES])
    assert [one.uuid for one in found] == uuids
    assert can_matter(message) or not uuids
