"""Where personas are made and changed: drafted, improved by the model, checked, saved, deleted, brought back.

Used by the engine for the screen. A draft asks the model without tools and is kept only when the person accepts it.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ragforge_tui.errors import RagforgeError
from ragforge_tui.persona_records import PersonaBrief, PersonaDraft, PersonaInfo
from ragforge_tui.personas import key_of, persona_of
from ragforge_tui.personas.drafts import improved, improvement_request, template
from ragforge_tui.personas.own import OwnPersonas, file_name

if TYPE_CHECKING:
    from ragforge_tui.conversation.agent import ConversationAgent

MAX_DRAFT_TOKENS = 4_000


class PersonaDesk:
    """Makes and changes the person's own personas."""

    def __init__(self, agent: ConversationAgent) -> None:
        self._agent = agent
        self._personas = agent.personas
        self._own = OwnPersonas(agent.personas.library)

    def draft(self, brief: PersonaBrief) -> PersonaDraft:
        """A complete persona from what was said, without a model.

        Raises:
            RagforgeError: The name cannot be one, or the person has one of that name.
        """
        file_name(brief.name)
        taken = [own for own in self._personas.library.found(("own",)) if key_of(own.name) == key_of(brief.name)]
        if taken:
            raise RagforgeError(
                f"You have a persona named {taken[0].name} already.",
                todo=f"/edit-persona {taken[0].name} changes it.",
                kind="taken",
            )
        return self.check(template(brief, self._agent.user_name), brief.name)

    async def improve(self, text: str, name: str) -> PersonaDraft:
        """What the model makes of a draft.

        Raises:
            RagforgeError: There is no language model, it failed, or its answer holds no persona.
        """
        model = await self._agent.model()
        if model.offline:
            raise RagforgeError(
                "No language model is configured that could improve it.",
                kept="The draft is as it was.",
                todo="/model chooses one.",
                kind="not_configured",
            )
        answer, _ = await model.complete(improvement_request(text), max_tokens=MAX_DRAFT_TOKENS)
        return self.check(improved(answer, text), name)

    def check(self, text: str, name: str) -> PersonaDraft:
        """A text with what it would be listed as."""
        persona = persona_of(text.encode("utf-8", "surrogatepass"), name, "own", "")
        return PersonaDraft(text=text, info=self._personas.info(persona))

    async def save(self, text: str, name: str, *, instead_of: str = "") -> PersonaInfo:
        """Keep a text as a persona of the person's own; see `OwnPersonas.save`.

        Raises:
            RagforgeError: The name is taken or cannot be one, or nobody could use the text.
        """
        saved = await asyncio.to_thread(self._own.save, text, name, instead_of=instead_of)
        return self._listed(saved.name)

    def delete(self, name: str) -> PersonaInfo:
        """Put an own one aside.

        Raises:
            RagforgeError: There is none, or it is not the person's own.
        """
        return self._personas.info(self._own.delete(self._personas.view(name).info.name))

    def restore(self, name: str = "") -> PersonaInfo:
        """Bring back the one deleted last, or last under that name.

        Raises:
            RagforgeError: Nothing is left, or the name is taken.
        """
        return self._listed(self._own.restore(name).name)

    def _listed(self, name: str) -> PersonaInfo:
        """As it is found by its name, so that it says what it hides."""
        return self._personas.view(name).info
