"""Which answers in planning mode are plans."""

from __future__ import annotations

import pytest

from ragforge_tui.shared.plans import is_plan


@pytest.mark.parametrize(
    "answer",
    [
        "1. Change `retry.py`.\n2. Run its tests.",
        "## Changes\nIn src/courier/retry.py the wait doubles.\n\n## Commands\nThe tests of it.",
        "Je propose :\n\n- modifier retry.py\n- lancer les tests\n\nReste incertain : le délai.",
        "| file | change |\n|---|---|\n| retry.py | waits longer |",
        "- first:\n  ```\n  make check\n  ```\n- then look",
    ],
)
def test_steps_about_files_or_commands_are_a_plan(answer: str) -> None:
    assert is_plan(answer)


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "Hello! What shall I plan?",
        "Hello! I can:\n\n- read your files\n- plan a change",
        "`retry.py` waits 1 s, then 2 s - and so on.",
        "It is this:\n\n```sh\n# one\n- two\n# three\n```\n",
        "- one question: e.g. how long?",
    ],
)
def test_other_answers_are_none(answer: str) -> None:
    assert not is_plan(answer)
