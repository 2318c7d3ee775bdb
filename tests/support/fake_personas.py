"""Personas for the fake engine: the shipped ones and what a test writes, answered from memory or a folder.

It uses the real library, so that what the screen shows is what the engine would say.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from ragforge_tui.personas import PersonaLibrary, persona_of
from ragforge_tui.personas.drafts import template
from ragforge_tui.personas.library import PROJECT_FOLDER
from ragforge_tui.personas.user_personas import UserPersonas
from ragforge_tui.shared.errors import RagforgeError
from ragforge_tui.shared.persona_records import PersonaDraft, PersonaInfo, PersonaList, PersonaView
from ragforge_tui.shared.records import Conversation
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
from tests.support.request_subjects import PersonaRequest

USER = "Ada"


class PersonaShelf:
    """Answers the requests about personas.

    Attributes:
        own: Folder of the own ones.
        project: Folder of the project's.
        improvement: What the model makes of a draft; None: there is no model.
    """

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="shelf-")
        self.own = Path(self._folder.name)
        self.improvement: str | None = None
        workspace = self.own / "workspace"
        self.project = workspace / PROJECT_FOLDER
        self._library = PersonaLibrary(self.own, workspace)
        self._desk = UserPersonas(self._library)

    def answer(self, request: PersonaRequest, conversations: dict[str, Conversation]) -> Any:
        """As the engine would."""
        match request:
            case ListPersonas():
                return PersonaList(personas=[one.info(USER) for one in self._library.found()], default="Assistant")
            case ShowPersona(name=name):
                persona = self._library.load(name)
                return PersonaView(info=persona.info(USER), text=persona.text)
            case SetPersona(name=name, conversation_id=uuid):
                return self._set(name, conversations.get(uuid))
            case DraftPersona(brief=brief):
                return _draft(template(brief, USER), brief.name)
            case ImprovePersona(name=name):
                if self.improvement is None:
                    raise RagforgeError("No language model is configured that could improve it.")
                return _draft(self.improvement, name)
            case CheckPersona(text=text, name=name):
                return _draft(text, name)
            case SavePersona(text=text, name=name, instead_of=instead_of):
                saved = self._desk.save(text, name, instead_of=instead_of)
                return self._library.load(saved.name).info(USER)
            case DeletePersona(name=name):
                return self._desk.delete(name).info(USER)
            case RestorePersona(name=name):
                return self._desk.restore(name).info(USER)

    def look(self, name: str) -> tuple[str, str]:
        """Glyph and colour of a persona, as a reply of it is stored with."""
        found = [one.fields for one in self._library.found() if one.name == name]
        return (found[0].glyph, found[0].color) if found else ("", "")

    def _set(self, name: str, conversation: Conversation | None) -> PersonaInfo:
        found = self._library.found()
        persona = found[int(name) - 1] if name.isdecimal() else self._library.load(name)
        if conversation is not None:
            conversation.persona = persona.name
        return next(one for one in found if one.name == persona.name).info(USER)


def _draft(text: str, name: str) -> PersonaDraft:
    return PersonaDraft(text=text, info=persona_of(text.encode(), name, "own", "").info(USER))
