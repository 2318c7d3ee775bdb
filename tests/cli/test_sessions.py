"""Stored conversations from the command line: found, shown, moved in and out, put away, brought back."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path

import pytest

from ragforge_tui.graph import GraphTarget, Store
from ragforge_tui.settings.load import load
from ragforge_tui.settings.schema import Paths
from ragforge_tui.shared.prompt_files import HISTORY
from ragforge_tui.tui.prompt.history import Entry, History
from tests.cli.conftest import Cli
from tests.conftest import ONE_BACKEND, open_graph
from tests.support.model_script import Call, Script, Step
from tests.support.records import conversation
from tests.support.stored_memory import remembered

FIELDS = {
    "uuid",
    "title",
    "status",
    "tags",
    "message_count",
    "created_at",
    "updated_at",
    "persona",
    "workspace",
}


def ask(cli: Cli, *arguments: str) -> str:
    """Hold a turn; the conversation's id."""
    return str(cli.ok("ask", "--json", *arguments).events[-1]["conversation_id"])


def ids(cli: Cli, *arguments: str) -> list[str]:
    return [entry["uuid"] for entry in cli.ok("sessions", "--json", *arguments).json]


def test_sessions_newest_first_and_filtered(cli: Cli) -> None:
    assert cli.ok("sessions").out == "No conversations.\n"
    first, second = ask(cli, "Where do lanterns hang?"), ask(cli, "How deep is the lake?")
    assert ids(cli) == [second, first]
    listed = cli.ok("sessions", "--json").json
    assert set(listed[0]) >= FIELDS
    assert listed[0]["status"] == "active"
    assert listed[0]["message_count"] == len(cli.ok("show", second, "--json").json["messages"])
    ask(cli, "--resume", first, "And at night?")
    assert ids(cli) == [first, second]
    assert ids(cli, "--order", "created") == [second, first]
    assert ids(cli, "--limit", "1") == [first]
    assert ids(cli, "--workspace", str(cli.workspace)) == [first, second]
    assert ids(cli, "--workspace", "/nowhere") == []
    assert ids(cli, "--query", "LANTERNS") == [first]
    assert ids(cli, "--tag", "none") == []
    table = cli.ok("sessions").out.splitlines()
    assert table[0].split() == ["ID", "UPDATED", "MESSAGES", "STATUS", "PERSONA", "FOLDER", "TITLE"]
    assert table[1].startswith(first[:8])


@ONE_BACKEND
def test_show_by_prefix(cli: Cli) -> None:
    uuid = ask(cli, "Where do lanterns hang?")
    shown = cli.ok("show", uuid[:6], "--json").json
    assert shown["conversation"]["uuid"] == uuid
    assert [(m["role"], m["turn_index"], m["position"], m["state"]) for m in shown["messages"][:2]] == [
        ("user", 1, 0, "complete"),
        ("assistant", 1, 1, "complete"),
    ]
    assert "Where do lanterns hang?" in cli.ok("show", uuid).out


@ONE_BACKEND
def test_show_has_tool_calls_with_results(cli: Cli, model: Script) -> None:
    (cli.workspace / "notes.md").write_text("lanterns hang high\n")
    read = Call(name="read_file", arguments={"path": "notes.md", "reason": "to see"})
    model.script([Step(when="tools", tool_calls=[read]), Step(when="tools", text="High.")])
    uuid = ask(cli, "Where?")
    calls = [call for message in cli.ok("show", uuid, "--json").json["messages"] for call in message["tool_calls"]]
    assert [call["tool_name"] for call in calls] == ["read_file"]
    assert calls[0]["success"] is True
    assert "lanterns hang high" in calls[0]["result"]["result"]
    assert "✓ <code>read_file</code> notes.md ·" in cli.ok("show", uuid).out


def test_search(cli: Cli) -> None:
    uuid = ask(cli, "Where do lanterns hang?")
    ask(cli, "How deep is the lake?")
    hits = cli.ok("search", "--json", "lanterns").json
    assert {hit["conversation_id"] for hit in hits} == {uuid}
    assert hits[0]["turn_index"] == 1
    assert uuid[:8] in cli.ok("search", "lanterns").out
    assert cli.ok("search", "zeppelin").out == "No matches.\n"
    assert cli.ok("search", '"(un: balanced* [query').code == 0


def test_export_and_import_lose_nothing(cli: Cli) -> None:
    uuid = ask(cli, "Where do lanterns hang? \u202e \x7f ünï ☃")
    first = cli.ok("export", uuid[:8]).json
    cli.ok("delete", "--now", uuid)
    assert ids(cli, "--status", "any") == []
    file = cli.workspace / "in.json"
    file.write_text(json.dumps(first))
    assert uuid in cli.ok("import", str(file)).out
    assert cli.ok("export", uuid).json == first
    cli.ok("import", "-", stdin=json.dumps(first))
    assert cli.ok("export", uuid).json == first
    assert ids(cli) == [uuid]


@ONE_BACKEND
def test_import_shows_what_is_new_and_adds_only_when_asked(cli: Cli) -> None:
    uuid = ask(cli, "Where do lanterns hang?")
    first = cli.ok("export", uuid).json
    said = cli.ok("import", "-", stdin=json.dumps(first)).out
    assert "already existed, nothing new" in said
    more = json.loads(json.dumps(first))
    turn = json.loads(json.dumps(first["turns"][0]))
    turn["turn_index"] = 2
    turn["messages"] = turn["messages"][:1]
    turn["messages"][0] |= {"turn_index": 2, "uuid": "0" * 32, "content": "INJECTED"}
    more["turns"].append(turn)
    ran = cli.run("import", "-", stdin=json.dumps(more))
    assert (ran.code, ran.out) == (1, "")
    assert "would add to it: turn 2, 1 message" in ran.err
    assert "--merge" in ran.err
    assert cli.ok("export", uuid).json == first
    assert "turn 2, 1 message added" in cli.ok("import", "-", "--merge", stdin=json.dumps(more)).out
    assert "INJECTED" in cli.ok("show", uuid).out
    added = cli.ok("import", "-", "--json", stdin=json.dumps(more)).json
    assert (added["uuid"], added["created"], added["added"]["messages"]) == (uuid, False, 0)


@ONE_BACKEND
def test_an_import_with_a_path_for_an_id_leaves_nothing(cli: Cli) -> None:
    uuid = ask(cli, "Where do lanterns hang?")
    bad = cli.ok("export", uuid).out.replace(uuid, "x/../../../../victim/package")
    ran = cli.run("import", "-", stdin=bad)
    assert (ran.code, ran.out) == (1, "")
    assert "is not a UUID" in ran.err
    assert ids(cli, "--status", "any") == [uuid]


TOKEN_COUNT = re.compile(rb'"token_count": \d+')


def test_the_tree_of_summaries_is_shown_and_travels(cli: Cli, graph_target: GraphTarget, graph_paths: Paths) -> None:
    async def fill() -> str:
        graph = await open_graph(graph_target, graph_paths)
        try:
            return await remembered(Store(graph))
        finally:
            await graph.close()

    uuid = asyncio.run(fill())
    shown = cli.ok("show", uuid, "--json").json
    tree = {summary["uuid"]: summary for summary in shown["summaries"]}
    assert sorted(summary["level"] for summary in tree.values()) == [1, 1, 2]
    assert {tree[summary["parent"]]["level"] for summary in tree.values() if summary["parent"]} == {2}
    assert shown["topics"]
    text = cli.ok("show", uuid).out
    assert "- **L2** · turns 1–4 · **Title of 1** · What turns 1 to 4 were about.\n" in text
    assert "\n  - **L1** · turns 1–2 · " in text
    assert "## Topics" in text and "Modified:\n\n- src/app.py (write_it, t6)" in text
    cli.ok("export", uuid, "-o", ".")
    first = (cli.workspace / f"conv-{uuid}.json").read_bytes()
    cli.ok("delete", uuid, "--now")
    for _ in range(2):
        cli.ok("import", f"conv-{uuid}.json")
        again = cli.ok("export", uuid).out.encode()
        assert again.count(b'"token_count": 0') < first.count(b'"token_count": 0'), "an import counts what it stores"
        assert TOKEN_COUNT.sub(b"", again) == TOKEN_COUNT.sub(b"", first)


@ONE_BACKEND
def test_export_to_a_folder_and_a_file(cli: Cli) -> None:
    uuid = ask(cli, "Where do lanterns hang?")
    assert cli.ok("export", uuid, "-o", ".").out == ""
    assert json.loads((cli.workspace / f"conv-{uuid}.json").read_bytes())["conversation"]["uuid"] == uuid
    cli.ok("export", uuid, "--format", "markdown", "-o", ".")
    text = (cli.workspace / f"conv-{uuid}.md").read_text()
    assert text.startswith("# ")
    assert "**You**\n\nWhere do lanterns hang?" in text
    cli.ok("export", uuid, "--format", "markdown", "-o", "named.md")
    assert (cli.workspace / "named.md").read_text() == text
    assert cli.run("export", uuid, "-o", "no/such/folder.json").code == 1


@ONE_BACKEND
def test_archive_delete_and_restore(cli: Cli) -> None:
    uuid = ask(cli, "Where do lanterns hang?")
    cli.ok("archive", uuid[:8])
    assert (ids(cli), ids(cli, "--status", "archived")) == ([], [uuid])
    cli.ok("restore", uuid[:8])
    assert ids(cli) == [uuid]
    state = Path(load().paths.state)
    chat = History(state, str(cli.workspace))
    chat.open(conversation(uuid=uuid))
    chat.add(Entry("Where do lanterns hang?"))

    def earlier_prompts() -> list[str]:
        return [sent.text for sent in History(state, str(cli.workspace)).prompts(everywhere=False)]

    assert f"restore {uuid[:8]}" in cli.ok("delete", uuid[:8]).out
    assert (ids(cli), ids(cli, "--status", "deleted")) == ([], [uuid])
    assert cli.run("show", uuid[:8]).code == 1
    assert earlier_prompts() == []
    cli.ok("restore", uuid[:8])
    assert ids(cli) == [uuid]
    assert earlier_prompts() == ["Where do lanterns hang?"]
    cli.ok("delete", uuid)
    assert b"lanterns" in (state / HISTORY).read_bytes()
    cli.ok("delete", "--now", uuid[:8])
    assert ids(cli, "--status", "any") == []
    assert b"lanterns" not in (state / HISTORY).read_bytes()
    assert cli.run("restore", uuid).code == 1


@ONE_BACKEND
def test_not_found_and_bad_input(cli: Cli) -> None:
    for command in (["show"], ["export"], ["archive"], ["delete"], ["restore"]):
        ran = cli.run(*command, "ffffffff")
        assert (ran.code, ran.out) == (1, ""), ran
        assert "ffffffff" in ran.err
    ran = cli.run("import", "-", stdin='{"format": "other"}')
    assert ran.code == 1
    assert "not an exported conversation" in ran.err
    assert cli.run("import", "none.json").code == 1


@pytest.mark.parametrize("command", ["show", "export", "archive", "delete", "restore"])
def test_an_empty_id_is_wrong_usage(bare: Cli, command: str) -> None:
    assert bare.run(command, "").code == 2
