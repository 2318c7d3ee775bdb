"""A sentence of the program over the prompt, while the end of the chat, where it stands too, is out of view."""

from __future__ import annotations

from textual.content import Content
from textual.widgets import Static

from ragforge_tui.shared.sanitize import plain_text
from ragforge_tui.shared.truncation import cut_middle
from ragforge_tui.tui.session.state import Level

_MOST_CHARS = 600
_SIGNS: dict[Level, tuple[str, str]] = {
    "info": ("·", "$text-muted"),
    "warning": ("!", "$text-warning"),
    "error": ("✗", "$text-error"),
}


class NoticeStrip(Static):
    """The newest sentence, until the user sends something or goes to the end of the chat."""

    def __init__(self) -> None:
        super().__init__(id="notice-strip", markup=False)
        self.display = False

    def say(self, text: str, level: Level) -> None:
        """Show a sentence."""
        sign, style = _SIGNS[level]
        self.update(Content.assemble((f"{sign} ", style), plain_text(cut_middle(text, _MOST_CHARS))))
        self.display = True

    def clear(self) -> None:
        """Take the sentence away."""
        self.display = False
