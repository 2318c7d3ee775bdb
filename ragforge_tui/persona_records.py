"""What engine and screen say to each other of personas. Shared words; lean on nothing.

Text in them is made safe for a terminal where the files are read (room `personas`), except `PersonaView.text`, which
is the file as written.
"""

from __future__ import annotations

from typing import Literal

import msgspec

PersonaOrigin = Literal["own", "project", "shipped"]


class PersonaRemark(msgspec.Struct, frozen=True, kw_only=True):
    """Something noticed in a persona's file; line and column count from 1. A ``note`` is no fault."""

    line: int
    column: int
    message: str
    severity: Literal["warning", "note"] = "warning"


class PersonaInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A persona as it is listed.

    Attributes:
        digest: SHA-256 of its text in hex.
        color: A name of `personas.fields.COLORS` or ``#rrggbb``; empty when the file says none.
        greeting: What it says when it is chosen, the person's name filled in.
        tools: What it may use; None: all there are.
        shadows: Where others of the same name come from that this one hides ("shipped", "project").
        remarks: What was noticed in the file, the first few.
        more_remarks: How many more there were.
        problem: Why it cannot be used, empty when it can.
        allowed: Of a project's one: whether the person allowed exactly this text; None when not asked yet.
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
    """All personas one can choose, in the order their numbers count; `default` speaks in a new conversation."""

    personas: list[PersonaInfo]
    default: str


class PersonaView(msgspec.Struct, frozen=True, kw_only=True):
    """A persona with its text as written."""

    info: PersonaInfo
    text: str


class PersonaBrief(msgspec.Struct, frozen=True, kw_only=True):
    """What a person says of a persona to be made; all but the name may be empty."""

    name: str
    purpose: str = ""
    tone: str = ""
    language: str = ""
    color: str = ""
    glyph: str = ""
    rules: str = ""
    examples: str = ""


class PersonaDraft(msgspec.Struct, frozen=True, kw_only=True):
    """A text that is no persona yet. `info` is what it would be listed as."""

    text: str
    info: PersonaInfo
