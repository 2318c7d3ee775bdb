"""Creation of the summaries that are due: by a model, else extracted, each stored at once, until nothing is due.

Used by the work that runs after a turn, one run per conversation. All state is in the graph, so the next run continues
one that was cancelled or killed, in this process or another; if two runs make the same summary, one is stored and the
other is dropped.

A summary the model had no time for stays due. One that was extracted because the model failed is provisional: `upgrade`
has the model write it again. The model sets the deadline of a request (`TimeoutError`), since only the sender knows
when a request starts.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from functools import partial
from typing import NamedTuple
from weakref import WeakValueDictionary

import msgspec

from ragforge_tui.graph.repositories import Store
from ragforge_tui.graph.store.summary_tree import TurnSize, chosen_end, frontier_marked, summary_uuid, text_size
from ragforge_tui.graph.store.topic_names import topic_key
from ragforge_tui.llm import ChatModel
from ragforge_tui.memory.findings.keeper import (
    FindingKeeper,
    ModelChange,
    UnkeptFindings,
    known_line,
    relevant_findings,
)
from ragforge_tui.memory.keyterms import same_forms
from ragforge_tui.memory.language import language_of
from ragforge_tui.memory.prose import clean_text, cut_before_end
from ragforge_tui.memory.summaries import prompt
from ragforge_tui.memory.summaries.draft import (
    MAX_FILES,
    PART_CHARS,
    Draft,
    UnusableAnswerError,
    read_answer,
)
from ragforge_tui.memory.summaries.offline.actions import calls_of
from ragforge_tui.memory.summaries.offline.extract import extract, files_of, language_of_turns
from ragforge_tui.memory.summaries.offline.levels import extract_conversation, extract_over, joined_files
from ragforge_tui.memory.summaries.plan import (
    Due,
    Pending,
    due_for_rewrite,
    frontier,
    next_due,
    next_provisional,
    pending,
)
from ragforge_tui.settings.schema import SummarizationSettings
from ragforge_tui.shared.errors import GraphError, ModelError
from ragforge_tui.shared.events import (
    ConversationChanged,
    Event,
    SummaryCreated,
    SummaryFailed,
    SummaryStarted,
    TopicsChanged,
)
from ragforge_tui.shared.finding_records import KeptFinding
from ragforge_tui.shared.json_text import decode_json
from ragforge_tui.shared.records import EXTRACTIVE, Summary, Turn, now
from ragforge_tui.shared.sanitize import storable

logger = logging.getLogger(__name__)

ATTEMPTS = 2
MAX_TOOLS = 20
_KNOWN_TOPICS = 40
_RECENT_TURNS = 20
_MOST_REFUSED = 20
"""Consecutive summaries that another process may store first before a run gives up."""


_LATE = "the model did not answer in time"


Locks = WeakValueDictionary[str, asyncio.Lock]


class _Source(msgspec.Struct, kw_only=True):
    """Material of a summary: turns at level 1, summaries of the level below at higher levels.

    Attributes:
        known: Findings of earlier turns that the model was shown, in the order of their numbers.
    """

    turns: list[Turn] = []
    children: list[Summary] = []
    tools: list[str] = []
    language: str = ""
    known: list[KeptFinding] = []


class _Refreshed(NamedTuple):
    """Stored text on a whole conversation, the author of the new text, and whether the old text was kept."""

    text: str
    made_by: str
    kept: bool


class Summarizer:
    """Writer of the summaries of conversations in one graph.

    Args:
        store: Store for the summaries.
        settings: Thresholds at which one is due.
        model: Model that writes them; with None or the built-in assistant they are extracted.
        emit: Receives an event for each summary that is started, stored or abandoned.
        locks: Locks of the conversations that a model summarises, shared by all writers of this process.
    """

    def __init__(
        self,
        store: Store,
        settings: SummarizationSettings,
        model: ChatModel | None,
        emit: Callable[[Event], None],
        locks: Locks | None = None,
    ) -> None:
        self._store = store
        self._settings = settings
        self._model = model if model is not None and not model.offline else None
        self._emit = emit
        self._locks: Locks = WeakValueDictionary() if locks is None else locks

    async def run_due(self, conversation_id: str, *, known: Collection[str] | None = None) -> list[Summary]:
        """Make every summary that is due, on all levels, and return those stored by this call.

        A summary that the graph refuses, or the model has no time for, is reported by an event and tried again by the
        next call. The text on the whole conversation is extracted where no model wrote one; `upgrade` lets one do so.

        Args:
            known: Ids of the summaries that the caller has; an event reports the others, such as those that a branch
                made of shared turns. None: it has all.

        Raises:
            NotFoundError: There is no such conversation.
        """
        if not self._settings.enabled:
            return []
        made: list[Summary] = []
        async with await self._lock(conversation_id):
            try:
                await self._make_all(conversation_id, made, known)
                if made:
                    await self._emit_topics(conversation_id, made)
                    await self._refresh(conversation_id, None)
            except (GraphError, TimeoutError) as error:
                logger.warning("summaries of %s have to wait: %s", conversation_id, str(error) or _LATE)
        return made

    async def upgrade(self, conversation_id: str, *, most: int, refused: set[str]) -> list[Summary]:
        """Replace extracted summaries by the model's: the newest first, then the text on the whole conversation.

        If the model or the graph fails, it ends early and keeps the summaries made so far. Without a model it does
        nothing.

        Args:
            most: Most summaries to write.
            refused: Ids to skip; ids for which the model's answer was unusable are added.

        Raises:
            NotFoundError: There is no such conversation.
        """
        model = self._model
        made: list[Summary] = []
        if model is None or not self._settings.enabled:
            return made
        async with await self._lock(conversation_id):
            try:
                for _ in range(most):
                    tree = await self._store.summaries.of(conversation_id, texts=False)
                    extracted = next_provisional(tree, refused)
                    if extracted is None:
                        break
                    if stored := await self._rewrite(model, extracted, tree):
                        made.append(stored)
                    else:
                        refused.add(extracted.uuid)
                if made:
                    await self._emit_topics(conversation_id, made)
                up_to = chosen_end(await self._store.summaries.of(conversation_id, texts=False), 1)
                stale = await self._store.summaries.has_stale_summary(conversation_id, up_to)
                if made or (stale and conversation_id not in refused):
                    refreshed = await self._refresh(conversation_id, model, provisional=False)
                    if refreshed.made_by == EXTRACTIVE:
                        refused.add(conversation_id)
            except (GraphError, ModelError, TimeoutError) as error:
                logger.warning("extracted summaries of %s have to wait: %s", conversation_id, str(error) or _LATE)
        return made

    async def summarize_conversation(self, conversation_id: str) -> str:
        """Write and store two or three sentences on the subject of the conversation, and return the stored text.

        Raises:
            NotFoundError: There is no such conversation.
            GraphError: They could not be stored.
            ModelError: The model wrote none, and its earlier text was kept.
        """
        refreshed = await self._refresh(conversation_id, self._model)
        if refreshed.kept and self._model is not None:
            raise ModelError(
                f"{self._model.name} wrote no summary of the conversation. The existing one was kept.",
                todo="Try again later.",
                kind="provider",
            )
        return refreshed.text

    async def pending(self, conversation_id: str) -> list[Pending]:
        """Return how far the conversation is from its next summaries, by level."""
        tree, sizes = await self._state(conversation_id)
        return pending(tree, sizes, self._settings)

    async def _lock(self, conversation_id: str) -> AbstractAsyncContextManager[None]:
        """Return a lock on the turns that a conversation shares with its branches; an extract needs none."""
        if self._model is None:
            return nullcontext()
        return self._locks.setdefault(await self._store.summaries.root(conversation_id), asyncio.Lock())

    async def _state(self, conversation_id: str) -> tuple[list[Summary], list[TurnSize]]:
        tree = await self._store.summaries.of(conversation_id, texts=False)
        return tree, await self._store.summaries.turn_sizes(conversation_id, start=chosen_end(tree, 1) + 1)

    async def _make_all(self, conversation_id: str, made: list[Summary], known: Collection[str] | None) -> None:
        tree, sizes = await self._state(conversation_id)
        # A run that was killed may have left some.
        await self._keep_findings({conversation_id, *(one.conversation_id for one in tree)})
        if known is not None:
            await self._emit_created(conversation_id, [one.uuid for one in tree if one.uuid not in known])
        refused = 0
        while due := next_due(tree, sizes, self._settings):
            stored = await self._make(conversation_id, due, tree)
            if stored is None:
                refused += 1
                if refused > _MOST_REFUSED:
                    what = f"The summaries of {conversation_id} are stuck at turn {due.start}."
                    self._emit(_failed(_started(conversation_id, due), what))
                    raise GraphError(what)
                tree, sizes = await self._state(conversation_id)
                await self._emit_existing(conversation_id, tree, due)
                continue
            refused = 0
            made.append(stored)
            tree = frontier_marked([*tree, stored])

    async def _make(self, conversation_id: str, due: Due, tree: Sequence[Summary]) -> Summary | None:
        started = _started(conversation_id, due)
        self._emit(started)
        try:
            draft, source = await self._write(conversation_id, due, tree)
            owner = await self._store.summaries.owner(conversation_id, due.level, due.start, due.end, due.children)
            summary = _summary(owner, due, draft, source.tools)
            stored = await self._store_summary(summary, draft, source.known)
        except (GraphError, TimeoutError, asyncio.CancelledError) as error:
            match error:
                case GraphError():
                    reason = str(error)
                case TimeoutError():
                    reason = f"{_LATE[0].upper()}{_LATE[1:]}. The summary is retried later."
                case _:
                    reason = "It was cancelled."
            self._emit(_failed(started, reason))
            raise
        if stored is not None:
            self._emit(SummaryCreated(conversation_id=conversation_id, summary=stored))
        return stored

    async def _rewrite(self, model: ChatModel, extracted: Summary, tree: Sequence[Summary]) -> Summary | None:
        """Replace an extracted summary by the model's and return it; None if its answer cannot be used.

        Raises:
            ModelError: The model failed.
            TimeoutError: It did not answer in time.
        """
        conversation_id = extracted.conversation_id  # of the ancestor, if a branch shares it
        due = due_for_rewrite(extracted, tree)
        source = await self._source(conversation_id, due)
        draft = await self._by_model(model, conversation_id, due, source)
        if draft is None:
            return None
        summary = msgspec.structs.replace(_summary(conversation_id, due, draft, source.tools), uuid=extracted.uuid)
        stored = await self._store_summary(summary, draft, source.known)
        if stored is not None:
            self._emit(SummaryCreated(conversation_id=conversation_id, summary=stored))
        return stored

    async def _store_summary(self, summary: Summary, draft: Draft, known: Sequence[KeptFinding]) -> Summary | None:
        """Store a summary, and after it its findings and what its model reports of those it was shown."""
        changes = [
            ModelChange(known[change.known - 1].uuid, change.turn, change.new)
            for change in draft.changes
            if change.known <= len(known)
        ]
        unkept = ""
        if changes or summary.key_findings:
            unkept = storable(msgspec.json.encode(UnkeptFindings(summary.uuid, changes)).decode())
        stored = await self._store.summaries.store(summary, draft.topics, draft.links, unkept=unkept)
        if stored is not None:
            await self._keep_findings([stored.conversation_id])
        return stored

    async def _keep_findings(self, conversation_ids: Collection[str]) -> None:
        """Store the findings of summaries whose findings are not stored yet."""
        for conversation_id in conversation_ids:
            for unkept in await self._store.findings.unkept(conversation_id):
                found = decode_json(unkept, UnkeptFindings)
                keeper = FindingKeeper(self._store, await self._store.conversations.get(conversation_id))
                for one in await self._store.summaries.by_id([found.summary]):
                    await keeper.noted(one.key_findings, one.made_by, one.end_turn_index, found.changes)
                await self._store.findings.set_kept(conversation_id, unkept)

    async def _emit_existing(self, conversation_id: str, tree: Sequence[Summary], due: Due) -> None:
        """Emit the existing summary of these turns, which another process stored first."""
        await self._emit_created(
            conversation_id,
            [s.uuid for s in tree if s.level == due.level and s.start_turn_index <= due.start <= s.end_turn_index],
        )

    async def _emit_created(self, conversation_id: str, uuids: Sequence[str]) -> None:
        for summary in await self._store.summaries.by_id(uuids) if uuids else ():
            self._emit(SummaryCreated(conversation_id=conversation_id, summary=summary))

    async def _write(self, conversation_id: str, due: Due, tree: Sequence[Summary]) -> tuple[Draft, _Source]:
        """Return the draft of a summary, and what it was made from."""
        source = await self._source(conversation_id, due)
        draft = None
        if self._model is not None:
            try:
                draft = await self._by_model(self._model, conversation_id, due, source)
            except ModelError as error:
                logger.warning("%s gave no summary: %s", self._model.name, error)
        return draft or await self._extracted(conversation_id, source, tree), source

    async def _source(self, conversation_id: str, due: Due) -> _Source:
        if due.level > 1:
            children = await self._store.summaries.by_id([child.uuid for child in due.children])
            tools = [tool for child in children for tool in child.tools_used]
            language = language_of("\n".join(child.conversation_summary for child in children))
            return _Source(children=children, tools=list(dict.fromkeys(tools))[:MAX_TOOLS], language=language)
        turns = await self._store.turns.between(conversation_id, start=due.start, end=due.end + 1)
        tools = [call.tool_name for _, call in calls_of(turns)]
        return _Source(turns=turns, tools=list(dict.fromkeys(tools))[:MAX_TOOLS], language=language_of_turns(turns))

    async def _by_model(self, model: ChatModel, conversation_id: str, due: Due, source: _Source) -> Draft | None:
        """Return the model's summary; None if two answers were unusable.

        Raises:
            ModelError: The model failed.
            TimeoutError: It did not answer in time.
        """
        turns, children = source.turns, source.children
        request = partial(prompt.over_summaries, children) if children else partial(prompt.over_turns, turns)
        topics = await self._known_topics(conversation_id)
        source.known = await self._known_findings(conversation_id, due, source)
        messages = await asyncio.to_thread(
            request,
            language=source.language,
            window=model.context_window,
            known_topics=topics,
            known_findings=[known_line(one, conversation_id) for one in source.known],
        )
        cited = [turn.turn_index for turn in turns]
        if children:
            cited = sorted({turn for child in children for f in child.key_findings for turn in f.turns})
            cited = cited or list(range(due.start, due.end + 1))
        draft = await self._ask(model, messages, cited, acted=bool(source.tools), known=len(source.known))
        if draft is not None:
            files = [*(joined_files(children) if children else files_of(turns)), *draft.files_mentioned]
            draft.files_mentioned = list(dict.fromkeys(files))[:MAX_FILES]
            if turns and source.tools and not draft.actions_summary:
                extracted = await asyncio.to_thread(extract, turns, language=source.language)
                draft.actions_summary = extracted.actions_summary
        return draft

    async def _extracted(self, conversation_id: str, source: _Source, tree: Sequence[Summary]) -> Draft:
        if source.children:
            draft = await asyncio.to_thread(extract_over, source.children, language=source.language)
            topics = await self._known_topics(conversation_id)
            draft.links = same_forms([*topics, *(topic.name for topic in draft.topics)])
            return draft
        names = list(dict.fromkeys(name for summary in tree if summary.level == 1 for name in summary.topics))
        return await asyncio.to_thread(extract, source.turns, language=source.language, known_topics=names)

    async def _ask(
        self, model: ChatModel, messages: prompt.ChatMessages, cited: Sequence[int], *, acted: bool, known: int
    ) -> Draft | None:
        """Return the model's summary; None if `ATTEMPTS` answers were unusable."""
        request = messages
        for attempt in range(1, ATTEMPTS + 1):
            text, _ = await model.complete(request, max_tokens=prompt.ANSWER_TOKENS)
            try:
                material = str(messages[-1]["content"])
                draft = read_answer(text, turns=cited, material=material, acted=acted, known=known)
            except UnusableAnswerError as error:
                logger.info("answer %s of %s is not a summary: %s", attempt, model.name, error)
                request = prompt.retry(messages, text, error.problems)
            else:
                draft.made_by = model.name
                return draft
        return None

    async def _known_findings(self, conversation_id: str, due: Due, source: _Source) -> list[KeptFinding]:
        """Return the findings that these turns may close or replace, the most likely first."""
        keeper = FindingKeeper(self._store, await self._store.conversations.get(conversation_id))
        current = await keeper.current()
        older = [one for one in current if one.conversation_id != conversation_id or one.turn_index <= due.end]
        texts = [*map(prompt.format_turn, source.turns), *map(prompt.format_summary, source.children)]
        return await asyncio.to_thread(relevant_findings, older, "\n".join(texts), conversation_id)

    async def _known_topics(self, conversation_id: str) -> list[str]:
        """Return the topics a summary may reuse: the conversation's own, and its folder's unless it is private."""
        own = await self._store.topics.search(conversation_id=conversation_id, limit=_KNOWN_TOPICS)
        conversation = await self._store.conversations.get(conversation_id)
        near = []
        if not conversation.private:
            near = await self._store.topics.search(workspace=conversation.workspace, limit=_KNOWN_TOPICS)
        return list({topic_key(topic.name): topic.name for topic in [*own, *near]}.values())[:_KNOWN_TOPICS]

    async def _emit_topics(self, conversation_id: str, made: Sequence[Summary]) -> None:
        keys = {topic_key(name) for summary in made for name in summary.topics}
        topics = await self._store.topics.search(conversation_id=conversation_id, limit=1_000)
        changed = [t for t in topics if keys.intersection(topic_key(name) for name in (t.name, *t.aliases))]
        if changed:
            self._emit(TopicsChanged(conversation_id=conversation_id, topics=changed))

    async def _refresh(self, conversation_id: str, model: ChatModel | None, *, provisional: bool = True) -> _Refreshed:
        """Write and store the text on the conversation as a whole.

        Args:
            model: The model that writes it; None: it is extracted.
            provisional: Whether to extract it if the model fails; otherwise the model's error is raised.
        """
        tree = await self._store.summaries.of(conversation_id, texts=False)
        top = await self._store.summaries.by_id([summary.uuid for summary in frontier(tree)])
        _, last = await self._store.turns.range(conversation_id)
        first = max(chosen_end(tree, 1) + 1, last - _RECENT_TURNS + 1)
        recent = await self._store.turns.between(conversation_id, start=first, end=last + 1)
        opening = await self._store.turns.between(conversation_id, start=1, end=2)
        goal = next((m.content for turn in opening for m in turn.messages if m.role == "user"), "")
        language = language_of("\n".join([goal, *(s.conversation_summary for s in top)])) or language_of_turns(recent)
        text, made_by = "", EXTRACTIVE
        if model is not None and (top or recent):
            try:
                text, made_by = await self._conversation_text(model, top, recent, language), model.name
            except (ModelError, TimeoutError) as error:
                if not provisional:
                    raise
                logger.warning("%s gave no summary of %s: %s", model.name, conversation_id, str(error) or _LATE)
        if not text:
            text = await asyncio.to_thread(extract_conversation, top, recent, goal=goal, language=language)
            made_by = EXTRACTIVE
        if not text:
            return _Refreshed("", "", kept=False)
        changed = await self._store.summaries.set_conversation_summary(
            conversation_id, text, made_by=made_by, up_to=chosen_end(tree, 1)
        )
        self._emit(ConversationChanged(conversation=changed))
        return _Refreshed(changed.summary, made_by, kept=changed.summary != storable(text))

    async def _conversation_text(
        self, model: ChatModel, top: Sequence[Summary], recent: Sequence[Turn], language: str
    ) -> str:
        """Return the model's text on the conversation as a whole; empty if its answer cannot be used."""
        material = "\n\n".join([*map(prompt.format_summary, top), *map(prompt.format_turn, recent)])
        messages = await asyncio.to_thread(
            prompt.over_conversation, material, language=language, window=model.context_window
        )
        text, _ = await model.complete(messages, max_tokens=prompt.ANSWER_TOKENS)
        answer = clean_text(text)
        return "" if answer.startswith(("{", "[", "<<<")) else cut_before_end(answer, PART_CHARS)


def _started(conversation_id: str, due: Due) -> SummaryStarted:
    return SummaryStarted(
        conversation_id=conversation_id, level=due.level, start_turn_index=due.start, end_turn_index=due.end
    )


def _failed(started: SummaryStarted, reason: str) -> SummaryFailed:
    return SummaryFailed(
        conversation_id=started.conversation_id,
        level=started.level,
        start_turn_index=started.start_turn_index,
        end_turn_index=started.end_turn_index,
        reason=reason,
    )


def _summary(conversation_id: str, due: Due, draft: Draft, tools: list[str]) -> Summary:
    summary = Summary(
        uuid=summary_uuid(conversation_id, due.level, due.start, due.end),
        conversation_id=conversation_id,
        level=due.level,
        ordinal=due.ordinal,
        title=draft.title,
        conversation_summary=draft.conversation_summary,
        actions_summary=draft.actions_summary,
        key_findings=draft.key_findings,
        files_mentioned=draft.files_mentioned,
        tools_used=tools,
        topics=[topic.name for topic in draft.topics],
        start_turn_index=due.start,
        end_turn_index=due.end,
        turn_count=due.turn_count,
        char_range_start=due.char_start,
        char_range_end=due.char_end,
        parent_summaries=[child.uuid for child in due.children],
        made_by=draft.made_by,
        created_at=now(),
    )
    summary.summary_char_count = text_size(summary)
    return summary
