"""What `delete` removes, what it keeps, and what it tells."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

import pytest
import yaml

from ragforge_tui.conversation import ConversationAgent
from ragforge_tui.export import file_name
from ragforge_tui.graph import GraphTarget, Store
from ragforge_tui.settings.load import load
from ragforge_tui.settings.schema import Paths
from ragforge_tui.shared.prompt_files import HISTORY
from ragforge_tui.tui.prompt.history import Entry, History
from tests.cli.conftest import Cli
from tests.conftest import ONE_BACKEND, open_graph
from tests.support.openai_server import OpenAIServer
from tests.support.records import conversation
from tests.support.stored_memory import talk

GONE, SHARED = "wombat", "numbat"
pytestmark = pytest.mark.slow


async def hold_talk(loaded_branch: str) -> tuple[str, str]:
    """A conversation of which a branch shares the first turn; only the second has the word that is to go."""
    async with ConversationAgent(load(), approve_all=True) as agent:
        parent = await agent.create_conversation()
        await parent.send_message(f"From now on we keep every {SHARED}.")
        await parent.send_message(f"Decided: the {GONE} budget is 40000 euros. Write it down.")
        branch = await agent.branch_conversation(parent.id, 1, title=loaded_branch)
        await branch.send_message("Go on.")
        state = Path(agent.services.state)
        chat = History(state, str(agent.services.workspace))
        chat.open(parent.record)
        chat.add(Entry(f"the {GONE} budget"))
        return parent.id, branch.id


def holding(folder: Path, word: str) -> list[str]:
    """The files under a folder that hold a word, in any of the encodings that stores use."""
    forms = [word.encode(), word.encode("utf-16-le"), word.encode("utf-16-be")]
    found = []
    for path in folder.rglob("*"):
        with contextlib.suppress(FileNotFoundError):  # A server that ends removes its lock.
            if path.is_file() and any(form in path.read_bytes().lower() for form in forms):
                found.append(str(path.relative_to(folder)))
    return found


@ONE_BACKEND
@pytest.mark.parametrize("contents", ["graph", "hybrid"])
def test_no_file_holds_what_was_removed(
    cli: Cli, model: OpenAIServer, contents: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, config = tmp_path / "own", tmp_path / "own.yaml"
    settings = yaml.safe_load((tmp_path / "config.yaml").read_text())
    settings["agent"]["memory"]["persistence"] = {"type": contents}
    # The index of the workspace's files is no part of a conversation.
    settings["agent"]["code"] = {"enabled": False}
    settings["agent"]["memory"]["export"] = {"enabled": True, "path": "exports", "format": "both"}
    config.write_text(yaml.safe_dump(settings))
    monkeypatch.setenv("RAGFORGE_CONFIG", str(config))
    monkeypatch.setenv("RAGFORGE_HOME", str(own))
    written = {"path": "budget.txt", "content": f"The {GONE} budget.\n"}
    again = {"path": "budget.txt", "content": "Nothing.\n"}
    model.script(
        [
            {"text": f"Every {SHARED} is kept."},
            {"tool_calls": [{"name": "write_file", "arguments": written}]},
            {"tool_calls": [{"name": "write_file", "arguments": again}]},
            {"text": f"The {GONE} budget is written down."},
            {"text": "On we go."},
        ]
    )
    parent, branch = asyncio.run(hold_talk("other"))
    before = holding(own, GONE)
    assert any("undo" in path for path in before) and any("prompts" in path for path in before)
    assert holding(cli.workspace / "exports", GONE)
    ran = cli.ok("delete", parent, "--now")
    assert f"Its branch {branch[:8]} (other) keeps 1 turn that it shares." in ran.out
    assert parent[:8] in ran.out and not ran.err
    shown = cli.ok("show", branch, "--json").json
    assert shown["messages"][0]["content"] == f"From now on we keep every {SHARED}."
    cli.ok("graph", "compact")
    cli.ok("graph", "stop")
    assert holding(own, SHARED)
    assert holding(own, GONE) == []
    assert holding(cli.workspace, GONE) == []


@ONE_BACKEND
def test_branches_are_kept_or_go_too(cli: Cli, graph_target: GraphTarget, graph_paths: Paths) -> None:
    async def fill() -> list[str]:
        graph = await open_graph(graph_target, graph_paths)
        try:
            store, made = Store(graph), []
            for above in (None, 0, 1):
                shared = {"branch_of": made[above], "branch_turn": 1} if above is not None else {}
                one = await store.conversations.create(conversation(title=f"talk {len(made)}", **shared))
                await talk(store, one.uuid, f"zeppelin {len(made)}")
                made.append(one.uuid)
            return made
        finally:
            await graph.close()

    root, child, grandchild = asyncio.run(fill())
    said = cli.ok("delete", root).out
    assert f"Its branch {child[:8]} (talk 1) will keep the turns that it shares." in said
    cli.ok("restore", root)
    gone = cli.ok("delete", root, "--now", "--json").json
    assert (gone["uuid"], gone["kept_turns"], gone["kept_by"]["uuid"], gone["left"]) == (root, 1, child, [])
    assert cli.ok("search", "zeppelin").out.count("zeppelin") == 3, "the shared turn is the branch's"
    said = cli.ok("delete", child, "--with-branches").out
    assert "talk 1" in said and "talk 2" in said
    assert cli.ok("search", "zeppelin").out == "No matches.\n"
    cli.ok("restore", child)
    cli.ok("restore", grandchild)
    assert cli.ok("delete", child, "--now", "--with-branches").out.startswith("Removed")
    assert cli.ok("sessions", "--status", "any", "--json").json == []


@ONE_BACKEND
def test_what_could_not_be_removed_is_told(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    uuid = str(cli.ok("ask", "--json", "Where do lanterns hang?").events[-1]["conversation_id"])
    paths = load().paths
    sent = Path(paths.state) / HISTORY
    chat = History(Path(paths.state), str(cli.workspace))
    chat.open(conversation(uuid=uuid))
    chat.add(Entry("lanterns"))
    export = Path(paths.data) / "exports" / file_name(uuid, "json")
    export.mkdir(parents=True)
    sent.unlink()
    sent.mkdir()
    ran = cli.run("delete", "--now", uuid)
    assert ran.code == 1
    assert "Removed" in ran.out
    assert "could not be deleted" in ran.err and "prompts are still on disk" in ran.err
    sent.rmdir()
