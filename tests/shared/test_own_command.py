"""The command that is printed to start the program again works where it is printed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import ragforge_tui
from ragforge_tui.shared.own_command import own_command, resume_command


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The script of a clone, which runs in the clone's folder, and is not on the PATH."""
    path = tmp_path / "a clone" / ".venv" / "bin" / "ragforge-chat"
    path.parent.mkdir(parents=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    monkeypatch.chdir(tmp_path / "a clone")
    monkeypatch.setenv("PATH", "/usr/bin")
    monkeypatch.setattr(sys, "argv", [str(path)])
    return path


def test_a_script_that_is_not_on_the_path_is_named_by_its_place(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert own_command() == ".venv/bin/ragforge-chat"
    assert resume_command("3f2a5b6c-0000") == ".venv/bin/ragforge-chat --resume 3f2a5b6c"
    monkeypatch.setattr(sys, "argv", [".venv/bin/ragforge-chat"])
    assert own_command() == ".venv/bin/ragforge-chat"
    monkeypatch.chdir(script.parent)
    monkeypatch.setattr(sys, "argv", [str(script)])
    assert own_command() == f"'{script}'"


def test_a_script_on_the_path_is_named_by_its_name(
    script: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = tmp_path / "bin" / "ragforge-chat"
    link.parent.mkdir()
    link.symlink_to(script)
    monkeypatch.setenv("PATH", str(link.parent))
    assert own_command() == "ragforge-chat"


def test_another_installation_on_the_path_is_not_meant(
    script: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "bin" / "ragforge-chat"
    other.parent.mkdir()
    other.write_text("#!/bin/sh\n")
    other.chmod(0o755)
    monkeypatch.setenv("PATH", str(other.parent))
    assert own_command() == ".venv/bin/ragforge-chat"


def test_the_module_is_named_with_its_interpreter(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", str(script.parent / "python"))
    monkeypatch.setattr(sys, "argv", [str(Path(ragforge_tui.__file__).with_name("__main__.py"))])
    assert own_command() == ".venv/bin/python -m ragforge_tui"


def test_another_program_names_the_installed_one(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for program in ("/lib/pytest/__main__.py", "/home/me/report.py", "-c", ""):
        monkeypatch.setattr(sys, "argv", [program])
        assert own_command() == "ragforge-chat"
