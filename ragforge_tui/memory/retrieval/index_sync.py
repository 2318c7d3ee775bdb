"""Synchronisation of search keys and vectors, in the index of the open conversation and in the graph.

Used by `Recall`, in the background. All of it can be interrupted: missing keys and vectors are found again by query,
and writes are idempotent, so two processes may synchronise the same conversation.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from ragforge_tui.graph import Store
from ragforge_tui.graph.store.messages import INDEXED_CHARS
from ragforge_tui.graph.store.recall import KeyRow, RecallRow
from ragforge_tui.graph.store.vectors import KINDS, Unembedded
from ragforge_tui.llm.embeddings import Embedder, LocalEmbedder, Vectors, local_batches
from ragforge_tui.memory.retrieval.index import ConversationIndex
from ragforge_tui.memory.retrieval.keys import (
    KEYS_VERSION,
    TurnKeys,
    facts_digest,
    keys_of,
    lex_key,
    shown,
    sitting_text,
)
from ragforge_tui.shared.errors import GraphError, ModelError
from ragforge_tui.shared.pace import Pace
from ragforge_tui.shared.records import Turn
from ragforge_tui.shared.sanitize import storable
from ragforge_tui.shared.truncation import cut_middle

log = logging.getLogger(__name__)

PAGE = 200
TURNS_PAGE = 50
"""Whole turns, with all their results, read at once."""
EMBED_BATCH = 64
"""Vectors stored at once: what an interruption costs."""
MISSING_PAGE = 512
"""Nodes without a vector that are read at once; a text that several of them have is embedded once."""
PIECE = 10
"""Turns of which words are indexed, keys made or tokens counted before a turn or a key may go first: some 20 ms."""
EMBED_CHARS = 2_000
"""Most characters of a text that are embedded, head and tail: longer texts cover too many subjects for one vector."""
LOCAL_TURN_CHARS = 600
"""Most characters of a turn that the local model embeds, head and tail. Its time grows with the text, what recall finds
no longer does. Measurements: benchmarks/RECALL.md."""
SITTING_EVERY = 10
"""Turns after which the current sitting is stored, in addition to its end."""
SCOPED = ("Message", "Summary", "Conversation")

T = TypeVar("T")
R = TypeVar("R")
Made = Callable[[Unembedded, npt.NDArray[np.float32]], None]


class VectorModel:
    """Embedding model in use: the configured one, as long as the graph's vectors are from it."""

    def __init__(self, embedder: Embedder | None) -> None:
        self.embedder = embedder
        self.reason = ""
        """Reason for which the model does not match the graph's vectors; empty if it does."""
        self.failure = ""
        """Reason for which the last texts got no vectors; empty if they got them."""
        self._claimed = False

    @property
    def name(self) -> str:
        """Name of the model, empty if vectors cannot be used."""
        return self.embedder.name if self.embedder is not None and not self.reason else ""

    async def claim(self, store: Store) -> None:
        """Record the model in a graph that has none yet, and check whether it is the graph's."""
        # A mismatch is checked again: `ragforge-chat graph reembed` ends it while the program runs.
        if self.embedder is None or (self._claimed and not self.reason):
            return
        name, size = await store.vectors.claim_model(self.embedder.name, self.embedder.dimension)
        first, self._claimed, self.reason = not self._claimed, True, ""
        if (name, size) != (self.embedder.name, self.embedder.dimension):
            self.reason = (
                f"The graph's vectors are from {name or 'another model'} ({size} numbers), "
                f"but the settings name {self.embedder.name} ({self.embedder.dimension}). "
                "Search uses words only until you run `ragforge-chat graph reembed`."
            )
            if first:
                log.warning("%s", self.reason)

    def source(self, label: str, text: str) -> str:
        """Return what the vector of a node is made of: of a turn what was said and done, at the local model's price."""
        if label != "Message":
            return text
        # Results would outweigh what was said; they are searched by their words.
        said = shown(text)
        return cut_middle(said, LOCAL_TURN_CHARS, "\n") if isinstance(self.embedder, LocalEmbedder) else said

    def pieces(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the positions of texts in groups to embed at once, between which more urgent work may run."""
        if isinstance(self.embedder, LocalEmbedder):
            return local_batches([cut_middle(text, EMBED_CHARS, "\n") for text in texts])
        return [list(range(len(texts)))]

    async def embed(self, texts: Sequence[str]) -> Vectors | None:
        """Return the vectors of texts; None if there is no usable model or it fails, which is logged."""
        if self.embedder is None or self.reason:
            return None
        try:
            vectors = await self.embedder.embed([cut_middle(text, EMBED_CHARS, "\n") for text in texts])
        except ModelError as error:
            log.warning("not embedded: %s", error)
            self.failure = f"{error} Search uses words only until it responds."
            return None
        self.failure = ""
        return vectors


class IndexSync:
    """Synchroniser of one conversation's keys and vectors.

    Args:
        index: The index to fill.
        pace: When this work may use the processor.
    """

    def __init__(
        self, index: ConversationIndex, model: VectorModel, conversation_id: str, pace: Pace | None = None
    ) -> None:
        self._index = index
        self._model = model
        self._pace = pace or Pace()
        self.stored_turns = 0
        """Turns of the conversation in the graph, as far as is known."""
        self._id = conversation_id
        self._uuids: dict[str, int] = {}
        self._shared: set[int] = set()
        """Turns of the conversation this one branched from; it stores their keys itself."""
        self.conversations = [conversation_id]
        """This conversation and those it branched from."""
        self._sitting = 0
        self._sitting_stored = 0
        self._unread = 0
        """First turn of a load that has not ended, or failed; 0 after one that ended."""
        self._keyless: set[int] = set()
        """Turns read without keys, whose keys are not stored yet."""
        self._facts_stored: dict[int, str] = {}
        """Digest of the facts in each turn's stored key."""

    # --- filling the index -----------------------------------------------------------------------------------------

    async def load(self, store: Store, *, start: int = 1, end: int | None = None) -> None:
        """Read the turns of [start, end) into the index, newest first; whole turns where keys are missing.

        The index answers with the turns read so far; it does not need the keys that `store_missing` stores.
        """
        if end is None:
            end = (await store.turns.range(self._id))[1] + 1
        self.stored_turns = max(self.stored_turns, end - 1)
        start = self._unread = min(start, self._unread or start)
        for after in range(end, start, -PAGE):
            await self._pace.clear()
            rows = await store.recall.rows(
                self._id, start=max(start, after - PAGE), end=after, model=self._model.name or "-"
            )
            self._facts_stored.update((row.turn_index, row.facts_digest) for row in rows)
            # A row without keys has no text yet.
            await self.in_pieces(self._put_row, [row for row in reversed(rows) if row.version])
            if without_keys := [row.turn_index for row in rows if row.version < KEYS_VERSION]:
                await self._read_whole(store, without_keys, last=end - 1)
        self._unread = 0

    async def store_missing(self, store: Store) -> None:
        """Store the keys and sittings of turns that were read without keys, and count the tokens of all turns."""
        if self._keyless:
            made = set(self._keyless)
            await self._store_keys(store, {near for turn in made for near in (turn - 1, turn, turn + 1)})
            await self.store_sittings(store, finished_only=False)
            self._keyless -= made
        # Counted before a query needs it.
        await self.in_pieces(self._index.tokens, range(self._index.last, 0, -1))

    async def in_pieces(self, work: Callable[[T], R], items: Sequence[T]) -> list[R]:
        """Return the result of `work` for each item, in a thread; turns and keys go first every few items."""

        def several(some: Sequence[T]) -> list[R]:
            return [work(item) for item in some]

        results: list[R] = []
        for first in range(0, len(items), PIECE):
            await self._pace.clear()
            results += await asyncio.to_thread(several, items[first : first + PIECE])
        return results

    def _put_row(self, row: RecallRow) -> None:
        vector = None if row.vector is None else np.frombuffer(row.vector, np.float32)
        self._index.put(row.turn_index, text=row.text, timestamp=row.timestamp, ended=row.ended, embedding=vector)
        self._note(row.uuid, row.turn_index, row.conversation_id)

    def _note(self, uuid: str, turn_index: int, conversation_id: str) -> None:
        self._uuids[uuid] = turn_index
        if conversation_id != self._id:
            self._shared.add(turn_index)
            if conversation_id not in self.conversations:
                self.conversations.append(conversation_id)

    async def _read_whole(self, store: Store, turns: Sequence[int], *, last: int) -> None:
        """Read turns that a crash or an import left without keys; unfinished ones come later."""
        missing = set(turns)
        for after in range(max(missing) + 1, min(missing), -TURNS_PAGE):
            page = range(max(after - TURNS_PAGE, 1), after)
            if missing.isdisjoint(page):
                continue
            await self._pace.clear()
            read = await store.turns.between(self._id, start=page.start, end=page.stop)
            finished = [
                turn
                for turn in reversed(read)
                if turn.turn_index in missing and is_finished(turn, last=turn.turn_index == last)
            ]
            await self.in_pieces(self.put, finished)
            self._keyless.update(turn.turn_index for turn in finished)

    # --- a turn ----------------------------------------------------------------------------------------------------

    def put(self, turn: Turn) -> None:
        """Add a whole turn to the index; its vector is unknown from then on."""
        keys: TurnKeys = keys_of(turn)
        self._index.put(keys.turn_index, text=keys.text, timestamp=keys.timestamp, ended=keys.ended)
        self._note(turn.messages[0].uuid, turn.turn_index, turn.messages[0].conversation_id)

    async def turn_stored(self, store: Store, turn: Turn) -> None:
        """Store the keys of a turn that has ended, and of its neighbours, whose windows contain it."""
        first = self._unread or self._index.last + 1
        if turn.turn_index > first:
            # Another process wrote the turns in between, or a load failed: a gap would number sittings wrongly.
            await self.load(store, start=first, end=turn.turn_index)
            await self.store_missing(store)
        await asyncio.to_thread(self.put, turn)
        await asyncio.to_thread(self._index.tokens, turn.turn_index)
        await self._store_keys(store, {turn.turn_index - 1, turn.turn_index, turn.turn_index + 1})
        await self.store_sittings(store, finished_only=True)

    async def facts_changed(self, store: Store, facts: Mapping[int, Sequence[str]]) -> None:
        """Add facts to the index, and to those stored keys of the turns they were found in that lack them."""
        changed = {turn: texts for turn, texts in facts.items() if self._index.facts(turn) != tuple(texts)}
        if changed:
            await asyncio.to_thread(self._index.set_facts, changed)
        # The index starts without facts, but the keys in the graph may hold them already.
        stored = self._facts_stored
        await self._store_keys(
            store, [turn for turn, texts in facts.items() if stored.get(turn, "") != facts_digest(texts)]
        )

    async def _store_keys(self, store: Store, turns: Iterable[int]) -> None:
        mine = sorted(turn for turn in turns if turn in self._index and turn not in self._shared)
        for start in range(0, len(mine), PAGE):
            rows = await self.in_pieces(self._key_row, mine[start : start + PAGE])
            await store.recall.store_keys(rows)
            self._facts_stored.update((row.turn_index, row.facts_digest) for row in rows)

    def _key_row(self, turn: int) -> KeyRow:
        index = self._index
        text, moment = index.turn_text(turn), index.timestamp(turn)
        assert moment is not None
        language, facts = index.language, index.facts(turn)
        return KeyRow(
            conversation_id=self._id,
            turn_index=turn,
            text=text,
            lex_key=lex_key(
                text,
                previous=index.turn_text(turn - 1),
                following=index.turn_text(turn + 1),
                facts=facts,
                moment=moment,
                language=language,
            ),
            language=language,
            ended=index.ended(turn) or moment,
            sitting=index.sitting(turn),
            version=KEYS_VERSION,
            facts_digest=facts_digest(facts),
        )

    async def store_sittings(self, store: Store, *, finished_only: bool) -> None:
        """Store finished sittings, and every `SITTING_EVERY` turns the current one."""
        last = self._index.last
        current = self._index.sitting(last)
        if not self._sitting:
            self._sitting = await store.recall.sittings_stored(self._id)
        due = list(range(max(self._sitting, 1), current))
        grown = last - self._sitting_stored >= SITTING_EVERY
        if current and (not finished_only or grown):
            due.append(current)
            self._sitting_stored = last
        for sitting in due:
            turns = [turn for turn in self._index.sitting_turns(sitting) if turn not in self._shared]
            moment = self._index.timestamp(turns[0]) if turns else None
            if moment is not None:
                text = sitting_text([self._index.turn_text(turn) for turn in turns], moment, self._index.language)
                await store.recall.store_sitting(self._id, sitting, date=moment, text=text)
        self._sitting = max(self._sitting, current)

    # --- vectors ---------------------------------------------------------------------------------------------------

    async def embed_missing(self, store: Store) -> None:
        """Make the missing vectors of this conversation's turns, newest first, of its summaries and its own summary.

        Those of topics too: they belong to no conversation, and are few.
        """
        nodes = await asyncio.to_thread(self._unembedded) if self._model.name else []
        for first in range(0, len(nodes), MISSING_PAGE):
            page = nodes[first : first + MISSING_PAGE]
            if not await _embed(store, self._model, "Message", page, self._pace, self._set_vector):
                return
        for label in SCOPED:
            await embed_missing(
                store, self._model, label, conversation_id=self._id, made=self._set_vector, pace=self._pace
            )
        await embed_missing(store, self._model, "Topic", pace=self._pace)

    def without_vector(self) -> list[int]:
        """Return the turns whose vectors are still to be made here: shared turns get theirs where they were written."""
        return [turn for turn in self._index.without_vector() if turn not in self._shared]

    def _unembedded(self) -> list[Unembedded]:
        """Return the indexed turns without a vector, newest first, with their texts as they are stored."""
        # Copied: turns are added by other threads.
        uuids = {turn: uuid for uuid, turn in self._uuids.copy().items()}
        found = ((uuids[turn], self._index.turn_text(turn)) for turn in self.without_vector() if turn in uuids)
        return [Unembedded(uuid, storable(text[:INDEXED_CHARS])) for uuid, text in found if text.strip()][::-1]

    def _set_vector(self, node: Unembedded, vector: npt.NDArray[np.float32]) -> None:
        turn = self._uuids.get(node.uuid)
        if turn is not None and vector.any():
            self._index.set_embedding(turn, vector)


async def embed_missing(
    store: Store,
    model: VectorModel,
    label: str,
    *,
    conversation_id: str = "",
    made: Made | None = None,
    pace: Pace | None = None,
) -> int:
    """Make the missing vectors of one kind of node and return how many were made.

    Ends early if the model fails or is no longer the graph's: the rest is found again by query.
    """
    total = 0
    seen: set[str] = set()
    while model.name:
        nodes = await store.vectors.missing(label, model.name, limit=MISSING_PAGE, conversation_id=conversation_id)
        if seen.issuperset(node.uuid for node in nodes):
            break
        seen.update(node.uuid for node in nodes)
        if not await _embed(store, model, label, nodes, pace or Pace(), made):
            break
        total += len(nodes)
    return total


async def _embed(
    store: Store, model: VectorModel, label: str, nodes: Sequence[Unembedded], pace: Pace, made: Made | None
) -> bool:
    """Make and store the vectors of nodes, batch by batch; return False if the model failed or is not the graph's."""
    same: dict[str, list[Unembedded]] = {}
    for node in nodes:
        same.setdefault(model.source(label, node.text), []).append(node)
    texts = list(same)
    for first in range(0, len(texts), EMBED_BATCH):
        batch = texts[first : first + EMBED_BATCH]
        vectors = await _vectors(model, batch, pace)
        if vectors is None:
            return False
        rows = [(node, vector) for text, vector in zip(batch, vectors, strict=True) for node in same[text]]
        if not await store.vectors.store(label, model.name, rows):
            return False
        for node, vector in rows:
            if made is not None:
                made(node, vector)
    return True


async def _vectors(model: VectorModel, texts: Sequence[str], pace: Pace) -> Vectors | None:
    """Return the vectors of texts, made piece by piece on as many cores as are free; None if the model failed."""
    assert model.embedder is not None
    vectors = np.zeros((len(texts), model.embedder.dimension), np.float32)
    pieces = model.pieces(texts)
    failed = False

    async def work(worker: int) -> None:
        nonlocal failed
        while not failed:
            await pace.clear()
            # The first worker finishes what the others leave.
            if not pieces or worker >= pace.workers:
                return
            piece = pieces.pop()
            found = await model.embed([texts[n] for n in piece])
            if found is None:
                failed = True
            else:
                vectors[piece] = found

    async with asyncio.TaskGroup() as group:
        for worker in range(min(pace.workers, len(pieces))):
            group.create_task(work(worker))
    return None if failed else vectors


def is_finished(turn: Turn, *, last: bool) -> bool:
    """Return whether a turn is complete; the last one may still wait for its answer."""
    answered = any(message.role != "user" for message in turn.messages)
    return all(message.state != "streaming" for message in turn.messages) and (answered or not last)


async def catch_up(
    store: Store, embedder: Embedder | None, *, leave: Collection[str] = (), pace: Pace | None = None
) -> None:
    """Make the keys and vectors of any conversation that an import, a crash or an unavailable model left missing.

    Args:
        leave: Conversations to skip: they are open and do this themselves.
    """
    model = VectorModel(embedder)
    await model.claim(store)
    for uuid in await store.recall.conversations_without_keys(KEYS_VERSION):
        if uuid not in leave:
            sync = IndexSync(ConversationIndex(), model, uuid, pace)
            await sync.load(store)
            await sync.store_missing(store)
    for label in KINDS:
        await embed_missing(store, model, label, pace=pace)
    await store.vectors.open_changed_indexes()


async def reembed(store: Store, embedder: Embedder, progress: Callable[[int, int], None]) -> int:
    """Make all vectors of the graph again with another model and return how many; a repeated call continues.

    The model becomes the graph's at once, so that chats that use it already search the vectors made so far.

    Args:
        progress: Called with the number of vectors made and the number to make.

    Raises:
        ModelError: The model failed; the vectors made so far are kept.
        GraphError: The graph cannot store its vectors.
    """
    # Tried first: a model that does not answer must not replace one that does.
    await embedder.embed(["ragforge"])
    await store.vectors.change_model(embedder.name, embedder.dimension)
    model = VectorModel(embedder)
    await model.claim(store)
    if model.reason:
        raise GraphError(model.reason)
    total = await store.vectors.count_missing(model.name)
    done = 0
    progress(done, total)

    def made(node: Unembedded, vector: npt.NDArray[np.float32]) -> None:
        nonlocal done
        done += 1
        progress(done, max(total, done))

    for label in KINDS:
        await embed_missing(store, model, label, made=made)
    if left := await store.vectors.count_missing(model.name):
        raise ModelError(
            f"{done} vectors were created with {model.name}; {left} failed.",
            kind="provider",
            todo="Run it again; it continues from there.",
        )
    return done
