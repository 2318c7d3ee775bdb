"""What a file says of itself, and what of that may be shown."""

from __future__ import annotations

import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragforge_tui.personas import PersonaLibrary, persona_of
from ragforge_tui.personas.fields import clean_name, first_grapheme, first_symbol
from ragforge_tui.shared.persona_colors import color_of
from ragforge_tui.shared.persona_records import PersonaFields

FILES = Path(__file__).parent / "files"


def fields(text: str, stem: str = "stem") -> PersonaFields:
    return persona_of(text.encode("utf-8", "surrogatepass"), stem, "own", "").fields


def faults(text: str) -> list[str]:
    found = persona_of(text.encode(), "stem", "own", "").diagnostics
    return [one.message for one in found if one.severity == "warning"]


def test_attributes_of_the_first_element() -> None:
    found = fields(
        "<!-- c --><x Name='Vega' couleur=rouge glyph=☾ langue='français' model=openai/gpt-5 temperature='0,4' "
        "tools='read_file, grep_files' greeting='Bonjour {USER_NAME}' description='A &amp; B'/>"
    )
    assert found == PersonaFields(
        name="Vega",
        description="A & B",
        color="red",
        glyph="☾",
        greeting="Bonjour {USER_NAME}",
        language="français",
        model="openai/gpt-5",
        temperature=0.4,
        tools=("read_file", "grep_files"),
    )


def test_tags_where_there_is_no_attribute() -> None:
    found = fields(
        "<x name='Vega'><meta><⛧Name>not this</⛧Name><color>#0f8</color></meta><language>Deutsch</language>"
        "<a><b><model>too deep</model></b></a></x>"
    )
    assert (found.name, found.color, found.language, found.model) == ("Vega", "#00ff88", "Deutsch", "")


def test_the_real_files_have_a_name_a_glyph_and_a_line() -> None:
    found = {one.name: one for one in PersonaLibrary(FILES).found(("own",))}
    assert found["Algareth_dynamic"].fields.glyph == "⛧"
    assert found["ShadeOS_dynamic"].fields.glyph == "✶"
    assert found["ShadeOS_dynamic"].description == "Invocation RAG / Mémoire LT"


def test_unusable_fields_are_reported_with_their_place() -> None:
    text = "<x color='plaid' temperature='hot' tools='read_file, rm -rf' name='\u202e'>a</x>"
    assert faults(text) == [
        "unknown colour: use a common colour name or #rrggbb",
        "the temperature must be a number from 0 to 2",
        "-rf is not a tool name",
        "this name has no visible characters: the file's name is used",
    ]
    assert fields(text).name == "stem"


@pytest.mark.parametrize(("said", "tools"), [("all", None), ("none", ()), ("read", ("read",)), ("", None)])
def test_words_for_tools(said: str, tools: tuple[str, ...] | None) -> None:
    assert fields(f"<x tools='{said}'/>").tools == tools


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("Ragnarök", "Ragnarök"),
        ("a\x1b[31mb\x07\u202ec\u2066d\u200ee\nf", "abcde f"),
        ("&#27;]0;x&#7;y", "]0;xy"),
        ("Z" + "\u0301" * 40, "Ź\u0301\u0301"),
        ("👩\u200d🚀", "👩\u200d🚀"),
        ("  two   words ", "two words"),
        ("x" * 200, "x" * 60),
        ("\u200b\u200d\ufeff", ""),
    ],
)
def test_names_are_safe(written: str, name: str) -> None:
    assert clean_name(written) == name


@given(st.text(max_size=40))
def test_nothing_that_moves_the_cursor_gets_into_a_name_or_a_glyph(text: str) -> None:
    for shown in (clean_name(text), first_grapheme(text)):
        assert not any(unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") for c in shown)
        assert not any(c in "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f" for c in shown)


def test_glyphs_are_one_sign() -> None:
    assert [
        first_grapheme(text) for text in ("✶ and more", "👩\u200d🚀x", "🇫🇷🇩🇪", "e\u0301x", "\x1b[1m⛧", "א", "")
    ] == [
        "✶",
        "👩\u200d🚀",
        "🇫🇷",
        "e\u0301",
        "⛧",
        "",
        "",
    ]
    assert first_symbol("daemon_x⛧ Ω") == "⛧"


def test_colours() -> None:
    assert [color_of(word) for word in ("Rouge", "#ABC", "#12345", "url(x)", "")] == ["red", "#aabbcc", "", "", ""]
