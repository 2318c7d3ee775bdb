"""Fields of a persona's file: read from its tags and attributes, sanitized for display on one line of a terminal.

Every field is optional. An attribute of the first element takes precedence over a tag of the same name at most two
levels below it. Without either, the name defaults to the file's name, the description to the first line of text, and
the glyph to the first symbol in the element's id or type. `persona_records.FIELDS` is their table.

A persona's file may contain anything. Text shown from it has no control characters, no direction marks, no stacks of
combining accents, and is short.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Callable
from itertools import islice
from typing import Any

from ragforge_tui.personas.luciform import Diagnostic, Luciform, bare
from ragforge_tui.shared.persona_colors import color_of
from ragforge_tui.shared.persona_records import FIELDS, PersonaFields
from ragforge_tui.shared.sanitize import plain_text, storable

TAG_DEPTH = 2
HIGHEST_TEMPERATURE = 2.0
NAME_CHARS = 60
_JOINER = "\u200d"
_MAX_MARKS = 2
_MAX_SIGN = 8
_DROPPED = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})

_SEPARATORS = re.compile(r"[\s,;|·]+")
_TOOL = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")


def fields_of(document: Luciform, stem: str) -> tuple[PersonaFields, list[Diagnostic]]:
    """Return the fields of a text, and a diagnostic for each value that cannot be used.

    Args:
        stem: The file's name without its suffix.
    """
    values: dict[str, Any] = {}
    diagnostics: list[Diagnostic] = []
    for name, (raw, offset) in _raw_values(document).items():
        limit = FIELDS[name].limit
        value, problem = READERS.get(name, _text)(one_line(raw[: limit * 8])[:limit].strip())
        if problem:
            diagnostics.append(Diagnostic(*document.place(offset), problem))
        values[name] = value
    root = document.root
    id_and_type = "" if root is None else (root.attribute("id") or "") + " " + (root.attribute("type") or "")
    values["name"] = values.get("name") or clean_name(stem) or "unnamed"
    values["description"] = values.get("description") or _first_line(document)
    values["glyph"] = values.get("glyph") or first_symbol(one_line(id_and_type[:120]))
    own = {name: value for name, value in values.items() if name in PersonaFields.__struct_fields__}
    others = {name: value for name, value in values.items() if name not in own}
    return PersonaFields(**own, others=others), diagnostics


def _raw_values(document: Luciform) -> dict[str, tuple[str, int]]:
    """Return the raw value of each field that the file sets, with its offset."""
    field_of = {word: name for name, field in FIELDS.items() for word in field.words}
    values: dict[str, tuple[str, int]] = {}
    root = document.root
    if root is None:
        return values
    for attribute in islice(root.attributes, 1_000):
        field = field_of.get(bare(attribute.name))
        if field and attribute.raw is not None and field not in values and attribute.raw.strip():
            values[field] = (attribute.raw, attribute.start)
    level = [root]
    for _ in range(TAG_DEPTH):
        level = [child for node in level for child in node.children if child.kind == "element"]
        for node in level:
            field = field_of.get(node.bare_name)
            if field and field not in values and (text := document.text_of(node, 4_000)).strip():
                values[field] = (text, node.start)
    return values


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
                return shown[: FIELDS["description"].limit]
            line = [following[:2_000]]
    return one_line("".join(line))[: FIELDS["description"].limit]


def _text(text: str) -> tuple[str, str]:
    return text, ""


def _name(text: str) -> tuple[str, str]:
    name = clean_name(text)
    return name, "" if name else "this name has no visible characters: the file's name is used"


def _color(text: str) -> tuple[str, str]:
    color = color_of(text)
    return color, "unknown colour: use a common colour name or #rrggbb" if text and not color else ""


def _glyph(text: str) -> tuple[str, str]:
    return first_grapheme(text), ""


def _model(text: str) -> tuple[str, str]:
    return "" if " " in text else text, ""


def _temperature(text: str) -> tuple[float | None, str]:
    try:
        value = float(unicodedata.normalize("NFKC", text).replace(",", "."))
    except ValueError:
        value = -1.0
    if 0 <= value <= HIGHEST_TEMPERATURE:
        return value, ""
    return None, f"the temperature must be a number from 0 to {HIGHEST_TEMPERATURE:g}" if text else ""


def _tools(text: str) -> tuple[tuple[str, ...] | None, str]:
    """Return the tool names as written (None: all), and the problem with the first word that is not one."""
    words = [word for word in _SEPARATORS.split(text) if word]
    folded = [word.casefold() for word in words]
    if folded == ["all"]:
        return None, ""
    if folded == ["none"]:
        return (), ""
    invalid = next((f"{word} is not a tool name" for word in words if not _TOOL.fullmatch(word)), "")
    return tuple(dict.fromkeys(word for word in words if _TOOL.fullmatch(word))), invalid


READERS: dict[str, Callable[[str], tuple[Any, str]]] = {
    "name": _name,
    "color": _color,
    "glyph": _glyph,
    "model": _model,
    "temperature": _temperature,
    "tools": _tools,
}
"""Parsers of the fields that are not plain text: each returns the value, and a problem with it or an empty string."""


def one_line(text: str) -> str:
    """Return a text on one line, with entities decoded and without anything a terminal would act on."""
    return " ".join(plain_text(storable(html.unescape(text))).split())


def clean_name(text: str) -> str:
    """Return a name as shown and looked up; empty if it has no visible characters."""
    visible: list[str] = []
    marks = 0
    for character in unicodedata.normalize("NFC", one_line(text)):
        category = unicodedata.category(character)
        joins = character == _JOINER and bool(visible) and not visible[-1].isalnum()
        if category in _DROPPED and not joins:
            continue
        marks = marks + 1 if category in ("Mn", "Me") else 0
        if marks <= _MAX_MARKS:
            visible.append(character)
    return " ".join("".join(visible).split())[:NAME_CHARS].strip().rstrip(_JOINER)


def first_grapheme(text: str) -> str:
    """Return the first grapheme cluster of a text, with its accents or joined emoji; empty if there is none."""
    text = one_line(text)
    start = next((place for place, c in enumerate(text) if unicodedata.category(c) not in {*_DROPPED, "Mn", "Me"}), -1)
    if start < 0 or unicodedata.bidirectional(text[start]) in ("R", "AL"):
        return ""
    end = start + 1
    while end < len(text) and end - start < _MAX_SIGN:
        character = text[end]
        joined = text[end - 1] == _JOINER and unicodedata.category(character) not in _DROPPED
        tone = "\U0001f3fb" <= character <= "\U0001f3ff"
        flag = end == start + 1 and all("\U0001f1e6" <= c <= "\U0001f1ff" for c in (text[start], character))
        if not (unicodedata.category(character) in ("Mn", "Me") or character == _JOINER or joined or tone or flag):
            break
        end += 1
    return text[start:end].rstrip(_JOINER)


def first_symbol(text: str) -> str:
    """Return the first symbol (not a letter, digit or punctuation) in a text such as ``daemon⛧``, else empty."""
    for place, character in enumerate(text):
        if unicodedata.category(character) in ("So", "Sm") and not character.isascii():
            return first_grapheme(text[place:])
    return ""
