"""Full-text search over turns, scoped inside the query.

One of the subjects `Store` is composed of. What a person types is taken apart into words, each of which reaches
Lucene as a quoted term, so nothing in it can act as query syntax. Conversations that may not be found are left out
in the query while they are few; the statement checks them again and more is asked for until enough survive.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import msgspec

from ragforge_tui.graph.messages import INDEXED_CHARS
from ragforge_tui.graph.records import native
from ragforge_tui.graph.schema import MESSAGE_LEX, MESSAGE_TEXT
from ragforge_tui.graph.snippets import excerpt, matcher
from ragforge_tui.models import SearchHit
from ragforge_tui.text import storable

if TYPE_CHECKING:
    from neo4j import AsyncManagedTransaction

    from ragforge_tui.graph.connect import Graph

MAX_TERMS = 64
_TERM = re.compile(r"[^\W_]+(?:[._'’-][^\W_]+)*|\w+")
_FEW = 100
"""Most conversations named in a query; beyond, its hits are only checked."""
_DEEPEST = 5_000


class _Scope(msgspec.Struct, frozen=True):
    """Which conversations a search may find: all those `named`, or when that is None all but `excluded`."""

    named: list[str] | None
    excluded: list[str]


class Searching:
    """What `Store` does about full text."""

    _graph: Graph

    async def search(
        self, query: str, *, limit: int = 20, conversation_id: str = "", workspace: str | None = None
    ) -> list[SearchHit]:
        """Turns that match, best first, one hit a turn.

        Private conversations are found only when named by `conversation_id`, deleted ones never.
        """
        words = terms(query)
        if not words or limit <= 0:
            return []
        scope = await self._scope(conversation_id, workspace)
        if scope.named is not None and not scope.named:
            return []
        text = _lucene(words, scope)
        depth = limit * 2
        while True:
            rows, seen = await self._matches(text, depth, limit, scope)
            if len(rows) >= limit or seen < depth or depth >= _DEEPEST:
                break
            depth = min(depth * 5, _DEEPEST)
        return await self._hits(rows, words)

    async def index_turn(
        self, conversation_id: str, turn_index: int, *, turn_text: str, lex_key: str, language: str = ""
    ) -> None:
        """Store a turn's recall keys on its first message: its own text, and the window around it."""
        key = MESSAGE_LEX.get(language, MESSAGE_LEX["en"])[0]
        properties: dict[str, Any] = {props[0]: None for props in MESSAGE_LEX.values()}
        properties |= {
            "turn_text": storable(turn_text[:INDEXED_CHARS]),
            key: storable(lex_key[:INDEXED_CHARS]),
            "language": language,
        }

        async def work(tx: AsyncManagedTransaction) -> None:
            await tx.run(
                "MATCH (m:Message {conversation_id: $id, turn_index: $turn, position: 0}) SET m += $properties",
                id=conversation_id,
                turn=turn_index,
                properties=properties,
            )

        await self._graph.write(work)

    async def _scope(self, conversation_id: str, workspace: str | None) -> _Scope:
        async def work(tx: AsyncManagedTransaction) -> _Scope:
            if conversation_id:
                result = await tx.run(
                    "MATCH (c:Conversation {uuid: $id}) WHERE c.status <> 'deleted' RETURN c.uuid AS uuid",
                    id=conversation_id,
                )
                return _Scope([record["uuid"] async for record in result], [])
            if workspace is not None:
                result = await tx.run(
                    "MATCH (c:Conversation {workspace: $workspace}) "
                    "WHERE c.status <> 'deleted' AND NOT coalesce(c.private, false) RETURN c.uuid AS uuid",
                    workspace=workspace,
                )
                return _Scope([record["uuid"] async for record in result], [])
            result = await tx.run(
                "MATCH (c:Conversation) WHERE c.status = 'deleted' OR coalesce(c.private, false) RETURN c.uuid AS uuid"
            )
            return _Scope(None, [record["uuid"] async for record in result])

        return await self._graph.read(work)

    async def _matches(self, text: str, depth: int, limit: int, scope: _Scope) -> tuple[list[dict[str, Any]], int]:
        """The best allowed matches among the index's first `depth`, and how many that were."""
        statement = (
            "CALL db.index.fulltext.queryNodes($index, $text) YIELD node, score "
            "WITH node, score ORDER BY score DESC LIMIT $depth "
            "RETURN node.uuid AS uuid, node.conversation_id AS id, node.turn_index AS turn, "
            "node.turn_text AS text, node.timestamp AS at, score"
        )
        parameters = {
            "index": self._graph.dialect.fulltext_index("Message", MESSAGE_TEXT),
            "text": text,
            "depth": depth,
        }

        async def work(tx: AsyncManagedTransaction) -> list[dict[str, Any]]:
            result = await tx.run(statement, parameters)
            return [dict(record) async for record in result]

        found = await self._graph.read(work)
        named = None if scope.named is None else set(scope.named)
        excluded = set(scope.excluded)
        allowed = [row for row in found if row["id"] not in excluded and (named is None or row["id"] in named)]
        allowed.sort(key=lambda row: (-row["score"], row["id"], row["turn"]))
        return allowed[:limit], len(found)

    async def _hits(self, rows: list[dict[str, Any]], words: list[str]) -> list[SearchHit]:
        """Add titles, and find the message of each turn that says most of what was looked for."""

        async def work(tx: AsyncManagedTransaction) -> tuple[dict[str, str], dict[str, list[dict[str, Any]]]]:
            result = await tx.run(
                "UNWIND $ids AS id MATCH (c:Conversation {uuid: id}) RETURN c.uuid AS uuid, c.title AS title",
                ids=list({row["id"] for row in rows}),
            )
            titles = {record["uuid"]: record["title"] or "" async for record in result}
            result = await tx.run(
                "UNWIND $rows AS row MATCH (m:Message {conversation_id: row.id, turn_index: row.turn}) "
                "WHERE m.state <> 'superseded' "
                "RETURN row.uuid AS key, m.uuid AS uuid, m.role AS role, m.timestamp AS at, "
                "left(m.content, $chars) AS text ORDER BY m.position",
                rows=[{"uuid": row["uuid"], "id": row["id"], "turn": row["turn"]} for row in rows],
                chars=INDEXED_CHARS,
            )
            messages: dict[str, list[dict[str, Any]]] = {}
            async for record in result:
                messages.setdefault(record["key"], []).append(dict(record))
            return titles, messages

        if not rows:
            return []
        titles, messages = await self._graph.read(work)
        found = matcher(words)
        hits = []
        for row in rows:
            candidates = messages.get(row["uuid"], [])
            best = max(candidates, key=lambda m: found.count(m["text"] or ""), default=None)
            own = best is not None and found.count(best["text"] or "") > 0
            source = best if own and best is not None else {**row, "role": "user"}
            snippet, highlights = excerpt(source["text"] or "", found)
            hits.append(
                SearchHit(
                    conversation_id=row["id"],
                    title=titles.get(row["id"], ""),
                    turn_index=row["turn"],
                    message_uuid=source["uuid"],
                    role=source["role"],
                    snippet=snippet,
                    highlights=highlights,
                    timestamp=native(source["at"]),
                    score=row["score"],
                )
            )
        return hits


def terms(query: str) -> list[str]:
    """The words of what a person typed, each once, at most `MAX_TERMS`."""
    return list(dict.fromkeys(word.casefold() for word in _TERM.findall(storable(query))))[:MAX_TERMS]


def _lucene(words: list[str], scope: _Scope) -> str:
    """The query: any of the words, in conversations that may be found. Quoted, so nothing in it is syntax."""
    query = f"+{MESSAGE_TEXT[0]}:({_quoted(words)})"
    if scope.named is not None and len(scope.named) <= _FEW:
        return f"{query} +conversation_id:({_quoted(scope.named)})"
    if scope.excluded and len(scope.excluded) <= _FEW:
        return f"{query} -conversation_id:({_quoted(scope.excluded)})"
    return query


def _quoted(values: list[str]) -> str:
    escaped = (value.replace("\\", "\\\\").replace('"', '\\"') for value in values)
    return " ".join(f'"{value}"' for value in escaped)
