"""What the commands about sessions do: find, open, search, name, put away, delete and bring back, export.

A part of `ChatActions`. Screens are imported when first wanted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragforge_tui.errors import NotFoundError, RagforgeError
from ragforge_tui.tui.history import Entry
from ragforge_tui.tui.session_desk import SessionDesk, parse_tags

if TYPE_CHECKING:
    from ragforge_tui.models import SearchHit
    from ragforge_tui.tui.app import ChatApp


class SessionActions:
    """The commands about stored sessions of one chat screen."""

    _app: ChatApp
    _desk: SessionDesk

    # -- finding and opening

    async def resume(self, ref: str) -> None:
        """Open by id or prefix, or pick."""
        if ref:
            await self._app.controller.open(ref)
        else:
            self.pick_session_soon()

    async def pick_session(self) -> None:
        """Pick one."""
        self.pick_session_soon()

    def pick_session_soon(self) -> None:
        """Show the sessions; the picked one is opened."""
        from ragforge_tui.tui.session_picker import SessionPicker

        def picked(key: str | None) -> None:
            if key:
                self._app.controller.spawn(self._app.controller.open(key), group="open", exclusive=True)

        self._app.push_screen(SessionPicker(self._desk), picked)

    async def search(self, words: str) -> None:
        """Look for words in all sessions; the picked hit's session is opened at its turn."""
        from ragforge_tui.tui.search_screen import SearchScreen

        def picked(hit: SearchHit | None) -> None:
            if hit is not None:
                opening = self._app.controller.open(hit.conversation_id, turn=hit.turn_index)
                self._app.controller.spawn(opening, group="open", exclusive=True)

        self._app.push_screen(SearchScreen(self._desk, words), picked)

    # -- the open one

    async def rename(self, title: str) -> None:
        """Give the conversation a title; without one the present title is put into the prompt to edit."""
        conversation_id = self._open_id()
        conversation = self._app.controller.state.conversation
        if not title and conversation is not None:
            self._app.prompt.put(Entry(f"/rename {conversation.title}"))
            return
        await self._desk.rename(conversation_id, title)

    async def tag(self, tags: str) -> None:
        """Replace the conversation's tags; without any the present ones are put into the prompt to edit."""
        conversation_id = self._open_id()
        conversation = self._app.controller.state.conversation
        if not tags:
            present = " ".join(conversation.tags) if conversation else ""
            self._app.prompt.put(Entry(f"/tag {present}"))
            return
        changed = await self._desk.tag(conversation_id, [] if tags == "-" else parse_tags(tags))
        self._notice(f"Tags: {', '.join(changed.tags)}" if changed.tags else "This conversation has no tags.")

    async def private(self, wanted: str) -> None:
        """Keep the conversation from being recalled and found elsewhere, or let it be again."""
        conversation_id = self._open_id()
        conversation = self._app.controller.state.conversation
        if wanted not in ("", "on", "off"):
            raise RagforgeError(f"{wanted!r} is neither on nor off.", todo="/private alone switches.")
        private = wanted == "on" if wanted else not (conversation and conversation.private)
        await self._desk.keep_private(conversation_id, private)
        self._notice(
            "Private: no other conversation recalls or finds this one. /private again lets them."
            if private
            else "Not private: other conversations may recall this one."
        )

    async def archive(self) -> None:
        """Put the conversation away."""
        conversation_id = self._open_id()
        await self._desk.archive(conversation_id)
        self._notice(f"Archived. /resume {conversation_id[:8]} opens it again.")

    async def delete(self) -> None:
        """Hide the conversation; it is purged after seven days."""
        await self._desk.delete(self._open_id())
        self._notice("Deleted; it is kept for 7 days. /undo-delete brings it back.")

    async def undo_delete(self) -> None:
        """Bring back what was deleted last, here or in another terminal."""
        deleted = await self._desk.last_deleted()
        await self._desk.restore(deleted)
        await self._app.controller.open(deleted)

    async def export(self, target: str) -> None:
        """Write the conversation to a file of the workspace."""
        self._notice(f"Written to {await self._desk.export(self._open_id(), target)}")

    def _open_id(self) -> str:
        conversation_id = self._app.controller.state.conversation_id
        if not conversation_id:
            raise NotFoundError("No conversation is open yet.", todo="Send a message, or /resume one.")
        return conversation_id

    def _notice(self, text: str) -> None:
        self._app.controller.notice(text, "info")
