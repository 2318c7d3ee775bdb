"""What recall keeps, on both backends: keys, sittings and vectors, caught up with, changed to another model."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence

import msgspec
import numpy as np
import pytest

from ragforge_tui.graph import GraphTarget, Store
from ragforge_tui.graph.store.recall import KeyRow, RecallRow
from ragforge_tui.llm import count_tokens
from ragforge_tui.llm.embeddings import LocalEmbedder
from ragforge_tui.memory.retrieval import catch_up, index_sync, reembed
from ragforge_tui.memory.retrieval.index_sync import EMBED_BATCH, LOCAL_TURN_CHARS, VectorModel
from ragforge_tui.memory.retrieval.keys import KEYS_VERSION, RESULTS_MARK, shown
from ragforge_tui.settings.schema import Paths
from ragforge_tui.shared.errors import GraphError, ModelError
from ragforge_tui.shared.pace import Pace
from ragforge_tui.shared.records import Finding, Summary, ToolResult
from tests.support.fake_embedder import FakeEmbedder
from tests.support.recall_conversations import MORNING, TALK, first_messages, hold, ready, recall_of, said, talked
from tests.support.records import add_reply, call_of, conversation, message, one_turn, rows_of, supersede
from tests.support.sizes import DIMENSION
from tests.support.stored_memory import summary


class Steps(Pace):
    """A pace that stops background work after so many pieces."""

    def __init__(self, pieces: int) -> None:
        super().__init__(workers=1)
        self._left = pieces
        self.used_up = asyncio.Event()
        self._go_on = asyncio.Event()

    async def clear(self) -> None:
        self._left -= 1
        if self._left < 0:
            self.used_up.set()
            await self._go_on.wait()

    def go_on(self) -> None:
        self._go_on.set()


async def test_an_import_gets_keys_sittings_and_vectors(store: Store) -> None:
    c, embedder = await talked(store), FakeEmbedder()
    recall = recall_of(store, c, embedder)
    await ready(recall)
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
    await ready(fresh)
    assert again.texts == []
    assert fresh.index.without_vector() == []
    assert [one.turn_index for one in fresh.index.rank("violin", np.ones(DIMENSION, np.float32))] == [
        one.turn_index for one in recall.index.rank("violin", np.ones(DIMENSION, np.float32))
    ]


async def test_new_vectors_are_in_their_index_before_a_question_needs_them(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    recall = recall_of(store, await talked(store), FakeEmbedder())
    opened: list[list[str]] = []

    async def noted(labels: Sequence[str]) -> None:
        opened.append(list(labels))
        await opening(labels)

    opening = store.vectors._open
    monkeypatch.setattr(store.vectors, "_open", noted)
    await ready(recall)
    await recall.embed()
    assert opened == ([["Message"], []] if store.graph.embedded else [])


async def test_an_import_is_found_by_its_words_before_it_has_vectors(store: Store) -> None:
    talk = [(f"Question {n} about weather?", f"Answer {n}.") for n in range(200)]
    talk[3] = TALK[4]
    c, embedder = await talked(store, talk), FakeEmbedder()
    embedder.stuck_after = 128
    recall = recall_of(store, c, embedder)
    await recall.load()
    assert recall.index.turns == 200
    await recall.store_missing()
    assert embedder.texts == []
    embedding = asyncio.create_task(recall.embed())
    async with asyncio.timeout(60):
        while recall.progress() != (128, 200):
            await asyncio.sleep(0.01)
    try:
        found = await recall.recall("Who teaches the violin?", max_tokens=60, seconds=0.05)
        assert 4 in said(found)
    finally:
        embedding.cancel()
        await asyncio.gather(embedding, return_exceptions=True)
    # What was made is used, and the rest is made by the next call.
    assert recall.progress() == (128, 200)
    embedder.stuck_after = None
    await recall.embed()
    assert recall.progress() == (200, 200)
    assert len(embedder.texts) == 200


async def test_the_newest_turns_are_read_first_and_what_is_left_is_told(store: Store) -> None:
    talk = [(f"Question {n} about weather?", f"Answer {n}.") for n in range(260)]
    talk[1], talk[250] = TALK[0], TALK[4]
    c, pace = await talked(store, talk), Steps(10)
    recall = recall_of(store, c, FakeEmbedder(), pace=pace)
    loading = asyncio.create_task(recall.load())
    async with asyncio.timeout(60):
        await pace.used_up.wait()
    loaded = recall.index.turns
    assert 0 < loaded < 260
    assert recall.index.last == 260
    assert all(turn in recall.index for turn in range(261 - loaded, 261))
    found = await recall.recall("Who teaches the violin?", max_tokens=60)
    assert 251 in said(found)
    assert f"{260 - loaded} of 260 turns are not loaded yet" in found.missing[0]
    pace.go_on()
    await loading
    found = await recall.recall("Which harbour did we choose?", max_tokens=60)
    assert 2 in said(found)
    assert found.missing == ["Vectors of 260 of 260 turns are still being made: found by words."]
    await recall.store_missing()
    await recall.embed()
    assert (await recall.recall("Which harbour did we choose?", max_tokens=60)).missing == []


async def test_vectors_are_made_newest_first_and_equal_texts_once(store: Store) -> None:
    talk = [("Go on.", "Yes."), ("Who teaches violin?", "Ida."), ("Go on.", "Yes."), ("And the boat?", "A sloop.")]
    c, embedder = await talked(store, talk), FakeEmbedder()
    recall = recall_of(store, c, embedder)
    await ready(recall)
    assert embedder.texts == ["> And the boat?\nA sloop.", "> Go on.\nYes.", "> Who teaches violin?\nIda."]
    assert recall.progress() == (4, 4)
    assert {row["model"] for row in await first_messages(store, c)} == {"fake"}


async def test_a_vector_is_of_what_was_said_and_done_not_of_results(store: Store) -> None:
    c, embedder = await store.conversations.create(conversation(workspace="/w")), FakeEmbedder()
    recall = recall_of(store, c, embedder)
    await ready(recall)
    await one_turn(store, c.uuid, "What is in the log?", "An animal.")
    [turn] = await store.turns.between(c.uuid, start=1, end=2)
    answer = turn.messages[1]
    call = call_of(answer.uuid, arguments='{"path": "zoo.log"}', success=True)
    call.result = ToolResult(
        uuid="r", tool_call_id=call.uuid, success=True, result='{"text": "zebra seen"}', timestamp=MORNING
    )
    answer.tool_calls = [call]
    await recall.turn_stored(turn)
    await recall.embed()
    assert embedder.texts == ["> What is in the log?\nAn animal.\n- read `zoo.log`"]
    assert said(await recall.recall("Where was the zebra seen?")) == [1]


def test_of_a_long_turn_the_local_model_gets_head_and_tail() -> None:
    key = f"> Why?\n{'word ' * 400}the end{RESULTS_MARK}{'result ' * 400}"
    short = VectorModel(LocalEmbedder()).source("Message", key)
    assert len(short) == LOCAL_TURN_CHARS + 1
    assert (short[:6], short[-7:]) == ("> Why?", "the end")
    # A model of a provider gets all that was said; a summary is as short as it should be.
    assert VectorModel(FakeEmbedder()).source("Message", key) == shown(key)
    assert VectorModel(LocalEmbedder()).source("Summary", "word " * 400) == "word " * 400


async def test_vectors_made_before_a_kill_are_kept_and_the_others_are_made_again(
    store: Store, graph_target: GraphTarget, graph_paths: Paths
) -> None:
    talk = [(f"Question {n} about weather?", f"Answer {n}.") for n in range(150)]
    c = await talked(store, talk)
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.support.making_vectors",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(msgspec.json.encode((graph_target, graph_paths, c.uuid)) + b"\n")
        async with asyncio.timeout(120):
            assert await process.stdout.readline() == b"stuck\n"
    finally:
        process.kill()
        await process.wait()
    embedder = FakeEmbedder()
    recall = recall_of(store, c, embedder)
    await ready(recall)
    assert recall.progress() == (150, 150)
    # Batches of 64 are stored; the killed one is lost.
    assert len(embedder.texts) == 150 - 2 * EMBED_BATCH
    assert {row["model"] for row in await first_messages(store, c)} == {"fake"}


async def test_late_answers_of_the_graph_are_left_out(store: Store) -> None:
    c = await talked(store)
    recall = recall_of(store, c, FakeEmbedder())
    await ready(recall)

    async def never() -> Store:
        await asyncio.Event().wait()
        raise AssertionError

    recall._questions.store = never
    assert 5 in said(await recall.recall("Who teaches the violin?", max_tokens=60, seconds=0.05))


async def test_facts_that_a_better_summary_does_not_repeat_are_forgotten(store: Store) -> None:
    c = await talked(store)
    recall = recall_of(store, c)
    await ready(recall)
    extract = summary(c.uuid, 1, 1, 3, key_findings=[Finding(text="A sloop is blue", turns=[2])])
    await recall.summaries_changed([extract])
    assert recall.index.facts(2) == ("A sloop is blue",)
    better = msgspec.structs.replace(extract, key_findings=[Finding(text="They chose the east", turns=[1])])
    await recall.summaries_changed([better])
    assert (recall.index.facts(1), recall.index.facts(2)) == (("They chose the east",), ())
    assert "A sloop is blue" not in (await first_messages(store, c))[1]["key"]


async def test_a_second_opening_writes_no_keys_but_those_whose_facts_changed(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    c = await talked(store)
    extract = summary(c.uuid, 1, 1, 3, key_findings=[Finding(text="A sloop is blue", turns=[2])])
    written: list[list[int]] = []
    storing = store.recall.store_keys

    async def noted(rows: Sequence[KeyRow]) -> None:
        written.append([row.turn_index for row in rows])
        await storing(rows)

    monkeypatch.setattr(store.recall, "store_keys", noted)

    async def opened(found: Summary) -> list[list[int]]:
        written.clear()
        recall = recall_of(store, c)
        await ready(recall)
        await recall.summaries_changed([found])
        assert recall.index.facts(2) == tuple(finding.text for finding in found.key_findings)
        return written

    assert await opened(extract) == [[1, 2, 3, 4, 5, 6], [2]]
    assert await opened(extract) == []
    # A better summary was stored by a process that ended before it wrote the keys.
    without = msgspec.structs.replace(extract, key_findings=[])
    assert await opened(without) == [[2]]
    assert "A sloop is blue" not in (await first_messages(store, c))[1]["key"]


async def test_turns_are_taken_in_as_they_end(store: Store) -> None:
    c = await store.conversations.create(conversation(workspace="/w"))
    recall = recall_of(store, c, FakeEmbedder())
    await ready(recall)
    await hold(store, recall, c, "Where do lanterns hang?", "Over the harbour gate.")
    await hold(store, recall, c, "How many?", "Seven.")
    first, second = await first_messages(store, c)
    assert "Seven." in first["key"]
    assert "lanterns" in second["key"]
    assert {first["model"], second["model"]} == {"fake"}
    found = await recall.recall("How many lanterns hang over the gate?")
    day = f"# {found.turns[0].date.day} {found.turns[0].date:%B %Y}"
    assert found.text == f"{day}\n[t1] > Where do lanterns hang?\nOver the harbour gate."
    assert 1 not in said(await recall.recall("How many lanterns hang over the gate?", exclude=[1]))


async def test_a_turn_answered_again_loses_its_old_vector(store: Store) -> None:
    c, embedder = await talked(store), FakeEmbedder()
    recall = recall_of(store, c, embedder)
    await ready(recall)
    await supersede(store, c.uuid, 6)
    await add_reply(store, message(c.uuid, role="assistant", turn_index=6, content="Sleep well, captain."))
    [turn] = await store.turns.between(c.uuid, start=6, end=7)
    embedder.texts.clear()
    await recall.turn_stored(turn)
    await recall.embed()
    assert embedder.texts == ["> Good night.\nSleep well, captain."]
    assert "captain" in (await first_messages(store, c))[4]["key"]
    assert "Good night!" not in recall.index.turn_text(6)


async def test_work_left_by_a_crash_is_caught_up(store: Store) -> None:
    c, embedder = await talked(store), FakeEmbedder()
    embedder.broken = True
    recall = recall_of(store, c, embedder)
    await ready(recall)
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


async def test_a_turn_after_a_load_that_failed_reads_the_turns_left_out(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    c = await talked(store)
    await ready(recall_of(store, c))
    recall, read = recall_of(store, c), store.recall.rows

    async def failing(conversation_id: str, *, start: int, end: int, model: str = "") -> list[RecallRow]:
        if start < 5:
            raise GraphError("gone")
        return await read(conversation_id, start=start, end=end, model=model)

    monkeypatch.setattr(index_sync, "PAGE", 2)
    monkeypatch.setattr(store.recall, "rows", failing)
    with pytest.raises(GraphError):
        await recall.load()
    assert recall.index.turns == 2
    monkeypatch.setattr(store.recall, "rows", read)
    await hold(store, recall, c, "And pears?", "Later.")
    assert recall.index.turns == 7
    assert [row["sitting"] for row in await first_messages(store, c)] == [1, 1, 1, 2, 2, 2, 3]


async def test_two_processes_keep_one_conversation(store: Store) -> None:
    c = await talked(store)
    one, other = recall_of(store, c, FakeEmbedder()), recall_of(store, c, FakeEmbedder())
    await asyncio.gather(ready(one), ready(other))
    await asyncio.gather(*(hold(store, r, c, f"Question {n}?", "Answer.") for n, r in enumerate((one, other))))
    await asyncio.gather(ready(one), ready(other))
    assert one.index.turns == other.index.turns == 8
    rows = await first_messages(store, c)
    assert all(row["model"] == "fake" and row["sitting"] for row in rows)
    assert "Question" in rows[7]["key"]
    ordinals = await store.graph.query_readonly("MATCH (s:Sitting) RETURN s.ordinal AS n ORDER BY n")
    assert len(ordinals) == len({row["n"] for row in ordinals})


async def test_conversations_no_one_opens_are_caught_up_with(store: Store) -> None:
    imported, opened = await talked(store), await talked(store, title="Opened")
    gone = await talked(store, status="deleted", deleted_at=MORNING)
    assert set(await store.recall.conversations_without_keys(KEYS_VERSION)) == {imported.uuid, opened.uuid}
    await catch_up(store, FakeEmbedder(), leave=[opened.uuid])
    rows = await first_messages(store, imported)
    assert all(row["model"] == "fake" and row["sitting"] for row in rows)
    for c in (opened, gone):
        assert all(row["sitting"] is None for row in await first_messages(store, c))
    assert await store.recall.conversations_without_keys(KEYS_VERSION) == [opened.uuid]
    embedder = FakeEmbedder()
    await catch_up(store, embedder)
    assert len(embedder.texts) == len(TALK)
    assert await store.recall.conversations_without_keys(KEYS_VERSION) == []
    # Keys of another version are made again, too.
    assert set(await store.recall.conversations_without_keys(KEYS_VERSION + 1)) == {imported.uuid, opened.uuid}
    await catch_up(store, None)


async def test_only_what_was_written_there_is_indexed(store: Store) -> None:
    c = await store.conversations.create(conversation(workspace="/w"))
    recall = recall_of(store, c)
    await ready(recall)
    await hold(store, recall, c, "Hello", "Hello!")
    await recall.recall("Hello")
    [row] = await first_messages(store, c)
    assert row["text"] == "> Hello\nHello!"


async def test_a_branch_finds_what_it_shares_and_leaves_its_keys_alone(store: Store) -> None:
    parent = await talked(store)
    await ready(recall_of(store, parent, FakeEmbedder()))
    before = await first_messages(store, parent)
    branch = await store.conversations.create(
        conversation(workspace="/w", branch_of=parent.uuid, branch_turn=3, next_turn=4)
    )
    recall = recall_of(store, branch, FakeEmbedder())
    await ready(recall)
    assert recall.index.turns == 3
    await hold(store, recall, branch, "What went into the soup again?", "Onions.")
    found = await recall.recall("onion soup recipe with butter")
    assert said(found)[0] == 3
    assert all(turn.own for turn in found.turns)
    assert await first_messages(store, parent) == before
    assert "onion soup" in (await first_messages(store, branch))[0]["key"]


async def test_a_branch_does_not_wait_for_vectors_of_turns_it_shares(store: Store) -> None:
    parent = await talked(store)
    await ready(recall_of(store, parent))
    branch = await store.conversations.create(
        conversation(workspace="/w", branch_of=parent.uuid, branch_turn=3, next_turn=4)
    )
    recall = recall_of(store, branch, FakeEmbedder())
    await ready(recall)
    await hold(store, recall, branch, "What went into the soup again?", "Onions.")
    assert recall.index.without_vector() == [1, 2, 3]
    assert (recall.progress(), recall.left()) == ((4, 4), "")


async def test_vectors_of_another_model_are_not_mixed_until_reembedded(store: Store) -> None:
    c = await talked(store)
    await ready(recall_of(store, c, FakeEmbedder("first")))
    second = FakeEmbedder("second")
    recall = recall_of(store, c, second)
    await ready(recall)
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
    await ready(after)
    assert after.reason == ""
    assert after.index.without_vector() == []
    # A chat that still runs with the old model stores nothing any more.
    late = recall_of(store, c, FakeEmbedder("first"))
    await ready(late)
    await hold(store, late, c, "One more.", "Yes.")
    assert (await first_messages(store, c))[-1]["model"] is None


async def test_reembedding_continues_where_it_was_cut_short(store: Store) -> None:
    c = await talked(store)
    await ready(recall_of(store, c, FakeEmbedder("first")))
    second = FakeEmbedder("second")

    def cut_short(done: int, total: int) -> None:
        second.broken = done > 0

    talk = [(f"Question {n}?", f"Answer {n}.") for n in range(70)]
    more = await talked(store, talk)
    await ready(recall_of(store, more, FakeEmbedder("first")))
    with pytest.raises(ModelError, match="continues"):
        await reembed(store, second, cut_short)
    second.broken = False
    second.texts.clear()
    left = await store.vectors.count_missing("second")
    assert 0 < left < len(TALK) + len(talk)
    assert await reembed(store, second, lambda done, total: None) == left
    assert await store.vectors.count_missing("second") == 0


async def test_a_model_of_another_dimension_gets_new_indexes(store: Store) -> None:
    c = await talked(store)
    await ready(recall_of(store, c, FakeEmbedder()))
    wide = FakeEmbedder("wide", DIMENSION * 2)
    recall = recall_of(store, c, wide)
    await ready(recall)
    assert str(DIMENSION * 2) in recall.reason
    try:
        await reembed(store, wide, lambda done, total: None)
        other = await talked(store, title="Other")
        found = await store.other_conversations.turns(
            await store.other_conversations.scope([other.uuid], None),
            ["violin"],
            (await wide.embed(["violin"]))[0],
            "wide",
        )
        assert {len(turn.vector) for turn in found if turn.vector is not None} == {DIMENSION * 2}
    finally:
        await store.vectors.change_model("fake", DIMENSION)


async def test_a_model_that_fails_takes_nobodys_place(store: Store) -> None:
    c = await talked(store)
    await ready(recall_of(store, c, FakeEmbedder("first")))
    broken = FakeEmbedder("broken")
    broken.broken = True
    with pytest.raises(ModelError):
        await reembed(store, broken, lambda done, total: None)
    assert await store.vectors.model() == ("first", DIMENSION)


async def test_without_an_embedder_words_decide(store: Store) -> None:
    c = await talked(store)
    recall = recall_of(store, c, None)
    await ready(recall)
    found = await recall.recall("Who teaches violin on Tuesdays?", max_tokens=40)
    assert (said(found), found.reason) == ([5], "")
    assert await rows_of(store.graph, "MATCH (m:Message) WHERE m.embedding IS NOT NULL RETURN m.uuid") == 0
    assert (await store.vectors.model())[0] == ""


async def test_turns_that_are_not_loaded_yet_are_found_in_the_graph(store: Store) -> None:
    """As right after opening a long conversation: nothing of it is in memory."""
    talk = [(f"Question {n} about weather?", f"Answer {n}.") for n in range(120)]
    talk[1] = TALK[0]
    c = await talked(store, talk)
    await ready(recall_of(store, c))
    opened = recall_of(store, c)
    found = await opened.recall("Which harbour did we choose?", max_tokens=200)
    assert (said(found), found.turns[0].own, found.turns[0].text) == ([2], True, f"> {TALK[0][0]}\n{TALK[0][1]}")
    assert (await opened.recall("Which harbour did we choose?", max_tokens=200, exclude={2})).turns == []
    assert (await opened.recall("Which harbour did we choose?", max_tokens=200, own=False)).turns == []
    await ready(opened)
    assert 2 in said(await opened.recall("Which harbour did we choose?", max_tokens=60))


async def test_an_import_that_is_not_loaded_yet_is_found_without_keys(store: Store) -> None:
    c = await talked(store)
    found = await recall_of(store, c).recall("Who teaches violin?", max_tokens=200)
    assert said(found) == [5]
