"""Whole conversations out of the graph and into it, lossless: ids are kept, and importing twice is once.

One of the subjects `Store` is composed of. The turns a branch shares with its parent are exported with it; where
the parent is missing on import, a stub of it is made to hold them, which the parent's own import later fills.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ragforge_tui.errors import GraphError
from ragforge_tui.graph.conversations import Conversations
from ragforge_tui.graph.messages import INDEXED_CHARS, LARGE
from ragforge_tui.graph.parts import batches, link_parts, row_size, store_large
from ragforge_tui.graph.records import (
    call_properties,
    conversation_properties,
    file_rows,
    message_properties,
    result_properties,
)
from ragforge_tui.graph.tool_calls import CALL_LARGE, RESULT_LARGE, cut_result
from ragforge_tui.graph.turns import Turns
from ragforge_tui.models import Conversation, ConversationExport, Message, Turn
from ragforge_tui.text import storable

if TYPE_CHECKING:
    from neo4j import AsyncManagedTransaction

    from ragforge_tui.graph.connect import Graph

_PAGE = 100


class Transfer(Conversations, Turns):
    """What `Store` does to export and import."""

    _graph: Graph

    async def export(self, uuid: str) -> ConversationExport:
        """The conversation with all its turns, superseded attempts included.

        Raises:
            NotFoundError: There is no such conversation.
        """
        conversation = await self.get_conversation(uuid)
        turns: list[Turn] = []
        for start in range(1, conversation.next_turn, _PAGE):
            turns += await self.turns(uuid, start=start, end=min(start + _PAGE, conversation.next_turn))
        return ConversationExport(conversation=conversation, turns=turns)

    async def import_(self, e: ConversationExport) -> Conversation:
        """Bring an exported conversation in; what is there already stays as it is.

        Raises:
            GraphError: A conversation of this id holds other messages in the same places.
        """
        for stub in _ancestors(e):
            await self._import_conversation(stub, stub=True)
        await self._import_conversation(e.conversation, stub=False)
        messages = [message for turn in e.turns for message in turn.messages]
        texts = {(m.conversation_id, t.turn_index): _turn_text(t) for t in e.turns for m in t.messages}
        for start in range(0, len(messages), _PAGE):
            page = messages[start : start + _PAGE]
            await self._refuse_conflicts(page)
            await self._import_messages(page, texts)
            await self._import_calls(page, e.conversation.workspace)
        return await self.get_conversation(e.conversation.uuid)

    async def _import_conversation(self, c: Conversation, *, stub: bool) -> None:
        properties = conversation_properties(c)

        async def work(tx: AsyncManagedTransaction) -> None:
            # A conversation deleted here and imported again comes back; a stub becomes what it stood for.
            await tx.run(
                "MERGE (c:Conversation {uuid: $uuid}) ON CREATE SET c += $properties, c.stub = $stub "
                "WITH c, c.next_turn AS next WHERE NOT $stub AND (c.stub OR c.status = 'deleted') "
                "SET c += $properties, c.stub = false, c.deleted_at = $deleted_at, "
                "c.next_turn = CASE WHEN next > $next THEN next ELSE $next END",
                uuid=c.uuid,
                properties=properties,
                stub=stub,
                deleted_at=properties["deleted_at"],
                next=c.next_turn,
            )
            if c.branch_of:
                await tx.run(
                    "MATCH (p:Conversation {uuid: $parent}), (c:Conversation {uuid: $uuid}) "
                    "OPTIONAL MATCH (m:Message {conversation_id: $parent, turn_index: $turn, position: 0}) "
                    "MERGE (p)-[b:HAS_BRANCH]->(c) SET b.from_message = m.uuid",
                    parent=c.branch_of,
                    uuid=c.uuid,
                    turn=c.branch_turn,
                )

        await self._graph.write(work)

    async def _refuse_conflicts(self, messages: list[Message]) -> None:
        async def work(tx: AsyncManagedTransaction) -> str | None:
            result = await tx.run(
                "UNWIND $rows AS row "
                "MATCH (m:Message {conversation_id: row.id, turn_index: row.turn, position: row.position}) "
                "WHERE m.uuid <> row.uuid RETURN m.conversation_id AS id LIMIT 1",
                rows=[
                    {"id": m.conversation_id, "turn": m.turn_index, "position": m.position, "uuid": m.uuid}
                    for m in messages
                ],
            )
            record = await result.single()
            return record["id"] if record else None

        conflict = await self._graph.read(work)
        if conflict:
            raise GraphError(
                f"Conversation {conflict} is here already, with other messages in the same places.",
                kept="What is here was left as it is.",
                kind="import_conflict",
            )

    async def _import_messages(self, messages: list[Message], texts: dict[tuple[str, int], str]) -> None:
        rows = []
        for m in messages:
            properties = {**message_properties(m), "counted_chars": m.char_count}
            if m.position == 0:
                properties["turn_text"] = texts[m.conversation_id, m.turn_index]
            await store_large(self._graph, m.uuid, m.conversation_id, properties, LARGE)
            rows.append(properties)
        await self._merge("Message", "Conversation", "conversation_id", "HAS_MESSAGE", rows)

    async def _import_calls(self, messages: list[Message], workspace: str) -> None:
        calls, results, files = [], [], []
        for m in messages:
            for c in m.tool_calls:
                call = call_properties(c, m.conversation_id)
                await store_large(self._graph, c.uuid, m.conversation_id, call, CALL_LARGE)
                calls.append(call)
                rows = file_rows(c.files)
                files += [{**row, "call": c.uuid, "ordinal": n} for n, row in enumerate(rows)]
                if c.result:
                    result = result_properties(cut_result(c.result), m.conversation_id)
                    await store_large(self._graph, c.result.uuid, m.conversation_id, result, RESULT_LARGE)
                    results.append(result)
        await self._merge("ToolCall", "Message", "message_id", "MADE_TOOL_CALL", calls)
        await self._merge("ToolResult", "ToolCall", "tool_call_id", "PRODUCED_RESULT", results)
        await self._link_files(files, workspace)

    async def _merge(self, label: str, parent: str, key: str, relationship: str, rows: list[dict[str, Any]]) -> None:
        """Merge nodes and hang each on the parent its property `key` names, in small statements."""
        statement = (
            f"UNWIND $rows AS row MATCH (p:{parent} {{uuid: row.{key}}}) "
            f"MERGE (n:{label} {{uuid: row.uuid}}) ON CREATE SET n += row MERGE (p)-[:{relationship}]->(n)"
        )
        for batch in batches((row, row_size(row)) for row in rows):

            async def work(tx: AsyncManagedTransaction, batch: list[dict[str, Any]] = batch) -> None:
                await tx.run(statement, rows=batch)
                for row in batch:
                    await link_parts(tx, label, row["uuid"], row)

            await self._graph.write(work)

    async def _link_files(self, rows: list[dict[str, Any]], workspace: str) -> None:
        for batch in batches((row, row_size(row)) for row in rows):

            async def work(tx: AsyncManagedTransaction, batch: list[dict[str, Any]] = batch) -> None:
                await tx.run(
                    "UNWIND $rows AS row MATCH (t:ToolCall {uuid: row.call}) "
                    "MERGE (f:File {workspace: $workspace, path: row.path}) "
                    "MERGE (t)-[a:ACCESSED {access: row.access}]->(f) SET a.ordinal = row.ordinal",
                    rows=batch,
                    workspace=storable(workspace),
                )

            await self._graph.write(work)


def _turn_text(turn: Turn) -> str:
    """What search looks at until the turn is indexed anew: what was said in it."""
    said: Iterable[str] = (m.content for m in turn.messages if m.state != "superseded")
    return storable("\n\n".join(text[:INDEXED_CHARS] for text in said if text)[:INDEXED_CHARS])


def _ancestors(e: ConversationExport) -> list[Conversation]:
    """Stubs of the conversations whose turns an exported branch shares, the oldest first."""
    held: dict[str, int] = {}
    for turn in e.turns:
        for message in turn.messages:
            held[message.conversation_id] = turn.turn_index
    own = e.conversation.uuid
    chain = [(uuid, last) for uuid, last in held.items() if uuid != own]
    if e.conversation.branch_of and e.conversation.branch_of not in held:
        chain.append((e.conversation.branch_of, e.conversation.branch_turn or 0))
    stubs: list[Conversation] = []
    for uuid, last in chain:
        parent = stubs[-1] if stubs else None
        stubs.append(
            Conversation(
                uuid=uuid,
                status="archived",
                created_at=e.conversation.created_at,
                updated_at=e.conversation.created_at,
                workspace=e.conversation.workspace,
                owner=e.conversation.owner,
                next_turn=last + 1,
                branch_of=parent.uuid if parent else None,
                branch_turn=parent.next_turn - 1 if parent else None,
            )
        )
    return stubs
