"""`import` without a file and with --from: what other agents left becomes conversations, once, and goes on growing."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Cli
from tests.conftest import ONE_BACKEND
from tests.other_agents import stores
from tests.other_agents.conftest import unset_folders
from tests.support.model_script import Script, Step
from tests.support.repositories import git, repository

TURN_SECONDS = 8


@pytest.fixture
def store_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder for the stores of other agents."""
    unset_folders(monkeypatch)
    home = tmp_path / "home of agents"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    return home


def sessions(cli: Cli, *arguments: str) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = cli.ok("sessions", "--json", *arguments).json
    return listed


def add_turn(path: Path, question: str, answer: str) -> None:
    """Go on with a session of Claude Code after its torn last line."""
    at = stores.START + TURN_SECONDS
    text = path.read_text()
    lines = text[: text.rindex("\n") + 1]
    for role, content in (("user", question), ("assistant", answer)):
        at += 1
        message = {"role": role, "content": content}
        line = {"type": role, "uuid": f"u{at}", "sessionId": path.stem, "timestamp": stores.iso(at), "message": message}
        lines += json.dumps(line) + "\n"
    path.write_text(lines)
    stores.rest(path)


@pytest.mark.slow
def test_every_agent_is_listed_imported_once_and_searched(cli: Cli, store_home: Path) -> None:
    assert cli.ok("import", "--json").json == []
    assert "No sessions of other agents" in cli.ok("import").out
    for write in stores.WRITERS.values():
        write(store_home)
    listed = cli.ok("import", "--json").json
    assert [entry["agent"] for entry in listed] == list(stores.WRITERS)
    assert all(set(entry) == {"agent", "folder", "sessions", "bytes", "imported"} for entry in listed)
    assert [(entry["sessions"], entry["imported"]) for entry in listed] == [(1, 0)] * len(listed)

    for agent in stores.WRITERS:
        assert "1 session imported, 0 extended, 2 turns added" in cli.ok("import", "--from", agent, "--all").out
    assert [entry["imported"] for entry in cli.ok("import", "--json").json] == [1] * len(listed)
    before = sessions(cli)
    assert len(before) == len(listed)
    again = cli.ok("import", "--from", "codex", "--all").out
    assert "0 sessions imported" in again and "1 were here already" in again
    assert sessions(cli) == before

    hits = cli.ok("search", "divides columns", "--json").json
    assert {hit["conversation_id"] for hit in hits} == {entry["uuid"] for entry in before}
    [claude] = sessions(cli, "--tag", "from:claude-code")
    assert claude["title"] == "The parser and empty lines"
    assert claude["workspace"] == stores.FOLDER
    exported = cli.ok("export", claude["uuid"]).out
    assert json.loads(exported)["turns"][0]["messages"][0]["content"] == stores.ASKED


def test_session_that_went_on_is_extended_and_can_be_resumed(cli: Cli, store_home: Path, model: Script) -> None:
    path = stores.claude_code(store_home)
    cli.ok("import", "--from", "claude-code", "--all")
    add_turn(path, "Is it released?", "Yes, in 4.2.")
    assert cli.ok("import", "--json").json[0]["imported"] == 0
    assert "0 sessions imported, 1 extended, 1 turns added" in cli.ok("import", "--from", "claude-code", "--all").out
    [session] = sessions(cli)
    shown = cli.ok("show", session["uuid"], "--json").json
    assert [m["content"] for m in shown["messages"] if m["role"] == "user"][-1] == "Is it released?"

    model.script([Step(when="tools", text="As said: in 4.2.")])
    cli.ok("ask", "--resume", session["uuid"], "When was it released?")
    sent = json.dumps(model.requests[-1].body if model.requests[-1].body.get("tools") else model.requests[0].body)
    assert "Yes, in 4.2." in sent and stores.ASKED in sent


@ONE_BACKEND
def test_only_the_chosen_folder_is_imported(cli: Cli, store_home: Path) -> None:
    stores.codex(store_home)
    assert "No session was found there" in cli.ok("import", "--from", "codex").out
    assert "1 session imported" in cli.ok("import", "--from", "codex", "--folder", stores.FOLDER).out


def test_what_was_still_written_is_completed_by_the_next_import(cli: Cli, store_home: Path) -> None:
    """A reply that streamed and a call that ran are stored at once, and again when they are whole."""
    path = stores.opencode(store_home)

    def write(text: str, state: dict[str, Any]) -> None:
        with closing(sqlite3.connect(path)) as connection:
            for id, part in (
                ("p5", {"type": "text", "text": text}),
                ("p6", {"type": "tool", "callID": "t2", "tool": "bash", "state": state}),
            ):
                connection.execute("INSERT OR REPLACE INTO part VALUES (?, ?, ?)", (id, "m4", json.dumps(part)))
            connection.commit()

    command = {"command": "make test"}
    write("", {"status": "running", "input": command})
    assert "2 turns added" in cli.ok("import", "--from", "opencode", "--all").out
    write("", {"status": "completed", "input": command, "output": "1 failed", "metadata": {"exit": 2}})
    write("One test fails.", {"status": "completed", "input": command, "output": "1 failed", "metadata": {"exit": 2}})
    assert "0 turns added, 1 completed" in cli.ok("import", "--from", "opencode", "--all").out
    [session] = sessions(cli)
    *_, reply = cli.ok("show", session["uuid"], "--json").json["messages"]
    [call] = reply["tool_calls"]
    assert reply["content"] == "One test fails."
    assert (call["success"], call["result"]["error"]) == (False, "exit status 2")
    assert session["uuid"] in {hit["conversation_id"] for hit in cli.ok("search", "One test fails", "--json").json}


@ONE_BACKEND
def test_memory_knows_an_import_that_nobody_opened(cli: Cli, store_home: Path) -> None:
    path = stores.claude_code(store_home)
    add_turn(path, "We decided: the parser skips empty lines.", "Very well.")
    cli.ok("import", "--from", "claude-code", "--all")
    [kept] = cli.ok("memory", "--json").json
    assert (kept["kind"], kept["turn_index"]) == ("decision", 3)
    used = cli.ok("usage", "--by", "persona", "--json").json
    assert [row["name"] for row in used] == []  # this session has no counts
    cli.ok("import", str(path))
    assert len(sessions(cli)) == 1


@ONE_BACKEND
def test_blame_knows_an_imported_edit_and_its_commit(cli: Cli, store_home: Path) -> None:
    folder = repository(store_home / "repo")
    for text in ("one\nx = 1\n", "one\nx = 2\n"):
        (folder / "a.py").write_text(text)
        git(folder, "add", ".")
        git(folder, "commit", "-qm", "set x")
    commit = git(folder, "rev-parse", "--short=7", "HEAD").strip()
    block = "a.py\n```\n<<<<<<< SEARCH\nx = 1\n=======\nx = 2\n>>>>>>> REPLACE\n```\n"
    (folder / ".aider.chat.history.md").write_text(
        "\n# aider chat started at 2026-01-01 10:00:00\n\n#### Set x  \n\n"
        f"{block}\n> Applied edit to a.py  \n> Commit {commit} set x  \n"
    )
    cli.ok("import", "--from", "aider", "--all")
    [session] = sessions(cli)
    first, second = cli.ok("--workspace", str(folder), "blame", "a.py", "--json").json
    assert first["conversation_id"] is None
    assert (second["conversation_id"], second["turn_index"], second["commit_turn_index"]) == (session["uuid"], 1, 1)


@ONE_BACKEND
def test_unknown_layout_is_told(cli: Cli, store_home: Path) -> None:
    stores.write_json(store_home / ".vibe/logs/session/v9/a/history.json", [{"said": "something"}])
    told = "Sessions of vibe are there in a form that this version cannot read."
    assert told in cli.ok("import").out
    assert [(entry["agent"], entry["sessions"]) for entry in cli.ok("import", "--json").json] == [("vibe", 0)]
    assert told in cli.ok("import", "--from", "vibe").err


@ONE_BACKEND
def test_files_of_other_programs_are_imported(cli: Cli, store_home: Path, tmp_path: Path) -> None:
    export, session = stores.chatgpt(tmp_path / "conversations.json"), stores.qwen(store_home)
    cli.ok("import", str(export), str(session))
    assert {entry["tags"][0] for entry in sessions(cli)} == {"from:chatgpt", "from:qwen"}
    other = tmp_path / "notes.txt"
    other.write_text("just words")
    refused = cli.run("import", str(other))
    assert refused.code == 1 and "is no session that can be imported" in refused.err
    missing = cli.run("import", str(tmp_path / "missing.json"))
    assert missing.code == 1 and "cannot be read" in missing.err


@ONE_BACKEND
def test_wrong_uses_are_told(cli: Cli, store_home: Path) -> None:
    assert cli.run("import", "--from", "emacs").code == 1
    assert cli.run("import", "--all").code == 2
    assert cli.run("import", "--from", "codex", "file.json").code == 2


@ONE_BACKEND
def test_unreadable_session_fails_alone(cli: Cli, store_home: Path) -> None:
    stores.opencode(store_home)
    stores.goose(store_home)
    database = store_home / ".local/share/goose/sessions/sessions.db"
    listed = cli.ok("import", "--json").json
    assert len(listed) == 2
    database.write_bytes(b"not a database at all" * 100)
    assert [entry["agent"] for entry in cli.ok("import", "--json").json] == ["opencode"]
    refused = cli.run("import", "--from", "goose", "--all")
    assert refused.code == 1 and "The sessions of goose cannot be listed" in refused.err
    assert "1 session imported" in cli.ok("import", "--from", "opencode", "--all").out


@ONE_BACKEND
def test_a_session_that_was_imported_whole_is_not_rescued_by_half(cli: Cli, store_home: Path) -> None:
    path = stores.claude_code(store_home)
    lines = [
        {"display": text, "timestamp": stores.START * 1_000, "project": stores.FOLDER, "sessionId": path.stem}
        for text in (stores.ASKED, "/clear", stores.THANKED, "and more")
    ]
    stores.write_lines(store_home / ".claude/history.jsonl", lines)
    cli.ok("import", "--from", "claude-code", "--all")
    path.unlink()
    assert [entry["imported"] for entry in cli.ok("import", "--json").json] == [1]
    assert "0 extended, 0 turns added" in cli.ok("import", "--from", "claude-code", "--all").out


def test_helper_comes_with_its_parent_and_goes_with_it(cli: Cli, store_home: Path) -> None:
    stores.add_claude_helper(stores.claude_code(store_home))
    for outcome in ("1 session imported", "1 were here already"):
        assert outcome in cli.ok("import", "--from", "claude-code", "--all").out
    [parent] = sessions(cli, "--status", "any")
    calls = [c for m in cli.ok("show", parent["uuid"], "--json").json["messages"] for c in m["tool_calls"]]
    helper = json.loads(next(call for call in calls if call["tool_name"] == "Task")["result"]["result"])["helper"]
    work = cli.ok("show", helper, "--json").json
    assert work["conversation"]["branch_of"] == parent["uuid"] and work["conversation"]["private"]
    assert [m["content"] for m in work["messages"] if m["content"]] == [stores.HELPED, stores.FOUND_IT]
    cli.ok("delete", parent["uuid"], "--now")
    assert cli.run("show", helper).code == 1
