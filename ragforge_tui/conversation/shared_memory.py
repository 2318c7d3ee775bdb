"""Parts shared by the memories of all conversations of one agent: vectors, summary model and memory tools."""

from __future__ import annotations

import asyncio
import logging
import uuid
from weakref import WeakValueDictionary

from ragforge_tui.conversation.background_model import ActiveTurns, BackgroundModel, Backoff
from ragforge_tui.conversation.current_model import CurrentModel
from ragforge_tui.conversation.storage.graph_connection import GraphConnection
from ragforge_tui.llm import THIS_MACHINE, ChatModel, Connections, preload
from ragforge_tui.llm.embeddings import Embedder, LocalEmbedder, make_embedder, why_no_vectors
from ragforge_tui.memory.history_source import HistorySource
from ragforge_tui.memory.retrieval import Questions, Recall, catch_up
from ragforge_tui.memory.topic_search import TopicSearch
from ragforge_tui.settings.schema import Loaded
from ragforge_tui.shared.errors import GraphError, ModelError, RagforgeError
from ragforge_tui.shared.pace import Pace
from ragforge_tui.shared.records import Usage, now
from ragforge_tui.shared.usage_records import BackgroundRequest, Purpose

log = logging.getLogger(__name__)


class SharedMemory:
    """Embedding model, summary model and the source of the memory tools of one agent, which creates a single instance.

    Args:
        model: The model that answers; it also writes summaries unless the settings name another.
        embedder: Embedding model of the program; None for the one in the settings.
    """

    def __init__(
        self, loaded: Loaded, graph: GraphConnection, model: CurrentModel, *, embedder: Embedder | None = None
    ) -> None:
        self._settings = loaded.settings
        self._workspace = loaded.workspace
        self._graph = graph
        self._model = model
        self._summary_model: ChatModel | None = None
        self.active_turns = ActiveTurns()
        self.summary_locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        """Locks of conversations with their branches while a model summarises one of them."""
        self.pace = Pace()
        self.backoff = Backoff()
        self._trial: asyncio.Task[str] | None = None
        self._warming: asyncio.Task[None] | None = None
        memory = loaded.settings.agent.memory
        if memory.enabled and embedder is None:
            embedder = make_embedder(memory.embeddings, loaded.settings.model, Connections(loaded.paths))
        self.questions = Questions(graph.store, embedder if memory.enabled else None, memory.recall, loaded.workspace)
        self.reported_reasons: set[str] = set()
        """Reasons for the lack of search by meaning that the user has already seen; each is shown once."""
        self.topics = TopicSearch(self.questions)
        self.source = HistorySource(self.questions, self.topics) if memory.enabled else None

    @property
    def embedder(self) -> Embedder | None:
        return self.questions.model.embedder

    def warm(self) -> None:
        """Load the local embedding model ahead of its first use, but not while a request is prepared."""
        if self._warming is None and isinstance(self.embedder, LocalEmbedder):
            self._warming = asyncio.create_task(_load(self.embedder, self.pace), name="embedder")

    async def why_no_vectors(self) -> str:
        """Return why the embedding model makes no vectors, empty if it does; a process asks it once."""
        if self._trial is None:
            self._trial = asyncio.create_task(why_no_vectors(self.embedder), name="try-embedder")
        return await asyncio.shield(self._trial)

    async def index(self, conversation_id: str) -> None:
        """Index the words of the turns of a conversation that is not open."""
        conversation = await (await self._graph.store()).conversations.get(conversation_id)
        recall = Recall(
            Questions(self._graph.store, None, self.questions.settings, conversation.workspace),
            self._settings.agent.memory,
            conversation_id=conversation_id,
            workspace=conversation.workspace,
            pace=self.pace,
        )
        await recall.load()
        await recall.store_missing()

    async def open_indexes(self) -> None:
        """Let the graph open its vector indexes before a user's question needs them."""
        if self.embedder is not None and self._settings.agent.memory.recall.scope != "none":
            store = await self._graph.store()
            await self.pace.clear()
            await store.vectors.open_indexes()

    async def catch_up(self, open_here: set[str]) -> None:
        """Create the keys and vectors that imports and crashes left missing in conversations that are not open."""
        try:
            await catch_up(await self._graph.store(), self.embedder, leave=open_here, pace=self.pace)
        except ModelError as error:
            log.warning("missing vectors not created: %s", error)

    async def summary_model(self, purpose: Purpose, conversation_id: str = "") -> ChatModel | None:
        """Return the model for background work: the configured one, else the one that answers.

        A model on this machine yields to running turns. None means that summaries are extracted: no model is
        available, or the answering one is the built-in assistant.

        Args:
            purpose: What its requests are stored as.
            conversation_id: The conversation that they are about; requests about none are not stored.
        """
        try:
            model = await self._own_summary_model()
        except RagforgeError as error:
            log.warning("summaries are extracted, no model available: %s", error)
            return None
        if model.offline:
            return None

        async def note(name: str, usage: Usage) -> None:
            if not conversation_id:
                return
            request = BackgroundRequest(
                uuid=uuid.uuid4().hex,
                conversation_id=conversation_id,
                purpose=purpose,
                model=name,
                timestamp=now(),
                usage=usage,
            )
            try:
                await (await self._graph.store()).spending.add(request)
            except GraphError as error:
                log.warning("what a request cost is not stored: %s", error)

        turns = self.active_turns if model.destination == THIS_MACHINE else None
        return BackgroundModel(model, self.backoff, turns, on_usage=note)

    async def _own_summary_model(self) -> ChatModel:
        name = self._settings.agent.memory.summarization.model
        if not name:
            return await self._model.model()
        if self._summary_model is None:
            model = await self._model.other(name)
            if not model.offline:
                await preload()
            self._summary_model = model
        return self._summary_model


async def _load(embedder: Embedder, pace: Pace) -> None:
    await pace.clear()
    try:
        await embedder.embed(["a"])
    except ModelError as error:
        log.warning("the embedding model could not be loaded: %s", error)
