"""Placing a widget's contents again when its size has changed.

Not at a Resize event: Textual sends none if a new widget was drawn before the screen was laid out. It has the new
place then, and the layout finds no difference.
"""

from __future__ import annotations

from collections.abc import Callable

from textual.geometry import Size
from textual.widget import Widget


def on_new_size(widget: Widget, place: Callable[[], object]) -> Callable[[], None]:
    """Call `place` after each layout of the screen that gave a mounted widget another size, unless it is hidden.

    Returns:
        Checks the size at once, for a widget of the first layout of an app, which is not reported.
    """
    placed_for = Size(0, 0)

    def check() -> None:
        nonlocal placed_for
        if (size := widget.scrollable_content_region.size) != placed_for:
            placed_for = size
            if size:
                place()

    widget.screen.screen_layout_refresh_signal.subscribe(widget, lambda _: check())
    return check
