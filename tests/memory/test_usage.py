"""What an answer used of the recalled items: cited turns, and rare words in common."""

from __future__ import annotations

from ragforge_tui.memory.context.usage import used_items
from ragforge_tui.shared.records import ContextItem, ContextRecord, ContextSection, Message, Turn, now

TEXTS = {
    3: "You: how wide?\nI: 88 columns, because the label printer cuts everything at 90.",
    5: "You: which format for dates?\nI: day.month.year, as the tax office insists.",
    6: "You: hello\nI: Hello, what shall we do today?",
}


def judged(answer: str, question: str = "how wide should the report be?") -> dict[int, str]:
    items = [ContextItem(kind="turn", turn_index=turn, text=text, tokens=9) for turn, text in TEXTS.items()]
    other = ContextItem(
        kind="summary",
        conversation_id="c2",
        title="Printing the labels",
        turn_index=2,
        last_turn=4,
        text="Labels are glued.",
    )
    own = ContextItem(kind="message", turn_index=8, text=answer)
    wish = ContextItem(kind="finding", turn_index=1, text="- Answer briefly.")
    record = ContextRecord(
        conversation_id="c1",
        turn_index=9,
        created_at=now(),
        sections=[
            ContextSection(name="recalled", title="Recalled", items=[*items, other, own]),
            ContextSection(name="wishes", title="Your wishes", items=[wish]),
        ],
    )
    messages = [
        Message(uuid=role, conversation_id="c1", turn_index=9, role=role, content=text, timestamp=now())
        for role, text in (("user", question), ("assistant", answer))
    ]
    found = used_items(record, Turn(turn_index=9, messages=messages))
    assert [item.turn_index for item in found.items] == [3, 5, 6, 2, 1], "a turn that was sent anyway is not recalled"
    assert [item.turn_index for item in found.items if item.always] == [1], "a wish is sent with every session"
    assert all(item.used == bool(item.reason) for item in found.items)
    return {item.turn_index: item.reason for item in found.items if item.used}


def test_cited_turns() -> None:
    assert judged("As said [t3].") == {3: "cites t3"}
    assert judged("See [t3, t5] and [Printing the labels · t4].") == {3: "cites t3", 5: "cites t5", 2: "cites t4"}
    assert judged("See [Another talk · t3].") == {}


def test_rare_words_in_common() -> None:
    assert judged("88, since the printer cuts there.") == {3: "shares 88, printer, cuts"}
    assert judged("Keep it at 88.") == {3: "shares 88"}
    assert judged("Use the form that the tax office wants.") == {5: "shares tax, office"}
    assert judged("Make it nice.") == {}
    assert judged("Use columns.", "how wide in columns?") == {}, "the question had it"
