"""Requests about personas: list, show, choose, edit and restore."""

from __future__ import annotations

import asyncio
from typing import Any

from ragforge_tui.conversation import ConversationAgent
from ragforge_tui.conversation.persona_editor import PersonaEditor
from ragforge_tui.shared import wire
from ragforge_tui.shared.errors import RagforgeError
from ragforge_tui.shared.persona_records import PersonaInfo
from ragforge_tui.shared.sanitize import storable
from ragforge_tui.shared.wire import Request


async def answer(agent: ConversationAgent, request: Request[Any]) -> Any:
    """Answer one request about personas.

    Raises:
        RagforgeError: The request failed; the message is meant for the user.
    """
    editor = PersonaEditor(agent.services)
    match request:
        case wire.ListPersonas():
            return await asyncio.to_thread(agent.services.personas.list)
        case wire.ShowPersona(name=name):
            return await asyncio.to_thread(agent.services.personas.view, name)
        case wire.SetPersona():
            return await _set(agent, request)
        case wire.DraftPersona(brief=brief):
            return editor.draft(brief)
        case wire.ImprovePersona(text=text, name=name):
            return await editor.improve(storable(text), name)
        case wire.CheckPersona(text=text, name=name):
            return editor.check(text, name)
        case wire.SavePersona(text=text, name=name, instead_of=instead_of):
            return await editor.save(text, name, instead_of=instead_of)
        case wire.DeletePersona(name=name):
            return editor.delete(name)
        case wire.RestorePersona(name=name):
            return editor.restore(name)
    raise RagforgeError(f"The engine does not support the request {type(request).__name__}.", kind="protocol")


async def _set(agent: ConversationAgent, request: wire.SetPersona) -> PersonaInfo:
    persona = agent.services.personas.pick(request.name)
    if request.conversation_id:
        conversation = agent.opened(request.conversation_id) or await agent.load_conversation(request.conversation_id)
        await conversation.set_persona(persona.name)
    agent.services.personas.ask_again(persona)
    return agent.services.personas.info(persona)
