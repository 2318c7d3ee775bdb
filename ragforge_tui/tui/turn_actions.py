"""What the slash commands do with single turns: go to one, find a text, edit and resend, branch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragforge_tui.errors import NotFoundError, RagforgeError
from ragforge_tui.protocol import BranchConversation, FetchTurns

if TYPE_CHECKING:
    from ragforge_tui.tui.app import ChatApp
    from ragforge_tui.tui.find import FindBar
    from ragforge_tui.tui.transcript.blocks import Block


class TurnActions:
    """A part of `ChatActions`."""

    _app: ChatApp

    async def turn(self, which: str) -> None:
        """Bring a turn into view."""
        await self._app.controller.show_turn(self._turn_index(which))

    async def find(self, text: str) -> None:
        """Open the line that finds a text in the conversation, or put another text in it."""
        from ragforge_tui.tui.find import FindBar

        self._needs_conversation()
        if (bar := self._find_bar()) is not None:
            bar.look_for(text)
        else:
            await self._app.mount(FindBar(self._app.controller, text), before="#prompt-row")

    def _find_bar(self) -> FindBar | None:
        from ragforge_tui.tui.find import FindBar

        return next(iter(self._app.query(FindBar)), None)

    def find_step(self, by: int) -> None:
        """To the next or previous place of what is looked for, or was last."""
        app = self._app
        if (bar := self._find_bar()) is not None:
            bar.action_step(by)
        elif app.controller.state.looked_for:
            app.controller.spawn(self._find_again(), group="find")
        else:
            app.hint("nothing is looked for")

    async def _find_again(self) -> None:
        from ragforge_tui.tui.find import FindBar

        controller = self._app.controller
        await self._app.mount(FindBar(controller, controller.state.looked_for, focus=False), before="#prompt-row")

    def close_find(self) -> bool:
        """End the search; false when there is none."""
        if (bar := self._find_bar()) is None:
            return False
        bar.close()
        return True

    def view_block(self, block: Block) -> None:
        """Show a block of the chat whole, in a window of its own."""
        from ragforge_tui.tui.block_view import block_screen

        def closed(action: str | None) -> None:
            if action == "turn":
                self._app.sidebar.show_turn(block.turn_index)

        self._app.push_screen(block_screen(self._app, block), closed)

    async def edit(self, which: str) -> None:
        """Put an earlier message into the prompt; sent again, it begins a branch before its turn."""
        turn = self._turn_index(which, last=True)
        if self._app.prompt.text.strip():
            raise RagforgeError("The prompt holds a draft.", todo="Send or clear it first; it would be overwritten.")
        text = await self._said_in(turn)
        self._app.controller.state.editing = turn
        self._app.give_back(text)
        self._app.refresh_chrome()

    def cancel_edit(self) -> bool:
        """Leave an edit that was not sent; false when there is none."""
        if not self._app.controller.state.editing:
            return False
        self._app.controller.state.editing = 0
        self._app.prompt.empty()
        self._app.refresh_chrome()
        return True

    def resend(self, text: str) -> bool:
        """Send an edited message in a branch; false when none is being edited."""
        turn = self._app.controller.state.editing
        if turn:
            self._app.controller.state.editing = 0
            self._app.controller.spawn(self._resend(turn, text), group="branch")
        return bool(turn)

    async def _resend(self, turn: int, text: str) -> None:
        try:
            await self._open_branch(turn - 1)
        except RagforgeError:
            self._app.give_back(text)
            raise
        self._app.controller.send(text)

    async def branch(self, which: str) -> None:
        """Go on from a turn in a new conversation; this one stays as it is."""
        await self._open_branch(self._turn_index(which, last=True))
        self._app.prompt.focus()

    async def _open_branch(self, turn: int) -> None:
        controller = self._app.controller
        parent = self._needs_conversation()
        branch = await controller.ask(BranchConversation(conversation_id=parent, turn_index=turn))
        await controller.open(branch.uuid)
        begins = f"shares turns 1 to {turn}" if turn > 1 else "shares turn 1" if turn else "begins anew"
        controller.notice(f"A branch: it {begins}. The other stays as it was: /resume {parent[:8]}", "info")

    async def _said_in(self, turn: int) -> str:
        """What the person said in a turn, as it was written."""
        page = await self._app.controller.ask(
            FetchTurns(conversation_id=self._needs_conversation(), start=turn, end=turn + 1)
        )
        said = [message.content for found in page.turns for message in found.messages if message.role == "user"]
        if not said:
            raise NotFoundError(f"There is no turn {turn} here.")
        return said[0]

    def _turn_index(self, which: str, *, last: bool = False) -> int:
        """The turn that was named, else the one the keyboard is at, else the last when that is meant."""
        self._needs_conversation()
        if which:
            if not which.isdecimal() or not int(which):
                raise RagforgeError(f"{which!r} is not the number of a turn.")
            return int(which)
        block = self._app.transcript.cursor_block
        if block is not None and block.turn_index:
            return block.turn_index
        newest = max((block.turn_index for block in self._app.transcript.document.blocks), default=0)
        if not last or not newest:
            raise RagforgeError("Which turn?", todo="Write its number behind the command.")
        return newest

    def _needs_conversation(self) -> str:
        conversation_id = self._app.controller.state.conversation_id
        if not conversation_id:
            raise NotFoundError("No conversation is open yet.", todo="Send a message, or /resume one.")
        return conversation_id
