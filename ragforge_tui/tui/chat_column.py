"""The chat's column: the first screen, and the transcript with what the user does in it."""

from __future__ import annotations

from textual.containers import Vertical

from ragforge_tui.shared.errors import NotFoundError
from ragforge_tui.shared.records import RECALLED
from ragforge_tui.shared.requests.memory import FetchSent
from ragforge_tui.tui.commands.conversation_commands import find_step, view_block
from ragforge_tui.tui.commands.link_commands import choose_link, open_link
from ragforge_tui.tui.host import Host
from ragforge_tui.tui.transcript import Transcript
from ragforge_tui.tui.transcript.blocks import RecallBlock, RecalledText
from ragforge_tui.tui.welcome.welcome import Welcome


class ChatColumn(Vertical):
    """The first screen, and the chat below it, which has only notices until a conversation is open."""

    def __init__(self, host: Host, welcome: Welcome) -> None:
        super().__init__(welcome, host.transcript, id="chat", classes="-welcome")
        self._host = host
        self._welcome = welcome

    def show_welcome(self) -> None:
        """Show the first screen or the chat, or both while there are notices to read."""
        shown = self._welcome.update()
        self.set_class(shown, "-welcome")
        self.set_class(shown and bool(self._host.transcript.document.blocks), "-notices")

    def on_welcome_clicked(self, event: Welcome.Clicked) -> None:
        """Run the command of a line of the first screen."""
        event.stop()
        name, _, argument = event.action.partition(" ")
        self._host.run_command(name, argument)

    def on_transcript_need_turns(self, event: Transcript.NeedTurns) -> None:
        """Load turns that scrolled into view."""
        event.stop()
        work = self._host.navigator.fetch_turns(event.start, event.end)
        self._host.session.spawn(work, group="turns", exclusive=True)

    def on_transcript_want_turn(self, event: Transcript.WantTurn) -> None:
        """Bring a turn into view that is not loaded."""
        event.stop()
        self._host.session.spawn(self._host.navigator.show_turn(event.turn_index), group="turns", exclusive=True)

    def on_transcript_turn_command(self, event: Transcript.TurnCommand) -> None:
        """Run a command for the turn at the cursor."""
        event.stop()
        self._host.run_command(event.command, str(event.turn_index))

    def on_transcript_find_step(self, event: Transcript.FindStep) -> None:
        """Go to the next or previous match."""
        event.stop()
        find_step(self._host, event.by)

    def on_transcript_link_clicked(self, event: Transcript.LinkClicked) -> None:
        """Open a link."""
        event.stop()
        self._host.session.spawn(open_link(self._host, event.target), group="link", exclusive=True)

    def on_transcript_place_clicked(self, event: Transcript.PlaceClicked) -> None:
        """Go to a turn that was recalled from another conversation."""
        event.stop()
        self._host.navigator.go_to_turns(event.turn_index, conversation_id=event.conversation_id)

    def on_transcript_recalled_wanted(self, event: Transcript.RecalledWanted) -> None:
        """Fetch what was recalled for a turn and show it in place."""
        event.stop()
        self._host.session.spawn(self._show_recalled(event.block), group="recalled")

    async def _show_recalled(self, block: RecallBlock) -> None:
        uuid = self._host.session.state.conversation_id
        try:
            sent = await self._host.session.ask(FetchSent(conversation_id=uuid, turn_index=block.turn_index))
        except NotFoundError:
            block.show_texts([])
        else:
            items = (item for part in sent.record.sections if part.name in RECALLED for item in part.items)
            block.show_texts([RecalledText(item.text, item.conversation_id or uuid, item.turn_index) for item in items])
        self._host.transcript.correct(block)
        self._host.transcript.sync()

    def on_transcript_links_wanted(self, event: Transcript.LinksWanted) -> None:
        """Open one of the links near the cursor."""
        event.stop()
        choose_link(self._host, event.links)

    def on_transcript_view_requested(self, event: Transcript.ViewRequested) -> None:
        """Show a whole block."""
        event.stop()
        view_block(self._host, event.block)
