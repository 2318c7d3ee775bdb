"""Search for conversations similar to a text or to another conversation, within the scope that recall may search."""

from __future__ import annotations

from ragforge_tui.conversation.services import Services
from ragforge_tui.memory.recall.index_sync import VectorModel
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
    recall = services.settings.agent.memory.recall
    least = recall.min_score if min_score is None else min_score
    store = await services.store()
    if ref:
        conversation = await store.conversations.resolve(ref)
        return await store.vectors.similar_conversations(
            conversation.uuid,
            limit=limit,
            min_score=least,
            workspace=conversation.workspace if recall.scope == "workspace" else None,
        )
    model = VectorModel(services.memory.embedder)
    await model.claim(store)
    vectors = await model.embed([query]) if model.name else None
    if vectors is None:
        raise RagforgeError(
            model.reason or model.failure or "Search by meaning is switched off.",
            todo="Use search, which goes by words.",
            kind="no_vectors",
        )
    if not vectors.any():
        return []
    return await store.vectors.conversations_like(
        vectors[0],
        limit=limit,
        min_score=least,
        workspace=str(services.workspace) if recall.scope == "workspace" else None,
        by_turns=True,
    )
