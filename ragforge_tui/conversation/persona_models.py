"""The model and temperature a persona prefers, and when that counts.

The person's choice wins: a model named by a setting, flag, variable or /model is never replaced, and neither is a
temperature of the settings. A project's persona only proposes. Used by the agent.
"""

from __future__ import annotations

from collections.abc import Callable

from ragforge_tui.conversation.model_link import ModelLink
from ragforge_tui.errors import RagforgeError
from ragforge_tui.events import Event, Notice
from ragforge_tui.llm import ChatModel
from ragforge_tui.personas import Persona


class PersonaModels:
    """Finds the model for the persona that speaks."""

    def __init__(self, link: ModelLink, emit: Callable[[Event], None]) -> None:
        self._link = link
        self._emit = emit
        self._proposed: set[tuple[str, str]] = set()
        self._failed: set[str] = set()

    async def model_for(self, persona: Persona) -> ChatModel:
        """The model that answers as this persona.

        Raises:
            RagforgeError: No model could be chosen.
        """
        own_word = persona.origin != "project"
        wanted = persona.fields.model
        if not self._link.chosen:
            await self._prefer(wanted if own_word else "", persona)
        model = await self._link.model(temperature=persona.fields.temperature if own_word else None)
        if wanted and wanted != model.name:
            self._propose(persona, wanted)
        return model

    async def _prefer(self, wanted: str, persona: Persona) -> None:
        if wanted in self._failed:
            wanted = ""
        if wanted == self._link.preferred:
            return
        try:
            await self._link.prefer(wanted, by=persona.name)
        except RagforgeError as error:
            self._failed.add(wanted)
            self._emit(Notice(text=f"{persona.name} prefers {wanted}, which cannot be used: {error}", level="warning"))
            await self._link.prefer("", by="")

    def _propose(self, persona: Persona, wanted: str) -> None:
        if (persona.digest, wanted) not in self._proposed:
            self._proposed.add((persona.digest, wanted))
            self._emit(Notice(text=f"{persona.name} would rather speak through {wanted}: /model {wanted} uses it."))
