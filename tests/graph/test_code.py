"""Files, scopes and references in the graph: replacing, removing, finding; several workspaces, and conversations."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import numpy as np
import pytest

from ragforge_tui.graph import Graph, Store
from ragforge_tui.graph.schema.migrate import record_embedding
from ragforge_tui.shared.code_records import CodeTotals, IndexedFile, Reference, Scope, UnresolvedName
from ragforge_tui.shared.limits import LIMITS
from ragforge_tui.shared.records import now
from tests.support.records import conversation, message, rows_of
from tests.support.sizes import DIMENSION

HERE, THERE = "/work/here", "/work/there"


@pytest.fixture
def store(graph: Graph) -> Store:
    return Store(graph)


def scope(
    name: str, *, file: str = "a.py", workspace: str = HERE, line: int = 1, lines: int = 3, **given: str
) -> Scope:
    """A function, or a method by its qualified name."""
    last = name.rsplit(".", 1)[-1]
    values = {"signature": f"def {last}()", "text": f"def {last}():\n    pass", "digest": "d", **given}
    return Scope(
        uuid=f"{workspace}:{file}:{name}",
        name=last,
        qualified_name=name,
        kind="method" if "." in name else "function",
        language="python",
        file=file,
        start_line=line,
        end_line=line + lines - 1,
        workspace=workspace,
        **values,
    )


async def fill(store: Store, *scopes: Scope, digest: str = "1") -> None:
    """Store scopes as the whole content of their files."""
    files: dict[tuple[str, str], list[Scope]] = {}
    for one in scopes:
        files.setdefault((one.workspace, one.file), []).append(one)
    for (workspace, path), own in files.items():
        file = IndexedFile(path=path, digest=digest, language="python", scopes=own, parsed=b"parsed")
        await store.code.replace_files(workspace, [file])


async def names(store: Store, *words: str, workspace: str = HERE) -> list[str]:
    hits = await store.code.candidates(workspace, list(words))
    return sorted(hit.scope.qualified_name for hit in hits)


async def test_a_file_and_its_scopes_are_stored_as_given(store: Store) -> None:
    method = scope("Session.send", line=5, doc="Send it.")
    await fill(store, scope("open"), method)
    assert await store.code.files(HERE) == {"a.py": "1"}
    assert await store.code.parsed(HERE, ["a.py", "b.py"]) == {"a.py": b"parsed"}
    assert await store.code.get([method.uuid, "unknown"]) == [method]
    assert await store.code.in_lines(HERE, "a.py", 6, 6) == [method]
    assert await store.code.in_lines(HERE, "a.py", 20, 30) == []


async def test_a_scope_is_found_by_the_words_of_its_names(store: Store) -> None:
    await fill(
        store,
        scope("getUserName", file="src/user_profile.py"),
        scope("HTTPServer.close", doc="Shut the socket down."),
        scope("other", text="def other():\n    retry_budget(3)"),
    )
    assert await names(store, "user") == ["getUserName"]
    assert await names(store, "getusername") == ["getUserName"]
    assert await names(store, "profile") == ["getUserName"]
    assert await names(store, "http") == ["HTTPServer.close"]
    assert await names(store, "sockets") == ["HTTPServer.close"]
    assert await names(store, "budget", "name") == ["getUserName", "other"]
    assert await names(store, 'a"b) OR (*:*') == []


async def test_kinds_limit_a_search(store: Store) -> None:
    await fill(store, scope("retry"), scope("Client.retry", line=5))
    hits = await store.code.candidates(HERE, ["retry"], kinds=["method"])
    assert [hit.scope.qualified_name for hit in hits] == ["Client.retry"]
    assert hits[0].words is not None and hits[0].meaning is None


async def test_workspaces_do_not_mix(store: Store) -> None:
    await fill(store, scope("retry", workspace=HERE), *(scope(f"retry{n}", workspace=THERE) for n in range(30)))
    assert [hit.scope.name for hit in await store.code.candidates(HERE, ["retry"], limit=2)] == ["retry"]
    assert [found.workspace for found in await store.code.by_name(HERE, "retry")] == [HERE]
    await store.code.forget(HERE)
    assert await store.code.files(HERE) == {}
    assert len(await store.code.candidates(THERE, ["retry3"])) == 1


async def test_a_changed_scope_stays_the_same_one_and_others_go(store: Store) -> None:
    kept, gone = scope("kept"), scope("gone", line=9)
    await fill(store, kept, gone)
    await store.code.replace_references(
        HERE, ["a.py"], [Reference(source=kept.uuid, target=gone.uuid, kind="calls")], []
    )
    await fill(store, scope("kept", text="def kept():\n    quietly()"), digest="2")
    assert await names(store, "quietly") == ["kept"]
    assert await names(store, "gone") == []
    assert await store.code.get([gone.uuid]) == []
    assert await store.code.dependencies(kept.uuid) == []
    assert await store.code.files(HERE) == {"a.py": "2"}


async def test_a_removed_file_leaves_nothing_unless_a_tool_accessed_it(store: Store, graph: Graph) -> None:
    await fill(store, scope("one"), scope("two", file="b.py"))
    await graph.run(
        "MATCH (f:File {workspace: $workspace, path: 'b.py'}) CREATE (:ToolCall {uuid: 't'})-[:ACCESSED]->(f)",
        workspace=HERE,
    )
    await store.code.remove_files(HERE, ["a.py", "b.py"])
    assert await store.code.files(HERE) == {}
    assert await rows_of(graph, "MATCH (s:Scope) RETURN s.uuid AS uuid") == 0
    assert await graph.query_readonly("MATCH (f:File) RETURN f.path AS path, f.digest AS digest") == [
        {"path": "b.py", "digest": None}
    ]


async def test_only_the_best_of_what_the_index_finds_are_read(store: Store) -> None:
    words = ["soup", *(f"word{n}" for n in range(60))]
    await fill(store, *(scope(f"f{n}", line=n, text=" ".join(words[: 10 * n])) for n in (4, 2, 6, 1, 3, 5)))
    for limit in (2, 6):
        hits = await store.code.candidates(HERE, ["soup"], None, limit=limit)
        assert [hit.scope.name for hit in hits] == [f"f{n}" for n in range(1, limit + 1)]


async def test_names_may_be_qualified_in_part(store: Store) -> None:
    inner = scope("Outer.Session.send", file="src/net/session.py")
    await fill(store, inner, scope("send", file="mail.py"))
    assert len(await store.code.by_name(HERE, "send")) == 2
    assert await store.code.by_name(HERE, "Session.send") == [inner]
    assert await store.code.by_name(HERE, "Outer.Session.send") == [inner]
    assert await store.code.by_name(HERE, "send", file="session.py") == [inner]
    assert await store.code.by_name(HERE, "sen") == []


async def test_references_lead_both_ways_and_are_replaced(store: Store) -> None:
    caller, first, second = scope("caller"), scope("first", file="b.py"), scope("second", file="b.py", line=9)
    await fill(store, caller, first, second)
    sure = Reference(source=caller.uuid, target=second.uuid, kind="calls", line=2, confidence=1.0)
    guess = Reference(source=caller.uuid, target=first.uuid, kind="calls", line=3, confidence=0.4)
    missing = UnresolvedName(source=caller.uuid, name="requests.get", kind="calls", line=3)
    await store.code.replace_references(HERE, ["a.py"], [guess, sure], [missing])
    assert await store.code.dependencies(caller.uuid) == [(sure, second), (guess, first)]
    assert await store.code.dependencies(caller.uuid, limit=1) == [(sure, second)]
    assert await store.code.dependents(first.uuid) == [(guess, caller)]
    assert await store.code.unresolved(caller.uuid) == [missing]
    counted = await store.code.count(HERE)
    assert (counted.files, counted.scopes, counted.references, counted.unresolved) == (2, 3, 2, 1)
    await store.code.replace_references(HERE, ["a.py"], [sure], [])
    assert await store.code.dependencies(caller.uuid) == [(sure, second)]
    assert await store.code.unresolved(caller.uuid) == []


async def test_a_scope_with_conversations_outlives_its_code(store: Store) -> None:
    talked = scope("retry")
    await fill(store, talked, scope("other", line=9))
    chat = await store.conversations.create(conversation(title="Retries"))
    asked = await store.messages.begin_turn(message(chat.uuid, content="What does retry do?"))
    for _ in range(2):
        await store.code.link_message(asked.uuid, [talked.uuid])
    await store.code.remove_files(HERE, ["a.py"])
    assert await names(store, "retry") == []
    assert await store.code.by_name(HERE, "retry") == []
    (found,) = await store.code.by_name(HERE, "retry", removed=True)
    (talk,) = await store.code.conversations_about(found.uuid)
    assert (talk.conversation_id, talk.title, talk.turn_index) == (chat.uuid, "Retries", asked.turn_index)
    # It comes back as the same scope.
    await fill(store, talked)
    assert await names(store, "retry") == ["retry"]
    assert len(await store.code.conversations_about(talked.uuid)) == 1


@pytest.mark.parametrize("hidden", [{"status": "deleted"}, {"private": True}])
async def test_hidden_conversations_are_not_about_a_scope(store: Store, hidden: dict[str, object]) -> None:
    await fill(store, talked := scope("retry"))
    chat = await store.conversations.create(conversation())
    asked = await store.messages.begin_turn(message(chat.uuid))
    await store.code.link_message(asked.uuid, [talked.uuid])
    await store.conversations.update(chat.uuid, **hidden)
    assert await store.code.conversations_about(talked.uuid) == []


async def test_purging_a_conversation_keeps_the_index(store: Store) -> None:
    await fill(store, talked := scope("retry"))
    await store.code.replace_files(HERE, [IndexedFile(path="empty.py", digest="2", language="python", scopes=[])])
    chat = await store.conversations.create(conversation())
    asked = await store.messages.begin_turn(message(chat.uuid))
    await store.code.link_message(asked.uuid, [talked.uuid])
    await store.purges.purge(chat.uuid)
    assert set(await store.code.files(HERE)) == {"a.py", "empty.py"}
    assert await store.code.conversations_about(talked.uuid) == []
    assert await names(store, "retry") == ["retry"]


async def test_secrets_are_masked(store: Store, graph: Graph) -> None:
    key = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    await fill(store, scope("connect", text=f'def connect():\n    token = "{key}"'))
    stored = await graph.query_readonly("MATCH (s:Scope) RETURN s.text + s.search_text AS text")
    assert key not in stored[0]["text"] and key[8:20].lower() not in stored[0]["text"].lower()


async def test_size_and_time_are_stored_without_reading_a_file_again(store: Store) -> None:
    await store.code.replace_files(HERE, [IndexedFile(path="a.py", digest="1", size=3, mtime=4, version=2)])
    file = (await store.code.indexed(HERE))["a.py"]
    assert (file.size, file.mtime, file.version, file.embedded) == (3, 4, 2, "")
    file.mtime, file.embedded = 5, "model"
    await store.code.touch_files(HERE, [file])
    assert (await store.code.indexed(HERE))["a.py"] == file
    file.digest, file.embedded = "another", ""
    await store.code.touch_files(HERE, [file])
    assert (await store.code.indexed(HERE))["a.py"].embedded == "model"


async def test_totals_are_kept_by_workspace(store: Store) -> None:
    assert await store.code.totals(HERE) == []
    await store.code.store_totals(CodeTotals(workspace=HERE, files=3, left_out={"too large": 2}, complete=True))
    await store.code.store_totals(CodeTotals(workspace=THERE, problem="stopped"))
    here, there = await store.code.totals()
    assert (here.workspace, here.files, here.left_out, here.complete) == (HERE, 3, {"too large": 2}, True)
    assert here.indexed_at is not None and here.indexed_at <= now()
    assert (there.workspace, there.problem) == (THERE, "stopped")
    assert [one.workspace for one in await store.code.totals(THERE)] == [THERE]


# --- vectors ----------------------------------------------------------------------------------------------------------


def axis(place: int) -> np.ndarray:
    return np.eye(DIMENSION, dtype=np.float32)[place]


@pytest.fixture
async def model(graph: Graph) -> AsyncIterator[str]:
    """A model that the graph's vectors come from, until the end of the test."""
    await record_embedding(graph, "some/model", DIMENSION)
    yield "some/model"
    await record_embedding(graph, "", DIMENSION)


async def embed(store: Store, workspace: str, model: str, path: str = "a.py") -> int:
    """Give each scope without a vector the axis of its line."""
    missing = await store.code.search.vectors.missing(workspace, model, [path])
    assert await store.code.search.vectors.store(workspace, model, [(one, axis(one.start_line)) for one in missing])
    await store.code.search.vectors.changed(workspace)
    return len(missing)


async def nearest(store: Store, vector: np.ndarray, workspace: str = HERE) -> list[str]:
    hits = await store.code.candidates(workspace, [], vector.tolist(), limit=1)
    return [hit.scope.qualified_name for hit in hits]


async def test_scopes_are_found_by_meaning(store: Store, model: str) -> None:
    await fill(store, scope("one", line=1), scope("two", line=2), scope("one", line=1, workspace=THERE))
    assert await nearest(store, axis(2)) == []
    assert (await embed(store, HERE, model), await embed(store, THERE, model)) == (2, 1)
    assert await embed(store, HERE, model) == 0
    assert await nearest(store, axis(2)) == ["two"]
    assert await nearest(store, axis(2), THERE) == ["one"]
    hits = {hit.scope.name: hit for hit in await store.code.candidates(HERE, ["one"], axis(2).tolist())}
    assert hits["two"].words is None and hits["two"].meaning == pytest.approx(1.0, abs=0.01)
    assert hits["one"].words is not None and hits["one"].meaning == pytest.approx(0.0, abs=0.01)


async def test_vectors_are_read_in_the_background_while_those_read_before_serve(
    store: Store, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(store, scope("one", line=1))
    await embed(store, HERE, model)
    vectors = store.code.search.vectors
    read, reads, may_read = vectors._read, 0, asyncio.Event()

    async def slowly(*arguments: Any) -> Any:
        nonlocal reads
        reads += 1
        await may_read.wait()
        return await read(*arguments)

    monkeypatch.setattr(vectors, "_read", slowly)
    for _ in range(2):
        # Who stops waiting does not end the read, and the next one waits for the same.
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(nearest(store, axis(1)), 0.3)
    may_read.set()
    assert (await nearest(store, axis(1)), reads) == (["one"], 1)
    may_read.clear()
    monkeypatch.setattr(LIMITS, "code_vectors", 0.0)
    await fill(store, scope("one", line=1), scope("two", line=2), digest="2")
    await embed(store, HERE, model)
    assert await nearest(store, axis(2)) == ["one"]
    may_read.set()
    async with asyncio.timeout(60):
        while await nearest(store, axis(2)) != ["two"]:
            await asyncio.sleep(0.01)
    assert reads == 2


async def test_a_vector_lasts_as_long_as_what_it_was_made_of(store: Store, model: str) -> None:
    await fill(store, scope("one", line=1), scope("two", line=2))
    await embed(store, HERE, model)
    await fill(store, scope("one", line=1, text="other"), scope("two", line=2, signature="def two(x)"), digest="2")
    missing = await store.code.search.vectors.missing(HERE, model, ["a.py"])
    assert [one.name for one in missing] == ["two"]
    assert len(await store.code.search.vectors.missing(HERE, "another/model", ["a.py"])) == 2


async def test_vectors_of_another_model_are_not_stored(store: Store, model: str, graph: Graph) -> None:
    await fill(store, scope("one"))
    missing = await store.code.search.vectors.missing(HERE, model, ["a.py"])
    assert not await store.code.search.vectors.store(HERE, "another/model", [(missing[0], axis(1))])
    assert await rows_of(graph, "MATCH (s:Scope) WHERE s.vector IS NOT NULL RETURN s.uuid AS uuid") == 0


# --- similar words ----------------------------------------------------------------------------------------------------


async def test_words_are_kept_with_their_vectors_by_workspace(store: Store, model: str) -> None:
    vectors = store.code.search.vectors
    await fill(store, scope("one"), scope("one", workspace=THERE))
    await vectors.store_words(HERE, model, ["freeze", "soup"], np.stack([axis(1), axis(2)]))
    await vectors.store_words(HERE, model, ["thaw"], np.stack([axis(3)]))
    await vectors.changed(HERE)
    assert await vectors.words(HERE, model) == {"freeze", "soup", "thaw"}
    assert await vectors.words(THERE, model) == await vectors.words(HERE, "another/model") == set()
    near = await vectors.similar_words(HERE, np.stack([axis(1), axis(2)]), limit=1)
    assert [[word for word, _ in found] for found in near] == [["freeze"], ["soup"]]
    assert await vectors.similar_words(HERE, np.stack([axis(2), axis(1)]), limit=1) == near[::-1]
    await store.code.forget(HERE)
    assert await vectors.words(HERE, model) == set()


async def test_similar_words_find_and_count_less(store: Store) -> None:
    await fill(store, scope("freeze"), scope("soup", line=9))
    hits = await store.code.candidates(HERE, ["soup"], similar={"freeze": 0.3})
    assert [hit.scope.name for hit in hits] == ["soup", "freeze"]
    assert [hit.scope.name for hit in await store.code.candidates(HERE, ["soup"])] == ["soup"]
