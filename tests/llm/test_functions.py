"""Functions as models and embedders: what they receive, what they may return, and their failures."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import numpy as np
import pytest

from ragforge_tui.llm import Finished, OfflineAssistant, ReasoningPart, TextPart, ToolRequest
from ragforge_tui.llm.base import ModelPart
from ragforge_tui.llm.functions import FunctionEmbedder, FunctionModel, check_embedder, model_of
from ragforge_tui.shared.errors import ModelError
from tests.support.fake_embedder import FakeEmbedder

ASKED: list[dict[str, Any]] = [{"role": "system", "content": "You help."}, {"role": "user", "content": "Hello"}]
TOOLS: list[dict[str, Any]] = [{"type": "function", "function": {"name": "look"}}]


async def parts_of(model: FunctionModel, messages: list[dict[str, Any]] | None = None) -> list[ModelPart]:
    return [part async for part in model.stream(messages or ASKED, tools=TOOLS)]


async def test_a_text_a_coroutine_and_pieces_are_answers() -> None:
    def plain(messages: list[dict[str, Any]]) -> str:
        return f"{len(messages)} messages"

    async def later(messages: list[dict[str, Any]], tools: list[dict[str, Any]] | None) -> str:
        return f"{len(tools or [])} tools"

    async def pieces(messages: list[dict[str, Any]]) -> AsyncIterator[str]:
        yield "Hel"
        yield "lo"

    for function, texts in ((plain, ["2 messages"]), (later, ["1 tools"]), (pieces, ["Hel", "lo"])):
        *parts, end = await parts_of(FunctionModel(function))
        assert parts == [TextPart(text) for text in texts]
        assert isinstance(end, Finished)
        assert (end.reason, end.usage.input_tokens > 0, end.usage.cost_usd) == ("stop", True, None)
    text, usage = await FunctionModel(later).complete(ASKED)
    assert (text, usage.output_tokens) == ("0 tools", 2)


async def test_a_message_in_openais_format_has_reasoning_and_calls() -> None:
    def reply(messages: list[dict[str, Any]]) -> dict[str, Any]:
        calls = [{"id": "a", "function": {"name": "look", "arguments": '{"at": 1}'}}, {"function": {"name": "look"}}]
        return {"content": None, "reasoning_content": "Look first.", "tool_calls": calls}

    reasoning, first, second, end = await parts_of(FunctionModel(reply, name="mine"))
    assert reasoning == ReasoningPart("Look first.")
    assert first == ToolRequest(id="a", name="look", arguments='{"at": 1}')
    assert second == ToolRequest(id="call_1", name="look", arguments="{}")
    assert isinstance(end, Finished) and end.reason == "tool_calls"


async def test_messages_are_formed_and_secrets_masked() -> None:
    seen: list[dict[str, Any]] = []

    def keep(messages: list[dict[str, Any]]) -> str:
        seen.extend(messages)
        return ""

    key = "sk-proj-" + "a1B2" * 12
    await parts_of(FunctionModel(keep), [*ASKED, {"role": "user", "content": f"My key is {key}"}])
    assert [message["role"] for message in seen] == ["system", "user"]
    assert "Hello" in seen[1]["content"] and key not in seen[1]["content"]


async def test_a_failure_is_a_model_error_that_names_the_model() -> None:
    def broken(messages: list[dict[str, Any]]) -> str:
        raise OSError("no connection")

    def wrong(messages: list[dict[str, Any]]) -> Any:
        return 42

    for function, said in ((broken, "OSError: no connection"), (wrong, "found int")):
        with pytest.raises(ModelError, match=f"{function.__name__} failed.*{said}"):
            await parts_of(FunctionModel(function))


def test_names_objects_and_functions_are_told_apart() -> None:
    assistant = OfflineAssistant()
    assert model_of(assistant) is assistant
    assert model_of(lambda messages: "").name == "<lambda>"
    with pytest.raises(TypeError, match="not int"):
        model_of(3)  # type: ignore[arg-type]
    embedder = FakeEmbedder()
    assert check_embedder(embedder) is embedder
    with pytest.raises(TypeError, match="FunctionEmbedder"):
        check_embedder(lambda texts: [[1.0]])  # type: ignore[arg-type]


async def test_vectors_are_scaled_and_empty_texts_get_zeros() -> None:
    async def later(texts: list[str]) -> list[list[float]]:
        return [[3.0, 4.0] for _ in texts]

    for function in (later, lambda texts: [[3.0, 4.0] for _ in texts]):
        vectors = await FunctionEmbedder(function, name="mine", dimension=2).embed(["a", " "])
        assert np.allclose(vectors, [[0.6, 0.8], [0.0, 0.0]])
    assert (await FunctionEmbedder(later, name="mine", dimension=2).embed([""])).shape == (1, 2)


async def test_unusable_vectors_are_a_model_error() -> None:
    def broken(texts: list[str]) -> list[list[float]]:
        raise ValueError("bad")

    for function, said in (
        (broken, "ValueError: bad"),
        (lambda texts: [[1.0, 0.0]], "1 vectors for 2"),
        (lambda texts: [[1.0]] * 2, "shape"),
    ):
        with pytest.raises(ModelError, match=said):
            await FunctionEmbedder(function, name="mine", dimension=2).embed(["a", "b"])
