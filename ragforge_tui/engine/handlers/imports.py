"""Requests about the sessions of other agents."""

from __future__ import annotations

from pathlib import Path

from ragforge_tui.conversation.other_agents import list_found_sessions
from ragforge_tui.engine.registry import EngineContext, handles
from ragforge_tui.shared.found_sessions import ListedSession, SessionImport
from ragforge_tui.shared.requests import imports as requests


@handles(requests.ListFoundSessions)
async def list_found(engine: EngineContext, request: requests.ListFoundSessions) -> list[ListedSession]:
    store, files = await engine.agent.store(), [Path(file) for file in request.files]
    folders = [engine.agent.workspace, *([Path(request.folder)] if request.folder else [])]
    return await list_found_sessions(store, agents=request.agents, files=files, folders=folders)


@handles(requests.ImportFoundSession)
async def import_found(engine: EngineContext, request: requests.ImportFoundSession) -> SessionImport:
    return await engine.agent.import_session(request.session)
