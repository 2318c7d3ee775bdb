"""The command `memory`: what was said is listed, pinned, forgotten and taken back."""

from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import Cli
from tests.conftest import ONE_BACKEND
from tests.support.model_script import Script

WISH = "Never use getattr loops in tests."


@ONE_BACKEND
def test_what_was_said_is_listed_and_changed(cli: Cli, model: Script) -> None:
    assert "Nothing is remembered." in cli.ok("memory").out
    assert cli.ok("memory", "list", "--json").json == []
    cli.ok("ask", f"Fix it. {WISH} Answer me in German from now on.")
    wishes = {one["text"]: one for one in cli.ok("memory", "list", "--json", "--kind", "wish").json}
    assert set(wishes) == {WISH, "Answer me in German from now on."}
    assert [one["scope"] for one in wishes.values()].count("user") == 1
    assert cli.ok("memory", "--kind", "decision", "--json").json == []
    elsewhere = cli.ok("memory", "--folder", str(Path.home()), "--json").json
    assert [one["text"] for one in elsewhere] == ["Answer me in German from now on."], "it holds everywhere"

    ref = wishes[WISH]["uuid"][:8]
    assert cli.ok("memory", "pin", ref, "--json").json["pinned"] is True
    assert "pinned" in cli.ok("memory").out
    assert f"Released: “{WISH}”." in cli.ok("memory", "pin", ref).out
    assert cli.run("memory", "confirm", ref).code == 1
    forgotten = cli.ok("memory", "forget", ref).out
    assert f"Forgotten: “{WISH}”." in forgotten and "stay in the conversation" in forgotten
    assert len(cli.ok("memory", "--json").json) == 1
    assert {one["state"] for one in cli.ok("memory", "--all", "--json").json} == {"valid", "forgotten"}
    # Nothing of it is sent any more.
    cli.ok("ask", "Go on.")
    assert WISH not in str(model.chats()[-1]["messages"][1])
    assert f"Taken back: forgotten “{WISH}”." in cli.ok("memory", "undo").out
    cli.ok("ask", "Go on.")
    assert f"- {WISH}" in model.chats()[-1]["messages"][1]["content"]
    assert cli.run("memory", "pin", "nothing").code == 1
    assert cli.run("memory", "list", "--kind", "rule").code == 2
