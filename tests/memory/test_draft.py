"""A model's answer: what is forgiven, what is not. Pure."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragforge_tui.graph.store.topic_names import ProposedTopic, TopicLink
from ragforge_tui.memory.summaries.draft import Draft, UnusableAnswerError, read_answer
from ragforge_tui.memory.summaries.topics import DESCRIPTION_CHARS
from ragforge_tui.shared.json_text import find_object
from ragforge_tui.shared.records import Finding
from tests.support.summaries import answer

GOOD = {"conversation_summary": "x", "key_findings": [{"text": "f", "turns": [1]}], "topics": ["a", "b"]}


def read(text: str, *, material: str = "", acted: bool = True) -> Draft:
    return read_answer(text, turns=[1, 2, 3], material=material, acted=acted)


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(GOOD),
        f"```json\n{json.dumps(GOOD, indent=2)}\n```",
        f"Here you are:\n{json.dumps(GOOD)}\nI hope that helps {{}}",
        f'<think>{{maybe}} {{"a": 1}}</think>{json.dumps(GOOD)}',
        json.dumps(GOOD).replace("]}", "],}"),
        json.dumps({**GOOD, "conversation_summary": "a\nb"}).replace("\\n", "\n"),
        json.dumps(GOOD)[:-1] + ', "extra": [NaN, 1e999]}',
    ],
)
def test_json_is_found_in_whatever_is_around_it(text: str) -> None:
    assert read(text).key_findings == [Finding(text="f", turns=[1])]


@pytest.mark.parametrize("text", ["", "no", "{", "[]", '"x"', "{" * 5_000, "[" * 100_000, "{}"])
def test_a_reply_without_a_summary_is_refused(text: str) -> None:
    with pytest.raises(UnusableAnswerError):
        read(text)


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)
    )
)
def test_any_json_is_taken_or_refused_in_words(value: object) -> None:
    for key in ("key_findings", "topics", "files_mentioned", "same_topics", "conversation_summary", "actions_summary"):
        try:
            draft = read(json.dumps({**GOOD, key: value}))
        except UnusableAnswerError as error:
            assert error.problems
        else:
            assert draft.conversation_summary and len(draft.topics) <= 4


@pytest.mark.parametrize("count", range(5))
def test_no_topic_to_four_topics_are_fine(count: int) -> None:
    draft = read(answer([1], topics=[f"Topic {n}" for n in range(count)], key_findings=[]))
    assert [topic.name for topic in draft.topics] == [f"Topic {n}" for n in range(count)]
    assert draft.key_findings == []


def test_findings_cite_turns_that_are_there() -> None:
    findings = [
        {"text": "kept", "turns": [2, 99]},
        {"text": "as text", "turns": "t1 and t3"},
        {"text": "one number", "turns": 2},
        "in brackets [t3]",
        {"text": "dropped", "turns": [99]},
        {"text": "dropped", "turns": []},
        {"text": "dropped", "turns": [1.5, None]},
        {"text": "", "turns": [1]},
        7,
    ]
    assert read(answer([1], key_findings=findings)).key_findings == [
        Finding(text="kept", turns=[2]),
        Finding(text="as text", turns=[1, 3]),
        Finding(text="one number", turns=[2]),
        Finding(text="in brackets", turns=[3]),
    ]


@pytest.mark.parametrize(
    ("item", "kind"),
    [
        ({"text": "x", "kind": "decision"}, "decision"),
        ({"text": "x", "kind": "Open point"}, "open"),
        ({"text": "x", "kind": "cause"}, ""),
        ({"text": "x", "kind": ["fact"]}, ""),
        ({"text": "x"}, ""),
        ({"text": "Preference: x"}, "preference"),
        ({"text": "Decision: x", "kind": "decision"}, "decision"),
        ({"text": "open question: x", "kind": "fact"}, "fact"),
        ("decision: x [t1]", "decision"),
    ],
)
def test_the_kind_of_a_finding_is_taken_wherever_it_is_written(item: dict[str, object] | str, kind: str) -> None:
    if isinstance(item, dict):
        item = {**item, "turns": [1]}
    assert read(answer([1], key_findings=[item])).key_findings == [Finding(text="x", turns=[1], kind=kind)]


@pytest.mark.parametrize(
    ("changes", "title"),
    [
        ({"title": "Retries that double turns"}, "Retries that double turns"),
        ({"title": " **Retries\n that double.**"}, "Retries that double"),
        ({"title": "\x1b[31mRetries"}, "Retries"),
        ({"title": ""}, "Retry policy, Waiting"),
        ({"title": 7}, "Retry policy, Waiting"),
        ({"topics": []}, "X"),
        ({"topics": ["retry"]}, "X"),
    ],
)
def test_a_missing_title_is_made_of_the_topics_or_the_text(changes: dict[str, object], title: str) -> None:
    assert read(answer([1], **{"conversation_summary": "x.", **changes})).title == title


def test_a_title_is_short() -> None:
    assert len(read(answer([1], title="many words " * 30)).title) <= 60


def test_texts_are_cleaned_and_files_are_those_of_the_material() -> None:
    draft = read(
        answer(
            [1],
            conversation_summary=f"a\x1b[31mred\x1b[0m\u202e key sk-{'a1' * 12} \ud83d",
            actions_summary="Read a file.",
            files_mentioned=["src/a.py", "/etc/shadow", 3, "src/a.py"],
        ),
        material="look at src/a.py",
    )
    assert draft.conversation_summary == "ared key sk-a1a…[masked] \ufffd"
    assert draft.files_mentioned == ["src/a.py"]
    assert draft.actions_summary == "Read a file."
    assert read(answer([1], actions_summary="I used tools."), acted=False).actions_summary == ""


def test_topics_and_which_are_the_same() -> None:
    draft = read(
        answer(
            [1],
            topics=[
                {"name": "Auth", "confidence": "0.5", "description": "How users\n sign in. " + "x" * 300},
                "auth",
                "Login",
                {"name": "??"},
                {"name": "X", "confidence": 7},
            ],
            same_topics=[
                {"a": "Auth", "b": "Login", "confidence": 0.9, "reason": "same"},
                {"a": "Auth", "b": "AUTH", "confidence": 1},
                {"a": "Auth", "b": ""},
                "x",
                {"a": "Auth", "b": "X", "confidence": "high"},
            ],
        )
    )
    assert draft.topics[0].description.startswith("How users sign in.")
    assert len(draft.topics[0].description) <= DESCRIPTION_CHARS
    assert [msgspec.structs.replace(topic, description="") for topic in draft.topics] == [
        ProposedTopic(name="Auth", confidence=0.5),
        ProposedTopic(name="Login"),
        ProposedTopic(name="X", confidence=1.0),
    ]
    assert draft.links == [
        TopicLink(a="Auth", b="Login", confidence=0.9, reason="same"),
        TopicLink(a="Auth", b="X", confidence=0.0, same=False),
    ]


def test_the_object_that_is_a_summary_is_preferred() -> None:
    assert find_object('{"plan": 1} then {"conversation_summary": "x"}', "conversation_summary") == {
        "conversation_summary": "x"
    }
    assert find_object('{"plan": 1}', "conversation_summary") == {"plan": 1}
