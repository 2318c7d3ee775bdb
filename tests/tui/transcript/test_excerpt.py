"""Messages in previews: speakers, Markdown, how much is shown."""

from __future__ import annotations

import msgspec

from ragforge_tui.tui.transcript.excerpt import Said, said_in
from tests.support.fake_engine import conversation, turn
from tests.tui.transcript.samples import DARK


def drawn(said: Said, width: int = 40) -> list[str]:
    """The lines of a message."""
    return [line.strip.text.rstrip() for line in said.lines(width, DARK)]


def test_a_reply_is_markdown_below_its_persona() -> None:
    written = "## Why\n\nIt is **retried**:\n\n- one\n- *two*\n\n| a | b |\n| - | - |\n| 1 | 2 |"
    shown = drawn(Said(written, "Ragnarök", "✶"))
    assert shown[:4] == ["✶ Ragnarök", "Why", "", "It is retried:"]
    assert not any(mark in line for line in shown for mark in ("**", "##", "| -"))


def test_a_message_of_the_user_is_no_markdown() -> None:
    assert drawn(Said("a **b**")) == ["you", "a **b**"]


def test_code_offers_no_copy_where_nothing_can_be_clicked() -> None:
    for language in ("python", ""):
        shown = drawn(Said(f"```{language}\nx = 1\n```", "Ragnarök", "✶"))
        assert "x = 1" in shown[1] and "copy" not in shown[1] and not shown[1].endswith("·")


def test_only_some_lines_are_shown() -> None:
    assert drawn(Said("\n".join("abcdefgh"), most=3)) == ["you", "a", "b", "c", "…"]
    assert drawn(Said("a\nb\nc", most=3)) == ["you", "a", "b", "c"]


def test_nothing_reaches_the_terminal_as_an_order() -> None:
    hostile = "\x1b[31mred [b]x[/b]"
    for said in (Said(hostile), Said(hostile, hostile, hostile)):
        text = "\n".join(drawn(said, 80))
        assert "\x1b" not in text and "[b]x[/b]" in text


def test_the_question_of_a_wanted_answer_is_short_and_replies_are_one() -> None:
    told = turn(conversation(1), 1, "Why?", "Because.")
    told.messages.append(msgspec.structs.replace(told.messages[-1], uuid="m3", content="So."))
    assert [(one.text, one.most) for one in said_in(told, "assistant")] == [("Why?", 3), ("Because.\n\nSo.", 0)]
    assert [one.most for one in said_in(told, "user")] == [0, 0]
    told.messages[-1].state = "superseded"
    assert [one.text for one in said_in(told, "user")] == ["Why?", "Because."]
