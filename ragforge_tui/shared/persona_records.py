"""Records about personas that engine and screen exchange, and the table of their fields.

Package `personas` sanitizes their text for a terminal when it reads the files, except `PersonaView.text`, which is the
file as written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal

import msgspec

PersonaOrigin = Literal["own", "project", "shipped"]


class PersonaRemark(msgspec.Struct, frozen=True, kw_only=True):
    """Remark on a persona's file; line and column count from 1. A ``note`` is not a fault."""

    line: int
    column: int
    message: str
    severity: Literal["warning", "note"] = "warning"


class PersonaFields(msgspec.Struct, frozen=True, kw_only=True):
    """Metadata in a persona's file.

    Attributes:
        color: A name of `persona_colors.COLORS` or ``#rrggbb``; empty if the file sets none.
        greeting: Greeting shown when it is chosen.
        tools: Names of the tools it may use; None: all of them.
        others: Texts of the `FIELDS` that have no attribute here, by name.
    """

    name: str
    description: str = ""
    color: str = ""
    glyph: str = ""
    greeting: str = ""
    language: str = ""
    model: str = ""
    temperature: float | None = None
    tools: tuple[str, ...] | None = None
    others: dict[str, str] = {}


class PersonaInfo(PersonaFields, frozen=True, kw_only=True):
    """Persona as listed, with the user's name filled in.

    Attributes:
        digest: SHA-256 of its text in hex.
        shadows: Origins of other personas of the same name that this one hides ("shipped", "project").
        remarks: The first remarks on the file.
        more_remarks: Number of further remarks.
        problem: The reason it cannot be used; empty if it can.
        allowed: For a project's persona: whether the user allowed exactly this text; None if not asked yet.
    """

    origin: PersonaOrigin
    path: str
    digest: str
    shadows: list[str] = []
    remarks: list[PersonaRemark] = []
    more_remarks: int = 0
    problem: str = ""
    allowed: bool | None = None


class PersonaField(msgspec.Struct, frozen=True, kw_only=True):
    """Field of a persona's file.

    Attributes:
        words: Names of the attributes and tags that set it.
        limit: Most characters of its value.
        label: Label in the preview; empty if it is not listed there.
        shown: Returns its text in the preview; None for the value itself.
    """

    words: tuple[str, ...]
    limit: int = 120
    label: str = ""
    shown: Callable[[PersonaInfo], str] | None = None

    def text(self, name: str, info: PersonaInfo) -> str:
        """Return the field of a persona as the preview shows it."""
        return self.shown(info) if self.shown else str(getattr(info, name, "") or info.others.get(name, ""))


def _model(info: PersonaInfo) -> str:
    return f"{info.model} (proposed)" if info.model and info.origin == "project" else info.model


def _temperature(info: PersonaInfo) -> str:
    return "" if info.temperature is None else f"temperature {info.temperature:g}"


def _tools(info: PersonaInfo) -> str:
    return "" if info.tools is None else ", ".join(info.tools) or "none but plan and notices"


FIELDS = {
    "name": PersonaField(words=("name", "nom")),
    "description": PersonaField(words=("description",), limit=200),
    "color": PersonaField(words=("color", "colour", "couleur"), label="color"),
    "glyph": PersonaField(words=("glyph", "glyphe", "icon", "icône", "icone")),
    "language": PersonaField(words=("language", "lang", "langue", "xml:lang"), label="language"),
    "model": PersonaField(words=("model", "modèle", "modele"), label="model", shown=_model),
    "temperature": PersonaField(words=("temperature", "température"), label="warmth", shown=_temperature),
    "tools": PersonaField(words=("tools", "outils"), limit=2_000, label="tools", shown=_tools),
    "sample": PersonaField(words=("sample", "exemple"), limit=300),
    "greeting": PersonaField(words=("greeting", "salutation", "accueil"), limit=400),
}
"""Fields of a persona's file, by name, in the order of the preview. A text needs no more than its entry here;
`personas.fields.READERS` parses other values."""


class PersonaQuestion(msgspec.Struct, frozen=True):
    """Question about a new persona; `field` is a field of `PersonaBrief`, or one of `FIELDS`."""

    field: str
    title: str
    help: str = ""


QUESTIONS = [
    PersonaQuestion("name", "Name", "Its name, as in /set-persona NAME."),
    PersonaQuestion("purpose", "Purpose", "Its purpose in a sentence: reviews SQL; tells stories about logs."),
    PersonaQuestion("tone", "Tone", "How it sounds: dry, warm, solemn, playful."),
    PersonaQuestion("language", "Language", "The language it speaks; empty: the one you write."),
    PersonaQuestion("color", "Colour"),
    PersonaQuestion("glyph", "Glyph", "The sign before its name: ✶ ◆ ∿ ◎ ⟁ ☾ ⚗ ⛧ 🜂 or any other."),
    PersonaQuestion("rules", "Rules", "Rules it always follows, separated by semicolons."),
    PersonaQuestion("examples", "Examples", "Example sentences, separated by semicolons."),
]
ONE_LINE = ("name", "color", "language", "purpose")
"""Fields of the one-line form `Name | colour | language | description`, in order."""


class PersonaList(msgspec.Struct, frozen=True, kw_only=True):
    """Personas to choose from, in the order of their numbers; `default` is used in a new conversation."""

    personas: list[PersonaInfo]
    default: str


class PersonaView(msgspec.Struct, frozen=True, kw_only=True):
    """Persona with its text as written."""

    info: PersonaInfo
    text: str


class PersonaBrief(msgspec.Struct, frozen=True, kw_only=True):
    """User's description of a persona to be drafted; all fields but the name may be empty.

    Attributes:
        others: Answers to questions about other `FIELDS`, by name.
    """

    name: str
    purpose: str = ""
    tone: str = ""
    language: str = ""
    color: str = ""
    glyph: str = ""
    rules: str = ""
    examples: str = ""
    others: dict[str, str] = {}

    @classmethod
    def of(cls, answers: Mapping[str, str]) -> PersonaBrief:
        """Return the brief of answers to `QUESTIONS`."""
        own = {name: answer for name, answer in answers.items() if name in cls.__struct_fields__}
        return cls(**own, others={name: answer for name, answer in answers.items() if name not in own})

    def answers(self) -> dict[str, str]:
        """Return the answers this brief was made of."""
        own = {name: getattr(self, name) for name in self.__struct_fields__ if name != "others"}
        return {**own, **self.others}


class PersonaDraft(msgspec.Struct, frozen=True, kw_only=True):
    """Text of a persona that is not saved yet. `info` is how it would be listed."""

    text: str
    info: PersonaInfo
