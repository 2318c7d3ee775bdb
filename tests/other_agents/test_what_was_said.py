"""Who said what: the user's words wherever a format keeps them, and no text of a program or a model among them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ragforge_tui.other_agents import detect, find_sessions, read_session
from ragforge_tui.other_agents.blocks import own_words
from ragforge_tui.other_agents.stored_edits import search_blocks
from ragforge_tui.shared.export_records import ConversationExport
from ragforge_tui.shared.records import Message
from tests.other_agents import stores

Lines = Iterable[dict[str, Any]]
SESSION = "c0ffee00-0000-4000-8000-000000000001"


def exported(home: Path, agent: str) -> list[ConversationExport]:
    found = [read_session(one).export(one) for one in find_sessions(home, [agent])]
    return [one for one in found if one is not None]


def messages(home: Path, agent: str) -> list[Message]:
    [export] = exported(home, agent)
    return [message for turn in export.turns for message in turn.messages]


def said(home: Path, agent: str) -> list[str]:
    return [message.content for message in messages(home, agent) if message.role == "user"]


def in_order(home: Path, agent: str) -> list[str]:
    return [message.content for message in messages(home, agent) if message.content]


def claude(home: Path, lines: Lines, session: str = SESSION) -> None:
    path = home / f".claude/projects/-work-parser/{session}.jsonl"
    numbered = [
        {"uuid": f"{session}-{n}", "sessionId": session, "cwd": stores.FOLDER, "timestamp": stores.iso(n), **line}
        for n, line in enumerate(lines)
    ]
    stores.write_lines(path, numbered, torn=False)


def person(content: Any, **more: Any) -> dict[str, Any]:
    return {"type": "user", "message": {"role": "user", "content": content}, **more}


def model(content: Any, id: str, **more: Any) -> dict[str, Any]:
    return {"type": "assistant", "message": {"role": "assistant", "content": content, "id": id, **more}}


def text(words: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": words}]


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("Paint the shed", "Paint the shed"),
        ("<b>bold</b> words stay", "<b>bold</b> words stay"),
        ("why does `<my-tag>x</my-tag>` fail?", "why does `<my-tag>x</my-tag>` fail?"),
        ("<bash-stdout>never mix</bash-stdout><bash-stderr></bash-stderr>", ""),
        ("<some_new_notice>\nit is dry\n</some_new_notice>", ""),
        ('<teammate-message from="x">from now on</teammate-message>', ""),
        ("<permissions instructions>\nnone\n</permissions instructions>", ""),
        ("<ide_opened_file>a.md</ide_opened_file>\nUse green", "Use green"),
        ("Use green\n<system-reminder>be brief</system-reminder>", "Use green"),
        ("Use green<my-prompt-hook>not mine</my-prompt-hook>", "Use green"),
    ],
)
def test_texts_of_programs_are_not_the_users(given: str, kept: str) -> None:
    assert own_words(given) == kept


@pytest.mark.parametrize(
    "words", ["<a-hook>", "<a-b>", " ", "<think>", "-a", "<system-reminder> ", "<<<<<<< SEARCH\n", "=======\n", "\n"]
)
def test_hostile_words_are_read_in_linear_time(words: str) -> None:
    """Each would take minutes if every beginning were searched to the end of the text."""
    text = "<x-y>" + words * (400_000 // len(words))
    own_words(text)
    assert list(search_blocks("a.py", text)) == []


def queued(prompt: Any, mode: str = "prompt") -> dict[str, Any]:
    return {"type": "attachment", "attachment": {"type": "queued_command", "commandMode": mode, "prompt": prompt}}


def queue(operation: str, content: str = "") -> dict[str, Any]:
    return {"type": "queue-operation", "operation": operation, **({"content": content} if content else {})}


@pytest.mark.parametrize(
    "between",
    [
        [queued("use blue")],
        [queued(text("use blue"))],
        [queue("enqueue", "use blue"), queue("remove")],
        [queue("enqueue", "use blue"), queue("remove"), queued("use blue")],
        [queue("enqueue", "later"), queue("enqueue", "use blue"), queue("remove", "use blue"), queue("popAll")],
        [queue("enqueue", "use blue"), queue("dequeue"), person("use blue")],
        [queue("enqueue", "taken back"), queue("popAll"), queued("use blue"), queued("done", "task-notification")],
    ],
)
def test_words_typed_while_claude_code_worked_are_there_once(between: Lines, tmp_path: Path) -> None:
    claude(tmp_path, [person("Sort it"), model(text("Sorting."), "a"), *between, model(text("Blue it is."), "b")])
    assert in_order(tmp_path, "claude-code") == ["Sort it", "Sorting.", "use blue", "Blue it is."]


@pytest.mark.parametrize("flag", [{"isMeta": True}, {"isCompactSummary": True}, {"origin": {"kind": "hook"}}])
def test_lines_that_claude_code_marks_as_its_own_are_left_out(flag: dict[str, Any], tmp_path: Path) -> None:
    claude(tmp_path, [person("Sort it"), model(text("Done."), "a"), person("Never do this", **flag)])
    assert said(tmp_path, "claude-code") == ["Sort it"]


@pytest.mark.parametrize(
    ("lines", "title"),
    [
        ([{"type": "summary", "summary": "The lift", "leafUuid": "elsewhere"}], "Sort it"),
        ([{"type": "summary", "summary": "The shelf", "leafUuid": f"{SESSION}-0"}], "The shelf"),
        ([{"type": "custom-title", "customTitle": "Mine"}, {"type": "ai-title", "aiTitle": "Its"}], "Mine"),
        ([{"type": "ai-title", "aiTitle": "Old"}, {"type": "ai-title", "aiTitle": "New"}], "New"),
    ],
)
def test_title_of_claude_code_is_the_sessions_own(lines: Lines, title: str, tmp_path: Path) -> None:
    claude(tmp_path, [person("Sort it"), model(text("Done."), "a"), *lines])
    [export] = exported(tmp_path, "claude-code")
    assert export.conversation.title == title


def test_a_reply_that_is_written_in_pieces_is_one_with_its_last_count(tmp_path: Path) -> None:
    call = [{"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "ls"}}]
    pieces = [text("Counting."), text("Counting."), text("Counting. And more."), call, [*text("Counting."), *call]]
    replies = [model(piece, "a", usage={"output_tokens": n + 1}) for n, piece in enumerate(pieces)]
    claude(tmp_path, [person("Count"), *replies, model([], "b", usage={})])
    [_, reply] = messages(tmp_path, "claude-code")
    assert reply.content == "Counting. And more." and len(reply.tool_calls) == 1
    assert reply.usage is not None and reply.usage.output_tokens == len(pieces)


def test_copied_lines_of_claude_code_are_the_same_turns(tmp_path: Path) -> None:
    lines = [person("Sort it"), model(text("Done."), "a")]
    whole = [{"uuid": f"u{n}", "timestamp": stores.iso(n), **line} for n, line in enumerate(lines)]
    claude(tmp_path, whole)
    claude(tmp_path, [*whole, person("Once more"), model(text("Yes."), "b")], "d0")
    one, other = exported(tmp_path, "claude-code")
    assert [turn.messages[0].uuid for turn in other.turns][: len(one.turns)] == [one.turns[0].messages[0].uuid]


def rollout(home: Path, id: str, lines: Lines, name: str = "", **meta: Any) -> None:
    head = {"type": "session_meta", "payload": {"id": id, "cwd": stores.FOLDER, **meta}}
    path = home / f".codex/sessions/2026/01/01/rollout-2026-01-01T{name or '00'}-00-00-{id}.jsonl"
    stores.write_lines(path, [{"timestamp": stores.iso(0), **line} for line in (head, *lines)], torn=False)


def item(role: str, words: str, at: int = 1, **more: Any) -> dict[str, Any]:
    payload = {"type": "message", "role": role, "content": [{"type": "x_text", "text": words}]}
    return {"timestamp": stores.iso(at), "type": "response_item", "payload": payload, **more}


def event(type: str, at: int = 1, **payload: Any) -> dict[str, Any]:
    return {"timestamp": stores.iso(at), "type": "event_msg", "payload": {"type": type, **payload}}


def spoken(words: str, at: int = 1) -> dict[str, Any]:
    content = [{"type": "text", "text": words}]
    return event("item_completed", at, item={"type": "UserMessage", "id": f"u{at}", "content": content})


@pytest.mark.parametrize(
    "lines",
    [
        [item("user", "Sort it"), item("user", "# AGENTS.md instructions for /work"), item("assistant", "Done.")],
        [item("user", "Sort it"), spoken("Sort it"), item("user", "Another text"), item("assistant", "Done.")],
        [item("user", "Sort it"), event("user_message", message="Sort it"), item("assistant", "Done.")],
        [event("user_message", message="Sort it"), event("agent_message", message="Done.")],
        [
            event("user_message", message="<environment_context>x</environment_context>", kind="environment_context"),
            event(
                "user_message", message="# Context from my IDE setup:\n\na.py\n\n## My request for Codex:\nSort it\n"
            ),
            item("assistant", "Done."),
        ],
    ],
)
def test_codex_notes_what_the_user_said(lines: Lines, tmp_path: Path) -> None:
    rollout(tmp_path, "a1", lines)
    assert in_order(tmp_path, "codex") == ["Sort it", "Done."]


def test_rollouts_of_one_id_are_one_session_and_each_line_counts_once(tmp_path: Path) -> None:
    first = [item("user", "One", 1), item("assistant", "1", 2)]
    rollout(tmp_path, "a1", first, "01")
    rollout(tmp_path, "a1", [item("user", "Two", 3), item("assistant", "2", 4)], "02")
    path = tmp_path / ".codex/archived_sessions/rollout-2026-01-01T00-30-00-a1.jsonl"
    stores.write_lines(path, [{"timestamp": stores.iso(0), "type": "session_meta", "payload": {"id": "a1"}}, *first])
    assert in_order(tmp_path, "codex") == ["One", "1", "Two", "2"]


@pytest.mark.parametrize("source", [{"subagent": "review"}, {"subagent": {"thread_spawn": {"depth": 1}}}])
def test_work_of_codex_helpers_is_not_a_session(source: Any, tmp_path: Path) -> None:
    rollout(tmp_path, "h1", [item("user", "Look"), item("assistant", "Seen.")], source=source)
    assert list(find_sessions(tmp_path, ["codex"])) == []


@pytest.mark.parametrize("by", ["copy", "ordinal"])
def test_turns_of_a_fork_are_known_as_those_of_its_parent(by: str, tmp_path: Path) -> None:
    shared = [item("user", "One", 1, ordinal=1), item("assistant", "1", 2, ordinal=2)]
    rollout(tmp_path, "p1", [*shared, item("user", "Later", 3, ordinal=3)], "01")
    copies = [{**line, "timestamp": stores.iso(90)} for line in shared] if by == "copy" else []
    own = [item("user", "In the fork", 95), item("assistant", "Yes.", 96)]
    meta = {"forked_from_id": "p1"} | ({} if by == "copy" else {"forked_from_ordinal_exclusive": 3})
    rollout(tmp_path, "f1", [*copies, *own], "02", **meta)
    parent, fork = exported(tmp_path, "codex")
    assert [turn.messages[0].content for turn in fork.turns] == ["One", "In the fork"]
    assert fork.turns[0].messages[0].uuid == parent.turns[0].messages[0].uuid
    assert fork.turns[1].messages[0].uuid != parent.turns[1].messages[0].uuid


def test_a_resume_of_gemini_cli_takes_nothing_away(tmp_path: Path) -> None:
    path = tmp_path / ".gemini/tmp/p/chats/session-1.jsonl"
    call = {"id": "c", "name": "read_file", "args": {"file_path": "a.py"}}
    result = {"functionResponse": {"id": "c", "response": {"output": "text"}}}
    context = {"id": "0", "type": "user", "content": [{"text": "<session_context>the date</session_context>"}]}
    asked = {"id": "1", "type": "user", "content": [{"text": "Look"}], "timestamp": stores.iso(1)}
    whole = {"id": "2", "type": "gemini", "content": "I look.", "timestamp": stores.iso(2), "model": "g"}
    whole |= {"tokens": {"input": 10, "output": 2}, "thoughts": [{"subject": "A", "description": "b"}]}
    whole |= {"toolCalls": [{**call, "status": "success", "result": [result]}]}
    thin_parts = [{"text": "A: b", "thought": True}, {"text": "I look."}, {"functionCall": call}]
    thin = {"id": "2", "type": "gemini", "content": thin_parts, "timestamp": stores.iso(50)}
    response = {"id": "2_response", "type": "user", "content": [result], "timestamp": stores.iso(50)}
    head = {"sessionId": "g1", "startTime": stores.iso(0)}
    again = {"$set": {"messages": [context, {**asked, "timestamp": stores.iso(50)}, thin, response]}}
    for lines in ([head, context, asked, whole, head, again], [head, again]):
        stores.write_lines(path, lines)
        [user, reply] = messages(tmp_path, "gemini-cli")
        assert (user.content, reply.content, reply.reasoning) == ("Look", "I look.", "A: b")
        assert [call.success for call in reply.tool_calls] == [True]
        if whole in lines:
            assert reply.usage is not None and reply.usage.input_tokens == 10 and reply.model == "g"
            assert reply.timestamp.isoformat() == stores.iso(2).replace("Z", "+00:00")


def test_late_answer_of_qwen_stands_in_the_turn_that_it_answers(tmp_path: Path) -> None:
    def line(own: str, before: str | None, kind: str, words: str) -> dict[str, Any]:
        message = {"role": "user" if kind == "user" else "model", "parts": [{"text": words}]}
        return {"uuid": own, "parentUuid": before, "type": kind, "sessionId": "q", "message": message}

    lines = [
        line("1", None, "user", "One"),
        line("2", "1", "user", "Two"),
        line("3", "2", "assistant", "2"),
        line("4", "1", "assistant", "1"),
    ]
    stores.write_lines(tmp_path / ".qwen/projects/p/chats/q.jsonl", lines)
    assert in_order(tmp_path, "qwen") == ["One", "1", "Two", "2"]


@pytest.mark.parametrize(
    ("chat", "expected"),
    [
        ("#### Plan it  \n\nHere:\n\n#### Step 1\n\nGlue.\n\n#### thanks  \n\nOk.\n", ["Plan it", "thanks"]),
        ("#### Plan  \n\nA.\n\n#### Step 1\n\n> Edit? y  \n\n#### A.  \n####   \n#### #### Step 1  \n\nB.\n", ["Plan"]),
        (
            "#### one  \n#### two  \n\n```\n#### not mine\n\n> Tokens: 1k sent, 2 received.  \n\n#### more  \n",
            ["one\ntwo", "more"],
        ),
        ("#### Plan it\n\n```\n#### code\n```\n\n#### thanks\n\nOk.\n", ["Plan it", "thanks"]),
        ("#### /add a.py  \n> Added a.py  \n\n#### /ask why?  \n\nSo.\n\n#### !ls  \n", ["why?"]),
        ("> aider --message Two\nlines  \n> Aider v1  \n\n#### Two  \n#### lines  \n\nOk.\n", ["Two\nlines"]),
    ],
)
@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_who_speaks_in_a_chat_of_aider(chat: str, expected: list[str], ends: str, tmp_path: Path) -> None:
    path = tmp_path / "p/.aider.chat.history.md"
    path.parent.mkdir()
    path.write_bytes(f"\n# aider chat started at 2026-01-01 10:00:00\n\n{chat}".replace("\n", ends).encode())
    assert said(tmp_path, "aider") == expected


def test_chats_of_aider_are_found_in_a_folder_outside_the_home(tmp_path: Path) -> None:
    chat = stores.aider(tmp_path / "elsewhere/a/b/c/d/e")
    home = tmp_path / "home"
    assert list(find_sessions(home)) == []
    for folder in (chat.parent, chat.parent / "deeper"):
        assert [one.path for one in find_sessions(home, folders=[folder])] == [str(chat)]


def test_aiders_notes_tell_model_tokens_files_and_commits(tmp_path: Path) -> None:
    path = tmp_path / "p/.aider.chat.history.md"
    path.parent.mkdir()
    block = "a.py\n```python\n<<<<<<< SEARCH\nx = 1\n=======\nx = 2\n>>>>>>> REPLACE\n```\n"
    thought = "<thinking-content-ab1>\n\nOne line.\n\n</thinking-content-ab1>\n"
    notes = "> Tokens: 2.5k sent, 82 received.  \n> Applied edit to a.py  \n> Commit 2322dbd fix: two\nmore lines  \n"
    path.write_text(
        "\n# aider chat started at 2026-01-01 10:00:00\n\n> Model: p/m with diff edit format  \n\n"
        f"#### Set it  \n\n{thought}\n{block}\n> quoted by the model\n\nDone.\n\n{notes}\n#### Thanks  \n"
    )
    [export] = exported(tmp_path, "aider")
    [_, reply] = export.turns[0].messages
    assert reply.reasoning == "One line." and "> quoted by the model" in reply.content and "more" not in reply.content
    assert reply.model == "p/m" and reply.usage is not None and reply.usage.input_tokens == 2_500
    assert [(call.tool_name, call.files[0].path) for call in reply.tool_calls] == [("edit", "a.py")]
    assert [(one.message, one.commit.hash) for one in export.memory.commits] == [(reply.uuid, "2322dbd")]


@pytest.mark.parametrize(
    ("kind", "listed"), [("user", 1), ("terminal", 1), ("acp", 1), ("sub_agent", 0), ("hidden", 0)]
)
def test_only_the_users_sessions_of_goose_are_listed(kind: str, listed: int, tmp_path: Path) -> None:
    path = stores.goose(tmp_path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE sessions SET session_type = ?", (kind,))
        connection.execute("ALTER TABLE messages ADD COLUMN metadata_json text")
        connection.execute("UPDATE messages SET metadata_json = ? WHERE id = 5", (json.dumps({"userVisible": False}),))
        connection.commit()
    assert len(exported(tmp_path, "goose")) == listed
    if listed:
        assert said(tmp_path, "goose") == [stores.ASKED]


@pytest.mark.parametrize(
    ("agent", "columns"),
    [
        ("goose", {"accumulated_input_tokens": 30, "accumulated_output_tokens": 4, "input_tokens": 9}),
        ("crush", {"prompt_tokens": 30, "completion_tokens": 4, "cost": 0.5}),
    ],
)
def test_tokens_of_a_whole_session_stand_at_its_last_reply(
    agent: str, columns: dict[str, float], tmp_path: Path
) -> None:
    path = stores.WRITERS[agent](tmp_path)
    with closing(sqlite3.connect(path)) as connection:
        for name, value in columns.items():
            connection.execute(f"ALTER TABLE sessions ADD COLUMN {name} real")
            connection.execute(f"UPDATE sessions SET {name} = ?", (value,))
        connection.commit()
    *others, last = [message.usage for message in messages(tmp_path, agent) if message.role == "assistant"]
    assert last is not None and (last.input_tokens, last.output_tokens) == (30, 4)
    assert not any(others)


def vibe_store(home: Path, entries: Lines, journal: Lines = ()) -> None:
    folder = home / ".vibe/logs/session/unified/v1"
    stores.write_json(folder / "CURRENT", {"generation": "07", "session_id": "v1"})
    manifest = {"projection_state": {"chunks": ["abc"]}, "recovery_journal_segment": {"path": "journal/08.jsonl"}}
    stores.write_json(folder / "generations/07/manifest.json", manifest)
    tokens = {"snapshot": {"session": {"tokenUsage": {"inputTokens": 30, "outputTokens": 4}}}}
    stores.write_json(folder / "generations/07/projection-state.json", tokens)
    stores.write_json(folder / "chunks/abc.json", list(entries))
    stores.write_lines(folder / "journal/08.jsonl", [{"payload": {"delta": [{"entry": one}]}} for one in journal])
    meta = {"environment": {"working_directory": stores.FOLDER}, "config": {"model_name": "m"}}
    stores.write_json(folder / "meta.json", meta)


def test_store_of_vibe_3_is_read_with_its_journal(tmp_path: Path) -> None:
    one = "0e564cfe-5f0c-54b0-9062-0750179a97b5"
    at = stores.START * 1_000
    entries: list[dict[str, Any]] = [
        {"type": "message", "role": "user", "id": "u1", "content": text("Check it"), "source": "turn_start"},
        {"type": "reasoning", "id": f"reasoning-{one}-0", "text": "Run it."},
        {"type": "message", "role": "assistant", "id": f"assistant-{one}", "content": text("I run it.")},
        {
            "type": "effect",
            "id": "effect-1",
            "detail": {"toolName": "shell.bash", "input": {"command": "make"}},
            "state": {"status": "completed", "output": {"structured_content": {"returncode": 3, "stdout": "no"}}},
            "generationStatus": "completed",
        },
    ]
    last = {"type": "message", "role": "assistant", "id": "a9", "content": text("It fails.")}
    vibe_store(tmp_path, [{**entry, "createdAt": at + n} for n, entry in enumerate(entries)], [last])
    user, first, second = messages(tmp_path, "vibe")
    assert (user.content, first.content, first.reasoning) == ("Check it", "I run it.", "Run it.")
    [call] = first.tool_calls
    assert call.success is False and call.result is not None and json.loads(call.result.result)["text"] == "no"
    assert second.content == "It fails." and second.usage is not None and second.usage.input_tokens == 30
    [found] = find_sessions(tmp_path, ["vibe"])
    assert (found.id, found.folder) == ("v1", stores.FOLDER)


def command_line_of_cline(home: Path) -> None:
    folder = home / ".cline/data/sessions/17_a"
    told = [{"query": "make", "result": "[Command exited with code 3]\nno", "error": "x", "success": False}]
    read = {"type": "tool_use", "id": "r", "name": "read_files", "input": {"files": [{"path": "a.py"}]}}
    run = {"type": "tool_use", "id": "c", "name": "run_commands", "input": {"commands": ["make"]}}
    more = {"modelInfo": {"id": "m"}, "metrics": {"inputTokens": 10, "outputTokens": 2, "cacheReadTokens": 4}}
    results = [
        {"type": "tool_result", "tool_use_id": "r", "content": [{"query": "a.py", "result": "1 | x", "success": True}]},
        {"type": "tool_result", "tool_use_id": "c", "content": told},
    ]
    said = [
        {"role": "user", "content": text('<user_input mode="act">Check it</user_input>'), "ts": 1_795_880_000_528},
        {"role": "assistant", "content": [*text("I check."), read, run], "ts": 1_795_880_000_600, **more},
        {"role": "user", "content": results, "ts": 1_795_880_000_700},
    ]
    stores.write_json(folder / "17_a.messages.json", {"sessionId": "17_a", "messages": said})
    stores.write_json(folder / "17_a.json", {"cwd": stores.FOLDER})


def test_results_files_model_and_tokens_of_clines_command_line(tmp_path: Path) -> None:
    command_line_of_cline(tmp_path)
    user, reply = messages(tmp_path, "cline")
    assert (user.content, reply.model) == ("Check it", "m")
    assert reply.usage is not None and (reply.usage.input_tokens, reply.usage.cached_tokens) == (10, 4)
    read, run = reply.tool_calls
    assert read.result is not None and json.loads(read.result.result) == {"text": "1 | x"}
    assert (read.success, [file.path for file in read.files]) == (True, ["a.py"])
    assert run.result is not None and (run.success, run.result.error) == (False, "exit status 3")


def conversation(n: int, nodes: list[tuple[str, str | None, str, str]], **more: Any) -> dict[str, Any]:
    mapping = {
        id: {
            "parent": parent,
            "message": {"id": id, "author": {"role": role}, "create_time": at, "content": {"parts": [words]}},
        }
        for at, (id, parent, role, words) in enumerate(nodes, start=1_770_000_000)
    }
    return {"title": f"Talk {n}", "mapping": mapping, "create_time": n, **more}


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"current_node": "b"}, ["Hi", "Old"]),
        ({"current_node": None}, ["Hi", "New"]),
        ({"current_node": "nowhere", "default_model_slug": "m"}, ["Hi", "New"]),
    ],
)
def test_talk_of_chatgpt_without_ids_or_a_current_node(
    more: dict[str, Any], expected: list[str], tmp_path: Path
) -> None:
    nodes = [("a", None, "user", "Hi"), ("b", "a", "assistant", "Old"), ("c", "a", "assistant", "New")]
    path = tmp_path / "conversations-000.json"
    stores.write_json(path, [conversation(1, nodes, **more)])
    [found] = detect(path, tmp_path)
    export = read_session(found).export(found)
    assert export is not None
    assert [m.content for turn in export.turns for m in turn.messages] == expected
    assert export.conversation.model == more.get("default_model_slug", "")


def test_thoughts_of_chatgpt_are_reasoning(tmp_path: Path) -> None:
    talk = conversation(1, [("a", None, "user", "Hi"), ("b", "a", "assistant", "")], id="x")
    thoughts = [{"summary": "S", "content": "I think."}]
    talk["mapping"]["b"]["message"]["content"] = {"content_type": "thoughts", "thoughts": thoughts}
    stores.write_json(tmp_path / "conversations.json", [talk])
    [found] = detect(tmp_path, tmp_path / "home")
    export = read_session(found).export(found)
    assert export is not None and export.turns[0].messages[1].reasoning == "I think."


Write = Callable[[Path], None]


def unknown_file(place: str) -> Write:
    return lambda home: stores.write_json(home / place, {"layout": 9, "messages": ["something"]})


@pytest.mark.parametrize(
    ("agent", "write"),
    [
        ("vibe", unknown_file(".vibe/logs/session/v4/abc/history.json")),
        ("codex", unknown_file(".codex/sessions/2026/01/01/thread-1.json")),
        ("claude-code", unknown_file(".claude/projects/p/session-1.json")),
        ("qwen", unknown_file(".qwen/projects/p/chats/one.json")),
        (
            "opencode",
            lambda home: stores.database(home / ".local/share/opencode/opencode.db", "create table x (a)", {}),
        ),
    ],
)
def test_data_in_an_unknown_layout_is_told(agent: str, write: Write, tmp_path: Path) -> None:
    write(tmp_path)
    assert [(one.agent, one.readable) for one in find_sessions(tmp_path)] == [(agent, False)]


@pytest.mark.parametrize("agent", [*stores.WRITERS])
def test_a_store_that_is_read_is_no_unknown_layout(agent: str, tmp_path: Path) -> None:
    stores.WRITERS[agent](tmp_path)
    assert [one.readable for one in find_sessions(tmp_path, [agent])] == [True]


@pytest.mark.parametrize("agent", ["codex", "gemini-cli", "cline", "qwen", "vibe"])
def test_file_of_a_store_is_the_session_that_the_store_lists(agent: str, tmp_path: Path) -> None:
    path = stores.WRITERS[agent](tmp_path)
    [listed] = find_sessions(tmp_path, [agent])
    [named] = detect(path, tmp_path)
    assert (named.id, named.folder) == (listed.id, listed.folder)
    [in_folder] = detect(path.parent, tmp_path)
    assert in_folder.id == listed.id
