"""A home folder with a session of every agent, each about the same two turns, as the agents' own sources write them."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

ASKED = "Why does the parser fail on empty lines?"
ANSWERED = "It divides by the number of columns."
THANKED = "Mend it, and add a test."
DONE = "Mended, with a test for empty lines."
READ = "def parse(line): return 1 / len(line.split())"
HELPED = "Where are lines parsed?"
FOUND_IT = "In src/parser.py, line 3."
START = 1_753_347_600
"""24 July 2025, 09:00 UTC."""
FOLDER = "/work/parser"
CALL = {"file_path": f"{FOLDER}/src/parser.py"}


def iso(seconds: int) -> str:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(START + seconds, tz=UTC).isoformat().replace("+00:00", "Z")


def write_lines(path: Path, lines: Iterable[dict[str, Any]], *, torn: bool = True) -> None:
    """Write JSON lines that rest since long ago; a torn last line is what a crash leaves."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(json.dumps(line) + "\n" for line in lines)
    path.write_text(text + ('{"type": "user", "mess' if torn else ""))
    rest(path)


def write_json(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value))
    rest(path)


def rest(path: Path) -> None:
    """Make a file look as if it was last written a day ago."""
    then = path.stat().st_mtime - 86_400
    os.utime(path, (then, then))


def database(path: Path, script: str, rows: dict[str, list[tuple[Any, ...]]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(script)
        for table, values in rows.items():
            for row in values:
                connection.execute(f"INSERT INTO {table} VALUES ({','.join('?' * len(row))})", row)
        connection.commit()
    rest(path)


def claude_code(home: Path, session: str = "c1a0de00-0000-4000-8000-000000000001") -> Path:
    path = home / f".claude/projects/-work-parser/{session}.jsonl"
    line = {"sessionId": session, "cwd": FOLDER, "isSidechain": False}

    def said(kind: str, at: int, content: Any, **more: Any) -> dict[str, Any]:
        message = {"role": kind, "content": content, **more}
        return {**line, "type": kind, "uuid": f"u{at}", "timestamp": iso(at), "message": message}

    write_lines(
        path,
        [
            {"type": "summary", "summary": "The parser and empty lines", "leafUuid": "u8"},
            {**said("user", 0, "<command-name>/clear</command-name>"), "isMeta": True},
            said("user", 1, ASKED),
            said("assistant", 2, [{"type": "thinking", "thinking": "Let me look."}], id="m1", model="claude-x"),
            said("assistant", 3, [{"type": "tool_use", "id": "t1", "name": "Read", "input": CALL}], id="m1"),
            said(
                "user", 4, [{"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": READ}]}]
            ),
            said("assistant", 5, [{"type": "text", "text": ANSWERED}], id="m2", model="claude-x"),
            said("assistant", 5, [{"type": "text", "text": ANSWERED}], id="m2", model="claude-x"),
            {**said("user", 6, "a helper's question"), "isSidechain": True},
            said("user", 7, f"<system-reminder>be brief</system-reminder>\n{THANKED}"),
            said("assistant", 8, [{"type": "text", "text": DONE}], id="m3", model="claude-x"),
        ],
    )
    return path


def add_claude_helper(path: Path, form: str = "inline") -> None:
    """Let a session end with the work of a helper: in a file, in a folder, among its lines, or these without its id."""
    base = {"sessionId": path.stem, "cwd": FOLDER}
    own = {**base, "isSidechain": True, **({} if form in ("inline", "unnamed") else {"agentId": "a1"})}

    def said(line: dict[str, Any], kind: str, at: int, content: Any, **more: Any) -> dict[str, Any]:
        message = {"role": kind, "content": content, "id": f"h{at}"}
        return {**line, "type": kind, "uuid": f"h{at}", "timestamp": iso(at), "message": message, **more}

    grep = [{"type": "tool_use", "id": "g", "name": "Grep", "input": {"pattern": "def parse"}}]
    work = [
        said(own, "user", 10, HELPED, parentUuid=None),
        said(own, "assistant", 11, grep, parentUuid="h10"),
        said(own, "user", 12, [{"type": "tool_result", "tool_use_id": "g", "content": "src/parser.py:3"}]),
        said(own, "assistant", 13, FOUND_IT, parentUuid="h12"),
    ]
    work[2]["parentUuid"] = "h11"
    task = [{"type": "tool_use", "id": "t9", "name": "Task", "input": {"prompt": HELPED}}]
    result = [{"type": "tool_result", "tool_use_id": "t9", "content": FOUND_IT}]
    named = {} if form == "unnamed" else {"toolUseResult": {"agentId": "a1"}}
    parent = [said(base, "assistant", 9, task), said(base, "user", 14, result, **named)]
    lines = [json.loads(line) for line in path.read_text().splitlines()[:-1]]
    inside = form in ("inline", "unnamed")
    write_lines(path, [*lines, parent[0], *(work if inside else ()), parent[1]])
    if not inside:
        place = path.parent if form == "file" else path.with_suffix("") / "subagents"
        write_lines(place / "agent-a1.jsonl", work)
        write_lines(place / "agent-a2.jsonl", [{**line, "agentId": "a2"} for line in work[1:]])


def codex(home: Path) -> Path:
    path = home / ".codex/sessions/2025/07/24/rollout-2025-07-24T09-00-00-cd.jsonl"

    def item(at: int, **payload: Any) -> dict[str, Any]:
        return {"timestamp": iso(at), "type": "response_item", "payload": payload}

    def said(at: int, role: str, text: str) -> dict[str, Any]:
        kind = "output_text" if role == "assistant" else "input_text"
        return item(at, type="message", role=role, content=[{"type": kind, "text": text}])

    output = json.dumps({"output": READ, "metadata": {"exit_code": 0}})
    write_lines(
        path,
        [
            {"timestamp": iso(0), "type": "session_meta", "payload": {"id": "cd", "cwd": FOLDER}},
            {"timestamp": iso(0), "type": "turn_context", "payload": {"model": "gpt-x"}},
            said(0, "user", "<environment_context>a shell</environment_context>"),
            said(1, "user", ASKED),
            item(2, type="reasoning", summary=[{"type": "summary_text", "text": "Let me look."}]),
            item(3, type="function_call", name="read_file", arguments=json.dumps(CALL), call_id="t1"),
            item(4, type="function_call_output", call_id="t1", output=output),
            said(5, "assistant", ANSWERED),
            {"timestamp": iso(5), "type": "event_msg", "payload": {"type": "agent_message", "message": ANSWERED}},
            said(7, "user", THANKED),
            said(8, "assistant", DONE),
        ],
    )
    return path


OPENCODE = """
create table session (id text primary key, parent_id text, directory text, title text, time_created, time_updated);
create table message (id text primary key, session_id text, time_created, data text);
create table part (id text primary key, message_id text, data text);
"""


def opencode(home: Path) -> Path:
    path = home / ".local/share/opencode/opencode.db"
    state = {"status": "completed", "input": {"filePath": CALL["file_path"]}, "output": READ}

    def at(seconds: int) -> int:
        return (START + seconds) * 1_000

    def message(role: str, seconds: int, **more: Any) -> str:
        return json.dumps({"role": role, "time": {"created": at(seconds)}, **more})

    parts: list[dict[str, Any]] = [
        {"type": "text", "text": ASKED},
        {"type": "reasoning", "text": "Let me look."},
        {"type": "tool", "callID": "t1", "tool": "read", "state": state},
        {"type": "text", "text": ANSWERED},
        {"type": "text", "text": THANKED},
        {"type": "text", "text": DONE},
    ]
    owners = ["m1", "m2", "m2", "m2", "m3", "m4"]
    usage = {"input": 10, "output": 5, "cache": {"read": 3, "write": 0}}
    database(
        path,
        OPENCODE,
        {
            "session": [
                ("ses_1", None, FOLDER, "The parser", at(0), at(8)),
                ("ses_2", "ses_1", FOLDER, "helper", at(0), at(8)),
            ],
            "message": [
                ("m1", "ses_1", at(1), message("user", 1)),
                ("m2", "ses_1", at(2), message("assistant", 2, modelID="x", providerID="p", tokens=usage, cost=0.5)),
                ("m3", "ses_1", at(7), message("user", 7)),
                ("m4", "ses_1", at(8), message("assistant", 8, modelID="x", providerID="p")),
            ],
            "part": [
                (f"p{n}", owner, json.dumps(part)) for n, (owner, part) in enumerate(zip(owners, parts, strict=True))
            ],
        },
    )
    return path


def gemini(home: Path) -> Path:
    path = home / ".gemini/tmp/parser/chats/session-2025-07-24.jsonl"
    write_json(home / ".gemini/projects.json", {"projects": {FOLDER: "parser"}})
    answer = {
        "functionResponse": {"id": "t1", "name": "read_file", "response": {"output": READ}},
    }
    call = {"id": "t1", "name": "read_file", "args": {"file_path": CALL["file_path"]}, "status": "success"}
    head = {"sessionId": "ge-1", "startTime": iso(0), "lastUpdated": iso(8), "kind": "main"}
    write_lines(
        path,
        [
            head,
            {"id": "1", "timestamp": iso(1), "type": "user", "content": ASKED},
            {"id": "2", "timestamp": iso(2), "type": "gemini", "content": ""},
            {
                "id": "2",
                "timestamp": iso(2),
                "type": "gemini",
                "content": ANSWERED,
                "model": "gemini-x",
                "thoughts": [{"subject": "Look", "description": "Let me look."}],
                "toolCalls": [{**call, "result": [answer]}],
            },
            {"id": "3", "timestamp": iso(7), "type": "user", "content": [{"text": THANKED}]},
            {"$rewindTo": "3"},
            {"$set": {"messages": [{"id": "4", "timestamp": iso(8), "type": "gemini", "content": DONE}]}},
        ],
    )
    # The older form of the same session, as it was left behind.
    old = [{"id": "1", "timestamp": iso(1), "type": "user", "content": ASKED}]
    write_json(path.with_suffix(".json"), {**head, "messages": old})
    return path


def qwen(home: Path) -> Path:
    path = home / ".qwen/projects/-work-parser/chats/qw-1.jsonl"

    def said(kind: str, role: str, at: int, *parts: dict[str, Any]) -> dict[str, Any]:
        message = {"role": role, "parts": list(parts)}
        return {"type": kind, "sessionId": "qw-1", "cwd": FOLDER, "timestamp": iso(at), "message": message}

    write_lines(
        path,
        [
            said("user", "user", 1, {"text": ASKED}),
            said(
                "assistant",
                "model",
                2,
                {"text": "Let me look.", "thought": True},
                {"functionCall": {"id": "t1", "name": "read_file", "args": {"absolute_path": CALL["file_path"]}}},
            ),
            said("tool_result", "user", 4, {"functionResponse": {"id": "t1", "response": {"output": READ}}}),
            said("assistant", "model", 5, {"text": ANSWERED}),
            said("user", "user", 7, {"text": THANKED}),
            said("assistant", "model", 8, {"text": DONE}),
        ],
    )
    return path


def vibe(home: Path) -> Path:
    path = home / ".vibe/logs/session/session_20250724_090000_vi/messages.jsonl"
    meta = {"session_id": "vi-1", "start_time": iso(0), "environment": {"working_directory": FOLDER}, "title": "Parser"}
    write_json(path.with_name("meta.json"), meta)
    call = {"id": "t1", "function": {"name": "read_file", "arguments": json.dumps({"path": "src/parser.py"})}}
    write_lines(
        path,
        [
            {"role": "user", "content": ASKED},
            {"role": "assistant", "content": "", "reasoning_content": "Let me look.", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "t1", "name": "read_file", "content": READ},
            {"role": "assistant", "content": ANSWERED},
            {"role": "user", "content": THANKED},
            {"role": "assistant", "content": DONE},
        ],
    )
    return path


CRUSH = """
create table sessions (id text primary key, parent_session_id text, title text, updated_at int, created_at int);
create table messages (id text primary key, session_id text, role text, parts text, model text, created_at int);
"""


def crush(home: Path) -> Path:
    path = home / "crush-data/crush.db"
    write_json(
        home / ".local/share/crush/projects.json", {"projects": [{"path": FOLDER, "data_dir": str(path.parent)}]}
    )

    def part(kind: str, **data: Any) -> dict[str, Any]:
        return {"type": kind, "data": data}

    call = part("tool_call", id="t1", name="view", input=json.dumps(CALL))
    messages = [
        ("user", [part("text", text=ASKED)], 1),
        ("assistant", [part("reasoning", thinking="Let me look."), call], 2),
        ("tool", [part("tool_result", tool_call_id="t1", content=READ, is_error=False)], 4),
        ("assistant", [part("text", text=ANSWERED), part("finish", reason="end_turn")], 5),
        ("user", [part("text", text=THANKED)], 7),
        ("assistant", [part("text", text=DONE)], 8),
    ]
    rows = [(f"m{at}", "cr-1", role, json.dumps(parts), "model-x", START + at) for role, parts, at in messages]
    database(path, CRUSH, {"sessions": [("cr-1", None, "Parser", START + 8, START)], "messages": rows})
    return path


GOOSE = """
create table sessions (id text primary key, description text, session_type text, working_dir text, created_at text);
create table messages (id integer primary key, session_id text, role text, content_json text, created_timestamp int);
"""


def goose(home: Path) -> Path:
    path = home / ".local/share/goose/sessions/sessions.db"
    call = {"status": "success", "value": {"name": "text_editor__view", "arguments": {"path": CALL["file_path"]}}}
    result = {"status": "success", "value": [{"type": "text", "text": READ}]}
    contents: list[tuple[str, list[dict[str, Any]], int]] = [
        ("user", [{"type": "text", "text": ASKED}], 1),
        (
            "assistant",
            [{"type": "thinking", "thinking": "Let me look."}, {"type": "toolRequest", "id": "t1", "toolCall": call}],
            2,
        ),
        ("user", [{"type": "toolResponse", "id": "t1", "toolResult": result}], 4),
        ("assistant", [{"type": "text", "text": ANSWERED}], 5),
        ("user", [{"type": "text", "text": THANKED}], 7),
        ("assistant", [{"type": "text", "text": DONE}], 8),
    ]
    rows = [(None, "20250724_1", role, json.dumps(content), START + at) for role, content, at in contents]
    database(path, GOOSE, {"sessions": [("20250724_1", "Parser", "user", FOLDER, iso(0))], "messages": rows})
    return path


def cline(home: Path) -> Path:
    task = str(START * 1_000)
    root = home / ".config/Code/User/globalStorage/saoudrizwan.claude-dev"
    path = root / f"tasks/{task}/api_conversation_history.json"
    write_json(root / "state/taskHistory.json", [{"id": task, "cwdOnTaskInitialization": FOLDER}])
    state = {"type": "text", "text": "<environment_details>open tabs</environment_details>"}
    write_json(
        path,
        [
            {"role": "user", "content": [{"type": "text", "text": f"<task>\n{ASKED}\n</task>"}, state]},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "Let me look."},
                    {"type": "tool_use", "id": "t1", "name": "read_file", "input": {"path": "src/parser.py"}},
                ],
            },
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": READ}, state]},
            {"role": "assistant", "content": [{"type": "text", "text": ANSWERED}]},
            {"role": "user", "content": [{"type": "text", "text": THANKED}]},
            {"role": "assistant", "content": [{"type": "text", "text": DONE}]},
        ],
    )
    return path


def aider(home: Path) -> Path:
    path = home / "src/parser/.aider.chat.history.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(
        "\n# aider chat started at 2025-07-24 09:00:00\n\n"
        "> Aider v0.86.2\n\n"
        f"#### {ASKED}\n\n{ANSWERED}\n\n> Applied edit to src/parser.py\n\n"
        f"#### {THANKED}\n\n{DONE}\n"
    )
    rest(path)
    return path


def chatgpt(path: Path) -> Path:
    texts = [("user", ASKED, 1), ("assistant", ANSWERED, 5), ("user", THANKED, 7), ("assistant", DONE, 8)]
    mapping: dict[str, Any] = {"root": {"id": "root", "message": None, "parent": None}}
    parent = "root"
    for role, text, at in texts:
        content = {"content_type": "text", "parts": [text]}
        message = {"id": f"n{at}", "author": {"role": role}, "create_time": START + at, "content": content}
        mapping[f"n{at}"] = {"id": f"n{at}", "message": message, "parent": parent}
        parent = f"n{at}"
    mapping["edited"] = {"id": "edited", "message": {**mapping["n7"]["message"]}, "parent": "n5"}
    write_json(path, [{"id": "gpt-1", "title": "Parser", "mapping": mapping, "current_node": parent}])
    return path


def claude(path: Path) -> Path:
    texts = [("human", ASKED, 1), ("assistant", ANSWERED, 5), ("human", THANKED, 7), ("assistant", DONE, 8)]
    messages = [
        {
            "uuid": f"m{at}",
            "sender": sender,
            "text": text,
            "created_at": iso(at),
            "content": [{"type": "text", "text": text}],
        }
        for sender, text, at in texts
    ]
    write_json(path, [{"uuid": "cl-1", "name": "Parser", "created_at": iso(0), "chat_messages": messages}])
    return path


WRITERS = {
    "claude-code": claude_code,
    "codex": codex,
    "opencode": opencode,
    "gemini-cli": gemini,
    "qwen": qwen,
    "vibe": vibe,
    "crush": crush,
    "goose": goose,
    "cline": cline,
    "aider": aider,
}
