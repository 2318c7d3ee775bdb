"""What the memories of all conversations of one agent share: vectors, the model for summaries, the memory tools."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Iterable

import msgspec

from ragforge_tui.config import Loaded
from ragforge_tui.conversation.memory import ConversationMemory
from ragforge_tui.errors import RagforgeError
from ragforge_tui.graph import Store
from ragforge_tui.llm import ChatModel, choose_model, make_model, preload
from ragforge_tui.llm.embeddings import Embedder, make_embedder
from ragforge_tui.memory.history_source import HistorySource
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
        self._model = model
        self._summary_model: ChatModel | None = None
        memory = loaded.settings.agent.memory
        self.embedder: Embedder | None = make_embedder(memory.embeddings) if memory.enabled else None
        self.tools: list[Tool] = []
        if memory.enabled:
            self.tools += memory_tools(HistorySource(store, memory.recall, loaded.workspace))

    async def summary_model(self) -> ChatModel | None:
        """The model for summaries and titles: the configured one, else the one that answers; None for neither."""
        name = self._settings.agent.memory.summarization.model
        try:
            if not name:
                return await self._model()
            if self._summary_model is None:
                settings = msgspec.structs.replace(self._settings.model, name=name)
                choice = await choose_model(settings, os.environ)
                if not choice.offline:
                    await preload()
                self._summary_model = make_model(choice, settings)
            return self._summary_model
        except RagforgeError as error:
            log.warning("no model for summaries, they are extracted: %s", error)
            return None


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
