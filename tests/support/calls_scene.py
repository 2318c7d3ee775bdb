"""A conversation of many calls and the files they touched, for looking at the sidebar."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from ragforge_tui.shared.records import AccessedFile, FileAccess, ToolCall, Turn
from ragforge_tui.shared.requests.work import FileDiff
from tests.support.chat_scene import ANSWER, DIFF, tool_call
from tests.support.fake_engine import CLOCK, FakeEngine, conversation, message, sessions

CODE = "".join(f"{n:>6}\tdef part_{n}(x: int) -> str:  # comment {n}\n" for n in range(1, 60))
CALLS: tuple[tuple[str, dict[str, Any], str, int], ...] = (
    ("grep_files", {"pattern": "next_turn", "path": "ragforge_tui/graph"}, "store.py:118: next_turn\n" * 7, 38),
    ("read_file", {"path": "ragforge_tui/graph/store.py", "reason": "where it is allocated"}, CODE, 4),
    ("run_command", {"command": "pytest tests/graph -k retry"}, "8 passed", 3200),
    ("edit_file", {"path": "ragforge_tui/graph/schema.py", "old_string": "a", "new_string": "b"}, "Changed.", 12),
)
FILES = (
    ("ragforge_tui/graph/schema.py", "modified", "edit_file", 12),
    ("ragforge_tui/graph/store.py", "read", "read_file", 12),
    ("README.md", "read", "read_file", 1),
    ("a folder/with blanks.py", "found", "grep_files", 9),
)


def calls_engine(turns: int = 12) -> FakeEngine:
    """The newest conversation made four calls a turn; every third edit failed."""
    engine = FakeEngine()
    list(sessions(engine))
    owner = engine.conversations[conversation(1).uuid]
    engine.store(owner, *(_turn(engine, index) for index in range(1, turns + 1)))
    engine.work.diffs = [FileDiff(path=FILES[0][0], diff=DIFF, added=1, removed=1)]
    engine.memory.files = [
        AccessedFile(path=path, group=group, tool=tool, turn_index=turn, timestamp=CLOCK, count=1 + turn // 6)  # type: ignore[arg-type]
        for path, group, tool, turn in FILES
    ]
    return engine


def _turn(engine: FakeEngine, index: int) -> Turn:
    owner = engine.conversations[conversation(1).uuid]
    asked = message(owner, index, "user", f"Question {index}")
    reply = message(owner, index, "assistant", "I will look.", 1, tool_calls=calls_of(engine, index))
    return Turn(turn_index=index, messages=[asked, reply, message(owner, index, "assistant", ANSWER, 2)])


def calls_of(engine: FakeEngine, index: int) -> list[ToolCall]:
    """The calls of a turn."""
    owner = engine.conversations[conversation(1).uuid]
    calls = []
    for number, (name, arguments, text, duration) in enumerate(CALLS):
        call = tool_call(owner, number, name, arguments, text, duration)
        call.uuid = f"call-{index}-{number}"
        call.files = []
        assert call.result is not None
        if name == "edit_file":
            call.files = [FileAccess(path=arguments["path"], access="write")]
            call.result.result = json.dumps({"text": text, "diff": DIFF})
            if index % 3 == 0:
                call.success = False
                error = "old_string is not unique (2 places)"
                call.result = msgspec.structs.replace(
                    call.result, success=False, error=error, result=json.dumps({"text": error})
                )
        calls.append(call)
    return calls
