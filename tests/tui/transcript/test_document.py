"""From events and records to blocks: a live turn and the same turn resumed look the same."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragforge_tui.shared.errors import ErrorInfo
from ragforge_tui.shared.events import (
    ApprovalRequested,
    ApprovalResolved,
    MessageFinished,
    MessageStarted,
    ModelRetry,
    ModelWaiting,
    ReasoningDelta,
    TextDelta,
    ToolCallFinished,
    ToolCallStarted,
    TurnCancelled,
    TurnCompleted,
    TurnEvent,
    TurnFailed,
    TurnStarted,
)
from ragforge_tui.shared.records import Message, MessageState, RecalledPlace, ToolCall, Turn
from ragforge_tui.tui.drawing.lines import Line
from ragforge_tui.tui.transcript.blocks import PLACE, Block, RecallBlock, RecalledText
from ragforge_tui.tui.transcript.document import Document
from ragforge_tui.tui.transcript.tool_block import ToolBlock
from tests.tui.transcript.samples import (
    DARK,
    called,
    plain_turns,
    reply,
    said,
    shown,
    text_of,
    working_turn,
)

WHERE = {"conversation_id": "c", "turn_index": 1}


def chunks(text: str, size: int = 7) -> list[str]:
    """A text in pieces."""
    return [text[at : at + size] for at in range(0, len(text), size)]


def unfinished(call: ToolCall) -> ToolCall:
    """A call as it is when it starts."""
    return msgspec.structs.replace(call, result=None, success=None, duration_ms=None)


def live(turn: Turn) -> Iterator[TurnEvent]:
    """The events the engine sends while a turn happens."""
    for message in turn.messages:
        if message.role == "user":
            yield TurnStarted(message=message, **WHERE)
            continue
        yield from live_reply(message)
    yield TurnCompleted(text=turn.messages[-1].content, **WHERE)


def live_reply(message: Message) -> Iterator[TurnEvent]:
    """The events of one reply and its calls."""
    yield MessageStarted(message_id=message.uuid, persona=message.persona, recalled=message.recalled, **WHERE)
    for piece in chunks(message.reasoning):
        yield ReasoningDelta(message_id=message.uuid, text=piece, **WHERE)
    for piece in chunks(message.content):
        yield TextDelta(message_id=message.uuid, text=piece, **WHERE)
    yield MessageFinished(message=msgspec.structs.replace(message, tool_calls=[]), **WHERE)
    for call in message.tool_calls:
        yield ToolCallStarted(call=unfinished(call), **WHERE)
        if call.result is not None:
            yield ToolCallFinished(call=call, **WHERE)


def drawn(document: Document, width: int = 80) -> list[Line]:
    """All lines of a document."""
    return [line for block in document.blocks for line in block.lines(width, DARK)]


def after(events: Iterable[TurnEvent], *, look: bool = False) -> Document:
    """A document that was told events; `look` draws it after each, as the screen does."""
    document = Document(shown())
    for event in events:
        document.apply(event)
        if look:
            drawn(document)
    return document


def resumed(*turns: Turn) -> Document:
    """A document loaded from records."""
    document = Document(shown())
    document.load(turns)
    return document


@pytest.mark.parametrize("look", [False, True])
def test_live_equals_resumed(look: bool) -> None:
    turn = working_turn()
    assert drawn(after(live(turn), look=look)) == drawn(resumed(turn))


@pytest.mark.parametrize("state", ["interrupted", "failed"])
def test_a_turn_that_ended_badly_looks_the_same_resumed(state: MessageState) -> None:
    error = "The key was refused. Nothing is lost. Set OPENAI_API_KEY."
    message = reply("so far", state=state, error=error)
    turn = Turn(turn_index=1, messages=[said("why?"), message])
    *events, _ = live(turn)
    end = (
        TurnCancelled(**WHERE)
        if state == "interrupted"
        else TurnFailed(error=ErrorInfo(kind="bad_key", what=error), **WHERE)
    )
    document = after([*events, end])
    assert drawn(document) == drawn(resumed(turn))
    shown = "\n".join(text_of(drawn(document)))
    assert (f"incomplete · {error}"[:40] if state == "interrupted" else "✗ The key was refused.") in shown


def test_commits_are_named_below_the_call_that_made_them_live_and_resumed() -> None:
    commits = [
        {"hash": f"{number}" * 40, "subject": f"Change \x1b[31m{number}", "committed_at": "2026-03-04T05:06:00Z"}
        for number in (1, 2)
    ]
    first = called("run_command", {"command": "git commit"}, {"text": "ok", "commits": commits}, uuid="first")
    second = called("run_command", {"command": "git log"}, {"text": "ok"}, uuid="second")
    second.ordinal = 1
    turn = Turn(turn_index=1, messages=[said("commit"), reply("Done.", calls=[first, second])])
    document = after(live(turn))
    assert [block.kind for block in document.blocks][-4:] == ["tool", "commit", "commit", "tool"]
    assert drawn(document) == drawn(resumed(turn))
    assert any("commit 1111111 Change 1" in line for line in text_of(drawn(document)))


def stopped_turn() -> Turn:
    """A turn that was stopped while its only call ran."""
    call = called("run_command", {"command": "make"}, error="stopped")
    return Turn(turn_index=1, messages=[said("go"), reply("I run it.", calls=[call], state="interrupted")])


def test_a_turn_stopped_in_its_calls_reports_it_below_them_live_and_resumed() -> None:
    turn = stopped_turn()
    asked = msgspec.structs.replace(turn, messages=[turn.messages[0], reply("I run it.", calls=[])])
    asked.messages[1].tool_calls = turn.messages[1].tool_calls
    *events, _ = live(asked)
    document = after([*events, TurnCancelled(**WHERE)])
    assert [block.kind for block in document.blocks][-2:] == ["tool", "state"]
    assert drawn(document) == drawn(resumed(turn))


def test_without_glyphs_the_state_of_a_call_is_reported_once() -> None:
    for error in ("stopped", "no such file", "refused by the person"):
        block = ToolBlock(1, called("run_command", {"command": "make"}, error=error), gap=0)
        line = text_of(block.draw(80, msgspec.structs.replace(DARK, plain=True)))[0]
        assert line.split().count(block.state) == 1
        assert "12 ms" in line
    unknown = ToolBlock(1, called("run_command", {"command": "make"}), gap=0)
    unknown.over = True
    assert text_of(unknown.draw(80, msgspec.structs.replace(DARK, plain=True)))[0].count("unknown") == 1


def test_calls_of_a_reply_are_as_they_were_asked_for() -> None:
    """They begin together, and whichever is stored first is told first."""
    calls = [called("read_file", {"path": f"{n}.py"}, {"text": "x"}, uuid=f"c{n}") for n in range(4)]
    for ordinal, call in enumerate(calls):
        call.ordinal = ordinal
    told = reply("", calls=[calls[2], calls[0], calls[3], calls[1]])
    document = after(live(Turn(turn_index=1, messages=[said("go"), told])))
    stored = resumed(Turn(turn_index=1, messages=[said("go"), reply("", calls=calls)]))
    assert [block.call.uuid for block in document.blocks if isinstance(block, ToolBlock)] == ["c0", "c1", "c2", "c3"]
    assert drawn(document) == drawn(stored)


def test_lines_of_a_turn() -> None:
    lines = text_of(drawn(resumed(working_turn())))
    assert lines[:6] == [
        "",
        "you  1 · " + shown().when(said("").timestamp),
        "The retry in store.py doubles turns. Why?",
        "",
        "✶ Ragnarök",
        "▎ First the index, then the retry.",
    ]
    assert lines[6:8] == ["", "I will look at how the index is allocated."]
    tools = [" ".join(line.split()) for line in lines[9:26]]
    assert tools == [
        "● Search next_turn in graph 7 matches · 38 ms ▸",
        "● Read graph/store.py :112-114 3 lines · 12 ms ▸",
        "✗ Edit graph/schema.py failed · 12 ms ▸",
        "old_string is not unique (2 places)",
        "● Edit graph/schema.py +2 −1 · 12 ms ▸",
        "1 import x",
        "- old = 1",
        "2 + new = 1",
        "3 + more = 2",
        "",
        "● Plan 1/3 12 ms ▸",
        "☑ find the cause",
        "◐ mend it",
        "☐ a test that retries twice",
        "✗ Run pytest tests/graph -k retry exit 1 · 12 ms ▸",
        "│ 1 failed",
        "",
    ]


def test_an_approval_is_seen_on_its_call() -> None:
    call = unfinished(called("run_command", {"command": "make"}, {"text": ""}))
    document = after([TurnStarted(message=said("go"), **WHERE), ToolCallStarted(call=call, **WHERE)])
    document.apply(ApprovalRequested(approval_id="p", call=call, kind="command", question="Run make?", **WHERE))
    assert "waits for you" in "\n".join(text_of(drawn(document)))
    document.apply(ApprovalResolved(approval_id="p", decision="once", **WHERE))
    assert "waits for you" not in "\n".join(text_of(drawn(document)))


def test_a_call_without_a_result_has_an_unknown_outcome_when_its_turn_is_over() -> None:
    turn = Turn(turn_index=1, messages=[said("go"), reply("", calls=[called("run_command", {"command": "make"})])])
    assert "outcome unknown" in "\n".join(text_of(drawn(resumed(turn))))


def test_a_retry_shows_until_something_comes() -> None:
    started = [TurnStarted(message=said("go"), **WHERE), MessageStarted(message_id="a1", **WHERE)]
    document = after([*started, ModelRetry(attempt=2, attempts=4, wait_seconds=3, reason="rate limit", **WHERE)])
    assert "retrying (2 of 4): rate limit" in "\n".join(text_of(drawn(document)))
    document.apply(TextDelta(message_id="a1", text="hello", **WHERE))
    assert "retrying" not in "\n".join(text_of(drawn(document)))


def test_a_silence_shows_until_something_comes() -> None:
    started = [TurnStarted(message=said("go"), **WHERE), MessageStarted(message_id="a1", **WHERE)]
    waits = [ModelWaiting(server="127.0.0.1:18555", seconds=seconds, **WHERE) for seconds in (30, 60)]
    document = after([*started, *waits])
    shown = "\n".join(text_of(drawn(document)))
    assert "127.0.0.1:18555 has not answered for 60 s · esc stops" in shown and "30 s" not in shown
    document.apply(TextDelta(message_id="a1", text="hello", **WHERE))
    assert "has not answered" not in "\n".join(text_of(drawn(document)))


def test_an_answer_that_falls_short_reports_it_and_its_text_stays() -> None:
    short = reply("Half of it", state="interrupted", error="The answer was cut off. /retry asks again.")
    shown = "\n".join(text_of(drawn(resumed(Turn(turn_index=1, messages=[said("go"), short])))))
    assert "Half of it" in shown and "! incomplete · The answer was cut off. /retry asks again." in shown


def test_asking_again_replaces_the_earlier_attempt() -> None:
    first = Turn(turn_index=1, messages=[said("why?"), reply("bad answer")])
    second = Turn(turn_index=1, messages=[said("why?"), reply("good answer", uuid="a2")])
    document = after([*live(first), *list(live(second))[1:]])
    assert drawn(document) == drawn(resumed(second))
    old = msgspec.structs.replace(first.messages[1], state="superseded")
    stored = Turn(turn_index=1, messages=[second.messages[0], old, second.messages[1]])
    assert drawn(resumed(stored)) == drawn(resumed(second))


def test_opened_blocks_stay_open_when_their_turn_is_replaced() -> None:
    document = Document(shown())
    document.load([working_turn()])
    opened = [block for block in document.blocks if block.kind in ("tool", "head") and block.folded][1:3]
    for block in opened:
        block.toggle()
    folds = [(block.kind, block.folded) for block in document.blocks]
    document.load([working_turn()])
    assert [(block.kind, block.folded) for block in document.blocks] == folds
    assert not set(opened) & set(document.blocks) and folds.count(("tool", False)) + folds.count(("head", False)) == 2


def test_a_turn_in_the_middle_can_be_replaced() -> None:
    turns = plain_turns(3)
    document = resumed(*turns)
    changed = Turn(turn_index=2, messages=[said("question 2", 2), reply("another answer", 2)])
    document.load([changed])
    assert drawn(document) == drawn(resumed(turns[0], changed, turns[2]))
    serials = [block.serial for block in document.blocks]
    assert serials == sorted(set(serials))


def test_earlier_turns_come_before() -> None:
    document = resumed(*plain_turns(2, first=5))
    document.insert(plain_turns(4), start=1, end=5)
    assert drawn(document) == drawn(resumed(*plain_turns(6)))
    assert document.first_turn == 1


@given(
    data=st.data(),
    last=st.integers(min_value=1, max_value=40),
)
def test_pages_put_in_in_any_order_are_the_whole(data: st.DataObject, last: int) -> None:
    """Whatever is looked at first, in the end nothing is missing, doubled or out of order."""
    turns = plain_turns(last)
    opened = data.draw(st.integers(min_value=1, max_value=last))
    document = resumed(*turns[opened - 1 :])
    while document.gaps or document.first_turn > 1:
        turn = data.draw(st.sampled_from([n for n in range(1, last + 1) if not document.holds(n)]))
        gap = document.gap_with(turn)
        low, high = (gap.first, gap.last + 1) if gap is not None else (1, document.first_turn)
        start = data.draw(st.integers(min_value=low, max_value=turn))
        end = data.draw(st.integers(min_value=turn + 1, max_value=high))
        document.insert(turns[start - 1 : end - 1], start=start, end=end)
        serials = [block.serial for block in document.blocks]
        assert serials == sorted(set(serials))
        assert all(document.position(block) == at for at, block in enumerate(document.blocks))
    assert drawn(document) == drawn(resumed(*turns))


def test_an_offer_goes_when_an_answer_came() -> None:
    document = after([TurnStarted(message=said("go"), **WHERE), TurnCancelled(**WHERE)])
    document.notice("/retry asks again", "info", passing=True)
    document.notice("another", "warning")
    document.settled()
    document.apply(TurnStarted(message=said("go"), **WHERE))
    document.apply(TurnCancelled(**WHERE))
    assert [block.source for block in document.blocks if block.kind == "notice"] == ["/retry asks again", "another"]
    document.apply(TurnStarted(message=said("go"), **WHERE))
    document.settled()
    document.apply(TurnCompleted(text="", **WHERE))
    notices = [block for block in document.blocks if block.kind == "notice"]
    assert [(block.source, block.gap) for block in notices] == [("another", 1)]
    assert document.stable < len(document.blocks)


def test_a_notice_that_arrives_during_a_turn_stays_at_its_place_in_time() -> None:
    events = list(live(working_turn()))
    for told_after in range(1, len(events)):
        document = after(events[:told_after])
        shown_before = [(block.kind, block.record_id) for block in document.blocks]
        document.notice("the graph is back", "info")
        for event in events[told_after:]:
            document.apply(event)
        document.load([working_turn()])
        blocks = [(block.kind, block.record_id) for block in document.blocks]
        place = next(at for at, block in enumerate(document.blocks) if block.kind == "notice")
        kept = [block for block in blocks if block in shown_before]
        assert blocks[:place] == kept and len(blocks) == len(document.blocks)
        document.blocks.pop(place)
        assert [(block.kind, block.record_id) for block in document.blocks] == [
            (block.kind, block.record_id) for block in after(events).blocks
        ]


def test_recalled_conversations_are_named_above_the_answer() -> None:
    places = [
        RecalledPlace(turn_index=3, turns=2),
        RecalledPlace(conversation_id="abc", title="Index [allocation]", turn_index=4, turns=1, notes=1),
    ]
    turn = working_turn()
    turn.messages[1].recalled = msgspec.json.encode(places).decode()
    stored, streamed = resumed(turn), after(live(turn))
    for document in (stored, streamed):
        kinds = [block.kind for block in document.blocks]
        assert kinds[:3] == ["user", "recall", "head"] and kinds.count("recall") == 1
        block = document.blocks[1]
        told = "recalled 2 turns of this conversation, 1 turn and 1 summary from “Index [allocation]”"
        assert block.source == told
        line = block.lines(100, DARK)[-1]
        targets = [style.meta.get(PLACE) for _, style, _ in line.strip if style is not None and style.meta]
        assert targets == ["abc 4"]
        loud = [text for text, style, _ in line.strip if style is not None and style.color == DARK.accent.color]
        assert "".join(loud) == "↺ 2 turns1 turn and 1 summary"
        assert isinstance(block, RecallBlock)
        block.toggle()
        assert text_of(block.lines(100, DARK))[-1] == "▎ loading …"
        block.show_texts([RecalledText("We retry [twice]\nin all", "abc", 4)])
        assert text_of(block.lines(100, DARK))[-1] == "▎ turn 4 We retry [twice] in all"
        height = len(block.lines(50, DARK))
        assert [block.folds_at(line, height) for line in range(height)] == [False, True, True, False]
        block.toggle()
        assert [block.folds_at(line, 3) for line in range(3)] == [False, True, True], "the arrow is on the last line"


def test_turns_made_elsewhere_are_a_gap_before_one_that_begins() -> None:
    document = resumed(*plain_turns(2))
    where = {"conversation_id": "c", "turn_index": 5}
    document.apply(TurnStarted(message=said("question 5", 5), **where))
    assert [(gap.first, gap.last) for gap in document.gaps] == [(3, 4)]
    document.insert(plain_turns(2, first=3), start=3, end=5)
    assert [block.turn_index for block in document.blocks if block.kind == "user"] == [1, 2, 3, 4, 5]


def test_a_turn_running_continues_where_the_record_ends() -> None:
    message = reply("so f", state="streaming")
    document = resumed(Turn(turn_index=1, messages=[said("why?"), message]))
    document.apply(TextDelta(message_id="a1", text="ar, so **good**", **WHERE))
    whole = reply("so far, so **good**")
    document.apply(MessageFinished(message=whole, **WHERE))
    document.apply(TurnCompleted(text=whole.content, **WHERE))
    assert drawn(document) == drawn(resumed(Turn(turn_index=1, messages=[said("why?"), whole])))


HOSTILE = "a [/x] \x1b[31mred\x1b]0;t\x07 nul\x00 \u202eabc \x9b2J [@click=app.quit]z[/]"


def test_hostile_text_stays_text_everywhere() -> None:
    calls = [
        called(HOSTILE, {"path": HOSTILE}, {"text": HOSTILE, "diff": "+" + HOSTILE}, uuid="h1"),
        called("run_command", HOSTILE, error=HOSTILE, uuid="h2"),
        called("update_todos", {"todos": [{"content": HOSTILE}]}, {"text": HOSTILE}, uuid="h3"),
    ]
    message = reply(HOSTILE, reasoning=HOSTILE, state="failed", error=HOSTILE, calls=calls)
    message.persona = HOSTILE
    document = resumed(Turn(turn_index=1, messages=[said(HOSTILE), message]))
    document.notice(HOSTILE, "warning")
    for folded in (True, False):
        for block in document.blocks:
            block.folded = folded if block.folded is not None else None
            block.touch()
        for line in drawn(document, 50):
            assert line.strip.cell_length <= 50
            assert not any(ord(char) < 32 or 0x7F <= ord(char) < 0xA0 or char == "\u202e" for char in line.strip.text)
    assert "[/x]" in "\n".join(text_of(drawn(document)))


@pytest.mark.parametrize("width", [1, 2, 5, 12, 200])
def test_no_block_is_wider_than_the_window(width: int) -> None:
    document = resumed(working_turn())
    for block in document.blocks:
        block.toggle()
        assert all(line.strip.cell_length <= width for line in block.lines(width, DARK))


def test_a_tool_unfolds_to_arguments_and_result() -> None:
    block = ToolBlock(
        1, called("edit_file", {"path": "a.py", "old_string": "x"}, {"diff": "@@ -1 +1 @@\n-x\n+y"}), gap=0
    )
    changed = ["        - x", "      1 + y"]
    assert [line.rstrip() for line in text_of(block.lines(80, DARK))][1:] == changed
    block.toggle()
    text = [line.rstrip() for line in text_of(block.lines(80, DARK))]
    assert text[1:] == ["    │ path: a.py", *changed]
    assert "+y" in block.source


def test_a_long_paste_is_folded_and_opens() -> None:
    document = resumed(Turn(turn_index=1, messages=[said("word " * 40_000)]))
    block: Block = document.blocks[0]
    assert len(block.lines(80, DARK)) < 40
    block.toggle()
    assert len(block.lines(80, DARK)) > 1_000
