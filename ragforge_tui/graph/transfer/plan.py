"""The plan of an import: what it would add to the graph, and whether it may.

Everything is read before anything is written. A file adds to its own conversation when that is new, or when the user
asks for it; to the parent of a branch only while that is a stub, which earlier imports created to hold shared turns. An
interrupted import left its mark in the conversation and may continue.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec

from ragforge_tui.graph.transfer.memory_in import fitting_summaries, in_order
from ragforge_tui.shared.errors import GraphError
from ragforge_tui.shared.export_records import ConversationExport, ImportAdds
from ragforge_tui.shared.records import Message

if TYPE_CHECKING:
    from neo4j import AsyncManagedTransaction

    from ragforge_tui.graph.connect import Graph

_PAGE = 500
_KEPT = "What is here was left as it is."


class ImportPlan(msgspec.Struct, frozen=True):
    """A checked import.

    Attributes:
        writable: Ids of the conversations that may be added to.
        created: Whether the conversation itself is new, a stub until now, or marked by this same import.
        adds: What is not in the graph yet.
    """

    writable: frozenset[str]
    created: bool
    adds: ImportAdds

    @property
    def complete(self) -> bool:
        """Whether all of the file is in the graph."""
        return not self.created and not self.adds

    def allowed(self, e: ConversationExport) -> ConversationExport:
        """Return the export with only the memory of conversations that may be added to."""
        owners = {m.uuid: m.conversation_id for m in _messages(e)}
        return msgspec.structs.replace(
            e,
            contexts=[c for c in e.contexts if all(owners[m] in self.writable for m in c.messages)],
            spoken=[s for s in e.spoken if owners[s.message] in self.writable],
            memory=msgspec.structs.replace(
                e.memory, summaries=[s for s in e.memory.summaries if s.conversation_id in self.writable]
            ),
        )


async def plan_import(graph: Graph, e: ConversationExport, *, mark: str, merge: bool) -> ImportPlan:
    """Compare a checked export with the graph.

    Args:
        mark: Digest of the export, which an import of it leaves until it is whole.
        merge: Whether a conversation that is here already may be added to.

    Raises:
        GraphError: Other records are in the same places, or the import would add where it may not.
    """
    own = e.conversation.uuid
    named = {own, *(m.conversation_id for m in _messages(e)), *filter(None, [e.conversation.branch_of])}
    here = await _here(graph, sorted(named))
    created = own not in here or here[own] in ("stub", mark)
    writable = {own} | {uuid for uuid in named if here.get(uuid, "stub") == "stub"}
    new = await _new_messages(graph, list(_messages(e)))
    calls = [(c.uuid, c.message_id, m.conversation_id, m.turn_index) for m in _messages(e) for c in m.tool_calls]
    results = [
        (c.result.uuid, c.uuid, m.conversation_id, m.turn_index)
        for m in _messages(e)
        for c in m.tool_calls
        if c.result is not None
    ]
    new_calls = await _new_nodes(graph, "ToolCall", "message_id", calls)
    new_calls += await _new_nodes(graph, "ToolResult", "tool_call_id", results)
    places = [(m.conversation_id, m.turn_index) for m in new] + [(place[2], place[3]) for place in new_calls]
    _refuse_foreign(places, writable)
    plan = ImportPlan(writable=frozenset(writable), created=created, adds=ImportAdds())
    summaries, contexts = await _new_memory(graph, plan.allowed(e))
    plan = msgspec.structs.replace(
        plan,
        adds=ImportAdds(
            turns=[m.turn_index for m in new if m.position == 0],
            messages=len(new),
            calls=len(new_calls),
            summaries=summaries,
            contexts=contexts,
        ),
    )
    if plan.adds and not created and not merge:
        raise GraphError(
            f"Conversation {own} is here already, and this file would add to it: {plan.adds.text()}.",
            kept=_KEPT,
            todo="Import it with --merge to add that.",
            kind="import_merge",
        )
    return plan


def _messages(e: ConversationExport) -> Iterator[Message]:
    for turn in e.turns:
        yield from turn.messages


async def _here(graph: Graph, uuids: list[str]) -> dict[str, str]:
    """Return the existing conversations with "stub", the mark of an interrupted import, or an empty text."""
    return {
        record["id"]: "stub" if record["stub"] else record["mark"]
        for record in await graph.rows(
            "UNWIND $ids AS id MATCH (c:Conversation {uuid: id}) "
            "RETURN id, coalesce(c.stub, false) AS stub, coalesce(c.importing, '') AS mark",
            ids=uuids,
        )
    }


def _refuse_foreign(places: list[tuple[str, int]], writable: set[str]) -> None:
    """Refuse turns of a parent that is here without them: they are that conversation's own."""
    foreign = [place for place in places if place[0] not in writable]
    if foreign:
        parent = foreign[0][0]
        turns = sorted({turn for conversation, turn in foreign if conversation == parent})
        which = f"turn {turns[0]}" if len(turns) == 1 else f"turns {turns[0]} to {turns[-1]}"
        raise GraphError(
            f"This file would add {which} to conversation {parent}, which it is only a branch of.",
            kept=_KEPT,
            todo=f"Import an export of {parent} itself first.",
            kind="import_conflict",
        )


async def _new_messages(graph: Graph, messages: list[Message]) -> list[Message]:
    """The messages that are not in the graph yet."""
    new: list[Message] = []
    for start in range(0, len(messages), _PAGE):
        page = messages[start : start + _PAGE]

        async def work(tx: AsyncManagedTransaction, page: list[Message] = page) -> list[Message]:
            result = await tx.run(
                "UNWIND $ids AS id MATCH (m:Message {uuid: id}) "
                "RETURN id, m.conversation_id AS conversation, m.turn_index AS turn, m.position AS position",
                ids=[m.uuid for m in page],
            )
            known = {r["id"]: (r["conversation"], r["turn"], r["position"]) async for r in result}
            for m in page:
                if known.get(m.uuid, place := (m.conversation_id, m.turn_index, m.position)) != place:
                    raise _elsewhere("Message", m.uuid)
            fresh = [m for m in page if m.uuid not in known]
            await _refuse_taken(tx, fresh)
            return fresh

        new += await graph.read(work)
    return new


async def _refuse_taken(tx: AsyncManagedTransaction, fresh: list[Message]) -> None:
    """Refuse messages that are to be made where others are."""
    result = await tx.run(
        "UNWIND $rows AS row "
        "MATCH (m:Message {conversation_id: row.id, turn_index: row.turn, position: row.position}) "
        "WHERE m.uuid <> row.uuid RETURN m.conversation_id AS id LIMIT 1",
        rows=[{"id": m.conversation_id, "turn": m.turn_index, "position": m.position, "uuid": m.uuid} for m in fresh],
    )
    taken = await result.single()
    if taken:
        raise GraphError(
            f"Conversation {taken['id']} is here already, with other messages in the same places.",
            kept=_KEPT,
            kind="import_conflict",
        )


async def _new_nodes(
    graph: Graph, label: str, key: str, rows: list[tuple[str, str, str, int]]
) -> list[tuple[str, str, str, int]]:
    """Those of the rows (uuid, parent's uuid, conversation, turn) whose node is not in the graph yet."""
    known: dict[str, str] = {}
    for start in range(0, len(rows), _PAGE):
        known |= {
            record["id"]: record["parent"]
            for record in await graph.rows(
                f"UNWIND $ids AS id MATCH (n:{label} {{uuid: id}}) RETURN id, n.{key} AS parent",
                ids=[row[0] for row in rows[start : start + _PAGE]],
            )
        }
    for uuid, parent, *_ in rows:
        if known.get(uuid, parent) != parent:
            raise _elsewhere(label, uuid)
    return [row for row in rows if row[0] not in known]


def _elsewhere(label: str, uuid: str) -> GraphError:
    return GraphError(
        f"The {label} {uuid} of this file is here already, in another place.", kept=_KEPT, kind="import_conflict"
    )


async def _new_memory(graph: Graph, e: ConversationExport) -> tuple[int, int]:
    """Return the numbers of summaries and stored contexts that would be created."""

    async def summaries(tx: AsyncManagedTransaction) -> int:
        return len(await fitting_summaries(tx, in_order(e.memory.summaries)))

    uuids = sorted({context.uuid for context in e.contexts if context.messages})
    known = 0
    for start in range(0, len(uuids), _PAGE):

        async def contexts(tx: AsyncManagedTransaction, start: int = start) -> int:
            result = await tx.run(
                "UNWIND $ids AS id MATCH (x:Context {uuid: id}) RETURN count(x) AS known",
                ids=uuids[start : start + _PAGE],
            )
            record = await result.single(strict=True)
            return int(record["known"])

        known += await graph.read(contexts)
    return await graph.read(summaries), len(uuids) - known
