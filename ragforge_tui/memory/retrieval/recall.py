"""Recall for one open conversation: earlier turns, from this and other conversations, relevant to a new message.

Used by the conversation for the context of a turn, and by the memory tools. Reads from an index in memory for this
conversation and from the graph for others; an `IndexSync` updates both in the background.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from typing import TypedDict, Unpack

import msgspec

from ragforge_tui.graph import Store
from ragforge_tui.graph.store.other_conversations import Others
from ragforge_tui.graph.store.search import Scope
from ragforge_tui.llm.tokens import count_tokens
from ragforge_tui.memory.findings.settled import NOTHING_SETTLED
from ragforge_tui.memory.language import language_of
from ragforge_tui.memory.retrieval.candidates import (
    Candidate,
    SummaryCandidate,
    SummaryStems,
    findings_in,
    holding,
    own_summary,
    stems_of,
    summaries_elsewhere,
    turns_elsewhere,
)
from ragforge_tui.memory.retrieval.index import ConversationIndex
from ragforge_tui.memory.retrieval.index_sync import IndexSync
from ragforge_tui.memory.retrieval.keys import shown
from ragforge_tui.memory.retrieval.packing import Recalled, drop_to_fit, pack
from ragforge_tui.memory.retrieval.parts import parts_of
from ragforge_tui.memory.retrieval.question import (
    FEWEST_TURNS,
    Question,
    Questions,
    asks_for_history,
    context_of,
    patience,
)
from ragforge_tui.memory.retrieval.ranking import (
    chosen,
    covering_each_turn_once,
    measure,
    merged,
    rank,
    ranked_by_part,
    shared,
)
from ragforge_tui.memory.retrieval.reach import lineage
from ragforge_tui.memory.retrieval.recipes import CONTEXT, MOST_OTHER_TOKENS, MOST_OTHER_TURNS, OWN_PAST
from ragforge_tui.memory.retrieval.scoring import level_factor, recency
from ragforge_tui.memory.retrieval.terms import asked_words
from ragforge_tui.settings.schema import MemorySettings
from ragforge_tui.shared.errors import GraphError, RagforgeError
from ragforge_tui.shared.formatting import counted
from ragforge_tui.shared.limits import LIMITS
from ragforge_tui.shared.pace import Pace
from ragforge_tui.shared.records import NOT_SEARCHED, Summary, Turn

log = logging.getLogger(__name__)

_OTHERS_MISSED = f"Other conversations {NOT_SEARCHED}"
LATE = f"{_OTHERS_MISSED}: that took too long."
STILL_STARTING = f"{_OTHERS_MISSED}: the graph was still starting."
FEWEST_CHARS_PER_TOKEN = 3
"""A safe bound to show, without counting, that this conversation does not need all tokens."""


class _Searched(msgspec.Struct, frozen=True):
    """What a query found that takes time: its vector, and other conversations.

    Attributes:
        own: Turns of this conversation, while not all of them are in memory.
        missing: What was too late or failed, as sentences.
    """

    question: Question
    own: list[Candidate]
    turns: list[Candidate]
    summaries: list[SummaryCandidate]
    missing: list[str]


class Wanted(TypedDict, total=False):
    """What a query may recall.

    Attributes:
        exclude: Turns of this conversation that are sent anyway: they use no tokens here.
        max_tokens: Limit for the turns; `recall.max_tokens` unless given. Summaries have a limit of their own.
        own: Whether to search this conversation; by default yes.
        summaries: Whether to search summaries and their findings too; by default yes.
        exclude_summaries: Ids of summaries that are sent anyway.
        most: Most turns to return; None for as many as fit.
    """

    exclude: Collection[int]
    max_tokens: int
    own: bool
    summaries: bool
    exclude_summaries: Collection[str]
    most: int | None


class Recall:
    """Search over the past of one open conversation and of others, with the upkeep of its index.

    Args:
        pace: When background work may use the processor.
        new: Whether the conversation has no turns that would have to be loaded.
    """

    def __init__(
        self,
        questions: Questions,
        settings: MemorySettings,
        *,
        conversation_id: str,
        workspace: str,
        pace: Pace | None = None,
        new: bool = False,
    ) -> None:
        self.index = ConversationIndex()
        self.settled = NOTHING_SETTLED
        """Findings that hold no more: what repeats them is not recalled as current."""
        self._questions = questions
        self._settings = settings
        self._model = questions.model
        self._id = conversation_id
        self._workspace = workspace
        self._sync = IndexSync(self.index, self._model, conversation_id, pace)
        self._loaded = new
        """Whether all turns that were stored when it was opened are in the index."""
        self._begun: tuple[tuple[str, str], asyncio.Task[_Searched]] | None = None
        self._summaries: list[Summary] = []
        self._summary_stems: dict[str, SummaryStems] = {}
        self._sync_lock = asyncio.Lock()
        """Held while keys are stored: two callers must not mix their writes for the same turn."""

    @property
    def reason(self) -> str:
        """Reason for which vectors are not searched although they are enabled; empty if they are."""
        return self._model.reason or self._model.failure

    # --- keeping up to date, in the background ---------------------------------------------------------------------

    async def connect(self) -> None:
        """Find out whether the vectors in the graph are of this model; without it only words are searched."""
        await self._questions.claimed_store()

    async def load(self) -> None:
        """Read the conversation into the index: its words, and the vectors stored so far.

        Queries made meanwhile are answered from the turns read so far; nothing is stored here.
        """
        store = await self._questions.claimed_store()
        async with self._sync_lock:
            await self._sync.load(store)
        self._loaded = True

    async def store_missing(self) -> None:
        """Store the keys that were missing in the graph, and sample word frequencies for faster queries."""
        store = await self._questions.store()
        async with self._sync_lock:
            await self._sync.store_missing(store)
        try:
            await self._questions.frequencies.learn(store)
        except RagforgeError as error:
            # It only makes queries faster; without it they use all their words.
            log.info("word frequencies were not sampled: %s", error)

    async def turn_stored(self, turn: Turn) -> None:
        """Add a turn that has ended: index, keys of it and its neighbours, its sitting. `embed` comes later."""
        store = await self._questions.claimed_store()
        async with self._sync_lock:
            await self._sync.turn_stored(store, turn)

    async def summaries_changed(self, summaries: Sequence[Summary]) -> None:
        """Update the index from the current summaries: their texts, and their facts in the keys of the turns cited."""
        store = await self._questions.claimed_store()
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
        async with self._sync_lock:
            await self._sync.facts_changed(store, facts)
        await self._keep_stems()

    async def _keep_stems(self) -> None:
        """Make the stems of new and changed summaries; a question that comes earlier stems their texts itself."""
        summaries, known = self._summaries, self._summary_stems
        changed = [one for one in summaries if one.uuid not in known or known[one.uuid].summary != one]
        made = {stems.summary.uuid: stems for stems in await self._sync.in_pieces(stems_of, changed)}
        if summaries is self._summaries:
            self._summary_stems = {one.uuid: made.get(one.uuid) or known[one.uuid] for one in summaries}

    async def embed(self) -> None:
        """Make the missing vectors; each is used as soon as its batch is stored.

        May take minutes after an import. After an interruption, a repeated call continues with the rest.
        """
        store = await self._questions.claimed_store()
        await self._sync.embed_missing(store)
        await self._read_summary_vectors(store)
        await store.vectors.open_changed_indexes()

    async def _read_summary_vectors(self, store: Store) -> None:
        summaries = self._summaries
        vectors = await store.vectors.read("Summary", [summary.uuid for summary in summaries], self._model.name or "-")
        if summaries is self._summaries:
            await asyncio.to_thread(self.index.set_summaries, summaries, vectors)

    def progress(self) -> tuple[int, int]:
        """Return how many turns wait for no vector, and how many are loaded; equal without a model to make vectors."""
        turns = self.index.turns
        return turns - (len(self._sync.without_vector()) if self._model.name else 0), turns

    def percent(self) -> int:
        """Return the share of the conversation's turns that can be searched by all there is, in percent."""
        return 100 * self.progress()[0] // max(self._sync.stored_turns, 1)

    def left(self) -> str:
        """Return what of the conversation cannot be searched yet, as a sentence; empty if all of it can."""
        made, loaded = self.progress()
        stored = self._sync.stored_turns
        parts = []
        if loaded < stored:
            parts.append(f"{counted(stored - loaded)} of {counted(stored)} turns are not loaded yet: found by words")
        if made < loaded:
            parts.append(
                f"vectors of {counted(loaded - made)} of {counted(loaded)} turns are still being made: found by words"
            )
        return _sentence(parts)

    # --- asking ----------------------------------------------------------------------------------------------------

    async def recall(self, query: str, *, seconds: float | None = None, **wanted: Unpack[Wanted]) -> Recalled:
        """Return turns, findings and summaries relevant to a query, the turns within a number of tokens; labels count.

        A query that asks for nothing recalls nothing: one without words of its own ("go on"), or one that has nothing
        to do with any turn. This conversation is ranked in memory, as far as it is loaded. The query's vector and other
        conversations may take time; those that are late are left out.

        Args:
            seconds: Most seconds to wait for the model and the graph; None waits for the vector as long as the recipe
                says, and for the graph without limit.
        """
        if not self._asked(query):
            return Recalled(reason=self.reason)
        return await self._recalled(await self._searched(query, seconds), wanted)

    def begin(self, query: str) -> None:
        """Start the search for `for_context`, which is called with the same query once its message is stored."""
        self._drop_begun()
        if self._asked(query):
            self._begun = self._with_context(query), asyncio.create_task(self._searched(query, self._patience(query)))

    async def _result(self, query: str) -> _Searched:
        """Return the result of the search begun for a query, or of a new one."""
        if self._begun is not None and self._begun[0] == self._with_context(query):
            task, self._begun = self._begun[1], None
            return await task
        self._drop_begun()
        return await self._searched(query, self._patience(query))

    def _drop_begun(self) -> None:
        begun, self._begun = self._begun, None
        if begun is not None:
            begun[1].cancel()

    def _with_context(self, query: str) -> tuple[str, str]:
        """Return a query with what it refers to in the turn before it, which may be indexed meanwhile."""
        return query, context_of(query, self.index.turn_text(self.index.last))

    async def for_context(self, query: str, **wanted: Unpack[Wanted]) -> Recalled:
        """Return the result of `recall` within `LIMITS`; after a failure only the reason, in `missing`."""
        if not self._asked(query):
            return Recalled(reason=self.reason)
        try:
            return await self._recalled(await self._result(query), wanted)
        except GraphError as error:
            log.warning("recall skipped: %s", error)
        except Exception:
            # A turn without recalled passages is better than a failed turn.
            log.exception("recall failed")
        return Recalled(missing=[f"Earlier turns {NOT_SEARCHED}: recall failed."])

    def _patience(self, query: str) -> float:
        return patience(query, first=not self.index.turns)

    async def search(self, query: str, *, limit: int) -> list[Candidate]:
        """Return the turns of this conversation that a query asks for, best first; none if none is relevant.

        Searches by words, and by meaning where turns have vectors already. The query is used as it is: a short one is
        not completed by the previous message.
        """
        if not self._asked(query):
            return []
        question = await self._questions.ask(query, language=self.index.language)
        return (await asyncio.to_thread(self._own, question, ()))[:limit]

    async def _searched(self, query: str, seconds: float | None) -> _Searched:
        """Return the question with its vector, and what other conversations have on it.

        Args:
            seconds: As for `recall`.
        """
        until = None if seconds is None else asyncio.get_running_loop().time() + seconds
        # The scope does not depend on the question, so both are found out at once.
        question, where = await asyncio.gather(
            self._questions.ask(
                query,
                None if seconds is None else seconds * LIMITS.vector_share,
                context=self._with_context(query)[1],
                language=self.index.language,
                parts=parts_of(query),
            ),
            self._others(until),
        )
        missing = []
        if question.vector is None and self._model.name:
            missing.append("The message had no vector in time: found by words.")
        own, (fetched, foreign, late) = await asyncio.gather(
            self._not_loaded(question, until), self._from_others(question, until, where)
        )
        return _Searched(question, own, fetched, foreign, [*missing, late] if late else missing)

    async def _recalled(self, searched: _Searched, wanted: Wanted) -> Recalled:
        """Rank this conversation for a question, and choose from it and from what others had."""
        question, exclude = searched.question, wanted.get("exclude", ())
        own, tokens = wanted.get("own", True), wanted.get("max_tokens", self._settings.recall.max_tokens)
        left = self.left() if own else ""

        def work() -> Recalled:
            here = self._here(question)
            mine = self._own_by_part(here, exclude) if own else []
            if own and searched.own:
                unread = (turn for turn in searched.own if turn.turn_index not in self.index)
                mine = [*merged(mine, [turn for turn in unread if turn.turn_index not in exclude])]
            past = asks_for_history(question.text)
            others = searched.turns if past else searched.turns[:MOST_OTHER_TURNS]
            recalled = self._packed(mine, others, tokens, wanted.get("most"), None if past else MOST_OTHER_TOKENS)
            if wanted.get("summaries", True):
                rated = [*(self._own_summaries(here) if own else []), *searched.summaries]
                similar = self._settings.recall.min_score
                findings = (one for one in findings_in(here, rated) if not _sent(one, one.finding.turns, exclude))
                valid = holding(findings, self.settled, past=past)
                recalled.findings = rank(here, valid, CONTEXT.findings, similar)
                excluded = wanted.get("exclude_summaries", ())
                recalled.summaries = self._summaries_of(here, rated, recalled.turns, {*exclude}, excluded)
                if not past:
                    recalled.summaries = _few_of_others(recalled.summaries, recalled.turns)
            recalled.missing = [*([left] if left else []), *searched.missing]
            return recalled

        return await asyncio.to_thread(work)

    def _asked(self, query: str) -> list[str]:
        return asked_words(query, language_of(query) or self.index.language)

    def _here(self, question: Question) -> Question:
        """Return a question with the rarities of its words in this conversation, unless that is too short."""
        if self.index.turns < FEWEST_TURNS:
            return question
        return msgspec.structs.replace(
            question,
            rarities=self.index.rarities(question.rarities),
            parts=tuple(map(self._here, question.parts)),
        )

    async def _others(self, until: float | None) -> tuple[Others | None, str]:
        """Return the conversations that may be recalled from; if the graph fails or is late, none and a sentence."""
        scope = self._settings.recall.scope
        if scope == "none":
            return None, ""
        try:
            async with asyncio.timeout_at(until):
                store = await self._questions.store()
                workspace = self._workspace if scope == "workspace" else None
                return await store.other_conversations.scope(self._sync.conversations, workspace), ""
        except (GraphError, TimeoutError) as error:
            return None, _not_searched(error)

    async def _not_loaded(self, question: Question, until: float | None) -> list[Candidate]:
        """Return turns of this conversation from the graph, as long as not all of them are in memory.

        Of these the graph knows words and, once they were made, vectors. If it fails or is late, there are none.
        """
        if self._loaded:
            return []
        try:
            async with asyncio.timeout_at(until):
                store = await self._questions.store()
                line = await lineage(store, self._id)
                found = await turns_elsewhere(
                    store,
                    question,
                    Others(Scope(list(line), []), None, 1.0),
                    CONTEXT.loading,
                    {uuid: [(1, last)] for uuid, last in line.items()},
                    own=True,
                )
        except (GraphError, TimeoutError) as error:
            log.warning("turns that are not loaded were not searched: %s", str(error) or "that took too long")
            return []
        return rank(question, found, CONTEXT.loading, self._settings.recall.min_score)

    async def _from_others(
        self, question: Question, until: float | None, where: tuple[Others | None, str]
    ) -> tuple[list[Candidate], list[SummaryCandidate], str]:
        """Return turns and summaries of other conversations; if the graph fails or is late, none and a sentence."""
        others, late = where
        if others is None or others.empty:
            return [], [], late
        try:
            async with asyncio.timeout_at(until):
                store = await self._questions.store()
                fetched, foreign = await asyncio.gather(
                    turns_elsewhere(store, question, others, CONTEXT.turns),
                    summaries_elsewhere(store, question, others, CONTEXT.summaries.asked),
                )
        except (GraphError, TimeoutError) as error:
            return [], [], _not_searched(error)
        return ranked_by_part(question, fetched, CONTEXT.turns, self._settings.recall.min_score), foreign, ""

    def _own_by_part(self, question: Question, exclude: Collection[int]) -> list[Candidate]:
        """Return what `_own` does; if a question has parts, with a fair share for each."""
        whole = self._own(question, exclude)
        if not whole or not question.parts:
            return whole
        return shared(whole, [self._own(part, exclude) for part in question.parts])

    def _own(self, question: Question, exclude: Collection[int]) -> list[Candidate]:
        """Return the turns of this conversation best first; none if not one of them is relevant."""
        # Who asks for the past wants it though only a word is in common.
        pick = OWN_PAST if asks_for_history(question.text) else CONTEXT.own
        ranked = self.index.rank(
            question.text, question.vector, context=question.context, exclude=exclude, limit=pick.asked
        )
        matched = self.index.matched(question.rarities)
        found = []
        for turn in ranked:
            if turn.score < ranked[0].score * pick.tail:
                break
            date = self.index.timestamp(turn.turn_index)
            assert date is not None
            key = self.index.turn_text(turn.turn_index)
            found.append(
                Candidate(
                    conversation_id=self._id,
                    turn_index=turn.turn_index,
                    date=date,
                    text=shown(key),
                    tokens=self.index.tokens(turn.turn_index),
                    vector=self.index.vector(turn.turn_index),
                    matched=matched.get(turn.turn_index, 0.0),
                    score=turn.score,
                )
            )
        return chosen(question, measure(question, found, pick, self._settings.recall.min_score), pick)

    def _packed(
        self,
        mine: Sequence[Candidate],
        others: Sequence[Candidate],
        tokens: int,
        most: int | None,
        most_of_others: int | None,
    ) -> Recalled:
        """Pack turns of both rankings; others get their share, and whatever this conversation does not use.

        Args:
            most_of_others: Most tokens of others; None for no limit of their own.
        """
        needed = sum(len(candidate.text) for candidate in mine) // FEWEST_CHARS_PER_TOKEN
        theirs = max(int(tokens * self._settings.recall.other_conversations_share), tokens - needed)
        if most_of_others is not None:
            theirs = min(theirs, most_of_others)
        packed = pack(merged(mine, others), tokens, others_tokens=theirs)[:most]
        turns, text, used = drop_to_fit(packed, tokens)
        return Recalled(turns=turns, text=text, tokens=used, reason=self.reason)

    def _own_summaries(self, question: Question) -> list[SummaryCandidate]:
        return [
            own_summary(
                question,
                summary,
                self.index.ended(summary.end_turn_index),
                self.index.summary_vector(summary.uuid),
                self._summary_stems.get(summary.uuid),
            )
            for summary in self._summaries
        ]

    def _summaries_of(
        self,
        question: Question,
        rated: Sequence[SummaryCandidate],
        recalled: Sequence[Candidate],
        sent: set[int],
        exclude: Collection[str],
    ) -> list[SummaryCandidate]:
        """Return the relevant summaries, best first; none covers a turn that another one covers or that is recalled.

        Args:
            recalled: Recalled turns.
            sent: Turns of this conversation that are sent anyway; summaries of these alone are left out.
            exclude: Ids of summaries that are sent anyway.
        """
        settings = self._settings.recall
        found = []
        for one in rated:
            if one.summary.uuid in exclude or _sent(one, range(one.turn_index, one.last_turn + 1), sent):
                continue
            age = (datetime.now(UTC) - one.date).total_seconds() / 86_400
            one.factor = level_factor(one.summary.level, settings.level_boost)
            one.factor *= recency(age, settings.recency_boost, settings.recency_decay_days)
            found.append(one)
        ranked = rank(question, found, CONTEXT.summaries, settings.min_score)
        told = [(turn.conversation_id, turn.turn_index) for turn in recalled]
        return covering_each_turn_once(ranked, told)[: settings.max_summaries]


def _sent(one: Candidate, turns: Sequence[int], sent: Collection[int]) -> bool:
    """Return whether all turns that something of this conversation is about are sent anyway."""
    return one.own and bool(turns) and all(turn in sent for turn in turns)


def _few_of_others(summaries: Sequence[SummaryCandidate], turns: Sequence[Candidate]) -> list[SummaryCandidate]:
    """Return summaries without those of other conversations for which `MOST_OTHER_TOKENS` leave no room."""
    left = MOST_OTHER_TOKENS - sum(count_tokens(turn.text) for turn in turns if not turn.own)
    kept = []
    for one in summaries:
        tokens = 0 if one.own else count_tokens(one.text)
        if tokens <= left:
            kept.append(one)
            left -= tokens
    return kept


def _not_searched(error: Exception) -> str:
    """Return a sentence with the reason why other conversations were not searched."""
    sentence = f"{_OTHERS_MISSED}: {reason}." if (reason := str(error).rstrip(".")) else LATE
    log.warning("%s", sentence)
    return sentence


def _sentence(parts: Sequence[str]) -> str:
    text = "; ".join(parts)
    return f"{text[:1].upper()}{text[1:]}." if text else ""
