"""The search over everything on both backends: what it finds, its order, and what stays hidden."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest

from ragforge_tui.code.brain import Brain
from ragforge_tui.code.search import search
from ragforge_tui.graph import Graph, Store
from ragforge_tui.graph.schema.migrate import record_embedding
from ragforge_tui.graph.store.topic_names import ProposedTopic
from ragforge_tui.memory.retrieval import Questions, catch_up
from ragforge_tui.memory.retrieval.reach import called_from
from ragforge_tui.settings.schema import RecallSettings
from ragforge_tui.shared.code_records import BrainHit, IndexedFile, Scope
from tests.support.fake_embedder import FakeEmbedder
from tests.support.records import conversation, one_turn
from tests.support.stored_memory import summary

HERE, THERE = "/work/here", "/work/there"


@pytest.fixture
def store(graph: Graph) -> Store:
    return Store(graph)


def scope(name: str, text: str = "", *, file: str = "src/lease.py", workspace: str = HERE, **given: str) -> Scope:
    """Return a function, or the kind that is given."""
    values = {"kind": "function", "signature": f"def {name}()", "digest": "d", "text": text or f"def {name}()", **given}
    return Scope(
        uuid=f"{workspace}:{file}:{name}",
        name=name,
        qualified_name=name,
        file=file,
        start_line=3,
        end_line=9,
        workspace=workspace,
        **values,
    )


async def no_vectors(texts: Sequence[str]) -> None:
    """Stand for a missing embedding model."""


async def fill(store: Store, *scopes: Scope) -> None:
    """Store scopes as the whole content of their files."""
    for file in {one.file: one for one in scopes}.values():
        own = [one for one in scopes if one.file == file.file]
        await store.code.replace_files(
            file.workspace, [IndexedFile(path=file.file, digest="1", language="python", scopes=own)]
        )


async def talk(store: Store, *texts: str, **fields: object) -> str:
    """Return a conversation with these turns, indexed as recall does."""
    made = await store.conversations.create(conversation(**{"workspace": HERE, "title": "Leases", **fields}))
    for text in texts:
        await one_turn(store, made.uuid, text)
    await catch_up(store, None)
    return made.uuid


def brain_over(store: Store, embedder: FakeEmbedder | None = None, **settings: object) -> Brain:
    async def ready() -> Store:
        return store

    return Brain(Questions(ready, embedder, msgspec.structs.replace(RecallSettings(), **settings), HERE))


def places(hits: list[BrainHit]) -> list[tuple[str, str, int]]:
    """Return kind, title and turn of hits."""
    return [(hit.kind, hit.title, hit.turn_index) for hit in hits]


async def test_code_first_for_code_and_turns_first_for_the_past(store: Store) -> None:
    await fill(
        store,
        scope("renew_lease", doc="Renew a lease before it expires."),
        scope("Leases", "How a lease expires.", file="docs/leases.md", kind="section", signature=""),
    )
    uuid = await talk(store, "we want to renew a lease every ten seconds before it expires")
    brain = brain_over(store)
    code = await brain.search("renew a lease before it expires")
    past = await brain.search("when did we decide to renew a lease before it expires")
    assert code[0].kind == "code"
    assert places(past)[0] == ("turn", "Leases", 1)
    assert {hit.kind for hit in code} == {hit.kind for hit in past} == {"code", "section", "turn"}
    found = code[0]
    assert (found.title, found.file, found.start_line, found.end_line) == ("renew_lease", "src/lease.py", 3, 9)
    assert found.scope == f"{HERE}:src/lease.py:renew_lease"
    start, end = found.highlights[0]
    assert found.snippet[start:end].lower().startswith(("renew", "lease"))
    assert past[0].conversation_id == uuid and past[0].date is not None


async def test_summaries_and_topics_are_hits_with_their_place(store: Store) -> None:
    uuid = await talk(store, "first", "second")
    made = summary(
        uuid, 1, 1, 2, title="Lantern design", conversation_summary="Lanterns hang in the hall.", made_by="m"
    )
    await store.summaries.store(made, [ProposedTopic(name="Lantern light")])
    hits = {hit.kind: hit for hit in await brain_over(store).search("lanterns in the hall")}
    assert (hits["summary"].title, hits["summary"].turn_index, hits["summary"].end_turn_index) == (
        "Lantern design",
        1,
        2,
    )
    assert hits["topic"].title == "Lantern light"


async def test_other_workspaces_and_private_conversations_stay_hidden(store: Store) -> None:
    await fill(store, scope("lantern", workspace=THERE))
    await talk(store, "lanterns in the garden", title="Near")
    await talk(store, "lanterns on the moon", title="Far", workspace=THERE)
    await talk(store, "lanterns under the bed", title="Secret", private=True)
    for setting, titles in (("workspace", {"Near"}), ("all", {"Near", "Far"}), ("none", set())):
        hits = await brain_over(store, scope=setting).search("lanterns")
        assert {hit.title for hit in hits} == titles, setting


async def test_the_own_conversation_is_searched_without_what_the_model_sees(store: Store) -> None:
    own = await talk(store, "lanterns in the hall", "lanterns in the attic", "where are the lanterns?", private=True)
    with called_from(own, 3, frozenset({2})):
        hits = await brain_over(store, scope="none").search("lanterns")
    assert places(hits) == [("turn", "Leases", 1)]


async def test_search_finds_scopes_by_exact_name_that_the_indexes_leave_out(store: Store) -> None:
    await fill(store, scope("to", doc="Convert."), scope("convert", doc="Convert to another unit."))

    async def nothing(_: Sequence[str]) -> None:
        return None

    hits = await search(store, HERE, "to", nothing)
    assert hits[0].scope.name == "to"
    only = await search(store, HERE, "convert", nothing, kinds=("section",))
    assert only == []


async def test_meaning_finds_what_has_no_word_in_common(store: Store) -> None:
    embedder = FakeEmbedder()
    await record_embedding(store.graph, embedder.name, embedder.dimension)
    near, far = scope("drive", "car"), scope("cook", "soup")
    await fill(store, near, far)
    missing = await store.code.search.vectors.missing(HERE, embedder.name, ["src/lease.py"])
    made = await embedder.embed(["car" if one.name == "drive" else "soup" for one in missing])
    assert await store.code.search.vectors.store(HERE, embedder.name, list(zip(missing, made, strict=True)))
    await store.code.search.vectors.changed(HERE)
    hits = await brain_over(store, embedder).search("automobile")
    assert hits[0].title == "drive"
    embedder.broken = True
    assert [hit.title for hit in await brain_over(store, embedder).search("cook")] == ["cook"]


async def test_an_empty_memory_has_no_hits(store: Store) -> None:
    assert await brain_over(store).search("anything at all") == []


async def test_other_wordings_share_one_ranking(store: Store) -> None:
    await fill(
        store,
        scope("renew_lease", doc="Renew a lease before it expires."),
        scope("backoff_delay", doc="Seconds until the next retry.", file="src/net.py"),
    )
    first = await talk(store, "we use jitter for the retries")
    assert not await search(store, HERE, "pause between attempts", no_vectors)
    found = await search(store, HERE, "pause between attempts", no_vectors, also=["retry delay", "backoff"])
    assert [hit.scope.name for hit in found] == ["backoff_delay"]

    brain = brain_over(store)
    assert not await brain.search("pause between attempts")
    hits = await brain.search("pause between attempts", also=["retry", "backoff", "jitter"])
    assert ("code", "backoff_delay", 0) in places(hits) and ("turn", "Leases", 1) in places(hits)
    assert len({(hit.kind, hit.title) for hit in hits}) == len(hits)
    assert all(hit.conversation_id in ("", first) for hit in hits)
