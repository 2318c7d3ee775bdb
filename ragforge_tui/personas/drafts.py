"""Drafts of new personas: a template filled in from the user's brief, and the request to a model to improve it.

Pure functions. The conversation sends the request; the model's reply stays a proposal until the user accepts it.
"""

from __future__ import annotations

import html
import re
import unicodedata
from typing import Any

import msgspec

from ragforge_tui.personas.fields import clean_name, first_grapheme
from ragforge_tui.personas.library import key_of
from ragforge_tui.personas.reader import read
from ragforge_tui.shared.errors import RagforgeError
from ragforge_tui.shared.persona_colors import color_of
from ragforge_tui.shared.persona_records import FIELDS, ONE_LINE, PersonaBrief

DEFAULT_GLYPH = "✶"

_ROOT = re.compile(r"<luciform[\s>]")
_END = "</luciform>"
_NAME = re.compile(r"""name\s*=\s*(?:"[^"]*"|'[^']*'|[^\s>]*)""")

_ASK = """\
You write personas for an agent that helps a user in a terminal. The agent reads and edits files, runs commands and \
remembers earlier conversations. A persona is one .luciform document: XML in form, symbolic in style. Glyphs are part \
of the document and reach the agent as written.

Follow these rules:
- Reply with that one document only, from <luciform …> to </luciform>. No fence, no text before or after it.
- Keep the root's attributes name, color, glyph and language as they are in the draft.
- Sections: trigger (entry, frequency, note), payload (semantic_layer, symbolic_layer, hidden_ingredient), \
effect (internal_response, manifestation). Keep any other section of the draft; leave out empty ones.
- Address the agent as "you", in the draft's language. Describe concrete habits of speech and work; no praise, no \
biography.
- Keep every rule and example of the draft; sharpen their wording.
- Never promise anything an agent cannot do. Never ask it to hide, to lie or to act without permission.
- You may use {placeholder} for the user's name. Write 150 to 400 words."""


def brief_of(line: str) -> PersonaBrief:
    """Parse `Name | colour | language | description`; missing fields stay empty.

    Raises:
        RagforgeError: The name is missing.
    """
    parts = [part.strip() for part in line.split("|", len(ONE_LINE) - 1)]
    values = dict(zip(ONE_LINE, parts, strict=False))
    if not clean_name(values["name"]):
        raise RagforgeError("A persona needs a name.", todo="Name | colour | language | description", kind="bad_name")
    return PersonaBrief.of(values)


class _Words(msgspec.Struct, frozen=True):
    """Default texts of a template in one language, for the fields that the brief leaves empty."""

    entry: str
    note: str
    who: str
    purpose: str
    language: str
    tone: str
    rules: tuple[str, ...]
    examples: str


_ENGLISH = _Words(
    entry="{USER_NAME} calls %name%",
    note="Speaks until another persona is chosen",
    who="You are **%name%**, and you work with {USER_NAME}.",
    purpose="You help with files, commands, questions and plans.",
    language="You speak %language%, unless {USER_NAME} asks for another language.",
    tone="A calm voice: few words, each with its weight.",
    rules=("Start with the answer.", "Admit what you do not know; invent nothing."),
    examples="Plain Markdown; code in fences.",
)
_FRENCH = _Words(
    entry="{USER_NAME} appelle %name%",
    note="Parle jusqu'à ce qu'une autre voix soit appelée",
    who="Tu es **%name%**, et tu travailles aux côtés de {USER_NAME}.",
    purpose="Tu aides à ce qui est demandé : fichiers, commandes, questions, plans.",
    language="Tu parles français, sauf si {USER_NAME} demande une autre langue.",
    tone="Une voix calme : peu de mots, chacun à sa place.",
    rules=("La réponse d'abord.", "Ce qui n'est pas su est dit ; rien n'est inventé."),
    examples="Du Markdown simple ; le code dans ses clôtures.",
)


def template(brief: PersonaBrief, author: str) -> str:
    """Return a complete persona built from a brief, in the form of the built-in ones."""
    words = _FRENCH if brief.language.casefold().startswith("fr") else _ENGLISH
    name = clean_name(brief.name)
    glyph = first_grapheme(brief.glyph) or DEFAULT_GLYPH
    attributes = {
        "id": f"{_slug(name)}{glyph}",
        "type": f"{glyph}persona",
        "name": name,
        "author": clean_name(author),
        "version": "Ω1.0",
        "color": color_of(brief.color) or brief.color,
        "glyph": glyph,
        "language": brief.language,
        "description": " ".join(brief.purpose.split())[:160],
        "sample": next(iter(_listed(brief.examples)), ""),
        **{field: brief.others[field] for field in FIELDS if field in brief.others},
    }
    rules = "\n".join(f"- {rule}" for rule in _listed(brief.rules) or words.rules)
    examples = "\n".join(f"« {example} »" for example in _listed(brief.examples))
    root = " ".join(f'{key}="{_quoted(value)}"' for key, value in attributes.items() if value)
    sections = [
        _section("trigger", [("entry", words.entry.replace("%name%", name)), ("note", words.note)]),
        _section(
            "payload",
            [("semantic_layer", _who(brief, name, words)), ("symbolic_layer", f"{glyph} {brief.tone or words.tone}")],
        ),
        _section("effect", [("internal_response", rules), ("manifestation", examples or words.examples)]),
    ]
    return "\n\n".join([f"<luciform {root}>", *sections, _END]) + "\n"


def _who(brief: PersonaBrief, name: str, words: _Words) -> str:
    lines = [words.who.replace("%name%", name), brief.purpose or words.purpose]
    if brief.language:
        lines.append(words.language.replace("%language%", brief.language))
    return "\n".join(lines)


def _listed(text: str) -> list[str]:
    """Split into lines, or at semicolons if there is only one line, and strip bullets."""
    pieces = text.splitlines() if "\n" in text.strip() else text.split(";")
    return [piece.strip().lstrip("-*•").strip() for piece in pieces if piece.strip(" -*•\t")]


def _section(name: str, entries: list[tuple[str, str]]) -> str:
    lines = [f"  <{name}>"]
    for tag, text in entries:
        if "\n" in text or len(text) > 80:
            lines += [f"    <{tag}>", *(f"      {line}" for line in text.splitlines()), f"    </{tag}>"]
        else:
            lines.append(f"    <{tag}>{text}</{tag}>")
    return "\n".join([*lines, f"  </{name}>"])


def _quoted(value: str) -> str:
    return " ".join(value.split()).replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")


def _slug(name: str) -> str:
    letters = "".join(c for c in unicodedata.normalize("NFKD", name.casefold()) if not unicodedata.combining(c))
    return "_".join(re.findall(r"\w+", letters)) or "persona"


def improvement_request(draft: str) -> list[dict[str, Any]]:
    """Return the messages that ask a model to turn a draft into a complete persona."""
    request = "Write the complete persona from this draft:\n\n" + draft
    return [
        {"role": "system", "content": _ASK.replace("{placeholder}", "{USER_NAME}")},
        {"role": "user", "content": request},
    ]


def improved(answer: str, draft: str) -> str:
    """Extract the document from a model's reply and give it the draft's name.

    Raises:
        RagforgeError: The reply contains no document.
    """
    start = _ROOT.search(answer)
    end = answer.rfind(_END)
    if start is None or end < start.start():
        raise RagforgeError("The model did not reply with a persona.", kept="The draft is unchanged.", kind="bad_draft")
    return _named(answer[start.start() : end + len(_END)] + "\n", draft)


def _named(text: str, draft: str) -> str:
    """Return the text with the draft's name, the one thing a model may not change."""
    draft_root = read(draft).root
    name = draft_root.attribute("name") if draft_root is not None else None
    root = read(text).root
    if name is None or root is None:
        return text
    current = next((item for item in root.attributes if item.name == "name" and item.raw is not None), None)
    if current is None:
        at = root.start + 1 + len(root.name)
        return f'{text[:at]} name="{name}"{text[at:]}'
    if key_of(html.unescape(current.value)) == key_of(html.unescape(name)):
        return text
    written = _NAME.match(text, current.start)
    return text if written is None else f'{text[: current.start]}name="{name}"{text[written.end() :]}'
