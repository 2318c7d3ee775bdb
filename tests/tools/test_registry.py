"""The door: schemas, arguments as models write them, unknown tools, limits, planning, approval."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from pathlib import Path

import pytest

from ragforge_tui.conversation.approvals.pending import ApprovalMode, ApprovalPolicy, Verdict
from ragforge_tui.settings.schema import ToolSettings
from ragforge_tui.shared.errors import ToolError
from ragforge_tui.shared.tool_calls import ToolInfo
from ragforge_tui.tools import registry
from ragforge_tui.tools.base import ApprovalNeed, Tool, ToolArguments, ToolOutcome
from ragforge_tui.tools.registry import Toolbox
from tests.tools.conftest import Call

NAMES = [
    "read_file",
    "write_file",
    "edit_file",
    "glob_files",
    "grep_files",
    "run_command",
    "update_todos",
    "ask_user",
    "delegate",
    "fetch_web_page",
]


def test_schemas_are_complete_and_plain(box: Toolbox) -> None:
    functions = {schema["function"]["name"]: schema["function"] for schema in box.schemas()}
    assert set(functions) == set(NAMES)
    for function in functions.values():
        parameters = function["parameters"]
        assert parameters["properties"]["reason"]["type"] == "string"
        assert "reason" not in parameters["required"]
        assert function["description"]
        assert "$ref" not in json.dumps(function)
    assert functions["write_file"]["parameters"]["required"] == ["path", "content"]
    assert functions["read_file"]["parameters"]["properties"]["start_line"]["type"] == "integer"
    assert functions["update_todos"]["parameters"]["properties"]["todos"]["items"]["type"] == "object"


def test_every_tool_has_a_label_of_its_own() -> None:
    """The list of calls shows labels only: two tools of one label would look like one."""
    shipped = Counter(tool.info.label for tool in registry.TOOLS)
    assert [label for label, tools in shipped.items() if tools > 1 or not 0 < len(label) <= 8] == []


def test_only_enabled_tools_are_offered(folder: Path, tmp_path: Path) -> None:
    settings = ToolSettings(enabled=["read_file"])
    box = Toolbox(folder, settings, undo_dir=tmp_path / "undo", state_dir=tmp_path / "state")
    assert [schema["function"]["name"] for schema in box.schemas()] == ["read_file"]


@pytest.mark.parametrize(
    "arguments",
    [
        '{"path": "a.txt", "start_line": "1", "end_line": null}',
        '{"file_path": "a.txt", "reason": null}',
        '"{\\"path\\": \\"a.txt\\"}"',
        '```json\n{"path": "a.txt"}\n```',
        '{"path": "a.txt", "start_line": 1.0}',
    ],
)
async def test_slips_that_leave_no_doubt_are_put_right(folder: Path, box: Toolbox, arguments: str) -> None:
    (folder / "a.txt").write_text("hello\n")
    prepared = await box.prepare("read_file", arguments)
    assert prepared.arguments["path"] == "a.txt"
    assert "hello" in (await prepared.run()).text


async def test_content_written_as_an_object_or_with_raw_line_breaks(folder: Path, box: Toolbox) -> None:
    await (await box.prepare("write_file", '{"path": "a.json", "content": {"a": 1}}')).run()
    assert (folder / "a.json").read_text() == '{\n  "a": 1\n}'
    await (await box.prepare("write_file", '{"path": "b.txt", "content": "one\ntwo\ud83d"}')).run()
    assert (folder / "b.txt").read_text() == "one\ntwo\ufffd"


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("write_file", '{"path": "a.txt"', "not valid JSON"),
        ("read_file", "a.txt", "not valid JSON"),
        ("read_file", "{", "not valid JSON"),
        ("read_file", "[1]", "must be a JSON object"),
        ("read_file", "", "path"),
        ("read_file", '{"path": "a", "start_line": "soon"}', "start_line"),
        ("write_file", '{"path": "a"}', "content"),
        ("reed_file", "{}", "Did you mean read_file"),
        ("rm", "{}", "The tools are: read_file"),
        ("\ud800\x00", "{}", "no tool"),
        ("read_file", "[" * 100_000, "more than 64 levels deep"),
    ],
)
async def test_errors_show_what_to_do(box: Toolbox, name: str, arguments: str, expected: str) -> None:
    with pytest.raises(ToolError) as caught:
        await box.prepare(name, arguments)
    assert expected in str(caught.value)


@pytest.mark.parametrize(
    "arguments",
    ['{"path": "a.txt"', "{'path': 'a.txt',}", '{"path": "a.txt", "reason": "to see', 'Here: {path: "a.txt"}'],
)
async def test_a_malformed_call_of_a_reading_tool_is_repaired(folder: Path, box: Toolbox, arguments: str) -> None:
    (folder / "a.txt").write_text("hello\n")
    assert "hello" in (await (await box.prepare("read_file", arguments)).run()).text


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("write_file", '{"path": "a.txt", "content": "first line\\nsecond'),
        ("create_file", '{"path": "b.txt", "content": "half'),
        ("edit_file", '{"path": "a.txt", "old_string": "hello", "new_string": "hel'),
        ("run_command", '{"command": "rm -r build'),
        ("run_command", "{'command': 'ls'}"),
    ],
)
async def test_a_malformed_call_that_writes_or_runs_is_refused(
    folder: Path, box: Toolbox, name: str, arguments: str
) -> None:
    (folder / "a.txt").write_text("hello\n")
    await box.prepare("read_file", '{"path": "a.txt"}')
    with pytest.raises(ToolError, match=r"not valid JSON(.|\n)*one complete JSON object"):
        await box.prepare(name, arguments)
    assert [(path.name, path.read_text()) for path in folder.iterdir()] == [("a.txt", "hello\n")]  # noqa: ASYNC240


async def test_reason_and_unknown_arguments(folder: Path, box: Toolbox) -> None:
    prepared = await box.prepare("list_directory", '{"reason": "to see", "recursive": true}')
    assert prepared.reason == "to see"
    assert prepared.access == "read"
    assert "reason" not in prepared.arguments
    assert "Ignored unknown arguments: recursive" in (await prepared.run()).text


class _Extra(ToolArguments):
    size: int = 0


class _Big(Tool):
    info = ToolInfo(name="big")
    description = "Big."
    arguments = _Extra

    async def run(self, arguments: _Extra) -> ToolOutcome:
        if arguments.size < 0:
            raise ValueError("negative")
        return ToolOutcome(text="x" * arguments.size)


async def test_results_are_cut_and_errors_reported(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "TOOLS", [_Big])
    settings = ToolSettings(max_output_chars=5_000)
    box = Toolbox(folder, settings, undo_dir=tmp_path / "undo", state_dir=tmp_path / "state")
    assert box.schemas()[-1]["function"]["name"] == "big"
    outcome = await (await box.prepare("big", '{"size": 100000}')).run()
    assert len(outcome.text) < 5_200
    assert outcome.data["truncated"] == outcome.full_size == 100_000
    failure = await (await box.prepare("big", '{"size": -1}')).run()
    assert not failure.success
    assert "negative" in failure.text


async def test_reads_run_side_by_side(folder: Path, box: Toolbox) -> None:
    for number in range(20):
        (folder / f"{number}.txt").write_text(str(number))
    calls = [await box.prepare("read_file", json.dumps({"path": f"{number}.txt"})) for number in range(20)]
    outcomes = await asyncio.gather(*(prepared.run() for prepared in calls))
    assert [outcome.text.split("\t")[1] for outcome in outcomes] == [str(number) for number in range(20)]


async def test_todos(call: Call) -> None:
    todos = ["first", {"content": "second \x1b[1m", "status": "done"}, {"content": "third", "status": "in_progress"}]
    outcome = await call("update_todos", todos=todos)
    assert outcome.data["todos"] == [
        {"content": "first", "status": "pending"},
        {"content": "second", "status": "completed"},
        {"content": "third", "status": "in_progress"},
    ]
    assert (await call("update_todos", todos=json.dumps(todos))).data == outcome.data


async def test_notify_user(call: Call) -> None:
    outcome = await call("notify_user", message="Done \x1b]0;x\x07now", level="warning")
    assert outcome.data == {"notice": "Done now", "level": "warning"}
    assert not (await call("notify_user", message=" ")).success


OFFERED = ApprovalNeed(kind="write", question="?", detail="", session_scope="all files", session_key="k")
NOT_OFFERED = ApprovalNeed(kind="write", question="?", detail="")
A_COMMAND = ApprovalNeed(kind="command", question="?", detail="", session_scope="this command", session_key="c")


@pytest.mark.parametrize(
    ("need", "granted", "mode", "verdict"),
    [
        (None, set(), "ask", "run"),
        (None, set(), "yes", "run"),
        (OFFERED, set(), "ask", "ask"),
        (OFFERED, {"k"}, "ask", "run"),
        (OFFERED, {"other", ""}, "ask", "ask"),
        (OFFERED, set(), "yes", "run"),
        (OFFERED, set(), "edits", "run"),
        (NOT_OFFERED, {""}, "edits", "ask"),
        (A_COMMAND, set(), "edits", "ask"),
        (A_COMMAND, {"c"}, "edits", "run"),
        (NOT_OFFERED, set(), "ask", "ask"),
        (NOT_OFFERED, {"", "k"}, "ask", "ask"),
        (NOT_OFFERED, set(), "yes", "run"),
    ],
)
def test_approval_table(need: ApprovalNeed | None, granted: set[str], mode: ApprovalMode, verdict: Verdict) -> None:
    assert ApprovalPolicy.decide(need, granted, mode) == verdict


async def test_session_keys_cover_what_was_agreed_and_no_more(box: Toolbox) -> None:
    async def key(name: str, **arguments: str) -> str:
        need = (await box.prepare(name, json.dumps(arguments))).approval
        assert need is not None
        return need.session_key

    first = await key("create_file", path="a", content="x")
    assert first == await key("create_file", path="b", content="y")
    assert first != await key("write_file", path="a", content="x")
    assert await key("run_command", command="ls") != await key("run_command", command="ls ")
