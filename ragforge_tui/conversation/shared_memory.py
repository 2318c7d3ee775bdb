"""What the memories of all conversations of one agent share: vectors, the model for summaries, the memory tools."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Iterable

import msgspec

from ragforge_tui.config import Loaded
from ragforge_tui.conversation.background_model import BackgroundModel, Patience, Quiet
from ragforge_tui.conversation.memory import ConversationMemory
from ragforge_tui.errors import ModelError, RagforgeError
from ragforge_tui.graph import Store
from ragforge_tui.llm import THIS_MACHINE, ChatModel, choose_model, make_model, preload
from ragforge_tui.llm.embeddings import Embedder, LocalEmbedder, make_embedder
from ragforge_tui.memory.history_source import HistorySource
from ragforge_tui.memory.recall import Recall
from ragforge_tui.memory.recall.recall import catch_up
from ragforge_tui.tools.base import Tool
from ragforge_tui.tools.memory import memory_tools

log = logging.getLogger(__name__)


class SharedMemory:
    """Made once by the agent.

    Args:
        store: Gives the store, waiting while the graph starts.
        model: Gives the model that answers.
    """

    def __init__(
        self,
        loaded: Loaded,
        store: Callable[[], Awaitable[Store]],
        model: Callable[[], Awaitable[ChatModel]],
    ) -> None:
        self._settings = loaded.settings
        self._store = store
        self._model = model
        self._summary_model: ChatModel | None = None
        self.quiet = Quiet()
        self.patience = Patience()
        self._warming: asyncio.Task[None] | None = None
        memory = loaded.settings.agent.memory
        self.embedder: Embedder | None = None
        if memory.enabled:
            self.embedder = make_embedder(memory.embeddings, loaded.settings.model)
        self.said: set[str] = set()
        """Why meaning is not searched, as far as the person was told: once is enough."""
        self.tools: list[Tool] = []
        if memory.enabled:
            self.tools += memory_tools(HistorySource(store, memory.recall, loaded.workspace))

    def warm(self) -> None:
        """Begin to load the local embedding model, once: it takes seconds the first question should not wait for."""
        if self._warming is None and isinstance(self.embedder, LocalEmbedder):
            self._warming = asyncio.create_task(_load(self.embedder), name="embedder")

    async def index(self, conversation_id: str) -> None:
        """Make the turns of a conversation nobody has open searchable by their words."""
        conversation = await (await self._store()).conversations.get(conversation_id)
        settings = self._settings.agent.memory
        recall = Recall(self._store, settings, None, conversation_id=conversation_id, workspace=conversation.workspace)
        await recall.load()
        await recall.store_missing()

    async def catch_up(self, open_here: set[str]) -> None:
        """Make the keys and vectors that imports and crashes left missing in conversations nobody has open."""
        try:
            await catch_up(await self._store(), self.embedder, leave=open_here)
        except ModelError as error:
            log.warning("vectors not caught up with: %s", error)

    async def summary_model(self) -> ChatModel | None:
        """The model for summaries and titles: the configured one, else the one that answers; None for neither.

        One on this machine gives way to turns. The built-in assistant writes none: summaries are extracted then.
        """
        try:
            model = await self._own_summary_model()
        except RagforgeError as error:
            log.warning("no model for summaries, they are extracted: %s", error)
            return None
        if model.offline:
            return None
        return BackgroundModel(model, self.patience, self.quiet if model.destination == THIS_MACHINE else None)

    async def _own_summary_model(self) -> ChatModel:
        name = self._settings.agent.memory.summarization.model
        if not name:
            return await self._model()
        if self._summary_model is None:
            settings = msgspec.structs.replace(self._settings.model, name=name)
            choice = await choose_model(settings, os.environ)
            if not choice.offline:
                await preload()
            self._summary_model = make_model(choice, settings)
        return self._summary_model


async def _load(embedder: Embedder) -> None:
    try:
        await embedder.embed(["a"])
    except ModelError as error:
        log.warning("the embedding model could not be loaded: %s", error)


async def settle(memories: Iterable[ConversationMemory], seconds: float) -> None:
    """Wait until all is remembered, for so long at most, and stop; what is left is done at the next start."""
    working = list(memories)
    try:
        async with asyncio.timeout(seconds):
            for memory in working:
                await memory.settle()
    except TimeoutError:
        log.info("the memory is not up to date; it is brought so at the next start")
    for memory in working:
        await memory.close()
