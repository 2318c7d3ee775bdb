"""Removal of shared nodes that no conversation needs after a purge: files, personas, system texts and topics.

A topic that was merged still has a relationship to its successor, so missing relationships do not make it an orphan. It
stays while a summary named it, while a summary has it, or while a topic that stays was merged into it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from neo4j import AsyncManagedTransaction

    from ragforge_tui.graph.connect import Graph

_SHARED = ("File", "Persona", "SystemText")
_AT_ONCE = 500


async def remove_orphans(graph: Graph, purged: str) -> None:
    """Remove unused shared nodes, in small transactions, and relations of topics that the purged conversation made."""
    for label in _SHARED:
        deletion = f"MATCH (n:{label}) WHERE NOT (n)--() WITH n LIMIT {_AT_ONCE} DELETE n RETURN count(*) AS removed"
        while (row := await graph.write_one(deletion)) and row["removed"]:
            pass
    await graph.run("MATCH (:Topic)-[r:RELATED_TO {conversation_id: $uuid}]->(:Topic) DELETE r", uuid=purged)
    orphans, told_by = await graph.read(_orphaned_topics)
    for start in range(0, len(orphans), _AT_ONCE):
        await graph.write(_topics_deletion(orphans[start : start + _AT_ONCE], told_by))


async def _orphaned_topics(tx: AsyncManagedTransaction) -> tuple[list[str], dict[str, list[str]]]:
    """Return the topics to remove, and the names that each remaining topic loses as aliases."""
    result = await tx.run("MATCH (t:Topic) RETURN t.uuid AS uuid, t.name AS name")
    names = {record["uuid"]: record["name"] async for record in result}
    result = await tx.run("MATCH (:Summary)-[h:HAS_TOPIC]->(t:Topic) RETURN DISTINCT t.uuid AS uuid, h.topic AS named")
    needed = {uuid async for record in result for uuid in (record["uuid"], record["named"])}
    result = await tx.run("MATCH (a:Topic)-[:MERGED_INTO]->(b:Topic) RETURN a.uuid AS a, b.uuid AS b")
    became = {record["a"]: record["b"] async for record in result}
    for uuid in [uuid for uuid in became if uuid in needed]:
        needed.update(_line(uuid, became))
    orphans = sorted(names.keys() - needed)
    told_by: dict[str, list[str]] = {}
    for uuid in orphans:
        for heir in _line(uuid, became):
            if heir in needed:
                told_by.setdefault(heir, []).append(names[uuid])
    return orphans, told_by


def _line(uuid: str, became: dict[str, str]) -> list[str]:
    """Return the topics that a topic was merged into, nearest first."""
    found: list[str] = []
    while (uuid := became.get(uuid, "")) and uuid not in found:
        found.append(uuid)
    return found


def _topics_deletion(orphans: list[str], told_by: dict[str, list[str]]) -> Any:
    async def work(tx: AsyncManagedTransaction) -> None:
        await tx.run(
            "UNWIND $rows AS row MATCH (t:Topic {uuid: row.uuid}) "
            "SET t.aliases = [x IN coalesce(t.aliases, []) WHERE NOT x IN row.names]",
            rows=[{"uuid": uuid, "names": names} for uuid, names in told_by.items()],
        )
        await tx.run("UNWIND $ids AS id MATCH (t:Topic {uuid: id}) DETACH DELETE t", ids=orphans)

    return work
