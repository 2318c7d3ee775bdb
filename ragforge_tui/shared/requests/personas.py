"""Requests about personas."""

from __future__ import annotations

from ragforge_tui.shared.persona_records import PersonaBrief, PersonaDraft, PersonaInfo, PersonaList, PersonaView
from ragforge_tui.shared.wire import Request


class ListPersonas(Request[PersonaList]):
    """All personas that can be chosen."""


class ShowPersona(Request[PersonaView]):
    """One persona with its text, by name or by number in the list."""

    name: str


class SetPersona(Request[PersonaInfo]):
    """Use another persona, by name or number, from the next turn on; without a conversation only look it up."""

    name: str
    conversation_id: str = ""


class DraftPersona(Request[PersonaDraft]):
    """Draft a complete persona from the user's answers, without saving it or asking a model."""

    brief: PersonaBrief


class ImprovePersona(Request[PersonaDraft]):
    """Ask the model to improve a draft; the result is a proposal and is not saved."""

    text: str
    name: str


class CheckPersona(Request[PersonaDraft]):
    """Preview the list entry of a text; `name` applies if the text has none."""

    text: str
    name: str


class SavePersona(Request[PersonaInfo]):
    """Save a text as a persona of the user; `name` applies if the text has none, `instead_of` is the edited persona."""

    text: str
    name: str
    instead_of: str = ""


class DeletePersona(Request[PersonaInfo]):
    """Delete a persona of the user; `RestorePersona` restores it."""

    name: str


class RestorePersona(Request[PersonaInfo]):
    """Restore the persona of the user that was deleted last, or last under that name."""

    name: str = ""
