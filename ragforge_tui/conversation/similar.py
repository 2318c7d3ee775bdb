"""Search for conversations similar to a text or to another conversation, within the scope that recall may search."""

from __future__ import annotations

from collections.abc import Sequence

from ragforge_tui.conversation.services import Services
from ragforge_tui.memory.retrieval.question import Questions
from ragforge_tui.memory.retrieval.recipes import SIMILAR
from ragforge_tui.shared.errors import RagforgeError
from ragforge_tui.shared.records import SimilarConversation


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
    found = await conversations_like(questions, query, limit, least, questions.scope, by_turns=True)
    if found is None:
        raise RagforgeError(
            questions.model.reason or questions.model.failure or "Search by meaning is switched off.",
            todo="Use search, which goes by words.",
            kind="no_vectors",
        )
    return found


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
    vectors = await questions.vectors([text], SIMILAR.seconds)
    if vectors is None:
        return None
    if not vectors.any():
        return []
    return await store.vectors.conversations_like(
        vectors[0], limit=limit, min_score=min_score, workspace=workspace, exclude=exclude, by_turns=by_turns
    )
