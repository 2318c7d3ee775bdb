"""Checks of an import before anything is written: the file itself, and what it would add to the graph.

A file may come from anywhere, so all of it is checked before the first request to the graph: a refused file leaves
nothing behind. Ids become file names and turn indexes become loops, so both must have the form this program writes.

Everything is read before anything is written. A file adds to its own conversation when that is new, or when the user
asks for it; to the parent of a branch only while that is a stub, which earlier imports created to hold shared turns. An
interrupted import left its mark in the conversation and may continue.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator

import msgspec

from ragforge_tui.graph.connection import Graph, Transaction
from ragforge_tui.graph.store.findings import missing_findings
from ragforge_tui.graph.store.insights import insight_uuid, stored_insight
from ragforge_tui.graph.transfer.import_memory import fitting_summaries, in_order
from ragforge_tui.shared.errors import GraphError
from ragforge_tui.shared.export_records import ConversationExport, ImportAdds
from ragforge_tui.shared.records import Message, Summary, ToolCall

_UUID = re.compile(r"[0-9a-f]{32}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
MAX_LEVEL = 64
"""Each level of summaries covers at least two of the level below, so 64 are more than turns can be counted for."""
LARGEST = 2**63
"""Integers of the graph have 64 bits."""
_SHOWN_CHARS = 60
_FINDING_CHARS = 10_000
_PAGE = 500
_KEPT = "Nothing was changed."


def check_export(e: ConversationExport) -> None:
    """Check that all parts of an export belong together and have the form this program writes.

    Raises:
        GraphError: An id is not a UUID, a turn is out of order, or a record refers to one that is not in the file.
    """
    for what, uuid in _ids(e):
        if not _UUID.fullmatch(uuid):
            raise invalid_import(f"the id of a {what} is not a UUID: {uuid[:_SHOWN_CHARS]!r}")
    for record in _records(e):
        for name in record.__struct_fields__:
            value = getattr(record, name)
            if isinstance(value, int) and not -LARGEST <= value < LARGEST:
                raise invalid_import(f"{name} of a {type(record).__name__} is too large")
    _check_turns(e)
    _check_branch(e)
    _check_memory(e)


def invalid_import(why: str) -> GraphError:
    """Return the error of a file that cannot be imported."""
    return GraphError(
        f"This file cannot be imported: {why}.",
        kept="Nothing was stored.",
        todo="Export the conversation again with this program.",
        kind="bad_import",
    )


def _messages(e: ConversationExport) -> Iterator[Message]:
    for turn in e.turns:
        yield from turn.messages


def _calls(e: ConversationExport) -> Iterator[ToolCall]:
    for message in _messages(e):
        yield from message.tool_calls


def _ids(e: ConversationExport) -> Iterator[tuple[str, str]]:
    """Yield every id of the file, with the kind of its record."""
    yield "conversation", e.conversation.uuid
    if e.conversation.branch_of is not None:
        yield "parent conversation", e.conversation.branch_of
    for message in _messages(e):
        yield "message", message.uuid
        yield "conversation", message.conversation_id
    for call in _calls(e):
        yield "tool call", call.uuid
        if call.result is not None:
            yield "tool result", call.result.uuid
    for context in e.contexts:
        yield "context", context.uuid
    for spoken in e.spoken:
        yield "persona", spoken.persona
    memory = e.memory
    for summary in memory.summaries:
        yield "summary", summary.uuid
        yield "conversation", summary.conversation_id
        for below in summary.parent_summaries:
            yield "summary", below
        if summary.parent:
            yield "summary", summary.parent
    if memory.insight is not None:
        yield "insight", memory.insight.uuid
        yield "conversation", memory.insight.conversation_id
    for finding in memory.findings:
        yield "finding", finding.uuid
        yield "conversation", finding.conversation_id
        if finding.replaced_by:
            yield "finding", finding.replaced_by
    for attempt in memory.attempts:
        yield "attempt", attempt.uuid
    for topic in memory.topics:
        yield "topic", topic.uuid
    for edge in memory.topic_edges:
        yield "summary" if edge.kind == "has" else "topic", edge.source
        yield "topic", edge.target
        if edge.conversation_id:
            yield "conversation", edge.conversation_id
    for persona in memory.personas:
        yield "persona", persona.uuid
    for text in memory.system_texts:
        yield "system text", text.uuid


def _records(e: ConversationExport) -> Iterator[msgspec.Struct]:
    yield e.conversation
    for message in _messages(e):
        yield message
        if message.usage is not None:
            yield message.usage
    for call in _calls(e):
        yield call
        if call.result is not None:
            yield call.result
    yield from e.contexts
    yield from e.memory.summaries
    yield from e.memory.findings
    if e.memory.insight is not None:
        yield e.memory.insight
    yield from e.memory.attempts


def _check_turns(e: ConversationExport) -> None:
    """Check that turns count from 1 without a gap, so that no loop over them is longer than the file."""
    for expected, turn in enumerate(e.turns, start=1):
        if turn.turn_index != expected:
            raise invalid_import(f"turn {turn.turn_index} is where turn {expected} belongs")
        if not turn.messages:
            raise invalid_import(f"turn {expected} has no message")
        if len({m.conversation_id for m in turn.messages}) != 1:
            raise invalid_import(f"turn {expected} belongs to several conversations")
        positions = [m.position for m in turn.messages]
        if positions[0] != 0 or any(b <= a for a, b in itertools.pairwise(positions)):
            raise invalid_import(f"the messages of turn {expected} are not in order")
        for message in turn.messages:
            if message.turn_index != expected:
                raise invalid_import(f"a message of turn {expected} claims to belong to turn {message.turn_index}")
            for call in message.tool_calls:
                if call.message_id != message.uuid:
                    raise invalid_import(f"a tool call of turn {expected} refers to another message")
                if call.result is not None and call.result.tool_call_id != call.uuid:
                    raise invalid_import(f"a tool result of turn {expected} refers to another call")
    _once("message", (m.uuid for m in _messages(e)))
    _once("tool call", (c.uuid for c in _calls(e)))
    _once("tool result", (c.result.uuid for c in _calls(e) if c.result is not None))


def _once(what: str, uuids: Iterable[str]) -> None:
    seen: set[str] = set()
    for uuid in uuids:
        if uuid in seen:
            raise invalid_import(f"the {what} {uuid} occurs twice")
        seen.add(uuid)


def _check_branch(e: ConversationExport) -> None:
    """Check that the turns a branch shares with its parents come first and all others are its own."""
    own, shared = e.conversation.uuid, e.conversation.branch_turn or 0
    if e.conversation.branch_of is None and shared:
        raise invalid_import("it names a branching turn, but no parent")
    if e.conversation.branch_of == own:
        raise invalid_import("its conversation is a branch of itself")
    if not 0 <= shared <= len(e.turns):
        raise invalid_import(f"it branches after turn {shared}, but has {len(e.turns)} turns")
    owners = [turn.messages[0].conversation_id for turn in e.turns]
    for index, owner in enumerate(owners, start=1):
        if (owner == own) != (index > shared):
            raise invalid_import(f"turn {index} belongs to another conversation")
        if index > 1 and owner != owners[index - 2] and owner in owners[: index - 2]:
            raise invalid_import(f"turn {index} returns to a conversation that an earlier turn left")


def _check_memory(e: ConversationExport) -> None:
    """Check that summaries, contexts and personas refer to turns and messages of the file."""
    held = {m.uuid for m in _messages(e)}
    conversations = {m.conversation_id for m in _messages(e)} | {e.conversation.uuid}
    if e.conversation.branch_of is not None:
        conversations.add(e.conversation.branch_of)
    for summary in e.memory.summaries:
        _check_summary(summary, last=len(e.turns), conversations=conversations)
    _once("summary", (summary.uuid for summary in e.memory.summaries))
    insight = e.memory.insight
    if insight is not None:
        own = e.conversation.uuid
        if (insight.conversation_id, insight.uuid) != (own, insight_uuid(own)):
            raise invalid_import("the insight belongs to another conversation")
        if not 1 <= insight.up_to_turn <= len(e.turns):
            raise invalid_import(f"the insight covers {insight.up_to_turn} turns, but the file has {len(e.turns)}")
    owners = {(m.conversation_id, m.turn_index) for m in _messages(e)}
    for finding in e.memory.findings:
        if (finding.conversation_id, finding.turn_index) not in owners:
            raise invalid_import(f"a finding belongs to turn {finding.turn_index}, which is not in the file")
        if len(finding.text) > _FINDING_CHARS:
            raise invalid_import(f"a finding has {len(finding.text)} characters")
    _once("finding", (finding.uuid for finding in e.memory.findings))
    for attempt in e.memory.attempts:
        if attempt.conversation_id != e.conversation.uuid or attempt.message not in held:
            raise invalid_import(f"an attempt of turn {attempt.turn_index} belongs to another conversation")
        if not 1 <= attempt.turn_index <= attempt.end_turn <= len(e.turns):
            raise invalid_import(f"an attempt covers turns {attempt.turn_index} to {attempt.end_turn}")
    _once("attempt", (attempt.uuid for attempt in e.memory.attempts))
    for context in e.contexts:
        if not held.issuperset(context.messages):
            raise invalid_import(f"a context of turn {context.turn_index} refers to a message that is not in the file")
    for spoken in e.spoken:
        if spoken.message not in held:
            raise invalid_import("a persona belongs to a message that is not in the file")


def _check_summary(summary: Summary, *, last: int, conversations: set[str]) -> None:
    if not 1 <= summary.level <= MAX_LEVEL:
        raise invalid_import(f"a summary has level {summary.level}")
    if not 1 <= summary.start_turn_index <= summary.end_turn_index <= last:
        raise invalid_import(
            f"a summary covers turns {summary.start_turn_index} to {summary.end_turn_index}, but the file has {last}"
        )
    if summary.conversation_id not in conversations:
        raise invalid_import("a summary belongs to another conversation")


class ImportPlan(msgspec.Struct, frozen=True):
    """A checked import.

    Attributes:
        writable: Ids of the conversations that may be added to.
        created: Whether the conversation itself is new, a stub until now, or marked by this same import.
        adds: Records that are not in the graph yet.
    """

    writable: frozenset[str]
    created: bool
    adds: ImportAdds

    @property
    def complete(self) -> bool:
        """Return whether all of the file is in the graph."""
        return not self.created and not self.adds

    def allowed(self, e: ConversationExport) -> ConversationExport:
        """Return the export with only the memory of conversations that may be added to."""
        owners = {m.uuid: m.conversation_id for m in _messages(e)}
        return msgspec.structs.replace(
            e,
            contexts=[c for c in e.contexts if all(owners[m] in self.writable for m in c.messages)],
            spoken=[s for s in e.spoken if owners[s.message] in self.writable],
            memory=msgspec.structs.replace(
                e.memory,
                summaries=[s for s in e.memory.summaries if s.conversation_id in self.writable],
                findings=[f for f in e.memory.findings if f.conversation_id in self.writable],
                commits=[c for c in e.memory.commits if owners.get(c.message, "") in self.writable],
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
    here = await _existing(graph, sorted(named))
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
    summaries, contexts, insights, findings = await _new_memory(graph, plan.allowed(e))
    plan = msgspec.structs.replace(
        plan,
        adds=ImportAdds(
            turns=[m.turn_index for m in new if m.position == 0],
            messages=len(new),
            calls=len(new_calls),
            summaries=summaries,
            contexts=contexts,
            insights=insights,
            findings=findings,
        ),
    )
    if plan.adds and not created and not merge:
        raise GraphError(
            f"Conversation {own} already exists, and this file would add to it: {plan.adds.text()}.",
            kept=_KEPT,
            todo="Import it with --merge to add that.",
            kind="import_merge",
        )
    return plan


async def _existing(graph: Graph, uuids: list[str]) -> dict[str, str]:
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
            f"This file is a branch of conversation {parent} and would add {which} to it.",
            kept=_KEPT,
            todo=f"Import an export of {parent} itself first.",
            kind="import_conflict",
        )


async def _new_messages(graph: Graph, messages: list[Message]) -> list[Message]:
    """Return the messages that are not in the graph yet."""
    new: list[Message] = []
    for start in range(0, len(messages), _PAGE):
        page = messages[start : start + _PAGE]

        async def work(tx: Transaction, page: list[Message] = page) -> list[Message]:
            result = await tx.run(
                "UNWIND $ids AS id MATCH (m:Message {uuid: id}) "
                "RETURN id, m.conversation_id AS conversation, m.turn_index AS turn, m.position AS position",
                ids=[m.uuid for m in page],
            )
            known = {r["id"]: (r["conversation"], r["turn"], r["position"]) async for r in result}
            for m in page:
                if known.get(m.uuid, place := (m.conversation_id, m.turn_index, m.position)) != place:
                    raise _position_conflict("Message", m.uuid)
            fresh = [m for m in page if m.uuid not in known]
            await _refuse_taken(tx, fresh)
            return fresh

        new += await graph.read(work)
    return new


async def _refuse_taken(tx: Transaction, fresh: list[Message]) -> None:
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
            f"Conversation {taken['id']} already exists, with other messages in the same positions.",
            kept=_KEPT,
            kind="import_conflict",
        )


async def _new_nodes(
    graph: Graph, label: str, key: str, rows: list[tuple[str, str, str, int]]
) -> list[tuple[str, str, str, int]]:
    """Return the rows (uuid, parent's uuid, conversation, turn) whose node is not in the graph yet."""
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
            raise _position_conflict(label, uuid)
    return [row for row in rows if row[0] not in known]


def _position_conflict(label: str, uuid: str) -> GraphError:
    return GraphError(
        f"The {label} {uuid} of this file already exists, in another position.", kept=_KEPT, kind="import_conflict"
    )


async def _new_memory(graph: Graph, e: ConversationExport) -> tuple[int, int, int, int]:
    """Return the numbers of summaries, stored contexts, insights and findings that would be created."""

    async def summaries(tx: Transaction) -> int:
        return len(await fitting_summaries(tx, in_order(e.memory.summaries)))

    async def insights(tx: Transaction) -> int:
        own = e.memory.insight
        return int(own is not None and await stored_insight(tx, own.uuid) is None)

    async def findings(tx: Transaction) -> int:
        return len(await missing_findings(tx, e.memory.findings))

    uuids = sorted({context.uuid for context in e.contexts if context.messages})
    known = 0
    for start in range(0, len(uuids), _PAGE):

        async def contexts(tx: Transaction, start: int = start) -> int:
            result = await tx.run(
                "UNWIND $ids AS id MATCH (x:Context {uuid: id}) RETURN count(x) AS known",
                ids=uuids[start : start + _PAGE],
            )
            record = await result.single(strict=True)
            return int(record["known"])

        known += await graph.read(contexts)
    return await graph.read(summaries), len(uuids) - known, await graph.read(insights), await graph.read(findings)
