"""Styles of everything that draws its own lines, from the theme's variables, and the colors of personas.

A persona's file may name any color. Drawn as it is, half of them would be unreadable on a dark screen and the other
half on a light one: the hue is the persona's, the lightness the theme's.

No widget, so that blocks can be drawn and tested without an app; hashable, so that it can be part of a cache key.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import msgspec
from rich.style import Style
from textual.app import App
from textual.color import Color

_HUES: dict[str, tuple[float, float]] = {
    "red": (0.99, 0.75),
    "orange": (0.08, 0.85),
    "yellow": (0.14, 0.80),
    "green": (0.36, 0.55),
    "cyan": (0.50, 0.60),
    "blue": (0.58, 0.75),
    "violet": (0.75, 0.75),
    "magenta": (0.84, 0.65),
    "pink": (0.92, 0.75),
    "white": (0.0, 0.0),
    "gray": (0.0, 0.0),
}
_PLAIN_LIGHTNESS = {"white": (0.93, 0.20), "gray": (0.66, 0.45)}
_PAPERS = {True: Color.parse("#21262d"), False: Color.parse("#eaeef2")}
"""The lightest background of the dark themes behind a name, and the darkest of the light ones."""
_CONTRAST, _ENOUGH = 7.0, 4.5
_STEP = 0.02
DEFAULT_GLYPH = "✶"
"""For personas without a glyph."""
COLOR_NAMES = tuple(_HUES)
"""The color names that users may choose."""


@lru_cache(256)
def persona_color(color: str, *, dark: bool) -> Color | None:
    """Return the color of a persona's name; None if it is empty or unknown.

    Args:
        color: A name or ``#rrggbb``.
        dark: Whether the theme is dark.
    """
    lightness = 0.76 if dark else 0.38
    if color in _HUES:
        hue, saturation = _HUES[color]
        if color in _PLAIN_LIGHTNESS:
            lightness = _PLAIN_LIGHTNESS[color][0 if dark else 1]
        return _readable(hue, saturation, lightness, dark=dark)
    if len(color) != 7 or not color.startswith("#"):
        return None
    try:
        hue, saturation, _ = Color.parse(color).hsl
    except ValueError:
        return None
    return _readable(hue, saturation, lightness, dark=dark)


def _readable(hue: float, saturation: float, lightness: float, *, dark: bool) -> Color:
    """Return the color of a hue with enough contrast: equal lightness is not equally light to the eye."""
    color = Color.from_hsl(hue, saturation, lightness)
    while contrast(color, _PAPERS[dark]) < _CONTRAST and 0 < lightness < 1:
        lightness += _STEP if dark else -_STEP
        color = Color.from_hsl(hue, saturation, lightness)
    return color


def contrast(one: Color, other: Color) -> float:
    """Return the contrast of two colors, 1 to 21, as WCAG defines it."""
    high, low = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def _luminance(color: Color) -> float:
    red, green, blue = (
        part / 255 / 12.92 if part <= 10 else ((part / 255 + 0.055) / 1.055) ** 2.4 for part in color.rgb
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


class Palette(msgspec.Struct, frozen=True):
    """One style for each thing that deserves a color; everything else is `text`."""

    text: Style
    muted: Style
    faint: Style
    accent: Style
    you: Style
    persona: Style
    glyph: Style
    arrow: Style
    tool: Style
    ok: Style
    running: Style
    failed: Style
    added: Style
    removed: Style
    heading: Style
    strong_heading: Style
    code: Style
    link: Style
    cursor: Style
    keyword: Style
    string: Style
    number: Style
    name: Style
    comment: Style
    added_row: Style
    removed_row: Style
    added_word: Style
    removed_word: Style
    band: Style
    """Backgrounds of changed lines, of changed words in them, and of a heading or a user's message; no style without
    colors."""
    dark: bool = True
    ansi: bool = False
    plain: bool = False
    """Whether words replace glyphs."""
    high_contrast: bool = False

    def speaker(self, color: str) -> Style:
        """Return the style of a persona's name: its own color, if it has one and the theme has more than sixteen
        colors."""
        own = None if self.ansi else persona_color(color, dark=self.dark)
        return self.glyph if own is None else Style(color=own.rich_color)


_WHITE, _BLACK = Color.parse("#ffffff"), Color.parse("#000000")
_GREEN, _RED = Color.parse("#3fb950"), Color.parse("#f85149")
_ROW_SHARES, _WORD_SHARES = (0.17, 0.15), (0.42, 0.38)
"""Shares of green and of red in the background of a changed line, and of changed words."""
_BAND_SHARE = 0.07


FRAME_CONTRAST = 3.0
"""Least contrast of frames, rules and marks, as WCAG 1.4.11 asks, and of a scrollbar's thumb that is used."""
THUMB_CONTRAST = 2.0
"""Least contrast of a thumb at rest: at 3 it was the heaviest thing of a light page."""
_FRAMES = {
    "border": ("border", 1.0),
    "border-blurred": ("border", 1.0),
    "scrollbar": ("scrollbar", 1.0),
    "scrollbar-hover": ("scrollbar-hover", 1.0),
    "scrollbar-active": ("scrollbar-active", 1.0),
    "frame-focused": ("primary", 0.75),
    "frame-question": ("warning", 0.6),
    "frame-question-focused": ("warning", 1.0),
    "frame-field": ("border", 1.0),
    "frame-field-focused": ("primary", 0.75),
}
"""The variables of frames: the variable each is made of, and how much of it."""
_GROUNDS = ("background", "surface")


def frame_variables(variables: Mapping[str, str], *, dark: bool, ansi: bool) -> dict[str, str]:
    """Return the theme variables of frames, none fainter than is asked of them on what they are drawn on.

    Args:
        variables: Those of the theme.
        dark: Whether the theme is dark.
        ansi: Whether the theme uses the terminal's colors, whose contrast only the terminal knows.
    """
    if ansi:
        return {name: variables[source] for name, (source, _) in _FRAMES.items() if name not in variables}
    background = Color.parse(variables["background"])

    def frame(name: str, source: str, share: float) -> str:
        own = ("panel",) if "field" in name else ("scrollbar-background",) if "scrollbar" in name else ()
        papers = [over(Color.parse(variables[ground]), background) for ground in (*_GROUNDS, *own)]
        if "field" in name:
            # The framework tints a focused field by a twentieth of the text's color.
            papers.append(papers[-1].blend(Color.parse(variables["foreground"]), 0.05))
        color = over(Color.parse(variables[source]).multiply_alpha(share), background)
        return _seen(color, papers, THUMB_CONTRAST if name == "scrollbar" else FRAME_CONTRAST, dark=dark).hex

    return {name: frame(name, source, share) for name, (source, share) in _FRAMES.items()}


def over(color: Color, ground: Color) -> Color:
    """Return the opaque color that a color gives on a ground."""
    return color if color.a == 1 else ground.blend(color.with_alpha(1), color.a)


def _seen(color: Color, papers: Sequence[Color], least: float, *, dark: bool) -> Color:
    """Return the color, lighter or darker by as little as makes it seen on all papers."""
    share, seen, extreme = 0.0, color, _WHITE if dark else _BLACK
    while share < 1 and any(contrast(seen, paper) < least for paper in papers):
        share += _STEP
        seen = color.blend(extreme, min(share, 1.0))
    return seen


@lru_cache(1024)
def on_ground(style: Style, ground: Style, palette: Palette) -> Style:
    """Return a style on a background, with a lighter or darker color if it could not be read there."""
    if ground.bgcolor is None or style.color is None:
        return style + ground
    paper, ink = Color.from_rich_color(ground.bgcolor), Color.from_rich_color(style.color)
    least, extreme = (_CONTRAST if palette.high_contrast else _ENOUGH), _WHITE if palette.dark else _BLACK
    share, color = 0.0, ink
    while contrast(color, paper) < least and share < 1:
        share += 0.1
        color = ink.blend(extreme, min(share, 1.0))
    return style + ground + Style(color=color.rich_color)


_MUTED_SHARES = {"dark": (0.42, 0.60), "light": (0.32, 0.52), "contrast": (0.12, 0.24)}
"""Shares of the background color in secondary text, and in rules, bars and arrows."""


def palette_of(variables: Mapping[str, str], *, dark: bool, ansi: bool) -> Palette:
    """Return the palette of a theme.

    Args:
        variables: `App.theme_variables`.
        dark: Whether the theme is dark.
        ansi: Whether the theme uses the terminal's sixteen colors; gray text is dimmed then.
    """

    def color_of(name: str, fallback: str) -> Color:
        return Color.parse(variables.get(name) or fallback)

    theme_kind = variables.get("theme-kind", "")
    plain = variables.get("plain") == "yes"
    if theme_kind == "mono":
        return msgspec.structs.replace(_mono(), plain=plain)
    foreground = color_of("foreground", "#e0e0e0" if dark else "#1f1f1f")
    if ansi:
        text = Style(color=foreground.rich_color)
        muted = faint = arrow = text + Style(dim=True)
        grounds = [Style()] * 5
        purple = Color.parse("ansi_bright_magenta" if dark else "ansi_magenta")
    else:
        background = color_of("background", "#121212" if dark else "#e0e0e0")
        text = Style(color=foreground.rich_color)
        shares = zip((_GREEN, _RED) * 2, (*_ROW_SHARES, *_WORD_SHARES), strict=True)
        mixed = [*(background.blend(hue, share) for hue, share in shares), background.blend(foreground, _BAND_SHARE)]
        grounds = [Style(bgcolor=color.rich_color) for color in mixed]
        muted_share, faint_share = _MUTED_SHARES.get(theme_kind, _MUTED_SHARES["dark" if dark else "light"])
        muted = Style(color=foreground.blend(background, muted_share).rich_color)
        surface = over(color_of("surface", background.hex), background)
        faint_color = _seen(foreground.blend(background, faint_share), [background, surface], FRAME_CONTRAST, dark=dark)
        faint = Style(color=faint_color.rich_color)
        # An arrow stands on the band of its row too.
        arrow = Style(color=_seen(faint_color, [mixed[-1]], FRAME_CONTRAST, dark=dark).rich_color)
        # Most themes have no violet of their own; this one is as light as their text colors are.
        own_violet = Color.from_hsl(0.75, 0.75, 0.79) if dark else Color.from_hsl(0.75, 0.55, 0.42)
        purple = color_of("secondary", "#d2a8ff") if theme_kind == "contrast" else own_violet
    # The framework's text colors are blends; a theme of high contrast means its own as they are.
    prefix = "" if theme_kind in ("contrast", "terminal") else "text-"
    blue = Style(color=color_of(f"{prefix}primary", "#57a5e2").rich_color)
    green = Style(color=color_of(f"{prefix}success", "#4ebf71").rich_color)
    amber = Style(color=color_of(f"{prefix}warning", "#ffc473").rich_color)
    red = Style(color=color_of(f"{prefix}error", "#d17e92").rich_color)
    violet = Style(color=purple.rich_color)
    bold = Style(bold=True)
    return Palette(
        text=text,
        muted=muted,
        faint=faint,
        accent=Style(color=color_of("accent", "#56d4bc").rich_color),
        you=blue + bold,
        persona=violet + bold,
        glyph=violet,
        arrow=arrow + bold,
        tool=text + bold,
        ok=green,
        running=amber,
        failed=red,
        added=green,
        removed=red,
        heading=text + bold,
        strong_heading=blue + bold,
        code=amber if not ansi else Style(color=color_of("secondary", "ansi_cyan").rich_color),
        link=blue + Style(underline=True),
        cursor=violet,
        keyword=red,
        string=green,
        number=amber,
        name=blue,
        comment=muted,
        added_row=grounds[0],
        removed_row=grounds[1],
        added_word=grounds[2] if not ansi else Style(bold=True, underline=True),
        removed_word=grounds[3] if not ansi else Style(bold=True, underline=True),
        band=grounds[4],
        dark=dark,
        ansi=ansi,
        plain=plain,
        high_contrast=theme_kind == "contrast",
    )


def palette_for(app: App[Any]) -> Palette:
    """Return the palette of the app's current theme."""
    return palette_of(app.theme_variables, dark=app.current_theme.dark, ansi=app.native_ansi_color)


def _mono() -> Palette:
    """Return a palette without colors: words and glyphs show persona and failure; bold and dim show weight."""
    plain, bold, dim, under = Style(), Style(bold=True), Style(dim=True), Style(underline=True)
    return Palette(
        text=plain,
        muted=dim,
        faint=dim,
        accent=bold,
        you=bold,
        persona=bold,
        glyph=bold,
        arrow=bold,
        tool=bold,
        ok=plain,
        running=plain,
        failed=bold,
        added=bold,
        removed=dim,
        heading=bold,
        strong_heading=bold + under,
        code=bold,
        link=under,
        cursor=bold,
        keyword=bold,
        string=plain,
        number=plain,
        name=plain,
        comment=dim,
        added_row=plain,
        removed_row=plain,
        added_word=under,
        removed_word=under,
        band=plain,
        ansi=True,
    )
