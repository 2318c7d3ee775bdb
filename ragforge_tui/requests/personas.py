"""The requests about personas: a part of `protocol`, which everybody imports them from."""

from __future__ import annotations

from ragforge_tui.persona_records import PersonaBrief, PersonaDraft, PersonaInfo, PersonaList, PersonaView
from ragforge_tui.requests.base import Request


class ListPersonas(Request[PersonaList]):
    """All personas one can choose."""


class ShowPersona(Request[PersonaView]):
    """One persona with its text, by name or by its number in the list."""

    name: str


class SetPersona(Request[PersonaInfo]):
    """Let another persona speak from the next turn on, by name or number; without a conversation only look it up."""

    name: str
    conversation_id: str = ""


class DraftPersona(Request[PersonaDraft]):
    """A complete persona from what a person said; nothing is saved and no model is asked."""

    brief: PersonaBrief


class ImprovePersona(Request[PersonaDraft]):
    """What the model makes of a draft; a proposal, nothing is saved."""

    text: str
    name: str


class CheckPersona(Request[PersonaDraft]):
    """What a text would be listed as; `name` is used where it says none."""

    text: str
    name: str


class SavePersona(Request[PersonaInfo]):
    """Keep a text as an own persona, under `name` where it says none; `instead_of` is the one it was edited from."""

    text: str
    name: str
    instead_of: str = ""


class DeletePersona(Request[PersonaInfo]):
    """Put an own persona aside; `RestorePersona` brings it back."""

    name: str


class RestorePersona(Request[PersonaInfo]):
    """Bring back the own persona deleted last, or last under that name."""

    name: str = ""


PersonaRequest = (
    ListPersonas
    | ShowPersona
    | SetPersona
    | DraftPersona
    | ImprovePersona
    | CheckPersona
    | SavePersona
    | DeletePersona
    | RestorePersona
)
