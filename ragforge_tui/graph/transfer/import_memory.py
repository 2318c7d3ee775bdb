"""Import of a conversation's memory: each piece with its edges, once; existing nodes stay as they are.

Runs after the turns are stored. Every step first reads what exists, so that a repeated import changes nothing and an
interrupted one continues.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from ragforge_tui.graph.connection import Graph, Transaction
from ragforge_tui.graph.store.attempts import Attempts
from ragforge_tui.graph.store.commits import commit_rows, link_commits
from ragforge_tui.graph.store.findings import store_findings
from ragforge_tui.graph.store.insights import stored_insight, write_insight
from ragforge_tui.graph.store.parts import batches
from ragforge_tui.graph.store.records import graph_value, properties_of
from ragforge_tui.graph.store.summary_tree import finding_properties
from ragforge_tui.graph.store.topic_edges import describe_topics
from ragforge_tui.graph.transfer.export_memory import TOPIC_FIELDS
from ragforge_tui.shared.export_records import ConversationExport, TopicEdge
from ragforge_tui.shared.finding_records import KeptFinding
from ragforge_tui.shared.records import Summary
from ragforge_tui.shared.sanitize import storable, storable_value

_SUMMARIES_AT_ONCE = 20
_FINDINGS_AT_ONCE = 100
_SUMMARY_FIELDS = tuple(name for name in Summary.__struct_fields__ if name not in ("key_findings", "parent"))
_MAX_MERGES = 50


async def import_memory(graph: Graph, e: ConversationExport) -> None:
    """Bring in all of an export but its conversation and turns."""
    await _import_topics(graph, e)
    await _import_summaries(graph, e)
    await _import_insight(graph, e)
    await _import_findings(graph, e)
    await _import_contexts(graph, e)
    await _import_personas(graph, e)
    await _import_system_texts(graph, e)
    await _import_commits(graph, e)
    await _import_attempts(graph, e)


async def _import_summaries(graph: Graph, e: ConversationExport) -> None:
    ordered = in_order(e.memory.summaries)
    owners = {turn.turn_index: m.conversation_id for turn in e.turns for m in turn.messages}
    topics = _by_source(e.memory.topic_edges)
    for start in range(0, len(ordered), _SUMMARIES_AT_ONCE):
        page = ordered[start : start + _SUMMARIES_AT_ONCE]

        async def work(tx: Transaction, page: list[Summary] = page) -> None:
            fresh = await fitting_summaries(tx, page)
            if not fresh:
                return
            await _create_summaries(tx, fresh)
            await _link_summaries(tx, fresh, owners)
            await _link_files(tx, fresh, e.conversation.workspace)
            await _link_topics(tx, [edge for summary in fresh for edge in topics.get(summary.uuid, [])])
            for summary in fresh:
                told = [
                    {"uuid": edge.target, "description": storable(edge.description)}
                    for edge in topics.get(summary.uuid, [])
                ]
                await describe_topics(tx, told, conversation_id=summary.conversation_id, made_by=summary.made_by)

        await graph.write(work)


async def _import_insight(graph: Graph, e: ConversationExport) -> None:
    insight = e.memory.insight
    if insight is None:
        return

    async def work(tx: Transaction) -> None:
        await lock_nodes(tx, "Conversation", [insight.conversation_id])
        if await stored_insight(tx, insight.uuid) is None:
            await write_insight(tx, insight)

    await graph.write(work)


async def _import_findings(graph: Graph, e: ConversationExport) -> None:
    known = {finding.uuid for finding in e.memory.findings}
    # A file may come from anyone: what it brings holds in its folder, is not pinned, and touches no other finding.
    findings = [
        msgspec.structs.replace(
            finding,
            workspace=e.conversation.workspace,
            scope="folder" if finding.scope == "user" else finding.scope,
            pinned=False,
            replaced_by=finding.replaced_by if finding.replaced_by in known else "",
        )
        for finding in e.memory.findings
    ]
    # Newest first: what replaces a finding is there before it.
    ordered = sorted(findings, key=lambda finding: finding.since, reverse=True)
    for start in range(0, len(ordered), _FINDINGS_AT_ONCE):
        page = ordered[start : start + _FINDINGS_AT_ONCE]

        async def work(tx: Transaction, page: list[KeptFinding] = page) -> None:
            await store_findings(tx, page, removed_too=True)

        await graph.write(work)


def in_order(summaries: Iterable[Summary]) -> list[Summary]:
    """Return summaries in the order they were made, so that each comes after those it summarises."""
    return sorted(summaries, key=lambda s: (s.level, s.start_turn_index))


async def fitting_summaries(tx: Transaction, page: list[Summary]) -> list[Summary]:
    """Return the summaries that extend an existing level without a gap."""
    result = await tx.run(
        "UNWIND $ids AS id MATCH (s:Summary {conversation_id: id}) "
        "RETURN id, s.level AS level, max(s.end_turn_index) AS end",
        ids=sorted({summary.conversation_id for summary in page}),
    )
    ends = {(record["id"], record["level"]): record["end"] async for record in result}
    asked = {uuid for summary in page for uuid in (summary.uuid, *summary.parent_summaries)}
    result = await tx.run("UNWIND $ids AS id MATCH (s:Summary {uuid: id}) RETURN id", ids=sorted(asked))
    known = {record["id"] async for record in result}
    fresh: list[Summary] = []
    for summary in page:
        key = (summary.conversation_id, summary.level)
        goes_on = key not in ends or summary.start_turn_index == ends[key] + 1
        if summary.uuid not in known and goes_on and known.issuperset(summary.parent_summaries):
            fresh.append(summary)
            known.add(summary.uuid)
            ends[key] = summary.end_turn_index
    return fresh


async def _create_summaries(tx: Transaction, fresh: list[Summary]) -> None:
    """Create the nodes, and move the watermarks of their conversations."""
    for uuid in dict.fromkeys(summary.conversation_id for summary in fresh):
        own = [summary for summary in fresh if summary.conversation_id == uuid]
        result = await tx.run(
            "MATCH (c:Conversation {uuid: $uuid}) "
            "RETURN coalesce(c.watermarks, []) AS watermarks, coalesce(c.summary_sequence, 0) AS sequence",
            uuid=uuid,
        )
        record = await result.single()
        if record is None:
            continue
        watermarks, sequence = list(record["watermarks"]), int(record["sequence"])
        rows = []
        for summary in own:
            sequence += 1
            properties = properties_of(summary, _SUMMARY_FIELDS)
            rows.append({**properties, **finding_properties(summary), "sequence": sequence})
            watermarks += [0] * (summary.level - len(watermarks))
            watermarks[summary.level - 1] = max(watermarks[summary.level - 1], summary.end_turn_index)
        await tx.run(
            "MATCH (c:Conversation {uuid: $uuid}) SET c.watermarks = $watermarks, c.summary_sequence = $sequence",
            uuid=uuid,
            watermarks=watermarks,
            sequence=sequence,
        )
        await tx.run(
            "MATCH (c:Conversation {uuid: $uuid}) UNWIND $rows AS row CREATE (c)-[:HAS_SUMMARY]->(s:Summary) "
            "SET s += row",
            uuid=uuid,
            rows=rows,
        )


async def _link_summaries(tx: Transaction, fresh: list[Summary], owners: dict[int, str]) -> None:
    turns = [
        {"summary": s.uuid, "id": owners[turn], "turn": turn}
        for s in fresh
        if s.level == 1
        for turn in range(s.start_turn_index, s.end_turn_index + 1)
        if turn in owners
    ]
    for batch in batches(turns):
        await tx.run(
            "UNWIND $rows AS row MATCH (s:Summary {uuid: row.summary}) "
            "MATCH (m:Message {conversation_id: row.id, turn_index: row.turn}) WHERE m.state <> 'superseded' "
            "CREATE (s)-[:SUMMARIZES]->(m)",
            rows=batch,
        )
    below = [{"summary": s.uuid, "below": uuid} for s in fresh for uuid in s.parent_summaries]
    await tx.run(
        "UNWIND $rows AS row MATCH (s:Summary {uuid: row.summary}) MATCH (l:Summary {uuid: row.below}) "
        "CREATE (s)-[:SUMMARIZES]->(l)",
        rows=below,
    )


async def _link_files(tx: Transaction, fresh: list[Summary], workspace: str) -> None:
    rows = [{"summary": s.uuid, "path": path} for s in fresh for path in sorted({*map(storable, s.files_mentioned)})]
    rows = [row for row in rows if row["path"]]
    await tx.run(
        "UNWIND $paths AS path MERGE (f:File {workspace: $workspace, path: path})",
        paths=sorted({row["path"] for row in rows}),
        workspace=storable(workspace),
    )
    await tx.run(
        "UNWIND $rows AS row MATCH (s:Summary {uuid: row.summary}) "
        "MATCH (f:File {workspace: $workspace, path: row.path}) CREATE (s)-[:MENTIONS_FILE]->(f)",
        rows=rows,
        workspace=storable(workspace),
    )


async def _link_topics(tx: Transaction, edges: list[TopicEdge]) -> None:
    """Link summaries to the topics they named, or to their successors in this graph."""
    roots = await _roots(tx, {edge.target for edge in edges})
    await tx.run(
        "UNWIND $rows AS row MATCH (s:Summary {uuid: row.summary}) MATCH (t:Topic {uuid: row.root}) "
        "CREATE (s)-[:HAS_TOPIC {topic: row.topic, confidence: row.confidence, description: row.description}]->(t)",
        rows=[
            {
                "summary": edge.source,
                "topic": edge.target,
                "root": roots.get(edge.target, edge.target),
                "confidence": edge.confidence,
                "description": storable(edge.description),
            }
            for edge in edges
        ],
    )


async def _roots(tx: Transaction, ids: set[str]) -> dict[str, str]:
    """Return the last successor of each merged topic; others are left out."""
    roots = {uuid: uuid for uuid in ids}
    for _ in range(_MAX_MERGES):
        result = await tx.run(
            "UNWIND $ids AS id MATCH (:Topic {uuid: id})-[:MERGED_INTO]->(b:Topic) "
            "RETURN id, b.uuid AS into ORDER BY b.created_at, b.uuid",
            ids=sorted(set(roots.values())),
        )
        steps: dict[str, str] = {}
        async for record in result:
            steps.setdefault(record["id"], record["into"])
        if not steps:
            break
        roots = {uuid: steps.get(root, root) for uuid, root in roots.items()}
    return roots


async def _import_topics(graph: Graph, e: ConversationExport) -> None:
    nodes = [{name: graph_value(getattr(topic, name)) for name in TOPIC_FIELDS} for topic in e.memory.topics]
    for batch in batches(nodes):
        await graph.run("UNWIND $rows AS row MERGE (t:Topic {uuid: row.uuid}) ON CREATE SET t += row", rows=batch)
    for batch in batches(_edge_rows(e.memory.topic_edges, "merged")):

        async def merge(tx: Transaction, batch: list[dict[str, Any]] = batch) -> None:
            # What became something else here stays that.
            await lock_nodes(tx, "Topic", (row["source"] for row in batch))
            await tx.run(
                "UNWIND $rows AS row MATCH (a:Topic {uuid: row.source}) MATCH (b:Topic {uuid: row.target}) "
                "WHERE NOT EXISTS { MATCH (a)-[:MERGED_INTO]->(:Topic) } "
                "CREATE (a)-[:MERGED_INTO "
                "{confidence: row.confidence, reason: row.reason, at: row.at, "
                "conversation_id: row.conversation_id}]->(b)",
                rows=batch,
            )

        await graph.write(merge)
    for batch in batches(_edge_rows(e.memory.topic_edges, "related")):

        async def relate(tx: Transaction, batch: list[dict[str, Any]] = batch) -> None:
            await lock_nodes(tx, "Topic", (row["source"] for row in batch))
            await tx.run(
                "UNWIND $rows AS row MATCH (a:Topic {uuid: row.source}) MATCH (b:Topic {uuid: row.target}) "
                "WHERE NOT EXISTS { MATCH (a)-[:RELATED_TO]->(b) } CREATE (a)-[:RELATED_TO "
                "{confidence: row.confidence, reason: row.reason, conversation_id: row.conversation_id}]->(b)",
                rows=batch,
            )

        await graph.write(relate)


def _edge_rows(edges: Iterable[TopicEdge], kind: str) -> Iterator[dict[str, Any]]:
    for edge in edges:
        if edge.kind == kind:
            yield {
                "source": edge.source,
                "target": edge.target,
                "confidence": edge.confidence,
                "reason": storable(edge.reason),
                "conversation_id": edge.conversation_id,
                "at": graph_value(edge.at),
            }


def _by_source(edges: Iterable[TopicEdge]) -> dict[str, list[TopicEdge]]:
    found: dict[str, list[TopicEdge]] = {}
    for edge in edges:
        if edge.kind == "has":
            found.setdefault(edge.source, []).append(edge)
    return found


async def _import_contexts(graph: Graph, e: ConversationExport) -> None:
    owners = {m.uuid: m.conversation_id for turn in e.turns for m in turn.messages}
    rows = [
        {
            "uuid": context.uuid,
            "conversation_id": owners[context.messages[0]],
            "items": storable(context.items),
            "tokens": context.tokens,
            "digest": context.digest,
            "created_at": graph_value(context.created_at),
            "messages": context.messages,
        }
        for context in e.contexts
        if context.messages and context.messages[0] in owners
    ]
    for batch in batches(rows):

        async def work(tx: Transaction, batch: list[dict[str, Any]] = batch) -> None:
            await tx.run(
                "UNWIND $rows AS row MERGE (x:Context {uuid: row.uuid}) ON CREATE SET x += row",
                rows=[{key: value for key, value in row.items() if key != "messages"} for row in batch],
            )
            await tx.run(
                "UNWIND $rows AS row MATCH (m:Message {uuid: row.message}) MATCH (x:Context {uuid: row.uuid}) "
                "MERGE (m)-[:WAS_SENT]->(x)",
                rows=[{"uuid": row["uuid"], "message": message} for row in batch for message in row["messages"]],
            )

        await graph.write(work)


async def _import_personas(graph: Graph, e: ConversationExport) -> None:
    nodes = [storable_value(msgspec.to_builtins(persona)) for persona in e.memory.personas]
    for batch in batches(nodes):
        await graph.run("UNWIND $rows AS row MERGE (p:Persona {uuid: row.uuid}) ON CREATE SET p += row", rows=batch)
    links = [{"persona": spoken.persona, "message": spoken.message} for spoken in e.spoken]
    for batch in batches(links):

        async def link(tx: Transaction, batch: list[dict[str, Any]] = batch) -> None:
            # Queried from the messages' side: one persona may have thousands.
            await lock_nodes(tx, "Message", (row["message"] for row in batch))
            result = await tx.run(
                "UNWIND $ids AS id MATCH (m:Message {uuid: id})-[:SPOKEN_AS]->(:Persona) RETURN id",
                ids=[row["message"] for row in batch],
            )
            known = {record["id"] async for record in result}
            await tx.run(
                "UNWIND $rows AS row MATCH (m:Message {uuid: row.message}) MATCH (p:Persona {uuid: row.persona}) "
                "CREATE (m)-[:SPOKEN_AS]->(p)",
                rows=[row for row in batch if row["message"] not in known],
            )

        await graph.write(link)


async def _import_system_texts(graph: Graph, e: ConversationExport) -> None:
    rows = [{"uuid": text.uuid, "digest": text.digest, "text": storable(text.text)} for text in e.memory.system_texts]
    for batch in batches(rows):

        async def work(tx: Transaction, batch: list[dict[str, Any]] = batch) -> None:
            await tx.run("UNWIND $rows AS row MERGE (t:SystemText {uuid: row.uuid}) ON CREATE SET t += row", rows=batch)
            await tx.run(
                "MATCH (c:Conversation {uuid: $uuid}) UNWIND $ids AS id MATCH (t:SystemText {uuid: id}) "
                "MERGE (c)-[:BEGINS_WITH]->(t)",
                uuid=e.conversation.uuid,
                ids=[row["uuid"] for row in batch],
            )

        await graph.write(work)


async def _import_commits(graph: Graph, e: ConversationExport) -> None:
    rows = [row for c in e.memory.commits for row in commit_rows(c.message, [c.commit], c.workspace)]
    for batch in batches(rows):

        async def work(tx: Transaction, batch: list[dict[str, Any]] = batch) -> None:
            await link_commits(tx, batch)

        await graph.write(work)


async def _import_attempts(graph: Graph, e: ConversationExport) -> None:
    attempts = [msgspec.structs.replace(each, workspace=e.conversation.workspace) for each in e.memory.attempts]
    await Attempts(graph).add(attempts)


async def lock_nodes(tx: Transaction, label: str, uuids: Iterable[str]) -> None:
    """Let no other holder of these nodes pass until the transaction ends.

    Neo4j locks a node whose property is set, so the second holder waits and then sees what the first has made. The
    embedded server refuses the second one's commit, and it is run again; for that the node must really change,
    so each holder leaves a mark of its own. Always in the same order, so that two do not cross.
    """
    result = await tx.run(
        f"UNWIND $ids AS id MATCH (n:{label} {{uuid: id}}) SET n.held = $mark",
        ids=sorted(set(uuids)),
        mark=secrets.token_hex(4),
    )
    await result.consume()
