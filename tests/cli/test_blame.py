"""`blame`: from a line to the talk that made it, as its user runs it."""

from __future__ import annotations

import pytest

from ragforge_tui.graph import GraphTarget
from ragforge_tui.settings.schema import Paths
from tests.cli.conftest import Cli
from tests.conftest import EMBEDDED
from tests.support.model_script import Call, Script, Step
from tests.support.repositories import git, repository


@pytest.fixture
def graph_target(embedded_paths: Paths) -> GraphTarget:
    """The embedded graph alone: tests/conversation/test_commits.py asks both."""
    return EMBEDDED


def test_from_a_line_to_the_turn(cli: Cli, model: Script) -> None:
    repository(cli.workspace)
    write = Call(name="create_file", arguments={"path": "note.txt", "content": "hello\n"})
    model.script([Step(when="tools", tool_calls=[write]), Step(when="tools", text="Done.")])
    cli.ok("ask", "--yes", "Write a note")
    assert "The line is not committed yet." in cli.ok("blame", "note.txt:1").out
    git(cli.workspace, "add", "note.txt")
    git(cli.workspace, "commit", "--quiet", "-m", "Add a \x1b[31mnote")
    printed = cli.ok("blame", "note.txt:1").out
    assert "note.txt:1  hello" in printed and "Ada" in printed and "\x1b[31m" not in printed
    assert printed.index("written in") < printed.index("> Write a note") < printed.index("commit ")
    assert "ragforge-chat --resume" in printed and "committed in" not in printed
    (cli.workspace / "note.txt").write_text("hello\nby hand\n")
    first, second = cli.ok("blame", "note.txt", "--json").json
    assert first == {
        "line": 1,
        "conversation_id": first["conversation_id"],
        "turn_index": 1,
        "commit": git(cli.workspace, "rev-parse", "HEAD"),
        "commit_conversation_id": None,
        "commit_turn_index": None,
        "decision": None,
    }
    assert second["line"] == 2 and {*second.values()} == {2, None}
    assert cli.ok("blame", "note.txt:2", "--json").json == [second]
    whole = cli.ok("blame", "note.txt").out
    assert f"  1  {first['conversation_id'][:8]} t1" in whole and "  2  not by a turn   not committed" in whole
    assert "The line is not by a turn" in cli.ok("blame", "start.txt:1").out
    assert cli.run("blame", "note.txt:9").code == 1
    assert cli.run("blame", "note.txt:0").code == 2
    assert cli.run("blame", "gone.txt").code == 1
