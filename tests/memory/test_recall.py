"""Recall over the store, on both backends: kept up to date, caught up with, scoped, switched, re-embedded."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import numpy as np
import pytest

from ragforge_tui.config import EmbeddingSettings, MemorySettings, RecallSettings
from ragforge_tui.errors import ModelError
from ragforge_tui.graph import Graph, Store
from ragforge_tui.graph.schema import record_embedding
from ragforge_tui.llm import count_tokens
from ragforge_tui.memory.recall import Recall, catch_up, reembed
from ragforge_tui.models import Conversation, ConversationExport, Finding, Message, Summary, Turn, now
from tests.support.meaning import FakeEmbedder
from tests.support.records import conversation, message, one_turn, rows_of
from tests.support.sizes import DIMENSION

MORNING = datetime(2024, 5, 6, 9, tzinfo=UTC)
TALK = (
    ("Which harbour did we choose?", "The eastern harbour, for its depth."),
    ("And the boat?", "A blue sloop."),
    ("Write down the recipe of the onion soup.", "Onions, butter, broth."),
    ("What does the compiler warn about?", "An unused variable in parser.py."),
    ("Who teaches violin?", "Ida Lindqvist, on Tuesdays."),
    ("Good night.", "Good night!"),
)


@pytest.fixture
async def store(graph: Graph) -> AsyncIterator[Store]:
    """A graph whose vectors come from no model yet, before and after."""
    await record_embedding(graph, "", DIMENSION)
    yield Store(graph)
    await record_embedding(graph, "", DIMENSION)


def recall_of(store: Store, c: Conversation, embedder: FakeEmbedder | None = None, **settings: Any) -> Recall:
    async def ready() -> Store:
        return store

    chosen = MemorySettings(recall=RecallSettings(**settings))
    return Recall(ready, chosen, embedder, conversation_id=c.uuid, workspace=c.workspace, private=c.private)


async def talked(store: Store, talk: Sequence[tuple[str, str]] = TALK, **fields: Any) -> Conversation:
    """A conversation as an import leaves it, without keys and vectors; from the fourth turn on a second sitting."""
    c = conversation(**{"title": "Harbours", "workspace": "/w", "next_turn": len(talk) + 1, **fields})
    turns = []
    for turn, (said, answered) in enumerate(talk, 1):
        at = MORNING + timedelta(minutes=turn if turn < 4 else 90 + turn)
        turns.append(
            Turn(
                turn_index=turn,
                messages=[
                    message(c.uuid, turn_index=turn, content=said, timestamp=at),
                    message(c.uuid, turn_index=turn, position=1, role="assistant", content=answered, timestamp=at),
                ],
            )
        )
    return await store.import_(ConversationExport(conversation=c, turns=turns))


async def hold(store: Store, recall: Recall, c: Conversation, said: str, answered: str) -> Message:
    """A turn as the chat holds it, and what follows in the background."""
    asked = await one_turn(store, c.uuid, said, answered)
    [turn] = await store.turns(c.uuid, start=asked.turn_index, end=asked.turn_index + 1)
    await recall.turn_stored(turn)
    return asked


def said(found: Any) -> list[int]:
    return [turn.turn_index for turn in found.turns]


async def first_messages(store: Store, c: Conversation) -> list[dict[str, Any]]:
    return await store.graph.query_readonly(
        f"MATCH (m:Message {{conversation_id: '{c.uuid}', position: 0}}) RETURN m.turn_index AS turn, "
        "m.lex_key AS key, m.turn_text AS text, m.sitting AS sitting, m.embed_model AS model, "
        "m.language AS language ORDER BY turn"
    )


async def test_an_import_gets_keys_sittings_and_vectors(store: Store) -> None:
    c, embedder = await talked(store), FakeEmbedder()
    recall = recall_of(store, c, embedder)
    await recall.load()
    rows = await first_messages(store, c)
    assert [row["sitting"] for row in rows] == [1, 1, 1, 2, 2, 2]
    assert {row["model"] for row in rows} == {"fake"}
    assert rows[1]["text"] == "> And the boat?\nA blue sloop."
    assert rows[1]["key"].startswith("2024-05-06 6 May 2024 Monday\n> Which harbour")
    assert "onion soup" in rows[1]["key"]
    sittings = await store.graph.query_readonly(
        "MATCH (:Conversation)-[:HAS_SITTING]->(s:Sitting) RETURN s.ordinal AS n, s.text AS text ORDER BY n"
    )
    assert [row["n"] for row in sittings] == [1, 2]
    assert "onion soup" in sittings[0]["text"]
    found = await recall.recall("Who teaches the violin?", max_tokens=60)
    assert 5 in said(found)
    assert found.tokens == count_tokens(found.text) <= 60
    again = FakeEmbedder()
    fresh = recall_of(store, c, again)
    await fresh.load()
    assert again.texts == []
    assert fresh.index.without_vector() == []
    assert [one.turn_index for one in fresh.index.rank("violin", np.ones(DIMENSION, np.float32))] == [
        one.turn_index for one in recall.index.rank("violin", np.ones(DIMENSION, np.float32))
    ]


async def test_turns_are_taken_in_as_they_end(store: Store) -> None:
    c = await store.create_conversation(conversation(workspace="/w"))
    recall = recall_of(store, c, FakeEmbedder())
    await recall.load()
    await hold(store, recall, c, "Where do lanterns hang?", "Over the harbour gate.")
    await hold(store, recall, c, "How many?", "Seven.")
    first, second = await first_messages(store, c)
    assert "Seven." in first["key"]
    assert "lanterns" in second["key"]
    assert {first["model"], second["model"]} == {"fake"}
    found = await recall.recall("How many lanterns hang over the gate?")
    assert said(found) == [1, 2]
    assert said(await recall.recall("How many lanterns hang over the gate?", exclude=[2])) == [1]
    assert found.text == "\n".join(
        [
            f"# {found.turns[0].date.day} {found.turns[0].date:%B %Y}",
            "[t1] > Where do lanterns hang?\nOver the harbour gate.",
            "[t2] > How many?\nSeven.",
        ]
    )


async def test_a_turn_answered_anew_loses_its_old_vector(store: Store) -> None:
    c, embedder = await talked(store), FakeEmbedder()
    recall = recall_of(store, c, embedder)
    await recall.load()
    await store.supersede(c.uuid, 6)
    await store.add_message(message(c.uuid, role="assistant", turn_index=6, content="Sleep well, captain."))
    [turn] = await store.turns(c.uuid, start=6, end=7)
    embedder.texts.clear()
    await recall.turn_stored(turn)
    assert embedder.texts == ["> Good night.\nSleep well, captain."]
    assert "captain" in (await first_messages(store, c))[4]["key"]
    assert "Good night!" not in recall.index.turn_text(6)


async def test_what_a_crash_left_is_caught_up_with(store: Store) -> None:
    c, embedder = await talked(store), FakeEmbedder()
    embedder.broken = True
    recall = recall_of(store, c, embedder)
    await recall.load()
    assert len(recall.index.without_vector()) == len(TALK)
    assert 5 in said(await recall.recall("violin teacher", max_tokens=40))
    # Turns another process wrote meanwhile, and one that nobody indexed.
    await one_turn(store, c.uuid, "An unseen turn about orchards.", "Apples.")
    embedder.broken = False
    await hold(store, recall, c, "And pears?", "Later.")
    rows = await first_messages(store, c)
    assert "Apples" in rows[6]["key"]
    assert "pears" in rows[6]["key"]
    assert {row["model"] for row in rows} == {"fake"}
    assert recall.index.without_vector() == []


async def test_two_processes_keep_one_conversation(store: Store) -> None:
    c = await talked(store)
    one, other = recall_of(store, c, FakeEmbedder()), recall_of(store, c, FakeEmbedder())
    await asyncio.gather(one.load(), other.load())
    await asyncio.gather(*(hold(store, r, c, f"Question {n}?", "Answer.") for n, r in enumerate((one, other))))
    await asyncio.gather(one.load(), other.load())
    assert one.index.turns == other.index.turns == 8
    rows = await first_messages(store, c)
    assert all(row["model"] == "fake" and row["sitting"] for row in rows)
    assert "Question" in rows[7]["key"]
    ordinals = await store.graph.query_readonly("MATCH (s:Sitting) RETURN s.ordinal AS n ORDER BY n")
    assert len(ordinals) == len({row["n"] for row in ordinals})


async def test_conversations_nobody_opens_are_caught_up_with(store: Store) -> None:
    imported, opened = await talked(store), await talked(store, title="Opened")
    gone = await talked(store, status="deleted", deleted_at=MORNING)
    assert set(await store.conversations_without_keys()) == {imported.uuid, opened.uuid}
    await catch_up(store, FakeEmbedder(), leave=[opened.uuid])
    rows = await first_messages(store, imported)
    assert all(row["model"] == "fake" and row["sitting"] for row in rows)
    for c in (opened, gone):
        assert all(row["sitting"] is None for row in await first_messages(store, c))
    assert await store.conversations_without_keys() == [opened.uuid]
    embedder = FakeEmbedder()
    await catch_up(store, embedder)
    assert len(embedder.texts) == len(TALK)
    assert await store.conversations_without_keys() == []
    await catch_up(store, None)


async def test_only_what_was_said_there_is_indexed(store: Store) -> None:
    c = await store.create_conversation(conversation(workspace="/w"))
    recall = recall_of(store, c)
    await recall.load()
    await hold(store, recall, c, "Hello", "Hello!")
    await recall.recall("Hello")
    [row] = await first_messages(store, c)
    assert row["text"] == "> Hello\nHello!"


async def test_a_branch_finds_what_it_shares_and_leaves_its_keys_alone(store: Store) -> None:
    parent = await talked(store)
    await recall_of(store, parent, FakeEmbedder()).load()
    before = await first_messages(store, parent)
    branch = await store.create_conversation(
        conversation(workspace="/w", branch_of=parent.uuid, branch_turn=3, next_turn=4)
    )
    recall = recall_of(store, branch, FakeEmbedder())
    await recall.load()
    assert recall.index.turns == 3
    await hold(store, recall, branch, "What went into the soup again?", "Onions.")
    found = await recall.recall("onion soup recipe with butter")
    assert said(found) == [1, 2, 3, 4]
    assert all(turn.own for turn in found.turns)
    assert await first_messages(store, parent) == before
    assert "onion soup" in (await first_messages(store, branch))[0]["key"]


# --- other conversations ---------------------------------------------------------------------------------------------


async def elsewhere(store: Store, **fields: Any) -> Conversation:
    """A stored and indexed conversation about zebras."""
    talk = (("Tell me of the zebra farm.", "It keeps forty zebras."), ("Where?", "Near the lake."))
    c = await talked(store, talk, **{"title": "Zebras", **fields})
    await recall_of(store, c, FakeEmbedder()).load()
    return c


async def asked(store: Store, **settings: Any) -> Any:
    here = await talked(store)
    recall = recall_of(store, here, FakeEmbedder(), **settings)
    await recall.load()
    return await recall.recall("How many zebras does the farm keep?")


async def test_others_are_found_and_named(store: Store) -> None:
    c = await elsewhere(store)
    found = await asked(store)
    foreign = [turn for turn in found.turns if not turn.own]
    assert (foreign[0].conversation_id, foreign[0].title, foreign[0].turn_index) == (c.uuid, "Zebras", 1)
    assert "# 6 May 2024, another conversation: Zebras\n[t1] > Tell me of the zebra farm." in found.text
    assert found.source_of(foreign[0]) == "> Tell me of the zebra farm.\nIt keeps forty zebras."


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
async def test_scope(store: Store, fields: dict[str, Any], settings: dict[str, Any], seen: bool) -> None:
    hidden = {name: fields[name] for name in ("status", "deleted_at") if name in fields}
    c = await elsewhere(store, **{name: value for name, value in fields.items() if name not in hidden})
    if hidden:
        await store.update_conversation(c.uuid, **hidden)
    found = await asked(store, **settings)
    assert any("zebras" in turn.text for turn in found.turns) == seen


async def test_others_have_a_share_while_this_conversation_needs_the_room(store: Store) -> None:
    talk = [(f"What of zebra number {n}?", f"The zebra {n} of the farm is well. " * 6) for n in range(20)]
    c = await talked(store, talk, title="Zebras")
    await recall_of(store, c, FakeEmbedder()).load()
    here = await talked(store, [(f"Is zebra {n} here?", f"Zebra {n} is not at this place. " * 6) for n in range(20)])
    for share in (0.0, 0.4):
        recall = recall_of(store, here, FakeEmbedder(), other_conversations_share=share)
        await recall.load()
        found = await recall.recall("zebra of the farm", max_tokens=500)
        foreign = sum(count_tokens(turn.text) for turn in found.turns if not turn.own)
        assert foreign <= share * 500
        assert bool(foreign) == bool(share)
        assert [turn for turn in found.turns if turn.own]
    only = await recall.recall("zebra of the farm", max_tokens=500, own=False)
    assert not any(turn.own for turn in only.turns)
    assert only.tokens > 250


async def test_what_has_nothing_to_do_with_it_stays_out(store: Store) -> None:
    await elsewhere(store)
    here = await store.create_conversation(conversation(workspace="/w"))
    recall = recall_of(store, here)
    await recall.load()
    assert (await recall.recall("Compile the kernel module")).turns == []
    assert (await recall.recall("and the?")).turns == []


# --- summaries and topics --------------------------------------------------------------------------------------------


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
    await recall.load()
    finding = Finding(text="PostgreSQL was chosen", turns=[2, 77])
    summaries = [
        summary(c, 1, 3, "They chose the eastern harbour and a blue sloop.", key_findings=[finding]),
        summary(c, 4, 6, "They talked about a violin teacher."),
    ]
    await recall.summaries_changed(summaries)
    assert "PostgreSQL was chosen" in (await first_messages(store, c))[1]["key"]
    assert 2 in said(await recall.recall("Which PostgreSQL release was chosen?", max_tokens=35))
    found = await recall.recall("Which violin teacher?", exclude_summaries=["no such"])
    assert [one.summary.uuid for one in found.summaries] == [summaries[1].uuid]
    assert (await recall.recall("Which violin teacher?", exclude_summaries=[summaries[1].uuid])).summaries == []
    assert (await recall.recall("Which violin teacher?", summaries=False)).summaries == []


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
    c = await store.create_conversation(conversation(workspace="/w"))
    recall = recall_of(store, c, **settings)
    await recall.load()
    text, moment = "About the violin.", now()
    made = [
        summary(c, 1, 2, text, uuid="new", created_at=moment),
        summary(c, 3, 4, text, uuid="old", created_at=moment - timedelta(days=400)),
        summary(c, 1, 4, text, uuid="L3", level=3, created_at=moment - timedelta(days=30)),
    ]
    await recall.summaries_changed(made)
    assert [one.summary.uuid for one in (await recall.recall("violin")).summaries] == expected


async def test_private_conversations_recall_others_but_are_never_recalled(store: Store) -> None:
    open_one = await elsewhere(store)
    secret = await elsewhere(store, private=True, title="Secret")
    recall = recall_of(store, secret, FakeEmbedder())
    await recall.load()
    found = await recall.recall("zebra farm")
    assert {turn.conversation_id for turn in found.turns if not turn.own} <= {open_one.uuid}
    other = recall_of(store, open_one, FakeEmbedder())
    await other.load()
    assert "Secret" not in (await other.recall("zebra farm")).text


# --- the embedding model ---------------------------------------------------------------------------------------------


async def test_vectors_of_another_model_are_not_mixed_until_reembedded(store: Store) -> None:
    c = await talked(store)
    await recall_of(store, c, FakeEmbedder("first")).load()
    second = FakeEmbedder("second")
    recall = recall_of(store, c, second)
    await recall.load()
    assert "graph reembed" in recall.reason
    assert second.texts == []
    found = await recall.recall("violin teacher")
    assert (found.reason, second.texts) == (recall.reason, [])
    assert 5 in said(found)
    progress: list[tuple[int, int]] = []
    assert await reembed(store, second, lambda done, total: progress.append((done, total))) == len(TALK)
    assert progress[0] == (0, len(TALK))
    assert progress[-1] == (len(TALK), len(TALK))
    assert {row["model"] for row in await first_messages(store, c)} == {"second"}
    after = recall_of(store, c, FakeEmbedder("second"))
    await after.load()
    assert after.reason == ""
    assert after.index.without_vector() == []
    # A chat that still runs with the old model stores nothing any more.
    late = recall_of(store, c, FakeEmbedder("first"))
    await late.load()
    await hold(store, late, c, "One more.", "Yes.")
    assert (await first_messages(store, c))[-1]["model"] is None


async def test_reembedding_goes_on_where_it_was_cut_short(store: Store) -> None:
    c = await talked(store)
    await recall_of(store, c, FakeEmbedder("first")).load()
    second = FakeEmbedder("second")

    def cut_short(done: int, total: int) -> None:
        second.broken = done > 0

    talk = [(f"Question {n}?", f"Answer {n}.") for n in range(70)]
    more = await talked(store, talk)
    await recall_of(store, more, FakeEmbedder("first")).load()
    with pytest.raises(ModelError, match="go"):
        await reembed(store, second, cut_short)
    second.broken = False
    second.texts.clear()
    left = await store.count_without_vector("second")
    assert 0 < left < len(TALK) + len(talk)
    assert await reembed(store, second, lambda done, total: None) == left
    assert await store.count_without_vector("second") == 0


async def test_a_model_of_another_dimension_gets_new_indexes(store: Store) -> None:
    c = await talked(store)
    await recall_of(store, c, FakeEmbedder()).load()
    wide = FakeEmbedder("wide", DIMENSION * 2)
    recall = recall_of(store, c, wide)
    await recall.load()
    assert str(DIMENSION * 2) in recall.reason
    try:
        await reembed(store, wide, lambda done, total: None)
        other = await talked(store, title="Other")
        found = await store.turns_elsewhere(
            ["violin"], (await wide.embed(["violin"]))[0], "wide", own=[other.uuid], workspace=None
        )
        assert {len(turn.vector) for turn in found if turn.vector is not None} == {DIMENSION * 2}
    finally:
        await store.change_embedding_model("fake", DIMENSION)


async def test_a_model_that_fails_takes_nobodys_place(store: Store) -> None:
    c = await talked(store)
    await recall_of(store, c, FakeEmbedder("first")).load()
    broken = FakeEmbedder("broken")
    broken.broken = True
    with pytest.raises(ModelError):
        await reembed(store, broken, lambda done, total: None)
    assert await store.embedding_model() == ("first", DIMENSION)


async def test_without_an_embedder_words_decide(store: Store) -> None:
    c = await talked(store)
    recall = recall_of(store, c, None)
    await recall.load()
    found = await recall.recall("Who teaches violin on Tuesdays?", max_tokens=40)
    assert (said(found), found.reason) == ([5], "")
    assert await rows_of(store.graph, "MATCH (m:Message) WHERE m.embedding IS NOT NULL RETURN m.uuid") == 0
    assert (await store.embedding_model())[0] == ""
    assert EmbeddingSettings().enabled


# --- similar conversations -------------------------------------------------------------------------------------------


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
        made[name] = await store.create_conversation(
            conversation(title=name, workspace="/w", summary=text, private=name == "d")
        )
        await recall_of(store, made[name], FakeEmbedder()).load()
    await store.update_conversation(made["e"].uuid, status="deleted", deleted_at=now())
    found = await store.similar_conversations(made["a"].uuid, limit=10, min_score=0.5)
    assert [one.conversation.title for one in found] == ["b"]
    assert 0.5 < found[0].score < 1
    assert [s.conversation.title for s in await store.similar_conversations(made["a"].uuid, min_score=-1)] == ["b", "c"]
    assert await store.similar_conversations(made["a"].uuid, min_score=-1, workspace="/elsewhere") == []
    assert len(await store.similar_conversations(made["a"].uuid, min_score=-1, limit=1)) == 1
    # A summary that changed gets a new vector.
    await store.update_conversation(made["c"].uuid, summary="The zebra farm and its fences.")
    await recall_of(store, made["c"], FakeEmbedder()).load()
    [best, *_] = await store.similar_conversations(made["a"].uuid)
    assert (best.conversation.title, round(best.score, 3)) == ("c", 1.0)
