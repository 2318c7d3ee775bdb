"""Requests about an open conversation and its turns."""

from __future__ import annotations

import msgspec

from ragforge_tui.conversation import Conversation
from ragforge_tui.engine.other_processes import foreign_active_turn, interrupted_turn
from ragforge_tui.engine.registry import EngineContext, handles
from ragforge_tui.shared import records
from ragforge_tui.shared.errors import RagforgeError
from ragforge_tui.shared.requests import turns as requests
from ragforge_tui.shared.wire import Empty


@handles(requests.CreateConversation)
async def create(engine: EngineContext, request: requests.CreateConversation) -> requests.ConversationView:
    conversation = await engine.agent.create_conversation(
        title=request.title, tags=request.tags, persona=request.persona, private=request.private
    )
    return await _view(engine, conversation, 0)


@handles(requests.OpenConversation)
async def open_(engine: EngineContext, request: requests.OpenConversation) -> requests.ConversationView:
    conversation = await engine.agent.load_conversation(request.ref, turns=request.turns)
    return await _view(engine, conversation, request.turns)


@handles(requests.BranchConversation)
async def branch(engine: EngineContext, request: requests.BranchConversation) -> records.Conversation:
    return (await engine.agent.branch_conversation(request.conversation_id, request.turn_index)).record


@handles(requests.FetchTurns)
async def fetch(engine: EngineContext, request: requests.FetchTurns) -> requests.TurnPage:
    return await _page(engine, request.conversation_id, request.start, request.end)


@handles(requests.FindText)
async def find_text(engine: EngineContext, request: requests.FindText) -> list[int]:
    return await (await engine.agent.store()).search.find_text(request.conversation_id, request.text)


@handles(requests.SendMessage)
async def send(engine: EngineContext, request: requests.SendMessage) -> requests.SendAccepted:
    conversation = engine.conversation(request.conversation_id)
    index = await conversation.submit(
        request.text, request.message_id, materials=request.materials, steer=request.steer, limits=request.limits
    )
    return requests.SendAccepted(turn_index=index, queued=index == 0)


@handles(requests.Unqueue)
async def unqueue(engine: EngineContext, request: requests.Unqueue) -> bool:
    return engine.conversation(request.conversation_id).unqueue(request.message_id)


@handles(requests.RetryTurn)
async def retry(engine: EngineContext, request: requests.RetryTurn) -> requests.SendAccepted:
    conversation = engine.conversation(request.conversation_id)
    if not conversation.busy:
        page = await _page(engine, request.conversation_id, -1, 0)
        if foreign_active_turn(page.turns) is not None:
            raise RagforgeError("Another process is answering this turn.", todo="Stop it first, then retry.")
    return requests.SendAccepted(turn_index=await conversation.retry())


@handles(requests.CancelTurn)
async def cancel(engine: EngineContext, request: requests.CancelTurn) -> Empty:
    conversation = engine.conversation(request.conversation_id)
    if conversation.busy:
        conversation.cancel()
        return Empty()
    page = await _page(engine, request.conversation_id, -1, 0)
    if foreign_active_turn(page.turns) is not None:
        await (await engine.agent.store()).messages.request_stop(page.turns[-1].messages[0].uuid)
    return Empty()


async def _view(engine: EngineContext, conversation: Conversation, turns: int) -> requests.ConversationView:
    record = conversation.record
    opening = conversation.take_opening()
    if turns == 0:
        page = requests.TurnPage(turns=[], first=1, last=0)
    elif opening:
        page = requests.TurnPage(turns=opening, first=1, last=record.next_turn - 1)
    else:
        page = await _page(engine, record.uuid, -turns, 0)
    if engine.watcher is not None:
        engine.watcher.start(conversation, page.turns, page.last)
    active = conversation.active_turn if conversation.busy else foreign_active_turn(page.turns)
    return requests.ConversationView(
        conversation=msgspec.structs.replace(record),
        page=page,
        active_turn=active,
        interrupted_turn=None if active is not None else interrupted_turn(page.turns),
        mode=conversation.mode,
    )


async def _page(engine: EngineContext, conversation_id: str, start: int, end: int) -> requests.TurnPage:
    """Return the turns [start, end); a negative `start` counts from the newest."""
    store = await engine.agent.store()
    first, last = await store.turns.range(conversation_id)
    if start < 0:
        start, end = max(first, last + 1 + start), last + 1
    turns = await store.turns.between(conversation_id, start=start, end=end) if start < end else []
    return requests.TurnPage(turns=turns, first=first, last=last)
