"""The words on the pictures of the README are those that the program draws."""

from __future__ import annotations

import shutil

import pytest

from screenshots import words
from screenshots.past import HERE
from screenshots.story import FILM, LONGEST_SECONDS, STILLS, played
from tests.support.waiting import PATIENCE

AGAIN = "Make the pictures again, and look at them: python -m screenshots.make"
FILMED = (HERE / f"{FILM}.svg").read_text(encoding="utf-8")
RECORDED = words.read((HERE / "words.txt").read_text(encoding="utf-8"))


@pytest.mark.parametrize("shown", RECORDED, ids=[shown.name for shown in RECORDED])
def test_a_picture_shows_the_recorded_words(shown: words.Shown) -> None:
    caption, _, screen = words.text_in(FILMED, shown.at).partition("\n")
    assert caption and not words.difference(shown.text, screen), AGAIN
    assert shown.at < LONGEST_SECONDS
    if shown.name in STILLS:
        still = words.text_in((HERE / f"{shown.name}.svg").read_text(encoding="utf-8"))
        assert not words.difference(shown.text, still), AGAIN


def test_the_recall_is_shown_by_second_six() -> None:
    assert "↺ recalled" in words.text_in(FILMED, 5.0)


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("bash"), reason="the film shows a shell")
async def test_the_program_draws_the_recorded_words() -> None:
    stage = await played(filming=False, patience=PATIENCE)
    drawn = {name: words.text_of(frame) for name, frame in stage.pictures.items()}
    assert list(drawn) == [shown.name for shown in RECORDED]
    different = {one.name: words.difference(one.text, drawn[one.name]) for one in RECORDED}
    assert not {name: words_ for name, words_ in different.items() if words_}, AGAIN
    captions = {words.text_in(FILMED, one.at).partition("\n")[0].strip() for one in RECORDED}
    assert captions == {f"{number}  {scene.caption}" for number, scene in enumerate(stage.scenes, 1)}, AGAIN


def test_a_changed_word_is_named_and_numbers_times_and_cut_words_are_not() -> None:
    expected = "idle · 5 turns · Friday 23:18, 12 ms, id 11f64b2b, some wo…"
    assert not words.difference(expected, "idle · 1 turn · Monday 09:02, 3 s, id 6c33d1d9, some other…")
    assert words.difference(expected, "busy · 5 turns, id, some") == "gone: idle; new: busy"


def test_what_was_written_is_read() -> None:
    shown = [words.Shown("one", 1.5, "a\n\n  b"), words.Shown("two", 2.25, "c")]
    assert words.read(words.written(shown)) == shown
