"""Requests about personas: list, show, choose, edit and restore."""

from __future__ import annotations

import asyncio

from ragforge_tui.conversation.persona_editor import PersonaEditor
from ragforge_tui.engine.handlers import EngineContext, handles
from ragforge_tui.shared.persona_records import PersonaDraft, PersonaInfo, PersonaList, PersonaView
from ragforge_tui.shared.requests.personas import (
    CheckPersona,
    DeletePersona,
    DraftPersona,
    ImprovePersona,
    ListPersonas,
    RestorePersona,
    SavePersona,
    SetPersona,
    ShowPersona,
)
from ragforge_tui.shared.sanitize import storable


@handles(ListPersonas)
async def list_personas(engine: EngineContext, _: ListPersonas) -> PersonaList:
    return await asyncio.to_thread(engine.agent.services.personas.list)


@handles(ShowPersona)
async def show(engine: EngineContext, request: ShowPersona) -> PersonaView:
    return await asyncio.to_thread(engine.agent.services.personas.view, request.name)


@handles(SetPersona)
async def choose(engine: EngineContext, request: SetPersona) -> PersonaInfo:
    personas = engine.agent.services.personas
    persona = personas.pick(request.name)
    if request.conversation_id:
        conversation = await engine.agent.load_conversation(request.conversation_id)
        await conversation.set_persona(persona.name)
    personas.ask_again(persona)
    return personas.info(persona)


@handles(DraftPersona)
async def draft(engine: EngineContext, request: DraftPersona) -> PersonaDraft:
    return _editor(engine).draft(request.brief)


@handles(ImprovePersona)
async def improve(engine: EngineContext, request: ImprovePersona) -> PersonaDraft:
    return await _editor(engine).improve(storable(request.text), request.name)


@handles(CheckPersona)
async def check(engine: EngineContext, request: CheckPersona) -> PersonaDraft:
    return _editor(engine).check(request.text, request.name)


@handles(SavePersona)
async def save(engine: EngineContext, request: SavePersona) -> PersonaInfo:
    return await _editor(engine).save(request.text, request.name, instead_of=request.instead_of)


@handles(DeletePersona)
async def delete(engine: EngineContext, request: DeletePersona) -> PersonaInfo:
    return _editor(engine).delete(request.name)


@handles(RestorePersona)
async def restore(engine: EngineContext, request: RestorePersona) -> PersonaInfo:
    return _editor(engine).restore(request.name)


def _editor(engine: EngineContext) -> PersonaEditor:
    return PersonaEditor(engine.agent.services)
