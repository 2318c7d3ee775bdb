"""What recall finds, on both backends: in other conversations, among summaries, by likeness, as the settings say."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from ragforge_tui.graph import Store
from ragforge_tui.graph.store import search
from ragforge_tui.llm import count_tokens
from ragforge_tui.memory.retrieval import terms
from ragforge_tui.shared.records import Conversation, Finding, Summary, now
from tests.support.fake_embedder import FakeEmbedder
from tests.support.recall_conversations import MORNING, TALK, first_messages, ready, recall_of, said, talked
from tests.support.records import conversation


async def elsewhere(store: Store, **fields: Any) -> Conversation:
    """A stored and indexed conversation about zebras."""
    talk = (("Tell me of the zebra farm.", "It keeps forty zebras."), ("Where?", "Near the lake."))
    c = await talked(store, talk, **{"title": "Zebras", **fields})
    await ready(recall_of(store, c, FakeEmbedder()))
    return c


async def asked(store: Store, **settings: Any) -> Any:
    here = await talked(store)
    recall = recall_of(store, here, FakeEmbedder(), **settings)
    await ready(recall)
    return await recall.recall("How many zebras does the farm keep?")


async def test_others_are_found_and_named(store: Store) -> None:
    c = await elsewhere(store)
    found = await asked(store)
    foreign = [turn for turn in found.turns if not turn.own]
    [turn] = [turn for turn in foreign if turn.turn_index == 1]
    assert (turn.conversation_id, turn.title) == (c.uuid, "Zebras")
    assert f"# 6 May 2024, in conversation {c.uuid[:8]} “Zebras”\n" in found.text
    assert "[t1] > Tell me of the zebra farm." in found.text
    assert (turn.text, turn.source) == ("> Tell me of the zebra farm.\nIt keeps forty zebras.", "")


@pytest.mark.parametrize(
    ("fields", "settings", "seen"),
    [
        ({}, {}, True),
        ({}, {"scope": "none"}, False),
        ({"workspace": "/elsewhere"}, {}, False),
        ({"workspace": "/elsewhere"}, {"scope": "all"}, True),
        ({"private": True}, {"scope": "all"}, False),
        ({"status": "deleted", "deleted_at": MORNING}, {"scope": "all"}, False),
        ({"status": "archived"}, {}, True),
    ],
)
@pytest.mark.parametrize(("common", "compared"), [(0.0, 0), (2.0, 3_000)], ids=["checked", "named"])
async def test_scope(
    store: Store,
    fields: dict[str, Any],
    settings: dict[str, Any],
    seen: bool,
    common: float,
    compared: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whether a scope is checked behind the indexes or named to them is a matter of time only."""
    monkeypatch.setattr("ragforge_tui.graph.store.other_conversations.MOST_COMMON_SHARE", common)
    monkeypatch.setattr("ragforge_tui.graph.store.other_conversations.EXACT_VECTORS", compared)
    hidden = {name: fields[name] for name in ("status", "deleted_at") if name in fields}
    c = await elsewhere(store, **{name: value for name, value in fields.items() if name not in hidden})
    if hidden:
        await store.conversations.update(c.uuid, **hidden)
    found = await asked(store, **settings)
    assert any("zebras" in turn.text for turn in found.turns) == seen


async def test_others_have_a_share_while_this_conversation_needs_the_room(store: Store) -> None:
    talk = [(f"What of zebra number {n}?", f"The zebra {n} of the farm is well. " * 6) for n in range(20)]
    c = await talked(store, talk, title="Zebras")
    await ready(recall_of(store, c, FakeEmbedder()))
    here = await talked(store, [(f"Is zebra {n} here?", f"Zebra {n} is not at this place. " * 6) for n in range(20)])
    for share in (0.0, 0.4):
        recall = recall_of(store, here, FakeEmbedder(), other_conversations_share=share)
        await ready(recall)
        found = await recall.recall("zebra of the farm", max_tokens=300)
        foreign = sum(count_tokens(turn.text) for turn in found.turns if not turn.own)
        assert foreign <= share * 300
        assert bool(foreign) == bool(share)
        assert [turn for turn in found.turns if turn.own]
    only = await recall.recall("zebra of the farm", max_tokens=500, own=False)
    assert not any(turn.own for turn in only.turns)
    assert only.tokens > 250


async def test_a_young_graph_recalls_little_of_other_conversations(store: Store) -> None:
    """Everything has a word in common with everything there: one is not enough, and three turns are the most."""
    talk = [(f"Commit the fix of file {n}?", "The time module has a fix for zones. " * 60) for n in range(8)]
    await ready(recall_of(store, await talked(store, talk, title="Yesterday")))
    here = await store.conversations.create(conversation(workspace="/w"))
    recall = recall_of(store, here)
    await ready(recall)
    assert (await recall.recall("But not now: first commit the time fix. Do that.")).turns == []
    found = await recall.recall("Which zones does the time module know?")
    assert 1 <= len(found.turns) <= 3
    assert found.tokens <= 1_500
    assert len((await recall.recall("What did we decide about zones in the time module?")).turns) > 3


async def test_unrelated_turns_are_not_recalled(store: Store) -> None:
    await elsewhere(store)
    here = await store.conversations.create(conversation(workspace="/w"))
    recall = recall_of(store, here)
    await ready(recall)
    assert (await recall.recall("Compile the kernel module")).turns == []
    assert (await recall.recall("and the?")).turns == []


async def test_private_conversations_recall_others_but_are_never_recalled(store: Store) -> None:
    open_one = await elsewhere(store)
    secret = await elsewhere(store, private=True, title="Secret")
    recall = recall_of(store, secret, FakeEmbedder())
    await ready(recall)
    found = await recall.recall("zebra farm")
    assert {turn.conversation_id for turn in found.turns if not turn.own} <= {open_one.uuid}
    other = recall_of(store, open_one, FakeEmbedder())
    await ready(other)
    assert "Secret" not in (await other.recall("zebra farm")).text


def summary(c: Conversation, first: int, last: int, text: str, **fields: Any) -> Summary:
    made = Summary(
        uuid=f"{c.uuid}-{first}-{last}",
        conversation_id=c.uuid,
        level=1,
        conversation_summary=text,
        start_turn_index=first,
        end_turn_index=last,
        turn_count=last - first + 1,
        created_at=now(),
    )
    return msgspec.structs.replace(made, **fields)


async def test_facts_and_summaries_are_found(store: Store) -> None:
    c = await talked(store)
    recall = recall_of(store, c)
    await ready(recall)
    finding = Finding(text="PostgreSQL was chosen", turns=[2, 77])
    summaries = [
        summary(c, 1, 3, "They chose the eastern harbour and a blue sloop.", key_findings=[finding]),
        summary(c, 4, 6, "They talked about a violin teacher."),
    ]
    await recall.summaries_changed(summaries)
    assert "PostgreSQL was chosen" in (await first_messages(store, c))[1]["key"]
    assert 2 in said(await recall.recall("Which PostgreSQL release was chosen?", max_tokens=35))
    # The turn itself is recalled rather than its summary; the summary stands for it when the turn may not be.
    assert (await recall.recall("Which violin teacher?")).summaries == []
    found = await recall.recall("Which violin teacher?", exclude=[5], exclude_summaries=["no such"])
    assert [one.summary.uuid for one in found.summaries] == [summaries[1].uuid]
    assert (
        await recall.recall("Which violin teacher?", exclude=[5], exclude_summaries=[summaries[1].uuid])
    ).summaries == []
    assert (await recall.recall("Which violin teacher?", exclude=[5], summaries=False)).summaries == []
    assert (await recall.recall("Which violin teacher?", exclude=[4, 5, 6])).summaries == []


@pytest.mark.parametrize(
    ("texts", "asked_for"),
    [
        (
            {"key_findings": [Finding(text="the quokka was chosen as mascot", turns=[1], kind="decision")]},
            "quokka mascot",
        ),
        ({"actions_summary": "Vaccinated the quokka."}, "vaccinated quokka"),
        ({"files_mentioned": ["zoo/quokka.md"]}, "What about quokka.md?"),
    ],
)
@pytest.mark.parametrize("vectors", [True, False])
async def test_a_summary_elsewhere_is_found_by_words_that_its_prose_lacks(
    store: Store, texts: dict[str, Any], asked_for: str, vectors: bool
) -> None:
    away = await talked(store, title="Away")
    await store.summaries.store(summary(away, 1, 3, "They talked about this and that.", **texts))
    here = await talked(store)
    embedder = FakeEmbedder() if vectors else None
    recall = recall_of(store, here, embedder, min_score=1.0)
    await ready(recall)
    found = await recall.recall(asked_for)
    assert [one.summary.conversation_id for one in found.summaries] == [away.uuid]
    assert (await recall.recall("platypus")).summaries == []


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"min_score": -1.0, "recency_boost": 0.0}, ["L3", "new", "old"]),
        ({"min_score": -1.0, "recency_boost": 0.0, "level_boost": {1: 1.0}}, ["new", "old", "L3"]),
        ({"min_score": -1.0, "recency_boost": 1.0, "recency_decay_days": 30.0}, ["new", "L3", "old"]),
        ({"min_score": -1.0, "max_summaries": 1, "recency_boost": 0.0}, ["L3"]),
        ({"min_score": -1.0, "max_summaries": 0}, []),
        ({"min_score": 1.0, "recency_boost": 0.0}, ["L3", "new", "old"]),
    ],
)
async def test_summaries_are_ranked_by_the_settings(
    store: Store, settings: dict[str, Any], expected: list[str]
) -> None:
    c = await store.conversations.create(conversation(workspace="/w"))
    recall = recall_of(store, c, **settings)
    await ready(recall)
    text, moment = "About the violin.", now()
    made = [
        summary(c, 1, 2, text, uuid="new", created_at=moment),
        summary(c, 3, 4, text, uuid="old", created_at=moment - timedelta(days=400)),
        summary(c, 5, 8, text, uuid="L3", level=3, created_at=moment - timedelta(days=30)),
    ]
    await recall.summaries_changed(made)
    assert [one.summary.uuid for one in (await recall.recall("violin")).summaries] == expected


async def test_a_summary_is_left_out_when_a_better_one_covers_its_turns(store: Store) -> None:
    c = await store.conversations.create(conversation(workspace="/w"))
    recall = recall_of(store, c)
    await ready(recall)
    made = [
        summary(c, 1, 4, "About the violin.", uuid="L2", level=2),
        summary(c, 1, 2, "About the violin.", uuid="L1"),
        summary(c, 5, 6, "About the violin.", uuid="next"),
    ]
    await recall.summaries_changed(made)
    assert [one.summary.uuid for one in (await recall.recall("violin")).summaries] == ["L2", "next"]


@pytest.mark.parametrize("vectors", [True, False])
async def test_a_question_does_not_stem_the_summaries_again(
    store: Store, monkeypatch: pytest.MonkeyPatch, vectors: bool
) -> None:
    c = await store.conversations.create(conversation(workspace="/w"))
    recall = recall_of(store, c, FakeEmbedder() if vectors else None)
    await ready(recall)
    fact = Finding(text="The violin needs strings", turns=[1])
    made = [summary(c, 1, 2, "About the violin.", key_findings=[fact]), summary(c, 3, 4, "About the oboe.")]
    await recall.summaries_changed(made)
    before = await recall.recall("Which violins?")
    stemmed: list[str] = []
    original = terms.terms

    def counted(text: str, language: str) -> list[str]:
        stemmed.append(text)
        return original(text, language)

    monkeypatch.setattr(terms, "terms", counted)
    again = await recall.recall("Which violins?")
    assert stemmed == []
    assert [hit.summary.uuid for hit in again.summaries] == [hit.summary.uuid for hit in before.summaries]
    assert [hit.summary.uuid for hit in again.summaries] == [made[0].uuid]
    assert [hit.finding for hit in again.findings] == [fact]


async def test_a_summary_written_again_is_found_by_its_new_words(store: Store) -> None:
    c = await store.conversations.create(conversation(workspace="/w"))
    recall = recall_of(store, c)
    await ready(recall)
    violin = summary(c, 1, 2, "About the violin.")
    await recall.summaries_changed([violin])
    assert (await recall.recall("violin")).summaries != []
    await recall.summaries_changed([msgspec.structs.replace(violin, conversation_summary="About the oboe.")])
    assert (await recall.recall("violin")).summaries == []
    assert [hit.summary.conversation_summary for hit in (await recall.recall("oboe")).summaries] == ["About the oboe."]


async def test_findings_are_found_by_their_own_words_best_first(store: Store) -> None:
    theirs = await talked(store, title="Bytes")
    findings = [
        Finding(text="Headers may be bytes or text.", turns=[2], kind="fact"),
        Finding(text="No new keyword argument for bytes; headers are decoded as UTF-8.", turns=[3], kind="decision"),
        Finding(text="The onion soup needs butter.", turns=[3]),
    ]
    await store.summaries.store(summary(theirs, 1, 3, "They talked of bytes and headers.", key_findings=findings))
    await ready(recall_of(store, theirs, FakeEmbedder()))
    here = await store.conversations.create(conversation(workspace="/w"))
    recall = recall_of(store, here, FakeEmbedder())
    await ready(recall)
    found = await recall.recall("Yesterday we decided something about keyword, bytes and headers. What exactly?")
    assert [hit.finding.text.split()[0] for hit in found.findings] == ["No", "Headers"]
    assert {(hit.own, hit.title, hit.conversation_id) for hit in found.findings} == {(False, "Bytes", theirs.uuid)}
    assert (await recall.recall("Are you sure? Look again, please.")).findings == []


@pytest.mark.parametrize("said", ["thanks", "Are you sure? Look it up.", "go on", "Danke, mach weiter.", "merci !", ""])
async def test_a_message_that_asks_for_nothing_recalls_nothing(store: Store, said: str) -> None:
    c = await talked(store, [*TALK, ("Thanks, go on.", "Sure, merci, danke.")])
    recall = recall_of(store, c, FakeEmbedder())
    await ready(recall)
    found = await recall.recall(said)
    assert (found.turns, found.findings, found.summaries, found.text) == ([], [], [], "")


async def test_similar_conversations_by_their_summaries(store: Store) -> None:
    summaries = {
        "a": "The zebra farm and its fences.",
        "b": "A zebra farm with fences.",
        "c": "Compiler warnings in the parser.",
        "d": "The zebra farm and its fences.",
        "e": "The zebra farm and its fences.",
    }
    made = {}
    for name, text in summaries.items():
        made[name] = await store.conversations.create(
            conversation(title=name, workspace="/w", summary=text, private=name == "d")
        )
        await ready(recall_of(store, made[name], FakeEmbedder()))
    await store.conversations.update(made["e"].uuid, status="deleted", deleted_at=now())
    found = await store.vectors.similar_conversations(made["a"].uuid, limit=10, min_score=0.5)
    assert [one.conversation.title for one in found] == ["b"]
    assert 0.5 < found[0].score < 1
    assert [s.conversation.title for s in await store.vectors.similar_conversations(made["a"].uuid, min_score=-1)] == [
        "b",
        "c",
    ]
    assert await store.vectors.similar_conversations(made["a"].uuid, min_score=-1, workspace="/elsewhere") == []
    assert len(await store.vectors.similar_conversations(made["a"].uuid, min_score=-1, limit=1)) == 1
    # A summary that changed gets a new vector.
    await store.conversations.update(made["c"].uuid, summary="The zebra farm and its fences.")
    await ready(recall_of(store, made["c"], FakeEmbedder()))
    [best, *_] = await store.vectors.similar_conversations(made["a"].uuid)
    assert (best.conversation.title, round(best.score, 3)) == ("c", 1.0)


async def test_the_turns_of_a_topic_are_found_behind_any_number_of_others(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Most of the graph is in scope, and all of it says the word more than the one that is wanted."""
    monkeypatch.setattr(search, "_DEEPEST", 10)
    loud, quiet = ("What is the harbour of the harbour?", "It is the harbour."), ("The harbour was deep.", "So it was.")
    own = await talked(store, [("Hello.", "Hello.")], title="Own", message_count=2)
    louder = await talked(store, [loud] * 30, title="Louder", message_count=60)
    wanted = await talked(store, [quiet], title="Wanted", message_count=2)
    for c in (own, louder, wanted):
        await ready(recall_of(store, c))
    others = await store.other_conversations.scope([own.uuid], "/w")
    found = await store.other_conversations.turns(others, ["harbour"], None, "", limit=2, turns={wanted.uuid: [(1, 1)]})
    assert [turn.conversation_id for turn in found] == [wanted.uuid]


async def test_turns_that_a_branch_shares_count_once(store: Store) -> None:
    """How deep an index is asked hangs on the share of the graph that others have."""
    own = await talked(store, [("Hello.", "Hello.")], title="Own", message_count=2)
    parent = await talked(store, title="Parent", message_count=12)
    await store.conversations.create(conversation(workspace="/w", branch_of=parent.uuid, branch_turn=4))
    others = await store.other_conversations.scope([own.uuid], "/w")
    assert (others.turns, others.share) == (6, pytest.approx(12 / 14))


async def test_conversations_without_a_summary_are_compared_by_their_turns(store: Store) -> None:
    zebras, parser = ("A zebra farm with fences.", "Zebras need fences."), ("Compiler warnings.", "In the parser.")
    long = await talked(store, [parser, zebras], workspace="/w", title="both")
    other = await talked(store, [parser], workspace="/w", title="parser")
    private = await talked(store, [zebras], workspace="/w", title="private", private=True)
    told = await store.conversations.create(
        conversation(title="summarised", workspace="/w", summary="A zebra farm and its fences.")
    )
    for made in (long, other, private, told):
        await ready(recall_of(store, made, FakeEmbedder()))
    [vector] = await FakeEmbedder().embed(["zebra farm fences"])
    found = await store.vectors.conversations_like(vector, min_score=0.3, by_turns=True)
    assert {one.conversation.title for one in found} == {"summarised", "both"}
    assert [one.conversation.title for one in await store.vectors.conversations_like(vector, min_score=0.3)] == [
        "summarised"
    ]
    [best, *_] = await store.vectors.similar_conversations(other.uuid, workspace="/w")
    assert best.conversation.title == "both"
