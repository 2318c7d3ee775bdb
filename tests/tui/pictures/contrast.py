"""Whether what is drawn can be read: the contrast of every letter on the screen with what it stands on."""

from __future__ import annotations

from collections.abc import Iterator

from rich.style import Style
from textual.color import Color

from ragforge_tui.tui.drawing.palette import contrast
from tests.tui.pictures.stage import Stage

ENOUGH, HIGH = 4.5, 7.0
"""WCAG AA, and AAA for the themes of high contrast."""


def drawn(stage: Stage) -> Iterator[tuple[str, Style]]:
    """Every piece of text on the screen with its style; what stands behind a dialog is not meant to be read."""
    screen = stage.screen
    region = screen.region if len(stage.app.screen_stack) == 1 else screen.children[0].region
    for y, strip in enumerate(screen._compositor.render_strips()):
        if region.y <= y < region.bottom:
            for segment in strip.crop(region.x, region.right):
                if segment.style is not None and any(letter.isalnum() for letter in segment.text):
                    yield segment.text, segment.style


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
