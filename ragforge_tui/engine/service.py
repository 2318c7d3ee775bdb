"""Dispatch of requests to the `ConversationAgent`.

Both forms of the engine use this service. It translates between the protocol and the agent and keeps no state except
the watcher of the open conversation.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import msgspec

from ragforge_tui import __version__
from ragforge_tui.conversation import Conversation, ConversationAgent
from ragforge_tui.engine import (
    call_requests,
    memory_requests,
    persona_requests,
    tree_requests,
    turn_requests,
    work_requests,
)
from ragforge_tui.engine.following import Following
from ragforge_tui.engine.logs import log_file
from ragforge_tui.engine.turn_state import current_todos, foreign_active_turn, interrupted_turn
from ragforge_tui.graph import Store
from ragforge_tui.settings.schema import Loaded
from ragforge_tui.shared import records, wire
from ragforge_tui.shared.errors import NotFoundError, RagforgeError
from ragforge_tui.shared.sanitize import storable
from ragforge_tui.shared.tool_calls import described_tools
from ragforge_tui.shared.wire import (
    ConversationView,
    Empty,
    EngineState,
    Request,
    SendAccepted,
    TurnPage,
)
from ragforge_tui.tools.search.matching import match_files


class EngineService:
    """Service that answers requests for one agent."""

    def __init__(self, agent: ConversationAgent, loaded: Loaded) -> None:
        self._agent = agent
        self._loaded = loaded
        self._following = Following(agent) if agent.interactive else None

    async def handle(self, request: Request[Any]) -> Any:
        """Answer one request.

        Raises:
            RagforgeError: The request failed; the message is meant for the user.
        """
        agent = self._agent
        match request:
            case wire.Hello():
                return self._state()
            case wire.CreateConversation(title=title, tags=tags, persona=persona):
                conversation = await agent.create_conversation(title=title, tags=tags, persona=persona)
                return await self._view(conversation, 0)
            case wire.OpenConversation(ref=ref, turns=turns):
                return await self._view(await agent.load_conversation(ref, turns=turns), turns)
            case wire.FetchTurns():
                return await self._page(request.conversation_id, request.start, request.end)
            case wire.SendMessage():
                return await self._send(request)
            case wire.CancelTurn(conversation_id=conversation_id):
                return await self._cancel(conversation_id)
            case wire.Unqueue(conversation_id=conversation_id, message_id=message_id):
                return self._conversation(conversation_id).unqueue(message_id)
            case wire.RetryTurn(conversation_id=conversation_id):
                return await self._retry(conversation_id)
            case wire.AnswerApproval(approval_id=approval_id, decision=decision, feedback=feedback):
                agent.approvals.answer(approval_id, decision, storable(feedback))
                return Empty()
            case wire.AnswerTrust(root=root, allow=allow):
                agent.trust.answer(root, allow)
                agent.personas.answer(root, allow)
                return Empty()
            case wire.SetModel(name=name):
                return await agent.set_model(name)
            case wire.ChangeModelSettings(changes=changes):
                agent.change_model_settings(changes)
                return Empty()
            case wire.ListModels():
                return await agent.model_names()
            case wire.ListFiles(query=query, limit=limit, folders=folders):
                ignore = self._loaded.settings.tools.ignore
                return await match_files(Path(self._loaded.workspace), query, ignore, limit, folders=folders)
            case _ if isinstance(request, wire.PersonaRequest):
                return await persona_requests.answer(agent, request)
            case _ if isinstance(request, wire.CallRequest):
                return await call_requests.answer(agent, request)
            case _ if isinstance(request, wire.MemoryRequest):
                return await memory_requests.answer(agent, request)
            case _ if isinstance(request, wire.TreeRequest):
                return await tree_requests.answer(agent, request)
            case _ if isinstance(request, wire.TurnRequest):
                return await turn_requests.answer(agent, request)
            case _ if isinstance(request, wire.WorkRequest):
                return await work_requests.answer(agent, request)
            case _:
                return await self._manage(request)

    async def _manage(self, request: Request[Any]) -> Any:
        """Answer requests about stored conversations."""
        agent = self._agent
        match request:
            case wire.ListConversations(filter=filter):
                return await agent.list_conversations(filter)
            case wire.UpdateConversation():
                return await self._update(request)
            case wire.ArchiveConversation(conversation_id=ref, archived=archived):
                return await agent.archive_conversation(ref, archived=archived)
            case wire.DeleteConversation(conversation_id=ref, immediately=immediately):
                await agent.delete_conversation(ref, immediately=immediately)
                return Empty()
            case wire.RestoreConversation(conversation_id=ref):
                return await agent.restore_conversation(ref)
            case wire.Search():
                return await _search(await agent.store(), request)
            case wire.PeekConversation(conversation_id=conversation_id, chars=chars):
                return await (await agent.store()).conversations.peek(conversation_id, chars=chars)
            case wire.LeaveConversation():
                self.close()
                return Empty()
            case wire.FollowConversations(since=since, workspace=workspace):
                return await (await agent.store()).conversations.changed(since, workspace=workspace)
            case wire.ExportConversation(ref=ref):
                store = await agent.store()
                return await store.transfer.export((await store.conversations.resolve(ref)).uuid)
            case wire.ImportConversation(data=data, merge=merge):
                return await (await agent.store()).transfer.import_(data, merge=merge)
        raise RagforgeError(f"The engine does not support the request {type(request).__name__}.", kind="protocol")

    def close(self) -> None:
        """Stop reporting changes by other processes."""
        if self._following is not None:
            self._following.end()

    def _state(self) -> EngineState:
        return EngineState(
            protocol=wire.PROTOCOL_VERSION,
            version=__version__,
            pid=os.getpid(),
            workspace=self._loaded.workspace,
            model=self._agent.model_state,
            graph=self._agent.graph_state,
            log_file=str(log_file(self._loaded.paths)),
            tools=described_tools(),
        )

    def _conversation(self, conversation_id: str) -> Conversation:
        conversation = self._agent.opened(conversation_id)
        if conversation is None:
            raise NotFoundError(f"The conversation {conversation_id} is not open.", todo="Open it first.")
        return conversation

    async def _view(self, conversation: Conversation, turns: int) -> ConversationView:
        record = conversation.record
        opening = conversation.take_opening()
        if turns == 0:
            page = TurnPage(turns=[], first=1, last=0)
        elif opening:
            page = TurnPage(turns=opening, first=1, last=record.next_turn - 1)
        else:
            page = await self._page(record.uuid, -turns, 0)
        if self._following is not None:
            self._following.begin(conversation, page.turns, page.last)
        active = conversation.active_turn if conversation.busy else foreign_active_turn(page.turns)
        return ConversationView(
            conversation=msgspec.structs.replace(record),
            page=page,
            todos=current_todos(page.turns),
            active_turn=active,
            interrupted_turn=None if active is not None else interrupted_turn(page.turns),
            mode=conversation.mode,
        )

    async def _page(self, conversation_id: str, start: int, end: int) -> TurnPage:
        """Return the turns [start, end); a negative `start` counts from the newest."""
        store = await self._agent.store()
        first, last = await store.turns.range(conversation_id)
        if start < 0:
            start, end = max(first, last + 1 + start), last + 1
        turns = await store.turns.between(conversation_id, start=start, end=end) if start < end else []
        return TurnPage(turns=turns, first=first, last=last)

    async def _send(self, request: wire.SendMessage) -> SendAccepted:
        conversation = self._conversation(request.conversation_id)
        index = await conversation.submit(request.text, request.message_id)
        return SendAccepted(turn_index=index, queued=index == 0)

    async def _retry(self, conversation_id: str) -> SendAccepted:
        conversation = self._conversation(conversation_id)
        if not conversation.busy:
            page = await self._page(conversation_id, -1, 0)
            if foreign_active_turn(page.turns) is not None:
                raise RagforgeError("Another process is answering this turn.", todo="Stop it first, then retry.")
        return SendAccepted(turn_index=await conversation.retry())

    async def _cancel(self, conversation_id: str) -> Empty:
        conversation = self._conversation(conversation_id)
        if conversation.busy:
            conversation.cancel()
            return Empty()
        page = await self._page(conversation_id, -1, 0)
        active = foreign_active_turn(page.turns)
        if active is not None:
            await (await self._agent.store()).messages.request_stop(conversation_id, active)
        return Empty()

    async def _update(self, request: wire.UpdateConversation) -> records.Conversation:
        store = await self._agent.store()
        changes = {
            name: value for name in ("title", "tags", "private") if (value := getattr(request, name)) is not None
        }
        record = await store.conversations.update(
            (await store.conversations.resolve(request.conversation_id)).uuid, **changes
        )
        conversation = self._agent.opened(record.uuid)
        if conversation is not None:
            for name, value in changes.items():
                setattr(conversation.record, name, value)
        self._agent.exports.turn_stored(record.uuid)
        return record


async def _search(store: Store, request: wire.Search) -> list[records.SearchHit]:
    scope, folder = request.conversation_id, request.workspace
    turns = None
    if request.topic:
        turns = await store.topics.turns(request.topic, workspace=folder, conversation_id=scope)
    return await store.search.turns(
        request.query, limit=request.limit, conversation_id=scope, workspace=folder, turns=turns
    )


async def run_orphan(agent: ConversationAgent, *, turn_seconds: float = 600.0, command_seconds: float = 120.0) -> None:
    """Finish the running turn within limits after the user interface is gone, and start no new one.

    Args:
        turn_seconds: Time limit for the answer.
        command_seconds: Time limit for a running command.
    """
    agent.toolbox.writes_frozen = True
    agent.approvals.close()
    agent.trust.close()
    agent.personas.close()

    async def end_commands() -> None:
        await asyncio.sleep(command_seconds)
        await agent.toolbox.close()

    limit = asyncio.create_task(end_commands())
    try:
        async with asyncio.timeout(turn_seconds):
            await agent.finish_turns()
    except TimeoutError:
        pass
    finally:
        limit.cancel()
