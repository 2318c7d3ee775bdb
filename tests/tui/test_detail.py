"""A call and a file opened: which sections there are, how they are cut and drawn."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ragforge_tui.export.markdown import _call
from ragforge_tui.shared.records import ToolCall, ToolResult
from ragforge_tui.tui.dialogs.detail import (
    MAX_FILE_BYTES,
    Section,
    call_sections,
    call_title,
    file_sections,
    language_of,
)
from ragforge_tui.tui.dialogs.text_viewer import PIECE_CHARS, PieceBlock, blocks_of
from ragforge_tui.tui.drawing.palette import palette_of
from ragforge_tui.tui.sidebar.trace_pane import row_of
from ragforge_tui.tui.transcript.tool_block import ToolBlock, failure_of
from tests.support.fake_engine import CLOCK

PALETTE = palette_of({}, dark=True, ansi=False)


def call(name: str, arguments: str, result: dict[str, Any] | None, error: str | None = None, **more: Any) -> ToolCall:
    kept = None
    if result is not None:
        kept = ToolResult(
            uuid="r",
            tool_call_id="c",
            success=error is None,
            result=json.dumps(result),
            error=error,
            timestamp=CLOCK,
            result_size_bytes=12345,
        )
    return ToolCall(uuid="c", message_id="m", tool_name=name, arguments=arguments, timestamp=CLOCK, result=kept, **more)


def titles(one: ToolCall) -> list[str]:
    return [section.title for section in call_sections(one)]


def drawn(sections: list[Section], width: int = 60) -> list[str]:
    """The lines of some sections."""
    return [line.strip.text.rstrip() for block in blocks_of(sections) for line in block.lines(width, PALETTE)]


def test_an_edit_shows_why_and_what_changed() -> None:
    given = json.dumps({"path": "a.py", "old_string": "x\ny", "new_string": "z", "reason": "it is wrong"})
    edited = call(
        "edit_file", given, {"text": "done", "diff": "@@\n-x\n+z", "after": "abc"}, success=True, duration_ms=7
    )
    sections = call_sections(edited)
    assert [section.title for section in sections] == ["Why", "Diff", "Arguments", "Result", "Also stored"]
    assert sections[0].text == "it is wrong"
    assert "old_string" not in sections[2].text
    assert call_title(edited, 9) == "Edit · turn 9 · done · 7 ms · 12 345 bytes · edit_file"


@pytest.mark.parametrize(
    ("error", "state", "why"),
    [
        ("refused by the person", "refused", ""),
        ("refused by the person: not there", "refused", "you said: not there"),
        ("refused: idle repetition", "refused", "idle repetition"),
        ("stopped", "stopped", ""),
        ("refused connection", "failed", "refused connection"),
    ],
)
def test_refused_calls_are_not_shown_as_failed(error: str, state: str, why: str) -> None:
    one = call("run_command", '{"command": "make"}', {"text": "told"}, error=error, success=False)
    assert f" · {state}" in call_title(one, 1)
    assert failure_of(one) == why
    assert ("Error" in titles(one)) == (state == "failed")
    by_user = error.startswith("refused by the person")
    assert any(title.startswith("Refused") for title in titles(one)) == (state == "refused" and bool(why))
    assert ("refused by you" in call_title(one, 1)) == by_user
    assert ("Sent to the model" in titles(one)) == (state == "refused")
    block = ToolBlock(1, one, gap=0)
    head, *below = [line.text for line in block.lines(80, PALETTE)]
    assert state in head and ("failed" in head) == (state == "failed")
    assert [line.strip() for line in below] == [why] * bool(why)
    assert ("refused by you" in head) == by_user
    block.toggle()
    unfolded = "\n".join(line.text for line in block.lines(80, PALETTE))
    assert ("told" in unfolded) == (state != "refused"), "the text for the model is in the detail view"
    assert (f"refused by you{f' · {why}' if why else ''}" in unfolded) == by_user
    row = row_of(1, 1, one)
    assert (row.state, row.reason) == (state, why)
    exported = _call(one)
    assert {"refused": "⊘", "stopped": "■", "failed": "✗"}[state] in exported
    assert (state in exported) == (state != "failed")


def test_a_failure_shows_its_error_once() -> None:
    failed = call("read_file", '{"path": "a.py"}', {"text": "gone"}, error="gone", success=False)
    assert titles(failed) == ["Error", "Arguments"]
    assert "failed" in call_title(failed, 1)


def test_a_call_whose_outcome_is_lost_and_one_with_broken_arguments() -> None:
    assert titles(call("run_command", '{"command": "a\\nb", "x": 1}', None)) == ["Arguments", "Argument command"]
    assert "outcome unknown" in call_title(call("run_command", "{}", None), 1)
    assert [s.text for s in call_sections(call("x", "{broken", None))] == ["{broken"]


@pytest.mark.parametrize("depth", [400, 900, 5_000])
def test_deeply_nested_json_is_shown_as_written(depth: int) -> None:
    one = call("odd", f'{{"way": {"[" * depth}{"]" * depth}}}', None)
    assert call_sections(one) == [Section(title="Arguments", text=one.arguments)]
    block = ToolBlock(1, one, gap=0)
    block.folded = False
    assert block.lines(80, PALETTE)[-1].text.endswith("]]]}")
    assert "[[[[" in row_of(1, 1, one).argument


def test_line_numbers_of_read_file_are_separate_from_the_code() -> None:
    text = "     1\tdef f():\n     2\t    return 1"
    section = call_sections(call("read_file", '{"path": "a.py"}', {"text": text}, success=True))[-1]
    assert (section.language, section.numbered) == ("python", True)
    assert drawn([section])[1:] == ["     1 │ def f():", "     2 │     return 1"]


def test_long_lines_and_foreign_text_are_cut_and_made_safe() -> None:
    lines = drawn([Section(title="Result", text="\x1b[31mred\x1b[0m\tx\rsecond\n" + "y" * (PIECE_CHARS * 2 + 5))])
    assert lines[1] == "│ red x second"
    assert all("\x1b" not in line for line in lines)
    assert "".join(line.removeprefix("│ ") for line in lines[2:]).count("y") == PIECE_CHARS * 2 + 5


@pytest.mark.parametrize("look", ["prose", "code", "diff", "error"])
def test_every_look_draws_all_lines(look: Any) -> None:
    text = "\n".join(f"+line {n}" for n in range(500))
    lines = drawn([Section(title="T", text=text, kind=look, language="python")])
    assert len(lines) == 501
    assert lines[-1].endswith("+line 499")


def test_a_huge_text_is_drawn_only_where_it_is_looked_at() -> None:
    text = "x = 1  # a comment\n" * 250_000
    blocks = blocks_of([Section(title="Result", text=text, language="python")])
    pieces = [block for block in blocks if isinstance(block, PieceBlock)]
    assert all(block.whole is None and block.height == 0 for block in pieces)
    assert sum(block.estimate(80) for block in pieces) == 250_000
    assert pieces[-1].lines(80, PALETTE)[-1].strip.text == "│ x = 1  # a comment"


def test_a_file_and_what_was_changed_in_it(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\n")
    sections = file_sections(tmp_path, "a.py", "@@\n+x = 1", "Somebody changed it.")
    assert [(section.title, section.kind) for section in sections] == [
        ("Note", "prose"),
        ("Changed in this conversation", "diff"),
        ("File", "code"),
    ]
    assert sections[-1].language == "python"


@pytest.mark.parametrize(
    ("path", "expected"),
    [("gone.py", "no longer"), ("folder", "not a file"), ("binary", "binary"), ("empty", "empty"), ("../x", "outside")],
)
def test_undisplayable_content_is_reported(tmp_path: Path, path: str, expected: str) -> None:
    workspace = tmp_path / "w"
    (workspace / "folder").mkdir(parents=True)
    (workspace / "binary").write_bytes(b"\x7fELF\x00\x01")
    (workspace / "empty").touch()
    (tmp_path / "x").write_text("secret")
    assert expected in file_sections(workspace, path, "")[-1].text


def test_a_large_file_is_cut_and_that_is_reported(tmp_path: Path) -> None:
    (tmp_path / "large.txt").write_bytes(b"x" * (MAX_FILE_BYTES + 10))
    section = file_sections(tmp_path, "large.txt", "")[-1]
    assert len(section.text) == MAX_FILE_BYTES
    assert f"of {MAX_FILE_BYTES + 10} bytes" in section.title


@pytest.mark.parametrize(
    ("path", "language"),
    [("a/b.py", "python"), ("x.ts", "typescript"), ("Makefile", "make"), ("notes", ""), ("", ""), ("x.unheardof", "")],
)
def test_languages(path: str, language: str) -> None:
    assert language_of(path) == language
