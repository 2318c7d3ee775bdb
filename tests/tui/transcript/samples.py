"""Records and settings the transcript's tests share."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from textual.theme import BUILTIN_THEMES

from ragforge_tui.shared.records import Message, MessageState, ToolCall, ToolResult, Turn
from ragforge_tui.tui.drawing import diff_lines, lines
from ragforge_tui.tui.drawing.lines import Line, line_of
from ragforge_tui.tui.drawing.palette import palette_of
from ragforge_tui.tui.transcript.document import DisplayOptions

NOON = datetime(2026, 11, 3, 12, 0, tzinfo=UTC)
DARK = palette_of(BUILTIN_THEMES["textual-dark"].to_color_system().generate(), dark=True, ansi=False)

ANSWER = """The managed transaction is retried **inside** `append_turn`, but the turn's uuid is made in it:

```python
async def work(tx):
    uuid = uuid4().hex          # a new one on every retry
    await tx.run(APPEND, uuid=uuid)
```

Two ways to mend it:

1. make the uuid before the transaction (idempotent `MERGE`)
2. look the turn up by its client id first
   - costs a *round trip*
   - see [the manual](https://example.org/merge)

| way | round trips | risk |
|---|---|---|
| before | 1 | none |
| look up | 2 | a **race** between two writers |

> The first one is what the rest of the code does.
"""


def shown() -> DisplayOptions:
    """A clock that stands still."""
    return DisplayOptions(now=lambda: NOON, zone=UTC)


def text_of(lines: Sequence[Line]) -> list[str]:
    """Lines as plain text, without trailing blanks."""
    return [line.strip.text.rstrip() for line in lines]


def said(text: str, turn: int = 1) -> Message:
    """What the person said."""
    return Message(uuid=f"u{turn}", conversation_id="c", turn_index=turn, role="user", content=text, timestamp=NOON)


def reply(
    text: str,
    turn: int = 1,
    *,
    uuid: str = "",
    reasoning: str = "",
    state: MessageState = "complete",
    error: str = "",
    calls: Sequence[ToolCall] = (),
) -> Message:
    """What the model said."""
    return Message(
        uuid=uuid or f"a{turn}",
        conversation_id="c",
        turn_index=turn,
        position=1,
        role="assistant",
        content=text,
        reasoning=reasoning,
        state=state,
        error=error,
        persona="Ragnarök",
        timestamp=NOON,
        tool_calls=list(calls),
    )


def called(
    name: str,
    arguments: dict[str, Any] | str,
    result: dict[str, Any] | None = None,
    *,
    uuid: str = "",
    message: str = "a1",
    error: str | None = None,
    duration: int | None = 12,
) -> ToolCall:
    """A call of a tool; failed when there is an error, running when there is neither error nor result."""
    written = arguments if isinstance(arguments, str) else json.dumps(arguments)
    call = ToolCall(uuid=uuid or f"{name}-1", message_id=message, tool_name=name, arguments=written, timestamp=NOON)
    if result is not None or error is not None:
        call.success = error is None
        call.duration_ms = duration
        call.result = ToolResult(
            uuid=f"{call.uuid}-r",
            tool_call_id=call.uuid,
            success=error is None,
            result=json.dumps(result if result is not None else {"text": error}),
            error=error,
            timestamp=NOON,
        )
    return call


def plain_turns(count: int, *, first: int = 1) -> list[Turn]:
    """Turns of one question and one answer."""
    return [
        Turn(turn_index=turn, messages=[said(f"question {turn}", turn), reply(f"answer {turn}\n\n- one\n- two", turn)])
        for turn in range(first, first + count)
    ]


def working_turn() -> Turn:
    """A turn with reasoning, tools in every state, a plan, and a long answer."""
    diff = "--- a/graph/schema.py\n+++ b/graph/schema.py\n@@ -1,3 +1,4 @@\n import x\n-old = 1\n+new = 1\n+more = 2\n"
    todos = [
        {"content": "find the cause", "status": "completed"},
        {"content": "mend it", "status": "in_progress"},
        {"content": "a test that retries twice", "status": "pending"},
    ]
    calls = [
        called("grep_files", {"pattern": "next_turn", "path": "graph"}, {"text": "", "matches": 7}, duration=38),
        called(
            "read_file", {"path": "graph/store.py", "start_line": 112, "end_line": 114}, {"text": "a\nb\nc", "lines": 3}
        ),
        called("edit_file", {"path": "graph/schema.py"}, error="old_string is not unique (2 places)", uuid="e1"),
        called("edit_file", {"path": "graph/schema.py"}, {"text": "ok", "diff": diff}, uuid="e2"),
        called("update_todos", {"todos": todos}, {"text": "ok", "todos": todos}),
        called(
            "run_command",
            {"command": "pytest tests/graph -k retry"},
            {"text": "1 failed", "exit_status": 1},
            error="Exit status 1.",
        ),
    ]
    first = reply(
        "I will look at how the index is allocated.", reasoning="First the index, then the retry.", calls=calls
    )
    second = reply(ANSWER, uuid="a2")
    return Turn(turn_index=1, messages=[said("The retry in store.py doubles turns. Why?"), first, second])


def lines_made(monkeypatch: pytest.MonkeyPatch) -> list[Line]:
    """The lines of long texts and diffs that are made from here on."""
    made: list[Line] = []

    def noted(*args: Any, **more: Any) -> Line:
        made.append(line_of(*args, **more))
        return made[-1]

    for module in (lines, diff_lines):
        monkeypatch.setattr(module, "line_of", noted)
    return made
