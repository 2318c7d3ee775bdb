"""`graph contents`, `graph check` and `doctor`: texts in files, moved, lost and found again."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.support.sizes import CONTENTS


@pytest.mark.skipif(CONTENTS == "hybrid", reason="begins with texts in the graph")
def test_texts_move_there_and_back_and_losses_are_reported(cli: Cli) -> None:
    cli.ok("ask", "Where do lanterns hang?")
    (said,) = cli.ok("sessions", "--json").json
    shown = cli.ok("show", said["uuid"]).out
    before = cli.ok("graph", "contents", "--json").json
    assert before["in_files"] == 0 < before["in_graph"]
    ran = cli.ok("graph", "contents", "--to", "files")
    assert f"Texts moved: {before['in_graph']} messages" in ran.out
    assert "agent.memory.persistence.type is graph, not hybrid" in ran.out
    assert cli.ok("show", said["uuid"]).out == shown
    moved = cli.ok("graph", "contents", "--json").json
    assert (moved["in_files"], moved["in_graph"]) == (before["in_graph"], 0)
    assert cli.ok("graph", "check").out.splitlines() == [
        "All texts in files are there and unchanged.",
    ]
    cli.ok("doctor")

    file = Path(moved["folder"], said["uuid"], "texts.jsonl")
    kept = file.read_bytes()
    file.write_bytes(kept.replace(b"lanterns hang?", b"lanterns hung?"))
    ran = cli.run("graph", "check")
    assert ran.code == 1
    assert "content" in ran.out and str(file) in ran.out
    ran = cli.run("doctor")
    assert ran.code == 1
    assert "contents: 1 text cannot be read" in ran.out.partition("problems")[2]
    (lost,) = cli.run("graph", "check", "--json").json["lost_texts"]
    assert (lost["conversation_id"], lost["field"], lost["loss"]) == (said["uuid"], "content", "changed")
    assert "Text not available" in cli.ok("show", said["uuid"]).out
    assert "1 stay where they are" in cli.ok("graph", "contents", "--to", "graph").out
    assert file.exists()

    file.write_bytes(kept)
    assert cli.ok("show", said["uuid"]).out == shown
    ran = cli.ok("graph", "contents", "--to", "graph")
    assert "Texts moved: 1 messages" in ran.out
    assert not file.exists()
    assert cli.ok("show", said["uuid"]).out == shown
