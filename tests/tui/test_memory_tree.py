"""The tree of summaries and the list of topics, without a screen."""

from __future__ import annotations

import msgspec
import pytest

from ragforge_tui.shared.events import SummaryCreated, SummaryFailed, SummaryStarted, TurnStarted
from ragforge_tui.shared.records import RelatedTopic, Topic
from ragforge_tui.shared.requests.memory import MemoryDue, MemoryTree, TopicPlace, TreeNode, TurnLine
from ragforge_tui.tui.memory.memory_tree import (
    RAW,
    SummaryTree,
    memory_sections,
    next_text,
    short_count,
    state_text,
    summary_sections,
    summary_title,
    turn_key,
    turn_of,
)
from ragforge_tui.tui.memory.topic_list import TopicList, topic_sections
from tests.support.fake_engine import CLOCK, conversation, message
from tests.support.fake_memory import summary

UUID = conversation(1).uuid


def node(level: int, first: int, last: int, parent: str = "") -> TreeNode:
    return TreeNode(
        uuid=f"s{level}-{first}",
        level=level,
        start_turn_index=first,
        end_turn_index=last,
        headline=f"about {first}",
        parent=parent,
    )


def loaded(*nodes: TreeNode, last_turn: int) -> SummaryTree:
    tree = SummaryTree()
    tree.load(MemoryTree(nodes=list(nodes), last_turn=last_turn))
    return tree


def shown(tree: SummaryTree) -> list[str]:
    return [
        f"{'  ' * line.depth}{line.kind}{line.level or ''} {line.first}-{line.last}{' open' if line.open else ''}"
        for line in tree.lines()
    ]


def started(level: int, first: int, last: int) -> SummaryStarted:
    return SummaryStarted(conversation_id=UUID, level=level, start_turn_index=first, end_turn_index=last)


def created(level: int, first: int, last: int, *below: str) -> SummaryCreated:
    made = summary(UUID, level, first, last, f"about {first}", parent_summaries=list(below))
    return SummaryCreated(conversation_id=UUID, summary=made)


def test_only_what_is_open_is_listed() -> None:
    tree = loaded(node(1, 1, 5, "s2-1"), node(1, 6, 10, "s2-1"), node(1, 11, 15), node(2, 1, 10), last_turn=17)
    assert shown(tree) == ["summary2 1-10", "summary1 11-15", "raw 16-17"]
    assert tree.toggle("s2-1")
    assert tree.toggle("s1-6")
    assert shown(tree) == [
        "summary2 1-10 open",
        "  summary1 1-5",
        "  summary1 6-10 open",
        *(f"    turn {n}-{n}" for n in range(6, 11)),
        "summary1 11-15",
        "raw 16-17",
    ]
    assert tree.toggle("s2-1", wanted=False)
    assert not tree.toggle("s2-1", wanted=False)
    assert shown(tree) == ["summary2 1-10", "summary1 11-15", "raw 16-17"]
    assert tree.count() == "17 turns · 4 summaries"


def test_without_summaries_the_turns_are_listed() -> None:
    tree = loaded(last_turn=2)
    assert shown(tree) == ["raw 1-2 open", "  turn 1-1", "  turn 2-2"]
    assert [line.text for line in tree.lines()][1:] == [None, None]
    tree.add_turns([TurnLine(turn_index=2, text="Why?", timestamp=CLOCK)])
    assert [line.text for line in tree.lines()][1:] == [None, "Why?"]
    assert shown(loaded(last_turn=0)) == []


def test_a_turn_that_begins_is_there_at_once() -> None:
    tree = loaded(last_turn=1)
    question = message(conversation(1), 2, "user", "And now?")
    assert tree.apply(TurnStarted(conversation_id=UUID, turn_index=2, message=question))
    assert tree.lines()[-1].text == "And now?"
    assert tree.count() == "2 turns"


def test_a_summary_grows_over_its_turns_and_then_over_summaries() -> None:
    tree = loaded(node(1, 1, 5), node(1, 6, 10), last_turn=17)
    tree.toggle("s1-6")
    assert tree.apply(started(1, 11, 15))
    assert shown(tree)[-2:] == ["working1 11-15", "raw 16-17"]
    assert tree.working == [(1, 11, 15)]
    assert tree.apply(created(1, 11, 15))
    assert tree.apply(started(2, 1, 10))
    assert shown(tree)[:2] == ["working2 1-10", "summary1 1-5"]
    assert tree.apply(created(2, 1, 10, "s1-1", "s1-6"))
    assert tree.apply(created(2, 1, 10, "s1-1", "s1-6"))
    assert shown(tree) == ["summary2 1-10", "summary1 11-15", "raw 16-17"]
    tree.toggle("s2-1")
    assert shown(tree)[2:4] == ["  summary1 6-10 open", "    turn 6-6"]
    assert tree.working == []


def test_a_summary_written_again_changes_its_line_but_not_its_place() -> None:
    tree = loaded(node(1, 1, 5, "s2-1"), node(2, 1, 5), last_turn=5)
    tree.toggle("s2-1")
    assert [line.text for line in tree.lines()] == ["about 1", "about 1"]
    made = summary(UUID, 1, 1, 5, "A text.", title="Retries that double")
    tree.apply(SummaryCreated(conversation_id=UUID, summary=made))
    assert [(line.depth, line.text) for line in tree.lines()] == [(0, "about 1"), (1, "Retries that double")]


def test_an_outline_asked_for_before_a_summary_came_does_not_lose_it() -> None:
    tree = SummaryTree()
    tree.apply(created(1, 6, 10))
    tree.load(MemoryTree(nodes=[node(1, 1, 5)], last_turn=12))
    assert shown(tree) == ["summary1 1-5", "summary1 6-10", "raw 11-12"]


def test_a_failure_is_reported_until_it_is_tried_again() -> None:
    tree = loaded(last_turn=7)
    tree.apply(started(1, 1, 5))
    failed = SummaryFailed(
        conversation_id=UUID, level=1, start_turn_index=1, end_turn_index=5, reason="The model said nothing."
    )
    assert tree.apply(failed)
    assert shown(tree)[0] == "failed1 1-5"
    assert tree.failure("failed:1-1") == "The model said nothing."
    assert tree.range_of("failed:1-1") == (1, 5)
    tree.apply(started(1, 1, 5))
    assert shown(tree)[0] == "working1 1-5"
    assert tree.failure("failed:1-1") == ""


def test_a_line_knows_its_turns_and_what_it_is_under() -> None:
    tree = loaded(node(1, 1, 5, "s2-1"), node(2, 1, 5), last_turn=7)
    assert tree.range_of("s2-1") == (1, 5)
    assert tree.range_of(RAW) == (6, 7)
    assert tree.range_of(turn_key(3)) == (3, 3)
    assert tree.range_of("nothing") == (0, 0)
    assert [tree.parent_of(key) for key in (turn_key(3), "s1-1", "s2-1", turn_key(7))] == ["s1-1", "s2-1", "", RAW]
    assert tree.at(1, 5) == tree.node("s1-1")
    assert turn_of("raw") == 0


def test_thousands_of_summaries_are_listed_at_once() -> None:
    nodes = [node(1, n, n + 4, f"s2-{(n - 1) // 50 * 50 + 1}") for n in range(1, 20_001, 5)]
    nodes += [node(2, n, n + 49) for n in range(1, 20_001, 50)]
    tree = loaded(*nodes, last_turn=20_001)
    assert len(tree.lines()) == 401
    for one in nodes:
        tree.toggle(one.uuid)
    assert len(tree.lines()) == 401 + 4000 + 20_000


@pytest.mark.parametrize(
    ("due", "expected"),
    [
        (MemoryDue(next_turns=3, next_chars=8_200), "next L1 in 3 turns or 8.2k characters"),
        (MemoryDue(next_turns=1, next_chars=40), "next L1 in 1 turn or 40 characters"),
        (MemoryDue(), "the next L1 is due"),
        (MemoryDue(enabled=False), "summaries are switched off"),
        (MemoryDue(behind="no room", next_turns=1), "behind: no room"),
        (None, ""),
    ],
)
def test_the_tree_says_what_the_summariser_waits_for(due: MemoryDue | None, expected: str) -> None:
    assert next_text(due) == expected
    behind = due is not None and due.behind
    assert state_text(due, left="9 turns left.") == (expected if behind else "9 turns left.")


def test_the_detail_view_names_levels_and_the_next_summary() -> None:
    tree = loaded(node(1, 1, 5, "s2-1"), node(1, 6, 10, "s2-1"), node(2, 1, 10), last_turn=11)
    sections = {one.title: one.text for one in memory_sections(tree, "", MemoryDue(next_turns=4, next_chars=9_400))}
    assert sections["Levels"].splitlines() == [
        "11 turns in all",
        "L1: 2, each over several turns",
        "L2: 1, each over several summaries",
    ]
    assert sections["Next"] == "next L1 in 4 turns or 9.4k characters"
    assert "This conversation" not in sections


def test_the_page_of_an_extract_says_so_and_has_no_marks() -> None:
    made = summary("u", 1, 1, 3, "Done: Created `hello.py`.", topics=["hello"], actions_summary="Ran **make**.")
    assert summary_title(made).endswith(" · made without a model · level 1")
    assert [(section.title, section.text) for section in summary_sections(made)] == [
        ("Conversation", "Done: Created hello.py."),
        ("Actions", "Ran make."),
        ("Topics, listed once another summary names them", "hello"),
    ]
    written = msgspec.structs.replace(made, made_by="a-model")
    assert " · by a-model · " in summary_title(written)
    assert summary_sections(written)[-1].title == "Topics"


def test_characters_in_short() -> None:
    assert [short_count(n) for n in (999, 1000, 10_500)] == ["999", "1k", "10.5k"]


def topics() -> TopicList:
    near = RelatedTopic(uuid="b", name="locks", confidence=0.6, reason="both wait")
    merged = RelatedTopic(uuid="c", name="again", relation="merged")
    found = TopicList()
    found.load(
        [
            Topic(uuid="a", name="retries", description="Trying twice.", created_at=CLOCK, related=[near, merged]),
            Topic(uuid="b", name="locks", created_at=CLOCK, summaries=1, conversations=1),
        ]
    )
    return found


def test_a_topic_opens_to_names_and_turns() -> None:
    found = topics()
    assert [line.detail for line in found.lines("own")] == ["", "1 summary"]
    assert found.toggle("a")
    assert found.missing_places() == ["a"]
    assert [line.text for line in found.lines("own")] == ["retries", "Trying twice.", "again", "loading …", "locks"]
    places = [
        TopicPlace(conversation_id="own", title="Mine", first=1, last=5),
        TopicPlace(conversation_id="other", title="", first=7, last=7),
    ]
    found.set_places("a", places)
    assert found.missing_places() == []
    lines = found.lines("own")[3:5]
    assert [(line.text, line.detail, line.own) for line in lines] == [
        ("t1–5", "this conversation", True),
        ("t7", "untitled other", False),
    ]
    assert [found.place(line.key) for line in lines] == places
    assert found.topic(lines[0].key) == found.topic("a")
    merged = found.merged("a|merged|c")
    assert merged is not None and merged.name == "again"
    assert not found.toggle(lines[0].key)


def test_turns_of_a_topic() -> None:
    found = topics().topics
    place = TopicPlace(conversation_id="own", title="Mine", first=1, last=5)
    assert {section.title: section.text for section in topic_sections(found[0], [place])} == {
        "Description": "Trying twice.",
        "Also called": "again",
        "Related": "locks (0.60): both wait",
        "Found in": "Mine: t1–5",
    }
    assert [(section.title, section.text) for section in topic_sections(found[1])] == [("Name", "locks")]
