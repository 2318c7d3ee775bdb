"""The film of the README: what is drawn, and when."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import pytest

from screenshots.film import EDGE, Frame, Piece, animated
from screenshots.stage import Scene
from screenshots.words import text_in

BLACK, WHITE, GRAY = "#000000", "#ffffff", "#222222"
SVG = "{http://www.w3.org/2000/svg}"


def line(text: str, *, column: int = 0, background: str = BLACK) -> tuple[Piece, ...]:
    return (Piece(column, text, WHITE, background, ""),)


def test_each_frame_is_shown_for_its_time() -> None:
    frames: list[Frame] = [(line("a"), line("same")), (line("b"), line("same")), (line("a"), line("same"))]
    film = animated(frames, [1.0, 2.0, 1.0], BLACK)
    seen = [text_in(film, at).split() for at in (0.0, 0.9, 1.1, 2.9, 3.1)]
    assert seen == [["a", "same"], ["a", "same"], ["b", "same"], ["b", "same"], ["a", "same"]]


def test_a_line_that_returns_is_drawn_once_and_one_that_stays_does_not_move() -> None:
    picture = animated([(line("a"), line("x")), (line("b"), line("x")), (line("a"), line("x"))], [1, 1, 1], BLACK)
    assert (picture.count(">a<"), picture.count(">x<"), picture.count("<animate")) == (1, 1, 2)


def test_text_and_colors_are_escaped_and_blanks_take_their_room() -> None:
    picture = animated([(line("  <b>&", column=2, background=GRAY),)], [1], BLACK)
    text = next(ElementTree.fromstring(picture).iter(f"{SVG}text"))
    assert text.text == "<b>&"
    assert float(text.attrib["x"]) > EDGE + 40
    assert f'fill="{GRAY}"' in picture


def test_several_blanks_are_a_place_and_not_a_text() -> None:
    picture = animated([(line("a b   c", column=1),)], [1], BLACK)
    assert [text.text for text in ElementTree.fromstring(picture).iter(f"{SVG}text")] == ["a b", "c"]
    assert text_in(picture) == " a b   c"


def test_a_scene_has_its_length_and_what_is_held_keeps_its_time() -> None:
    scene = Scene("x", 4.0, [(0.0, ()), (0.1, ()), (0.3, ()), (9.0, ())], {3: 2.0})
    assert scene.lengths == pytest.approx([2 * 0.1 / 0.7, 2 * 0.2 / 0.7, 2 * 0.4 / 0.7, 2.0])
    with pytest.raises(ValueError, match="longer than the scene"):
        _ = Scene("x", 1.0, [(0.0, ()), (0.1, ())], {1: 2.0}).lengths
