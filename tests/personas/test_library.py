"""Personas are found by name and reach the model as written."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragforge_tui.errors import NotFoundError
from ragforge_tui.personas import PersonaLibrary, user_name

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


def test_an_unknown_name_says_which_there_are(tmp_path: Path) -> None:
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
