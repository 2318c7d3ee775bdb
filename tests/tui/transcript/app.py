"""A small app that holds nothing but the transcript."""

from __future__ import annotations

from collections.abc import Sequence

from textual.app import App, ComposeResult

from ragforge_tui.shared.records import Turn
from ragforge_tui.tui.hint import Hint
from ragforge_tui.tui.transcript import Transcript
from tests.tui.transcript.samples import shown


class TranscriptApp(App[None]):
    """Shows turns; `asked`, `copied` and `hints` are what the transcript said."""

    CSS = "Transcript { height: 1fr; }"

    def __init__(self, turns: Sequence[Turn] = (), *, first: int = 1, theme: str = "textual-dark") -> None:
        super().__init__()
        self.turns = turns
        self.first = first
        self.start_theme = theme
        self.asked: list[tuple[int, int]] = []
        self.wanted: list[int] = []
        self.copied: list[str] = []
        self.hints: list[str] = []

    def compose(self) -> ComposeResult:
        yield Transcript(shown=shown())

    def on_mount(self) -> None:
        self.theme = self.start_theme
        if self.turns:
            self.transcript.load(self.turns, first=self.first, last=self.turns[-1].turn_index)
        self.transcript.focus()

    @property
    def transcript(self) -> Transcript:
        return self.query_one(Transcript)

    def on_transcript_need_turns(self, message: Transcript.NeedTurns) -> None:
        self.asked.append((message.start, message.end))

    def on_transcript_want_turn(self, message: Transcript.WantTurn) -> None:
        self.wanted.append(message.turn_index)

    def on_hint(self, message: Hint) -> None:
        self.hints.append(message.text)

    def copy_to_clipboard(self, text: str) -> None:
        self.copied.append(text)

    def screen_text(self) -> list[str]:
        """What the transcript shows, line by line, without the word about what is below."""
        view = self.transcript
        lines = [view.render_line(y).text.rstrip() for y in range(view.size.height)]
        if (word := view.last_row_word()) is not None:
            lines[-1] = lines[-1].removesuffix(word.text.rstrip()).rstrip()
        return lines
