"""Requests about personas: list, show, choose, edit and restore."""

from __future__ import annotations

import asyncio

from ragforge_tui.engine.registry import EngineContext, handles
from ragforge_tui.personas import key_of, persona_of
from ragforge_tui.personas.drafts import improved, improvement_request, template
from ragforge_tui.personas.user_personas import UserPersonas, file_name
from ragforge_tui.shared.errors import RagforgeError
from ragforge_tui.shared.persona_records import PersonaDraft, PersonaInfo, PersonaList, PersonaView
from ragforge_tui.shared.requests import personas as requests
from ragforge_tui.shared.sanitize import storable

MAX_DRAFT_TOKENS = 4_000


@handles(requests.ListPersonas)
async def list_personas(engine: EngineContext, _: requests.ListPersonas) -> PersonaList:
    return await asyncio.to_thread(engine.agent.services.personas.list)


@handles(requests.ShowPersona)
async def show(engine: EngineContext, request: requests.ShowPersona) -> PersonaView:
    return await asyncio.to_thread(engine.agent.services.personas.view, request.name)


@handles(requests.SetPersona)
async def choose(engine: EngineContext, request: requests.SetPersona) -> PersonaInfo:
    personas = engine.agent.services.personas
    persona = personas.pick(request.name)
    if request.conversation_id:
        conversation = await engine.agent.load_conversation(request.conversation_id)
        await conversation.set_persona(persona.name)
    personas.ask_again(persona)
    return personas.info(persona)


@handles(requests.DraftPersona)
async def draft(engine: EngineContext, request: requests.DraftPersona) -> PersonaDraft:
    """Return a complete persona from the user's answers, without a model.

    Raises:
        RagforgeError: The name is invalid, or the user already has a persona of that name.
    """
    name = request.brief.name
    file_name(name)
    services = engine.agent.services
    taken = [own for own in services.personas.library.found(("own",)) if key_of(own.name) == key_of(name)]
    if taken:
        raise RagforgeError(
            f"You already have a persona named {taken[0].name}.",
            todo=f"/edit-persona {taken[0].name} changes it.",
            kind="taken",
        )
    return _drafted(engine, template(request.brief, services.user_name), name)


@handles(requests.ImprovePersona)
async def improve(engine: EngineContext, request: requests.ImprovePersona) -> PersonaDraft:
    """Return the model's improved version of a draft; the model gets no tools, and nothing is saved.

    Raises:
        RagforgeError: There is no language model, it failed, or its answer contains no persona.
    """
    model = await engine.agent.model()
    if model.offline:
        raise RagforgeError(
            "No language model is configured to improve the persona.",
            kept="The draft is unchanged.",
            todo="/model chooses one.",
            kind="not_configured",
        )
    text = storable(request.text)
    reply, _ = await model.complete(improvement_request(text), max_tokens=MAX_DRAFT_TOKENS)
    return _drafted(engine, improved(reply, text), request.name)


@handles(requests.CheckPersona)
async def check(engine: EngineContext, request: requests.CheckPersona) -> PersonaDraft:
    return _drafted(engine, request.text, request.name)


@handles(requests.SavePersona)
async def save(engine: EngineContext, request: requests.SavePersona) -> PersonaInfo:
    """Save a text as a persona of the user.

    Raises:
        RagforgeError: The name is taken or invalid, or the text is unusable.
    """
    saved = await asyncio.to_thread(_own(engine).save, request.text, request.name, instead_of=request.instead_of)
    return _listed(engine, saved.name)


@handles(requests.DeletePersona)
async def delete(engine: EngineContext, request: requests.DeletePersona) -> PersonaInfo:
    """Delete a persona of the user, so that it can be restored.

    Raises:
        RagforgeError: There is none, or it does not belong to the user.
    """
    personas = engine.agent.services.personas
    return personas.info(_own(engine).delete(personas.view(request.name).info.name))


@handles(requests.RestorePersona)
async def restore(engine: EngineContext, request: requests.RestorePersona) -> PersonaInfo:
    """Restore the persona deleted last, or last under that name.

    Raises:
        RagforgeError: There is none to restore, or the name is taken.
    """
    return _listed(engine, _own(engine).restore(request.name).name)


def _own(engine: EngineContext) -> UserPersonas:
    return UserPersonas(engine.agent.services.personas.library)


def _drafted(engine: EngineContext, text: str, name: str) -> PersonaDraft:
    """Return a text with the list entry it would have."""
    persona = persona_of(text.encode("utf-8", "surrogatepass"), name, "own", "")
    return PersonaDraft(text=text, info=engine.agent.services.personas.info(persona))


def _listed(engine: EngineContext, name: str) -> PersonaInfo:
    """Return the entry found by name, which lists the personas it hides."""
    return engine.agent.services.personas.view(name).info
