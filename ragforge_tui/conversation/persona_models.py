"""Model and temperature preferred by a persona.

The user's choice has priority: a model named by a setting, flag, variable or /model is never replaced, and neither is a
temperature in the settings. A project's persona can only propose a model. Used by the agent.
"""

from __future__ import annotations

from collections.abc import Callable

from ragforge_tui.conversation.model_link import ModelLink
from ragforge_tui.llm import ChatModel
from ragforge_tui.personas import Persona
from ragforge_tui.shared.errors import RagforgeError
from ragforge_tui.shared.events import Event, Notice


class PersonaModels:
    """Selection of the model for the current persona."""

    def __init__(self, link: ModelLink, emit: Callable[[Event], None]) -> None:
        self._link = link
        self._emit = emit
        self._proposed: set[tuple[str, str]] = set()
        self._failed: set[str] = set()

    async def model_for(self, persona: Persona) -> ChatModel:
        """Return the model that answers as this persona.

        Raises:
            RagforgeError: No model could be chosen.
        """
        trusted = persona.origin != "project"
        preference = persona.fields.model
        if not self._link.chosen:
            await self._prefer(preference if trusted else "", persona)
        model = await self._link.model(temperature=persona.fields.temperature if trusted else None)
        if preference and preference != model.name:
            self._propose(persona, preference)
        return model

    async def _prefer(self, name: str, persona: Persona) -> None:
        if name in self._failed:
            name = ""
        if name == self._link.preferred:
            return
        try:
            await self._link.prefer(name, by=persona.name)
        except RagforgeError as error:
            self._failed.add(name)
            text = f"{persona.name} prefers the model {name}, which cannot be used: {error}"
            self._emit(Notice(text=text, level="warning"))
            await self._link.prefer("", by="")

    def _propose(self, persona: Persona, name: str) -> None:
        if (persona.digest, name) not in self._proposed:
            self._proposed.add((persona.digest, name))
            self._emit(Notice(text=f"{persona.name} prefers the model {name}: /model {name} switches to it."))
