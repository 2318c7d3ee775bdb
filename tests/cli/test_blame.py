"""`blame`: from a line to the talk that made it, as its user runs it."""

from __future__ import annotations

import pytest

from ragforge_tui.graph import GraphTarget
from ragforge_tui.settings.schema import Paths
from tests.cli.conftest import Cli
from tests.conftest import EMBEDDED
from tests.support.model_script import Call, Step
from tests.support.openai_server import OpenAIServer
from tests.support.repositories import git, repository


@pytest.fixture
def graph_target(embedded_paths: Paths) -> GraphTarget:
    """The embedded graph alone: tests/conversation/test_commits.py asks both."""
    return EMBEDDED


def test_from_a_line_to_the_turn(cli: Cli, model: OpenAIServer) -> None:
    repository(cli.workspace)
    write = Call(name="create_file", arguments={"path": "note.txt", "content": "hello\n"})
    model.script([Step(when="tools", tool_calls=[write]), Step(when="tools", text="Done.")])
    cli.ok("ask", "--yes", "Write a note")
    assert "The line is not committed yet." in cli.ok("blame", "note.txt:1").out
    git(cli.workspace, "add", "note.txt")
    git(cli.workspace, "commit", "--quiet", "-m", "Add a \x1b[31mnote")
    printed = cli.ok("blame", "note.txt:1").out
    assert "note.txt:1  hello" in printed and "Ada" in printed and "> Write a note" in printed
    assert "ragforge-chat --resume" in printed and "\x1b[31m" not in printed
    found = cli.ok("blame", "note.txt", "--json").json
    assert found["path"] == "note.txt"
    assert found["entries"][0]["turn"]["turn_index"] == 1
    assert found["entries"][0]["commit"]["hash"] == git(cli.workspace, "rev-parse", "HEAD")
    assert "No conversation" in cli.ok("blame", "start.txt:1").out
    assert cli.run("blame", "note.txt:9").code == 1
    assert cli.run("blame", "note.txt:0").code == 2
    assert cli.run("blame", "gone.txt").code == 1
