"""Recall of one open conversation: what was said before, here and elsewhere, that matters to a new message.

Used by the conversation for the context of a turn, and by the memory tools. Reads from an index in memory for this
conversation and from the graph for others; a `Keeper` keeps both up to date in the background.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Any

from ragforge_tui.config import MemorySettings
from ragforge_tui.errors import GraphError, ModelError, NotFoundError, RagforgeError
from ragforge_tui.graph import Store
from ragforge_tui.graph.store.vectors import KINDS, Unembedded
from ragforge_tui.llm.embeddings import Embedder
from ragforge_tui.memory.language import language_of
from ragforge_tui.memory.recall.index import ConversationIndex, Ranked
from ragforge_tui.memory.recall.keeper import Keeper, VectorModel, embed_missing
from ragforge_tui.memory.recall.others import (
    Fetched,
    Question,
    Ranges,
    Vector,
    cosine,
    merged,
    summaries_elsewhere,
    summary_score,
    turns_elsewhere,
    typical,
)
from ragforge_tui.memory.recall.pack import Candidate, pack, within
from ragforge_tui.memory.recall.questions import context_of
from ragforge_tui.memory.recall.rarity import Rarity
from ragforge_tui.memory.recall.results import Recalled, RecalledSummary, RecalledTurn
from ragforge_tui.memory.recall.terms import share, telling_words
from ragforge_tui.models import SimilarConversation, Summary, Turn

log = logging.getLogger(__name__)

CANDIDATES = 150
"""Turns of this conversation that are tried for room."""
SAME_COSINE = 0.95
"""Turns this alike say the same."""
EMBED_SECONDS = 1.5
"""How long a question waits for its vector, unless it has less time; then words decide alone."""
EMBED_SHARE = 0.5
"""Of the time a question has in all, how much it waits for its vector; the rest is for other conversations."""
FEWEST_CHARS_PER_TOKEN = 3
"""For telling safely, without counting, that this conversation does not need all the room."""
FEWEST_ON_TOPIC = 3
"""With fewer turns on a topic than this, a search limited to it looks everywhere."""


class Recall:
    """Finds what matters in the past of one open conversation, and keeps what it is found by.

    Args:
        store: Gives the store, waiting while the graph starts.
        embedder: None to go by words alone.
        private: Whether the conversation is; others' private ones are never found, whatever this one is.
    """

    def __init__(
        self,
        store: Callable[[], Awaitable[Store]],
        settings: MemorySettings,
        embedder: Embedder | None,
        *,
        conversation_id: str,
        workspace: str,
        private: bool = False,
    ) -> None:
        self.index = ConversationIndex()
        self._store = store
        self._settings = settings
        self._model = VectorModel(embedder)
        self._id = conversation_id
        self._workspace = workspace
        self.private = private
        self._keeper = Keeper(self.index, self._model, conversation_id)
        self._rarity = Rarity()
        self._summaries: list[Summary] = []
        self._keeping = asyncio.Lock()
        """Held while keys are stored: what two callers store of the same turn must not be mixed."""

    @property
    def reason(self) -> str:
        """Why meaning is not searched though it is switched on; empty when it is."""
        return self._model.reason or self._model.failure

    # --- keeping up to date, in the background ---------------------------------------------------------------------

    async def load(self) -> None:
        """Read the conversation into the index: its words, and the vectors there are.

        Questions asked meanwhile are answered from what is read so far; nothing is stored here.
        """
        store = await self._store()
        await self._model.claim(store)
        async with self._keeping:
            await self._keeper.load(store)

    async def store_missing(self) -> None:
        """Store the keys that were missing in the graph, and learn what makes asking quicker."""
        store = await self._store()
        async with self._keeping:
            await self._keeper.store_missing(store)
        try:
            await self._rarity.learn(store)
        except RagforgeError as error:
            # It only makes asking quicker; all words are asked for then.
            log.info("how common words are is not known: %s", error)

    async def turn_stored(self, turn: Turn) -> None:
        """Take in a turn that has ended: index, keys of it and of the one before, its sitting. `embed` comes later."""
        store = await self._store()
        await self._model.claim(store)
        async with self._keeping:
            await self._keeper.turn_stored(store, turn)

    async def summaries_changed(self, summaries: Sequence[Summary]) -> None:
        """Take in the summaries there are: what they say of turns, and their facts into the keys of those turns."""
        store = await self._store()
        await self._model.claim(store)
        self._summaries = list(summaries)
        await self._read_summary_vectors(store)
        facts: dict[int, list[str]] = {}
        for summary in summaries:
            if summary.level == 1:
                for turn in range(summary.start_turn_index, summary.end_turn_index + 1):
                    facts.setdefault(turn, [])
                for finding in summary.key_findings:
                    for turn in finding.turns:
                        facts.setdefault(turn, []).append(finding.text)
        async with self._keeping:
            await self._keeper.facts_changed(store, facts)

    async def embed(self) -> None:
        """Make the vectors that are missing; each is used as soon as its batch is stored.

        May take minutes after an import. Cut short, a repeated call continues with what is left.
        """
        store = await self._store()
        await self._model.claim(store)
        await self._keeper.embed_missing(store)
        await self._read_summary_vectors(store)

    async def _read_summary_vectors(self, store: Store) -> None:
        known = self._summaries
        vectors = await store.vectors.read("Summary", [summary.uuid for summary in known], self._model.name or "-")
        if known is self._summaries:
            await asyncio.to_thread(self.index.set_summaries, known, vectors)

    def progress(self) -> tuple[int, int]:
        """How many turns have a vector, and how many there are; equal without a model to make vectors."""
        turns = self.index.turns
        return turns - (len(self.index.without_vector()) if self._model.name else 0), turns

    # --- asking ----------------------------------------------------------------------------------------------------

    async def recall(
        self,
        query: str,
        *,
        exclude: Collection[int] = (),
        max_tokens: int | None = None,
        topic: str = "",
        own: bool = True,
        others: bool = True,
        summaries: bool = True,
        exclude_summaries: Collection[str] = (),
        seconds: float | None = None,
    ) -> Recalled:
        """Return what matters to a question, within a number of tokens; labels and headings count.

        This conversation is ranked in memory, by what is loaded of it. The question's vector and other conversations
        may be waited for; what does not come in time is left out.

        Args:
            exclude: Turns of this conversation that are sent anyway: they take no other turn's place.
            max_tokens: For the turns; `recall.max_tokens` unless given. Summaries have a number of their own.
            topic: Only turns whose summary has this topic, unless they are too few.
            own: Look in this conversation.
            others: Look in other conversations, as far as `recall.scope` allows.
            summaries: Look among summaries too.
            exclude_summaries: Ids of summaries that are sent anyway.
            seconds: The most to wait for the model and the graph; None waits `EMBED_SECONDS` for the vector, and for
                the graph as long as it takes.
        """
        settings = self._settings.recall
        room = settings.max_tokens if max_tokens is None else max_tokens
        until = None if seconds is None else asyncio.get_running_loop().time() + seconds
        question = await self._question(query, EMBED_SECONDS if seconds is None else seconds * EMBED_SHARE)
        ranges = await self._on_topic(topic) if topic else None
        (fetched, foreign), mine = await asyncio.gather(
            self._elsewhere(question, ranges, until, turns=others, summaries=summaries and others),
            asyncio.to_thread(self._own, question, exclude, ranges) if own else _nothing(),
        )

        def work() -> Recalled:
            found = self._packed(question, mine, fetched, room)
            if summaries:
                known = self._own_summaries(question) if own else []
                ranked = sorted((*known, *foreign), key=lambda one: -one.score)
                kept = [one for one in ranked if one.summary.uuid not in exclude_summaries]
                found.summaries = kept[: settings.max_summaries]
            return found

        return await asyncio.to_thread(work)

    async def resembling(self, text: str, *, min_score: float) -> SimilarConversation | None:
        """The other conversation whose summary is most like a text; None when none is, or words are all there is."""
        settings = self._settings.recall
        if settings.scope == "none":
            return None
        store = await self._store()
        await self._model.claim(store)
        vector = await self._question_vector(text, EMBED_SECONDS)
        if vector is None:
            return None
        found = await store.vectors.conversations_like(
            vector,
            limit=1,
            min_score=max(min_score, settings.min_score),
            workspace=self._workspace if settings.scope == "workspace" else None,
            exclude=(self._id,),
        )
        return found[0] if found else None

    async def _question(self, query: str, seconds: float) -> Question:
        """The question with what it refers to, its telling words and its vector."""
        context = context_of(query, self.index.turn_text(self.index.last))
        text = f"{query}\n{context}" if context else query
        vector = await self._question_vector(text, seconds)
        words = telling_words(text, language_of(text) or self.index.language)
        rarest = tuple(self._rarity.rarest(words))
        return Question(query, context, tuple(words), vector, self._model.name, rarest)

    async def _elsewhere(
        self, question: Question, ranges: Ranges | None, until: float | None, *, turns: bool, summaries: bool
    ) -> tuple[list[Fetched], list[RecalledSummary]]:
        """Turns and summaries of other conversations; nothing when the graph fails or is late, which is logged."""
        if self._settings.recall.scope == "none" or not (turns or summaries):
            return [], []
        settings = self._settings.recall
        workspace = self._workspace if settings.scope == "workspace" else None
        try:
            async with asyncio.timeout_at(until):
                store = await self._store()
                where = await store.other_conversations.scope(self._keeper.conversations, workspace)
                fetched, known = await asyncio.gather(
                    turns_elsewhere(store, question, settings, where, ranges) if turns else _nothing(),
                    summaries_elsewhere(store, question, settings, where) if summaries else _nothing(),
                )
        except (GraphError, TimeoutError) as error:
            log.warning("other conversations not searched: %s", error or "it took too long")
            return [], []
        return fetched, known

    async def _question_vector(self, question: str, seconds: float) -> Vector | None:
        if not self._model.name:
            return None
        try:
            async with asyncio.timeout(seconds):
                vectors = await self._model.embed([question])
        except TimeoutError:
            log.warning("the question's vector took too long; words decide alone")
            return None
        return vectors[0] if vectors is not None and vectors.any() else None

    def _own(self, question: Question, exclude: Collection[int], ranges: Ranges | None) -> list[Ranked]:
        only = None
        if ranges is not None:
            mine = [span for uuid in self._keeper.conversations for span in ranges.get(uuid, ())]
            only = {turn for first, last in mine for turn in range(first, last + 1)}
        return self.index.rank(
            question.text, question.vector, context=question.context, exclude=exclude, only=only, limit=CANDIDATES
        )

    async def _on_topic(self, topic: str) -> Ranges | None:
        """Turns whose summaries have the topic, by conversation; None when they are too few to look among."""
        try:
            store = await self._store()
            ranges = await store.topics.turns(topic)
        except NotFoundError:
            return None
        turns = sum(last - first + 1 for spans in ranges.values() for first, last in spans)
        return ranges if turns >= FEWEST_ON_TOPIC else None

    def _candidate(self, turn_index: int, score: float) -> Candidate:
        date = self.index.sitting_began(turn_index)
        assert date is not None
        text, tokens = self.index.turn_text(turn_index), self.index.tokens(turn_index)
        return Candidate(
            conversation_id=self._id, turn_index=turn_index, date=date, text=text, tokens=tokens, score=score
        )

    def _packed(self, question: Question, mine: Sequence[Ranked], fetched: Sequence[Fetched], room: int) -> Recalled:
        """What of both rankings has room; others get their share, and all of what this conversation leaves."""
        vectors = {_key(one.candidate): one.vector for one in fetched}
        # A turn without a vector yet counts as an ordinary one of its side; with a whole side without, words decide.
        usual = typical(question.vector, (self.index.vector(one.turn_index) for one in mine))
        usual_elsewhere = typical(question.vector, vectors.values())
        by_meaning = usual is not None and usual_elsewhere is not None

        def vector_of(key: tuple[str, int], own: bool) -> Vector | None:
            return self.index.vector(key[1]) if own else vectors.get(key)

        def same(candidate: Candidate, packed: Sequence[RecalledTurn]) -> bool:
            """Whether one of the packed turns is all but equal to a candidate."""
            vector = vector_of(_key(candidate), candidate.own)
            known = [vector_of((turn.conversation_id, turn.turn_index), turn.own) for turn in packed]
            return any(cosine(vector, other) > SAME_COSINE for other in known)

        def measure(candidate: Candidate) -> float:
            if candidate.own:
                fits = self.index.share(candidate.turn_index, question.words)
            else:
                fits = share(question.words, candidate.text, language_of(candidate.text))
            if not by_meaning:
                return fits
            vector = vector_of(_key(candidate), candidate.own)
            if vector is not None:
                return fits + cosine(question.vector, vector)
            return fits + ((usual if candidate.own else usual_elsewhere) or 0.0)

        others = [one.candidate for one in fetched]
        needed = sum(len(self.index.turn_text(one.turn_index)) for one in mine) // FEWEST_CHARS_PER_TOKEN
        theirs = max(int(room * self._settings.recall.other_conversations_share), room - needed)
        own = (self._candidate(one.turn_index, one.score) for one in mine)
        ranked = merged(own, others, measure) if others else own
        packed = pack(ranked, room, others_tokens=theirs, same=same)
        turns, text, tokens = within(packed, room)
        texts = {_key(candidate): candidate.text for candidate in others}
        sources = {
            (turn.conversation_id, turn.turn_index): self.index.turn_text(turn.turn_index)
            if turn.own
            else texts[turn.conversation_id, turn.turn_index]
            for turn in turns
        }
        return Recalled(turns=turns, text=text, tokens=tokens, sources=sources, reason=self.reason)

    def _own_summaries(self, question: Question) -> list[RecalledSummary]:
        settings = self._settings.recall
        similar = self.index.summary_scores(question.text, question.vector)
        found = []
        for summary in self._summaries:
            similarity = similar.get(summary.uuid, 0.0)
            if similarity >= settings.min_score:
                ended = self.index.ended(summary.end_turn_index) or summary.created_at
                score = summary_score(similarity, summary.level, ended, settings)
                found.append(RecalledSummary(summary=summary, score=score))
        return found


async def _nothing() -> list[Any]:
    return []


def _key(candidate: Candidate) -> tuple[str, int]:
    return candidate.conversation_id, candidate.turn_index


async def catch_up(store: Store, embedder: Embedder | None, *, leave: Collection[str] = ()) -> None:
    """Make the keys and vectors that an import, a crash or a model that was away left missing, of any conversation.

    Args:
        leave: Conversations that are open and look after themselves.
    """
    model = VectorModel(embedder)
    await model.claim(store)
    for uuid in await store.recall.conversations_without_keys():
        if uuid not in leave:
            keeper = Keeper(ConversationIndex(), model, uuid)
            await keeper.load(store)
            await keeper.store_missing(store)
    for label in KINDS:
        await embed_missing(store, model, label)


async def reembed(store: Store, embedder: Embedder, progress: Callable[[int, int], None]) -> int:
    """Make all vectors of the graph anew with another model, how many; cut short, a repeated call goes on.

    The model becomes the graph's at once, so that chats that use it already find by what is made so far.

    Args:
        progress: Called with how many vectors are made and how many there are to make.

    Raises:
        ModelError: The model failed; what was made is kept.
        GraphError: The graph cannot take its vectors.
    """
    # Asked first: a model that does not answer must not take the place of one that does.
    await embedder.embed(["ragforge"])
    await store.vectors.change_model(embedder.name, embedder.dimension)
    model = VectorModel(embedder)
    await model.claim(store)
    if model.reason:
        raise GraphError(model.reason)
    total = await store.vectors.count_missing(model.name)
    done = 0
    progress(done, total)

    def made(node: Unembedded, vector: Vector) -> None:
        nonlocal done
        done += 1
        progress(done, max(total, done))

    for label in KINDS:
        await embed_missing(store, model, label, made=made)
    if left := await store.vectors.count_missing(model.name):
        raise ModelError(
            f"{left} vectors could not be made with {model.name}, {done} were.",
            kind="provider",
            todo="Run it again; it goes on from there.",
        )
    return done
