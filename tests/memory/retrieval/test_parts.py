"""Messages that ask several things: how they are taken apart, and that each part gets its share of what is recalled."""

from __future__ import annotations

import pytest

from ragforge_tui.graph import Store
from ragforge_tui.memory.retrieval.parts import MOST_PARTS, parts_of
from tests.support.recall_conversations import ready, recall_of, talked

SUBJECTS = ("violin", "harbour", "lantern", "sextant")


@pytest.mark.parametrize(
    ("message", "parts"),
    [
        ("What did we decide about the cache?", []),
        ("What did we decide about the cache, and why?", []),
        ("Hm, that looks wrong. Check again.", []),
        (
            "Where does the cache live, and which pickle protocol is the limit?",
            ["Where does the cache live", "which pickle protocol is the limit?"],
        ),
        (
            "Thanks! Where is the rate limiter? And what was the retry delay?",
            ["Where is the rate limiter?", "And what was the retry delay?"],
        ),
        (
            "Wo liegt der Cache und welches Protokoll gilt?",
            ["Wo liegt der Cache", "welches Protokoll gilt?"],
        ),
        ("- width of TextWrapper\n- depth of the ini module", ["width of TextWrapper", "depth of the ini module"]),
        ("Read the log:\n```\nerror one. error two. error three\n```", []),
    ],
)
def test_only_a_message_that_asks_several_things_has_parts(message: str, parts: list[str]) -> None:
    assert parts_of(message) == parts


def test_long_texts_have_no_parts_and_questions_stay_first() -> None:
    assert parts_of(" ".join(f"The sensor{n} reports a value{n}." for n in range(30))) == []
    assert parts_of("Where is the pump? " * 200) == []
    told = "The pump leaks. The valve sticks. The gauge lies. The tank is full. Where is the manual?"
    found = parts_of(told)
    assert len(found) == MOST_PARTS and found[-1] == "Where is the manual?"


async def test_each_part_gets_its_share(store: Store) -> None:
    talk = [(f"Note {n} on the {subject}.", f"Kept: {subject} {n}.") for n in range(8) for subject in SUBJECTS]
    c = await talked(store, [*talk, ("The chronometer is slow.", "Noted.")])
    recall = recall_of(store, c)
    await ready(recall)
    asked = "Tell me all notes on the violin, the violin case and the violin bow. What about the chronometer?"
    found = await recall.recall(asked, max_tokens=400)
    first = [turn.text for turn in found.turns[:4]]
    assert any("chronometer" in text for text in first) and any("violin" in text for text in first)
    assert len({turn.turn_index for turn in found.turns}) == len(found.turns)


async def test_each_part_gets_its_share_of_other_conversations(store: Store) -> None:
    for subject in ("brass sextant", "silver chronometer"):
        await ready(
            recall_of(store, await talked(store, [(f"Where is the {subject}?", f"The {subject} is in the chest.")]))
        )
    asking = await talked(store, [("Good morning", "Good morning.")])
    recall = recall_of(store, asking)
    await ready(recall)
    found = await recall.recall("Where do we keep the brass sextant? And who mended the silver chronometer?")
    texts = " ".join(turn.text for turn in found.turns if not turn.own)
    assert "sextant" in texts and "chronometer" in texts


async def test_a_part_that_asks_for_nothing_recalls_nothing(store: Store) -> None:
    c = await talked(store, [(f"Note {n} on the violin.", "Kept.") for n in range(30)])
    recall = recall_of(store, c)
    await ready(recall)
    assert not (await recall.recall("Great, thanks. Go on with the next step now.")).turns
