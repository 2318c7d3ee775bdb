"""Every format: found in its place, read with its tools, files and dates, and recognised as a file on its own."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import zipfile
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
import zstandard

from ragforge_tui.other_agents import AGENTS, agents, detect, find_sessions, read_session
from ragforge_tui.other_agents.reading import time_of
from ragforge_tui.shared.export_records import ConversationExport
from ragforge_tui.shared.found_sessions import FoundSession
from ragforge_tui.shared.records import FileAccess
from tests.other_agents import stores

WITHOUT_CALLS = {"aider", "chatgpt", "claude"}
WITHOUT_TIMES = {"aider", "vibe", "cline"}


def exported(found: FoundSession) -> ConversationExport:
    export = read_session(found).export(found)
    assert export is not None
    return export


def check(found: FoundSession, export: ConversationExport) -> None:
    """Check the two turns that every session of the test data has."""
    first, second = export.turns
    said = [m.content for m in first.messages if m.content]
    assert said == [stores.ASKED, stores.ANSWERED]
    assert [m.content for m in second.messages] == [stores.THANKED, stores.DONE]
    assert export.conversation.tags == [f"from:{found.agent}"]
    assert export.conversation.next_turn == 3
    if found.agent not in WITHOUT_CALLS:
        [call] = [call for message in first.messages for call in message.tool_calls]
        assert call.success
        assert call.result is not None and json.loads(call.result.result)["text"] == stores.READ
        assert call.files == [FileAccess(path="src/parser.py", access="read")]
        assert any("Let me look." in message.reasoning for message in first.messages)
    if found.agent not in WITHOUT_TIMES:
        assert first.messages[0].timestamp == datetime.fromtimestamp(stores.START + 1, tz=UTC)
        assert second.messages[1].timestamp == datetime.fromtimestamp(stores.START + 8, tz=UTC)
    assert first.messages[0].timestamp.year == 2025


def test_every_agent_has_test_data() -> None:
    assert list(stores.WRITERS) == list(AGENTS)


@pytest.mark.parametrize("agent", AGENTS)
def test_session_is_found_and_read(agent: str, tmp_path: Path) -> None:
    stores.WRITERS[agent](tmp_path)
    [found] = find_sessions(tmp_path)
    assert found.agent == agent
    assert found.folder == (str(tmp_path / "src/parser") if agent == "aider" else stores.FOLDER)
    assert found.bytes > 0
    check(found, exported(found))


@pytest.mark.parametrize("agent", AGENTS)
def test_lone_file_is_recognised_by_its_content(agent: str, tmp_path: Path) -> None:
    path = stores.WRITERS[agent](tmp_path)
    if agent not in ("vibe", "aider"):
        path = Path(shutil.move(path, tmp_path / f"some-file{path.suffix}"))
    [found] = detect(path, tmp_path)
    assert found.agent == agent
    said = [m.content for turn in exported(found).turns for m in turn.messages if m.content]
    assert said == [stores.ASKED, stores.ANSWERED, stores.THANKED, stores.DONE]


@pytest.mark.parametrize(("agent", "write"), [("chatgpt", stores.chatgpt), ("claude", stores.claude)])
@pytest.mark.parametrize("zipped", [False, True])
def test_export_of_a_web_chat_is_read(agent: str, write: Callable[[Path], Path], zipped: bool, tmp_path: Path) -> None:
    path = write(tmp_path / "conversations.json")
    if zipped:
        with zipfile.ZipFile(tmp_path / "export.zip", "w") as archive:
            archive.write(path, "data/conversations.json")
        path = tmp_path / "export.zip"
    [found] = detect(path, tmp_path)
    assert found.agent == agent
    check(found, exported(found))


@pytest.mark.parametrize("content", [b"", b"\x00\xff", b"[]", b"{}", b'{"a": [[[[', b"[" * 100_000, b"plain words\n"])
@pytest.mark.parametrize("suffix", [".json", ".jsonl", ".md", ".db", ".zip"])
def test_unknown_files_hold_no_session(content: bytes, suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"file{suffix}"
    path.write_bytes(content)
    try:
        assert detect(path, tmp_path) == []
    except OSError:
        assert suffix == ".db"  # it says that it is no database


def test_session_in_two_forms_is_found_once_with_both(tmp_path: Path) -> None:
    path = stores.gemini(tmp_path)
    [found] = find_sessions(tmp_path, ["gemini-cli"])
    assert (found.path, found.parts) == (str(path.with_suffix(".json")), (str(path),))


def test_secrets_are_masked_and_control_characters_removed(tmp_path: Path) -> None:
    path = stores.claude_code(tmp_path)
    key = "sk-ant-api03-" + "aB3dE5gH" * 12
    path.write_text(path.read_text().replace(stores.THANKED, f"use {key}\\u0000 now"))
    [found] = find_sessions(tmp_path)
    text = exported(found).turns[1].messages[0].content
    assert key not in text and text.startswith("use ") and "\x00" not in text


def test_compressed_rollout_is_found_once_and_read_as_far_as_it_goes(tmp_path: Path) -> None:
    plain = stores.codex(tmp_path)
    packed = plain.with_name(f"{plain.name}.zst")
    packed.write_bytes(b"".join(map(zstandard.compress, plain.read_bytes().splitlines(keepends=True))))
    [found] = find_sessions(tmp_path)
    [same] = detect(packed, tmp_path / "other home")
    check(found, exported(found))
    check(same, exported(same))
    plain.unlink()
    [found] = find_sessions(tmp_path)
    assert (found.id, found.path, found.folder) == ("cd", str(packed), stores.FOLDER)
    check(found, exported(found))
    packed.write_bytes(packed.read_bytes()[:-20])
    assert exported(found).turns[0].messages[0].content == stores.ASKED
    packed.write_bytes(b"not compressed at all")
    assert [found.readable for found in find_sessions(tmp_path)] == [False] and detect(packed, tmp_path) == []


def helped(found: FoundSession) -> ConversationExport:
    """The only helper of a session, checked against the call that started it."""
    transcript = read_session(found)
    export = transcript.export(found)
    assert export is not None
    [helper] = transcript.helper_exports(found, export.conversation)
    record = helper.conversation
    [call] = [c for t in export.turns for m in t.messages for c in m.tool_calls if c.tool_name.lower() == "task"]
    assert (record.helper_of, record.branch_of, record.branch_turn) == (call.uuid, export.conversation.uuid, 0)
    assert record.private and record.workspace == stores.FOLDER
    assert call.result is not None
    data = json.loads(call.result.result)
    assert (data["text"], data["helper"]) == (stores.FOUND_IT, record.uuid)
    assert data["trace"] == ["Grep def parse", f"1 calls · /resume {record.uuid[:8]}"]
    assert [m.content for m in helper.turns[0].messages if m.content] == [stores.HELPED, stores.FOUND_IT]
    return helper


@pytest.mark.parametrize("form", ["file", "folder", "inline", "unnamed"])
def test_helper_of_claude_code_comes_with_its_parent(form: str, tmp_path: Path) -> None:
    stores.add_claude_helper(stores.claude_code(tmp_path), form)
    [found] = find_sessions(tmp_path)
    helped(found)


def test_helper_of_opencode_comes_with_its_parent(tmp_path: Path) -> None:
    path = stores.opencode(tmp_path)
    state = {
        "status": "completed",
        "input": {"prompt": stores.HELPED},
        "output": stores.FOUND_IT,
        "metadata": {"sessionId": "ses_2"},
    }
    grep = {"status": "completed", "input": {"pattern": "def parse"}, "output": "src/parser.py:3"}
    parts = [
        ("p8", "m4", {"type": "tool", "callID": "t9", "tool": "task", "state": state}),
        ("p9", "h1", {"type": "text", "text": stores.HELPED}),
        ("q1", "h2", {"type": "tool", "callID": "g", "tool": "Grep", "state": grep}),
        ("q2", "h2", {"type": "text", "text": stores.FOUND_IT}),
    ]
    with closing(sqlite3.connect(path)) as connection:
        for id, role in (("h1", "user"), ("h2", "assistant")):
            values = (id, "ses_2", stores.START * 1_000, json.dumps({"role": role}))
            connection.execute("INSERT INTO message VALUES (?, ?, ?, ?)", values)
        for id, owner, part in parts:
            connection.execute("INSERT INTO part VALUES (?, ?, ?)", (id, owner, json.dumps(part)))
        connection.commit()
    [found] = find_sessions(tmp_path)
    helped(found)


def test_reply_without_a_message_before_it_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "rollout-x.jsonl"
    meta = {"type": "session_meta", "payload": {"id": "x"}}
    reply = {"type": "response_item", "payload": {"type": "message", "role": "assistant", "content": "Hello."}}
    stores.write_lines(path, [meta, reply])
    [found] = detect(path, tmp_path)
    [turn] = exported(found).turns
    assert [m.role for m in turn.messages] == ["user", "assistant"]
    assert turn.messages[1].content == "Hello."


def test_deleted_session_is_rebuilt_from_history_and_commits(tmp_path: Path) -> None:
    """The transcript of one session is there, the one of another is gone."""
    repository = tmp_path / "repository"
    repository.mkdir()
    kept = stores.claude_code(tmp_path)
    at = stores.START * 1_000
    history = tmp_path / ".claude/history.jsonl"
    pasted = {"1": {"id": 1, "type": "text", "content": "Traceback: boom"}}
    lines = [
        {"display": stores.ASKED, "timestamp": at, "project": stores.FOLDER, "sessionId": kept.stem},
        {
            "display": "Fix this",
            "pastedContents": pasted,
            "timestamp": at,
            "project": str(repository),
            "sessionId": "gone",
        },
        {"display": "Thanks", "timestamp": at + 600_000, "project": str(repository), "sessionId": "gone"},
        {"display": "An old one", "timestamp": at - 86_400_000, "project": "/old"},
        {"display": "Its second message", "timestamp": at - 86_300_000, "project": "/old"},
        {"display": "A day later", "timestamp": at, "project": "/old"},
    ]
    stores.write_lines(history, lines)
    when = f"{stores.START + 60} +0000"
    env = {"GIT_AUTHOR_DATE": when, "GIT_COMMITTER_DATE": when, "HOME": str(tmp_path), "PATH": "/usr/bin:/bin"}
    (repository / "a.py").write_text("1")
    for command in ("init -q", "add .", "-c user.name=A -c user.email=a@b commit -q -m boom-is-gone"):
        subprocess.run(["git", *command.split()], cwd=repository, env=env, check=True)

    found = {s.id: s for s in find_sessions(tmp_path, ["claude-code"])}
    assert len(found) == 4 and kept.stem in found and "gone" in found
    rebuilt = exported(found["gone"])
    assert rebuilt.conversation.tags == ["from:claude-code", "rescued"]
    first, second = rebuilt.turns
    assert first.messages[0].content == "Fix this\n\nTraceback: boom"
    assert "boom-is-gone" in first.messages[1].content and "boom-is-gone" not in second.messages[1].content
    assert [c.commit.subject for c in rebuilt.memory.commits] == ["boom-is-gone"]
    assert rebuilt.memory.commits[0].message == first.messages[1].uuid
    old = [exported(s) for s in found.values() if s.folder == "/old"]
    assert sorted(len(export.turns) for export in old) == [1, 2]


@pytest.mark.parametrize(
    "moment", ["0001-01-01T00:00:00+23:00", "9999-12-31T23:59:59-23:00", "²", "9" * 400, 10**400, -5, True, [], "never"]
)
def test_odd_times_are_none(moment: object) -> None:
    assert time_of(moment) is None


def test_one_odd_store_does_not_hide_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stores.codex(tmp_path)

    def broken(home: Path) -> list[FoundSession]:
        raise ValueError("odd")

    monkeypatch.setitem(agents.AGENTS, "claude-code", agents.Agent(broken, agents.AGENTS["claude-code"].read))
    assert [found.agent for found in find_sessions(tmp_path)] == ["codex"]
