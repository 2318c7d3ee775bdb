"""The film of the README: what is drawn, and when."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

from textual.app import App, ComposeResult
from textual.widgets import Static

from screenshots.film import EDGE, END_SECONDS, Film, Frame, Piece, animated, frame_of

BLACK, WHITE, GRAY = "#000000", "#ffffff", "#222222"
SVG = "{http://www.w3.org/2000/svg}"


def line(text: str, *, column: int = 0, background: str = BLACK) -> tuple[Piece, ...]:
    return (Piece(column, text, WHITE, background, ""),)


def shown(frames: list[Frame], lengths: list[float], at: float) -> list[tuple[float, str]]:
    """Return the texts that a player shows at a time, with their heights."""
    root = ElementTree.fromstring(animated(frames, lengths, BLACK))
    texts = []
    for group in root.iter(f"{SVG}g"):
        animation = group.find(f"{SVG}animate")
        value = "inline"
        if animation is not None:
            share = at / float(animation.attrib["dur"].removesuffix("s"))
            steps = zip(animation.attrib["keyTimes"].split(";"), animation.attrib["values"].split(";"), strict=True)
            value = [each for begin, each in steps if float(begin) <= share][-1]
        if value == "inline":
            texts += [(float(text.attrib["y"]), text.text or "") for text in group.iter(f"{SVG}text")]
    return sorted(texts)


def test_each_frame_is_shown_for_its_time() -> None:
    frames: list[Frame] = [(line("a"), line("same")), (line("b"), line("same")), (line("a"), line("same"))]
    seen = [[text for _, text in shown(frames, [1.0, 2.0, 1.0], at)] for at in (0.0, 0.9, 1.1, 2.9, 3.1)]
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


class Small(App[None]):
    """An app with one line."""

    def compose(self) -> ComposeResult:
        yield Static("in /secret/folder now", markup=False)


async def test_the_screen_is_sampled_when_it_changes_and_folders_are_hidden() -> None:
    app = Small()
    async with app.run_test(size=(30, 3)) as pilot:
        await pilot.pause()
        film = Film(app, "/secret/folder")
        film.hold(3.0)
        film.sample()
        assert len(film.frames) == 1
        assert [piece.text.strip() for piece in film.frames[0][1][0]] == ["in ~ now"]
        app.query_one(Static).update("later")
        await pilot.pause()
        film.sample()
        assert len(film.frames) == 2 and frame_of(app, "") == film.frames[1][1]
        assert film.lengths == [3.0, END_SECONDS]
