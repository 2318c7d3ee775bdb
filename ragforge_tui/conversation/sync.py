"""The agent for programs without an event loop: scripts, notebooks, threads.

One thread runs the agent's event loop; each call waits for its result there. Ctrl-C stops a running turn, which is
stored as interrupted, and then raises KeyboardInterrupt as usual.
"""

from __future__ import annotations

import concurrent.futures.thread  # noqa: F401
import threading
from collections.abc import AsyncGenerator, Coroutine, Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Unpack

from ragforge_tui.conversation.agent import ConversationAgent
from ragforge_tui.conversation.answer import Answer
from ragforge_tui.conversation.conversation import SETTLE_SECONDS, Conversation
from ragforge_tui.conversation.loop_thread import LoopThread
from ragforge_tui.conversation.options import AgentOptions, GivenSettings
from ragforge_tui.conversation.reading import HistoryHit
from ragforge_tui.conversation.sync_past import SyncCode, SyncPast
from ragforge_tui.export import ExportFormat
from ragforge_tui.memory.context import BuiltContext, Strategy
from ragforge_tui.shared import records
from ragforge_tui.shared.events import Event, ModelChanged
from ragforge_tui.shared.export_records import ConversationExport, Imported
from ragforge_tui.shared.records import (
    AccessedFile,
    ConversationStatus,
    SearchHit,
    SimilarConversation,
    ToolCall,
    Turn,
)
from ragforge_tui.shared.requests.sessions import Deleted


class SyncConversation:
    """A `Conversation` whose methods wait for their results; `SyncConversationAgent` creates it.

    Attributes:
        conversation: The conversation itself, for use in the agent's event loop.
    """

    def __init__(self, conversation: Conversation, thread: LoopThread) -> None:
        self.conversation = conversation
        self._thread = thread

    @property
    def id(self) -> str:
        """See `Conversation.id`."""
        return self.conversation.id

    @property
    def title(self) -> str:
        """See `Conversation.title`."""
        return self.conversation.title

    @property
    def record(self) -> records.Conversation:
        """Title, tags, status, summary and counts."""
        return self.conversation.record

    def send_message(self, text: str) -> Answer:
        """See `Conversation.send_message`."""
        return self._thread.run(self.conversation.send_message(text))

    def stream(self, text: str) -> Iterator[Event]:
        """See `Conversation.stream`; leaving the loop early stops the turn.

        Examples:
            ```python
            from ragforge_tui import SyncConversationAgent
            from ragforge_tui.shared.events import TextDelta

            with SyncConversationAgent(model="offline") as agent:
                conversation = agent.create_conversation("Files")
                for event in conversation.stream("Which files are here?"):
                    if isinstance(event, TextDelta):
                        print(event.text, end="")
            ```
        """
        events = self.conversation.stream(text)
        try:
            while (event := self._thread.run(_next(events))) is not None:
                yield event
        finally:
            self._thread.run(_close(events))

    def get_history(
        self, limit: int | None = None, *, include_tool_calls: bool = True, include_reasoning: bool = True
    ) -> list[Turn]:
        """See `Conversation.get_history`."""
        return self._thread.run(
            self.conversation.get_history(
                limit, include_tool_calls=include_tool_calls, include_reasoning=include_reasoning
            )
        )

    def get_full_data(self) -> ConversationExport:
        """See `Conversation.get_full_data`."""
        return self._thread.run(self.conversation.get_full_data())

    def search_history(self, query: str, *, limit: int = 10) -> list[HistoryHit]:
        """See `Conversation.search_history`."""
        return self._thread.run(self.conversation.search_history(query, limit=limit))

    def get_tool_calls(
        self, tool_name: str = "", *, success: bool | None = None, limit: int | None = None
    ) -> list[ToolCall]:
        """See `Conversation.get_tool_calls`."""
        return self._thread.run(self.conversation.get_tool_calls(tool_name, success=success, limit=limit))

    def get_recent_files(self, *, limit: int = 100) -> list[AccessedFile]:
        """See `Conversation.get_recent_files`."""
        return self._thread.run(self.conversation.get_recent_files(limit=limit))

    def summarize(self) -> str:
        """See `Conversation.summarize`."""
        return self._thread.run(self.conversation.summarize())

    def build_context(
        self,
        text: str,
        *,
        strategy: Strategy | None = None,
        recent_messages: int | None = None,
        relevant_messages: int | None = None,
        include_summary: bool = True,
    ) -> BuiltContext:
        """See `Conversation.build_context`."""
        return self._thread.run(
            self.conversation.build_context(
                text,
                strategy=strategy,
                recent_messages=recent_messages,
                relevant_messages=relevant_messages,
                include_summary=include_summary,
            )
        )

    def get_uuid(self) -> str:
        """See `Conversation.get_uuid`."""
        return self.conversation.get_uuid()

    def get_recently_accessed_files(self, *, limit: int = 100) -> list[AccessedFile]:
        """See `Conversation.get_recently_accessed_files`."""
        return self.get_recent_files(limit=limit)

    def branch(
        self, from_message: str = "", *, turn: int | None = None, title: str = "", from_message_id: str = ""
    ) -> SyncConversation:
        """See `Conversation.branch`."""
        branch = self._thread.run(self.conversation.branch(from_message or from_message_id, turn=turn, title=title))
        return SyncConversation(branch, self._thread)

    def set_persona(self, persona: str) -> None:
        """See `Conversation.set_persona`."""
        self._thread.run(self.conversation.set_persona(persona))

    def export(self, path: str | Path | None = None, *, format: ExportFormat = "json") -> str:
        """See `Conversation.export`."""
        return self._thread.run(self.conversation.export(path, format=format))

    def archive(self, *, archived: bool = True) -> None:
        """See `Conversation.archive`."""
        self._thread.run(self.conversation.archive(archived=archived))

    def delete(self, *, immediately: bool = False) -> None:
        """See `Conversation.delete`."""
        self._thread.run(self.conversation.delete(immediately=immediately))


class SyncConversationAgent:
    """A `ConversationAgent` whose methods wait for their results; the arguments are the same.

    It may be used from any thread, also while another event loop runs, as in a notebook. Use it as a context manager,
    or call `close`; otherwise it is closed when the program ends.

    Attributes:
        agent: The agent itself, for use in its event loop.
        past: See `Past`.

    Examples:
        ```python
        from ragforge_tui import SyncConversationAgent

        with SyncConversationAgent(model="offline") as agent:
            conversation = agent.create_conversation("Retries")
            answer = conversation.send_message("What can you do?")
            print(answer.content)
        ```
    """

    def __init__(self, settings: GivenSettings = None, **options: Unpack[AgentOptions]) -> None:
        self._thread = LoopThread()
        try:
            self.agent = self._thread.run(_started(settings, options))
        except BaseException:
            self._thread.close()
            raise
        self.past = SyncPast(self.agent.past, self._thread)
        _open.add(self)

    def initialize(self) -> None:
        """See `ConversationAgent.initialize`."""
        self._thread.run(self.agent.initialize())

    @property
    def code(self) -> SyncCode:
        """See `ConversationAgent.code`."""
        return SyncCode(self.agent.code, self._thread)

    def __enter__(self) -> SyncConversationAgent:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self, *, settle_seconds: float = SETTLE_SECONDS) -> None:
        """See `ConversationAgent.close`."""
        if not self._thread.running:
            return
        try:
            self._thread.run(self.agent.close(settle_seconds=settle_seconds))
        finally:
            self._thread.close()
            _open.discard(self)

    def create_conversation(
        self, title: str = "", *, tags: Sequence[str] = (), persona: str = "", private: bool = False
    ) -> SyncConversation:
        """See `ConversationAgent.create_conversation`."""
        return self._conversation(self.agent.create_conversation(title, tags=tags, persona=persona, private=private))

    def load_conversation(self, ref: str = "") -> SyncConversation:
        """See `ConversationAgent.load_conversation`."""
        return self._conversation(self.agent.load_conversation(ref))

    def list_conversations(
        self,
        *,
        status: ConversationStatus | Literal["any"] = "active",
        tags: Sequence[str] = (),
        query: str = "",
        workspace: str | None = None,
        order: Literal["updated", "created"] = "updated",
        limit: int = 50,
    ) -> list[records.Conversation]:
        """See `ConversationAgent.list_conversations`."""
        return self._thread.run(
            self.agent.list_conversations(
                status=status, tags=tags, query=query, workspace=workspace, order=order, limit=limit
            )
        )

    def find_similar(
        self, query: str = "", *, id: str = "", limit: int = 5, min_score: float | None = None
    ) -> list[SimilarConversation]:
        """See `ConversationAgent.find_similar`."""
        return self._thread.run(self.agent.find_similar(query, id=id, limit=limit, min_score=min_score))

    def find_similar_conversations(
        self, query: str, *, limit: int = 5, min_score: float | None = None
    ) -> list[SimilarConversation]:
        """See `ConversationAgent.find_similar_conversations`."""
        return self.find_similar(query, limit=limit, min_score=min_score)

    def search(
        self,
        query: str,
        *,
        topic: str = "",
        conversation_id: str = "",
        workspace: str | None = None,
        limit: int = 20,
    ) -> list[SearchHit]:
        """See `ConversationAgent.search`."""
        return self._thread.run(
            self.agent.search(query, topic=topic, conversation_id=conversation_id, workspace=workspace, limit=limit)
        )

    def import_conversation(
        self, data: str | bytes | Path | Mapping[str, Any] | ConversationExport, *, merge: bool = False
    ) -> Imported:
        """See `ConversationAgent.import_conversation`."""
        return self._thread.run(self.agent.import_conversation(data, merge=merge))

    def archive_conversation(self, ref: str, *, archived: bool = True) -> records.Conversation:
        """See `ConversationAgent.archive_conversation`."""
        return self._thread.run(self.agent.archive_conversation(ref, archived=archived))

    def delete_conversation(self, ref: str, *, immediately: bool = False, with_branches: bool = False) -> Deleted:
        """See `ConversationAgent.delete_conversation`."""
        return self._thread.run(
            self.agent.delete_conversation(ref, immediately=immediately, with_branches=with_branches)
        )

    def restore_conversation(self, ref: str) -> records.Conversation:
        """See `ConversationAgent.restore_conversation`."""
        return self._thread.run(self.agent.restore_conversation(ref))

    def index_code(self) -> str:
        """See `ConversationAgent.index_code`."""
        return self._thread.run(self.agent.index_code())

    def set_model(self, name: str) -> ModelChanged:
        """See `ConversationAgent.set_model`."""
        return self._thread.run(self.agent.set_model(name))

    def _conversation(self, opening: Coroutine[Any, Any, Conversation]) -> SyncConversation:
        return SyncConversation(self._thread.run(opening), self._thread)


_open: set[SyncConversationAgent] = set()
"""Agents to close when the program ends."""


def _close_all() -> None:
    for agent in list(_open):
        agent.close()


# Not `atexit`: its functions run after thread pools have shut down, which closing needs, and the program would wait for
# the agent's threads forever. These run in reverse, so the pools' own one has to be registered before, by an import.
threading._register_atexit(_close_all)  # type: ignore[attr-defined]


async def _started(settings: GivenSettings, options: AgentOptions) -> ConversationAgent:
    agent = ConversationAgent(settings, **options)
    agent.start()
    return agent


async def _next(events: AsyncGenerator[Event, None]) -> Event | None:
    return await anext(events, None)


async def _close(events: AsyncGenerator[Event, None]) -> None:
    await events.aclose()
