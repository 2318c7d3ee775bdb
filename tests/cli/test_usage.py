"""What needs no graph: help, wrong usage, settings, personas, and failing without a traceback."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from ragforge_tui import __version__
from ragforge_tui.cli.app import with_bare_resume
from ragforge_tui.llm import Connections
from ragforge_tui.settings.keys import example_yaml
from tests.cli.conftest import ROOT, Cli
from tests.support.sizes import paths_under

COMMANDS = {
    "ask",
    "sessions",
    "show",
    "search",
    "export",
    "import",
    "archive",
    "delete",
    "graph",
    "doctor",
    "config",
    "usage",
}


def test_version_both_ways(bare: Cli) -> None:
    line = f"ragforge-chat {__version__}\n"
    assert bare.ok("--version").out == line
    fast = subprocess.run([sys.executable, "-m", "ragforge_tui.cli", "--version"], capture_output=True, cwd=ROOT)
    assert (fast.returncode, fast.stdout.decode()) == (0, line)


def test_help_lists_the_commands(bare: Cli) -> None:
    words = set(bare.ok("--help").out.split())
    assert words >= COMMANDS
    for command in COMMANDS:
        assert bare.ok(command, "--help").out.startswith("Usage: ")


@pytest.mark.parametrize(
    "arguments",
    [
        ["nonsense"],
        ["--nonsense"],
        ["sessions", "--status", "lost"],
        ["sessions", "--limit", "0"],
        ["sessions", "--limit", "many"],
        ["show"],
        ["search"],
        ["--continue", "--resume", "abc"],
        ["--resume", "abc", "sessions"],
    ],
)
def test_wrong_usage(bare: Cli, arguments: list[str]) -> None:
    ran = bare.run(*arguments)
    assert (ran.code, ran.out) == (2, ""), ran
    assert ran.err


def test_the_chat_needs_a_terminal(bare: Cli) -> None:
    ran = bare.run()
    assert ran.code == 2
    assert "ragforge-chat ask" in ran.err


@pytest.mark.parametrize(
    ("given", "read"),
    [
        (["--resume"], ["--resume="]),
        (["-r"], ["--resume="]),
        (["-r", "abc"], ["-r", "abc"]),
        (["--resume=abc"], ["--resume=abc"]),
        (["-r", "--model", "x"], ["--resume=", "--model", "x"]),
        (["--model", "x", "--resume"], ["--model", "x", "--resume="]),
        (["ask", "-r", "--json"], ["ask", "-r", "--json"]),
    ],
)
def test_resume_may_are_alone(given: list[str], read: list[str]) -> None:
    assert with_bare_resume(given, COMMANDS) == read


def test_wrong_settings_are_one_sentence(bare: Cli, home: Path) -> None:
    (home / "config.yaml").write_text("model: {nmae: x}\n")
    for command in (["sessions"], ["ask", "hi"], ["config", "show"]):
        ran = bare.run(*command)
        assert (ran.code, ran.out) == (1, ""), ran
        assert len(ran.err.splitlines()) == 1
        assert "model.nmae" in ran.err
    ran = bare.run("doctor")
    assert ran.code == 1
    assert "model.nmae" in ran.out
    assert bare.run("--config", "none.yaml", "sessions").code == 1
    assert bare.run("--workspace", "none", "sessions").code == 1


def test_config_init_path_and_show(bare: Cli, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = home / "config.yaml"
    assert bare.ok("config", "path").out == f"{file}\n"
    bare.ok("config", "init")
    assert file.read_text() == example_yaml()
    assert file.stat().st_mode & 0o777 == 0o600
    file.write_text("user: {name: Ada}\n")
    ran = bare.run("config", "init")
    assert (ran.code, file.read_text()) == (1, "user: {name: Ada}\n")
    monkeypatch.setenv("NEO4J_URI", "bolt://neo4j:hunter2@localhost:7687")
    monkeypatch.setenv("RAGFORGE_API_KEY", "hunter3")
    ran = bare.ok("config", "show")
    assert "hunter" not in ran.out
    assert 'graph.uri: "bolt://localhost:7687"  # NEO4J_URI' in ran.out
    assert 'model.api_key: "(set)"  # RAGFORGE_API_KEY' in ran.out
    shown = bare.ok("config", "show", "--json").json
    assert shown["settings"]["user.name"] == "Ada"
    assert shown["origins"]["user.name"] == str(file)


def test_config_show_is_yaml(bare: Cli) -> None:
    assert yaml.safe_load(bare.ok("config", "show").out)["graph.heap_mb"] == 512


def test_config_init_where_a_variable_says(bare: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "new" / "mine.yaml"
    monkeypatch.setenv("RAGFORGE_CONFIG", str(target))
    bare.ok("config", "init")
    assert target.read_text() == example_yaml()


def test_personas(bare: Cli) -> None:
    listed = {entry["name"]: entry for entry in bare.ok("personas", "list", "--json").json}
    assert listed["Assistant"]["origin"] == "shipped"
    assert listed["Assistant"]["description"]
    assert "Assistant" in bare.ok("personas", "list").out
    assert bare.ok("personas", "show", "assistant").out.strip()
    ran = bare.run("personas", "show", "Nobody")
    assert (ran.code, ran.out) == (1, "")


def test_the_unexpected_goes_to_the_log(bare: Cli, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = "sk-" + "a1B2" * 8

    def broken(*_: object) -> None:
        raise ZeroDivisionError(secret)

    monkeypatch.setattr("ragforge_tui.cli.personas.PersonaLibrary.found", broken)
    ran = bare.run("personas", "list")
    assert (ran.code, ran.out) == (1, "")
    log = home / "state" / "logs" / "ragforge-chat.log"
    assert len(ran.err.splitlines()) == 1
    assert str(log) in ran.err
    assert "Traceback" in log.read_text()
    assert secret not in ran.err + log.read_text()


def test_a_state_folder_that_cannot_be_written(bare: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocked = tmp_path / "file"
    blocked.touch()
    monkeypatch.setenv("RAGFORGE_HOME", str(blocked))
    assert bare.ok("personas", "list").out
    ran = bare.run("doctor", "--model", "offline")
    assert ran.code == 1
    assert "Traceback" not in ran.err


def test_a_reader_that_has_enough(bare: Cli) -> None:
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "wb") as closed:
        run = subprocess.run(
            [sys.executable, "-m", "ragforge_tui.cli", "config", "show"],
            cwd=ROOT,
            stdout=closed,
            stderr=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
        )
    assert (run.returncode, run.stderr) == (0, b"")


def test_doctor_names_the_source_of_each_key_and_shows_none(
    bare: Cli, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "hunter2-of-no-known-shape"
    connections = Connections(paths_under(home))

    async def store() -> None:
        await connections.save("mistral", "", secret)
        await connections.save("openai", "", secret)

    asyncio.run(store())
    monkeypatch.setenv("OPENAI_API_KEY", secret)
    monkeypatch.setenv("NEO4J_URI", "bolt://127.0.0.1:9")
    ran = bare.run("doctor", "--json", "--model", "offline")
    model = ran.json["sections"]["model"]
    assert "connections.json, readable by you alone" in model["key of mistral"]
    assert model["key of openai"].startswith("OPENAI_API_KEY in the environment, which precedes the one in")
    assert secret not in ran.out + ran.err
    connections.file.chmod(0o644)
    ran = bare.run("doctor", "--json", "--model", "offline")
    assert any("others may read" in problem for problem in ran.json["problems"])
