"""The two themes of the chat, and which one a terminal gets.

Calm: one blue for the person, one violet for the persona, colour elsewhere only where it says something.
"""

from __future__ import annotations

from collections.abc import Mapping

from textual.theme import Theme


def _scrollbars(bar: str, background: str) -> dict[str, str]:
    """Quiet ones, the same wherever the mouse is."""
    bars = dict.fromkeys(("scrollbar", "scrollbar-hover", "scrollbar-active"), bar)
    grounds = ("scrollbar-background", "scrollbar-background-hover", "scrollbar-background-active")
    return bars | dict.fromkeys(grounds, background) | {"scrollbar-corner-color": background}


DARK = Theme(
    name="ragforge-dark",
    primary="#79c0ff",
    secondary="#d2a8ff",
    accent="#e3b341",
    foreground="#e6edf3",
    background="#0d1117",
    surface="#0d1117",
    panel="#21262d",
    success="#7ee787",
    warning="#e3b341",
    error="#ff7b72",
    dark=True,
    variables={"border": "#30363d", "input-selection-background": "#79c0ff 30%"} | _scrollbars("#30363d", "#0d1117"),
)

LIGHT = Theme(
    name="ragforge-light",
    primary="#0550ae",
    secondary="#8250df",
    accent="#9a6700",
    foreground="#1f2328",
    background="#ffffff",
    surface="#ffffff",
    panel="#eaeef2",
    success="#1a7f37",
    warning="#9a6700",
    error="#cf222e",
    dark=False,
    variables={"border": "#d0d7de", "input-selection-background": "#0550ae 20%"} | _scrollbars("#d0d7de", "#ffffff"),
)


def choose(setting: str, env: Mapping[str, str]) -> str:
    """The theme's name: the setting, else TEXTUAL_THEME, else light or dark as the terminal says (COLORFGBG)."""
    if setting and setting != "auto":
        return setting
    if named := env.get("TEXTUAL_THEME"):
        return named
    background = env.get("COLORFGBG", "").rpartition(";")[2]
    return LIGHT.name if background in {"7", "15"} else DARK.name
