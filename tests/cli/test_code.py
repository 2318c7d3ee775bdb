"""Code from the command line: searching it, and the conversations about a piece of it."""

from __future__ import annotations

from pathlib import Path

import yaml

from tests.cli.conftest import Cli
from tests.conftest import ONE_BACKEND

SOURCE = 'class Session:\n    """A connection."""\n\n    def send_message(self, text):\n        """Send a message."""\n'


@ONE_BACKEND
def test_code_is_found_and_the_talk_about_it(cli: Cli) -> None:
    (cli.workspace / "session.py").write_text(SOURCE)
    asked = cli.ok("ask", "--json", "Why does `Session.send_message` fail?").events[-1]
    found = cli.ok("code", "send", "a", "message", "--kind", "method", "--json").json
    assert [set(one) for one in found] == [{"uuid", "name", "kind", "file", "start_line", "end_line"}]
    assert found[0] | {"uuid": ""} == {
        "uuid": "",
        "name": "send_message",
        "kind": "method",
        "file": "session.py",
        "start_line": 4,
        "end_line": 5,
    }
    assert "session.py:4-5" in cli.ok("code", "send message").out
    for name in ("Session.send_message", "session.py:send_message", "session.py:5", found[0]["uuid"]):
        [about] = cli.ok("code", "conversations", name, "--json").json
        assert (about["conversation_id"], about["turn_index"]) == (asked["conversation_id"], 1)
        assert about["title"] == "Why does `Session.send_message` fail?"
    assert asked["conversation_id"][:8] in cli.ok("code", "conversations", "send_message").out
    # Its class too, also for a statement written by hand.
    assert asked["conversation_id"][:8] in cli.ok("code", "conversations", "Session").out
    statement = "MATCH (:Scope {name: 'Session'})<-[:REFERENCES_CODE]-(m:Message) RETURN m.turn_index AS turn"
    assert cli.ok("graph", "query", statement, "--json").json == [{"turn": 1}]
    (cli.workspace / "other.py").write_text("def unrelated():\n    pass\n")
    assert "No conversation is about it yet." in cli.ok("code", "conversations", "unrelated").out
    unknown = cli.run("code", "conversations", "nothing_of_this_name")
    assert (unknown.code, unknown.out) == (1, "")
    assert "no code named" in unknown.err


@ONE_BACKEND
def test_code_that_is_not_indexed_is_said_to_be(cli: Cli, tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    settings = yaml.safe_load(config.read_text())
    settings["agent"]["code"] = {"enabled": False}
    config.write_text(yaml.safe_dump(settings))
    ran = cli.run("code", "anything")
    assert ran.code == 1
    assert "agent.code.enabled" in ran.err


def test_a_query_is_needed(bare: Cli) -> None:
    assert bare.run("code").code == 2
    assert bare.run("code", " ").code == 2
