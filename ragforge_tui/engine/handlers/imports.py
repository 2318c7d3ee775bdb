"""Requests about the sessions of other agents."""

from __future__ import annotations

from pathlib import Path

from ragforge_tui.conversation.other_agents import import_found_session, list_found_sessions
from ragforge_tui.engine.registry import EngineContext, handles
from ragforge_tui.shared.found_sessions import ListedSession, SessionImport
from ragforge_tui.shared.requests import imports as requests


@handles(requests.ListFoundSessions)
async def list_found(engine: EngineContext, request: requests.ListFoundSessions) -> list[ListedSession]:
    file = Path(request.file) if request.file else None
    return await list_found_sessions(await engine.agent.store(), agents=request.agents, file=file)


@handles(requests.ImportFoundSession)
async def import_found(engine: EngineContext, request: requests.ImportFoundSession) -> SessionImport:
    return await import_found_session(await engine.agent.store(), request.session)
