"""Summaries in the graph: a tree over a conversation's turns, each summary stored whole in one transaction.

A conversation has its watermarks (the last turn covered, by level) and the number of its summaries. A new summary must
begin where its level's watermark ends and takes the next number, which is unique. Neo4j locks the conversation
meanwhile. Where nothing locks, one of two writers that read the same state is refused, runs again and sees that the
turns are covered. So the ranges of a level always partition the turns.

An extracted summary is provisional: one that a model wrote over the same range replaces it, with all its edges, in one
transaction. Its id stays, so the levels above it remain valid. An extract never replaces what a model wrote.

A branch has the summaries of its ancestors that lie within the turns it shares, as far as it has none of its own. So a
summary of shared turns is stored with the ancestor that holds them (`owner`), and all that share them have it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from ragforge_tui.graph.store.conversations import Segment, find_conversation, segments_of
from ragforge_tui.graph.store.findings import note_unkept
from ragforge_tui.graph.store.records import (
    CONVERSATION_FIELDS,
    conversation_from,
    given,
    graph_value,
    projection,
    record_from,
)
from ragforge_tui.graph.store.summary_tree import (
    TurnSize,
    chosen_end,
    finding_properties,
    findings_from,
    frontier_marked,
    merged_chain,
)
from ragforge_tui.graph.store.topic_edges import attach_topics, link_topics
from ragforge_tui.graph.store.topic_names import ProposedTopic, TopicLink
from ragforge_tui.graph.values import native
from ragforge_tui.graph.writer import writer_alive
from ragforge_tui.shared.errors import NotFoundError
from ragforge_tui.shared.records import EXTRACTIVE, Conversation, Summary, now
from ragforge_tui.shared.requests.memory import TreeNode
from ragforge_tui.shared.sanitize import storable

if TYPE_CHECKING:
    from neo4j import AsyncManagedTransaction

    from ragforge_tui.graph.connection import Graph

_PAGE = 500
_EDGES_AT_ONCE = 100
HEADLINE_CHARS = 160
TYPED_CHARS = 2_000
"""Longest text that a user types in one message; the rest was pasted, or is a file or a long quote."""
_COMPUTED = ("key_findings", "topics", "parent")
_FIELDS = tuple(name for name in Summary.__struct_fields__ if name not in _COMPUTED)
_CONVERSATION = projection("c", CONVERSATION_FIELDS)
SUMMARY = projection("s", (*_FIELDS, "key_findings", "topics"))
_TEXTS = ("conversation_summary", "actions_summary", "files_mentioned", "tools_used")
_REWRITTEN = (*_TEXTS, "title", "summary_char_count", "made_by", "created_at")
_OUTLINE = projection("s", (*(name for name in _FIELDS if name not in _TEXTS), "topics"))


class Lineage(msgspec.Struct, frozen=True):
    """A conversation of a chain of branches, and the last of its turns that counts."""

    conversation_id: str
    last_turn: int


class Summaries:
    """Summaries of turns, and of conversations as a whole."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    async def of(self, conversation_id: str, *, texts: bool = True) -> list[Summary]:
        """Return all summaries of a conversation, for a branch those of its shared turns too; by level, then in order.

        Args:
            conversation_id: Which.
            texts: Whether to read the texts, which are most of the data, in addition to ranges, topics and sizes.

        Raises:
            NotFoundError: There is no such conversation.
        """

        async def work(tx: AsyncManagedTransaction) -> list[Summary] | None:
            return await visible_summaries(tx, conversation_id, SUMMARY if texts else _OUTLINE)

        found: list[Summary] | None = await self._graph.read(work)
        if found is None:
            raise NotFoundError(f"There is no conversation {conversation_id!r}.")
        return found

    async def outline(self, conversation_id: str) -> list[TreeNode]:
        """Return the tree of summaries without its texts, as `of` orders it.

        A screen asks for this, so that thousands of summaries cost as much as the part that is visible.

        Raises:
            NotFoundError: There is no such conversation.
        """

        async def work(tx: AsyncManagedTransaction) -> list[Summary] | None:
            text = "coalesce(toStringOrNull(s.conversation_summary), '')"
            headline = f"conversation_summary: substring({text}, 0, {HEADLINE_CHARS})"
            return await visible_summaries(tx, conversation_id, f"{_OUTLINE[:-1]}, {headline}}}")

        found: list[Summary] | None = await self._graph.read(work)
        if found is None:
            raise NotFoundError(f"There is no conversation {conversation_id!r}.")
        return [
            TreeNode(
                uuid=summary.uuid,
                level=summary.level,
                start_turn_index=summary.start_turn_index,
                end_turn_index=summary.end_turn_index,
                title=summary.title,
                headline=summary.conversation_summary,
                topics=summary.topics,
                parent=summary.parent,
                created_at=summary.created_at,
            )
            for summary in found
        ]

    async def by_id(self, uuids: Sequence[str]) -> list[Summary]:
        """Return the summaries of these ids that exist, in the order of the turns, without their parents."""
        return [
            summary
            for record in await self._graph.rows(
                f"UNWIND $ids AS id MATCH (s:Summary {{uuid: id}}) RETURN {SUMMARY} AS s ORDER BY s.start_turn_index",
                ids=list(uuids),
            )
            if (summary := summary_from(record["s"])) is not None
        ]

    async def turn_sizes(self, conversation_id: str, *, start: int) -> list[TurnSize]:
        """Return the sizes of the turns from `start` on, in order.

        Raises:
            NotFoundError: There is no such conversation.
        """
        end = 2**31

        async def segments(tx: AsyncManagedTransaction) -> Any:
            return await segments_of(tx, conversation_id, max(start, 1), end)

        rows: list[dict[str, Any]] = []
        for segment in await self._graph.read(segments):
            for first in range(segment.first, segment.last + 1, _PAGE):
                rows += await self._sizes(segment.conversation_id, first, min(first + _PAGE - 1, segment.last))
        return _turn_sizes(rows)

    async def _sizes(self, conversation_id: str, first: int, last: int) -> list[dict[str, Any]]:
        return await self._graph.rows(
            "UNWIND range($first, $last) AS turn MATCH (m:Message {conversation_id: $id, turn_index: turn}) "
            "RETURN m.turn_index AS turn, m.position AS position, m.role AS role, m.state AS state, "
            "m.writer AS writer, m.lease_until AS lease, coalesce(toIntegerOrNull(m.char_count), 0) AS chars, "
            "EXISTS { MATCH (m)-[:MADE_TOOL_CALL]->() } AS calls, "
            "EXISTS { MATCH (m)-[:MADE_TOOL_CALL]->(c) WHERE c.success IS NULL } AS open ORDER BY turn, position",
            id=conversation_id,
            first=first,
            last=last,
        )

    async def root(self, conversation_id: str) -> str:
        """Return the oldest ancestor of a branch, or the conversation itself.

        Raises:
            NotFoundError: There is no such conversation.
        """

        async def work(tx: AsyncManagedTransaction) -> list[Lineage]:
            return await _lineage(tx, conversation_id)

        lineage: list[Lineage] = await self._graph.read(work)
        if not lineage:
            raise NotFoundError(f"There is no conversation {conversation_id!r}.")
        return lineage[-1].conversation_id

    async def owner(self, conversation_id: str, level: int, start: int, end: int, children: Sequence[Summary]) -> str:
        """Return the conversation that a new summary belongs to: the oldest ancestor that holds all of its turns.

        An ancestor whose own summaries reach further, or end earlier, is passed over.

        Args:
            children: The summaries it summarises.
        """
        owners = {child.conversation_id for child in children}

        async def work(tx: AsyncManagedTransaction) -> str:
            lineage = await _lineage(tx, conversation_id)
            ids = [part.conversation_id for part in lineage]
            for place in range(len(lineage) - 1, 0, -1):
                if lineage[place].last_turn < end or not owners.issubset(ids[place:]):
                    continue
                visible = await visible_summaries(tx, ids[place]) or []
                known = {summary.uuid for summary in visible}
                if chosen_end(visible, level) == start - 1 and known.issuperset(child.uuid for child in children):
                    return ids[place]
            return conversation_id

        return str(await self._graph.read(work))

    async def store(
        self,
        summary: Summary,
        topics: Sequence[ProposedTopic] = (),
        links: Sequence[TopicLink] = (),
        *,
        unkept: str = "",
    ) -> Summary | None:
        """Store a new summary with its edges, its topics and the watermark, all or nothing.

        One that a model wrote replaces an extracted one of the same id.

        Args:
            summary: Its `uuid` comes from `summary_uuid`, `parent_summaries` are the ones it summarises.
            topics: What it is about.
            links: Which topics are the same as others.
            unkept: What is to be stored as findings after it, see `Findings.unkept`; empty if nothing is.

        Returns:
            The stored summary; None if it does not start where the level ends, because another process summarised
            these turns.

        Raises:
            NotFoundError: There is no such conversation.
        """
        conversation_id = summary.conversation_id

        async def work(tx: AsyncManagedTransaction) -> tuple[bool, Summary | None]:
            if (existing := await _one(tx, summary.uuid)) and not _replaces(summary, existing):
                return True, existing
            state = await _state(tx, conversation_id)
            if state is None:
                return False, None
            conversation, watermarks, sequence = state
            # Read again: another writer may have stored it before this one took the lock.
            if existing := await _one(tx, summary.uuid):
                if not _replaces(summary, existing):
                    return True, existing
                await _rewrite(tx, conversation, summary, topics)
            elif await _fits(tx, conversation, watermarks, summary):
                await _create(tx, conversation, summary, topics, watermarks, sequence + 1)
            else:
                return True, None
            private_to = conversation_id if conversation.private else ""
            await attach_topics(tx, summary, topics, private_to)
            await link_topics(tx, links, private_to, conversation_id)
            if unkept:
                await note_unkept(tx, conversation_id, unkept)
            return True, await _one(tx, summary.uuid)

        there, stored = await self._graph.write(work)
        if not there:
            raise NotFoundError(f"There is no conversation {conversation_id!r}.")
        return stored

    async def set_conversation_summary(
        self, conversation_id: str, text: str, *, made_by: str, up_to: int = 0
    ) -> Conversation:
        """Store the summary of a whole conversation. `updated_at` stays, since the conversation was not used.

        Args:
            made_by: The model's name, or `EXTRACTIVE`. An extract is not stored over a text that a model wrote.
            up_to: The last turn that summaries covered when it was written.

        Returns:
            The conversation with the summary it has now.

        Raises:
            NotFoundError: There is no such conversation.
        """

        async def work(tx: AsyncManagedTransaction) -> Conversation | None:
            # Lock first, so that the values read stay current until the text is written.
            await tx.run("MATCH (c:Conversation {uuid: $id}) SET c.summarized_at = $now", id=conversation_id, now=now())
            if made_by != EXTRACTIVE or not await _summarised_by_model(tx, conversation_id):
                await tx.run(
                    "MATCH (c:Conversation {uuid: $id}) SET c.summary = $text, c.summary_made_by = $made_by, "
                    "c.summary_through = $up_to",
                    id=conversation_id,
                    up_to=up_to,
                    text=storable(text),
                    made_by=made_by,
                )
            return await find_conversation(tx, conversation_id)

        changed: Conversation | None = await self._graph.write(work)
        if changed is None:
            raise NotFoundError(f"There is no conversation {conversation_id!r}.")
        return changed

    async def has_stale_summary(self, conversation_id: str, up_to: int) -> bool:
        """Return whether a model should write the text on the conversation as a whole again.

        It should if the text is known to be an extract, or to be older than the last summaries.

        Args:
            up_to: The last turn that summaries cover.
        """
        row = await self._graph.one(
            "MATCH (c:Conversation {uuid: $id}) RETURN coalesce(c.summary_made_by, '') AS made_by, "
            "coalesce(c.summary_through, $up_to) AS through",
            id=conversation_id,
            up_to=up_to,
        )
        return row is not None and (row["made_by"] == EXTRACTIVE or row["through"] < up_to)


def _turn_sizes(rows: Iterable[dict[str, Any]]) -> list[TurnSize]:
    turns: dict[int, list[dict[str, Any]]] = {}
    for row in rows:
        turns.setdefault(row["turn"], []).append(row)
    last = max(turns, default=0)
    return [
        TurnSize(
            turn,
            sum(m["chars"] for m in messages if m["role"] in ("user", "assistant") and m["state"] != "superseded"),
            _finished(messages, is_last=turn == last),
            any(m["role"] == "system" for m in messages),
            sum(max(0, m["chars"] - TYPED_CHARS) for m in messages if m["role"] == "user"),
        )
        for turn, messages in sorted(turns.items())
    ]


def _finished(messages: list[dict[str, Any]], *, is_last: bool) -> bool:
    """Return whether a turn is finished. The last turn counts once it has a reply without tool calls.

    What the user did without the model, a message of role ``system``, waits for the end of its call only.
    """
    seen = now()
    live = [m for m in messages if m["state"] != "superseded"]
    if any(m["state"] == "streaming" and writer_alive(m["writer"] or "", native(m["lease"]), seen) for m in live):
        return False
    if not is_last:
        return True
    end = live[-1] if live else None
    if end is None or end["role"] == "user":
        return False
    if end["role"] == "system":
        return bool(end["state"] != "complete" or (end["calls"] and not end["open"]))
    return bool(end["state"] != "complete" or not end["calls"])


async def visible_summaries(
    tx: AsyncManagedTransaction, conversation_id: str, fields: str = _OUTLINE
) -> list[Summary] | None:
    """Return the summaries of a conversation, None if it does not exist."""
    lineage = await _lineage(tx, conversation_id)
    if not lineage:
        return None
    result = await tx.run(
        "UNWIND $rows AS row MATCH (s:Summary {conversation_id: row.id}) WHERE s.end_turn_index <= row.last "
        f"RETURN {fields} AS s ORDER BY s.level, s.start_turn_index",
        rows=[{"id": part.conversation_id, "last": part.last_turn} for part in lineage],
    )
    found = [summary async for record in result if (summary := summary_from(record["s"])) is not None]
    return frontier_marked(merged_chain(found, [part.conversation_id for part in lineage]))


async def _lineage(tx: AsyncManagedTransaction, conversation_id: str) -> list[Lineage]:
    """Return the conversation and its ancestors, each with its last turn that counts; empty if it does not exist."""
    found: list[Lineage] = []
    last = 2**31
    current = await find_conversation(tx, conversation_id)
    while current is not None and all(part.conversation_id != current.uuid for part in found):
        found.append(Lineage(current.uuid, last))
        if not current.branch_of:
            break
        last = min(last, current.branch_turn or 0)
        current = await find_conversation(tx, current.branch_of)
    return found


def summary_from(properties: Any) -> Summary | None:
    """Return a summary from the properties that `SUMMARY` projects."""
    fields = {"conversation_summary": "", **given(properties, (*_FIELDS, "topics"))}
    return record_from(Summary, {**fields, "key_findings": findings_from(properties.get("key_findings"))})


async def _one(tx: AsyncManagedTransaction, uuid: str) -> Summary | None:
    record = await (await tx.run(f"MATCH (s:Summary {{uuid: $uuid}}) RETURN {SUMMARY} AS s", uuid=uuid)).single()
    return summary_from(record["s"]) if record else None


async def _state(tx: AsyncManagedTransaction, conversation_id: str) -> tuple[Conversation, list[int], int] | None:
    """Return the conversation, its watermarks by level (0 where it has no own summary), and their number.

    The conversation is written to first: this takes Neo4j's lock, so that the values read stay current.
    """
    result = await tx.run(
        "MATCH (c:Conversation {uuid: $id}) SET c.summarized_at = $now "
        f"RETURN {_CONVERSATION} AS c, coalesce(c.watermarks, []) AS watermarks, "
        "coalesce(c.summary_sequence, 0) AS sequence",
        id=conversation_id,
        now=now(),
    )
    record = await result.single()
    if record is None:
        return None
    conversation = conversation_from(record["c"])
    return (conversation, list(record["watermarks"]), int(record["sequence"])) if conversation is not None else None


async def _fits(
    tx: AsyncManagedTransaction, conversation: Conversation, watermarks: list[int], summary: Summary
) -> bool:
    """Return whether the summary starts where its level ends and summarises existing summaries."""
    if conversation.branch_of:
        visible = await visible_summaries(tx, conversation.uuid) or []
        ends, known = chosen_end(visible, summary.level), {s.uuid for s in visible}
        children = [s for s in visible if s.uuid in summary.parent_summaries]
        return (
            summary.start_turn_index == ends + 1
            and known.issuperset(summary.parent_summaries)
            and (summary.level == 1 or chosen_end(children, summary.level - 1) == summary.end_turn_index)
        )
    reached = watermarks[summary.level - 1] if len(watermarks) >= summary.level else 0
    if summary.start_turn_index != reached + 1:
        return False
    return summary.level == 1 or watermarks[summary.level - 2] >= summary.end_turn_index


def _replaces(summary: Summary, existing: Summary) -> bool:
    return existing.made_by == EXTRACTIVE and summary.made_by not in ("", EXTRACTIVE)


async def _summarised_by_model(tx: AsyncManagedTransaction, conversation_id: str) -> bool:
    """Return whether a model wrote the conversation's text."""
    text, made_by = await _summary_and_writer(tx, conversation_id)
    return bool(text) and made_by != EXTRACTIVE


async def _summary_and_writer(tx: AsyncManagedTransaction, conversation_id: str) -> tuple[str, str]:
    """Return the summary of a whole conversation and its author."""
    result = await tx.run(
        "MATCH (c:Conversation {uuid: $id}) "
        "RETURN coalesce(c.summary, '') AS text, coalesce(c.summary_made_by, '') AS made_by",
        id=conversation_id,
    )
    record = await result.single()
    return (record["text"], record["made_by"]) if record else ("", "")


def _text_properties(summary: Summary, topics: Sequence[ProposedTopic]) -> dict[str, Any]:
    """Return the properties that store lists as texts."""
    return {
        **finding_properties(summary),
        "topics": [storable(name) for name in summary.topics or [topic.name for topic in topics]],
    }


async def _rewrite(
    tx: AsyncManagedTransaction, conversation: Conversation, summary: Summary, topics: Sequence[ProposedTopic]
) -> None:
    """Replace a summary's texts and its edges to files and topics; range, number and place in the tree stay.

    Topics that only the old text had are not shown without a summary, and are removed by the next purge.
    """
    properties = {name: graph_value(getattr(summary, name)) for name in _REWRITTEN}
    await tx.run(
        "MATCH (c:Conversation {uuid: $id}) SET c.summaries_replaced = coalesce(c.summaries_replaced, 0) + 1 "
        "WITH c MATCH (s:Summary {uuid: $uuid}) SET s += $properties "
        # Without a model it counts as not embedded.
        "SET s.embedding = NULL, s.embedding_bytes = NULL, s.embed_model = NULL",
        id=conversation.uuid,
        uuid=summary.uuid,
        properties={**properties, **_text_properties(summary, topics)},
    )
    await tx.run(
        "MATCH (s:Summary {uuid: $uuid})-[e:HAS_TOPIC|MENTIONS_FILE]->() DELETE e",
        uuid=summary.uuid,
    )
    await _link_files(tx, conversation.workspace, summary)


async def _create(
    tx: AsyncManagedTransaction,
    conversation: Conversation,
    summary: Summary,
    topics: Sequence[ProposedTopic],
    watermarks: list[int],
    sequence: int,
) -> None:
    """Create the node with its edges to what it summarises and mentions, and move the level's watermark."""
    reached = [*watermarks, *([0] * (summary.level - len(watermarks)))]
    reached[summary.level - 1] = summary.end_turn_index
    properties: dict[str, Any] = {name: graph_value(getattr(summary, name)) for name in _FIELDS}
    properties |= {**_text_properties(summary, topics), "sequence": sequence}
    await tx.run(
        "MATCH (c:Conversation {uuid: $id}) SET c.watermarks = $watermarks, c.summary_sequence = $sequence "
        "CREATE (c)-[:HAS_SUMMARY]->(s:Summary) SET s = $properties",
        id=conversation.uuid,
        watermarks=reached,
        sequence=sequence,
        properties=properties,
    )
    if summary.level == 1:
        await _link_messages(tx, conversation, summary)
    else:
        await tx.run(
            "MATCH (s:Summary {uuid: $uuid}) UNWIND $children AS child MATCH (l:Summary {uuid: child}) "
            "CREATE (s)-[:SUMMARIZES]->(l)",
            uuid=summary.uuid,
            children=summary.parent_summaries,
        )
    await _link_files(tx, conversation.workspace, summary)


async def _link_messages(tx: AsyncManagedTransaction, conversation: Conversation, summary: Summary) -> None:
    segments = [Segment(conversation.uuid, summary.start_turn_index, summary.end_turn_index)]
    if conversation.branch_of:
        segments = await segments_of(tx, conversation.uuid, summary.start_turn_index, summary.end_turn_index)
    for segment in segments:
        for first in range(segment.first, segment.last + 1, _EDGES_AT_ONCE):
            await tx.run(
                "MATCH (s:Summary {uuid: $uuid}) UNWIND range($first, $last) AS turn "
                "MATCH (m:Message {conversation_id: $id, turn_index: turn}) WHERE m.state <> 'superseded' "
                "CREATE (s)-[:SUMMARIZES]->(m)",
                uuid=summary.uuid,
                id=segment.conversation_id,
                first=first,
                last=min(first + _EDGES_AT_ONCE - 1, segment.last),
            )


async def _link_files(tx: AsyncManagedTransaction, workspace: str, summary: Summary) -> None:
    paths = sorted({storable(path) for path in summary.files_mentioned if path})
    if not paths:
        return
    await tx.run(
        "UNWIND $paths AS path MERGE (f:File {workspace: $workspace, path: path})",
        paths=paths,
        workspace=storable(workspace),
    )
    await tx.run(
        "MATCH (s:Summary {uuid: $uuid}) UNWIND $paths AS path MATCH (f:File {workspace: $workspace, path: path}) "
        "CREATE (s)-[:MENTIONS_FILE]->(f)",
        uuid=summary.uuid,
        paths=paths,
        workspace=storable(workspace),
    )
