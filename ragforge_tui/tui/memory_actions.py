"""What the commands about the memory do: show what was sent, the summaries, topics, similar conversations.

A part of `ChatActions`. Screens are imported when first wanted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragforge_tui.errors import RagforgeError

if TYPE_CHECKING:
    from ragforge_tui.requests.tree import SentRequest, TopicPlace
    from ragforge_tui.tui.app import ChatApp
    from ragforge_tui.tui.choices import Choice


class MemoryActions:
    """The commands about the memory of one chat screen."""

    _app: ChatApp

    async def context(self, turn: str) -> None:
        """Show what a turn's requests held; the last turn's without a number."""
        from ragforge_tui.protocol import FetchSent
        from ragforge_tui.tui.context_view import ContextScreen

        wanted = turn.strip().removeprefix("t")
        if wanted and not wanted.isdecimal():
            raise RagforgeError(f"{turn!r} is not the number of a turn.", todo="/context 12 shows turn 12.")
        uuid = self._open_conversation()
        conversation = self._app.controller.state.conversation
        newest = conversation.next_turn - 1 if conversation is not None else 0

        async def load(turn: int, number: int) -> SentRequest:
            return await self._app.controller.ask(FetchSent(conversation_id=uuid, turn_index=turn, number=number))

        def closed(source: tuple[str, int, int] | None) -> None:
            if source is not None:
                self.go_to(*source)

        self._app.push_screen(ContextScreen(load, uuid, turn=int(wanted or 0), last_turn=newest), closed)

    def go_to(self, conversation_id: str, first: int, last: int = 0) -> None:
        """Bring turns into view, in this conversation or another one."""
        controller = self._app.controller
        if conversation_id == controller.state.conversation_id:
            self._app.sidebar.show_turn(first, last)
        else:
            controller.spawn(controller.open(conversation_id, turn=first), group="open", exclusive=True)

    async def memory(self) -> None:
        """Show the tree of summaries and the topics, or go back from them."""
        self._app.sidebar.toggle("memory")

    async def summary(self) -> None:
        """Write the conversation's summary now and show it."""
        from ragforge_tui.protocol import SummarizeConversation
        from ragforge_tui.tui.detail import Section
        from ragforge_tui.tui.viewer import DetailScreen

        uuid = self._open_conversation()

        title = "Summary of this conversation"

        async def load() -> tuple[str, list[Section]]:
            found = await self._app.controller.ask(SummarizeConversation(conversation_id=uuid))
            text = found.summary or "There is nothing to summarise yet."
            return title, [Section(title=found.title or "Untitled", text=text, look="prose")]

        self._app.push_screen(DetailScreen(title, load, actions={}))

    async def topics(self, query: str) -> None:
        """Show the topics of all conversations of this folder, or those with these words."""
        from ragforge_tui.tui.topics_screen import TopicsScreen

        controller = self._app.controller

        def closed(place: TopicPlace | None) -> None:
            if place is not None:
                self.go_to(place.conversation_id, place.first, place.last)

        screen = TopicsScreen(
            controller.ask,
            conversation_id=controller.state.conversation_id,
            workspace=self._app.options.workspace or None,
            query=query,
        )
        self._app.push_screen(screen, closed)

    async def similar(self) -> None:
        """Show conversations like this one; the picked one is opened."""
        from ragforge_tui.tui.picker import Picker

        uuid = self._open_conversation()

        def picked(key: str | None) -> None:
            if key:
                self._app.controller.spawn(self._app.controller.open(key), group="open", exclusive=True)

        async def load() -> list[Choice]:
            return await self._similar_rows(uuid)

        empty = "no conversation is like this one, or this one has no summary yet"
        self._app.push_screen(Picker("Conversations like this one", load, empty=empty, verb="open"), picked)

    async def _similar_rows(self, uuid: str) -> list[Choice]:
        from ragforge_tui.protocol import FindSimilar
        from ragforge_tui.tui.choices import Choice

        found = await self._app.controller.ask(FindSimilar(ref=uuid))
        return [
            Choice(
                one.conversation.uuid,
                one.conversation.title or f"untitled {one.conversation.uuid[:8]}",
                f"{one.score:.2f} · {one.conversation.updated_at:%Y-%m-%d}",
            )
            for one in found
        ]

    def _open_conversation(self) -> str:
        uuid = self._app.controller.state.conversation_id
        if not uuid:
            raise RagforgeError("Nothing was said here yet.", todo="Write a message, or /resume a conversation.")
        return uuid
