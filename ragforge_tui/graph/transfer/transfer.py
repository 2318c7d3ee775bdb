"""Export and import of whole conversations without loss: ids stay, and importing twice stores once.

The turns a branch shares with its parent are exported with it. Where the parent is missing on import, a stub of it is
created to hold them, which the parent's own import completes later.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from ragforge_tui.graph.connection import Graph, Transaction
from ragforge_tui.graph.schema.indexes import MESSAGE_LEX
from ragforge_tui.graph.store.conversations import Conversations, link_branch
from ragforge_tui.graph.store.messages import INDEXED_CHARS, LARGE
from ragforge_tui.graph.store.parts import BATCH_NODES, batches, link_parts, move_to_files, store_parts
from ragforge_tui.graph.store.records import (
    call_properties,
    conversation_properties,
    file_rows,
    message_properties,
    result_properties,
)
from ragforge_tui.graph.store.tool_calls import CALL_LARGE, RESULT_LARGE, change_rows, cut_result, link_changes
from ragforge_tui.graph.store.turns import Turns
from ragforge_tui.graph.transfer.export_memory import MemoryExporter
from ragforge_tui.graph.transfer.import_checks import check_export, plan_import
from ragforge_tui.graph.transfer.import_memory import import_memory, lock_nodes
from ragforge_tui.graph.transfer.session_turns import session_turns, turn_digest
from ragforge_tui.shared.export_records import ConversationExport, ImportAdds, Imported
from ragforge_tui.shared.records import EXTRACTIVE, Conversation, Message, Summary, Turn
from ragforge_tui.shared.sanitize import storable

_UNNAMED = "unnamed"
"""Author of an imported text that a model may have written."""
_WATERMARKS = ("findings_until", "attempts_through", "indexed_turn")
_COUNTS = ("next_turn", "message_count", "total_chars")
# The existing conversation may contain more than the imported one.
_RAISE = "MATCH (c:Conversation {uuid: $uuid}) SET " + ", ".join(
    f"c.{name} = CASE WHEN c.{name} > ${name} THEN c.{name} ELSE ${name} END" for name in _COUNTS
)


class OwnedNodes(msgspec.Struct, frozen=True):
    """A kind of node that travels with its conversation.

    Attributes:
        label: Of the nodes; each has a `uuid` and a `conversation_id`.
        parent: Label of what each hangs on.
        key: Property that names the parent's uuid.
        relationship: From the parent to the node.
        large: Properties that may be kept in parts.
    """

    label: str
    parent: str
    key: str
    relationship: str
    large: tuple[str, ...] = ()


MESSAGE_NODES = OwnedNodes("Message", "Conversation", "conversation_id", "HAS_MESSAGE", LARGE)
CALL_NODES = OwnedNodes("ToolCall", "Message", "message_id", "MADE_TOOL_CALL", CALL_LARGE)
RESULT_NODES = OwnedNodes("ToolResult", "ToolCall", "tool_call_id", "PRODUCED_RESULT", RESULT_LARGE)


class Transfer:
    """Export and import of whole conversations."""

    def __init__(self, graph: Graph, conversations: Conversations, turns: Turns, memory: MemoryExporter) -> None:
        self._graph = graph
        self._conversations = conversations
        self._turns = turns
        self._memory = memory

    async def export(self, uuid: str) -> ConversationExport:
        """Return the conversation with all turns, including superseded attempts, and its memory.

        Raises:
            NotFoundError: There is no such conversation.
        """
        conversation = await self._conversations.get(uuid)
        return ConversationExport(
            conversation=conversation,
            turns=await self._turns.between(uuid, start=1, end=conversation.next_turn, changes=True),
            contexts=await self._memory.contexts(uuid, start=1, end=conversation.next_turn),
            spoken=await self._memory.spoken(uuid, start=1, end=conversation.next_turn),
            memory=await self._memory.memory(uuid),
        )

    async def import_(self, e: ConversationExport, *, merge: bool = False) -> Imported:
        """Import a conversation; existing nodes stay as they are.

        An interrupted import continues on the next call. The counters of the turns are computed, not taken from the
        export: a turn beyond the end could be found, but never be read.

        Args:
            e: What to import. Ids are kept; all is checked before any of it is written.
            merge: Whether anything may be added to a conversation that is here already.

        Raises:
            GraphError: The file is not one this program writes, it holds other messages in the same places, or it
                would add to a conversation that it may not add to. Nothing was stored.
        """
        mark = await asyncio.to_thread(_checked, e)
        plan = await plan_import(self._graph, e, mark=mark, merge=merge)
        own = e.conversation.uuid
        for stub in _ancestors(e):
            if stub.uuid in plan.writable:
                await self._import_conversation(_counted(stub, e.turns), stub=True)
        conversation = _with_author(_counted(e.conversation, e.turns), e.memory.summaries)
        await self._import_conversation(conversation, mark=mark if plan.created else None)
        if plan.complete and not merge:
            return Imported(conversation=await self._conversations.get(own), created=False, adds=plan.adds)
        for page in _pages(e.turns):
            await self._import_messages(page)
            await self._import_calls([m for turn in page for m in turn.messages], e.conversation.workspace)
        await import_memory(self._graph, plan.allowed(e))
        await self._unmark(own, mark)
        return Imported(conversation=await self._conversations.get(own), created=plan.created, adds=plan.adds)

    async def import_session(self, e: ConversationExport, version: str) -> Imported:
        """Import the new turns of another agent's session, and those that grew since the last import.

        The title follows the agent's until the user gives another. What changed is read for the memory again.

        Args:
            e: The session as it is now; places in the order and a parent are given here.
            version: Stored to know next time whether the session has changed.
        """
        told = await session_turns(self._graph, e)
        own, turns = told.conversation.uuid, [*told.fresh, *told.changed]
        if not turns and told.created:  # a copy without a turn of its own
            holder = told.conversation.branch_of or own
            await self._mark_imported(holder, f"{own} {version}", "")
            return Imported(conversation=await self._conversations.get(holder), created=False, adds=ImportAdds())
        end = max((turn.turn_index for turn in turns), default=0)
        c = msgspec.structs.replace(told.conversation, next_turn=end + 1, message_count=0, total_chars=0)
        await self._import_conversation(c)
        await self._graph.run("MATCH (c:Conversation {uuid: $uuid}) SET c.importing = $v", uuid=own, v=version)
        for page in _pages(told.fresh):
            await self._import_turns(page, c.workspace)
        for page in _pages(told.changed):
            await self._import_turns(page, c.workspace, update=True)
        kept = {message.uuid for turn in turns for message in turn.messages}
        commits = [commit for commit in e.memory.commits if commit.message in kept]
        memory = msgspec.structs.replace(e.memory, commits=commits)
        await import_memory(self._graph, msgspec.structs.replace(e, conversation=c, turns=turns, memory=memory))
        if told.changed:
            await self._read_again(own, min(turn.turn_index for turn in told.changed) - 1)
        await self._graph.run(
            "MATCH (c:Conversation {uuid: $uuid}) MATCH (m:Message {conversation_id: $uuid}) "
            "WITH c, count(m) AS messages, sum(coalesce(m.counted_chars, 0)) AS chars "
            "SET c.message_count = messages, c.total_chars = chars, c.importing = NULL",
            uuid=own,
        )
        await self._mark_imported(own, version, c.title)
        messages = [message for turn in turns for message in turn.messages]
        adds = ImportAdds(
            turns=sorted(turn.turn_index for turn in told.fresh),
            messages=sum(len(turn.messages) for turn in told.fresh),
            calls=sum(len(message.tool_calls) for message in messages),
            grown=sorted(turn.turn_index for turn in told.changed),
        )
        return Imported(conversation=await self._conversations.get(own), created=told.created, adds=adds)

    async def _import_turns(self, turns: list[Turn], workspace: str, *, update: bool = False) -> None:
        await self._import_messages(turns, update=update, digests=True)
        await self._import_calls([m for turn in turns for m in turn.messages], workspace, update=update)

    async def _read_again(self, uuid: str, through: int) -> None:
        """Let the memory read the turns after one again."""
        await self._graph.run(
            "MATCH (c:Conversation {uuid: $uuid}) SET "
            + ", ".join(
                f"c.{name} = CASE WHEN c.{name} > $through THEN $through ELSE c.{name} END" for name in _WATERMARKS
            ),
            uuid=uuid,
            through=through,
        )

    async def _mark_imported(self, uuid: str, version: str, title: str) -> None:
        """Store the version of another agent's session that a conversation holds, or the copy of one."""
        await self._graph.run(
            "MATCH (c:Conversation {uuid: $uuid}) SET "
            "c.import_copies = CASE WHEN $title = '' THEN [v IN coalesce(c.import_copies, []) "
            "WHERE left(v, 36) <> left($version, 36)] + [$version] ELSE c.import_copies END, "
            "c.title = CASE WHEN $title <> '' AND c.title = c.import_title THEN $title ELSE c.title END, "
            "c.import_title = CASE WHEN $title = '' THEN c.import_title ELSE $title END, "
            "c.import_version = CASE WHEN $title = '' THEN c.import_version ELSE $version END",
            uuid=uuid,
            version=version,
            title=title,
        )

    async def imported_versions(self) -> dict[str, str]:
        """Return the imported version by conversation, also of deleted ones: what was deleted is not brought back."""
        rows = await self._graph.rows(
            "MATCH (c:Conversation) WHERE c.import_version IS NOT NULL "
            "RETURN c.uuid AS uuid, c.import_version AS version, coalesce(c.import_copies, []) AS copies"
        )
        copies = [copy.partition(" ") for row in rows for copy in row["copies"]]
        return {uuid: version for uuid, _, version in copies} | {row["uuid"]: row["version"] for row in rows}

    async def _unmark(self, uuid: str, mark: str) -> None:
        await self._graph.run(
            "MATCH (c:Conversation {uuid: $uuid}) WHERE c.importing = $mark SET c.importing = null",
            uuid=uuid,
            mark=mark,
        )

    async def _import_conversation(self, c: Conversation, *, stub: bool = False, mark: str | None = None) -> None:
        """Make a conversation, or bring one back that was deleted.

        Args:
            stub: It only holds the turns a branch shares.
            mark: Stored in the node until all of the file is imported, so that an interrupted import may continue.
        """
        properties = conversation_properties(c)
        counts = {name: properties.pop(name) for name in _COUNTS}

        async def work(tx: Transaction) -> None:
            # A deleted conversation that is imported again is restored; a stub becomes the real conversation.
            await tx.run(
                "MERGE (c:Conversation {uuid: $uuid}) "
                "ON CREATE SET c += $properties, c.stub = $stub, c.importing = $mark "
                "WITH c, coalesce(c.summary, '') AS summary, coalesce(c.summary_made_by, '') AS author "
                "WHERE NOT $stub AND (c.stub OR c.status = 'deleted') "
                "SET c += $properties, c.stub = false, c.deleted_at = $deleted_at, c.importing = $mark "
                # An extract does not replace a model's text.
                "WITH c, summary, author "
                "WHERE c.summary_made_by = $extractive AND summary <> '' AND NOT author IN ['', $extractive] "
                "SET c.summary = summary, c.summary_made_by = author",
                uuid=c.uuid,
                extractive=EXTRACTIVE,
                mark=mark,
                properties=properties,
                stub=stub,
                deleted_at=properties["deleted_at"],
            )
            await tx.run(_RAISE, uuid=c.uuid, **counts)
            if c.branch_of:
                await link_branch(tx, c)

        await self._graph.write(work)

    async def _import_messages(self, turns: list[Turn], *, update: bool = False, digests: bool = False) -> None:
        rows = []
        for turn in turns:
            for m in turn.messages:
                chars = len(m.content)
                properties = {**message_properties(m), "char_count": chars, "counted_chars": chars}
                if m.position == 0:
                    properties |= _recall_keys(turn)
                    properties |= {"import_digest": turn_digest(turn)} if digests else {}
                    properties |= {"embed_model": None} if update else {}
                rows.append(properties)
        await self._store(MESSAGE_NODES, rows, update=update)

    async def _import_calls(self, messages: list[Message], workspace: str, *, update: bool = False) -> None:
        calls, results, files, changes = [], [], [], []
        for m in messages:
            for c in m.tool_calls:
                calls.append(call_properties(c, m.conversation_id))
                changes += change_rows(c)
                files += [{**row, "call": c.uuid, "ordinal": n} for n, row in enumerate(file_rows(c.files))]
                if c.result:
                    results.append(result_properties(cut_result(c.result), m.conversation_id))
        await self._store(CALL_NODES, calls, update=update)
        await self._store(RESULT_NODES, results, update=update)
        await self._link_files(files, storable(workspace))
        for batch in batches(changes):

            async def work(tx: Transaction, batch: list[dict[str, Any]] = batch) -> None:
                await lock_nodes(tx, "ToolCall", (row["call"] for row in batch))
                await link_changes(tx, batch, workspace)

            await self._graph.write(work)

    async def _store(self, kind: OwnedNodes, rows: list[dict[str, Any]], *, update: bool) -> None:
        """Make nodes, each with the relationship it hangs on, in small statements.

        A node and its relationship come into being together, so one that is there already has it. That spares a
        MERGE of the relationship, which the embedded server answers by walking all those of the parent: the
        conversation's grow with every message.

        Args:
            update: Give those that are there the new values; otherwise they stay as they are.
        """
        if not update and rows:
            known = await self._graph.read(lambda tx: _known(tx, kind.label, [row["uuid"] for row in rows]))
            rows = [row for row in rows if row["uuid"] not in known]
        statement = (
            f"UNWIND $rows AS row MATCH (p:{kind.parent} {{uuid: row.{kind.key}}}) "
            f"CREATE (p)-[:{kind.relationship}]->(n:{kind.label}) SET n += row"
        )
        for conversation_id in dict.fromkeys(row["conversation_id"] for row in rows):
            own = [(row["uuid"], row) for row in rows if row["conversation_id"] == conversation_id]
            await move_to_files(self._graph, conversation_id, own, kind.large)
        for row in rows:
            await store_parts(self._graph, row["uuid"], row["conversation_id"], row, kind.large)
        for batch in batches(rows):

            async def work(tx: Transaction, batch: list[dict[str, Any]] = batch) -> None:
                # Checked again in the transaction: it may run twice, and another process may import the same.
                known = await _known(tx, kind.label, [row["uuid"] for row in batch])
                fresh = [row for row in batch if row["uuid"] not in known]
                if fresh:
                    await (await tx.run(statement, rows=fresh)).consume()
                if old := [row for row in batch if update and row["uuid"] in known]:
                    renew = f"UNWIND $rows AS row MATCH (n:{kind.label} {{uuid: row.uuid}}) SET n += row"
                    await (await tx.run(renew, rows=old)).consume()
                for row in batch if update else fresh:
                    await link_parts(tx, kind.label, row["uuid"], row)

            await self._graph.write(work)

    async def _link_files(self, rows: list[dict[str, Any]], workspace: str) -> None:
        """Link calls to the files they accessed; queried from the call's side, since many calls share a file."""
        for batch in batches(rows):

            async def work(tx: Transaction, batch: list[dict[str, Any]] = batch) -> None:
                await lock_nodes(tx, "ToolCall", (row["call"] for row in batch))
                result = await tx.run(
                    "UNWIND $calls AS call MATCH (t:ToolCall {uuid: call})-[a:ACCESSED]->(f:File) "
                    "RETURN call, a.access AS access, f.path AS path",
                    calls=list({row["call"] for row in batch}),
                )
                known = {(record["call"], record["access"], record["path"]) async for record in result}
                fresh = [row for row in batch if (row["call"], row["access"], row["path"]) not in known]
                if not fresh:
                    return
                await tx.run(
                    "UNWIND $paths AS path MERGE (f:File {workspace: $workspace, path: path})",
                    paths=sorted({row["path"] for row in fresh}),
                    workspace=workspace,
                )
                await tx.run(
                    "UNWIND $rows AS row MATCH (t:ToolCall {uuid: row.call}) "
                    "MATCH (f:File {workspace: $workspace, path: row.path}) "
                    "CREATE (t)-[:ACCESSED {access: row.access, ordinal: row.ordinal}]->(f)",
                    rows=fresh,
                    workspace=workspace,
                )

            await self._graph.write(work)


async def _known(tx: Transaction, label: str, uuids: list[str]) -> set[str]:
    result = await tx.run(f"UNWIND $ids AS id MATCH (n:{label} {{uuid: id}}) RETURN n.uuid AS uuid", ids=uuids)
    return {record["uuid"] async for record in result}


def _checked(e: ConversationExport) -> str:
    """Check an export and return its digest."""
    check_export(e)
    return hashlib.sha256(msgspec.json.encode(e)).hexdigest()


def _pages(turns: list[Turn]) -> Iterator[list[Turn]]:
    """Yield turns in order, in pages with a limited number of messages; their size is limited when they are sent."""
    page: list[Turn] = []
    for turn in turns:
        if page and sum(len(t.messages) for t in page) + len(turn.messages) > BATCH_NODES:
            yield page
            page = []
        page.append(turn)
    if page:
        yield page


def _counted(c: Conversation, turns: Iterable[Turn]) -> Conversation:
    """Return the conversation with counters computed from its turns; a stub's are the shared ones."""
    own = c.uuid
    ends = [m.turn_index for turn in turns for m in turn.messages if m.conversation_id == own]
    end = max([*ends, c.branch_turn or 0])
    held = [m for turn in turns for m in turn.messages if m.turn_index <= end]
    return msgspec.structs.replace(
        c, next_turn=end + 1, message_count=len(held), total_chars=sum(len(m.content) for m in held)
    )


def _with_author(c: Conversation, summaries: Sequence[Summary]) -> Conversation:
    """Return the conversation with the author of its summary, which files of other programs do not name.

    It is taken for a model's unless all other summaries are extracts, so that no extract replaces it.
    """
    if not c.summary or c.summary_made_by:
        return c
    extracted = bool(summaries) and all(summary.made_by == EXTRACTIVE for summary in summaries)
    return msgspec.structs.replace(c, summary_made_by=EXTRACTIVE if extracted else _UNNAMED)


def _recall_keys(turn: Turn) -> dict[str, str]:
    """Return the keys that search uses until the turn is indexed again: its text and its time."""
    said: Iterable[str] = (m.content for m in turn.messages if m.state != "superseded")
    text = storable("\n\n".join(text[:INDEXED_CHARS] for text in said if text)[:INDEXED_CHARS])
    date = turn.messages[0].timestamp.strftime("%Y-%m-%d %B %A")
    return {"turn_text": text, MESSAGE_LEX["en"][0]: f"{date}\n{text}"}


def _ancestors(e: ConversationExport) -> list[Conversation]:
    """Return stubs of the conversations whose turns an exported branch shares, oldest first."""
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
