"""Titles: by a model, by the first sentence, always one clean line. Pure but for a scripted model."""

from __future__ import annotations

from typing import Any

import pytest

from ragforge_tui.llm import OfflineAssistant
from ragforge_tui.memory.titles import clean_title, make_title, title_of
from ragforge_tui.shared.errors import ModelError
from ragforge_tui.shared.records import TITLE_CHARS
from tests.support.summaries import WritingModel
from tests.support.turns import turn_of

SENTENCE = "Why does the retry double turns?"
TURN = turn_of("c", 1, "Why does the retry double turns? It happens on Mondays.", "Because the id is made anew.")


@pytest.mark.parametrize(
    ("said", "title"),
    [
        ("Retries that double turns", "Retries that double turns"),
        ('"Retries that double turns."\n', "Retries that double turns"),
        ("**Title:** Retries that double", "Retries that double"),
        ("# Titre : « Les reprises »", "Les reprises"),
        ("<think>What about {this}?</think>\n\nRetries", "Retries"),
        ("Retries\nand more lines\nhere", "Retries"),
        ("\x1b[31mRed\x1b[0m \u202etitle", "Red title"),
        (f"Key sk-{'a1' * 12}", "Key sk-a1a…[masked]"),
        ("`retry()` in client.py", "retry()` in client.py"),
        ("会話の題名", "会話の題名"),
    ],
)
async def test_a_models_title_is_cleaned(said: str, title: str) -> None:
    model = WritingModel(lambda messages: said)
    assert await make_title(model, TURN) == (title, False)
    assert [m["role"] for m in model.requests[0]] == ["system", "user"]
    assert "Why does the retry" not in model.requests[0][0]["content"]


@pytest.mark.parametrize("said", ["", "\n\n", '{"title": "x"}', "word " * 1_000, '""'])
async def test_no_use_of_an_answer_that_is_no_title(said: str) -> None:
    assert await make_title(WritingModel(lambda messages: said), TURN) == (SENTENCE, False)


async def test_without_a_model_the_first_sentence() -> None:
    assert await make_title(None, TURN) == (SENTENCE, False)
    assert await make_title(OfflineAssistant(), TURN) == (SENTENCE, False)


@pytest.mark.parametrize("error", [ModelError("away", kind="model_unreachable"), TimeoutError()])
async def test_of_a_model_that_fails_the_first_sentence_for_the_time_being(error: Exception) -> None:

    def fail(messages: Any) -> str:
        raise error

    assert await make_title(WritingModel(fail), TURN) == (SENTENCE, True)


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("", ""),
        ("   \n", ""),
        ("Rename it there. And more.", "Rename it there"),
        ("Hello!", ""),
        ("Salut !", ""),
        ("Guten Tag!", ""),
        ("こんにちは。", ""),
        ("Hello! Fix the login page.", "Fix the login page"),
        ("Fix tests", "Fix tests"),
        ("ok", ""),
        ("请修复登录页面的按钮颜色。", "请修复登录页面的按钮颜色。"),
        ("```py\nprint(1)\n```\nWhat does this print?", "What does this print?"),
        ("```py\nprint(1)\n```", "print(1)"),
        ("find files named *discover*", "find files named *discover*"),
        ("x" * 500, "x" * 57 + "…"),
        ("$$\n\\int_0^1 x\\,dx\n$$\nWhat is this integral? And why?", "What is this integral?"),
        ("Integrate $x^2$ from \\(a\\) to $b$.", "Integrate … from … to …"),
        ("$n! = n (n-1)!$", "n! = n (n-1)!"),
        ("It costs $5 and $6 a month.", "It costs $5 and $6 a month"),
    ],
)
def test_the_first_sentence_as_a_title(text: str, title: str) -> None:
    assert title_of(text) == title


def test_titles_are_short() -> None:
    assert len(clean_title("many words " * 30)) <= TITLE_CHARS
