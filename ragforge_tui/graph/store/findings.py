"""Findings in the graph: each a node with a state, its turn, what it is about, and what closed or replaced it.

A finding belongs to the conversation that holds its turn, so that a branch and its parent have one node for a turn they
share. Its id comes from conversation, turn, kind and text: storing it twice stores it once, and a state that it has
reached stays. Findings of private conversations are returned for that conversation only, those of deleted ones never.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from typing import Any

import msgspec

from ragforge_tui.graph.connection import Graph, Transaction
from ragforge_tui.graph.labels import own_node
from ragforge_tui.graph.store.conversations import Segment, find_conversation, segments_of
from ragforge_tui.graph.store.records import derived, given, graph_value, projection, properties_of, record_from
from ragforge_tui.shared.errors import NotFoundError
from ragforge_tui.shared.finding_records import CURRENT, FindingState, KeptFinding, KeptKind, first_state
from ragforge_tui.shared.records import now
from ragforge_tui.shared.sanitize import storable

_FIELDS = KeptFinding.__struct_fields__
_FINDING = projection("f", _FIELDS)
_ABOUT = own_node("f", "Finding")
VISIBLE = (
    "MATCH (c:Conversation {uuid: f.conversation_id}) "
    "WHERE c.status <> 'deleted' AND (coalesce(c.private, false) <> true OR c.uuid = $asking)"
)
"""Clause after a finding `f`: those that the conversation `$asking` may see."""
_RETURN = f"RETURN {_FINDING} AS f ORDER BY f.since DESC, f.uuid LIMIT $limit"
_CHANGED = "SET c.findings_changed = coalesce(c.findings_changed, 0) + 1"
_MOST = 2_000
"""Findings that one question returns, the newest first."""
_AT_ONCE = 500
_ALL_TURNS = 2**31


def finding_uuid(conversation_id: str, turn_index: int, kind: KeptKind, text: str) -> str:
    """Return the id of a finding; it is the same whoever notes it."""
    return derived("finding", conversation_id, turn_index, kind, text)


def new_finding(
    conversation_id: str, workspace: str, turn_index: int, kind: KeptKind, text: str, **fields: Any
) -> KeptFinding:
    """Return a finding in its first state, with its id.

    Args:
        fields: Values of other fields; `since` is the present without one.
    """
    return KeptFinding(
        uuid=finding_uuid(conversation_id, turn_index, kind, text),
        kind=kind,
        text=text,
        workspace=workspace,
        conversation_id=conversation_id,
        turn_index=turn_index,
        **{"state": first_state(kind), "since": now(), **fields},
    )


class Findings:
    """Findings of turns, and what became of them."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    async def add(self, findings: Sequence[KeptFinding]) -> list[KeptFinding]:
        """Store findings and return them as they are stored now; those that exist stay as they are.

        Those that the user forgot and `graph compact` removed are left out.

        One of a turn that a branch shares is stored with the conversation that holds the turn.

        Raises:
            NotFoundError: There is no such conversation.
        """
        stored: list[KeptFinding] = []
        for conversation_id in dict.fromkeys(finding.conversation_id for finding in findings):
            own = [finding for finding in findings if finding.conversation_id == conversation_id]

            async def work(
                tx: Transaction, conversation_id: str = conversation_id, own: list[KeptFinding] = own
            ) -> list[KeptFinding]:
                return await store_findings(tx, await _at_home(tx, conversation_id, own))

            stored += await self._graph.write(work)
        return stored

    async def of_folder(
        self, workspace: str, *, kinds: Collection[KeptKind] | None = None, current: bool = True, asking: str = ""
    ) -> list[KeptFinding]:
        """Return the findings of a folder and those that hold wherever the user works, the newest first.

        Args:
            kinds: Only these; None: all.
            current: Only those that still hold or are still open.
            asking: The conversation that asks: its own findings are returned even if it is private.
        """
        asked = "($kinds IS NULL OR f.kind IN $kinds) AND ($states IS NULL OR f.state IN $states)"
        found: dict[str, KeptFinding] = {}
        for place in ("workspace: $workspace", "scope: 'user'"):
            found |= {
                finding.uuid: finding
                for finding in await self._found(
                    f"MATCH {own_node('f', 'Finding', place)} WITH f WHERE {asked} {VISIBLE}",
                    workspace=storable(workspace),
                    kinds=None if kinds is None else list(kinds),
                    states=list(CURRENT) if current else None,
                    asking=asking,
                )
            }
        kept = [one for one in found.values() if one.scope != "conversation" or one.conversation_id == asking]
        return sorted(kept, key=lambda finding: (finding.since, finding.uuid), reverse=True)

    async def among(
        self, conversation_ids: Sequence[str], *, kinds: Collection[KeptKind] | None = None, current: bool = True
    ) -> list[KeptFinding]:
        """Return the findings of these conversations, the newest first; the caller may see all of them.

        Args:
            kinds: Only these; None: all.
            current: Only those that still hold or are still open.
        """
        found: list[KeptFinding] = []
        for start in range(0, len(conversation_ids), _AT_ONCE):
            found += await self._found(
                f"UNWIND $ids AS id MATCH {own_node('f', 'Finding', 'conversation_id: id')} "
                "WITH f WHERE ($kinds IS NULL OR f.kind IN $kinds) AND ($states IS NULL OR f.state IN $states)",
                ids=list(conversation_ids[start : start + _AT_ONCE]),
                kinds=None if kinds is None else list(kinds),
                states=list(CURRENT) if current else None,
            )
        return sorted(found, key=lambda finding: (finding.since, finding.uuid), reverse=True)

    async def of_conversation(self, conversation_id: str) -> list[KeptFinding]:
        """Return all findings of a conversation, in whatever state, in order of their turns.

        A branch has those of the turns it shares too.

        Raises:
            NotFoundError: There is no such conversation.
        """

        async def work(tx: Transaction) -> list[KeptFinding]:
            return await findings_of(tx, await segments_of(tx, conversation_id, 1, _ALL_TURNS))

        return await self._graph.read(work)

    async def by_id(self, ids: Sequence[str], *, asking: str = "") -> list[KeptFinding]:
        """Return these findings, in the order of the ids; those that are gone or hidden are left out."""
        found: dict[str, KeptFinding] = {}
        for start in range(0, len(ids), _AT_ONCE):
            for one in await self._found(
                f"UNWIND $ids AS id MATCH {own_node('f', 'Finding', 'uuid: id')} WITH f {VISIBLE}",
                ids=list(dict.fromkeys(ids[start : start + _AT_ONCE])),
                asking=asking,
            ):
                found[one.uuid] = one
        return [found[uuid] for uuid in dict.fromkeys(ids) if uuid in found]

    async def about(
        self, files: Collection[str], scopes: Collection[str], workspace: str, *, asking: str = ""
    ) -> list[KeptFinding]:
        """Return the current findings about any of these files or code scopes of a folder, the newest first."""
        paths = sorted({storable(path) for path in files})
        found = {
            one.uuid: one
            for statement, keys in (
                (f"UNWIND $keys AS key MATCH (:File {{workspace: $workspace, path: key}})<-[:ABOUT]-{_ABOUT}", paths),
                (f"UNWIND $keys AS key MATCH (:Scope {{uuid: key}})<-[:ABOUT]-{_ABOUT}", sorted(set(scopes))),
            )
            if keys
            for one in await self._found(
                f"{statement} WITH DISTINCT f WHERE f.state IN $states {VISIBLE}",
                keys=keys,
                workspace=storable(workspace),
                states=list(CURRENT),
                asking=asking,
            )
        }
        kept = [one for one in found.values() if one.scope != "conversation" or one.conversation_id == asking]
        return sorted(kept, key=lambda finding: (finding.since, finding.uuid), reverse=True)

    async def close(
        self, uuid: str, *, until: datetime, closed_by: str, message_or_call: str = ""
    ) -> KeptFinding | None:
        """Mark a current finding as done and return it; None if it is gone or was not current.

        Args:
            closed_by: What closed it, as words with the turn.
            message_or_call: Id of the message or tool call that did.
        """

        async def work(tx: Transaction) -> KeptFinding | None:
            changed = await _change(tx, uuid, {"state": "done", "until": until, "closed_by": closed_by}, current=True)
            if changed is not None and message_or_call:
                for label in ("Message", "ToolCall"):
                    await tx.run(
                        f"MATCH (f:Finding {{uuid: $uuid}}) MATCH (m:{label} {{uuid: $by}}) "
                        "CREATE (f)-[:CLOSED_BY]->(m)",
                        uuid=uuid,
                        by=message_or_call,
                    )
            return changed

        return await self._graph.write(work)

    async def replace(self, old_uuid: str, new: KeptFinding) -> KeptFinding | None:
        """Store a finding in place of a current one, which stays as replaced, and return the new one.

        Nothing is stored if the old one is gone, or is not current and was not replaced by the new one: None.

        Raises:
            NotFoundError: There is no such conversation.
        """

        async def work(tx: Transaction) -> KeptFinding | None:
            [placed] = await _at_home(tx, new.conversation_id, [new])
            if placed.uuid != old_uuid:
                # Change it first: another writer that closes or forgets it meanwhile is then seen.
                values = {"state": "replaced", "until": new.since, "replaced_by": placed.uuid}
                if await _change(tx, old_uuid, values, current=True) is None:
                    return await _replacement(tx, old_uuid, placed.uuid)
            [stored] = await store_findings(tx, [placed], removed_too=True)
            if stored.uuid != old_uuid:
                await _link_replacements(tx, [{"old": old_uuid, "new": stored.uuid}])
            return stored

        return await self._graph.write(work)

    async def set_state(
        self, uuid: str, state: FindingState, until: datetime | None, *, current: bool = False
    ) -> KeptFinding | None:
        """Set the state of a finding and return it; None if it is gone.

        A finding that becomes current again loses what closed or replaced it.

        Args:
            current: Only if it is current; None otherwise.
        """

        async def work(tx: Transaction) -> KeptFinding | None:
            values: dict[str, Any] = {"state": state, "until": until}
            if state in CURRENT:
                values |= {"closed_by": "", "replaced_by": ""}
                await tx.run("MATCH (:Finding {uuid: $uuid})-[r:CLOSED_BY]->() DELETE r", uuid=uuid)
                await tx.run("MATCH (:Finding)-[r:REPLACES]->(:Finding {uuid: $uuid}) DELETE r", uuid=uuid)
            return await _change(tx, uuid, values, current=current)

        return await self._graph.write(work)

    async def pin(self, uuid: str, pinned: bool) -> KeptFinding | None:
        """Pin a finding, or release it, and return it; None if it is gone."""

        async def work(tx: Transaction) -> KeptFinding | None:
            return await _change(tx, uuid, {"pinned": pinned})

        return await self._graph.write(work)

    async def settled(self, workspace: str, *, asking: str = "") -> list[KeptFinding]:
        """Return the findings of a folder that hold no more, the newest first, and after them what replaced them."""
        found = [
            one
            for place in ("workspace: $workspace", "scope: 'user'")
            for one in await self._found(
                f"MATCH {own_node('f', 'Finding', place)} WITH f WHERE NOT f.state IN $states {VISIBLE}",
                workspace=storable(workspace),
                states=list(CURRENT),
                asking=asking,
            )
        ]
        replacing = await self.by_id([one.replaced_by for one in found if one.replaced_by], asking=asking)
        return list({one.uuid: one for one in (*found, *replacing)}.values())

    async def closing_turns(self, ids: Sequence[str]) -> dict[str, tuple[str, int]]:
        """Return the conversation and turn that closed each of these findings, where that is known."""
        found: dict[str, tuple[str, int]] = {}
        for start in range(0, len(ids), _AT_ONCE):
            for pattern in (
                "-[:CLOSED_BY]->(m:Message)",
                "-[:CLOSED_BY]->(t:ToolCall) MATCH (m:Message {uuid: t.message_id})",
            ):
                rows = await self._graph.rows(
                    f"UNWIND $ids AS id MATCH (:Finding {{uuid: id}}){pattern} "
                    "RETURN id, m.conversation_id AS conversation_id, m.turn_index AS turn",
                    ids=list(ids[start : start + _AT_ONCE]),
                )
                found |= {row["id"]: (row["conversation_id"], row["turn"]) for row in rows}
        return found

    async def read_until(self, conversation_id: str) -> int:
        """Return the last turn of a conversation that was read for findings, 0 without one."""
        row = await self._graph.one(
            "MATCH (c:Conversation {uuid: $id}) RETURN coalesce(c.findings_until, 0) AS turn", id=conversation_id
        )
        return int(row["turn"]) if row else 0

    async def set_read_until(self, conversation_id: str, turn_index: int) -> None:
        """Note the last turn of a conversation that was read for findings."""
        await self._graph.run(
            "MATCH (c:Conversation {uuid: $id}) WHERE coalesce(c.findings_until, 0) < $turn "
            "SET c.findings_until = $turn",
            id=conversation_id,
            turn=turn_index,
        )

    async def unread(self, most: int) -> list[str]:
        """Return imported conversations with turns that were not read, the newest first, without running ones."""
        rows = await self._graph.rows(
            f"MATCH {own_node('c', 'Conversation')} WHERE c.import_version IS NOT NULL AND c.status <> 'deleted' "
            "AND coalesce(c.findings_until, c.branch_turn, 0) < c.next_turn - 1 AND coalesce(c.helper_of, '') = '' "
            "AND NOT EXISTS { MATCH (m:Message {conversation_id: c.uuid}) WHERE m.turn_index = c.next_turn - 1 "
            "AND m.state = 'streaming' } RETURN c.uuid AS uuid ORDER BY c.updated_at DESC LIMIT $most",
            most=most,
        )
        return [row["uuid"] for row in rows]

    async def unkept(self, conversation_id: str) -> list[str]:
        """Return what summaries of a conversation still have to store as findings, as the caller encoded it."""
        row = await self._graph.one(
            "MATCH (c:Conversation {uuid: $id}) RETURN coalesce(c.findings_unkept, []) AS unkept", id=conversation_id
        )
        return list(row["unkept"]) if row else []

    async def set_kept(self, conversation_id: str, unkept: str) -> None:
        """Note that what a summary had to store as findings is stored."""
        await self._graph.run(
            "MATCH (c:Conversation {uuid: $id}) "
            "SET c.findings_unkept = [one IN coalesce(c.findings_unkept, []) WHERE one <> $unkept]",
            id=conversation_id,
            unkept=unkept,
        )

    async def _found(self, statement: str, **parameters: Any) -> list[KeptFinding]:
        rows = await self._graph.rows(f"{statement} {_RETURN}", limit=_MOST, **parameters)
        return [finding for row in rows if (finding := finding_from(row["f"])) is not None]


async def note_removed(tx: Transaction, conversation_id: str, uuids: list[str]) -> None:
    """Note findings that are removed for good, by their ids, so that turns that are read again do not store them."""
    await tx.run(
        "MATCH (c:Conversation {uuid: $id}) SET c.findings_removed = coalesce(c.findings_removed, []) + $uuids",
        id=conversation_id,
        uuids=uuids,
    )


async def note_unkept(tx: Transaction, conversation_id: str, unkept: str) -> None:
    """Note what is to be stored as findings after the transaction; see `Findings.unkept`."""
    await tx.run(
        "MATCH (c:Conversation {uuid: $id}) SET c.findings_unkept = coalesce(c.findings_unkept, []) + [$unkept]",
        id=conversation_id,
        unkept=unkept,
    )


def finding_from(properties: Any) -> KeptFinding | None:
    """Return a finding from the properties of its node; None of another program's node."""
    return record_from(KeptFinding, given(properties, _FIELDS))


async def findings_of(tx: Transaction, segments: Iterable[Segment]) -> list[KeptFinding]:
    """Return the findings of turns, in order of the turns."""
    found: list[KeptFinding] = []
    for segment in segments:
        result = await tx.run(
            f"MATCH {own_node('f', 'Finding', 'conversation_id: $id')} "
            f"WHERE f.turn_index >= $first AND f.turn_index <= $last RETURN {_FINDING} AS f",
            id=segment.conversation_id,
            first=segment.first,
            last=segment.last,
        )
        found += [one async for record in result if (one := finding_from(record["f"])) is not None]
    return sorted(found, key=lambda finding: (finding.turn_index, finding.since, finding.uuid))


async def missing_findings(tx: Transaction, findings: Sequence[KeptFinding]) -> list[KeptFinding]:
    """Return those that are not in the graph yet."""
    known: set[str] = set()
    for start in range(0, len(findings), _AT_ONCE):
        result = await tx.run(
            "UNWIND $ids AS id MATCH (f:Finding {uuid: id}) RETURN id",
            ids=[finding.uuid for finding in findings[start : start + _AT_ONCE]],
        )
        known |= {record["id"] async for record in result}
    return list({finding.uuid: finding for finding in findings if finding.uuid not in known}.values())


async def store_findings(
    tx: Transaction, findings: Sequence[KeptFinding], *, removed_too: bool = False
) -> list[KeptFinding]:
    """Store findings with their edges, each with the conversation it names, and return them as they are stored now.

    Args:
        removed_too: Also those that were removed for good; see `note_removed`.

    Raises:
        NotFoundError: There is no such conversation.
    """
    created: list[KeptFinding] = []
    for conversation_id in sorted({finding.conversation_id for finding in findings}):
        # Lock first, so that another writer of the same findings is seen.
        result = await tx.run(
            f"MATCH (c:Conversation {{uuid: $id}}) {_CHANGED} RETURN coalesce(c.findings_removed, []) AS removed",
            id=conversation_id,
        )
        if (record := await result.single()) is None:
            raise NotFoundError(f"There is no conversation {conversation_id!r}.")
        removed = frozenset() if removed_too else frozenset(record["removed"])
        own = [one for one in findings if one.conversation_id == conversation_id and one.uuid not in removed]
        fresh = await missing_findings(tx, own)
        for start in range(0, len(fresh), _AT_ONCE):
            await _create(tx, conversation_id, fresh[start : start + _AT_ONCE])
        created += fresh
    # What an import brings may be replaced already.
    replaced = [{"old": one.uuid, "new": one.replaced_by} for one in created if one.replaced_by]
    if replaced:
        await _link_replacements(tx, replaced)
    result = await tx.run(
        f"UNWIND $ids AS id MATCH (f:Finding {{uuid: id}}) RETURN {_FINDING} AS f",
        ids=[finding.uuid for finding in findings],
    )
    stored = {one.uuid: one async for record in result if (one := finding_from(record["f"])) is not None}
    return [stored[finding.uuid] for finding in findings if finding.uuid in stored]


async def _create(tx: Transaction, conversation_id: str, fresh: list[KeptFinding]) -> None:
    await tx.run(
        "MATCH (c:Conversation {uuid: $id}) UNWIND $rows AS row CREATE (c)-[:HAS_FINDING]->(f:Finding) SET f = row",
        id=conversation_id,
        rows=[properties_of(finding, _FIELDS) for finding in fresh],
    )
    await tx.run(
        "UNWIND $rows AS row MATCH (f:Finding {uuid: row.uuid}) "
        "MATCH (m:Message {conversation_id: $id, turn_index: row.turn, position: 0}) CREATE (f)-[:FROM]->(m)",
        id=conversation_id,
        rows=[{"uuid": finding.uuid, "turn": finding.turn_index} for finding in fresh],
    )
    files = [
        {"uuid": finding.uuid, "workspace": storable(finding.workspace), "path": path}
        for finding in fresh
        for path in sorted({storable(path) for path in finding.files})
    ]
    await tx.run(
        "UNWIND $rows AS row MERGE (p:File {workspace: row.workspace, path: row.path}) "
        "WITH row, p MATCH (f:Finding {uuid: row.uuid}) CREATE (f)-[:ABOUT]->(p)",
        rows=files,
    )
    await tx.run(
        "UNWIND $rows AS row MATCH (f:Finding {uuid: row.uuid}) MATCH (s:Scope {uuid: row.scope}) "
        "CREATE (f)-[:ABOUT]->(s)",
        rows=[{"uuid": finding.uuid, "scope": scope} for finding in fresh for scope in sorted(set(finding.scopes))],
    )


async def _link_replacements(tx: Transaction, rows: list[dict[str, str]]) -> None:
    await tx.run(
        "UNWIND $rows AS row MATCH (n:Finding {uuid: row.new}) MATCH (o:Finding {uuid: row.old}) "
        "MERGE (n)-[:REPLACES]->(o)",
        rows=rows,
    )


async def _replacement(tx: Transaction, old_uuid: str, new_uuid: str) -> KeptFinding | None:
    """Return the finding that replaced another one, if that is the expected one."""
    result = await tx.run(
        f"MATCH (:Finding {{uuid: $old, replaced_by: $new}}) MATCH (f:Finding {{uuid: $new}}) RETURN {_FINDING} AS f",
        old=old_uuid,
        new=new_uuid,
    )
    record = await result.single()
    return finding_from(record["f"]) if record else None


async def _change(tx: Transaction, uuid: str, values: dict[str, Any], *, current: bool = False) -> KeptFinding | None:
    """Set properties of a finding and count the change; None if it is gone, or is not current though it must be."""
    # Lock its conversation first, as `store_findings` does, so that the state read is not one that another writer
    # is just changing.
    await tx.run(
        f"MATCH (f:Finding {{uuid: $uuid}}) MATCH (c:Conversation {{uuid: f.conversation_id}}) {_CHANGED}", uuid=uuid
    )
    where = "WHERE f.state IN $states " if current else ""
    result = await tx.run(
        f"MATCH (f:Finding {{uuid: $uuid}}) {where}SET f += $values RETURN {_FINDING} AS f",
        uuid=uuid,
        values={name: graph_value(value) for name, value in values.items()},
        states=list(CURRENT),
    )
    record = await result.single()
    return finding_from(record["f"]) if record else None


async def _at_home(tx: Transaction, conversation_id: str, findings: list[KeptFinding]) -> list[KeptFinding]:
    """Return findings of a branch with the conversations that hold their turns, and the ids that follow from those."""
    conversation = await find_conversation(tx, conversation_id)
    shared = (conversation.branch_turn or 0) if conversation is not None and conversation.branch_of else 0
    if all(finding.turn_index > shared for finding in findings):
        return findings
    segments = await segments_of(tx, conversation_id, 1, shared)
    homes = {finding.turn_index: conversation_id for finding in findings}
    for segment in segments:
        homes |= {turn: segment.conversation_id for turn in homes if segment.first <= turn <= segment.last}
    return [
        msgspec.structs.replace(
            finding,
            conversation_id=homes[finding.turn_index],
            uuid=finding_uuid(homes[finding.turn_index], finding.turn_index, finding.kind, finding.text),
        )
        for finding in findings
    ]
