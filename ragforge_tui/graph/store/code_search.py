"""Candidates of a search over scopes: by words from the full-text index, by meaning from the vectors."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ragforge_tui.graph.connection import Graph
from ragforge_tui.graph.schema.indexes import SCOPE_TEXT
from ragforge_tui.graph.store.code_vectors import CodeVectors, Floats
from ragforge_tui.graph.store.records import given, projection, record_from
from ragforge_tui.graph.store.search import BEST_OF_INDEX, MAX_TERMS, quoted
from ragforge_tui.shared.code_records import Scope, ScopeHit
from ragforge_tui.shared.sanitize import storable

SCOPE_FIELDS = Scope.__struct_fields__
SCOPE = projection("s", SCOPE_FIELDS)
HIT_CHARS = 4_000
"""Of a candidate's text: enough to rank it and to show a part."""
_HIT = projection("node", tuple(name for name in SCOPE_FIELDS if name != "text"))
MAX_SIMILAR = 64
"""Most similar words that the index is asked for."""
_DEEPER = 4
"""Times the wanted number that the index is asked for, because it holds other workspaces too."""

_BY_WORDS = (
    f"{BEST_OF_INDEX} WITH node, score ORDER BY score DESC LIMIT $depth "
    "WITH node, score, node.workspace = $workspace AND node.removed_at IS NULL "
    "AND (size($kinds) = 0 OR node.kind IN $kinds) AS wanted "
    "RETURN count(node) AS seen, "
    f"collect(CASE WHEN wanted THEN [score, {_HIT}, left(toStringOrNull(node.text), $chars)] ELSE NULL END)"
    "[..$limit] AS hits"
)
_BY_UUID = (
    "UNWIND $ids AS id MATCH (node:Scope {uuid: id}) "
    "WHERE node.removed_at IS NULL AND (size($kinds) = 0 OR node.kind IN $kinds) "
    f"RETURN collect([{_HIT}, left(toStringOrNull(node.text), $chars)]) AS hits"
)


class CodeSearch:
    """Search for scopes of a workspace.

    Attributes:
        vectors: Of scopes, which are compared in the process.
    """

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self.vectors = CodeVectors(graph)

    async def candidates(
        self,
        workspace: str,
        words: Sequence[str],
        vector: Sequence[float] | None,
        *,
        similar: Mapping[str, float] | None = None,
        kinds: Sequence[str] = (),
        limit: int = 100,
    ) -> list[ScopeHit]:
        """Return up to `limit` scopes found by words and as many found by meaning, with both scores kept apart.

        Args:
            words: Any of them, as they are to be matched; none leaves this part out.
            vector: Of the graph's embedding model; None leaves this part out.
            similar: Further words with their weights, where `words` have weight 1.
            kinds: Only scopes of these kinds; empty for all.
        """
        asked = np.asarray(vector, np.float32) if vector is not None and len(vector) else None
        # At once, although some are read twice: a request waits for both.
        by_words, (by_meaning, near) = await asyncio.gather(
            self._by_words(workspace, _weighted(words, similar or {}), kinds, limit) if words else _none(),
            self._by_meaning(workspace, asked, kinds, limit),
        )
        hits = {hit.scope.uuid: hit for hit in [*by_meaning, *by_words]}
        unlike = [uuid for uuid in hits if uuid not in near]
        if asked is not None and unlike:
            near |= await self.vectors.cosines(workspace, asked, unlike)
        for uuid, hit in hits.items():
            hit.meaning = near.get(uuid)
        best = [uuid for uuid in near if uuid in hits][:limit]
        return [hits[uuid] for uuid in dict.fromkeys([*(hit.scope.uuid for hit in by_words), *best])]

    async def _by_meaning(
        self, workspace: str, asked: Floats | None, kinds: Sequence[str], limit: int
    ) -> tuple[list[ScopeHit], dict[str, float]]:
        """Return the scopes nearest to a vector, and their cosines by uuid, nearest first."""
        if asked is None:
            return [], {}
        near = await self.vectors.nearest(workspace, asked, limit=limit if not kinds else 5 * limit)
        if not near:
            return [], {}
        row = await self._graph.one(_BY_UUID, ids=list(near), kinds=list(kinds), chars=HIT_CHARS)
        found = (scope_from(node, text) for node, text in (row["hits"] if row else []))
        return [ScopeHit(scope=scope) for scope in found if scope is not None], near

    async def _by_words(self, workspace: str, terms: str, kinds: Sequence[str], limit: int) -> list[ScopeHit]:
        query = f"+{SCOPE_TEXT[0]}:({terms})"
        hits, seen = await self._ask(query, workspace, kinds, limit, depth := limit * _DEEPER)
        if len(hits) < limit and seen >= depth:
            # The key of a workspace makes the index read all of its scopes, so it is used only where it is needed.
            keyed = f"{query} +{SCOPE_TEXT[1]}:{workspace_key(workspace)}"
            hits, _ = await self._ask(keyed, workspace, kinds, limit, depth * (_DEEPER if kinds else 1))
        return hits

    async def _ask(
        self, query: str, workspace: str, kinds: Sequence[str], limit: int, depth: int
    ) -> tuple[list[ScopeHit], int]:
        """Return up to `limit` hits in the workspace, best first, and how many of `depth` the index had in all."""
        row = await self._graph.one(
            _BY_WORDS,
            index=self._graph.dialect.fulltext_index("Scope", SCOPE_TEXT),
            text=query,
            depth=depth,
            limit=limit,
            workspace=workspace,
            kinds=list(kinds),
            chars=HIT_CHARS,
        )
        if row is None:
            return [], 0
        hits = [
            ScopeHit(scope=scope, words=float(score))
            for score, node, text in row["hits"]
            if (scope := scope_from(node, text)) is not None
        ]
        return sorted(hits, key=lambda hit: (-(hit.words or 0.0), hit.scope.uuid)), row["seen"]


async def _none() -> list[ScopeHit]:
    return []


def workspace_key(workspace: str) -> str:
    """Return the word by which the full-text index knows a workspace."""
    return "w" + hashlib.sha256(workspace.encode("utf-8", "surrogatepass")).hexdigest()[:24]


def scope_from(properties: Mapping[str, Any], text: str | None = None) -> Scope | None:
    """Return a scope from its node's properties, with `text` in place of theirs if given."""
    found = given(properties, SCOPE_FIELDS)
    return record_from(Scope, found if text is None else {**found, "text": text})


def _weighted(words: Sequence[str], similar: Mapping[str, float]) -> str:
    """Return words for the index: those of the question, then the weightiest that are similar."""
    best = sorted(similar, key=lambda word: (-similar[word], word))[:MAX_SIMILAR]
    boosted = (f"{quoted([storable(word)])}^{similar[word]:.2f}" for word in best)
    return " ".join([quoted([storable(word) for word in words[:MAX_TERMS]]), *boosted])
