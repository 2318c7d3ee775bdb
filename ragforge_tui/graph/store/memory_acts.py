"""Log of the user's acts on findings, and the removal of what they forgot.

The log is a property of each finding, so that backups, purges and deletions include it without a word. An act is logged
before it is carried out: taking back one that did not happen changes nothing.
"""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from ragforge_tui.graph.connection import Graph, Transaction
from ragforge_tui.graph.labels import own_node
from ragforge_tui.graph.store.findings import VISIBLE, finding_from, note_removed
from ragforge_tui.graph.store.records import graph_value, projection
from ragforge_tui.graph.store.summaries import SUMMARY, summary_from
from ragforge_tui.graph.store.summary_tree import finding_properties
from ragforge_tui.shared.context_choices import finding_key
from ragforge_tui.shared.errors import NotFoundError
from ragforge_tui.shared.finding_records import CURRENT, FORGOTTEN_BY_USER, KeptFinding, KeptKind
from ragforge_tui.shared.json_text import decode_json
from ragforge_tui.shared.memory_acts import ChangedText, MemoryAct
from ragforge_tui.shared.records import SHORT_ID, ContextRecord
from ragforge_tui.shared.sanitize import storable

_FINDING = projection("f", KeptFinding.__struct_fields__)
_MOST = 2_000
_MOST_ACTS = 50
_PURGED = 200
"""Findings that are removed at once."""


class MemoryActs:
    """Acts on findings, over all folders."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    async def findings(
        self, workspace: str | None, kinds: list[KeptKind] | None, *, current: bool, asking: str
    ) -> list[KeptFinding]:
        """Return findings in any state, the newest first; those of all folders without a workspace.

        Args:
            current: Only those that still hold or are still open.
            asking: The conversation that asks: its own findings are returned even if it is private.
        """
        rows = await self._graph.rows(
            f"MATCH {own_node('f', 'Finding')} WHERE ($kinds IS NULL OR f.kind IN $kinds) "
            "AND ($states IS NULL OR f.state IN $states) "
            "AND ($workspace IS NULL OR f.workspace = $workspace OR f.scope = 'user') "
            f"WITH f {VISIBLE} RETURN {_FINDING} AS f ORDER BY f.since DESC, f.uuid LIMIT {_MOST}",
            kinds=kinds,
            states=list(CURRENT) if current else None,
            workspace=None if workspace is None else storable(workspace),
            asking=asking,
        )
        return [finding for row in rows if (finding := finding_from(row["f"])) is not None]

    async def find(self, ref: str, *, asking: str = "") -> KeptFinding:
        """Return a finding by its id or a unique prefix of it.

        Raises:
            NotFoundError: There is none that is visible, or there are several.
        """
        rows = await self._graph.rows(
            f"MATCH {own_node('f', 'Finding')} WHERE f.uuid STARTS WITH $ref WITH f {VISIBLE} "
            f"RETURN {_FINDING} AS f LIMIT 2",
            ref=storable(ref),
            asking=asking,
        )
        found = [finding for row in rows if (finding := finding_from(row["f"])) is not None]
        if len(found) != 1 or not ref:
            what = "Several findings have ids that begin with" if found else "There is no finding"
            raise NotFoundError(f"{what} {ref!r}.", todo="`ragforge-chat memory list` names them.")
        return found[0]

    async def note(self, act: MemoryAct) -> None:
        """Log an act, or log it again after a change."""

        async def work(tx: Transaction) -> None:
            acts = [one for one in await _acts_of(tx, act.finding) if one.uuid != act.uuid]
            await _set_acts(tx, act.finding, [*acts, act])

        await self._graph.write(work)

    async def newest(self, *, asking: str = "") -> list[MemoryAct]:
        """Return the newest acts, also those taken back, the newest first."""
        rows = await self._graph.rows(
            f"MATCH {own_node('f', 'Finding')} WHERE f.acted_at IS NOT NULL WITH f {VISIBLE} "
            f"RETURN f.acts AS acts, f.acted_at AS at ORDER BY at DESC LIMIT {_MOST_ACTS}",
            asking=asking,
        )
        found = [act for row in rows for act in _decoded(row["acts"])]
        return sorted(found, key=lambda act: act.at, reverse=True)[:_MOST_ACTS]

    async def set_closed_by(self, uuid: str, closed_by: str) -> None:
        """Set what closed a finding, in words."""

        async def work(tx: Transaction) -> None:
            await tx.run("MATCH (f:Finding {uuid: $uuid}) SET f.closed_by = $by", uuid=uuid, by=storable(closed_by))

        await self._graph.write(work)

    async def change_texts(self, changes: list[ChangedText], *, back: bool = False) -> None:
        """Set properties of summaries and insights, each only if it is as expected.

        Args:
            back: Set them back to what they were.
        """

        async def work(tx: Transaction) -> None:
            for change in changes:
                expected, wanted = (change.after, change.before) if back else (change.before, change.after)
                names = tuple(expected)
                result = await tx.run(
                    f"MATCH (n:{change.label} {{uuid: $uuid}}) RETURN {projection('n', names)} AS n", uuid=change.uuid
                )
                record = await result.single()
                if record is None or any(record["n"][name] != value for name, value in expected.items()):
                    continue  # It was written again since.
                await tx.run(
                    f"MATCH (n:{change.label} {{uuid: $uuid}}) SET n += $values", uuid=change.uuid, values=wanted
                )
                if change.label == "Summary":
                    await _searched_anew(tx, change.uuid)

        await self._graph.write(work)

    async def titles(self, ids: Collection[str]) -> dict[str, str]:
        """Return the titles of conversations by id."""
        rows = await self._graph.rows(
            f"UNWIND $ids AS id MATCH {own_node('c', 'Conversation', 'uuid: id')} "
            "RETURN c.uuid AS uuid, coalesce(c.title, '') AS title",
            ids=sorted(set(ids)),
        )
        return {row["uuid"]: row["title"] for row in rows}

    async def family(self, conversation_id: str) -> list[str]:
        """Return the ids of a conversation and of those that branched off from it, at any distance."""
        found = [conversation_id]
        for parent in found:
            rows = await self._graph.rows(
                f"MATCH {own_node('c', 'Conversation', 'branch_of: $uuid')} RETURN c.uuid AS uuid", uuid=parent
            )
            found += [row["uuid"] for row in rows if row["uuid"] not in found]
        return found

    async def purge(self) -> int:
        """Remove findings that the user forgot, also from the records of requests; return their number."""
        removed = 0
        while rows := await self._graph.rows(
            f"MATCH {own_node('f', 'Finding')} WHERE f.state = 'forgotten' AND f.closed_by = $by "
            f"RETURN {_FINDING} AS f LIMIT {_PURGED}",
            by=FORGOTTEN_BY_USER,
        ):
            forgotten = [finding for row in rows if (finding := finding_from(row["f"])) is not None]
            if not forgotten:
                break
            for finding in forgotten:
                await _forget_text(self._graph, finding.text)
            ids = [finding.uuid for finding in forgotten]
            places: dict[str, list[str]] = {}
            for finding in forgotten:
                places.setdefault(finding.conversation_id, []).append(finding.uuid)

            async def work(tx: Transaction, ids: list[str] = ids, places: dict[str, list[str]] = places) -> None:
                for conversation_id, own in places.items():
                    await note_removed(tx, conversation_id, own)
                await tx.run("UNWIND $ids AS id MATCH (f:Finding {uuid: id}) DETACH DELETE f", ids=ids)

            await self._graph.write(work)
            removed += len(ids)
        return removed


async def forget_in_records(graph: Graph, conversation_id: str) -> None:
    """Remove a conversation's findings from the records of others, with the words that closed theirs."""
    rows = await graph.rows(
        f"MATCH {own_node('f', 'Finding', 'conversation_id: $id')} RETURN {_FINDING} AS f", id=conversation_id
    )
    for row in rows:
        if (finding := finding_from(row["f"])) is not None:
            await _forget_text(graph, finding.text)
    for label in ("Message", "ToolCall"):
        await graph.run(
            f"MATCH (n:{label} {{conversation_id: $id}})<-[:CLOSED_BY]-(f:Finding) SET f.closed_by = ''",
            id=conversation_id,
        )


async def _forget_text(graph: Graph, text: str) -> None:
    """Remove a finding's text from the records of requests, and from the logs of findings such as those it replaced."""
    await graph.run(
        f"MATCH {own_node('f', 'Finding')} WHERE any(act IN coalesce(f.acts, []) WHERE act CONTAINS $text) "
        "SET f.acts = NULL, f.acted_at = NULL",
        text=storable(msgspec.json.encode(text).decode()[1:-1]),
    )
    wanted = finding_key(text)
    rows = await graph.rows(
        f"MATCH {own_node('x', 'Context')} WHERE x.items CONTAINS $text RETURN x.uuid AS uuid, x.items AS items",
        text=storable(msgspec.json.encode(" ".join(text.split())).decode()[1:-1]),
    )
    for row in rows:
        try:
            record = decode_json(row["items"], ContextRecord)
        except msgspec.MsgspecError:
            continue  # Another program wrote it.
        for section in record.sections:
            for item in section.items:
                if item.kind == "finding" and finding_key(item.text) == wanted:
                    item.text = ""
        items = storable(msgspec.json.encode(record).decode())
        await graph.run("MATCH (x:Context {uuid: $uuid}) SET x.items = $items", uuid=row["uuid"], items=items)


async def _searched_anew(tx: Transaction, uuid: str) -> None:
    """Let a changed summary be searched by its new words, and get a new vector."""
    result = await tx.run(f"MATCH (s:Summary {{uuid: $uuid}}) RETURN {SUMMARY} AS s", uuid=uuid)
    record = await result.single()
    summary = summary_from(record["s"]) if record is not None else None
    if summary is None:
        return
    await tx.run(
        "MATCH (c:Conversation {uuid: $id}) SET c.summaries_replaced = coalesce(c.summaries_replaced, 0) + 1 "
        "WITH c MATCH (s:Summary {uuid: $uuid}) SET s.findings_text = $words, "
        "s.embedding = NULL, s.embedding_bytes = NULL, s.embed_model = NULL",
        id=summary.conversation_id,
        uuid=uuid,
        words=finding_properties(summary)["findings_text"],
    )


async def _acts_of(tx: Transaction, finding: str) -> list[MemoryAct]:
    result = await tx.run("MATCH (f:Finding {uuid: $uuid}) RETURN f.acts AS acts", uuid=finding)
    record = await result.single()
    if record is None:
        raise NotFoundError(f"There is no finding {finding[:SHORT_ID]!r}.")
    return _decoded(record["acts"])


async def _set_acts(tx: Transaction, finding: str, acts: list[MemoryAct]) -> None:
    await tx.run(
        "MATCH (f:Finding {uuid: $uuid}) SET f.acts = $acts, f.acted_at = $at",
        uuid=finding,
        acts=[storable(msgspec.json.encode(act).decode()) for act in acts],
        at=graph_value(max(act.at for act in acts)),
    )


def _decoded(stored: object) -> list[MemoryAct]:
    acts = []
    for text in stored if isinstance(stored, list) else []:
        try:
            acts.append(decode_json(text, MemoryAct))
        except (msgspec.MsgspecError, TypeError):
            continue
    return acts
