"""A scene to look at: a conversation with everything in it, played by the fake engine.

Used by the snapshot tests; `python -m tests.support.chat_scene` shows it in a terminal, slowly.
"""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from ragforge_tui.shared.events import (
    ApprovalRequested,
    Event,
    MessageFinished,
    MessageStarted,
    ReasoningDelta,
    TextDelta,
    ToolCallFinished,
    ToolCallStarted,
    TurnCompleted,
)
from ragforge_tui.shared.records import Conversation, FileAccess, ToolCall, ToolResult, Turn, Usage
from tests.support.fake_engine import CLOCK, FakeEngine, conversation, message, sessions

QUESTION = "The retry in store.py doubles turns when the constraint fires. Why?"
FIRST = "I will look at how the index is allocated and what is retried."
ANSWER = """The managed transaction is retried **inside** `append_turn`, but the turn's uuid is made \
*in* the transaction, so each try is a new turn:

```python
async def work(tx):
    uuid = uuid4().hex          # a new one on every retry
    await tx.run(APPEND, uuid=uuid)
```

Two ways to mend it:

1. make the uuid before the transaction (idempotent MERGE)
2. look the turn up by its client id first
"""
DIFF = """--- a/graph/store.py
+++ b/graph/store.py
@@ -118,7 +118,8 @@
     async def append_turn(self, text: str) -> Turn:
+        uuid = uuid4().hex
         async def work(tx):
-            uuid = uuid4().hex
             await tx.run(APPEND, uuid=uuid)
         return await self._graph.write(work)
"""


MATCHES = "graph/store.py:118: next_turn\n" * 7
READ = "".join(f"{number:>6}\tline\n" for number in range(112, 169))
COUNTED = {"grep_files": "matches", "read_file": "lines"}


def tool_call(owner: Conversation, number: int, name: str, arguments: dict[str, Any], text: str, ms: int) -> ToolCall:
    """A tool call that is done, with the count that such a tool reports: the lines of its text."""
    uuid = f"c-{owner.uuid[:8]}-{number}"
    result = ToolResult(
        uuid=f"r-{number}",
        tool_call_id=uuid,
        success=True,
        result=json.dumps({"text": text} | ({COUNTED[name]: len(text.splitlines())} if name in COUNTED else {})),
        timestamp=CLOCK,
        result_size_bytes=len(text),
    )
    return ToolCall(
        uuid=uuid,
        message_id=f"m-{owner.uuid[:8]}-1-1",
        tool_name=name,
        arguments=json.dumps(arguments),
        ordinal=number,
        timestamp=CLOCK,
        duration_ms=ms,
        success=True,
        result=result,
        files=[FileAccess(path="graph/store.py", access="read")],
    )


def told(owner: Conversation) -> Turn:
    """The turn of the scene, as it is stored."""
    calls = [
        tool_call(owner, 1, "grep_files", {"pattern": "next_turn", "path": "ragforge_tui/graph"}, MATCHES, 38),
        tool_call(owner, 2, "read_file", {"path": "graph/store.py", "start": 112, "end": 168}, READ, 4),
    ]
    first = message(owner, 1, "assistant", FIRST, 1, reasoning="Retried twice?", tool_calls=calls)
    return Turn(
        turn_index=1,
        messages=[message(owner, 1, "user", QUESTION), first, message(owner, 1, "assistant", ANSWER, 2)],
    )


def scene_engine() -> FakeEngine:
    """An engine with stored conversations, the newest of them the scene's."""
    engine = FakeEngine(script=play)
    list(sessions(engine))
    owner = engine.conversations[conversation(1).uuid]
    engine.store(owner, told(owner))
    return engine


def approval(owner: Conversation, index: int) -> ApprovalRequested:
    """A write that waits for the person."""
    call = tool_call(owner, 9, "edit_file", {"path": "graph/store.py"}, "", 0)
    call.success = call.duration_ms = call.result = None
    return ApprovalRequested(
        conversation_id=owner.uuid,
        turn_index=index,
        approval_id="a1",
        call=call,
        kind="write",
        question="Edit graph/store.py?",
        detail=DIFF,
        session_scope="edit_file in this workspace",
    )


async def play(engine: FakeEngine, owner: Conversation, index: int, text: str) -> AsyncIterator[Event]:
    """A turn told slowly; "approve" in the message asks for an approval."""
    where: dict[str, Any] = {"conversation_id": owner.uuid, "turn_index": index}
    for position, body in ((1, FIRST), (2, ANSWER)):
        reply = message(owner, index, "assistant", "", position, usage=Usage(input_tokens=900, output_tokens=120))
        yield MessageStarted(message_id=reply.uuid, persona=owner.persona, model="fake", **where)
        for word in ("Let", " me", " see."):
            await asyncio.sleep(0.1)
            yield ReasoningDelta(message_id=reply.uuid, text=word, **where)
        for start in range(0, len(body), 6):
            await asyncio.sleep(0.02)
            reply.content += body[start : start + 6]
            yield TextDelta(message_id=reply.uuid, text=body[start : start + 6], **where)
        yield MessageFinished(message=reply, **where)
        if position == 1:
            call = tool_call(owner, index * 10, "run_command", {"command": "pytest tests/graph -k retry"}, "ok", 1200)
            if "approve" in text:
                yield approval(owner, index)
            yield ToolCallStarted(call=call, **where)
            await asyncio.sleep(1.2)
            yield ToolCallFinished(call=call, **where)
    yield TurnCompleted(text=ANSWER, usage=Usage(input_tokens=1800, output_tokens=240, cost_usd=0.11), **where)


def main() -> int:
    """Show it."""
    from ragforge_tui.tui.app import ChatOptions, run_chat

    async def connect() -> FakeEngine:
        return scene_engine()

    folder = os.environ.get("SCENE_STATE") or tempfile.mkdtemp()
    return run_chat(connect, ChatOptions(continue_last=True, state_dir=Path(folder), workspace="/w", version="0.1.0"))


if __name__ == "__main__":
    raise SystemExit(main())
