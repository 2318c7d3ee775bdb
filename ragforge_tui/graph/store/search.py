"""Full-text search over turns, limited to conversations inside the query.

The query is split into words, each of which reaches Lucene as a quoted term, so that nothing in it can act as query
syntax. Conversations that may not be found are excluded in the query while they are few; results are checked again, and
more are requested until enough pass.

Turns are found by their own text and by the keys of their windows, in each language that has a key: a turn whose
neighbours have the same subject ranks above one that mentions the word in passing.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from ragforge_tui.graph.connection import Graph, Transaction
from ragforge_tui.graph.content_files import ContentFiles, Reference
from ragforge_tui.graph.labels import own_node
from ragforge_tui.graph.schema.indexes import MESSAGE_LEX, MESSAGE_TEXT
from ragforge_tui.graph.store.conversations import Segment, find_conversation, segments_of
from ragforge_tui.graph.store.messages import INDEXED_CHARS
from ragforge_tui.graph.values import native
from ragforge_tui.shared.look_alikes import unaccented
from ragforge_tui.shared.records import SearchHit
from ragforge_tui.shared.sanitize import plain_text, storable

MAX_TERMS = 64
_TERM = re.compile(r"[^\W_]+(?:[._'’-][^\W_]+)*|\w+")
_FEW = 100
"""Most conversations named in a query; beyond, its hits are only checked."""
_DEEPEST = 5_000
_LAST_TURN = 2**31 - 1
BEST_OF_INDEX = "CALL db.index.fulltext.queryNodes($index, $text, {limit: $depth}) YIELD node, score"
"""Passes a limit to the index: without one, the embedded graph loads and sorts every matching node."""

SNIPPET_CHARS = 300
_ENDINGS = ("ings", "ing", "ers", "ed", "er", "es", "ly", "s", "e")
_WINDOW = 20_000
"""Characters on either side of the first match that are searched for a better position."""

# Statements of the search for a text.
_IN_MESSAGES = (
    "MATCH (m:Message {conversation_id: $id}) WHERE m.turn_index >= $first AND m.turn_index <= $last "
    "AND m.state <> 'superseded' AND (toLower(coalesce(toStringOrNull(m.content), '')) CONTAINS $text "
    "OR toLower(coalesce(toStringOrNull(m.reasoning), '')) CONTAINS $text) RETURN DISTINCT m.turn_index AS turn"
)
_IN_CALLS = (
    "MATCH (t:ToolCall {conversation_id: $id}) "
    "WHERE toLower(coalesce(toStringOrNull(t.arguments), '')) CONTAINS $coded "
    "OR toLower(coalesce(toStringOrNull(t.reasoning), '')) CONTAINS $text RETURN DISTINCT t.message_id AS message"
)
_IN_RESULTS = (
    "MATCH (r:ToolResult {conversation_id: $id}) WHERE toLower(coalesce(toStringOrNull(r.result), '')) CONTAINS $coded "
    "OR toLower(coalesce(toStringOrNull(r.error), '')) CONTAINS $text "
    "MATCH (t:ToolCall {uuid: r.tool_call_id}) RETURN DISTINCT t.message_id AS message"
)
_IN_PARTS = (
    "MATCH (p:Part {conversation_id: $id}) WHERE toLower(toStringOrNull(p.text)) CONTAINS $text "
    "OR toLower(toStringOrNull(p.text)) CONTAINS $coded "
    "RETURN DISTINCT p.owner AS owner"
)
_OWNERS = (
    "UNWIND $ids AS id MATCH (m:Message {uuid: id}) RETURN m.uuid AS message",
    "UNWIND $ids AS id MATCH (t:ToolCall {uuid: id}) RETURN t.message_id AS message",
    "UNWIND $ids AS id MATCH (r:ToolResult {uuid: id}) MATCH (t:ToolCall {uuid: r.tool_call_id}) "
    "RETURN t.message_id AS message",
)
_REFERENCES = tuple(
    f"MATCH (n:{label} {{conversation_id: $id}}) WHERE {' OR '.join(f'n.{name} IS NOT NULL' for name in files)} "
    f"RETURN n.uuid AS owner, [{', '.join(f'n.{name}' for name in files)}] AS files"
    for label, files in (
        ("Message", ("content_file", "reasoning_file")),
        ("ToolCall", ("arguments_file", "reasoning_file")),
        ("ToolResult", ("result_file",)),
    )
)
_TURNS = (
    "UNWIND $ids AS id MATCH (m:Message {uuid: id}) WHERE m.turn_index >= $first AND m.turn_index <= $last "
    "AND m.state <> 'superseded' RETURN DISTINCT m.turn_index AS turn"
)


class Scope(msgspec.Struct, frozen=True):
    """The conversations a search may find: all those `named`, or when that is None all but `excluded`."""

    named: list[str] | None
    excluded: list[str]

    def allows(self, uuid: str) -> bool:
        return uuid not in self.excluded and (self.named is None or uuid in self.named)


class Match(msgspec.Struct, frozen=True):
    """A turn's first message, as an index found it; `id` is its conversation's."""

    uuid: str
    id: str
    turn_index: int
    score: float


def matches(rows: Iterable[Mapping[str, Any]]) -> list[Match]:
    """Return the matches of a statement that returns all of them in one row, as lists of fields; best first.

    Hundreds of one-row records would cost the driver more than the rest of the search.
    """
    # Another program may have stored a node with the properties of an index.
    found = [
        Match(uuid, conversation_id, turn_index, score)
        for row in rows
        for uuid, conversation_id, turn_index, score in row["matches"]
        if isinstance(uuid, str) and isinstance(conversation_id, str) and isinstance(turn_index, int)
    ]
    return sorted(found, key=lambda match: -match.score)


_SEARCHED: tuple[tuple[str, str], ...] = (MESSAGE_TEXT, *MESSAGE_LEX.values())
"""Full-text indexes a search asks; the first is that of turns' own texts."""


class Search:
    """Full-text search, and search for a text in one conversation."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    async def turns(
        self,
        query: str,
        *,
        limit: int = 20,
        conversation_id: str = "",
        workspace: str | None = None,
        turns: Mapping[str, Sequence[tuple[int, int]]] | None = None,
    ) -> list[SearchHit]:
        """Return matching turns, best first, one hit per turn.

        Private conversations are found only when named by `conversation_id`, deleted ones never. A branch that is
        named has the turns it shares with its parent too; hits in them are its own.

        Args:
            turns: Only these: by conversation, ranges of turns with both ends included.
        """
        title, shared = await self._shared(conversation_id) if conversation_id and turns is None else ("", [])
        if not shared:
            return await self._search(query, limit, conversation_id, workspace, turns)
        parts = await asyncio.gather(
            *(
                self._search(
                    query, limit, part.conversation_id, None, {part.conversation_id: [(part.first, part.last)]}
                )
                for part in shared
            )
        )
        own = {"conversation_id": conversation_id, "title": title}
        hits = [msgspec.structs.replace(hit, **own) for part in parts for hit in part]
        return sorted(hits, key=lambda hit: (-hit.score, hit.turn_index))[:limit]

    async def find_text(self, conversation_id: str, text: str) -> list[int]:
        """Return the indexes of turns that contain a text, ascending, including a branch's shared turns.

        Upper and lower case are the same. A text that spans two pieces of a message above 1 MiB in the
        graph is not found.

        Raises:
            NotFoundError: There is no such conversation.
        """
        wanted = text.lower()
        if not wanted:
            return []

        async def work(tx: Transaction) -> set[int]:
            found: set[int] = set()
            for segment in await segments_of(tx, conversation_id, 1, _LAST_TURN):
                found |= await turns_holding(self._graph.contents, tx, segment, wanted)
            return found

        return sorted(await self._graph.read(work))

    async def _shared(self, conversation_id: str) -> tuple[str, list[Segment]]:
        """Return a branch's title and the segments with its turns; empty if it is no branch, or unknown."""

        async def work(tx: Transaction) -> tuple[str, list[Segment]]:
            found = await find_conversation(tx, conversation_id)
            if found is None or not found.branch_of or found.status == "deleted":
                return "", []
            return found.title, await segments_of(tx, conversation_id, 1, found.next_turn)

        return await self._graph.read(work)

    async def _search(
        self,
        query: str,
        limit: int,
        conversation_id: str,
        workspace: str | None,
        turns: Mapping[str, Sequence[tuple[int, int]]] | None,
    ) -> list[SearchHit]:
        words = terms(query)
        if not words or limit <= 0:
            return []
        scope = await self._scope(conversation_id, workspace)
        if turns is not None:
            scope = Scope([uuid for uuid in turns if scope.allows(uuid)], [])
        if scope.named is not None and not scope.named:
            return []

        def wanted(row: Match) -> bool:
            return turns is None or any(first <= row.turn_index <= last for first, last in turns.get(row.id, ()))

        found = await asyncio.gather(*(self.matches(words, scope, props, limit, wanted) for props in _SEARCHED))
        best: dict[str, Match] = {}
        for rows in found:
            for row in rows:
                known = best.get(row.uuid)
                score = row.score + (known.score if known else 0.0)
                best[row.uuid] = msgspec.structs.replace(row, score=score)
        ranked = sorted(best.values(), key=lambda row: (-row.score, row.id, row.turn_index))
        own = {row.uuid for row in found[0]}
        return await self._hits(ranked, words, own, limit)

    async def _scope(self, conversation_id: str, workspace: str | None) -> Scope:
        async def work(tx: Transaction) -> Scope:
            if conversation_id:
                result = await tx.run(
                    f"MATCH {own_node('c', 'Conversation', 'uuid: $id')} WHERE c.status <> 'deleted' "
                    "RETURN c.uuid AS uuid",
                    id=conversation_id,
                )
                return Scope([record["uuid"] async for record in result], [])
            if workspace is not None:
                result = await tx.run(
                    f"MATCH {own_node('c', 'Conversation', 'workspace: $workspace')} "
                    "WHERE c.status <> 'deleted' AND coalesce(c.private, false) <> true RETURN c.uuid AS uuid",
                    workspace=workspace,
                )
                return Scope([record["uuid"] async for record in result], [])
            result = await tx.run(
                f"MATCH {own_node('c', 'Conversation')} "
                "WHERE c.status = 'deleted' OR coalesce(c.private, false) = true RETURN c.uuid AS uuid"
            )
            return Scope(None, [record["uuid"] async for record in result])

        return await self._graph.read(work)

    async def matches(
        self,
        words: Sequence[str],
        scope: Scope,
        props: Sequence[str],
        limit: int,
        wanted: Callable[[Match], bool] | None = None,
        *,
        label: str = "Message",
        depth: int = 0,
    ) -> list[Match]:
        """Return the best `limit` allowed matches of one full-text index; more are requested until enough pass.

        Args:
            depth: How many to ask for first; 0: twice the limit.
        """
        statement = (
            f"{BEST_OF_INDEX} WITH node, score ORDER BY score DESC LIMIT $depth "
            "RETURN collect([node.uuid, node.conversation_id, "
            "coalesce(node.turn_index, node.start_turn_index), score]) AS matches"
        )
        depth = depth or limit * 2
        while True:
            rows = await self._graph.rows(
                statement,
                index=self._graph.dialect.fulltext_index(label, props),
                text=_lucene(words, scope, props),
                depth=depth,
            )
            found = matches(rows)
            allowed = [row for row in found if scope.allows(row.id) and (wanted is None or wanted(row))]
            if len(allowed) >= limit or len(found) < depth or depth >= _DEEPEST:
                allowed.sort(key=lambda row: (-row.score, row.id, row.turn_index))
                return allowed[:limit]
            depth = min(depth * 5, _DEEPEST)

    async def _hits(self, rows: list[Match], words: list[str], own: Collection[str], limit: int) -> list[SearchHit]:
        """Return the first `limit` rows as hits, with titles and the message of each turn that has most of the words.

        Args:
            own: Rows whose own text matches; one found by its window alone is a hit only if its words show.
        """
        rows = rows[: 2 * limit]

        async def work(tx: Transaction) -> tuple[dict[str, str], dict[str, list[dict[str, Any]]]]:
            result = await tx.run(
                "UNWIND $ids AS id MATCH (c:Conversation {uuid: id}) RETURN c.uuid AS uuid, c.title AS title",
                ids=list({row.id for row in rows}),
            )
            titles = {record["uuid"]: record["title"] or "" async for record in result}
            result = await tx.run(
                "UNWIND $rows AS row MATCH (m:Message {conversation_id: row.id, turn_index: row.turn}) "
                "WHERE m.state <> 'superseded' "
                "RETURN row.uuid AS key, m.uuid AS uuid, m.role AS role, m.timestamp AS at, m.position AS position, "
                "left(toStringOrNull(m.content), $chars) AS text, m.content_file AS text_file, "
                "toStringOrNull(m.turn_text) AS turn_text ORDER BY m.position",
                rows=[{"uuid": row.uuid, "id": row.id, "turn": row.turn_index} for row in rows],
                chars=INDEXED_CHARS,
            )
            messages: dict[str, list[dict[str, Any]]] = {}
            async for record in result:
                messages.setdefault(record["key"], []).append(dict(record))
            return titles, messages

        if not rows:
            return []
        titles, messages = await self._graph.read(work)
        candidates = [message for found in messages.values() for message in found]
        await self._graph.contents.fill(candidates, ("text",))
        for message in candidates:
            message["text"] = (message["text"] or "")[:INDEXED_CHARS]
        found = Matcher(words)
        hits: list[SearchHit] = []
        for row in rows:
            candidates = messages.get(row.uuid, [])
            best = max(candidates, key=lambda m: found.count(m["text"] or ""), default=None)
            if best is None or len(hits) == limit:
                continue
            text = best["text"] or ""
            if not found.count(text):
                # The match may be in a tool call of the agent, which only the turn's text contains.
                best = next((message for message in candidates if message["role"] == "assistant"), candidates[0])
                text = candidates[0]["turn_text"] or text
                if row.uuid not in own and not found.count(text):
                    continue
            snippet, highlights = excerpt(text, found)
            hits.append(
                SearchHit(
                    conversation_id=row.id,
                    title=titles.get(row.id, ""),
                    turn_index=row.turn_index,
                    message_uuid=best["uuid"],
                    role=best["role"],
                    snippet=snippet,
                    highlights=highlights,
                    timestamp=native(best["at"]),
                    score=row.score,
                )
            )
        return hits


def terms(query: str) -> list[str]:
    """Return the words of the user's query, also without their accents, each once, at most `MAX_TERMS`."""
    words = [word.casefold() for word in _TERM.findall(storable(query))]
    return list(dict.fromkeys([*words, *map(unaccented, words)]))[:MAX_TERMS]


def _lucene(words: Sequence[str], scope: Scope, props: Sequence[str]) -> str:
    """Return the query: any of the words, in conversations in scope. Quoted, so that nothing in it is syntax."""
    wanted = quoted(words)
    query = f"+({' '.join(f'{prop}:({wanted})' for prop in props if prop != 'conversation_id')})"
    if scope.named is not None and len(scope.named) <= _FEW:
        return f"{query} +conversation_id:({quoted(scope.named)})"
    if scope.excluded and len(scope.excluded) <= _FEW:
        return f"{query} -conversation_id:({quoted(scope.excluded)})"
    return query


def quoted(values: Sequence[str]) -> str:
    """Return terms for an index, quoted so that nothing in them is syntax."""
    escaped = (value.replace("\\", "\\\\").replace('"', '\\"') for value in values)
    return " ".join(f'"{value}"' for value in escaped)


async def turns_holding(contents: ContentFiles, tx: Transaction, segment: Segment, text: str) -> set[int]:
    """Return the indexes of the turns of a segment that hold a text, which is lower case."""
    # Arguments and results are kept as JSON: there a quote or a line end is written with a backslash.
    coded = json.dumps(text, ensure_ascii=False)[1:-1]
    asked: dict[str, Any] = {"id": segment.conversation_id, "text": text, "coded": coded}
    between = {"first": segment.first, "last": segment.last}
    turns = await _column(tx, _IN_MESSAGES, "turn", id=segment.conversation_id, text=text, **between)
    messages = await _column(tx, _IN_CALLS, "message", **asked)
    messages |= await _column(tx, _IN_RESULTS, "message", **asked)
    owners = await _column(tx, _IN_PARTS, "owner", **asked)
    if digests := await contents.holding(segment.conversation_id, {text, coded}):
        owners |= await _owners_of(tx, segment.conversation_id, digests)
    if owners:
        for statement in _OWNERS:
            messages |= await _column(tx, statement, "message", ids=list(owners))
    return turns | await _column(tx, _TURNS, "turn", ids=list(messages), **between)


async def _owners_of(tx: Transaction, conversation_id: str, digests: Collection[str]) -> set[str]:
    """Return the nodes of a conversation with a text in its file that has one of the digests."""
    found: set[str] = set()
    for statement in _REFERENCES:
        async for record in await tx.run(statement, id=conversation_id):
            references = (Reference.decode(encoded) for encoded in record["files"] if encoded)
            if any(reference.sha256 in digests for reference in references):
                found.add(record["owner"])
    return found


async def _column(tx: Transaction, statement: str, name: str, **values: Any) -> set[Any]:
    result = await tx.run(statement, values)
    return {record[name] async for record in result}


class Matcher:
    """Finds words in a text the way the index does, about: inflected forms count as the same word."""

    def __init__(self, words: list[str]) -> None:
        stems = sorted({re.escape(_stem(unaccented(word))) for word in words}, key=len, reverse=True)
        within = [stem for stem in stems if stem[0] > "\u0e00"]  # of scripts that write words without blanks
        words_begin = rf"(?<!\w)(?:{'|'.join(stems)})\w{{0,4}}(?!\w)"
        self._pattern = re.compile("|".join([words_begin, *within]), re.IGNORECASE)

    def count(self, text: str) -> int:
        """Return the number of different words of the search in a text."""
        return len({match[0].casefold() for match in self._pattern.finditer(unaccented(text))})

    def spans(self, text: str, start: int = 0, end: int | None = None) -> list[tuple[int, int]]:
        """Return the positions of the words between `start` and `end`."""
        return [
            match.span() for match in self._pattern.finditer(unaccented(text), start, len(text) if end is None else end)
        ]


def excerpt(text: str, found: Matcher) -> tuple[str, list[tuple[int, int]]]:
    """Return the part of a text with most matches, at most `SNIPPET_CHARS` on one line, and their positions in it."""
    text = plain_text(text)
    first = next(iter(found.spans(text)), (0, 0))[0]
    low, high = max(0, first - _WINDOW), first + _WINDOW
    spans = found.spans(text, low, high)
    start = _best_start(spans, len(text))
    end = min(len(text), start + SNIPPET_CHARS - 2)
    line = re.sub(r"\s", " ", text[start:end])
    head, tail = "…" if start > 0 else "", "…" if end < len(text) else ""
    shift = len(head) - start
    inside = [(a + shift, b + shift) for a, b in spans if a >= start and b <= end]
    return f"{head}{line}{tail}", inside


def _best_start(spans: list[tuple[int, int]], length: int) -> int:
    if not spans or length <= SNIPPET_CHARS - 2:
        return 0
    width = SNIPPET_CHARS - 2
    best, most = spans[0][0], 0
    last = 0
    for n, (start, _) in enumerate(spans):
        while last < len(spans) and spans[last][1] <= start + width * 2 // 3:
            last += 1
        if last - n > most:
            best, most = start, last - n
    return max(0, min(best - width // 4, length - width))


def _stem(word: str) -> str:
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word
