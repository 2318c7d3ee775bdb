"""Own personas are saved, edited, deleted and brought back, and no name leads out of their folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragforge_tui.personas import PersonaLibrary
from ragforge_tui.personas.user_personas import UserPersonas, file_name
from ragforge_tui.shared.errors import NotFoundError, RagforgeError


@pytest.fixture
def desk(tmp_path: Path) -> UserPersonas:
    return UserPersonas(PersonaLibrary(tmp_path / "own"))


@pytest.mark.parametrize("name", ["", "\u200b", " \n"])
def test_names_that_cannot_be_shown_are_refused(desk: UserPersonas, tmp_path: Path, name: str) -> None:
    with pytest.raises(RagforgeError):
        desk.save("text", name)
    with pytest.raises(RagforgeError):
        file_name(name)
    assert list(tmp_path.rglob("*.luciform")) == []


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("TCP/IP", "TCP-IP"),
        ("../../evil", "evil"),
        ("..", "persona"),
        ("/", "persona"),
        (".hidden", "hidden"),
        ("a\\b", "a-b"),
        ("Who? Me: *", "Who? Me: *"),
        ("a..b", "a..b"),
        ("\U0001f701" * 60, "\U0001f701" * 50),
    ],
)
def test_a_name_stays_and_its_file_is_called_as_files_can_be(
    desk: UserPersonas, tmp_path: Path, name: str, file: str
) -> None:
    saved = desk.save(f"<x name='{name}'>hi</x>", name)
    assert saved.name == name
    assert list(tmp_path.rglob("*.luciform")) == [tmp_path / "own" / f"{file}.luciform"]
    assert desk.delete(name).name == name
    assert desk.restore(name).name == name


def test_a_name_in_the_file_leads_nowhere_either(desk: UserPersonas, tmp_path: Path) -> None:
    (tmp_path / "fine.luciform").write_text("<x name='../../evil'>hi</x>", encoding="utf-8")
    assert Path(desk.add(tmp_path / "fine.luciform").path) == tmp_path / "own" / "evil.luciform"


def test_names_whose_files_would_be_called_alike_do_not_meet(desk: UserPersonas) -> None:
    desk.save("<x name='a/b'>one</x>", "a/b")
    desk.save("<x name='a-b'>two</x>", "a-b")
    desk.delete("a/b")
    desk.save("<x name='a\\b'>three</x>", "a\\b")
    assert desk.restore().text == "<x name='a/b'>one</x>"
    texts = [desk.delete(name).text for name in ("a/b", "a-b", "a\\b")]
    assert texts == ["<x name='a/b'>one</x>", "<x name='a-b'>two</x>", "<x name='a\\b'>three</x>"]


def test_files_are_taken_in_byte_for_byte(desk: UserPersonas, tmp_path: Path) -> None:
    raw = "\ufeff<x name='Vega'>\r\n∆</x>".encode("utf-16")
    (tmp_path / "a.luciform").write_bytes(raw)
    assert Path(desk.add(tmp_path / "a.luciform").path).read_bytes() == raw
    with pytest.raises(RagforgeError, match="already"):
        desk.add(tmp_path / "a.luciform")
    assert desk.add(tmp_path / "a.luciform", replace=True).name == "Vega"
    with pytest.raises(RagforgeError, match="cannot be read"):
        desk.add(tmp_path / "none.luciform")


def test_an_edited_one_keeps_its_file_under_a_new_name(desk: UserPersonas) -> None:
    first = desk.save("<x name='Vega'>a</x>", "Vega")
    desk.save("<x name='Other'>o</x>", "Other")
    second = desk.save("<x name='Lyra'>b</x>", "Vega", instead_of="Vega")
    assert (second.name, second.path) == ("Lyra", first.path)
    with pytest.raises(RagforgeError, match="already"):
        desk.save("<x name='Other'>b</x>", "Lyra", instead_of="Lyra")


def test_a_shipped_one_is_edited_as_an_own_copy_that_hides_it(desk: UserPersonas, tmp_path: Path) -> None:
    saved = desk.save("<x name='Dev'>mine</x>", "Dev", instead_of="Dev")
    assert saved.origin == "own"
    assert PersonaLibrary(tmp_path / "own").load("Dev").shadows == ("shipped",)


def test_delete_and_undo(desk: UserPersonas, tmp_path: Path) -> None:
    desk.save("a", "Vega")
    desk.save("b", "Lyra")
    desk.delete("vega")
    desk.delete("lyra")
    assert desk.restore("Vega").text == "a"
    assert desk.restore().text == "b"
    with pytest.raises(NotFoundError):
        desk.restore()
    with pytest.raises(RagforgeError, match="comes with the program"):
        desk.delete("Dev")


def test_undo_overwrites_nothing(desk: UserPersonas) -> None:
    desk.save("a", "Vega")
    desk.delete("Vega")
    desk.save("b", "Vega")
    with pytest.raises(RagforgeError, match="Another persona is now named Vega"):
        desk.restore()


@pytest.mark.parametrize("codec", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_an_edited_file_keeps_its_encoding(desk: UserPersonas, tmp_path: Path, codec: str) -> None:
    before = "<x name='Vega'>\r\n∆ é</x>"
    (tmp_path / "a.luciform").write_bytes(before.encode(codec))
    desk.add(tmp_path / "a.luciform")
    after = before.replace("∆", "⛧\u200d🜂")
    saved = desk.save(after, "Vega", instead_of="vega")
    assert saved.text == after
    assert Path(saved.path).read_bytes() == after.encode(codec)


def test_an_edited_file_without_a_mark_gets_none(desk: UserPersonas, tmp_path: Path) -> None:
    (tmp_path / "a.luciform").write_bytes("<x name='Vega'>∆</x>".encode("utf-16-be"))
    desk.add(tmp_path / "a.luciform")
    saved = desk.save("<x name='Vega'>⛧</x>", "Vega", instead_of="Vega")
    assert Path(saved.path).read_bytes() == "<x name='Vega'>⛧</x>".encode("utf-16-be")


def test_an_own_copy_is_written_as_the_project_s_file_is(tmp_path: Path) -> None:
    folder = tmp_path / ".ragforge" / "personas"
    folder.mkdir(parents=True)
    (folder / "Guide.luciform").write_bytes("<x>hi</x>".encode("utf-16"))
    desk = UserPersonas(PersonaLibrary(tmp_path / "own", tmp_path))
    saved = desk.save("<x>ho</x>", "Guide", instead_of="Guide")
    assert (saved.origin, Path(saved.path).read_bytes()) == ("own", "<x>ho</x>".encode("utf-16"))
