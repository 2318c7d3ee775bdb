"""Makes the summaries that are due: asks a model, else extracts, stores each whole, and goes on until nothing is due.

Used by whatever runs after a turn, once a conversation. Nothing is kept between runs but in the graph, so a run that
was cancelled or killed is taken up by the next one, in this process or another; of two that make the same summary one
is stored and the other's work is dropped.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from weakref import WeakValueDictionary

from ragforge_tui.config import SummarizationSettings
from ragforge_tui.errors import GraphError, ModelError
from ragforge_tui.events import (
    ConversationChanged,
    Event,
    SummaryCreated,
    SummaryFailed,
    SummaryStarted,
    TopicsChanged,
)
from ragforge_tui.graph.store import Store
from ragforge_tui.graph.summary_tree import TurnSize, chosen_end, frontier_marked, summary_uuid, text_size
from ragforge_tui.graph.topic_links import topic_key
from ragforge_tui.llm import ChatModel
from ragforge_tui.memory.language import language_of
from ragforge_tui.memory.summaries import prompt
from ragforge_tui.memory.summaries.actions import calls_of
from ragforge_tui.memory.summaries.answer import UnusableAnswerError, clean_text, read_answer
from ragforge_tui.memory.summaries.draft import MAX_FILES, PART_CHARS, Draft
from ragforge_tui.memory.summaries.extractive import extract, files_of, language_of_turns
from ragforge_tui.memory.summaries.joining import extract_conversation, extract_over, joined_files
from ragforge_tui.memory.summaries.plan import Due, Pending, frontier, next_due, pending
from ragforge_tui.memory.summaries.sentences import cut
from ragforge_tui.memory.topics import same_forms
from ragforge_tui.models import Summary, Turn, now

logger = logging.getLogger(__name__)

REQUEST_SECONDS = 120.0
"""A summary is worth no longer wait for one answer; then it is extracted."""
ATTEMPTS = 2
MAX_TOOLS = 20
_KNOWN_TOPICS = 40
_RECENT_TURNS = 20
_MOST_REFUSED = 20
"""In a row: others may be first that often, not more."""


class Summarizer:
    """Summaries of conversations in one graph.

    Args:
        store: Where they are kept.
        settings: When they are due.
        model: Who writes them; None or the built-in assistant: they are extracted.
        emit: Told of each that is begun, stored or given up.
        request_seconds: How long one answer of the model may take.
    """

    def __init__(
        self,
        store: Store,
        settings: SummarizationSettings,
        model: ChatModel | None,
        emit: Callable[[Event], None],
        *,
        request_seconds: float = REQUEST_SECONDS,
    ) -> None:
        self._store = store
        self._settings = settings
        self._model = model if model is not None and not model.offline else None
        self._emit = emit
        self._request_seconds = request_seconds
        self._running: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def run_due(self, conversation_id: str) -> list[Summary]:
        """Make every summary that is due, on all levels; those stored by this call.

        What the graph refuses is told by an event and tried again by the next call.

        Raises:
            NotFoundError: There is no such conversation.
        """
        if not self._settings.enabled:
            return []
        lock = self._running.setdefault(conversation_id, asyncio.Lock())
        made: list[Summary] = []
        async with lock:
            try:
                await self._until_done(conversation_id, made)
                if made:
                    await self._tell_topics(conversation_id, made)
                    await self._refresh(conversation_id)
            except GraphError as error:
                logger.warning("summaries of %s have to wait: %s", conversation_id, error)
        return made

    async def summarize_conversation(self, conversation_id: str) -> str:
        """Write and store the two or three sentences that say what the conversation is about.

        Raises:
            NotFoundError: There is no such conversation.
            GraphError: They could not be stored.
        """
        return await self._refresh(conversation_id)

    async def pending(self, conversation_id: str) -> list[Pending]:
        """How far the conversation is from its next summaries, by level."""
        tree, sizes = await self._state(conversation_id)
        return pending(tree, sizes, self._settings)

    async def _state(self, conversation_id: str) -> tuple[list[Summary], list[TurnSize]]:
        tree = await self._store.summaries(conversation_id, texts=False)
        return tree, await self._store.turn_sizes(conversation_id, start=chosen_end(tree, 1) + 1)

    async def _until_done(self, conversation_id: str, made: list[Summary]) -> None:
        tree, sizes = await self._state(conversation_id)
        refused = 0
        while due := next_due(tree, sizes, self._settings):
            stored = await self._make(conversation_id, due, tree)
            if stored is None:
                refused += 1
                if refused > _MOST_REFUSED:
                    what = f"The summaries of {conversation_id} do not go on from turn {due.start}."
                    self._emit(_failed(_started(conversation_id, due), what))
                    raise GraphError(what)
                tree, sizes = await self._state(conversation_id)
                await self._tell_others(conversation_id, tree, due)
                continue
            refused = 0
            made.append(stored)
            tree = frontier_marked([*tree, stored])

    async def _make(self, conversation_id: str, due: Due, tree: Sequence[Summary]) -> Summary | None:
        started = _started(conversation_id, due)
        self._emit(started)
        try:
            draft, tools = await self._written(conversation_id, due, tree)
            summary = _summary(conversation_id, due, draft, tools)
            stored = await self._store.store_summary(summary, draft.topics, draft.links)
        except (GraphError, asyncio.CancelledError) as error:
            reason = str(error) if isinstance(error, GraphError) else "It was cancelled."
            self._emit(_failed(started, reason))
            raise
        if stored is not None:
            self._emit(SummaryCreated(conversation_id=conversation_id, summary=stored))
        return stored

    async def _tell_others(self, conversation_id: str, tree: Sequence[Summary], due: Due) -> None:
        """Somebody else summarised these turns first: what is there instead of what was begun."""
        there = [s.uuid for s in tree if s.level == due.level and s.start_turn_index <= due.start <= s.end_turn_index]
        for summary in await self._store.summaries_by_id(there):
            self._emit(SummaryCreated(conversation_id=conversation_id, summary=summary))

    async def _written(self, conversation_id: str, due: Due, tree: Sequence[Summary]) -> tuple[Draft, list[str]]:
        """What the summary says, and the tools its turns used."""
        if due.level > 1:
            return await self._over_summaries(conversation_id, due)
        turns = await self._store.turns(conversation_id, start=due.start, end=due.end + 1)
        tools = list(dict.fromkeys(call.tool_name for _, call in calls_of(turns)))[:MAX_TOOLS]
        language = language_of_turns(turns)
        if self._model is not None:
            known = await self._known_topics(conversation_id)
            messages = await asyncio.to_thread(
                prompt.over_turns, turns, language=language, window=self._model.context_window, known_topics=known
            )
            cited = [turn.turn_index for turn in turns]
            if draft := await self._asked(self._model, messages, cited, acted=bool(tools)):
                draft.files_mentioned = list(dict.fromkeys([*files_of(turns), *draft.files_mentioned]))[:MAX_FILES]
                if tools and not draft.actions_summary:
                    draft.actions_summary = (await asyncio.to_thread(extract, turns, language=language)).actions_summary
                return draft, tools
        names = list(dict.fromkeys(name for summary in tree if summary.level == 1 for name in summary.topics))
        return await asyncio.to_thread(extract, turns, language=language, known_topics=names), tools

    async def _over_summaries(self, conversation_id: str, due: Due) -> tuple[Draft, list[str]]:
        children = await self._store.summaries_by_id([child.uuid for child in due.children])
        tools = list(dict.fromkeys(tool for child in children for tool in child.tools_used))[:MAX_TOOLS]
        language = language_of("\n".join(child.conversation_summary for child in children))
        known = await self._known_topics(conversation_id)
        if self._model is not None:
            messages = await asyncio.to_thread(
                prompt.over_summaries,
                children,
                language=language,
                window=self._model.context_window,
                known_topics=known,
            )
            cited = sorted({turn for child in children for f in child.key_findings for turn in f.turns})
            cited = cited or list(range(due.start, due.end + 1))
            if draft := await self._asked(self._model, messages, cited, acted=bool(tools)):
                files = [*joined_files(children), *draft.files_mentioned]
                draft.files_mentioned = list(dict.fromkeys(files))[:MAX_FILES]
                return draft, tools
        draft = await asyncio.to_thread(extract_over, children, language=language)
        draft.links = same_forms([*known, *(topic.name for topic in draft.topics)])
        return draft, tools

    async def _asked(
        self, model: ChatModel, messages: prompt.ChatMessages, cited: Sequence[int], *, acted: bool
    ) -> Draft | None:
        """The model's summary; None when it gave none that can be used, twice, or failed."""
        request = messages
        for attempt in range(1, ATTEMPTS + 1):
            text = await self._complete(model, request)
            if text is None:
                return None
            try:
                draft = read_answer(text, turns=cited, material=str(messages[-1]["content"]), acted=acted)
            except UnusableAnswerError as error:
                logger.info("answer %s of %s is no summary: %s", attempt, model.name, error)
                request = prompt.again(messages, text, error.problems)
            else:
                draft.made_by = model.name
                return draft
        return None

    async def _complete(self, model: ChatModel, messages: prompt.ChatMessages) -> str | None:
        """A plain answer within the time there is; None when there was none."""
        try:
            async with asyncio.timeout(self._request_seconds):
                text, _ = await model.complete(messages, max_tokens=prompt.ANSWER_TOKENS)
        except TimeoutError:
            logger.warning("%s gave no summary within %.0f s", model.name, self._request_seconds)
            return None
        except ModelError as error:
            logger.warning("%s gave no summary: %s", model.name, error)
            return None
        return text

    async def _known_topics(self, conversation_id: str) -> list[str]:
        """Names of topics a summary of this conversation may know: its own, and those of its folder unless private."""
        own = await self._store.topics(conversation_id=conversation_id, limit=_KNOWN_TOPICS)
        conversation = await self._store.get_conversation(conversation_id)
        near = []
        if not conversation.private:
            near = await self._store.topics(workspace=conversation.workspace, limit=_KNOWN_TOPICS)
        return list({topic_key(topic.name): topic.name for topic in [*own, *near]}.values())[:_KNOWN_TOPICS]

    async def _tell_topics(self, conversation_id: str, made: Sequence[Summary]) -> None:
        keys = {topic_key(name) for summary in made for name in summary.topics}
        topics = await self._store.topics(conversation_id=conversation_id, limit=1_000)
        changed = [t for t in topics if keys.intersection(topic_key(name) for name in (t.name, *t.aliases))]
        if changed:
            self._emit(TopicsChanged(conversation_id=conversation_id, topics=changed))

    async def _refresh(self, conversation_id: str) -> str:
        tree = await self._store.summaries(conversation_id, texts=False)
        top = await self._store.summaries_by_id([summary.uuid for summary in frontier(tree)])
        _, last = await self._store.turn_range(conversation_id)
        first = max(chosen_end(tree, 1) + 1, last - _RECENT_TURNS + 1)
        recent = await self._store.turns(conversation_id, start=first, end=last + 1)
        begun = await self._store.turns(conversation_id, start=1, end=2)
        goal = next((m.content for turn in begun for m in turn.messages if m.role == "user"), "")
        text = await self._conversation_text(top, recent, goal)
        if text:
            changed = await self._store.set_conversation_summary(conversation_id, text)
            self._emit(ConversationChanged(conversation=changed))
        return text

    async def _conversation_text(self, top: Sequence[Summary], recent: Sequence[Turn], goal: str) -> str:
        language = language_of("\n".join([goal, *(s.conversation_summary for s in top)])) or language_of_turns(recent)
        if self._model is not None and (top or recent):
            material = "\n\n".join([*map(prompt.format_summary, top), *map(prompt.format_turn, recent)])
            messages = await asyncio.to_thread(
                prompt.over_conversation, material, language=language, window=self._model.context_window
            )
            answer = clean_text(await self._complete(self._model, messages))
            if answer and not answer.startswith(("{", "[", "<<<")):
                return cut(answer, PART_CHARS)
        return await asyncio.to_thread(extract_conversation, top, recent, goal=goal, language=language)


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
