"""New personas: a template made of what the person said, and the words that ask a model to make more of it.

Pure. The conversation asks the model; what comes back is only a proposal until the person accepts it.
"""

from __future__ import annotations

import html
import re
import unicodedata
from typing import Any

import msgspec

from ragforge_tui.errors import RagforgeError
from ragforge_tui.persona_records import PersonaBrief
from ragforge_tui.personas.library import key_of
from ragforge_tui.personas.reader import read
from ragforge_tui.personas.signs import clean_name, color_of, first_sign

DEFAULT_GLYPH = "✶"
ONE_LINE = ("name", "color", "language", "purpose")
"""The order of `Name | colour | language | description`."""

_ROOT = re.compile(r"<luciform[\s>]")
_END = "</luciform>"
_NAME = re.compile(r"""name\s*=\s*(?:"[^"]*"|'[^']*'|[^\s>]*)""")

_ASK = """\
You write personas for an agent that works beside a person in a terminal: it reads and edits files, runs commands and \
remembers earlier conversations. A persona is one .luciform document: XML in looks, symbolic in spirit. Glyphs are \
part of it and reach the agent as written.

Keep to these rules:
- Answer with the one document only, from <luciform …> to </luciform>. No fence, no word before or after.
- Keep the root's attributes name, color, glyph and language as they are in the draft.
- Sections: trigger (entry, frequency, note), payload (semantic_layer, symbolic_layer, hidden_ingredient), \
effect (internal_response, manifestation). Add a section where the draft has one; leave out what stays empty.
- Address the agent as "you", in the draft's language. Concrete habits of speech and work, no praise, no biography.
- Keep every rule and example the draft gives; sharpen their wording.
- Never promise what an agent cannot do. Never tell it to hide, lie or skip asking.
- You may use {placeholder} where the person's name belongs. 150 to 400 words."""


def brief_of(line: str) -> PersonaBrief:
    """What `Name | colour | language | description` says; what is missing stays empty.

    Raises:
        RagforgeError: There is no name.
    """
    parts = [part.strip() for part in line.split("|", len(ONE_LINE) - 1)]
    said = dict(zip(ONE_LINE, parts, strict=False))
    if not clean_name(said["name"]):
        raise RagforgeError("A persona needs a name.", todo="Name | colour | language | description", kind="bad_name")
    return PersonaBrief(**said)


class _Words(msgspec.Struct, frozen=True):
    """What a template says where the person said nothing, in one language."""

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
    note="Speaks until another is called",
    who="You are **%name%**, and you work beside {USER_NAME}.",
    purpose="You help with what is asked: files, commands, questions, plans.",
    language="You speak %language%, unless {USER_NAME} asks for another language.",
    tone="A calm voice: few words, each with its weight.",
    rules=("Begin with the answer.", "Say what is not known; invent nothing."),
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


def _words(language: str) -> _Words:
    return _FRENCH if language.casefold().startswith(("fr", "français", "french")) else _ENGLISH


def template(brief: PersonaBrief, author: str) -> str:
    """A complete persona out of what was said, in the form of the shipped ones."""
    words = _words(brief.language)
    name = clean_name(brief.name)
    glyph = first_sign(brief.glyph) or DEFAULT_GLYPH
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
    }
    root = " ".join(f'{key}="{_quoted(value)}"' for key, value in attributes.items() if value)
    sections = [
        _section("trigger", [("entry", words.entry.replace("%name%", name)), ("note", words.note)]),
        _section(
            "payload",
            [("semantic_layer", _who(brief, name, words)), ("symbolic_layer", f"{glyph} {brief.tone or words.tone}")],
        ),
        _section("effect", [("internal_response", _rules(brief, words)), ("manifestation", _examples(brief, words))]),
    ]
    return "\n\n".join([f"<luciform {root}>", *sections, _END]) + "\n"


def _who(brief: PersonaBrief, name: str, words: _Words) -> str:
    lines = [words.who.replace("%name%", name), brief.purpose or words.purpose]
    if brief.language:
        lines.append(words.language.replace("%language%", brief.language))
    return "\n".join(lines)


def _rules(brief: PersonaBrief, words: _Words) -> str:
    return "\n".join(f"- {rule}" for rule in _listed(brief.rules) or words.rules)


def _examples(brief: PersonaBrief, words: _Words) -> str:
    examples = _listed(brief.examples)
    return "\n".join(f"« {example} »" for example in examples) if examples else words.examples


def _listed(text: str) -> list[str]:
    """Lines, or what semicolons part, without the signs they begin with."""
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
    """What a model is asked so that it makes more of a draft."""
    asked = "Write the complete persona out of this draft:\n\n" + draft
    return [
        {"role": "system", "content": _ASK.replace("{placeholder}", "{USER_NAME}")},
        {"role": "user", "content": asked},
    ]


def improved(answer: str, draft: str) -> str:
    """The document in a model's answer, under the draft's name.

    Raises:
        RagforgeError: There is none in it.
    """
    start = _ROOT.search(answer)
    end = answer.rfind(_END)
    if start is None or end < start.start():
        raise RagforgeError(
            "The model did not answer with a persona.", kept="The draft is as it was.", kind="bad_draft"
        )
    return _named(answer[start.start() : end + len(_END)] + "\n", draft)


def _named(text: str, draft: str) -> str:
    """The text with the draft's name: a model may change everything else."""
    wanted = read(draft).root
    name = wanted.attribute("name") if wanted is not None else None
    root = read(text).root
    if name is None or root is None:
        return text
    found = next((one for one in root.attributes if one.name == "name" and one.raw is not None), None)
    if found is None:
        at = root.start + 1 + len(root.name)
        return f'{text[:at]} name="{name}"{text[at:]}'
    if key_of(html.unescape(found.value)) == key_of(html.unescape(name)):
        return text
    written = _NAME.match(text, found.start)
    return text if written is None else f'{text[: found.start]}name="{name}"{text[written.end() :]}'
