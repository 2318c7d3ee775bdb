"""What a persona's file says of itself: name, description, colour and the rest, from its own tags and attributes.

Nothing has to be there. An attribute of the first element wins over a tag of the same name at most two levels below
it; without either, the name is the file's, the description its first line, the glyph the first symbol in the
element's id or type. Used by the library.
"""

from __future__ import annotations

import re
import unicodedata
from itertools import islice

import msgspec

from ragforge_tui.personas.luciform import Diagnostic, Luciform, Node, bare
from ragforge_tui.personas.signs import clean_name, color_of, first_sign, one_line, symbol_in

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
"""Fields, and how attributes and tags that hold them may be called."""
_FIELD_OF = {word: field for field, words in WORDS.items() for word in words}
_SEPARATORS = re.compile(r"[\s,;|·]+")
_TOOL = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")


class Fields(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a persona besides its text; see `persona_records.PersonaInfo`."""

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
    """The fields of a text, and what was wrong with those that could not be used.

    Args:
        stem: The file's name without its suffix.
    """
    found = _said(document)
    wrong: list[Diagnostic] = []

    def said(field: str, limit: int = WORD_CHARS) -> str:
        return one_line(found[field][0][: limit * 8])[:limit].strip() if field in found else ""

    def refuse(field: str, message: str) -> None:
        wrong.append(Diagnostic(*document.place(found[field][1]), message))

    color = color_of(said("color"))
    if said("color") and not color:
        refuse("color", "this colour is not known: a usual name or #rrggbb is")
    temperature = _temperature(said("temperature"))
    if said("temperature") and temperature is None:
        refuse("temperature", f"the temperature is no number from 0 to {HIGHEST_TEMPERATURE:g}")
    tools, odd = _tools(said("tools", 2_000)) if "tools" in found else (None, "")
    if odd:
        refuse("tools", f"{odd} is no tool's name")
    name = clean_name(said("name"))
    if "name" in found and not name:
        refuse("name", "nothing of this name can be shown: the file's name is used")
    root = document.root
    signed = "" if root is None else (root.attribute("id") or "") + " " + (root.attribute("type") or "")
    fields = Fields(
        name=name or clean_name(stem) or "unnamed",
        description=said("description", DESCRIPTION_CHARS) or _first_line(document),
        color=color,
        glyph=first_sign(said("glyph")) or symbol_in(one_line(signed[:WORD_CHARS])),
        greeting=said("greeting", GREETING_CHARS),
        language=said("language"),
        model="" if " " in said("model") else said("model"),
        temperature=temperature,
        tools=tools,
    )
    return fields, wrong


def _said(document: Luciform) -> dict[str, tuple[str, int]]:
    """What the file says, by field, each with its place."""
    found: dict[str, tuple[str, int]] = {}
    root = document.root
    if root is None:
        return found
    for attribute in islice(root.attributes, 1_000):
        field = _FIELD_OF.get(bare(attribute.name))
        if field and attribute.raw is not None and field not in found and attribute.raw.strip():
            found[field] = (attribute.raw, attribute.start)
    level = [root]
    for _ in range(TAG_DEPTH):
        level = [child for node in level for child in node.children if child.kind == "element"]
        for node in level:
            _take_tag(document, node, found)
    return found


def _take_tag(document: Luciform, node: Node, found: dict[str, tuple[str, int]]) -> None:
    field = _FIELD_OF.get(node.bare_name)
    if field and field not in found and (text := document.text_of(node, 4_000)).strip():
        found[field] = (text, node.start)


def _first_line(document: Luciform) -> str:
    """The first line that is more than tags and comments."""
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
            if found := one_line("".join(line)):
                return found[:DESCRIPTION_CHARS]
            line = [following[:2_000]]
    return one_line("".join(line))[:DESCRIPTION_CHARS]


def _temperature(text: str) -> float | None:
    try:
        value = float(unicodedata.normalize("NFKC", text).replace(",", "."))
    except ValueError:
        return None
    return value if 0 <= value <= HIGHEST_TEMPERATURE else None


def _tools(text: str) -> tuple[tuple[str, ...] | None, str]:
    """Names of tools as written, None for all; and the first word that can be none."""
    words = [word for word in _SEPARATORS.split(text) if word]
    folded = [word.casefold() for word in words]
    if folded == ["all"]:
        return None, ""
    if folded == ["none"]:
        return (), ""
    odd = next((word for word in words if not _TOOL.fullmatch(word)), "")
    return tuple(dict.fromkeys(word for word in words if _TOOL.fullmatch(word))), odd
