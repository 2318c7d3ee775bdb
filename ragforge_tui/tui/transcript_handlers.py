"""What the transcript asks for, A part of `app.py`."""

from __future__ import annotations

from ragforge_tui.tui.frame import ChatFrame
from ragforge_tui.tui.transcript import Transcript


class TranscriptHandlers(ChatFrame):
    """Handlers of the transcript's messages; Textual finds them by their names in every base of the app."""

    def on_transcript_need_turns(self, event: Transcript.NeedTurns) -> None:
        """The place of turns that are not loaded comes into view."""
        event.stop()
        self.controller.spawn(self.controller.fetch_turns(event.start, event.end), group="turns", exclusive=True)

    def on_transcript_want_turn(self, event: Transcript.WantTurn) -> None:
        """A turn that is not loaded is wanted."""
        event.stop()
        self.controller.spawn(self.controller.show_turn(event.turn_index), group="turns", exclusive=True)

    def on_transcript_turn_command(self, event: Transcript.TurnCommand) -> None:
        """A command for the turn the keyboard is at."""
        event.stop()
        if (command := self.registry.get(event.command)) is not None:
            self.run_command(command, str(event.turn_index))

    def on_transcript_find_step(self, event: Transcript.FindStep) -> None:
        """On to the next place of what is looked for."""
        event.stop()
        self.actions.find_step(event.by)

    def on_transcript_link_clicked(self, event: Transcript.LinkClicked) -> None:
        """A link was clicked on; where it leads stands beside it."""
        event.stop()
        self.controller.spawn(self.actions.open_link(event.target), group="link", exclusive=True)

    def on_transcript_links_wanted(self, event: Transcript.LinksWanted) -> None:
        """A link near the keyboard's place is wanted."""
        event.stop()
        self.actions.choose_link(event.links)

    def on_transcript_view_requested(self, event: Transcript.ViewRequested) -> None:
        """A block is wanted whole."""
        event.stop()
        self.actions.view_block(event.block)

    def on_transcript_copy_requested(self, event: Transcript.CopyRequested) -> None:
        """A block or its code is wanted on the clipboard."""
        event.stop()
        self.copy_to_clipboard(event.text)
        self.hint(f"{event.what} sent to the clipboard")

    def on_transcript_nothing_to_do(self, event: Transcript.NothingToDo) -> None:
        """A key of the transcript has nothing to do here."""
        event.stop()
        self.hint(event.why)
