"""`personas`: what scripts rely on, and files nobody should trust."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragforge_tui.graph import GraphTarget
from ragforge_tui.personas import persona_of
from ragforge_tui.personas.drafts import template
from ragforge_tui.personas.fields import READERS
from ragforge_tui.settings.schema import Paths
from ragforge_tui.shared.persona_records import FIELDS, PersonaBrief, PersonaField
from ragforge_tui.tui.personas.persona_preview import facts
from tests.cli.conftest import Cli
from tests.conftest import EMBEDDED


@pytest.fixture
def graph_target(embedded_paths: Paths) -> GraphTarget:
    """The embedded graph alone: personas are files."""
    return EMBEDDED


FILES = Path(__file__).parents[1] / "personas" / "files"
HOSTILE = "<x name='Ev\x1b[31mil\u202e' description='\x1b[2J[red]a\x07'>a < b\x1b]0;t\x07</y></x>"


def test_list_has_what_scripts_rely_on(bare: Cli) -> None:
    found = {entry["name"]: entry for entry in bare.ok("personas", "list", "--json").json}
    assert {"Assistant", "Ragnarök", "Dev", "Researcher"} <= set(found)
    for entry in found.values():
        assert entry["origin"] == "shipped"
        assert entry["description"]
    assert found["Ragnarök"]["glyph"] == "✶"
    assert found["Researcher"]["tools"] == ["read"]
    assert "Terse engineer" in bare.ok("personas", "list").out


@pytest.mark.parametrize("name", ["Algareth_dynamic", "ShadeOS_dynamic"])
def test_add_show_remove_restore(bare: Cli, home: Path, name: str) -> None:
    source = FILES / f"{name}.luciform"
    assert bare.ok("personas", "add", str(source)).out == f"Added {name}.\n"
    (kept,) = home.rglob(f"{name}.luciform")
    assert kept.read_bytes() == source.read_bytes()
    assert bare.ok("personas", "show", name.lower(), "--json").json["text"] == source.read_bytes().decode()
    assert bare.run("personas", "add", str(source)).code == 1
    assert bare.ok("personas", "add", str(source), "--replace", "--json").json["name"] == name
    assert bare.ok("personas", "remove", name).out == f"Removed {name}.\n"
    assert bare.run("personas", "show", name).code == 1
    assert bare.ok("personas", "restore").out == f"Restored {name}.\n"


def test_one_is_known_by_its_number_in_the_list(bare: Cli) -> None:
    names = [entry["name"] for entry in bare.ok("personas", "list", "--json").json]
    for number, name in enumerate(names, 1):
        assert bare.ok("personas", "show", str(number), "--json").json["name"] == name
    assert "There is no persona named '99'" in bare.run("personas", "show", "99").err
    bare.ok("personas", "create", "Aa | red")
    assert bare.ok("personas", "remove", "1").out == "Removed Aa.\n"


def test_faults_that_are_not_listed_are_counted(bare: Cli, tmp_path: Path) -> None:
    source = tmp_path / "Many.luciform"
    source.write_text("<m>" + "</z>" * 1_700 + "</m>", encoding="utf-8")
    said = bare.ok("personas", "add", str(source)).err.splitlines()
    assert len(said) == 1_001
    assert said[-1].endswith("Many: and 700 more.")


def test_create_from_one_line(bare: Cli) -> None:
    made = bare.ok("personas", "create", "Vega | bleu | français | Relit le SQL", "--json").json
    assert (made["name"], made["color"], made["language"]) == ("Vega", "blue", "français")
    shown = bare.ok("personas", "show", "vega").out
    assert "Tu es **Vega**" in shown
    assert "{USER_NAME} appelle Vega" in shown
    assert bare.run("personas", "create", "vega").code == 1
    assert bare.run("personas", "create", " | blue").code == 1
    assert bare.run("personas", "create", "\u200b").code == 1


def test_a_name_that_no_file_may_have_stays_as_it_is_written(bare: Cli, home: Path, tmp_path: Path) -> None:
    assert bare.ok("personas", "create", "TCP/IP | blue").out == "Created TCP/IP.\n"
    assert "<luciform" in bare.ok("personas", "show", "tcp/ip").out
    (tmp_path / "net.luciform").write_text("<x name='../R/C'>hi</x>", encoding="utf-8")
    assert bare.ok("personas", "add", str(tmp_path / "net.luciform")).out == "Added ../R/C.\n"
    assert {path.name for path in home.rglob("*.luciform")} == {"TCP-IP.luciform", "R-C.luciform"}
    assert bare.ok("personas", "remove", "../R/C").out == "Removed ../R/C.\n"


def test_a_projects_one_is_listed_and_hidden_ones_are_reported(bare: Cli) -> None:
    folder = bare.workspace / ".ragforge" / "personas"
    folder.mkdir(parents=True)
    (folder / "dev.luciform").write_text("<x name='Dev'>project</x>", encoding="utf-8")
    (dev,) = [entry for entry in bare.ok("personas", "list", "--json").json if entry["name"] == "Dev"]
    assert (dev["origin"], dev["shadows"]) == ("project", ["shipped"])
    refused = bare.run("personas", "remove", "Dev")
    assert (refused.code, "belongs to the project" in refused.err) == (1, True)


def test_a_hostile_file_reaches_the_terminal_as_plain_text(bare: Cli, tmp_path: Path) -> None:
    (tmp_path / "evil.luciform").write_text(HOSTILE, encoding="utf-8")
    added = bare.ok("personas", "add", str(tmp_path / "evil.luciform"))
    assert added.out == "Added Evil.\n"
    assert "has no opening tag" in added.err
    for ran in (bare.ok("personas", "list"), bare.ok("personas", "show", "evil"), added):
        assert not any(character in ran.out + ran.err for character in "\x1b\x07\u202e")
    assert "\x1b" not in bare.ok("personas", "list", "--json").out


@pytest.mark.parametrize("name", ["..", "../../etc/passwd", "a/b", "no such"])
def test_no_name_leads_out_of_the_folders(bare: Cli, name: str) -> None:
    for command in ("show", "remove"):
        assert bare.run("personas", command, name).code == 1
    assert bare.run("personas", "add", name).code == 1


def test_the_check_of_a_persona_shows_the_users_name_and_not_its_text(bare: Cli, home: Path, tmp_path: Path) -> None:
    text = "<x name='Vega' description='Helps {USER_NAME}' greeting='Hi {USER_NAME}'>{USER_NAME} calls</x>\n"
    (tmp_path / "vega.luciform").write_text(text, encoding="utf-8")
    (home / "config.yaml").write_text("user: {name: Ada}\n", encoding="utf-8")
    added = bare.ok("personas", "add", str(tmp_path / "vega.luciform"), "--json").json
    (listed,) = [entry for entry in bare.ok("personas", "list", "--json").json if entry["name"] == "Vega"]
    shown = bare.ok("personas", "show", "Vega", "--json").json
    assert shown.pop("text") == text
    assert shown == listed == added
    assert (shown["description"], shown["greeting"]) == ("Helps Ada", "Hi Ada")
    assert bare.ok("personas", "show", "Vega").out == text
    table = bare.ok("personas", "list").out
    assert "Helps Ada" in table
    assert "{USER_NAME}" not in table


def test_a_field_is_added_by_its_entry_in_the_table(bare: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What reads, lists, previews and drafts personas loops over the table, so a field needs no other code."""
    monkeypatch.setitem(FIELDS, "mood", PersonaField(words=("mood", "humeur"), label="mood", limit=12))
    monkeypatch.setitem(READERS, "mood", lambda text: (text.lower(), "that is no mood" if text.isdigit() else ""))
    brief = PersonaBrief.of({"name": "Vega", "tone": "dry", "mood": "Calm <&> bright"})
    assert brief.answers()["mood"] == "Calm <&> bright"
    draft = template(brief, "Ada")
    persona = persona_of(draft.encode(), "other", "own", "")
    assert (persona.fields.others, persona.diagnostics) == ({"mood": "calm <&> bri"}, ())
    assert ("mood", "calm <&> bri") in list(facts(persona.info("Ada")))
    source = tmp_path / "Vega.luciform"
    source.write_text("<x name='Vega'><humeur>7</humeur></x>")
    bare.ok("personas", "add", str(source))
    shown = bare.ok("personas", "show", "Vega", "--json").json
    assert (shown["mood"], "others" in shown) == ("7", False)
    assert [remark["message"] for remark in shown["remarks"]] == ["that is no mood"]
