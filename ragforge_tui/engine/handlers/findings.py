"""Requests about what is remembered, and acts of the user on it."""

from __future__ import annotations

from ragforge_tui.engine.registry import EngineContext, handles
from ragforge_tui.shared.finding_records import KeptFinding
from ragforge_tui.shared.memory_acts import MemoryAct
from ragforge_tui.shared.requests import findings as requests


@handles(requests.ListRemembered)
async def remembered(engine: EngineContext, request: requests.ListRemembered) -> requests.RememberedList:
    asking = request.conversation_id
    found = await engine.agent.remembered.findings(
        request.workspace, kinds=list(request.kinds) or None, current=request.current, asking=asking
    )
    store = await engine.agent.store()
    return requests.RememberedList(
        findings=found,
        titles=await store.memory_acts.titles([one.conversation_id for one in found]),
        acts=await engine.agent.remembered.acts(asking=asking),
    )


@handles(requests.ActOnFinding)
async def act_on(engine: EngineContext, request: requests.ActOnFinding) -> KeptFinding:
    return await engine.agent.remembered.act(request.ref, request.act, request.text, asking=request.conversation_id)


@handles(requests.UndoMemoryAct)
async def undo(engine: EngineContext, request: requests.UndoMemoryAct) -> MemoryAct:
    return await engine.agent.remembered.undo(asking=request.conversation_id)
