"""Requests about the agent's state and work: permissions, model, tool calls, and changes to files."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from ragforge_tui import __version__
from ragforge_tui.conversation.blame import blame
from ragforge_tui.engine.process import log_file
from ragforge_tui.engine.registry import EngineContext, handles
from ragforge_tui.shared.errors import NotFoundError
from ragforge_tui.shared.events import ModelChanged, Notice
from ragforge_tui.shared.process_records import ProcessEntry
from ragforge_tui.shared.records import ToolCall
from ragforge_tui.shared.requests import work as requests
from ragforge_tui.shared.sanitize import storable
from ragforge_tui.shared.tool_calls import described_tools
from ragforge_tui.shared.wire import PROTOCOL_VERSION, Empty, EngineState, Hello
from ragforge_tui.tools.search.matching import match_files
from ragforge_tui.tools.shell.sandbox import sandbox_support


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


@handles(requests.SetMode)
async def set_mode(engine: EngineContext, request: requests.SetMode) -> requests.Mode:
    engine.conversation(request.conversation_id).mode = request.mode
    if request.mode == "auto":
        support = await asyncio.to_thread(sandbox_support, enabled=engine.loaded.settings.tools.confine_commands)
        if support.mechanism is None:
            text = f"Commands still ask in auto, because there is no sandbox here: {support.reason}."
            engine.agent.emit(Notice(text=text, level="warning", conversation_id=request.conversation_id))
    return request.mode


@handles(requests.AnswerApproval)
async def answer_approval(engine: EngineContext, request: requests.AnswerApproval) -> Empty:
    engine.agent.services.approvals.answer(request.approval_id, request.decision, storable(request.feedback))
    return Empty()


@handles(requests.AnswerTrust)
async def answer_trust(engine: EngineContext, request: requests.AnswerTrust) -> Empty:
    engine.agent.services.trust.answer(request.root, request.allow)
    engine.agent.services.personas.answer(request.root, request.allow)
    engine.agent.services.project.answer(request.root, request.allow)
    return Empty()


@handles(requests.SetModel)
async def set_model(engine: EngineContext, request: requests.SetModel) -> ModelChanged:
    return await engine.agent.services.model.choose(
        request.name, provider=request.provider, url=request.url, unchecked=request.unchecked
    )


@handles(requests.ChangeModelSettings)
async def change_model_settings(engine: EngineContext, request: requests.ChangeModelSettings) -> Empty:
    engine.agent.change_model_settings(request.changes)
    return Empty()


@handles(requests.FetchEffort)
async def fetch_effort(engine: EngineContext, _: requests.FetchEffort) -> requests.EffortState:
    return await engine.agent.services.model.effort()


@handles(requests.ListModels)
async def list_models(engine: EngineContext, _: requests.ListModels) -> list[str]:
    return await engine.agent.model_names()


@handles(requests.ListFiles)
async def list_files(engine: EngineContext, request: requests.ListFiles) -> list[str]:
    workspace, ignore = Path(engine.loaded.workspace), engine.loaded.settings.tools.ignore
    return await match_files(workspace, request.query, ignore, request.limit, folders=request.folders)


@handles(requests.Blame)
async def blame_file(engine: EngineContext, request: requests.Blame) -> requests.BlameResult:
    store = await engine.agent.services.store()
    return await blame(store, Path(engine.loaded.workspace), request.path, request.line)


@handles(requests.RunShell)
async def run_shell(engine: EngineContext, request: requests.RunShell) -> int:
    return await engine.conversation(request.conversation_id).run_command(request.command, request.message_id)


@handles(requests.ListProcesses)
async def list_processes(engine: EngineContext, _: requests.ListProcesses) -> list[ProcessEntry]:
    return engine.agent.services.toolbox.processes.entries()


@handles(requests.StopProcess)
async def stop_process(engine: EngineContext, request: requests.StopProcess) -> ProcessEntry:
    process = await engine.agent.services.toolbox.processes.stop(request.number, "the user")
    return process.entry()


@handles(requests.ListCalls)
async def list_calls(engine: EngineContext, request: requests.ListCalls) -> requests.CallPage:
    store = await engine.agent.store()
    return await store.tool_calls.page(request.conversation_id, before=request.before, limit=request.limit)


@handles(requests.FetchCall)
async def fetch_call(engine: EngineContext, request: requests.FetchCall) -> ToolCall:
    store = await engine.agent.store()
    index = request.turn_index
    for turn in await store.turns.between(request.conversation_id, start=index, end=index + 1):
        for message in turn.messages:
            for call in message.tool_calls:
                if call.uuid == request.call_id:
                    return call
    raise NotFoundError(f"Turn {index} has no such call.")


@handles(requests.SessionDiff)
async def session_diff(engine: EngineContext, request: requests.SessionDiff) -> list[requests.FileDiff]:
    return await engine.conversation(request.conversation_id).diff()


@handles(requests.PlanUndo)
async def plan_undo(engine: EngineContext, request: requests.PlanUndo) -> requests.UndoPlan:
    return await engine.conversation(request.conversation_id).plan_undo(request.turn_index, redo=request.redo)


@handles(requests.UndoTurn)
async def undo(engine: EngineContext, request: requests.UndoTurn) -> int:
    return await engine.conversation(request.conversation_id).undo(request.turn_index, request.message_id)
