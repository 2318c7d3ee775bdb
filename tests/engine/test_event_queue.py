"""Lines to a slow reader: deltas grow together, answers are never dropped, a flood ends in a reset."""

from __future__ import annotations

import msgspec

from ragforge_tui.engine.event_queue import MAX_JOINED_CHARS, MAX_PENDING_BYTES, EventQueue
from ragforge_tui.shared.events import Notice, ReasoningDelta, TextDelta, TurnReset
from ragforge_tui.shared.wire import Empty, ReplyLine


def text(message: str, text: str) -> TextDelta:
    return TextDelta(conversation_id="c", turn_index=1, message_id=message, text=text)


async def read(queue: EventQueue) -> list[ReplyLine]:
    return [msgspec.json.decode(line, type=ReplyLine) for line in await queue.lines()]


async def test_deltas_of_one_block_arrive_as_one() -> None:
    queue = EventQueue()
    for piece in ("one ", "two ", "three"):
        queue.event(text("a", piece))
    queue.event(ReasoningDelta(conversation_id="c", turn_index=1, message_id="a", text="hm"))
    queue.event(text("b", "other"))
    assert [line.event for line in await read(queue)] == [
        text("a", "one two three"),
        ReasoningDelta(conversation_id="c", turn_index=1, message_id="a", text="hm"),
        text("b", "other"),
    ]


async def test_an_event_between_keeps_its_place() -> None:
    queue = EventQueue()
    queue.event(text("a", "before"))
    queue.event(Notice(text="now"))
    queue.event(text("a", "after"))
    assert [line.event for line in await read(queue)] == [text("a", "before"), Notice(text="now"), text("a", "after")]


async def test_a_flood_becomes_a_reset_and_answers_survive() -> None:
    queue = EventQueue()
    queue.reply(ReplyLine(id=7, result=msgspec.Raw(msgspec.json.encode(Empty()))))
    piece = "x" * MAX_JOINED_CHARS
    for _ in range(MAX_PENDING_BYTES // len(piece) + 10):
        queue.event(text("a", piece))
    lines = await read(queue)
    assert [line.id for line in lines] == [7, None]
    assert lines[1].event == TurnReset(conversation_id="c", turn_index=1)
    queue.event(text("a", "later"))
    assert [line.event for line in await read(queue)] == [text("a", "later")]


async def test_nothing_is_lost_below_the_limit() -> None:
    queue = EventQueue()
    sent = "".join(f"{number} " for number in range(20_000))
    for start in range(0, len(sent), 7):
        queue.event(text("a", sent[start : start + 7]))
    lines = await read(queue)
    assert "".join(line.event.text for line in lines if isinstance(line.event, TextDelta)) == sent
