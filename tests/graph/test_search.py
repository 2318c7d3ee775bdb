"""Search: what is found, what never is, and that no input is query syntax."""

from __future__ import annotations

import pytest
from neo4j import AsyncManagedTransaction

from ragforge_tui.graph import Graph, Store
from ragforge_tui.graph.schema.indexes import MESSAGE_TEXT
from ragforge_tui.graph.store.recall import KeyRow
from ragforge_tui.graph.store.search import BEST_OF_INDEX, MAX_TERMS, SNIPPET_CHARS, Matcher, excerpt, terms
from ragforge_tui.memory.retrieval import lex_key
from ragforge_tui.shared.records import now
from tests.support.records import conversation, message, one_turn


@pytest.fixture
def store(graph: Graph) -> Store:
    return Store(graph)


async def test_finds_shows_where_and_highlights(store: Store) -> None:
    c = await store.conversations.create(conversation(title="Dogs"))
    other = await store.conversations.create(conversation(title="Cats"))
    await one_turn(store, other.uuid, "nothing here")
    await one_turn(store, c.uuid, "first")
    asked = await one_turn(store, c.uuid, "the dogs\nwere running in src/app.py")
    [hit] = await store.search.turns("dog run")
    assert (hit.conversation_id, hit.title, hit.turn_index) == (c.uuid, "Dogs", 2)
    assert (hit.message_uuid, hit.role, hit.timestamp) == (asked.uuid, "user", asked.timestamp)
    assert [hit.snippet[a:b] for a, b in hit.highlights] == ["dogs", "running"]
    assert [h.turn_index for h in await store.search.turns("src/app.py")] == [2]


async def test_indexed_turn_is_found_by_its_answer(store: Store) -> None:
    c = await store.conversations.create(conversation())
    await one_turn(store, c.uuid, "question", answer="a long talk about xylophones")
    assert await store.search.turns("xylophone") == []
    keys = KeyRow(
        conversation_id=c.uuid,
        turn_index=1,
        text="question\nxylophones",
        lex_key="window",
        language="en",
        ended=now(),
        sitting=1,
        version=1,
    )
    await store.recall.store_keys([keys])
    [hit] = await store.search.turns("xylophone")
    assert hit.role == "assistant"
    assert [hit.snippet[a:b] for a, b in hit.highlights] == ["xylophones"]


async def test_what_only_a_call_holds_is_the_agents(store: Store) -> None:
    c = await store.conversations.create(conversation())
    await one_turn(store, c.uuid, "question", answer="done")
    keys = KeyRow(
        conversation_id=c.uuid,
        turn_index=1,
        text="question\nsearch_code zebra\ndone",
        lex_key="window",
        language="en",
        ended=now(),
        sitting=1,
        version=1,
    )
    await store.recall.store_keys([keys])
    [hit] = await store.search.turns("zebra")
    assert hit.role == "assistant" and [hit.snippet[a:b] for a, b in hit.highlights] == ["zebra"]


@pytest.mark.parametrize(
    "query",
    ['"', "dog AND (", "dog\\", "+dog -dog", "tit*le:dog~2^", "[a TO", "dog/", "&& || !", "{", "conversation_id:dog"],
)
async def test_nothing_typed_is_syntax(store: Store, query: str) -> None:
    c = await store.conversations.create(conversation())
    await one_turn(store, c.uuid, "a dog")
    hits = await store.search.turns(query)
    assert len(hits) == (1 if "dog" in query else 0)


async def test_a_branch_has_what_it_shares(store: Store) -> None:
    parent = await store.conversations.create(conversation(title="Parent", private=True))
    for text in ("the needle", "hay", "needle of the parent alone"):
        await one_turn(store, parent.uuid, text)
    fresh = conversation(title="Branch", private=True, branch_of=parent.uuid, branch_turn=2)
    branch = await store.conversations.create(fresh)
    await one_turn(store, branch.uuid, "a needle of its own")
    hits = await store.search.turns("needle", conversation_id=branch.uuid)
    assert {(hit.conversation_id, hit.title, hit.turn_index) for hit in hits} == {
        (branch.uuid, "Branch", 1),
        (branch.uuid, "Branch", 3),
    }
    assert len(await store.search.turns("needle", conversation_id=branch.uuid, limit=1)) == 1
    assert {hit.turn_index for hit in await store.search.turns("needle", conversation_id=parent.uuid)} == {1, 3}
    await store.conversations.update(branch.uuid, status="deleted", deleted_at=now())
    assert not await store.search.turns("needle", conversation_id=branch.uuid)


async def test_scope(store: Store) -> None:
    here = await store.conversations.create(conversation(workspace="/here"))
    there = await store.conversations.create(conversation(workspace="/there"))
    secret = await store.conversations.create(conversation(workspace="/here", private=True))
    gone = await store.conversations.create(conversation(workspace="/here"))
    for c in (here, there, secret, gone):
        await one_turn(store, c.uuid, "the needle")
    await store.conversations.update(gone.uuid, status="deleted", deleted_at=now())

    async def found(**scope: str) -> set[str]:
        return {hit.conversation_id for hit in await store.search.turns("needle", **scope)}  # type: ignore[arg-type]

    assert await found() == {here.uuid, there.uuid}
    assert await found(workspace="/here") == {here.uuid}
    assert await found(workspace="/nowhere") == set()
    assert await found(conversation_id=secret.uuid) == {secret.uuid}
    assert await found(conversation_id=gone.uuid) == set()
    assert await found(conversation_id=there.uuid) == {there.uuid}
    await store.conversations.update(gone.uuid, status="archived", deleted_at=None)
    assert await found(workspace="/here") == {here.uuid, gone.uuid}


async def test_one_match_among_many_private_ones(store: Store) -> None:
    hidden = await store.conversations.create(conversation(private=True))
    for _ in range(30):
        await store.messages.begin_turn(message(hidden.uuid, content="needle needle needle"))
    shown = await store.conversations.create(conversation())
    await one_turn(store, shown.uuid, "hay hay hay needle hay hay hay")
    assert [hit.conversation_id for hit in await store.search.turns("needle", limit=3)] == [shown.uuid]


async def test_limits(store: Store) -> None:
    c = await store.conversations.create(conversation())
    for n in range(6):
        await one_turn(store, c.uuid, f"needle {n}")
    assert len(await store.search.turns("needle", limit=4)) == 4
    assert await store.search.turns("needle", limit=0) == []
    assert await store.search.turns("  ") == []
    assert len(await store.search.turns("needle " + " ".join(f"w{n}" for n in range(5000)), limit=2)) == 2


async def test_the_index_gives_no_more_than_it_is_asked_for(store: Store, graph: Graph) -> None:
    """What follows the call cuts as well, but only after every node was loaded that the call gave."""
    c = await store.conversations.create(conversation())
    for n in range(6):
        await one_turn(store, c.uuid, f"needle {n}")
    index = graph.dialect.fulltext_index("Message", MESSAGE_TEXT)

    async def given(tx: AsyncManagedTransaction) -> list[int]:
        parameters = {"index": index, "text": '+turn_text:("needle")', "depth": 4}
        result = await tx.run(f"{BEST_OF_INDEX} RETURN count(node) AS given", parameters)
        return [record["given"] async for record in result]

    assert await graph.read(given) == [4]


@pytest.mark.parametrize("language", ["en", "fr"])
@pytest.mark.parametrize(("asked", "said"), [("resume", "le résumé est prêt"), ("caractère", "dix mille caracteres")])
async def test_words_are_found_without_their_accents(store: Store, language: str, asked: str, said: str) -> None:
    c = await store.conversations.create(conversation())
    await one_turn(store, c.uuid, said, answer="oui")
    keys = KeyRow(
        conversation_id=c.uuid,
        turn_index=1,
        text=said,
        lex_key=lex_key(said, moment=now(), language=language),
        language=language,
        ended=now(),
        sitting=1,
        version=1,
    )
    await store.recall.store_keys([keys])
    [hit] = await store.search.turns(asked)
    assert hit.highlights


def test_terms() -> None:
    found = terms("Dog dog, src/app.py it's a_b résumé 漢字!")
    assert found == ["dog", "src", "app.py", "it's", "a_b", "résumé", "漢字", "resume"]
    assert len(terms(" ".join(f"w{n}" for n in range(500)))) == MAX_TERMS


def test_excerpt_of_a_long_text_is_around_the_matches() -> None:
    text = "fox " + "filler " * 500 + "the quick\x1b[31m brown\nfoxes jumping " + "filler " * 500
    snippet, highlights = excerpt(text, Matcher(["fox", "quick", "jump"]))
    assert len(snippet) <= SNIPPET_CHARS
    assert [snippet[a:b] for a, b in highlights] == ["quick", "foxes", "jumping"]
    assert "\x1b" not in snippet and "\n" not in snippet
    assert snippet.startswith("…") and snippet.endswith("…")


def test_excerpt_without_a_match_is_the_beginning() -> None:
    assert excerpt("short text", Matcher(["zebra"])) == ("short text", [])
    assert excerpt("", Matcher(["zebra"])) == ("", [])
