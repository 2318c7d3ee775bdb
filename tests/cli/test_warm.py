"""Commands with an engine host: they behave as without one, and only what needs a model starts it."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from ragforge_tui.graph import GraphTarget
from ragforge_tui.settings.load import load
from ragforge_tui.settings.schema import Loaded, Paths
from tests.cli.conftest import Cli
from tests.cli.test_ask import ended
from tests.conftest import EMBEDDED
from tests.support.hosts import end_host, host_of
from tests.support.model_script import Script, Step


@pytest.fixture
def graph_target(embedded_paths: Paths) -> GraphTarget:
    """The embedded graph alone: no dialect is involved."""
    return EMBEDDED


@pytest.fixture
def hosted(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> Iterator[Loaded]:
    """Settings with a host."""
    monkeypatch.setenv("RAGFORGE_KEEP_WARM_MINUTES", "30")
    loaded = load()
    try:
        yield loaded
    finally:
        end_host(loaded)


def test_ask_starts_a_host_that_other_commands_use(cli: Cli, hosted: Loaded) -> None:
    """Their engine is in another process: `restore` has to recognise its NotFoundError and look among the deleted."""
    assert cli.ok("sessions", "--json").json == []
    assert host_of(hosted) is None, "it needs no model"
    assert "the next chat starts it" in cli.run("doctor").out
    events = cli.ok("ask", "--json", "First").events
    assert events[-1]["type"] == "turn_completed"
    uuid = events[-1]["conversation_id"]
    host = host_of(hosted)
    assert host is not None
    assert str(host.pid) in cli.run("doctor", "--json").json["sections"]["engine"]["host"]
    assert f"restore {uuid[:8]}" in cli.ok("delete", uuid[:8]).out
    cli.ok("restore", uuid[:8])
    assert [each["uuid"] for each in cli.ok("sessions", "--json").json] == [uuid]
    cli.ok("delete", uuid[:8])
    cli.ok("delete", "--now", uuid[:8])
    assert cli.run("restore", uuid[:8]).code == 1
    assert host_of(hosted) == host


@pytest.mark.http
@pytest.mark.slow
def test_ctrl_c_stores_the_partial_answer_of_a_forked_engine(cli: Cli, hosted: Loaded, model: Script) -> None:
    model.script([Step(when="tools", text="Half an answer, " * 100, delay=0.1)])
    with ended(cli.start("ask", "--json", "Go")) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if b'"text_delta"' in line:
                break
        os.kill(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert b'"type":"turn_cancelled"' in out.splitlines()[-1]
    shown = cli.ok("show", "--json", cli.ok("sessions", "--json").json[0]["uuid"]).json
    assert shown["messages"][-1]["content"].startswith("Half an")
    assert shown["messages"][-1]["state"] == "interrupted"
    assert host_of(hosted) is not None
