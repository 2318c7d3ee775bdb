"""The workspace's own environment: told to the model, and first where commands look for programs."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragforge_tui.conversation import ConversationAgent
from ragforge_tui.conversation.approvals.reading_commands import READING, only_reads
from ragforge_tui.settings.schema import Loaded
from ragforge_tui.tools.sensitive import Guard
from ragforge_tui.tools.shell.search_path import program_folders
from tests.support.model_script import Script


def program(path: Path, text: str) -> None:
    """A program that says something."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\necho {text} $VIRTUAL_ENV\n")
    path.chmod(0o755)


@pytest.fixture
def folder(loaded: Loaded) -> Path:
    """A workspace with an environment for Python and one for Node."""
    folder = Path(loaded.workspace)
    program(folder / ".venv" / "bin" / "pytest", "own tests in")
    program(folder / "node_modules" / ".bin" / "eslint", "own linter")
    (folder / ".venv" / "pyvenv.cfg").write_text("home = /usr/bin\nversion = 3.11.7\n")
    (folder / "uv.lock").write_text("")
    (folder / "Makefile").write_text("V := 1\nall: test\ntest:\n\tpytest\ndocs-html: all\n.PHONY: all\n")
    return folder


async def test_it_is_told_and_its_programs_run(loaded: Loaded, folder: Path, server: Script) -> None:
    run = {"name": "run_command", "arguments": {"command": "pytest; eslint"}}
    async with ConversationAgent(loaded, approve_all=True) as agent:
        conversation = await agent.create_conversation()
        server.script([{"tool_calls": [run]}, {"text": "Green."}])
        await conversation.send_message("Run the tests.")
    first, second = server.chats()
    told = first["messages"][1]["content"]
    assert "Make targets: all, test, docs-html\n" in told
    assert "Python: .venv (3.11.7)\nFirst in the PATH of run_command: .venv/bin, node_modules/.bin\n" in told
    assert "Dependencies are managed by: uv (uv run, uv add)" in told
    assert f"own tests in {folder}/.venv\nown linter" in second["messages"][-1]["content"]
    async with ConversationAgent(loaded, approve_all=True) as again:
        conversation = await again.load_conversation(conversation.record.uuid)
        server.script([{"tool_calls": [run]}, {"text": "Still."}])
        await conversation.send_message("Again.")
        assert "own tests in" in server.chats()[-1]["messages"][-1]["content"]
        server.script([{"text": "I see."}])
        await conversation.run_command("command -v pytest || echo none")
        await conversation.wait_idle()
        await conversation.send_message("Seen?")
        assert f"{folder}/.venv" not in str(server.chats()[-1]["messages"][-1]), "the user's shell is not changed"


@pytest.mark.parametrize("name", sorted({name.split()[0] for name in READING} | {"git", "sed", "bash", "sudo"}))
def test_a_folder_with_a_program_of_the_systems_name_is_left_out(folder: Path, name: str) -> None:
    assert [path.name for path in program_folders(folder)] == ["bin", ".bin"]
    program(folder / ".venv" / "bin" / name, "mine")
    assert [path.name for path in program_folders(folder)] == [".bin"]


def test_what_lies_elsewhere_is_not_the_workspaces(folder: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    program(elsewhere / "bin" / "pytest", "foreign")
    (elsewhere / "pyvenv.cfg").write_text("")
    (folder / ".venv").rename(tmp_path / "gone")
    (folder / ".venv").symlink_to(elsewhere)
    assert [path.name for path in program_folders(folder)] == [".bin"]


def test_a_command_is_judged_by_the_program_that_runs(folder: Path) -> None:
    guard = Guard(folder, own=[folder.parent / "program"], home=folder.parent / "home")
    assert only_reads("ls", guard)
    program(folder / "node_modules" / ".bin" / "ls", "mine")
    assert only_reads("ls", guard), "the folder is left out, so it is the system's"
