"""Reading of a stored conversation: history, tool calls, search, recent files, export.

The half of the public `Conversation` that starts no turn and changes nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec

from ragforge_tui.conversation.memory import ConversationMemory
from ragforge_tui.conversation.services import Services
from ragforge_tui.conversation.turn.window import PAGE_TURNS
from ragforge_tui.export import ExportFormat, export_bytes, write_export
from ragforge_tui.shared import records
from ragforge_tui.shared.export_records import ConversationExport
from ragforge_tui.shared.records import AccessedFile, ToolCall, Turn, call_end
from ragforge_tui.shared.requests.work import FileDiff, UndoPlan
from ragforge_tui.tools.undo.plan import ChangedFiles


class HistoryHit(msgspec.Struct, frozen=True, kw_only=True):
    """Turn that a search of its conversation found.

    Attributes:
        score: Comparable within one search only.
    """

    turn: Turn
    score: float


class StoredConversation:
    """A conversation as it is stored.

    Attributes:
        record: Title, tags, status, summary and counts.
        memory: Summaries, topics and search index, which are derived from the turns in the background.
    """

    def __init__(self, services: Services, record: records.Conversation, turns: list[Turn]) -> None:
        self.record = record
        self.memory = ConversationMemory(services, record, turns)
        self._services = services

    @property
    def id(self) -> str:
        """Id of the conversation, a UUID; a unique prefix of it opens the conversation again."""
        return self.record.uuid

    def get_uuid(self) -> str:
        """Return `id`, under the specification's name."""
        return self.id

    @property
    def title(self) -> str:
        """Title of the conversation; made from its first turn unless one was given."""
        return self.record.title

    async def get_history(
        self, limit: int | None = None, *, include_tool_calls: bool = True, include_reasoning: bool = True
    ) -> list[Turn]:
        """Return the newest turns in ascending order.

        Args:
            limit: Most turns; None for all. A turn is a message of the user with the replies to it.
            include_tool_calls: Whether replies have their tool calls and results.
            include_reasoning: Whether replies have the model's reasoning.

        Examples:
            ```python
            for turn in await conversation.get_history(limit=10, include_tool_calls=False):
                question, *replies = turn.messages
                print(turn.turn_index, question.content, [reply.content for reply in replies])
            ```
        """
        first, last = await self._range()
        start = first if limit is None else max(first, last - limit + 1)
        store = await self._services.store()
        turns: list[Turn] = []
        while start <= last:
            end = min(start + PAGE_TURNS, last + 1)
            turns += await store.turns.between(self.record.uuid, start=start, end=end)
            start = end
        if not (include_tool_calls and include_reasoning):
            for message in (message for turn in turns for message in turn.messages):
                message.tool_calls = message.tool_calls if include_tool_calls else []
                message.reasoning = message.reasoning if include_reasoning else ""
        return turns

    async def get_tool_calls(
        self, tool_name: str = "", *, success: bool | None = None, limit: int | None = None
    ) -> list[ToolCall]:
        """Return tool calls with their results, in order.

        Args:
            tool_name: Only calls of this tool; empty for all.
            success: Only calls that succeeded, or only those that failed or were refused; None for both.
            limit: Most calls, the newest; None for all.

        Examples:
            ```python
            for call in await conversation.get_tool_calls(success=False, limit=5):
                print(call.tool_name, call.arguments, call.result and call.result.error)
            ```
        """
        calls: list[ToolCall] = []
        async for turn in self._newest_first():
            made = [call for message in turn.messages for call in message.tool_calls]
            calls += reversed([call for call in made if _is_wanted(call, tool_name, success)])
            if limit is not None and len(calls) >= limit:
                break
        return calls[:limit][::-1]

    async def get_full_data(self) -> ConversationExport:
        """Return everything stored of the conversation: its record, turns, requests, summaries and topics.

        Examples:
            ```python
            data = await conversation.get_full_data()
            assert data.conversation.uuid == conversation.id
            ```
        """
        return await (await self._services.store()).transfer.export(self.record.uuid)

    async def search_history(self, query: str, *, limit: int = 10) -> list[HistoryHit]:
        """Return the turns that a query asks for, best first, by words and by meaning.

        Nothing is returned if no turn has to do with the query. New turns can be searched by words at once, and by
        meaning as soon as their vectors are made.

        Examples:
            ```python
            for hit in await conversation.search_history("greeting", limit=3):
                print(hit.score, hit.turn.turn_index, hit.turn.messages[0].content)
            ```
        """
        store = await self._services.store()
        await self.memory.ready()
        found = await self.memory.recall.search(query, limit=limit)
        pages = await asyncio.gather(
            *(store.turns.between(self.record.uuid, start=one.turn_index, end=one.turn_index + 1) for one in found)
        )
        return [HistoryHit(turn=turn, score=one.score) for one, page in zip(found, pages, strict=True) for turn in page]

    async def get_recent_files(self, *, limit: int = 100) -> list[AccessedFile]:
        """Return the files that tools and @mentions touched: read, modified, found in searches, newest first in each.

        Examples:
            ```python
            for file in await conversation.get_recent_files(limit=5):
                print(file.group, file.path, file.tool, file.turn_index)
            ```
        """
        await self._services.store()
        await self.memory.ready()
        return self.memory.files.groups(limit)

    async def get_recently_accessed_files(self, *, limit: int = 100) -> list[AccessedFile]:
        """Do what `get_recent_files` does, under the specification's name."""
        return await self.get_recent_files(limit=limit)

    async def export(self, path: str | Path | None = None, *, format: ExportFormat = "json") -> str:
        """Return the whole conversation as a document, with secrets masked.

        Args:
            path: File to write it to as well; a folder gets a file named ``conv-<uuid>``.
            format: ``json``, which `ConversationAgent.import_conversation` reads without loss, ``markdown``, or
                ``html``, one page that needs no network.

        Raises:
            RagforgeError: The file cannot be written.

        Examples:
            ```python
            text = await conversation.export(format="markdown")
            assert text.startswith("# ")
            ```
        """
        data = await self.get_full_data()
        if path is not None:
            await asyncio.to_thread(write_export, data, format, Path(path))
        return (await asyncio.to_thread(export_bytes, data, format)).decode()

    async def diff(self) -> list[FileDiff]:
        """Return the files that the agent changed during this conversation, with their diffs."""
        return await (await self._changed_files()).diff()

    async def plan_undo(self, turn_index: int = 0, *, redo: bool = False) -> UndoPlan:
        """Return the effects of undoing a turn, by default the last one that changed files.

        Args:
            redo: Undo the last undo instead.

        Raises:
            NotFoundError: There is no such turn.
        """
        return await (await self._changed_files()).plan(turn_index, redo=redo)

    async def _changed_files(self) -> ChangedFiles:
        toolbox = self._services.toolbox
        workspace = str(toolbox.workspace.root)
        return ChangedFiles(await self._services.store(), toolbox.kept, workspace, self.record.uuid)

    async def _range(self) -> tuple[int, int]:
        return await (await self._services.store()).turns.range(self.record.uuid)

    async def _newest_first(self) -> AsyncIterator[Turn]:
        first, last = await self._range()
        store = await self._services.store()
        while last >= first:
            start = max(first, last - PAGE_TURNS + 1)
            for turn in reversed(await store.turns.between(self.record.uuid, start=start, end=last + 1)):
                yield turn
            last = start - 1


def _is_wanted(call: ToolCall, tool_name: str, success: bool | None) -> bool:
    if tool_name and call.tool_name != tool_name:
        return False
    return success is None or (call_end(call) == "ok") is success
