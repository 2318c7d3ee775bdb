"""Outcomes and edits, in the forms in which agents store them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ragforge_tui.other_agents.stored_edits import edits_in, search_blocks
from ragforge_tui.other_agents.transcript import Transcript
from ragforge_tui.shared.found_sessions import EditedLines, FileEdit, FoundSession
from ragforge_tui.shared.records import ToolCall
from ragforge_tui.tools.line_changes import Write, edited_lines, writers_of

SESSION = FoundSession(agent="codex", id="s", folder="/work", path="/x")


def called(tool: str, value: Any, *, details: Any = None, arguments: Any = None) -> ToolCall:
    transcript = Transcript(folder="/work")
    transcript.user("Do it")
    transcript.call("c", tool, arguments or {"command": "make"})
    transcript.result("c", value, details=details)
    assert transcript.export(SESSION) is not None
    [turn] = transcript.export(SESSION).turns  # type: ignore[union-attr]
    return turn.messages[1].tool_calls[0]


@pytest.mark.parametrize(
    ("tool", "value", "details"),
    [
        ("exec_command", "Wall time: 0\nProcess exited with code 3\nOutput:\nno worker\n", None),
        ("exec_command", "Output:\nno worker\n", {"type": "CommandExecution", "exit_code": 3, "status": "failed"}),
        ("shell", json.dumps({"output": "no worker", "metadata": {"exit_code": 3}}), None),
        ("bash", "no worker\n", {"output": "no worker\n", "exit": 3}),
        ("run_shell_command", [{"response": {"output": "Output: no worker\nExit Code: 3\nGroup: 7"}}], "no worker"),
        (
            "run_commands",
            [{"result": "", "success": True}, {"result": "[Command exited with code 3]\nno worker"}],
            None,
        ),
        ("file_system.bash", {"structured_content": {"returncode": 3, "stdout": "no worker", "stderr": ""}}, None),
        ("Bash", {"content": "Exit code 3\nno worker", "is_error": True}, "Error: Exit code 3"),
    ],
)
def test_command_that_ended_with_3_failed(tool: str, value: Any, details: Any) -> None:
    call = called(tool, value, details=details)
    assert call.success is False and call.result is not None and call.result.error == "exit status 3"
    assert json.loads(call.result.result)["exit_status"] == 3 and "no worker" in call.result.result


@pytest.mark.parametrize(
    ("tool", "value", "success"),
    [
        ("bash", "Process exited with code 0\nOutput:\nfine", True),
        ("read_file", "Process exited with code 3", True),
        ("bash", "\n".join(["a line"] * 9 + ["Exit code: 3"] + ["a line"] * 9), True),
        ("edit", json.dumps({"query": "edit:a", "result": "no such text", "success": False}), False),
        ("read", {"response": {"error": "no such file"}}, False),
        ("read", {"toolResult": 1, "status": "error", "value": [{"text": "no"}]}, False),
        ("read", json.dumps({"success": False, "about": "the file's own words"}), True),
    ],
)
def test_outcome_of_other_results(tool: str, value: Any, success: bool) -> None:
    assert called(tool, value).success is success


OLD, NEW = "x = 1", "x = 2"
DIFF = f"@@ -2,3 +2,3 @@\n \n-{OLD}\n+{NEW}\n \n"
HUNK = EditedLines(start=2, old=["", OLD, ""], new=["", NEW, ""])
PATCH = f"*** Begin Patch\n*** Update File: a.py\n@@\n-{OLD}\n+{NEW}\n*** End Patch"
BARE = EditedLines(old=[OLD], new=[NEW])


@pytest.mark.parametrize(
    ("details", "arguments", "expected"),
    [
        ({"changes": {"a.py": {"type": "update", "unified_diff": DIFF}}}, {}, [HUNK]),
        ({"changes": {"a.py": {"update": {"unified_diff": DIFF}}}}, {}, [HUNK]),
        ({"diff": f"Index: a.py\n--- a.py\n+++ a.py\n{DIFF}"}, {"filePath": "a.py"}, [HUNK]),
        ({"filePath": "a.py", "structuredPatch": [{"oldStart": 2, "lines": DIFF.splitlines()[1:]}]}, {}, [HUNK]),
        (
            {"_meta": {"sdk": {"blocks": [{"old_lines": [OLD], "new_lines": [NEW], "old_start_line": 3}]}}},
            {"path": "a.py"},
            [EditedLines(start=3, old=[OLD], new=[NEW])],
        ),
        (None, {"cmd": f"apply_patch <<'EOF'\n{PATCH}\nEOF"}, [BARE]),
        (None, PATCH, [BARE]),
        (None, {"file_path": "a.py", "old_string": OLD, "new_string": NEW}, [BARE]),
        (None, {"path": "a.py", "old_text": OLD, "new_text": NEW}, [BARE]),
        (None, {"file_path": "a.py", "edits": [{"old_string": OLD, "new_string": NEW}]}, [BARE]),
        (None, {"file_path": "a.py", "content": [{"old_str": OLD, "new_str": NEW}]}, [BARE]),
    ],
)
def test_lines_of_an_edit(details: Any, arguments: Any, expected: list[EditedLines]) -> None:
    assert edits_in(details, arguments, writes=True) == [FileEdit(path="a.py", lines=expected)]


def test_whole_contents_of_an_edit() -> None:
    whole = {"filePath": "a.py", "originalContent": OLD, "newContent": NEW, "fileDiff": DIFF}
    assert edits_in(whole, {}, writes=True) == [FileEdit(path="a.py", before=OLD, after=NEW)]
    written = {"file_path": "a.py", "content": NEW}
    assert edits_in(None, written, writes=True) == [FileEdit(path="a.py", after=NEW)]
    assert edits_in("text", written, writes=False) == []
    block = f"<<<<<<< SEARCH\n{OLD}\n=======\n{NEW}\n>>>>>>> REPLACE\n"
    assert list(search_blocks("a.py", f"a.py\n```\n{block}```\n")) == [FileEdit(path="a.py", lines=[BARE])]


FILE = [f"line {n}" for n in range(9)]


def edited(at: int, words: str, *, around: int = 1, start: bool = True) -> FileEdit:
    """An edit of one line, with so many lines around it."""
    old = FILE[at - around : at + around + 1]
    new = [*old[:around], words, *old[around + 1 :]]
    return FileEdit(path="a.py", lines=[EditedLines(start=at - around + 1 if start else 0, old=old, new=new)])


@pytest.mark.parametrize("around", [0, 1])
@pytest.mark.parametrize("start", [True, False])
@pytest.mark.parametrize("known", [True, False])
def test_lines_are_followed_through_edits_of_which_only_a_part_is_known(around: int, start: bool, known: bool) -> None:
    whole = [FileEdit(path="a.py", before="", after="\n".join(FILE))] if known else []
    edits = [*whole, edited(6, "second", around=around, start=start), edited(2, "first", around=around, start=start)]
    content = [*FILE[:2], "first", *FILE[3:6], "second", *FILE[7:]]
    writes = [Write(change=change) for edit in edits for change in edited_lines("a.py", edit)]
    writers = writers_of(writes, "a.py", "\n".join(content).encode())
    assert writers is not None
    first = len(whole)
    assert (writers[content.index("second")], writers[content.index("first")]) == (first, first + 1)
    others = {writer for line, writer in zip(content, writers, strict=True) if line not in ("first", "second")}
    assert others <= ({0} if known else {None})


def test_a_written_file_keeps_the_writers_of_its_unchanged_lines() -> None:
    written = [FileEdit(path="a.py", after="a\nb"), FileEdit(path="a.py", after="a\nb\nc")]
    writes = [Write(change=change) for edit in written for change in edited_lines("a.py", edit)]
    assert writers_of(writes, "a.py", b"a\nb\nc") == [0, 0, 1]
    assert edited_lines(".env", written[0]) == []


def test_a_read_is_no_write() -> None:
    call = called("text_editor__view", "text", arguments={"path": "/work/a.py"})
    assert [(file.path, file.access) for file in call.files] == [("a.py", "read")]
