"""What MCP servers send: a bad part is left out or told in words, the rest is used, and nothing is unbounded."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from mcp.types import CallToolResult, ListToolsResult

from ragforge_tui.tools.mcp import received
from ragforge_tui.tools.mcp.received import Lines, accepted_answer, accepted_tools, object_schema

GOOD = {"name": "good", "inputSchema": {"type": "object", "properties": {"x": {"type": "string"}}, "required": ["x"]}}


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string"},
        {"type": ["string", "null"]},
        {"type": 7},
        {"type": "object", "properties": []},
        {"type": "object", "properties": {"a": "text"}},
        {"type": "object", "properties": {"a": None}},
        [],
        "object",
        {"type": "object", "description": "x" * 20_000},
    ],
)
def test_one_bad_schema_leaves_out_its_tool_alone(schema: Any) -> None:
    result, left_out = accepted_tools({"tools": [{"name": "bad", "inputSchema": schema}, GOOD]})
    assert left_out == ["bad"]
    (tool,) = ListToolsResult.model_validate(result, by_name=False).tools
    assert (tool.name, tool.input_schema) == ("good", GOOD["inputSchema"])


@pytest.mark.parametrize(
    "schema",
    [
        None,
        {},
        {"type": None},
        {"type": "object"},
        {"type": ["object", "null"]},
        {"type": "object", "properties": None},
        {"properties": {}, "required": None},
        {"type": "object", "required": "x"},
    ],
)
def test_what_is_absent_or_null_counts_as_nothing(schema: Any) -> None:
    assert object_schema(schema) == {"type": "object", "properties": {}}


@pytest.mark.parametrize("tool", [None, "bad", 5, [], {}, {"name": 5}, {"name": "", "inputSchema": {}}])
def test_what_is_no_tool_is_counted_without_a_name(tool: Any) -> None:
    result, left_out = accepted_tools({"tools": [tool, GOOD], "nextCursor": 5, "_meta": "x"})
    assert [one["name"] for one in result["tools"]] == ["good"] and left_out == ["one without a name"]
    ListToolsResult.model_validate(result, by_name=False)


@pytest.mark.parametrize("extra", [{"description": 5}, {"annotations": "x"}, {"outputSchema": 1}, {"icons": [1]}])
def test_odd_extras_of_a_tool_do_not_count(extra: dict[str, Any]) -> None:
    result, left_out = accepted_tools({"tools": [GOOD | extra]})
    assert not left_out and len(ListToolsResult.model_validate(result, by_name=False).tools) == 1


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ({"content": [{"type": "video", "uri": "x"}, {"type": "text", "text": "ok"}]}, "unknown type video]\nok"),
        ({"content": [{"type": "text", "text": 5}, 7, None]}, "[content of the unknown type text]\n7\nNone"),
        ({"content": [{"type": "image", "data": "aGVsbG8="}]}, "[image: None, 6 B; it cannot be shown to you]"),
        ({"content": [{"type": "resource", "resource": {"uri": "a:b", "text": "words"}}]}, "words"),
        ({"content": [{"type": "resource", "resource": {"uri": "a:b", "blob": "x"}}]}, "[resource a:b: not text]"),
        ({"content": [{"type": "resource_link", "name": "n", "uri": "a:b"}]}, "[resource n: a:b]"),
        ({"content": "words", "structuredContent": [1]}, "[\n 1\n]"),
        ({"content": None, "isError": "yes"}, ""),
    ],
)
def test_an_answer_is_text_whatever_it_holds(answer: dict[str, Any], text: str) -> None:
    result = CallToolResult.model_validate(accepted_answer(answer), by_name=False)
    assert "\n".join(block.text for block in result.content if block.type == "text").endswith(text)


async def lines_of(data: bytes, size: int = 64) -> list[str]:
    async def pieces() -> AsyncIterator[bytes]:
        for at in range(0, len(data), size):
            yield data[at : at + size]

    return "".join([text async for text in Lines(pieces())]).split("\n")[:-1]


async def test_lines_are_whole_whatever_the_pieces() -> None:
    message = json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"text": "ä{[" * 90}}, ensure_ascii=False)
    data = f"Starting up …\n\n{message}\n{message}\nrest".encode() + b"\xff"
    for size in (1, 7, 1_000):
        assert await lines_of(data, size) == ["Starting up …", "", message, message]


@pytest.mark.parametrize(
    "message",
    [
        '{"jsonrpc": "2.0", "id": 7, "result": "' + "x" * 50_000 + '"}',
        '{"result": "' + "x" * 50_000 + '", "jsonrpc": "2.0", "id": 7}',
        '{"jsonrpc":"2.0","id":7,"result":' + '{"a":' * 900 + "1" + "}" * 901,
        '{"jsonrpc":"2.0","id":7,"result":' + "[" * 900,
    ],
)
async def test_a_message_that_cannot_be_read_is_an_error_for_its_call(
    message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(received, "LINE_BYTES", 20_000)
    bad, good = await lines_of(f'{message}\n{{"id": 8}}\n'.encode(), 4_096)
    assert json.loads(bad)["id"] == 7 and json.loads(bad)["error"]["message"].startswith("the answer")
    assert good == '{"id": 8}'


async def test_noise_without_end_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(received, "LINE_BYTES", 20_000)
    assert await lines_of(b"noise " * 20_000 + b'\n{"id": 8}\n', 4_096) == ["", '{"id": 8}']
