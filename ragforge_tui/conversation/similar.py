"""Search for conversations similar to a text or to another conversation, within the scope that recall may search."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from ragforge_tui.conversation.services import Services
from ragforge_tui.graph import Store
from ragforge_tui.memory.language import language_of
from ragforge_tui.memory.retrieval.question import Questions
from ragforge_tui.memory.retrieval.terms import content_words, share_of_stems, stems, text_stems
from ragforge_tui.shared.errors import RagforgeError
from ragforge_tui.shared.records import Conversation, SimilarConversation

WORDS_WEIGHT = 0.9
"""Score of a conversation whose title and summary have all words of a text."""
LEAST_WORDS = 0.45
"""Least score by words: half of them."""
LEAST_SAME = 2
"""Words that have to be the same, or all of a shorter text: one says little."""


async def similar_conversations(
    services: Services, query: str, ref: str, *, limit: int, min_score: float | None
) -> list[SimilarConversation]:
    """Return conversations similar to a query or to the conversation `ref`, most similar first.

    Raises:
        NotFoundError: The conversation does not exist.
        RagforgeError: Neither or both are given, or vectors cannot be made or compared.
    """
    if bool(query.strip()) == bool(ref):
        raise RagforgeError("Name either a text or a conversation to compare with.", kind="usage")
    questions = services.memory.questions
    least = questions.settings.min_score if min_score is None else min_score
    if ref:
        store = await questions.store()
        conversation = await store.conversations.resolve(ref)
        return await store.vectors.similar_conversations(
            conversation.uuid,
            limit=limit,
            min_score=least,
            workspace=conversation.workspace if questions.scope is not None else None,
        )
    by_meaning = await conversations_like(questions, query, limit, least, questions.scope, by_turns=True)
    if by_meaning is None:
        raise RagforgeError(
            questions.model.reason or questions.model.failure or "Search by meaning is switched off.",
            todo="Use search, which goes by words.",
            kind="no_vectors",
        )
    by_words = await _with_words(await questions.store(), query, least, questions.scope)
    best: dict[str, SimilarConversation] = {}
    for one in sorted((*by_meaning, *by_words), key=lambda one: (-one.score, one.conversation.uuid)):
        best.setdefault(one.conversation.uuid, one)
    return list(best.values())[: max(limit, 0)]


async def _with_words(store: Store, query: str, least: float, workspace: str | None) -> list[SimilarConversation]:
    """Return the conversations whose title and summary have most words of a text.

    A text is a few words and a summary many, so that even a summary that says the same is far from it by meaning.
    """
    language = await asyncio.to_thread(language_of, query)
    asked = list(dict.fromkeys(stems(content_words(query, language), language)))
    found = await store.vectors.conversations_with_words(asked, workspace=workspace) if asked else []
    return await asyncio.to_thread(_scored, asked, found, max(least, LEAST_WORDS))


def _scored(asked: Sequence[str], found: Sequence[Conversation], least: float) -> list[SimilarConversation]:
    scored = []
    for one in found:
        share = share_of_stems(asked, text_stems(f"{one.title}\n{one.summary}").stems)
        if share * len(asked) >= min(LEAST_SAME, len(asked)) and (score := WORDS_WEIGHT * share) >= least:
            scored.append(SimilarConversation(conversation=one, score=score))
    return scored


async def conversations_like(
    questions: Questions,
    text: str,
    limit: int,
    min_score: float,
    workspace: str | None,
    *,
    exclude: Sequence[str] = (),
    by_turns: bool = False,
) -> list[SimilarConversation] | None:
    """Return the conversations whose summary is most similar to a text; None without a vector of the text.

    Args:
        by_turns: See `Store.vectors.conversations_like`.
    """
    store = await questions.claimed_store()
    vectors = await questions.vectors([text])
    if vectors is None:
        return None
    if not vectors.any():
        return []
    return await store.vectors.conversations_like(
        vectors[0], limit=limit, min_score=min_score, workspace=workspace, exclude=exclude, by_turns=by_turns
    )
