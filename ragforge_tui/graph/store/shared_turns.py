"""Handing over of the turns that branches share with a conversation which is to be removed.

A branch reads the turns it shares from its parent. The branch that shares most becomes their owner, and the others read
them from there. Turns move from the last one backwards, and in the same transaction the branch is shortened by as many:
every reader finds each turn once at any moment, and a move that was killed is continued by the next one. What is known
about a turn moves with it; what a turn that stays behind had settled holds again.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ragforge_tui.graph.connection import Graph, Transaction
from ragforge_tui.graph.content_files import Text
from ragforge_tui.graph.schema.indexes import MESSAGE_LEX
from ragforge_tui.graph.store.contents import KINDS
from ragforge_tui.graph.store.conversations import branches_of, existing_conversation, link_branch
from ragforge_tui.graph.store.findings import finding_uuid
from ragforge_tui.graph.store.records import derived
from ragforge_tui.graph.store.summaries import visible_summaries
from ragforge_tui.graph.store.summary_tree import chosen_end, summary_uuid
from ragforge_tui.shared.finding_records import first_state
from ragforge_tui.shared.records import Conversation, Summary

_MESSAGES = 100
"""Most messages that change their owner at once, unless one turn has more."""
_TEXTS = 16
"""Calls, results and parts that change their owner at once; each has up to 1 MiB of text."""
_FIELDS = {kind.label: kind for kind in KINDS}
_CALLS = "(m)-[:MADE_TOOL_CALL]->"
_RESULTS = f"{_CALLS}(:ToolCall)-[:PRODUCED_RESULT]->"
_BELOW = (
    ("Part", "(m)-[:HAS_PART]->"),
    ("Part", f"{_CALLS}(:ToolCall)-[:HAS_PART]->"),
    ("Part", f"{_RESULTS}(:ToolResult)-[:HAS_PART]->"),
    ("ToolCall", _CALLS),
    ("ToolResult", _RESULTS),
    ("Context", "(m)-[:WAS_SENT]->"),
)
"""Nodes below a message that have the id of its conversation, with their paths."""
_MOVED = "MATCH (m:Message {conversation_id: $parent}) WHERE m.turn_index > $after AND m.turn_index <= $last"
_TO_HEIR = "MATCH (h:Conversation {uuid: $heir})"
_STAYS = "MATCH (m:Message {conversation_id: $parent}) WHERE m.turn_index > $last"
_TURNS = (
    "UNWIND $rows AS row MATCH (m:Message {uuid: row.uuid})<-[r:HAS_MESSAGE]-(:Conversation) "
    f"{_TO_HEIR} SET m += row.set DELETE r CREATE (h)-[:HAS_MESSAGE]->(m)",
    "MATCH (c:Conversation {branch_of: $parent}) WHERE coalesce(c.helper_of, '') <> '' "
    "MATCH (:ToolCall {uuid: c.helper_of})<-[:MADE_TOOL_CALL]-(:Message {conversation_id: $heir}) "
    f"MATCH (c)<-[r:HAS_BRANCH]-(:Conversation) {_TO_HEIR} "
    "SET c.branch_of = $heir DELETE r CREATE (h)-[:HAS_BRANCH]->(c)",
    "MATCH (a:Attempt {conversation_id: $parent}) WHERE a.turn_index > $after AND a.turn_index <= $last "
    f"AND NOT EXISTS {{ {_STAYS} AND m.turn_index = a.end_turn }} SET a.conversation_id = $heir",
)
"""Statements that move turns and the results of their calls, in one transaction."""
_UNKEYED = (
    "MATCH (m:Message {conversation_id: $heir, position: 0}) WHERE m.turn_index > $covered AND m.turn_index <= $last "
    f"SET {', '.join(f'm.{names[0]} = NULL' for names in MESSAGE_LEX.values())}, m.facts_digest = NULL, "
    "m.recall_version = 0",
    f"{_TO_HEIR} SET h.keys_version = 0",
)
"""A key holds the words of the turns around it and of what summaries say about it, also of those that stay behind."""
_SUMMARY = (
    "MATCH (x:Summary)-[:SUMMARIZES]->(s:Summary {uuid: $old}) SET x.parent_summaries = "
    "[id IN x.parent_summaries | CASE WHEN id = $old THEN $new ELSE id END]",
    f"MATCH (s:Summary {{uuid: $old}})<-[r:HAS_SUMMARY]-(:Conversation) {_TO_HEIR} SET s += $set "
    "DELETE r CREATE (h)-[:HAS_SUMMARY]->(s)",
)
_FINDING = (
    "MATCH (:Finding {uuid: $old})-[:REPLACES]->(o:Finding) SET o.replaced_by = $new",
    f"MATCH (f:Finding {{uuid: $old}})<-[r:HAS_FINDING]-(:Conversation) {_TO_HEIR} SET f += $set "
    "DELETE r CREATE (h)-[:HAS_FINDING]->(f)",
)
_SITTING = (
    f"MATCH (s:Sitting {{uuid: $old}})<-[r:HAS_SITTING]-(:Conversation) {_TO_HEIR} SET s += $set "
    "DELETE r CREATE (h)-[:HAS_SITTING]->(s)",
)
_KEEP_PROGRESS = (
    "MATCH (p:Conversation {uuid: $parent}), (h:Conversation {uuid: $heir}) "
    "SET h.attempts_through = coalesce(h.attempts_through, h.branch_turn), "
    "h.code_through = coalesce(h.code_through, h.branch_turn), "
    "h.indexed_turn = coalesce(h.indexed_turn, CASE WHEN p.indexed_turn < h.branch_turn THEN p.indexed_turn "
    "ELSE h.branch_turn END)"
)
"""Watermarks that move along: shared turns are not examined again."""


class Heir(msgspec.Struct, frozen=True):
    """The branch that took over the turns it shares with a conversation, and their number."""

    conversation: Conversation
    turns: int


async def hand_over(graph: Graph, uuid: str) -> Heir | None:
    """Give the turns of a conversation that branches share to the one that shares most; None without branches.

    Raises:
        NotFoundError: There is no such conversation.
    """
    parent = await graph.read(lambda tx: existing_conversation(tx, uuid))
    branches = await branches_of(graph, uuid)
    if not branches:
        return None
    heir = await graph.read(lambda tx: existing_conversation(tx, branches[0]))
    await graph.write(lambda tx: _adopt(tx, uuid, branches[1:], heir.uuid))
    await graph.run(_KEEP_PROGRESS, parent=uuid, heir=heir.uuid)
    visible = await graph.read(lambda tx: visible_summaries(tx, heir.uuid)) or []
    last, inherited = heir.branch_turn or 0, (parent.branch_turn or 0) if parent.branch_of else 0
    covered = min(chosen_end(visible, 1), last - 1)
    while last > inherited:
        after = await _before_batch(graph, uuid, inherited, last)
        await _Move(graph, uuid, heir.uuid, after, last).run(visible, covered)
        last = after
    await graph.write(lambda tx: _take_place(tx, parent, heir.uuid, visible))
    kept = (heir.branch_turn or 0) - inherited
    return Heir(heir, kept) if kept > 0 else None


class _Move:
    """Move of the turns after one turn, up to another, from a conversation to its branch."""

    def __init__(self, graph: Graph, parent: str, heir: str, after: int, last: int) -> None:
        self._graph = graph
        self._heir = heir
        self._span: dict[str, Any] = {"parent": parent, "heir": heir, "after": after, "last": last}

    async def run(self, visible: list[Summary], covered: int) -> None:
        """Move them, with those of the summaries that end with them.

        Args:
            covered: The last turn whose search key is only about turns that are shared.
        """
        await self._move_below()
        span = self._span
        ids = [row["uuid"] for row in await self._graph.rows(f"{_MOVED} RETURN m.uuid AS uuid", **span)]
        messages = await self._owned("Message", ids)
        moved = [
            one
            for one in visible
            if one.conversation_id == span["parent"] and span["after"] < one.end_turn_index <= span["last"]
        ]

        async def work(tx: Transaction) -> None:
            await _run(tx, _TURNS, rows=messages, **span)
            await _run(tx, _UNKEYED, covered=covered, **span)
            await _move_summaries(tx, span, moved)
            await _move_findings(tx, span)
            await _move_sittings(tx, span)
            await _run(tx, (f"{_TO_HEIR} SET h.branch_turn = $after",), **span)

        await self._graph.write(work)

    async def _move_below(self) -> None:
        """Change the owner of all that is below the messages; readers find it through them."""
        for label, way in _BELOW:
            rows = await self._graph.rows(
                f"{_MOVED} MATCH {way}(n:{label} {{conversation_id: $parent}}) RETURN DISTINCT n.uuid AS uuid",
                **self._span,
            )
            ids = [row["uuid"] for row in rows]
            for start in range(0, len(ids), _TEXTS):
                await self._graph.run(
                    f"UNWIND $rows AS row MATCH (n:{label} {{uuid: row.uuid}}) SET n += row.set",
                    rows=await self._owned(label, ids[start : start + _TEXTS]),
                )

    async def _owned(self, label: str, ids: list[str]) -> list[dict[str, Any]]:
        """Return the properties that make nodes the branch's; texts in files are copied to its file."""
        changes = {uuid: {"conversation_id": self._heir} for uuid in ids}
        kind, files = _FIELDS.get(label), self._graph.contents
        for start in range(0, len(ids) if kind else 0, _TEXTS):
            assert kind is not None
            rows = await self._graph.rows(
                f"UNWIND $ids AS id MATCH (n:{label} {{uuid: id}}) WHERE {kind.in_files} RETURN {kind.projection} AS n",
                ids=ids[start : start + _TEXTS],
            )
            places = [(row["n"]["uuid"], f, row["n"][f"{f}_file"]) for row in rows for f in kind.fields]
            texts = await files.read({file for *_, file in places if file})
            # A text that this machine cannot read stays where it is, and its reference with it.
            whole = [(uuid, f, text) for uuid, f, file in places if isinstance(text := texts.get(file), str)]
            if whole:
                await self._graph.prepare_contents()
            references = await files.append(self._heir, [Text(*place) for place in whole])
            for (uuid, field, _), reference in zip(whole, references, strict=True):
                changes[uuid][f"{field}_file"] = reference.encode()
        return [{"uuid": uuid, "set": change} for uuid, change in changes.items()]


async def _before_batch(graph: Graph, parent: str, inherited: int, last: int) -> int:
    """Return the turn before those that move together: whole turns, with few messages."""
    rows = await graph.rows(
        f"{_MOVED} RETURN m.turn_index AS turn ORDER BY turn DESC LIMIT $limit",
        parent=parent,
        after=inherited,
        last=last,
        limit=_MESSAGES + 1,
    )
    if len(rows) <= _MESSAGES:
        return inherited
    first: int = rows[-1]["turn"]
    return first if first < rows[0]["turn"] else first - 1


async def _run(tx: Transaction, statements: tuple[str, ...], **parameters: Any) -> None:
    for statement in statements:
        await (await tx.run(statement, parameters)).consume()


async def _adopt(tx: Transaction, parent: str, branches: list[str], heir: str) -> None:
    """Let branches read their shared turns through another branch, which shares at least as much."""
    statement = (
        f"{_TO_HEIR} UNWIND $ids AS id MATCH (:Conversation {{uuid: $parent}})-[r:HAS_BRANCH]->"
        "(c:Conversation {uuid: id}) SET c.branch_of = $heir "
        "CREATE (h)-[n:HAS_BRANCH]->(c) SET n.from_message = r.from_message DELETE r"
    )
    await _run(tx, (statement,), parent=parent, heir=heir, ids=branches)


async def _move_summaries(tx: Transaction, span: dict[str, Any], moved: list[Summary]) -> None:
    """Give the branch the summaries of its turns, with the ids and numbers that follow from the new owner."""
    result = await tx.run(
        f"{_TO_HEIR} SET h.summary_sequence = coalesce(h.summary_sequence, 0) + $count "
        "RETURN h.summary_sequence AS sequence",
        heir=span["heir"],
        count=len(moved),
    )
    sequence = (await result.single(strict=True))["sequence"]
    for number, one in enumerate(moved):
        new = summary_uuid(span["heir"], one.level, one.start_turn_index, one.end_turn_index)
        change = {"uuid": new, "conversation_id": span["heir"], "sequence": sequence - number}
        await _run(tx, _SUMMARY, old=one.uuid, new=new, set=change, **span)


async def _move_findings(tx: Transaction, span: dict[str, Any]) -> None:
    """Give the branch the findings of its turns; a finding closed only by a removed turn is valid again."""
    result = await tx.run(
        "MATCH (f:Finding {conversation_id: $parent}) WHERE f.turn_index > $after AND f.turn_index <= $last "
        "OPTIONAL MATCH (f)-[:CLOSED_BY]->(x) OPTIONAL MATCH (n:Finding)-[:REPLACES]->(f) "
        "RETURN f.uuid AS uuid, f.turn_index AS turn, f.kind AS kind, f.text AS text, x.conversation_id AS closed, "
        "n.conversation_id AS replaced, n.turn_index AS later",
        span,
    )
    found = {row["uuid"]: row for row in await result.data()}
    for uuid, row in found.items():
        change: dict[str, Any] = {
            "uuid": finding_uuid(span["heir"], row["turn"], row["kind"], row["text"]),
            "conversation_id": span["heir"],
            # The log of acts holds the texts of other findings.
            "acts": None,
            "acted_at": None,
        }
        parent, last = span["parent"], span["last"]
        if row["closed"] == parent or (row["replaced"] == parent and row["later"] > last):
            change |= {"state": first_state(row["kind"]), "until": None, "closed_by": "", "replaced_by": ""}
        await _run(tx, _FINDING, old=uuid, new=change["uuid"], set=change, **span)


async def _move_sittings(tx: Transaction, span: dict[str, Any]) -> None:
    """Give the branch the sittings without a turn that stays behind, unless it has that sitting itself."""
    result = await tx.run(
        "MATCH (s:Sitting {conversation_id: $parent}) "
        "WHERE EXISTS { MATCH (m:Message {conversation_id: $heir}) WHERE m.sitting = s.ordinal "
        "AND m.turn_index > $after AND m.turn_index <= $last } "
        f"AND NOT EXISTS {{ {_STAYS} AND m.sitting = s.ordinal }} "
        "AND NOT EXISTS { MATCH (o:Sitting {conversation_id: $heir}) WHERE o.ordinal = s.ordinal } "
        "RETURN s.uuid AS uuid, s.ordinal AS ordinal",
        span,
    )
    for row in await result.data():
        change = {"uuid": derived("sitting", span["heir"], row["ordinal"]), "conversation_id": span["heir"]}
        await _run(tx, _SITTING, old=row["uuid"], set=change, **span)


async def _take_place(tx: Transaction, parent: Conversation, heir: str, visible: list[Summary]) -> None:
    """Put the branch where its parent was, once it shares no turn of the parent any more."""
    watermarks = [chosen_end(visible, level) for level in range(1, max((s.level for s in visible), default=0) + 1)]
    branch = msgspec.structs.replace(
        await existing_conversation(tx, heir),
        branch_of=parent.branch_of,
        branch_turn=None,
    )
    if parent.branch_of:
        shared = (await existing_conversation(tx, heir)).branch_turn or 0
        branch.branch_turn = min(shared, parent.branch_turn or 0)
    statements = (
        "MATCH (:Conversation {uuid: $parent})-[r:HAS_BRANCH]->(:Conversation {uuid: $heir}) DELETE r",
        f"{_TO_HEIR} SET h.branch_of = $above, h.branch_turn = $shared, h.watermarks = $watermarks, "
        "h.findings_changed = coalesce(h.findings_changed, 0) + 1",
        f"{_TO_HEIR} MATCH (:Conversation {{uuid: $parent}})-[:BEGINS_WITH]->(t:SystemText) "
        "MERGE (h)-[:BEGINS_WITH]->(t)",
    )
    await _run(
        tx,
        statements,
        parent=parent.uuid,
        heir=heir,
        above=branch.branch_of,
        shared=branch.branch_turn,
        watermarks=watermarks,
    )
    if branch.branch_of:
        await link_branch(tx, branch)
