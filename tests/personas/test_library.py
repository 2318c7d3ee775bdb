"""Personas are found by name and reach the model as written."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragforge_tui.personas import PersonaLibrary, persona_of, usable, user_name
from ragforge_tui.shared.errors import NotFoundError, RagforgeError
from ragforge_tui.shared.sanitize import plain_text

HARD = [
    b"<",
    b">",
    b"</x>",
    b"<x name='",
    b"' glyph=",
    b"\x1b[31m",
    b"\xe2\x80\xae",
    b"{USER_NAME}",
    b"\xff",
    b"\x00",
    b"\n",
]
STRANGE = "<luciform id=odd⛧>\r\n  <\ufe0fsoul>∆ Ω ✶ & < \u200d {USER_NAME}</soul>\r\n"


def test_the_default_persona_is_shipped(tmp_path: Path) -> None:
    persona = PersonaLibrary(tmp_path).load("assistant")
    assert persona.name == "Assistant"
    assert persona.origin == "shipped"
    assert "luciform" in persona.text


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_a_file_reaches_the_prompt_unchanged_but_for_the_name(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "Odd.luciform").write_bytes(STRANGE.encode(encoding))
    persona = PersonaLibrary(tmp_path).load("odd")
    assert persona.text == STRANGE
    assert persona.prompt("Ada") == STRANGE.replace("{USER_NAME}", "Ada")


def test_an_own_persona_hides_the_shipped_one(tmp_path: Path) -> None:
    (tmp_path / "Assistant.luciform").write_text("mine", encoding="utf-8")
    library = PersonaLibrary(tmp_path)
    assert library.load("Assistant").text == "mine"
    assert library.names().count("Assistant") == 1


def test_an_unknown_name_shows_which_there_are(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="Assistant"):
        PersonaLibrary(tmp_path).load("Nobody")


PLAIN = """<luciform id="lamp⛧" type="✶lamp" author="nobody" version="Ω1">

  <lighting>
    <entry>Lit by <b>evening</b> &amp; rain</entry>
    <note>second</note>
  </lighting>
  <️soul>third</️soul>
</luciform>
"""
NESTED = """<luciform id="clock" type="✶clock" version="Ω1">
  <️hands>

    Counts the ∆ of **hours**.
    Never stops.
  </️hands>
  <⛧face description="of a part, not of the whole">XII</⛧face>
</luciform>
"""


@pytest.mark.parametrize(
    ("text", "description"),
    [
        (PLAIN, "Lit by evening & rain"),
        (NESTED, "Counts the ∆ of **hours**."),
        (PLAIN.replace("version=", 'description="A  lamp > a candle" version='), "A lamp > a candle"),
        (NESTED.replace("version=", "description='Ticks' version="), "Ticks"),
        (NESTED.replace("version=", 'description=" " version='), "Counts the ∆ of **hours**."),
        ("<?xml version='1.0'?>\r\n<!-- <a description='no'>\r\nnot this -->\r\n<a description='yes'/>", "yes"),
        (STRANGE, "∆ Ω ✶ & < \u200d {USER_NAME}"),
        ("just a line\nand another", "just a line"),
        ("x" * 300, "x" * 200),
        ("<a><b/></a>", ""),
        ("", ""),
    ],
)
def test_a_persona_is_described_in_a_line(tmp_path: Path, text: str, description: str) -> None:
    (tmp_path / "Lamp.luciform").write_text(text, encoding="utf-8")
    assert PersonaLibrary(tmp_path).load("lamp").description == description


def test_the_setting_wins_over_git(monkeypatch: pytest.MonkeyPatch) -> None:
    assert user_name("Ada") == "Ada"
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("LOGNAME", "login")
    assert user_name("") == "login"


def library(tmp_path: Path, **files: str) -> PersonaLibrary:
    """Own, project and shipped personas: `own_X`, `project_X` and `shipped_X` are written to X.luciform."""
    folders = {
        "own": tmp_path / "own",
        "project": tmp_path / "work" / ".ragforge" / "personas",
        "shipped": tmp_path / "shipped",
    }
    for folder in folders.values():
        folder.mkdir(parents=True)
    for key, text in files.items():
        origin, _, name = key.partition("_")
        (folders[origin] / f"{name}.luciform").write_text(text, encoding="utf-8")
    return PersonaLibrary(folders["own"], tmp_path / "work", (folders["shipped"],))


def test_own_over_project_over_shipped_and_the_hidden_ones_are_reported(tmp_path: Path) -> None:
    shelf = library(
        tmp_path, own_a="<x name='Vega'/>", project_vega="p", shipped_VEGA="s", project_b="b", shipped_b="c"
    )
    assert [(one.name, one.origin, one.shadows) for one in shelf.found()] == [
        ("b", "project", ("shipped",)),
        ("Vega", "own", ("project", "shipped")),
    ]
    assert shelf.load("vega", ("project", "shipped")).text == "p"


def test_names_are_found_by_file_name_and_without_accents(tmp_path: Path) -> None:
    shelf = library(tmp_path, own_file="<x name='Ragnarök'/>")
    assert {shelf.load(name).name for name in ("ragnarok", "FILE", "Ragnarök")} == {"Ragnarök"}


def test_at_least_four_shipped_ones_without_faults(tmp_path: Path) -> None:
    shipped = PersonaLibrary(tmp_path).found()
    assert {"Assistant", "Ragnarök", "Dev", "Researcher"} <= {one.name for one in shipped}
    for one in shipped:
        assert one.diagnostics == (), one.name
        assert one.description and one.fields.glyph and one.fields.color and one.fields.greeting
        assert "{USER_NAME}" in one.text


@given(st.one_of(st.binary(max_size=200), st.lists(st.sampled_from(HARD), max_size=30).map(b"".join)))
def test_whatever_bytes_a_file_holds_it_is_a_persona_and_its_text_is_the_prompt(raw: bytes) -> None:
    persona = persona_of(raw, "stem", "own", "")
    assert persona.name
    assert persona.prompt("Ada") == persona.text.replace("{USER_NAME}", "Ada")
    if raw.decode("utf-8", "ignore").encode() == raw and raw[:1] not in (b"\x00", b"<", b"\xef"):
        assert persona.text.encode() == raw
    for shown in (persona.name, persona.description, persona.fields.glyph, persona.info("Ada").greeting):
        assert plain_text(shown) == shown
        assert "\n" not in shown


def test_a_link_out_of_the_project_is_not_followed(tmp_path: Path) -> None:
    shelf = library(tmp_path)
    (tmp_path / "secret.txt").write_text("secret", encoding="utf-8")
    (tmp_path / "work" / ".ragforge" / "personas" / "x.luciform").symlink_to(tmp_path / "secret.txt")
    assert shelf.found() == []


def test_files_no_one_can_use_are_listed_with_the_reason(tmp_path: Path) -> None:
    shelf = library(tmp_path, own_empty=" \n", own_large="<x>" * 400_000)
    (tmp_path / "own" / "pipe.luciform").mkdir()
    assert {one.name: one.problem for one in shelf.found()} == {
        "empty": "its file is empty",
        "large": "its file is larger than 1024 kB",
    }
    with pytest.raises(RagforgeError, match="larger"):
        usable(shelf.load("large"))


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32"])
def test_other_encodings_are_understood(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "odd.luciform").write_bytes(STRANGE.encode(encoding))
    assert PersonaLibrary(tmp_path).load("odd").text == STRANGE


def test_bytes_that_are_no_text_are_reported(tmp_path: Path) -> None:
    (tmp_path / "odd.luciform").write_bytes(b"<x>caf\xe9</x>")
    persona = PersonaLibrary(tmp_path).load("odd")
    assert persona.text == "<x>caf\ufffd</x>"
    assert "not UTF-8" in persona.diagnostics[0].message
