"""Whether what is drawn can be read: the contrast of every letter on the screen with what it stands on."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from rich.style import Style
from textual.color import Color
from textual.geometry import Region
from textual.scrollbar import ScrollBar
from textual.widgets import Input

from ragforge_tui.tui.dialogs.find_bar import FIND_BAR
from ragforge_tui.tui.drawing.palette import contrast
from tests.tui.pictures.stage import Stage

ENOUGH, HIGH = 4.5, 7.0
"""WCAG AA, and AAA for the themes of high contrast."""
FRAME = 3.0
THUMB = 2.0
"""WCAG 1.4.11, for what is no text but shows where something is."""
FRAMES = frozenset("─│┄╭╮╰╯┌┐└┘├┤┬┴┼▸▾▌▎")


def on_top(stage: Stage) -> Region:
    """Return the region that is meant to be read: a dialog's, if there is one."""
    return stage.screen.region if len(stage.app.screen_stack) == 1 else stage.screen.children[0].region


def pieces(stage: Stage, region: Region) -> Iterator[tuple[str, Style]]:
    """Every piece of a region with its style."""
    for y, strip in enumerate(stage.screen._compositor.render_strips()):
        if region.y <= y < region.bottom:
            for segment in strip.crop(region.x, region.right):
                if segment.style is not None and not segment.control:
                    yield segment.text, segment.style


def drawn(stage: Stage) -> Iterator[tuple[str, Style]]:
    """Every piece of text on the screen with its style; what stands behind a dialog is not meant to be read."""
    for text, style in pieces(stage, on_top(stage)):
        if any(letter.isalnum() for letter in text):
            yield text, style


def colors(stage: Stage, style: Style) -> tuple[Color, Color]:
    """Return the color of a style's signs and that of their background, as they are drawn."""
    paper = Color.parse(stage.app.current_theme.background or stage.app.theme_variables["background"])
    ink = Color.parse(stage.app.theme_variables["foreground"]) if style.color is None else style.color
    ground = paper if style.bgcolor is None or style.bgcolor.is_default else Color.from_rich_color(style.bgcolor)
    front = ink if isinstance(ink, Color) else Color.from_rich_color(ink)
    return (ground, front) if style.reverse else (front, ground)


def unseen(stage: Stage) -> set[str]:
    """Return the frames, marks, thumbs and edges of fields that are too faint, and why."""
    found = set()

    def note(what: str, ratio: float, least: float = FRAME) -> None:
        if ratio < least:
            found.add(f"{stage.app.theme}: {ratio:.2f} {what}")

    for text, style in pieces(stage, on_top(stage)):
        if signs := "".join(sorted(FRAMES & set(text))):
            front, ground = colors(stage, style)
            note(f"{front.hex} on {ground.hex} {signs!r} in {text.strip()[:30]!r}", contrast(front, ground))
    for bar in stage.screen.query(ScrollBar):
        if bar.region.overlaps(on_top(stage)) and bar.window_size < bar.window_virtual_size:
            shades = {shade for _, style in pieces(stage, bar.region) for shade in colors(stage, style)[1:]}
            note("a scrollbar's thumb", max((contrast(*pair) for pair in combinations(shades, 2)), default=1.0), THUMB)
    for field in stage.screen.query(Input):
        if field.region.overlaps(on_top(stage)) and field.parent is not None and field.parent.id != FIND_BAR:
            text, style = next(pieces(stage, field.region))
            front, ground = colors(stage, style)
            note(f"no edge of a field: {text!r}", contrast(front, ground) if set(text) & FRAMES else 1.0)
    return found


def unreadable(stage: Stage, least: float) -> set[str]:
    """The texts that cannot be read, and why."""
    paper = Color.parse(stage.app.current_theme.background or "#000000")
    found = set()
    for text, style in drawn(stage):
        ink, ground = style.color, style.bgcolor
        assert ink is not None and not ink.is_default and not style.dim, (text, style)
        on = paper if ground is None or ground.is_default else Color.from_rich_color(ground)
        ratio = contrast(Color.from_rich_color(ink), on)
        if ratio < least:
            found.add(
                f"{stage.app.theme}: {ratio:.1f} {Color.from_rich_color(ink).hex} on {on.hex} {text.strip()[:30]!r}"
            )
    return found
