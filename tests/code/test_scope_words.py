"""Words that users have for code: of their questions, and lines by the model. On both backends."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from ragforge_tui.code.aliases import MOST_WORDS, aliases_of, note_aliases, rebuild_aliases
from ragforge_tui.code.called import FEWEST, MOST, call_scopes, lines_in
from ragforge_tui.code.search import search
from ragforge_tui.graph import Graph, Store
from ragforge_tui.graph.store.scope_words import AskedScope
from ragforge_tui.shared.code_records import IndexedFile, Scope
from tests.support.records import conversation, one_turn
from tests.support.summaries import WritingModel

HERE = "/work/here"
NAMES = ("parse_amount", "open_ledger", "wrap_line", "renew_lease")


@pytest.fixture
async def store(graph: Graph) -> Store:
    made = Store(graph)
    await fill(made)
    return made


async def fill(store: Store, text: str = "return 1") -> None:
    """Store the code, as an index does when the file is new or changed."""
    scopes = [
        Scope(
            uuid=f"{HERE}:{name}",
            name=name,
            qualified_name=name,
            kind="function",
            file="src/app.py",
            start_line=3 * number + 1,
            end_line=3 * number + 2,
            workspace=HERE,
            signature=f"def {name}()",
            text=f"def {name}():\n    {text}",
            digest=text,
        )
        for number, name in enumerate(NAMES)
    ]
    await store.code.replace_files(
        HERE, [IndexedFile(path="src/app.py", digest=text, language="python", scopes=scopes)]
    )


async def asked(store: Store, question: str, *names: str, **fields: Any) -> str:
    """Hold a conversation with one question about code; return its id."""
    made = await store.conversations.create(conversation(**{"workspace": HERE, **fields}))
    first = await one_turn(store, made.uuid, question)
    uuids = [f"{HERE}:{name}" for name in names]
    await store.code.link_message(first.uuid, uuids)
    await note_aliases(store, uuids)
    return made.uuid


async def found(store: Store, query: str) -> list[str]:
    async def no_vectors(texts: Sequence[str]) -> None:
        """Stand for a missing embedding model."""

    return [hit.scope.name for hit in await search(store, HERE, query, no_vectors)]


async def test_code_is_found_by_the_words_of_questions_about_it(store: Store) -> None:
    await asked(store, "Why is our invoice off by a cent?", "parse_amount")
    assert await found(store, "cent invoice") == ["parse_amount"]
    # What the code itself says counts more.
    await asked(store, "Does the ledger open for an invoice?", "wrap_line")
    assert (await found(store, "open ledger"))[0] == "open_ledger"
    await fill(store, "return 2")
    assert "parse_amount" in await found(store, "cent")


async def test_private_and_deleted_conversations_give_no_words(store: Store) -> None:
    await asked(store, "Whose zeppelin is this?", "parse_amount", private=True)
    assert not await found(store, "zeppelin")
    uuid = await asked(store, "Is the submarine yellow?", "parse_amount")
    other = await asked(store, "Where is the lighthouse?", "parse_amount")
    assert await found(store, "submarine")

    await store.conversations.update(uuid, status="deleted")
    await rebuild_aliases(store, HERE)
    assert not await found(store, "submarine") and not await found(store, "zeppelin")
    assert await found(store, "lighthouse") == ["parse_amount"]

    await store.conversations.update(uuid, status="active")
    await note_aliases(store, [f"{HERE}:parse_amount"])
    assert await found(store, "submarine")
    await store.conversations.update(uuid, private=True)
    await store.purges.purge(other)
    assert not await found(store, "submarine") and not await found(store, "lighthouse")
    assert await found(store, "amount") == ["parse_amount"]


def test_aliases_are_the_words_asked_most() -> None:
    questions = ["Fix the rounding, please", "the rounding of cents is off", "rounding: `parse_amount(x)` fails"]
    words = aliases_of(AskedScope("u", "parse_amount", questions)).split()
    assert words[0] == "rounding" and "cents" in words
    assert not {"the", "please", "amount", "parse_amount"} & set(words)
    many = [" ".join(f"word{chr(97 + n % 26)}{chr(97 + n // 26)}" for n in range(60))]
    assert len(aliases_of(AskedScope("u", "x", many)).split()) <= MOST_WORDS


async def test_the_model_says_what_users_would_call_the_code_of_turns(store: Store) -> None:
    answer = json.dumps({"1": "thing one", "2": "bill reader \x1b[31m", "3": 7, "9": "nothing"})
    model = WritingModel(lambda _: answer)
    await asked(store, "Look at these.", *NAMES[: FEWEST - 1])
    assert await call_scopes(store, HERE, model) == 0 and not model.requests

    await asked(store, "And at this.", *NAMES[FEWEST - 1 : MOST])
    assert await call_scopes(store, HERE, model, "French") == 2
    [request] = model.requests
    assert "French" in request[0]["content"] and "parse_amount" in request[1]["content"]
    [hit] = await found(store, "bill reader")
    assert await call_scopes(store, HERE, model) == 0 and len(model.requests) == 1

    # A line is about the code it was written for.
    await fill(store, "return 3")
    assert not await found(store, "bill reader")
    assert await found(store, hit) == [hit]
    assert len(await store.scope_words.uncalled(HERE, MOST)) == FEWEST


async def test_a_useless_answer_is_not_asked_for_again(store: Store) -> None:
    model = WritingModel(lambda _: "I cannot do that.")
    await asked(store, "Look at these.", *NAMES)
    assert await call_scopes(store, HERE, model) == 0
    assert await store.scope_words.uncalled(HERE, MOST) == []
    assert await found(store, "parse amount") == ["parse_amount"]


def test_lines_are_read_leniently_and_cleaned() -> None:
    assert lines_in('Sure:\n```json\n{"1": "a\\n b"}\n```') == {"1": "a b"}
    assert lines_in("no") == {} and lines_in("{broken") == {}
    assert (
        "abcdefghijklmnop"
        not in lines_in(json.dumps({"1": "key sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD"}))["1"]
    )
