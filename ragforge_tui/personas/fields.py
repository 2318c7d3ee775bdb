"""Metadata of a persona's file: name, description, colour and more, read from its tags and attributes.

Every field is optional. An attribute of the first element takes precedence over a tag of the same name at most two
levels below it. Without either, the name defaults to the file's name, the description to the first line of text, and
the glyph to the first symbol in the element's id or type. Used by the library.
"""

from __future__ import annotations

import re
import unicodedata
from itertools import islice

import msgspec

from ragforge_tui.personas.display_text import clean_name, color_of, first_sign, one_line, symbol_in
from ragforge_tui.personas.luciform import Diagnostic, Luciform, Node, bare

DESCRIPTION_CHARS = 200
GREETING_CHARS = 400
WORD_CHARS = 120
TAG_DEPTH = 2
HIGHEST_TEMPERATURE = 2.0

WORDS: dict[str, tuple[str, ...]] = {
    "name": ("name", "nom"),
    "description": ("description",),
    "color": ("color", "colour", "couleur"),
    "glyph": ("glyph", "glyphe", "icon", "icône", "icone"),
    "greeting": ("greeting", "salutation", "accueil"),
    "language": ("language", "lang", "langue", "xml:lang"),
    "model": ("model", "modèle", "modele"),
    "temperature": ("temperature", "température"),
    "tools": ("tools", "outils"),
}
"""Accepted names of attributes and tags, by field."""
_FIELD_OF = {word: field for field, words in WORDS.items() for word in words}
_SEPARATORS = re.compile(r"[\s,;|·]+")
_TOOL = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")


class Fields(msgspec.Struct, frozen=True, kw_only=True):
    """Metadata of a persona; `persona_records.PersonaInfo` documents the fields."""

    name: str
    description: str = ""
    color: str = ""
    glyph: str = ""
    greeting: str = ""
    language: str = ""
    model: str = ""
    temperature: float | None = None
    tools: tuple[str, ...] | None = None


def fields_of(document: Luciform, stem: str) -> tuple[Fields, list[Diagnostic]]:
    """Return the fields of a text, and a diagnostic for each value that cannot be used.

    Args:
        stem: The file's name without its suffix.
    """
    raw = _raw_values(document)
    diagnostics: list[Diagnostic] = []

    def value(field: str, limit: int = WORD_CHARS) -> str:
        return one_line(raw[field][0][: limit * 8])[:limit].strip() if field in raw else ""

    def refuse(field: str, message: str) -> None:
        diagnostics.append(Diagnostic(*document.place(raw[field][1]), message))

    color = color_of(value("color"))
    if value("color") and not color:
        refuse("color", "unknown colour: use a common colour name or #rrggbb")
    temperature = _temperature(value("temperature"))
    if value("temperature") and temperature is None:
        refuse("temperature", f"the temperature must be a number from 0 to {HIGHEST_TEMPERATURE:g}")
    tools, invalid = _tools(value("tools", 2_000)) if "tools" in raw else (None, "")
    if invalid:
        refuse("tools", f"{invalid} is not a tool name")
    name = clean_name(value("name"))
    if "name" in raw and not name:
        refuse("name", "this name has no visible characters: the file's name is used")
    root = document.root
    id_and_type = "" if root is None else (root.attribute("id") or "") + " " + (root.attribute("type") or "")
    fields = Fields(
        name=name or clean_name(stem) or "unnamed",
        description=value("description", DESCRIPTION_CHARS) or _first_line(document),
        color=color,
        glyph=first_sign(value("glyph")) or symbol_in(one_line(id_and_type[:WORD_CHARS])),
        greeting=value("greeting", GREETING_CHARS),
        language=value("language"),
        model="" if " " in value("model") else value("model"),
        temperature=temperature,
        tools=tools,
    )
    return fields, diagnostics


def _raw_values(document: Luciform) -> dict[str, tuple[str, int]]:
    """Return the raw value of each field that the file sets, with its offset."""
    values: dict[str, tuple[str, int]] = {}
    root = document.root
    if root is None:
        return values
    for attribute in islice(root.attributes, 1_000):
        field = _FIELD_OF.get(bare(attribute.name))
        if field and attribute.raw is not None and field not in values and attribute.raw.strip():
            values[field] = (attribute.raw, attribute.start)
    level = [root]
    for _ in range(TAG_DEPTH):
        level = [child for node in level for child in node.children if child.kind == "element"]
        for node in level:
            _take_tag(document, node, values)
    return values


def _take_tag(document: Luciform, node: Node, values: dict[str, tuple[str, int]]) -> None:
    field = _FIELD_OF.get(node.bare_name)
    if field and field not in values and (text := document.text_of(node, 4_000)).strip():
        values[field] = (text, node.start)


def _first_line(document: Luciform) -> str:
    """Return the first line that has text besides tags and comments."""
    line: list[str] = []
    for node, _ in document.walk():
        if node.kind == "text":
            text = document.text[node.start : node.end]
        elif node.kind == "cdata":
            text = document.text_of(node)
        else:
            continue
        head, *rest = text.split("\n")
        line.append(head[:2_000])
        for following in rest:
            if shown := one_line("".join(line)):
                return shown[:DESCRIPTION_CHARS]
            line = [following[:2_000]]
    return one_line("".join(line))[:DESCRIPTION_CHARS]


def _temperature(text: str) -> float | None:
    try:
        value = float(unicodedata.normalize("NFKC", text).replace(",", "."))
    except ValueError:
        return None
    return value if 0 <= value <= HIGHEST_TEMPERATURE else None


def _tools(text: str) -> tuple[tuple[str, ...] | None, str]:
    """Return the tool names as written (None: all), and the first word that is not a tool name."""
    words = [word for word in _SEPARATORS.split(text) if word]
    folded = [word.casefold() for word in words]
    if folded == ["all"]:
        return None, ""
    if folded == ["none"]:
        return (), ""
    invalid = next((word for word in words if not _TOOL.fullmatch(word)), "")
    return tuple(dict.fromkeys(word for word in words if _TOOL.fullmatch(word))), invalid
