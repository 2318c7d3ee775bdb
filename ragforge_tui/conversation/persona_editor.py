"""Editing of user personas: draft, improve with the model, check, save, delete and restore.

The engine uses it for the persona dialogs. Improving a draft asks the model without tools; nothing is saved until the
user accepts the text.
"""

from __future__ import annotations

import asyncio

from ragforge_tui.conversation.services import Services
from ragforge_tui.personas import key_of, persona_of
from ragforge_tui.personas.drafts import improved, improvement_request, template
from ragforge_tui.personas.user_personas import UserPersonas, file_name
from ragforge_tui.shared.errors import RagforgeError
from ragforge_tui.shared.persona_records import PersonaBrief, PersonaDraft, PersonaInfo

MAX_DRAFT_TOKENS = 4_000


class PersonaEditor:
    """Editor of the user's own personas."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._personas = services.personas
        self._own = UserPersonas(services.personas.library)

    def draft(self, brief: PersonaBrief) -> PersonaDraft:
        """Return a complete persona from the user's answers, without a model.

        Raises:
            RagforgeError: The name is invalid, or the user already has a persona of that name.
        """
        file_name(brief.name)
        taken = [own for own in self._personas.library.found(("own",)) if key_of(own.name) == key_of(brief.name)]
        if taken:
            raise RagforgeError(
                f"You already have a persona named {taken[0].name}.",
                todo=f"/edit-persona {taken[0].name} changes it.",
                kind="taken",
            )
        return self.check(template(brief, self._services.user_name), brief.name)

    async def improve(self, text: str, name: str) -> PersonaDraft:
        """Return the model's improved version of a draft.

        Raises:
            RagforgeError: There is no language model, it failed, or its answer contains no persona.
        """
        model = await self._services.model.model()
        if model.offline:
            raise RagforgeError(
                "No language model is configured to improve the persona.",
                kept="The draft is unchanged.",
                todo="/model chooses one.",
                kind="not_configured",
            )
        answer, _ = await model.complete(improvement_request(text), max_tokens=MAX_DRAFT_TOKENS)
        return self.check(improved(answer, text), name)

    def check(self, text: str, name: str) -> PersonaDraft:
        """Return a text with the list entry it would have."""
        persona = persona_of(text.encode("utf-8", "surrogatepass"), name, "own", "")
        return PersonaDraft(text=text, info=self._personas.info(persona))

    async def save(self, text: str, name: str, *, instead_of: str = "") -> PersonaInfo:
        """Save a text as a persona of the user; see `UserPersonas.save`.

        Raises:
            RagforgeError: The name is taken or invalid, or the text is unusable.
        """
        saved = await asyncio.to_thread(self._own.save, text, name, instead_of=instead_of)
        return self._listed(saved.name)

    def delete(self, name: str) -> PersonaInfo:
        """Delete a persona of the user, so that it can be restored.

        Raises:
            RagforgeError: There is none, or it does not belong to the user.
        """
        return self._personas.info(self._own.delete(self._personas.view(name).info.name))

    def restore(self, name: str = "") -> PersonaInfo:
        """Restore the persona deleted last, or last under that name.

        Raises:
            RagforgeError: There is none to restore, or the name is taken.
        """
        return self._listed(self._own.restore(name).name)

    def _listed(self, name: str) -> PersonaInfo:
        """Return the entry found by name, which lists the personas it hides."""
        return self._personas.view(name).info
