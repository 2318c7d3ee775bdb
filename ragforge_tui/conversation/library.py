"""The conversations of an agent: create, open, find and change them, import others.

Base of the public `ConversationAgent`. It holds the open ones, so that each exists once in a process.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from ragforge_tui.conversation.conversation import OPENING_TURNS, Conversation
from ragforge_tui.conversation.services import Services
from ragforge_tui.conversation.similar import similar_conversations
from ragforge_tui.conversation.storage.token_counts import count_imported
from ragforge_tui.export import from_json
from ragforge_tui.graph import Store
from ragforge_tui.shared import records
from ragforge_tui.shared.account import log_in_name
from ragforge_tui.shared.errors import NotFoundError, RagforgeError
from ragforge_tui.shared.export_records import ConversationExport, Imported
from ragforge_tui.shared.files import MAX_EXPORT_BYTES, read_regular
from ragforge_tui.shared.prompt_files import forget_prompts
from ragforge_tui.shared.records import ConversationFilter, ConversationStatus, SearchHit, SimilarConversation, now
from ragforge_tui.shared.requests.sessions import Deleted


class ConversationLibrary:
    """Conversations, stored and open.

    Attributes:
        services: What all of them share.
        interactive: Whether a user sees them, so that their memory is brought up to date when they are opened.
    """

    services: Services
    interactive: bool
    _open: dict[str, Conversation]

    def start(self) -> None:
        """Start to open the graph and the model in the background, unless that was done; returns at once."""
        raise NotImplementedError

    async def initialize(self) -> None:
        """Open the graph now, and bring its schema up to date; the first call that needs it does the same.

        Raises:
            GraphError: The graph is unreachable or was refused.
        """
        await self.store()

    async def store(self) -> Store:
        """Return the graph's store; wait while the graph starts.

        Raises:
            GraphError: The graph is unreachable or was refused.
        """
        self.start()
        return await self.services.store()

    async def create_conversation(
        self, title: str = "", *, tags: Sequence[str] = (), persona: str = "", private: bool = False
    ) -> Conversation:
        """Create a conversation in this workspace.

        Args:
            title: Empty to make one from the first turn.
            persona: Name of a persona; empty for the default one.
            private: Keep other conversations from recalling and finding it.

        Raises:
            NotFoundError: The persona does not exist.

        Examples:
            ```python
            conversation = await agent.create_conversation("Debug authentication", tags=["debugging", "auth"])
            assert conversation.title == "Debug authentication"
            ```
        """
        self.start()
        chosen = self.services.personas.find(persona)
        record = records.Conversation(
            uuid=str(uuid.uuid4()),
            title=title,
            tags=list(tags),
            created_at=(created := now()),
            updated_at=created,
            persona=chosen.name,
            model=self.services.model.state.name,
            workspace=str(self.services.workspace),
            owner=log_in_name(),
            private=private,
        )
        await self.services.recorder.create_conversation(record)
        conversation = Conversation(self.services, record, [], self)
        self._open[record.uuid] = conversation
        if self.interactive:
            conversation.memory.start()
        return conversation

    async def load_conversation(self, ref: str = "", *, turns: int = OPENING_TURNS) -> Conversation:
        """Open a stored conversation by id or unique prefix, by default the newest of this workspace.

        Args:
            turns: Number of its newest turns to read at once; more are read when a message is sent.

        Raises:
            NotFoundError: No conversation matches, or more than one does.

        Examples:
            ```python
            resumed = await agent.load_conversation(conversation.id[:8])
            await resumed.send_message("Where were we?")
            ```
        """
        if ref in self._open:
            return self._open[ref]
        store = await self.store()
        workspace = str(self.services.workspace)
        record = await (store.conversations.resolve(ref) if ref else store.conversations.latest(workspace))
        if record is None:
            raise NotFoundError(f"There is no conversation in {workspace} yet.", todo="Send a message to start.")
        if record.status == "deleted":
            raise NotFoundError(
                f"The conversation {record.uuid[:8]} was deleted.", todo=f"ragforge-chat restore {record.uuid[:8]}"
            )
        if record.uuid not in self._open:
            end = record.next_turn
            newest = await store.turns.between(record.uuid, start=max(1, end - max(turns, 1)), end=end)
            conversation = Conversation(self.services, record, newest, self)
            conversation.title_is_parents = await _has_title_of_parent(store, record)
            self._open[record.uuid] = conversation
            if self.interactive:
                conversation.prepare()
        return self._open[record.uuid]

    async def branch_conversation(self, ref: str, turn_index: int, *, title: str = "") -> Conversation:
        """Create a conversation that continues from a turn of another one, which stays unchanged.

        Args:
            ref: Id or unique prefix of the parent conversation.
            turn_index: The last turn both share, 0 for none.
            title: Empty for the parent's, until its own first message gives it another.

        Raises:
            NotFoundError: The conversation or the turn does not exist.
            RagforgeError: The turn is still being answered.
        """
        store = await self.store()
        parent = await store.conversations.resolve(ref)
        if not 0 <= turn_index < parent.next_turn:
            raise NotFoundError(f"The conversation {parent.uuid[:8]} has no turn {turn_index}.")
        here = self._open.get(parent.uuid)
        if here is not None and here.active_turn is not None and turn_index >= here.active_turn:
            raise RagforgeError(f"Turn {turn_index} is still being answered.", todo="Stop it, or wait until it ends.")
        record = records.Conversation(
            uuid=str(uuid.uuid4()),
            title=title or parent.title,
            tags=list(parent.tags),
            created_at=(created := now()),
            updated_at=created,
            persona=parent.persona,
            model=parent.model,
            workspace=parent.workspace,
            owner=parent.owner,
            private=parent.private,
            branch_of=parent.uuid,
            branch_turn=turn_index,
        )
        await store.conversations.create(record)
        branch = await self.load_conversation(record.uuid)
        branch.mode = here.mode if here is not None else branch.mode
        return branch

    def opened(self, conversation_id: str) -> Conversation | None:
        """Return the conversation if this process has it open."""
        return self._open.get(conversation_id)

    async def list_conversations(
        self,
        filter: ConversationFilter | None = None,
        *,
        status: ConversationStatus | Literal["any"] = "active",
        tags: Sequence[str] = (),
        query: str = "",
        workspace: str | None = None,
        order: Literal["updated", "created"] = "updated",
        limit: int = 50,
    ) -> list[records.Conversation]:
        """Return stored conversations, newest first.

        Args:
            filter: A whole filter, in place of the other arguments.
            tags: Only conversations with any of these; empty for all.
            query: Words in title or summary, ignoring case.
            workspace: Only conversations of this folder; None for all.

        Examples:
            ```python
            for record in await agent.list_conversations(tags=["auth"], order="created", limit=10):
                print(record.uuid, record.title, record.message_count)
            ```
        """
        chosen = filter or ConversationFilter(
            status=status, tags=list(tags), query=query, workspace=workspace, order=order, limit=limit
        )
        return await (await self.store()).conversations.matching(chosen)

    async def find_similar(
        self, query: str = "", *, id: str = "", limit: int = 5, min_score: float | None = None
    ) -> list[SimilarConversation]:
        """Return conversations similar to a text or to a conversation, most similar first; never private ones.

        Compared by their summaries; a conversation without one is represented by its turns. A text is also compared
        with the words of titles and summaries. ``agent.memory.recall``
        sets the `scope`: only conversations of this workspace by default.

        Args:
            query: The text.
            id: Id or unique prefix of the conversation, in place of a text.
            min_score: Smallest score, see `SimilarConversation`; None: the setting ``agent.memory.recall.min_score``.

        Raises:
            NotFoundError: The conversation does not exist.
            RagforgeError: Vectors are switched off, or the embedding model failed.

        Examples:
            ```python
            for similar in await agent.find_similar("refactoring authentication", limit=3):
                print(round(similar.score, 2), similar.conversation.title)
            ```
        """
        self.start()
        return await similar_conversations(self.services, query, id, limit=limit, min_score=min_score)

    async def find_similar_conversations(
        self, query: str, *, limit: int = 5, min_score: float | None = None
    ) -> list[SimilarConversation]:
        """Do what `find_similar` does with a text, under the specification's name."""
        return await self.find_similar(query, limit=limit, min_score=min_score)

    async def search(
        self,
        query: str,
        *,
        topic: str = "",
        conversation_id: str = "",
        workspace: str | None = None,
        limit: int = 20,
    ) -> list[SearchHit]:
        """Return turns of any conversation that hold the words of a query, best first, one hit per turn.

        Private conversations are found only when named.

        Args:
            topic: Only turns whose summary has this topic.
            conversation_id: Only turns of this conversation.
            workspace: Only conversations of this folder; None for all.

        Raises:
            NotFoundError: The topic does not exist.

        Examples:
            ```python
            for hit in await agent.search("greet", limit=3):
                print(hit.title, hit.turn_index, hit.snippet)
            ```
        """
        store = await self.store()
        turns = None
        if topic:
            found = await self.services.memory.topics.turns(topic, workspace=workspace, conversation_id=conversation_id)
            turns = found.ranges
        return await store.search.turns(
            query, limit=limit, conversation_id=conversation_id, workspace=workspace, turns=turns
        )

    async def import_conversation(
        self, data: str | bytes | Path | Mapping[str, Any] | ConversationExport, *, merge: bool = False
    ) -> Imported:
        """Import an exported conversation; ids stay the same, and repeating it changes nothing.

        Args:
            data: What `Conversation.export` or `Conversation.get_full_data` returned, the path of such a file, or what
                ``json.load`` read from it.
            merge: Add new turns to a conversation that already exists.

        Raises:
            RagforgeError: It is not an export, or contradicts stored conversations. Nothing was stored.
            OSError: The file cannot be read.

        Examples:
            ```python
            exported = await conversation.export()
            imported = await agent.import_conversation(exported)
            assert not imported.created
            ```
        """
        if isinstance(data, Path):
            data = await asyncio.to_thread(_read, data)
        if isinstance(data, Mapping):
            data = await asyncio.to_thread(_document, data)
        if isinstance(data, str):
            data = data.encode()
        if isinstance(data, bytes):
            data = await asyncio.to_thread(from_json, data)
        counted = await asyncio.to_thread(count_imported, data)
        return await (await self.store()).transfer.import_(counted, merge=merge)

    async def archive_conversation(self, ref: str, *, archived: bool = True) -> records.Conversation:
        """Archive a conversation, or make it active again."""
        return await self._set_status(ref, "archived" if archived else "active", None)

    async def delete_conversation(self, ref: str, *, immediately: bool = False, with_branches: bool = False) -> Deleted:
        """Hide a conversation; it is purged after seven days, or now if `immediately` is set.

        The branch that shares most of it takes over those turns when it is purged.

        Args:
            with_branches: Delete its branches too, at any distance.

        Returns:
            What was deleted, and what could not be.

        Raises:
            NotFoundError: No conversation matches, or more than one does.
        """
        store = await self.store()
        record = await store.conversations.resolve(ref)
        found = [record.uuid]
        for known in found:
            found += await store.purges.branches(known)
        branches = [await store.conversations.get(branch) for branch in found[1:]]
        if with_branches:
            branches = [one for one in branches if one.status != "deleted" or immediately]
        gone = [record, *branches] if with_branches else [record]
        for one in gone:
            await self._close_one(one.uuid)
        if not immediately:
            for one in gone:
                await store.conversations.update(one.uuid, status="deleted", deleted_at=now())
            kept_by = branches[0] if branches and not with_branches else None
            return Deleted(conversation=record, branches=gone[1:], kept_by=kept_by)
        outcome, left = Deleted(conversation=record), []
        # A branch before its parent, so that it does not take over what is to go.
        for one in reversed(gone):
            outcome = await self._purge_one(store, one.uuid)
            left += outcome.left
        return msgspec.structs.replace(outcome, branches=gone[1:], left=left)

    async def _close_one(self, uuid: str) -> None:
        open_here = self._open.pop(uuid, None)
        if open_here is not None:
            open_here.unqueue()
            open_here.cancel()
            await open_here.wait_idle()
            await open_here.memory.close()

    async def restore_conversation(self, conversation_id: str) -> records.Conversation:
        """Restore a deleted conversation by its id or a unique prefix."""
        store = await self.store()
        deleted = await store.conversations.matching(ConversationFilter(status="deleted", limit=10_000))
        matches = [record for record in deleted if record.uuid.startswith(conversation_id)]
        if len(matches) != 1 or not conversation_id:
            raise NotFoundError(f"No single deleted conversation has an id that starts with {conversation_id!r}.")
        return self._as_stored(await store.conversations.update(matches[0].uuid, status="active", deleted_at=None))

    async def _set_status(self, ref: str, status: records.ConversationStatus, deleted_at: None) -> records.Conversation:
        store = await self.store()
        record = await store.conversations.resolve(ref)
        return self._as_stored(await store.conversations.update(record.uuid, status=status, deleted_at=deleted_at))

    def _as_stored(self, changed: records.Conversation) -> records.Conversation:
        if changed.uuid in self._open:
            # Changed in place: the conversation's memory shares this record.
            here = self._open[changed.uuid].record
            here.status, here.deleted_at, here.updated_at = changed.status, changed.deleted_at, changed.updated_at
        return changed

    async def _purge_one(self, store: Store, uuid: str) -> Deleted:
        """Remove a conversation from the graph and all files; the next start continues an interrupted removal."""
        record = await store.conversations.get(uuid)
        heir = await store.purges.hand_over(uuid)
        left: list[str] = []
        for helper in await store.purges.branches(uuid, helpers=True):
            left += (await self._purge_one(store, helper)).left
        left += [
            f"Its texts in files on {place} stay until `ragforge-chat graph compact` runs there."
            for place in sorted(await store.purges.texts_elsewhere(uuid))
        ]
        undo, services = self.services.toolbox.undo, self.services
        if await asyncio.to_thread(undo.holds_any):
            left += await asyncio.to_thread(undo.forget, await store.purges.digests(uuid))
        left += await asyncio.to_thread(services.recorder.forget, uuid)
        left += await asyncio.to_thread(forget_prompts, services.state, [uuid])
        left += await services.exports.removed(uuid, record.workspace)
        await store.purges.remove(uuid)
        if heir is None:
            return Deleted(conversation=record, left=left)
        for one in self._open.values():
            fresh = await store.conversations.get(one.record.uuid)
            one.record.branch_of, one.record.branch_turn = fresh.branch_of, fresh.branch_turn
        services.exports.turn_stored(heir.conversation.uuid)
        return Deleted(conversation=record, kept_turns=heir.turns, kept_by=heir.conversation, left=left)


def _document(parsed: Mapping[str, Any]) -> bytes:
    """Return a parsed export as a document again.

    Raises:
        RagforgeError: It holds what no JSON document holds.
    """
    try:
        return msgspec.json.encode(parsed)
    except (TypeError, ValueError) as error:
        raise RagforgeError(f"This is not a parsed export: {error}.", kind="bad_export") from None


async def _has_title_of_parent(store: Store, record: records.Conversation) -> bool:
    """Return whether a conversation is a branch without turns of its own and with its parent's title."""
    if record.branch_of is None or record.next_turn != (record.branch_turn or 0) + 1:
        return False
    try:
        parent = await store.conversations.get(record.branch_of)
    except NotFoundError:
        return False
    return parent.title == record.title


def _read(path: Path) -> bytes:
    return read_regular(path.expanduser(), MAX_EXPORT_BYTES)
