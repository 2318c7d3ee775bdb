"""Records about personas that engine and screen exchange. Imports no other module of the package.

Package `personas` sanitizes their text for a terminal when it reads the files, except `PersonaView.text`, which is the
file as written.
"""

from __future__ import annotations

from typing import Literal

import msgspec

PersonaOrigin = Literal["own", "project", "shipped"]


class PersonaRemark(msgspec.Struct, frozen=True, kw_only=True):
    """Remark on a persona's file; line and column count from 1. A ``note`` is not a fault."""

    line: int
    column: int
    message: str
    severity: Literal["warning", "note"] = "warning"


class PersonaInfo(msgspec.Struct, frozen=True, kw_only=True):
    """Persona as listed.

    Attributes:
        digest: SHA-256 of its text in hex.
        color: A name of `personas.signs.COLORS` or ``#rrggbb``; empty if the file sets none.
        greeting: Greeting shown when it is chosen, with the user's name filled in.
        tools: Names of the tools it may use; None: all of them.
        shadows: Origins of other personas of the same name that this one hides ("shipped", "project").
        remarks: The first remarks on the file.
        more_remarks: Number of further remarks.
        problem: The reason it cannot be used; empty if it can.
        allowed: For a project's persona: whether the user allowed exactly this text; None if not asked yet.
    """

    name: str
    origin: PersonaOrigin
    path: str
    digest: str
    description: str = ""
    color: str = ""
    glyph: str = ""
    greeting: str = ""
    language: str = ""
    model: str = ""
    temperature: float | None = None
    tools: list[str] | None = None
    shadows: list[str] = []
    remarks: list[PersonaRemark] = []
    more_remarks: int = 0
    problem: str = ""
    allowed: bool | None = None


class PersonaList(msgspec.Struct, frozen=True, kw_only=True):
    """Personas to choose from, in the order of their numbers; `default` is used in a new conversation."""

    personas: list[PersonaInfo]
    default: str


class PersonaView(msgspec.Struct, frozen=True, kw_only=True):
    """Persona with its text as written."""

    info: PersonaInfo
    text: str


class PersonaBrief(msgspec.Struct, frozen=True, kw_only=True):
    """User's description of a persona to be drafted; all fields but the name may be empty."""

    name: str
    purpose: str = ""
    tone: str = ""
    language: str = ""
    color: str = ""
    glyph: str = ""
    rules: str = ""
    examples: str = ""


class PersonaDraft(msgspec.Struct, frozen=True, kw_only=True):
    """Text of a persona that is not saved yet. `info` is how it would be listed."""

    text: str
    info: PersonaInfo
