"""Requests about stored conversations: list, edit, search, export and import."""

from __future__ import annotations

from ragforge_tui.engine.registry import EngineContext, handles
from ragforge_tui.shared.export_records import ConversationExport, Imported
from ragforge_tui.shared.records import Conversation, ConversationChanges, ConversationPeek, SearchHit
from ragforge_tui.shared.requests import sessions as requests
from ragforge_tui.shared.wire import Empty


@handles(requests.ListConversations)
async def list_conversations(engine: EngineContext, request: requests.ListConversations) -> list[Conversation]:
    return await engine.agent.list_conversations(request.filter)


@handles(requests.UpdateConversation)
async def update(engine: EngineContext, request: requests.UpdateConversation) -> Conversation:
    store = await engine.agent.store()
    changes = {name: value for name in ("title", "tags", "private") if (value := getattr(request, name)) is not None}
    uuid = (await store.conversations.resolve(request.conversation_id)).uuid
    record = await store.conversations.update(uuid, **changes)
    conversation = engine.agent.opened(uuid)
    if conversation is not None:
        for name, value in changes.items():
            setattr(conversation.record, name, value)
    engine.agent.services.exports.turn_stored(uuid)
    return record


@handles(requests.ArchiveConversation)
async def archive(engine: EngineContext, request: requests.ArchiveConversation) -> Conversation:
    return await engine.agent.archive_conversation(request.conversation_id, archived=request.archived)


@handles(requests.DeleteConversation)
async def delete(engine: EngineContext, request: requests.DeleteConversation) -> requests.Deleted:
    return await engine.agent.delete_conversation(
        request.conversation_id, immediately=request.immediately, with_branches=request.with_branches
    )


@handles(requests.RestoreConversation)
async def restore(engine: EngineContext, request: requests.RestoreConversation) -> Conversation:
    return await engine.agent.restore_conversation(request.conversation_id)


@handles(requests.Search)
async def search(engine: EngineContext, request: requests.Search) -> list[SearchHit]:
    return await engine.agent.search(
        request.query,
        topic=request.topic,
        conversation_id=request.conversation_id,
        workspace=request.workspace,
        limit=request.limit,
    )


@handles(requests.ExportConversation)
async def export(engine: EngineContext, request: requests.ExportConversation) -> ConversationExport:
    store = await engine.agent.store()
    return await store.transfer.export((await store.conversations.resolve(request.ref)).uuid)


@handles(requests.ImportConversation)
async def import_(engine: EngineContext, request: requests.ImportConversation) -> Imported:
    return await engine.agent.import_conversation(request.data, merge=request.merge)


@handles(requests.PeekConversation)
async def peek(engine: EngineContext, request: requests.PeekConversation) -> ConversationPeek:
    return await (await engine.agent.store()).conversations.peek(request.conversation_id, chars=request.chars)


@handles(requests.FollowConversations)
async def follow(engine: EngineContext, request: requests.FollowConversations) -> ConversationChanges:
    return await (await engine.agent.store()).conversations.changed(request.since, workspace=request.workspace)


@handles(requests.LeaveConversation)
async def leave(engine: EngineContext, _: requests.LeaveConversation) -> Empty:
    engine.close()
    return Empty()
