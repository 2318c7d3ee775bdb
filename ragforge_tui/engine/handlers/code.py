"""Requests about the code of the workspace."""

from __future__ import annotations

import msgspec

from ragforge_tui.engine.registry import EngineContext, handles
from ragforge_tui.shared.code_records import Scope, ScopeTalk
from ragforge_tui.shared.code_views import ScopeView, TouchedScope
from ragforge_tui.shared.requests import code as requests


@handles(requests.SearchCode)
async def search(engine: EngineContext, request: requests.SearchCode) -> list[Scope]:
    lookup = engine.agent.code
    query = request.query.strip()
    if query:
        found = await lookup.search(query, path=request.path, kind=request.kind, limit=request.limit)
    else:
        found = await lookup.in_file(request.path)
    return _without_texts(found)


@handles(requests.FindScopes)
async def find(engine: EngineContext, request: requests.FindScopes) -> list[Scope]:
    return _without_texts(await engine.agent.code.named(request.name))


@handles(requests.FetchScope)
async def fetch(engine: EngineContext, request: requests.FetchScope) -> ScopeView:
    lookup = engine.agent.code
    return await lookup.view(await lookup.scope(request.uuid))


@handles(requests.ListTouchedCode)
async def touched(engine: EngineContext, request: requests.ListTouchedCode) -> list[TouchedScope]:
    return await engine.agent.code.touched(request.conversation_id, request.limit)


@handles(requests.ListScopeTalks)
async def talks(engine: EngineContext, request: requests.ListScopeTalks) -> list[ScopeTalk]:
    return await (await engine.agent.store()).code.conversations_about(request.uuid, request.limit)


@handles(requests.IndexCode)
async def index(engine: EngineContext, _: requests.IndexCode) -> str:
    """Index the workspace if it has no index yet; link the turns that were not examined."""
    assert engine.agent.code  # raises if code is not indexed
    return await engine.agent.index_code()


def _without_texts(scopes: list[Scope]) -> list[Scope]:
    return [msgspec.structs.replace(scope, text="") for scope in scopes]
