"""A conversation with a bit of everything the memory makes, stored through the store as the program does."""

from __future__ import annotations

import uuid

import msgspec

from ragforge_tui.graph import Store
from ragforge_tui.graph.store.summary_tree import summary_uuid
from ragforge_tui.graph.store.topic_names import ProposedTopic, TopicLink
from ragforge_tui.shared.records import (
    FileAccess,
    FileAccessKind,
    Finding,
    LineChange,
    Summary,
    ToolCall,
    ToolResult,
    now,
)
from tests.support.records import add_reply, call_of, conversation, message


async def talk(store: Store, conversation_id: str, text: str, *files: tuple[str, FileAccessKind]) -> int:
    """A turn: a question, and an answer that touched files; its index."""
    asked = await store.messages.begin_turn(message(conversation_id, content=text))
    answer = message(
        conversation_id, role="assistant", turn_index=asked.turn_index, content=f"answer to {text}", reasoning="hm"
    )
    answer = await add_reply(store, answer)
    for ordinal, (path, access) in enumerate(files):
        call = call_of(answer.uuid, ordinal=ordinal, tool_name=f"{access}_it", arguments=f'{{"path": "{path}"}}')
        await store.tool_calls.start(call, conversation_id)
        await store.tool_calls.finish(finished(call, FileAccess(path=path, access=access)), "/w")
    return asked.turn_index


def finished(call: ToolCall, *files: FileAccess) -> ToolCall:
    """The call with a result; one that writes changed lines."""
    result = ToolResult(
        uuid=str(uuid.uuid4()), tool_call_id=call.uuid, success=True, result='{"text": "done"}', timestamp=now()
    )
    changes = [
        LineChange(path=file.path, before="", after=call.uuid, hunks='{"lines": "a", "hunks": [[0, "", 0, 1]]}')
        for file in files
        if file.access == "write"
    ]
    return msgspec.structs.replace(call, success=True, duration_ms=7, result=result, files=list(files), changes=changes)


def summary(conversation_id: str, level: int, start: int, end: int, *below: Summary, **fields: object) -> Summary:
    """A summary of those turns."""
    made = Summary(
        uuid=summary_uuid(conversation_id, level, start, end),
        conversation_id=conversation_id,
        level=level,
        ordinal=start,
        title=f"Title of {start}",
        conversation_summary=f"What turns {start} to {end} were about.",
        actions_summary="Read a file.",
        key_findings=[Finding(text=f"Found in {start}", turns=[start], kind="decision")],
        files_mentioned=["src/app.py"],
        start_turn_index=start,
        end_turn_index=end,
        turn_count=end - start + 1,
        parent_summaries=[each.uuid for each in below],
        made_by="extractive",
        created_at=now(),
    )
    return msgspec.structs.replace(made, **fields)


async def remembered(store: Store, turns: int = 6, **fields: object) -> str:
    """A conversation with turns, L1s of two turns each, one L2, topics that were merged, contexts and a persona."""
    c = await store.conversations.create(conversation(title="Remembered", workspace="/w", **fields))
    for n in range(1, turns + 1):
        await talk(store, c.uuid, f"question {n}", ("src/app.py", "write"), (f"src/m{n}.py", "read"))
        answer = (await store.turns.between(c.uuid, start=n, end=n + 1))[0].messages[-1]
        await store.messages.store_persona(answer.uuid, "Ada", "digest", "You are Ada.")
        await store.contexts.store(answer.uuid, f'{{"turn": {n}}}', n, f"digest {n}", {"d": "You are an agent."})
    below: list[Summary] = []
    for start in range(1, turns - 2, 2):
        made = await store.summaries.store(
            summary(c.uuid, 1, start, start + 1),
            [
                ProposedTopic(name=f"Topic {start}"),
                ProposedTopic(name="Shared", confidence=0.9, description=f"Told in {start}"),
            ],
        )
        assert made is not None
        below.append(made)
    links = [
        TopicLink(a="Topic 1", b="Topic 3", confidence=0.9),
        TopicLink(a="Shared", b="Topic 1", confidence=0.4, same=False),
    ]
    assert await store.summaries.store(summary(c.uuid, 2, 1, 4, *below[:2]), [ProposedTopic(name="Topic 3")], links)
    return c.uuid
