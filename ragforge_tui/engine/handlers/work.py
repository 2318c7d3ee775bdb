"""Requests about the agent's state and work: permissions, model, tool calls, and changes to files."""

from __future__ import annotations

import os
from pathlib import Path

from ragforge_tui import __version__
from ragforge_tui.engine.process import log_file
from ragforge_tui.engine.registry import EngineContext, handles
from ragforge_tui.shared.errors import NotFoundError
from ragforge_tui.shared.events import ModelChanged
from ragforge_tui.shared.records import ToolCall
from ragforge_tui.shared.requests.work import (
    AnswerApproval,
    AnswerTrust,
    CallPage,
    ChangeModelSettings,
    FetchCall,
    FileDiff,
    ListCalls,
    ListFiles,
    ListModels,
    Mode,
    PlanUndo,
    RunShell,
    SessionDiff,
    SetMode,
    SetModel,
    UndoPlan,
    UndoTurn,
)
from ragforge_tui.shared.sanitize import storable
from ragforge_tui.shared.tool_calls import described_tools
from ragforge_tui.shared.wire import PROTOCOL_VERSION, Empty, EngineState, Hello
from ragforge_tui.tools.search.matching import match_files


@handles(Hello)
async def hello(engine: EngineContext, _: Hello) -> EngineState:
    return EngineState(
        protocol=PROTOCOL_VERSION,
        version=__version__,
        pid=os.getpid(),
        workspace=engine.loaded.workspace,
        model=engine.agent.model_state,
        graph=engine.agent.graph_state,
        log_file=str(log_file(engine.loaded.paths)),
        tools=described_tools(),
    )


@handles(SetMode)
async def set_mode(engine: EngineContext, request: SetMode) -> Mode:
    engine.conversation(request.conversation_id).mode = request.mode
    return request.mode


@handles(AnswerApproval)
async def answer_approval(engine: EngineContext, request: AnswerApproval) -> Empty:
    engine.agent.services.approvals.answer(request.approval_id, request.decision, storable(request.feedback))
    return Empty()


@handles(AnswerTrust)
async def answer_trust(engine: EngineContext, request: AnswerTrust) -> Empty:
    engine.agent.services.trust.answer(request.root, request.allow)
    engine.agent.services.personas.answer(request.root, request.allow)
    return Empty()


@handles(SetModel)
async def set_model(engine: EngineContext, request: SetModel) -> ModelChanged:
    return await engine.agent.set_model(request.name)


@handles(ChangeModelSettings)
async def change_model_settings(engine: EngineContext, request: ChangeModelSettings) -> Empty:
    engine.agent.change_model_settings(request.changes)
    return Empty()


@handles(ListModels)
async def list_models(engine: EngineContext, _: ListModels) -> list[str]:
    return await engine.agent.model_names()


@handles(ListFiles)
async def list_files(engine: EngineContext, request: ListFiles) -> list[str]:
    workspace, ignore = Path(engine.loaded.workspace), engine.loaded.settings.tools.ignore
    return await match_files(workspace, request.query, ignore, request.limit, folders=request.folders)


@handles(RunShell)
async def run_shell(engine: EngineContext, request: RunShell) -> int:
    return await engine.conversation(request.conversation_id).run_command(request.command, request.message_id)


@handles(ListCalls)
async def list_calls(engine: EngineContext, request: ListCalls) -> CallPage:
    store = await engine.agent.store()
    return await store.tool_calls.page(request.conversation_id, before=request.before, limit=request.limit)


@handles(FetchCall)
async def fetch_call(engine: EngineContext, request: FetchCall) -> ToolCall:
    store = await engine.agent.store()
    index = request.turn_index
    for turn in await store.turns.between(request.conversation_id, start=index, end=index + 1):
        for message in turn.messages:
            for call in message.tool_calls:
                if call.uuid == request.call_id:
                    return call
    raise NotFoundError(f"Turn {index} has no such call.")


@handles(SessionDiff)
async def session_diff(engine: EngineContext, request: SessionDiff) -> list[FileDiff]:
    return await engine.conversation(request.conversation_id).diff()


@handles(PlanUndo)
async def plan_undo(engine: EngineContext, request: PlanUndo) -> UndoPlan:
    return await engine.conversation(request.conversation_id).plan_undo(request.turn_index, redo=request.redo)


@handles(UndoTurn)
async def undo(engine: EngineContext, request: UndoTurn) -> int:
    return await engine.conversation(request.conversation_id).undo(request.turn_index, request.message_id)
