"""`graph` and `doctor`: where the memory is, reading it, and what is wrong."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from ragforge_tui.graph import GraphTarget
from ragforge_tui.settings.schema import Paths
from tests.cli.conftest import Cli
from tests.conftest import ONE_BACKEND
from tests.support.model_script import Script
from tests.support.sizes import CONTENTS


def test_status_shows_where_and_how(cli: Cli, graph_target: GraphTarget) -> None:
    cli.ok("ask", "Where do lanterns hang?")
    facts = cli.ok("graph", "status", "--json").json
    assert facts["running"] is True
    assert facts["uri"].startswith("bolt://")
    assert facts["nodes"]["Message"] >= 2
    said = cli.ok("graph", "status").out
    assert facts["uri"] in said
    assert graph_target.chosen_by != "test" or "NEO4J_URI" in said


@pytest.mark.skipif(CONTENTS == "hybrid", reason="is about texts in the graph")
def test_query_reads_and_does_not_write(cli: Cli) -> None:
    cli.ok("ask", "Where do lanterns hang?")
    query = "MATCH (m:Message {role: 'user'}) RETURN m.content AS content, m.turn_index AS turn, null AS nothing"
    assert cli.ok("graph", "query", "--json", query).json == [
        {"content": "Where do lanterns hang?", "turn": 1, "nothing": None}
    ]
    assert cli.ok("graph", "query", query).out.splitlines()[1].split() == [
        "Where",
        "do",
        "lanterns",
        "hang?",
        "1",
        "null",
    ]
    assert cli.ok("graph", "query", "MATCH (n:Nothing) RETURN n").out == "No rows.\n"
    for statement in ("CREATE (n:Written) RETURN n", "MATCH (n) DETACH DELETE n", "this is no Cypher"):
        ran = cli.run("graph", "query", statement)
        assert (ran.code, ran.out) == (1, ""), ran
        assert ran.err.startswith("ragforge-chat: ")
    assert cli.ok("graph", "query", "--json", "MATCH (n:Written) RETURN count(n) AS n").json == [{"n": 0}]


def test_doctor_finds_nothing_wrong_and_shows_no_secret(cli: Cli, graph_target: GraphTarget) -> None:
    ran = cli.ok("doctor")
    assert re.search(r"problems\n +none found", ran.out)
    if graph_target.password:
        assert graph_target.password not in ran.out
        assert graph_target.password not in cli.ok("config", "show").out
    facts = cli.ok("doctor", "--json").json
    sections = {
        "program",
        "terminal",
        "settings",
        "folders",
        "engine",
        "commands",
        "model",
        "network",
        "code",
        "graph",
        "memory",
    }
    assert set(facts["sections"]) == sections
    assert set(facts["sections"]["code"].values()) == {"on", "not indexed"}


@ONE_BACKEND
def test_doctor_shortens_a_path_in_the_home_folder_and_no_other(
    cli: Cli, graph_paths: Paths, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = str(graph_paths.data)
    monkeypatch.setenv("HOME", data[:-1])
    assert f" {data}" in cli.ok("doctor").out
    monkeypatch.setenv("HOME", str(Path(data).parent))
    assert data not in cli.ok("doctor").out


@pytest.mark.slow
@ONE_BACKEND
def test_an_embedding_model_that_makes_no_vectors_is_said_by_doctor_and_ask(
    cli: Cli, model: Script, tmp_path: Path
) -> None:
    config = tmp_path / "config.yaml"
    settings = yaml.safe_load(config.read_text())
    settings["agent"]["memory"]["embeddings"] |= {"enabled": True, "model": "openai/gone"}
    config.write_text(yaml.safe_dump(settings))
    said = "The embedding model openai/gone failed"
    assert cli.ok("ask", "Hello").err.count(said) == 1
    ran = cli.run("doctor")
    assert ran.code == 1 and said in ran.out.partition("problems")[2]


def test_a_graph_that_is_not_there(bare: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEO4J_URI", "bolt://127.0.0.1:9")
    monkeypatch.setenv("RAGFORGE_MODEL", "offline")
    for command in (["sessions"], ["graph", "status"], ["graph", "query", "RETURN 1"]):
        ran = bare.run(*command)
        assert (ran.code, ran.out) == (1, ""), ran
        assert "127.0.0.1:9" in ran.err
    ran = bare.run("doctor")
    assert ran.code == 1
    assert "graph: " in ran.out.partition("problems")[2]


def test_ask_continues_without_the_graph(bare: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEO4J_URI", "bolt://127.0.0.1:9")
    ran = bare.ok("ask", "--model", "offline", "What can you do?")
    assert "offline assistant" in ran.out
    assert ran.err.count("127.0.0.1:9") == 1
    assert "journal" in ran.err


def test_status_and_stop_start_nothing(bare: Cli) -> None:
    facts = bare.ok("graph", "status", "--json").json
    assert (facts["name"], facts["running"]) == ("embedded", False)
    assert "not running" in bare.ok("graph", "stop").out


@pytest.fixture
def said_elsewhere(cli: Cli, graph_paths: Paths, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cli]:
    """Something was said while a Neo4j was away that is not the graph in use now."""
    shutil.rmtree(Path(graph_paths.state, "journal"), ignore_errors=True)
    with monkeypatch.context() as patched:
        patched.setenv("NEO4J_URI", "bolt://ada:secret-of-ada@127.0.0.1:9")
        cli.ok("ask", "Where do lanterns hang?")
        ran = cli.run("graph", "status")
        assert ran.code == 1
        assert "bolt://127.0.0.1:9" in ran.out
        assert "secret-of-ada" not in ran.out + ran.err
    yield cli
    shutil.rmtree(Path(graph_paths.state, "journal"), ignore_errors=True)


def test_journals_of_another_graph_are_listed(said_elsewhere: Cli) -> None:
    cli = said_elsewhere
    cli.ok("ask", "What is near?")
    (info,) = cli.ok("graph", "journal", "--json").json
    assert (info["identity"], info["address"], info["refused"]) == ("", "bolt://127.0.0.1:9", 0)
    assert info["records"] > 2
    for command in (["graph", "journal"], ["graph", "status"]):
        said = cli.ok(*command).out
        assert "bolt://127.0.0.1:9" in said
        assert str(info["records"]) in said
        assert info["key"][:11] in said
    assert cli.ok("graph", "status", "--json").json["journals"] == [info]
    ran = cli.run("doctor")
    assert ran.code == 1
    problems = ran.out.partition("problems")[2]
    assert f"journal: {info['records']} records for bolt://127.0.0.1:9" in problems
    assert "secret-of-ada" not in ran.out


def test_a_journal_is_moved_to_another_graph_on_request(said_elsewhere: Cli) -> None:
    cli = said_elsewhere
    (info,) = cli.ok("graph", "journal", "--json").json
    ran = cli.run("graph", "journal", "write", "at-")
    assert (ran.code, ran.out) == (1, "")
    assert f"Write {info['records']} records for bolt://127.0.0.1:9" in ran.err
    assert "--yes" in ran.err
    assert cli.ok("sessions", "--json").json == []
    assert f"{info['records']} records written" in cli.ok("graph", "journal", "write", "at-", "--yes").out
    (moved,) = cli.ok("sessions", "--json").json
    assert "lanterns" in cli.ok("show", moved["uuid"]).out
    assert cli.ok("graph", "journal").out == "The journals are empty.\n"
    assert cli.run("graph", "journal", "write", "at-", "--yes").code == 1
    cli.ok("doctor")
