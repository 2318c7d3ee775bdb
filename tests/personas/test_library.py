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


def test_the_setting_wins_over_git(monkeypatch: pytest.MonkeyPatch) -> None:
    assert user_name("Ada") == "Ada"
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("LOGNAME", "login")
    assert user_name("") == "login"
