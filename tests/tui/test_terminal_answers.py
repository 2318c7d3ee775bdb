"""Answers of the terminal are no keys, wherever a read cuts them."""

from __future__ import annotations

import pytest

from ragforge_tui.tui.terminal_answers import split_unfinished, without_answers

ANSWERS = {
    "colour": "\x1b]11;rgb:1e1e/1e1e/1e1e\x07",
    "colour, ended by ST": "\x1b]11;rgb:1e1e/1e1e/1e1e\x1b\\",
    "clipboard": "\x1b]52;c;aGVsbG8=\x07",
    "title with a carriage return": "\x1b]lrm -rf .\r\x1b\\",
    "version": "\x1bP>|xterm(370)\x1b\\",
    "capability": "\x1bP1+r524742=38\x1b\\",
    "picture": "\x1b_Gi=31;OK\x1b\\",
    "unit": "\x1bP!|00000000\x1b\\",
    "attributes": "\x1b[?62;22c",
    "secondary attributes": "\x1b[>41;370;0c",
    "keyboard": "\x1b[?1u",
    "status": "\x1b[0n",
    "size": "\x1b[8;30;100t",
    "scheme": "\x1b[?997;1n",
}
KEYS = ["a", "é", "\x1b", "\x1b[A", "\x1b[1;5R", "\x1b[97;5u", "\x1b[3~", "\x1b[24;80R", "\x1b[200~pasted\x1b[201~"]
UNDERSTOOD = ["\x1b[?2026;2$y", "\x1b[48;30;100;600;800t", "\x1b[<0;3;4M", "\x1b[I"]


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS.keys())
def test_an_answer_is_dropped(answer: str) -> None:
    assert without_answers(f"before{answer}after{answer}".encode()) == b"beforeafter"


@pytest.mark.parametrize("typed", KEYS + UNDERSTOOD)
def test_keys_and_what_textual_understands_stay(typed: str) -> None:
    assert without_answers(typed.encode()) == typed.encode()


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS.keys())
def test_an_answer_that_is_cut_off_waits_for_its_rest(answer: str) -> None:
    for cut in range(2, len(answer)):
        now, later = split_unfinished(without_answers(f"é{answer[:cut]}".encode()))
        assert now == "é".encode()
        assert without_answers(later + f"{answer[cut:]}x".encode()) == b"x"


@pytest.mark.parametrize("typed", ["", "abc", "\x1b", "a\x1b", "\x1b[A", "\x1bb", "\x1b]11;no end" + "x" * 70_000])
def test_nothing_else_waits(typed: str) -> None:
    assert split_unfinished(typed.encode()) == (typed.encode(), b"")
