"""Topics in the graph: found again, merged and taken apart, seen only where the scope allows; on both backends."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import msgspec
import pytest

from ragforge_tui.graph import Graph, Store
from ragforge_tui.graph.store.summary_tree import summary_uuid
from ragforge_tui.graph.store.topic_names import ProposedTopic, TopicLink, topic_key
from ragforge_tui.graph.store.topics import Near, shown_topics
from ragforge_tui.shared.errors import NotFoundError
from ragforge_tui.shared.records import EXTRACTIVE, Summary, now
from tests.support.fake_embedder import FakeEmbedder
from tests.support.records import rows_of
from tests.support.turns import exchanges, imported


async def about(
    store: Store,
    uuid: str,
    start: int,
    end: int,
    *names: str,
    links: list[TopicLink] | None = None,
    level: int = 1,
    made_by: str = "",
    below: Sequence[str] = (),
    **described: str,
) -> None:
    """A summary of these turns with these topics; `described` gives further ones their descriptions."""
    made = Summary(
        uuid=summary_uuid(uuid, level, start, end),
        conversation_id=uuid,
        level=level,
        made_by=made_by,
        parent_summaries=list(below),
        ordinal=1,
        conversation_summary="x",
        start_turn_index=start,
        end_turn_index=end,
        turn_count=end - start + 1,
        created_at=now(),
    )
    topics = [ProposedTopic(name=name) for name in names]
    topics += [ProposedTopic(name=name, description=text) for name, text in described.items()]
    assert await store.summaries.store(made, topics, links or [])


async def embedded(store: Store, embedder: FakeEmbedder) -> None:
    """Give all topics their vectors."""
    await store.vectors.claim_model(embedder.name, embedder.dimension)
    missing = await store.vectors.missing("Topic", embedder.name, limit=100)
    vectors = await embedder.embed([node.text for node in missing])
    assert await store.vectors.store("Topic", embedder.name, list(zip(missing, vectors, strict=True)))


async def near(embedder: FakeEmbedder, query: str) -> Near:
    return Near(vector=(await embedder.embed([query]))[0], model=embedder.name, described=0.2, named=0.4)


async def ids(store: Store) -> dict[str, str]:
    return {topic.name: topic.uuid for topic in await store.topics.search()}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Authentication", "authentication "),
        ("Résumé", "re\u0301sume\u0301"),
        ("ＡＰＩ keys", "api KEYS"),
        ("Straße", "STRASSE"),
        ("retry-policy", "retry policy"),
        ("認証", "認証"),
    ],
)
def test_names_that_are_the_same(one: str, other: str) -> None:
    assert topic_key(one) == topic_key(other) != ""


@pytest.mark.parametrize(("one", "other"), [("c", "c++"), ("résumé", "resume"), ("認証", "認可"), ("a b", "ab")])
def test_names_that_differ(one: str, other: str) -> None:
    assert topic_key(one) != topic_key(other)


async def test_a_topic_is_found_again_by_its_name(graph: Graph) -> None:
    store = Store(graph)
    one, other = [await imported(store, exchanges(8), workspace="/w") for _ in range(2)]
    await about(store, one, 1, 3, "Retry policy", "Café", "???")
    await about(store, one, 4, 6, "retry policy", "RETRY  POLICY")
    await about(store, other, 1, 3, "Retry Policy")
    first, second = await store.topics.search()
    assert (first.name, first.summaries, first.conversations) == ("Retry policy", 3, 2)
    assert (second.name, second.summaries, second.conversations) == ("Café", 1, 1)
    assert [topic.name for topic in await store.topics.search("caf")] == ["Café"]
    assert [topic.name for topic in await store.topics.search("policy retry")] == ["Retry policy"]
    assert await store.topics.search("nothing") == []
    assert (await store.topics.get("RETRY policy")).uuid == (await store.topics.get(first.uuid)).uuid == first.uuid
    assert await store.topics.turns("retry policy") == {one: [(1, 3), (4, 6)], other: [(1, 3)]}
    with pytest.raises(NotFoundError):
        await store.topics.get("nothing")


async def test_a_merge_moves_all_and_is_undone(graph: Graph) -> None:
    store = Store(graph)
    uuid = await imported(store, exchanges(8), workspace="/w")
    await about(store, uuid, 1, 3, "Auth", "Login")
    await about(store, uuid, 4, 6, "Sign in")
    names = await ids(store)
    root = await store.topics.merge(names["Login"], names["Sign in"])
    assert root.name == "Login"
    again = await store.topics.merge(names["Sign in"], names["Auth"], confidence=0.9)
    assert (again.name, set(again.aliases)) == ("Auth", {"Login", "Sign in"})
    assert (await store.topics.merge(names["Auth"], names["Login"])).uuid == names["Auth"]
    [merged] = await store.topics.search()
    assert (merged.name, set(merged.aliases), merged.summaries) == ("Auth", {"Login", "Sign in"}, 3)
    assert (await store.topics.get("sign IN")).uuid == names["Auth"]
    assert await rows_of(graph, "MATCH (:Topic)-[m:MERGED_INTO]->(:Topic) RETURN m") == 2
    assert await rows_of(graph, "MATCH (:Summary)-[:HAS_TOPIC]->(t:Topic {name: 'Auth'}) RETURN t") == 3
    # A name merged before leads to what it became.
    other = await imported(store, exchanges(5), workspace="/w")
    await about(store, other, 1, 3, "login")
    assert [topic.name for topic in await store.topics.search()] == ["Auth"]
    await store.topics.unmerge(names["Login"])
    assert {t.name: (t.aliases, t.summaries) for t in await store.topics.search()} == {
        "Auth": ([], 1),
        "Login": (["Sign in"], 3),
    }
    await store.topics.unmerge(names["Sign in"])
    assert {t.name: t.summaries for t in await store.topics.search()} == {"Auth": 1, "Login": 2, "Sign in": 1}
    assert await rows_of(graph, "MATCH (t:Topic) WHERE size(t.aliases) > 0 RETURN t") == 0
    with pytest.raises(NotFoundError):
        await store.topics.unmerge(names["Auth"])
    with pytest.raises(NotFoundError):
        await store.topics.merge(names["Auth"], "nothing")


async def test_links_merge_when_sure_and_relate_when_not(graph: Graph) -> None:
    store = Store(graph)
    uuid = await imported(store, exchanges(8))
    links = [
        TopicLink(a="Auth", b="Authentication", confidence=0.8, reason="same word"),
        TopicLink(a="Auth", b="Sessions", confidence=0.79, same=False, reason="both about log-in"),
        TopicLink(a="auth", b="Auth", confidence=1.0),
        TopicLink(a="Auth", b="Unknown", confidence=1.0),
    ]
    await about(store, uuid, 1, 3, "Auth", "Authentication", "Sessions", links=links)
    first = await store.topics.get("Auth")
    assert first.uuid == (await store.topics.get("authentication")).uuid
    near = [(r.name, r.relation, r.confidence, r.reason) for r in first.related if r.relation == "related"]
    assert near == [("Sessions", "related", 0.79, "both about log-in")]
    names = await ids(store)
    await store.topics.relate(first.uuid, first.uuid, confidence=0.9)
    await store.topics.relate(names["Sessions"], first.uuid, confidence=0.5, reason="weaker")
    assert await rows_of(graph, "MATCH ()-[r:RELATED_TO]->() RETURN r") == 1
    await store.topics.merge(first.uuid, names["Sessions"])
    [merged] = await store.topics.search()
    assert not [r for r in merged.related if r.relation == "related"]
    assert await rows_of(graph, "MATCH (t)-[:RELATED_TO|MERGED_INTO]->(t) RETURN t") == 0


async def test_merges_at_once_in_both_directions_make_no_circle(graph: Graph) -> None:
    store = Store(graph)
    uuid = await imported(store, exchanges(8))
    await about(store, uuid, 1, 3, "A", "B", "C", "D")
    names = await ids(store)
    pairs = [("A", "B"), ("B", "A"), ("B", "C"), ("C", "A"), ("D", "C"), ("A", "D")]
    await asyncio.gather(*(store.topics.merge(names[a], names[b]) for a, b in pairs))
    [merged] = await store.topics.search()
    assert {merged.name, *merged.aliases} == {"A", "B", "C", "D"}
    assert await rows_of(graph, "MATCH (t:Topic)-[:MERGED_INTO*1..6]->(t) RETURN t") == 0
    assert merged.summaries == 4


async def test_other_workspaces_and_private_conversations_do_not_show(graph: Graph) -> None:
    store = Store(graph)
    here, there, secret = [
        await imported(store, exchanges(8), workspace=folder, private=private)
        for folder, private in (("/here", False), ("/there", False), ("/here", True))
    ]
    await about(store, here, 1, 3, "Shared", "Here")
    await about(store, there, 1, 3, "Shared", "There")
    await about(store, secret, 1, 3, "Shared", "Takeover", links=[TopicLink(a="Shared", b="Takeover", confidence=1)])
    assert {t.name for t in await store.topics.search(workspace="/here")} == {"Shared", "Here"}
    assert {t.name for t in await store.topics.search()} == {"Shared", "Here", "There"}
    assert not (await store.topics.get("Shared")).aliases
    assert [(t.name, t.aliases) for t in await store.topics.search(conversation_id=secret)] == [
        ("Shared", ["Takeover"])
    ]
    # A merge made over there does not put its name here, nor does a reason given there.
    names = {t.name: t.uuid for t in await store.topics.search()}
    await store.topics.merge(names["There"], names["Shared"])
    assert {t.name: t.aliases for t in await store.topics.search(workspace="/here")} == {"Shared": [], "Here": []}
    assert {t.name: t.aliases for t in await store.topics.search(workspace="/there")} == {"Shared": ["There"]}
    assert await store.topics.turns("shared", workspace="/here") == {here: [(1, 3)]}
    with pytest.raises(NotFoundError):
        await store.topics.get("There", workspace="/here")
    # What becomes private or is deleted is gone from the lists.
    await store.conversations.update(there, private=True)
    await store.conversations.update(here, status="deleted")
    assert await store.topics.search() == []


async def test_a_topic_of_one_extract_is_neither_listed_nor_offered(graph: Graph) -> None:
    store = Store(graph)
    uuid = await imported(store, exchanges(9), workspace="/w")
    await about(store, uuid, 1, 2, "Retries", made_by="openai/writer")
    await about(store, uuid, 3, 4, "WARN", "Leases", made_by=EXTRACTIVE)
    assert {topic.name for topic in await store.topics.search(workspace="/w")} == {"Retries"}
    assert (await store.topics.get("WARN")).name == "WARN"
    await about(store, uuid, 5, 6, "Leases", made_by=EXTRACTIVE)
    # What is extracted from extracts repeats their topics.
    await about(store, uuid, 1, 6, "WARN", level=2, made_by=EXTRACTIVE)
    assert {topic.name for topic in await store.topics.search(conversation_id=uuid)} == {"Retries", "Leases"}
    assert shown_topics(await store.summaries.of(uuid)) == ["Leases", "Retries"]


async def test_topics_are_found_by_meaning_with_a_floor(graph: Graph) -> None:
    store = Store(graph)
    embedder = FakeEmbedder()
    uuid = await imported(store, exchanges(8), workspace="/w")
    await about(store, uuid, 1, 3, "Car", "Dinner", Garage="Where the automobile is parked at night")
    await embedded(store, embedder)
    query = await near(embedder, "vehicle")
    assert await store.topics.search("vehicle") == []
    first, second = await store.topics.search("vehicle", near=query)
    assert (first.name, second.name) == ("Car", "Garage")
    assert first.similarity is not None
    assert second.similarity is not None
    assert first.similarity > second.similarity > 0.2
    assert [t.name for t in await store.topics.search("vehicle", near=query, limit=1)] == ["Car"]
    assert await store.topics.search("vehicle", near=query, workspace="/other") == []
    # By its words, without a similarity; then by those of its description.
    dinner = (await store.topics.search("dinner", near=query))[0]
    assert (dinner.name, dinner.similarity) == ("Dinner", None)
    assert [(t.name, t.similarity) for t in await store.topics.search("night parked")] == [("Garage", None)]
    nonsense = "xyzzy frobnicate"
    assert await store.topics.search(nonsense, near=await near(embedder, nonsense)) == []
    # Vectors of another model are not compared.
    other = msgspec.structs.replace(query, model="another")
    assert await store.topics.search("vehicle", near=other) == []


async def test_a_description_is_that_of_the_scope_and_a_models_comes_first(graph: Graph) -> None:
    store = Store(graph)
    here = await imported(store, exchanges(8), workspace="/here")
    there = await imported(store, exchanges(8), workspace="/there")
    await about(store, there, 1, 3, made_by="model", Leases="Theirs")
    await about(store, here, 1, 3, made_by=EXTRACTIVE, Leases="An extract")
    assert (await store.topics.get("Leases", workspace="/here")).description == "An extract"
    assert (await store.topics.get("Leases", workspace="/there")).description == "Theirs"
    assert (await store.topics.get("Leases")).description == "Theirs"
    await about(store, here, 4, 5, made_by="model", Leases="A model's")
    assert (await store.topics.get("Leases", workspace="/here")).description == "A model's"


async def test_a_purge_takes_what_a_conversation_said_about_a_topic(graph: Graph) -> None:
    store = Store(graph)
    embedder = FakeEmbedder()
    one, two = [await imported(store, exchanges(8), workspace="/w") for _ in range(2)]
    await about(store, one, 1, 3, made_by="model", Leases="Told in a secret")
    await about(store, two, 1, 3, "Leases", made_by="model")
    await embedded(store, embedder)
    await store.purges.purge(one)
    assert await rows_of(graph, "MATCH (t:Topic) WHERE t.description <> '' RETURN t") == 0
    assert (await store.topics.get("Leases")).description == ""
    assert [node.text.strip() for node in await store.vectors.missing("Topic", embedder.name, limit=9)] == ["Leases"]


async def test_a_merge_has_the_confidence_that_was_stored(graph: Graph) -> None:
    store = Store(graph)
    uuid = await imported(store, exchanges(8))
    links = [TopicLink(a="Auth", b="Authentication", confidence=0.85)]
    await about(store, uuid, 1, 3, "Auth", "Authentication", "Sign in", links=links)
    names = await ids(store)
    await store.topics.merge(names["Auth"], names["Sign in"])
    [merged] = await store.topics.search()
    assert {near.name: near.confidence for near in merged.related} == {"Authentication": 0.85, "Sign in": 1.0}


async def test_a_merge_reaches_the_summaries_with_its_reason_and_is_undone(graph: Graph) -> None:
    store = Store(graph)
    uuid = await imported(store, exchanges(12), workspace="/w")
    other = await imported(store, exchanges(3), workspace="/other")
    await about(store, uuid, 1, 3, "session cookies", "flask")
    await about(store, uuid, 4, 6, "flask", "session cookie", "session cookies")
    await about(store, other, 1, 3, "session cookie")
    same = TopicLink(a="session cookie", b="session cookies", confidence=0.93, reason="singular and plural")
    below = [summary_uuid(uuid, 1, 1, 3), summary_uuid(uuid, 1, 4, 6)]
    await about(store, uuid, 1, 6, "cookies", level=2, below=below, links=[same])

    async def named(conversation: str = uuid) -> list[list[str]]:
        found = await store.summaries.of(conversation)
        return [one.topics for one in sorted(found, key=lambda one: (one.level, one.start_turn_index))]

    assert await named() == [["session cookies", "flask"], ["flask", "session cookies"], ["cookies"]]
    # Another folder never proposed the name of the successor.
    assert await named(other) == [["session cookie"]]
    assert await graph.rows("MATCH (:Topic)-[m:MERGED_INTO]->(:Topic) RETURN m.reason AS reason") == [
        {"reason": "singular and plural"}
    ]
    await about(store, uuid, 7, 9, "Session cookie")
    assert (await named())[2] == ["session cookies"]
    topics = await ids(store)
    await store.topics.merge(topics["cookies"], topics["session cookies"])
    cookies = ["session cookies"]
    assert await named() == [[*cookies, "flask"], ["flask", *cookies], cookies, cookies]
    undone = await store.topics.unmerge_named("session cookie")
    assert undone.name == "session cookie"
    assert [set(names) for names in await named()] == [
        {"session cookies", "flask"},
        {"flask", "session cookie", "session cookies"},
        {"session cookie"},
        {"session cookies"},
    ]


async def test_a_merged_topic_is_not_described_by_the_placeholder_of_the_other(graph: Graph) -> None:
    store = Store(graph)
    uuid = await imported(store, exchanges(12), workspace="/w")
    await about(store, uuid, 1, 3, "blueprints")
    for start in (4, 7):
        await about(store, uuid, start, start + 2, made_by=EXTRACTIVE, **{"flask routes": "About flask routes."})
    topics = await ids(store)
    await store.topics.merge(topics["flask routes"], topics["blueprints"])
    found = await store.topics.get("blueprints")
    assert (found.description, found.aliases) == ("", ["flask routes"])
