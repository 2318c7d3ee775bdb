"""Personas for the fake engine: the shipped ones and what a test writes, answered from memory or a folder.

It uses the real library, so that what the screen shows is what the engine would say.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
from tests.support.fake_answers import answers

if TYPE_CHECKING:
    from tests.support.fake_engine import FakeEngine

USER = "Ada"


class PersonaShelf:
    """Answers the requests about personas.

    Attributes:
        own: Folder of the own ones.
        project: Folder of the project's.
        improvement: What the model makes of a draft; None: there is no model.
    """

    def __init__(self, engine: FakeEngine) -> None:
        self._engine = engine
        self._folder = tempfile.TemporaryDirectory(prefix="shelf-")
        self.own = Path(self._folder.name)
        self.improvement: str | None = None
        workspace = self.own / "workspace"
        self.project = workspace / PROJECT_FOLDER
        self._library = PersonaLibrary(self.own, workspace)
        self._desk = UserPersonas(self._library)

    @answers(ListPersonas)
    def _list_personas(self, request: ListPersonas) -> Any:
        return PersonaList(personas=[one.info(USER) for one in self._library.found()], default="Assistant")

    @answers(ShowPersona)
    def _show_persona(self, request: ShowPersona) -> Any:
        name = request.name
        persona = self._library.load(name)
        return PersonaView(info=persona.info(USER), text=persona.text)

    @answers(SetPersona)
    def _set_persona(self, request: SetPersona) -> Any:
        name = request.name
        uuid = request.conversation_id
        return self._set(name, self._engine.conversations.get(uuid))

    @answers(DraftPersona)
    def _draft_persona(self, request: DraftPersona) -> Any:
        brief = request.brief
        return _draft(template(brief, USER), brief.name)

    @answers(ImprovePersona)
    def _improve_persona(self, request: ImprovePersona) -> Any:
        name = request.name
        if self.improvement is None:
            raise RagforgeError("No language model is configured that could improve it.")
        return _draft(self.improvement, name)

    @answers(CheckPersona)
    def _check_persona(self, request: CheckPersona) -> Any:
        text = request.text
        name = request.name
        return _draft(text, name)

    @answers(SavePersona)
    def _save_persona(self, request: SavePersona) -> Any:
        text = request.text
        name = request.name
        instead_of = request.instead_of
        saved = self._desk.save(text, name, instead_of=instead_of)
        return self._library.load(saved.name).info(USER)

    @answers(DeletePersona)
    def _delete_persona(self, request: DeletePersona) -> Any:
        name = request.name
        return self._desk.delete(name).info(USER)

    @answers(RestorePersona)
    def _restore_persona(self, request: RestorePersona) -> Any:
        name = request.name
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
