"""Creation of insights: a conversation's text, the model's answer or the extract in its place, stored at once.

A short conversation is read whole, a long one through the summaries at the top of its tree and the turns after them.
A run after a crash or a cancellation skips the insights that the graph already has.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable

import msgspec

from ragforge_tui.graph.repositories import Store
from ragforge_tui.graph.store.insights import insight_uuid
from ragforge_tui.graph.store.summary_tree import chosen_end
from ragforge_tui.llm import ChatModel
from ragforge_tui.llm.tokens import CHARS_PER_TOKEN
from ragforge_tui.memory.insights.contents import InsightDraft, extract_insight, read_insight
from ragforge_tui.memory.language import language_of
from ragforge_tui.memory.summaries import prompt
from ragforge_tui.memory.summaries.draft import UnusableAnswerError
from ragforge_tui.memory.summaries.offline.extract import language_of_turns
from ragforge_tui.memory.summaries.plan import frontier
from ragforge_tui.shared.errors import ModelError
from ragforge_tui.shared.records import EXTRACTIVE, Conversation, Insight, Summary, Turn, fingerprint, now

log = logging.getLogger(__name__)

ATTEMPTS = 2
RECENT_TURNS = 20
MOST_TURNS = 200
"""Turns of a conversation that is read whole."""
_REQUEST_TOKENS = 600
"""Tokens of the instructions and of a typical answer together."""


class _Material(msgspec.Struct, kw_only=True):
    """Text of a conversation: summaries, the turns after them, and the language of both."""

    summaries: list[Summary]
    turns: list[Turn]
    language: str
    last: int


def is_due(conversation: Conversation, insight: Insight | None, model: str) -> bool:
    """Return whether an insight is to be made.

    Args:
        insight: The stored one.
        model: Name of the model that would write it; empty without one, so that a model's insight stays.
    """
    if conversation.next_turn <= 1:
        return False
    if insight is None:
        return True
    changed = insight.fingerprint != fingerprint(conversation)
    extracted = insight.made_by == EXTRACTIVE
    if not model:
        return extracted and changed
    return changed or (extracted and insight.tried != model)


def estimated_tokens(conversations: Iterable[Conversation], window: int) -> int:
    """Return about how many tokens the requests for these conversations take together, at most."""
    most = prompt.material_tokens(window)
    return sum(min(most, one.total_chars // CHARS_PER_TOKEN) + _REQUEST_TOKENS for one in conversations)


class InsightWriter:
    """Writer of insights.

    Args:
        model: Model that writes them; with None or the built-in assistant they are extracted.
    """

    def __init__(self, store: Store, model: ChatModel | None) -> None:
        self._store = store
        self.model = model if model is not None and not model.offline else None

    async def write(self, conversation: Conversation) -> Insight:
        """Write and store the insight of a conversation, and return the stored one.

        Raises:
            NotFoundError: The conversation is gone.
            ModelError: The model failed; an extract was stored if there was no insight yet.
            TimeoutError: The model did not answer in time; as above.
        """
        model = self.model
        if model is None:
            return await self._extracted(conversation, tried="")
        material = await self._material(conversation, prompt.material_tokens(model.context_window))
        try:
            draft = await self._by_model(model, conversation, material)
        except (ModelError, TimeoutError):
            await self._extracted(conversation, tried="")
            raise
        if draft is None:
            return await self._extracted(conversation, tried=model.name)
        return await self._store.insights.store(_insight(conversation, draft, material.last))

    async def _extracted(self, conversation: Conversation, *, tried: str) -> Insight:
        material = await self._material(conversation, 0)
        draft = await asyncio.to_thread(
            extract_insight, material.summaries, material.turns, title=conversation.title, language=material.language
        )
        return await self._store.insights.store(_insight(conversation, draft, material.last, tried=tried))

    async def _by_model(self, model: ChatModel, conversation: Conversation, material: _Material) -> InsightDraft | None:
        """Return the model's insight; None if `ATTEMPTS` answers were unusable."""
        messages = await asyncio.to_thread(
            prompt.over_past,
            material.summaries,
            material.turns,
            title=conversation.title,
            language=material.language,
            window=model.context_window,
        )
        request = messages
        for attempt in range(1, ATTEMPTS + 1):
            text, _ = await model.complete(request, max_tokens=prompt.ANSWER_TOKENS)
            try:
                draft = read_insight(text, turns=range(1, material.last + 1))
            except UnusableAnswerError as error:
                log.info("answer %s of %s is not an insight: %s", attempt, model.name, error)
                request = prompt.retry(messages, text, error.problems)
            else:
                draft.made_by = model.name
                return draft
        return None

    async def _material(self, conversation: Conversation, tokens: int) -> _Material:
        """Return the text of a conversation: all turns if they fit into `tokens`, else through its summaries."""
        uuid = conversation.uuid
        _, last = await self._store.turns.range(uuid)
        summaries: list[Summary] = []
        first = 1
        if conversation.total_chars > tokens * CHARS_PER_TOKEN or last > MOST_TURNS:
            tree = await self._store.summaries.of(uuid, texts=False)
            summaries = await self._store.summaries.by_id([summary.uuid for summary in frontier(tree)])
            first = max(chosen_end(tree, 1) + 1, last - RECENT_TURNS + 1)
        turns = await self._store.turns.between(uuid, start=first, end=last + 1)
        if first > 1 and not summaries:
            turns = [*await self._store.turns.between(uuid, start=1, end=2), *turns]
        told = "\n".join(summary.conversation_summary for summary in summaries)
        language = language_of(told) or language_of_turns(turns)
        return _Material(summaries=summaries, turns=turns, language=language, last=last)


def _insight(conversation: Conversation, draft: InsightDraft, last: int, *, tried: str = "") -> Insight:
    return Insight(
        uuid=insight_uuid(conversation.uuid),
        conversation_id=conversation.uuid,
        main_topic=draft.main_topic,
        key_findings=draft.key_findings,
        action_items=draft.action_items,
        made_by=draft.made_by,
        tried=tried,
        up_to_turn=last,
        fingerprint=fingerprint(conversation),
        created_at=now(),
    )
