"""The themes of the chat, and which one a terminal gets.

Calm: one blue for the user, one violet for the persona, one sea green for the program itself (its name, the prompt,
the memory), other colors only where they mean something. Next to dark and
light: the terminal's sixteen colors, high contrast, and no colors. The variable
``theme-kind`` is the kind of theme, for `style/palette.py`.
"""

from __future__ import annotations

from collections.abc import Mapping

from textual.theme import Theme


def _scrollbars(bar: str, background: str) -> dict[str, str]:
    """Return quiet colors, the same wherever the mouse is."""
    bars = dict.fromkeys(("scrollbar", "scrollbar-hover", "scrollbar-active"), bar)
    grounds = ("scrollbar-background", "scrollbar-background-hover", "scrollbar-background-active")
    return bars | dict.fromkeys(grounds, background) | {"scrollbar-corner-color": background}


def _own(kind: str, *, dark: bool, colors: Mapping[str, str], selection: str) -> Theme:
    """Return a theme of the chat.

    Args:
        colors: Those that `Theme` takes, and ``border`` and ``muted``.
        selection: The opacity of selected text's background.
    """
    selected = f"{colors['foreground'] if kind == 'contrast' else colors['primary']} {selection}"
    variables = {
        "border": colors["border"],
        "text-muted": colors["muted"],
        "text-disabled": colors["muted"],
        "input-selection-background": selected,
        "screen-selection-background": selected,
        "screen-selection-foreground": colors["foreground"],
    }
    if kind:
        variables["theme-kind"] = kind
    return Theme(
        name=f"ragforge-{kind}{'-' if kind else ''}{'dark' if dark else 'light'}",
        primary=colors["primary"],
        secondary=colors["secondary"],
        accent=colors["accent"],
        foreground=colors["foreground"],
        background=colors["background"],
        surface=colors["background"],
        panel=colors["panel"],
        success=colors["success"],
        error=colors["error"],
        warning=colors["warning"],
        dark=dark,
        variables=variables | _scrollbars(colors["border"], colors["background"]),
    )


DARK = _own(
    "",
    dark=True,
    selection="30%",
    colors={
        "primary": "#79c0ff",
        "secondary": "#d2a8ff",
        "accent": "#56d4bc",
        "warning": "#e3b341",
        "foreground": "#e6edf3",
        "background": "#0d1117",
        "panel": "#21262d",
        "success": "#7ee787",
        "error": "#ff7b72",
        "border": "#5a6169",
        "muted": "#9198a1",
    },
)
LIGHT = _own(
    "",
    dark=False,
    selection="20%",
    colors={
        "primary": "#0550ae",
        "secondary": "#8250df",
        "accent": "#0b7667",
        "warning": "#8f5f00",
        "foreground": "#1f2328",
        "background": "#ffffff",
        "panel": "#eaeef2",
        "success": "#1a7f37",
        "error": "#cf222e",
        "border": "#8d969f",
        "muted": "#59636e",
    },
)
CONTRAST_DARK = _own(
    "contrast",
    dark=True,
    selection="20%",
    colors={
        "primary": "#8cd2ff",
        "secondary": "#e9c6ff",
        "accent": "#7dffe5",
        "warning": "#ffe066",
        "foreground": "#ffffff",
        "background": "#000000",
        "panel": "#1c1c1c",
        "success": "#8dff9a",
        "error": "#ff9d96",
        "border": "#ffffff",
        "muted": "#dddddd",
    },
)
CONTRAST_LIGHT = _own(
    "contrast",
    dark=False,
    selection="25%",
    colors={
        "primary": "#00348a",
        "secondary": "#5b1a9e",
        "accent": "#004d41",
        "warning": "#6b4300",
        "foreground": "#000000",
        "background": "#ffffff",
        "panel": "#eeeeee",
        "success": "#00551c",
        "error": "#97000b",
        "border": "#000000",
        "muted": "#222222",
    },
)


def _terminal(name: str, *, dark: bool, kind: str, colors: Mapping[str, str]) -> Theme:
    """Return a theme with the terminal's own text and background colors.

    Args:
        colors: The colors of meaningful text; others are the color of all text.
    """
    default = "ansi_default"
    frame = colors.get("frame", default)
    grounds = ("block-cursor", "block-cursor-blurred", "input-cursor", "input-selection", "screen-selection")
    variables = {f"{one}-{part}": default for one in grounds for part in ("foreground", "background")}
    variables |= {f"{one}-text-style": "reverse" for one in grounds[:3]}
    variables |= {"border": frame, "border-blurred": frame, "text-muted": default, "text-disabled": default}
    variables |= {"theme-kind": kind, "block-hover-background": default}
    paper, letters = ("ansi_black", "ansi_white") if dark else ("ansi_white", "ansi_black")
    variables |= {"ansi-background": paper, "ansi-foreground": letters}
    return Theme(
        name=name,
        ansi=True,
        dark=dark,
        primary=colors.get("primary", default),
        secondary=colors.get("secondary", default),
        accent=colors.get("accent", default),
        success=colors.get("success", default),
        warning=colors.get("warning", default),
        error=colors.get("error", default),
        foreground=default,
        background=default,
        surface=default,
        panel=default,
        boost=default,
        variables=variables | _scrollbars(frame, default),
    )


ANSI_DARK = _terminal(
    "ragforge-ansi-dark",
    dark=True,
    kind="terminal",
    colors={
        "primary": "ansi_bright_blue",
        "secondary": "ansi_bright_magenta",
        "accent": "ansi_bright_cyan",
        "warning": "ansi_bright_yellow",
        "success": "ansi_bright_green",
        "error": "ansi_bright_red",
        "frame": "ansi_bright_black",
    },
)
ANSI_LIGHT = _terminal(
    "ragforge-ansi-light",
    dark=False,
    kind="terminal",
    colors={
        "primary": "ansi_blue",
        "secondary": "ansi_magenta",
        "accent": "ansi_cyan",
        "warning": "ansi_yellow",
        "success": "ansi_green",
        "error": "ansi_red",
        "frame": "ansi_bright_black",
    },
)
MONO = _terminal("ragforge-mono", dark=True, kind="mono", colors={})
"""For NO_COLOR: only bold, dim, underlined and reversed text."""

OWN = (DARK, LIGHT, CONTRAST_DARK, CONTRAST_LIGHT, ANSI_DARK, ANSI_LIGHT, MONO)
NAMES = {
    "auto": "Light or dark, like the terminal",
    "dark": "Dark",
    "light": "Light",
    "ansi": "The terminal's own sixteen colours",
    "contrast-dark": "High contrast, dark",
    "contrast-light": "High contrast, light",
    "mono": "No colours at all",
}
"""Values of `tui.theme` besides the names of Textual themes, in the order of the picker."""


def choose(setting: str, env: Mapping[str, str], *, no_color: bool = False) -> str:
    """Return the theme's name: NO_COLOR before the setting, else TEXTUAL_THEME, else the terminal's (COLORFGBG)."""
    light = env.get("COLORFGBG", "").rpartition(";")[2] in {"7", "15"}
    if no_color:
        return MONO.name
    if setting in ("", "auto"):
        return env.get("TEXTUAL_THEME") or (LIGHT.name if light else DARK.name)
    if setting == "ansi":
        return ANSI_LIGHT.name if light else ANSI_DARK.name
    return f"ragforge-{setting}" if setting in NAMES else setting
