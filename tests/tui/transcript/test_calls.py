"""Calls in the transcript: what they did, why, and how they ended."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from ragforge_tui.shared.events import (
    MessageFinished,
    MessageStarted,
    ReasoningDelta,
    ToolCallFinished,
    ToolCallOutput,
    ToolCallStarted,
    TurnCompleted,
    TurnStarted,
)
from ragforge_tui.shared.records import ToolCall, Turn
from ragforge_tui.tools.diff import unified_diff
from ragforge_tui.tui.transcript.blocks import FOLDED_WORDS, HeadBlock
from ragforge_tui.tui.transcript.tool_block import OPEN_DIFF_LINES, ToolBlock
from tests.support.hostile import HOSTILE
from tests.tui.transcript.samples import DARK, called, reply, said, shown, text_of
from tests.tui.transcript.test_document import WHERE, after, drawn, resumed, unfinished

PLAIN = msgspec.structs.replace(DARK, plain=True)
WHY = "does the retry still double turns?"
PRINTED = "".join(f"test {number} passed\n" for number in range(1, 8))


def lines(call: ToolCall, *, width: int = 88, palette: Any = DARK, open_: bool = False) -> list[str]:
    block = ToolBlock(1, call, gap=0)
    if open_:
        block.toggle()
    return [line.rstrip() for line in text_of(block.lines(width, palette))]


def ran(text: str, status: int | None, **more: Any) -> ToolCall:
    error = None if status == 0 else more.pop("error", f"Exit status {status}.")
    result = {"text": f"{text}[{error or 'Exit status 0.'}]", "exit_status": status, **more}
    return called("run_command", {"command": "pytest", "reason": WHY}, result, error=error)


def edited(count: int) -> ToolCall:
    diff = unified_diff(None, "".join(f"row {number}\n" for number in range(count)), "a.txt")
    return called("edit_file", {"path": "a.txt", "old_string": "", "new_string": ""}, {"text": "ok", "diff": diff})


class TestEdits:
    def test_a_short_diff_is_open(self) -> None:
        assert lines(edited(3))[1:] == ["      1 + row 0", "      2 + row 1", "      3 + row 2"]

    @pytest.mark.parametrize("count", [OPEN_DIFF_LINES, OPEN_DIFF_LINES + 2])
    def test_a_line_or_two_are_not_worth_hiding(self, count: int) -> None:
        assert len(lines(edited(count))) == 1 + count

    def test_the_rest_of_a_long_one_is_behind_the_fold(self) -> None:
        folded = lines(edited(40))
        assert len(folded) == 1 + OPEN_DIFF_LINES + 1 and folded[-1].strip() == "… 28 more lines"
        whole = lines(edited(40), open_=True)
        assert whole[-1].endswith("40 + row 39") and "    │ path: a.txt" in whole

    def test_in_words(self) -> None:
        text = lines(edited(2), palette=PLAIN)
        assert text[0].startswith("  tool Edit ok") and "2 added, 0 removed" in text[0]
        assert text[1:] == ["    added 1: row 0", "    added 2: row 1"]

    @pytest.mark.parametrize("palette", [DARK, PLAIN])
    def test_where_no_line_changed_nothing_is_counted(self, palette: Any) -> None:
        made = called("write_file", {"path": "a.txt"}, {"text": "ok", "diff": "--- /dev/null\n+++ b/a.txt\n"})
        head = lines(made, palette=palette)[0]
        assert "12 ms" in head and not any(count in head for count in ("+0", "added", "·"))


class TestCommands:
    def test_the_last_lines_and_the_status(self) -> None:
        text = lines(ran(PRINTED, 0))
        assert "exit 0 · 12 ms" in text[0]
        assert text[1:] == ["    │ … 4 more lines", "    │ test 5 passed", "    │ test 6 passed", "    │ test 7 passed"]
        assert not any("more" in line for line in lines(ran("one\n\ntwo\nthree\n", 0)))

    def test_a_failure_shows_its_last_lines_none_of_them_as_the_reason(self) -> None:
        block = ToolBlock(1, ran("TypeError: no\n2928429 import requests\n\n", 1), gap=0)
        head, *tail = block.lines(88, DARK)
        assert "exit 1" in head.text and "Exit status" not in "".join(text_of(tail))
        assert [line.text.strip() for line in tail] == ["TypeError: no", "2928429 import requests"]
        assert all(list(line.strip)[-1].style == DARK.muted for line in tail)

    def test_one_that_was_ended_shows_that(self) -> None:
        text = lines(ran("waiting\n", None, error="Timed out after 5 s; it was ended.", timed_out=True))
        assert text[1:] == ["    │ waiting", "    Timed out after 5 s; it was ended."]
        assert "failed" in text[0]

    def test_one_that_printed_nothing(self) -> None:
        assert len(lines(ran("", 0))) == 1
        assert lines(ran("", 2))[1] == "    Exit status 2."

    def test_all_of_it_when_it_is_open(self) -> None:
        text = lines(ran(PRINTED, 0), open_=True)
        assert sum("test 7 passed" in line for line in text) == 1 and any("test 1 passed" in line for line in text)

    def test_in_words(self) -> None:
        text = lines(ran(PRINTED, 1), palette=PLAIN)
        assert "tool Run failed" in text[0] and "exit 1, 12 ms" in text[0]
        assert text[1:] == [
            f"    why: {WHY}",
            "    … 4 more lines",
            "    test 5 passed",
            "    test 6 passed",
            "    test 7 passed",
        ]

    def test_its_output_is_seen_while_it_runs(self) -> None:
        call = ran(PRINTED, 0)
        document = after([TurnStarted(message=said("go"), **WHERE), ToolCallStarted(call=unfinished(call), **WHERE)])
        document.apply(ToolCallOutput(call_id=call.uuid, lines=["one", f"two {HOSTILE}"], **WHERE))
        text = text_of(drawn(document))
        assert "    │ one" in text and any(line.startswith("    │ two") for line in text)
        assert not any(letter in "".join(text) for letter in "\x1b\x07\x9b\r")
        document.apply(ToolCallFinished(call=call, **WHERE))
        text = text_of(drawn(document))
        assert "    │ test 7 passed" in text and "    │ one" not in text

    def test_output_of_an_unknown_call_changes_nothing(self) -> None:
        document = after([TurnStarted(message=said("go"), **WHERE)])
        document.apply(ToolCallOutput(call_id="gone", lines=["one"], **WHERE))
        assert "one" not in "".join(text_of(drawn(document)))


class TestWords:
    def test_tools_are_named_by_what_they_do(self) -> None:
        names = ("read_file", "edit_file", "grep_files", "run_command", "mine")
        assert [lines(called(name, {"path": "a"}))[0].split()[1] for name in names] == [
            "Read",
            "Edit",
            "Search",
            "Run",
            "mine",
        ]

    def test_a_plan_shows_how_far_it_is(self) -> None:
        todos = [{"content": "a", "status": "completed"}, {"content": "b", "status": "pending"}]
        assert "● Plan 1/2" in lines(called("update_todos", {"todos": todos}, {"text": "ok", "todos": todos}))[0]

    def test_the_reason_is_after_the_argument_or_on_its_own_line(self) -> None:
        call = called("read_file", {"path": "a.py", "reason": WHY}, {"text": "x"})
        [head] = lines(call)
        assert f"a.py  {WHY}" in head
        narrow = lines(call, width=50)
        assert "a.py" in narrow[0] and narrow[1] == f"    {WHY}"

    def test_calls_with_a_body_are_set_apart(self) -> None:
        calls = [called("read_file", {"path": "a"}, {"text": "x"}, uuid="1"), edited(1), ran("", 0)]
        document = resumed(Turn(turn_index=1, messages=[said("go"), reply("", calls=calls)]))
        gaps = [block.gap for block in document.blocks if isinstance(block, ToolBlock)]
        assert gaps == [1, 0, 1]


class TestReasoning:
    def test_the_reasons_of_calls_are_no_reasoning(self) -> None:
        call = msgspec.structs.replace(ran(PRINTED, 0), reasoning=WHY)
        stored = reply("", reasoning=WHY, calls=[call])
        live = [
            TurnStarted(message=said("go"), **WHERE),
            MessageStarted(message_id=stored.uuid, persona=stored.persona, **WHERE),
            MessageFinished(message=msgspec.structs.replace(stored, tool_calls=[]), **WHERE),
            ToolCallStarted(call=unfinished(call), **WHERE),
            ToolCallFinished(call=call, **WHERE),
            TurnCompleted(text="", **WHERE),
        ]
        # Another terminal learns of the reasons as if they had streamed.
        followed = [*live[:2], ReasoningDelta(message_id=stored.uuid, text=WHY, **WHERE), *live[2:]]
        documents = [after(live), after(followed), resumed(Turn(turn_index=1, messages=[said("go"), stored]))]
        texts = ["\n".join(text_of(drawn(document))) for document in documents]
        assert len(set(texts)) == 1 and texts[0].count(WHY) == 1 and "thought" not in texts[0]

    def test_little_reasoning_is_shown_and_much_is_folded(self) -> None:
        for words, folded in ((FOLDED_WORDS - 1, None), (FOLDED_WORDS, True)):
            stored = reply("Yes.", reasoning=" ".join(["word"] * words))
            document = resumed(Turn(turn_index=1, messages=[said("go"), stored]))
            [head] = [block for block in document.blocks if isinstance(block, HeadBlock)]
            assert head.folded is folded
            text = "\n".join(text_of(drawn(document)))
            assert ("thought, 40 words ▸" in text) is bool(folded) and ("▎ word word" in text) is not folded

    def test_it_is_folded_while_it_streams(self) -> None:
        head = HeadBlock(1, "m", name="Ragnarök", glyph="✶")
        head.thinking = True
        head.think("First the index.")
        assert text_of(head.lines(80, DARK))[-1].strip() == "✶ Ragnarök  thinking … ▸"
        head.pause()
        assert [line.strip() for line in text_of(head.lines(80, DARK))[1:3]] == ["✶ Ragnarök", "▎ First the index."]
        assert shown().unfold_reasoning is False


def test_the_answer_to_a_question_is_on_its_line() -> None:
    asked = called("ask_user", {"question": "Which type?"}, {"text": "The user answered: D", "answer": f"D {HOSTILE}"})
    assert "D " in lines(asked)[0].removesuffix("▸")[-50:] and "\x1b" not in lines(asked)[0]


def test_what_a_helper_did_is_live_below_its_call_and_unfolds_later() -> None:
    block = ToolBlock(1, called("delegate", {"kind": "search", "task": "find alpha"}), gap=0)
    block.show_output(["Read a.py", f"Search {HOSTILE}"])
    live = text_of(block.lines(88, DARK))
    assert "search find alpha" in live[0] and live[1] == "    │ Read a.py" and len(live) == 3
    done = called("delegate", {"kind": "search"}, {"text": "Nowhere.", "trace": ["Read a.py", HOSTILE, "/resume 3f2a"]})
    block.update(done)
    assert len(block.lines(88, DARK)) == 1 and not block.has_body
    whole = lines(done, open_=True)
    assert whole.index("    │ Read a.py") < whole.index("    │ /resume 3f2a") < whole.index("    │ Nowhere.")
