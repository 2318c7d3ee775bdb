"""Messages of MCP servers, part by part: a bad part is left out or described, the rest is used.

The client's package checks a whole message against the protocol and refuses all of it, even for one odd schema among
a hundred tools. So answers are brought into the smallest form that it accepts before it sees them. A message that is
too long or too deep to be read becomes an error for the call that waits for it. Everything here is foreign text.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import AsyncIterator, Callable
from typing import Any

from ragforge_tui.shared.formatting import size_text
from ragforge_tui.shared.sanitize import plain_text, storable, storable_value

LINE_BYTES = 8 * 1024 * 1024
"""Bytes of the longest message; two hundred times the part of an answer that a model gets."""
SCHEMA_CHARS = 16_000
"""A tool with a longer schema is left out: it would be in every request."""
_NESTED = 200
"""Brackets that a message may hold without being tried: the client's parser goes no deeper."""
_ENDS = 1_000
"""Bytes at both ends of a message in which its number is searched for."""
_NUMBER = re.compile(rb'"id"\s*:\s*(\d{1,18}|"[\w-]{1,64}")')


class Lines:
    """Lines of a server's output, each whole, at most `LINE_BYTES` long, and read in time linear to its length.

    It takes the place of the class that decodes the output in pieces.
    """

    def __init__(self, transport_stream: Any, **_: object) -> None:
        self._source = transport_stream

    async def __aiter__(self) -> AsyncIterator[str]:
        held, is_cut = bytearray(), False
        async for piece in self._source:
            *ended, rest = piece.split(b"\n")
            for end in ended:
                yield f"{_line(held + end, is_cut)}\n"
                held, is_cut = bytearray(), False
            held += rest
            if len(held) > LINE_BYTES:
                is_cut = True
                del held[_ENDS:-_ENDS]


def _line(data: bytearray, is_cut: bool) -> str:
    """Return a message as text; for one that cannot be read an error with its number."""
    why = f"the answer is longer than {size_text(LINE_BYTES)}" if is_cut or len(data) > LINE_BYTES else ""
    if not why and data.count(b"[") + data.count(b"{") > _NESTED and not _is_readable(data):
        why = "the answer cannot be read: it is nested too deeply, or no JSON"
    number = _NUMBER.search(data[:_ENDS]) or _NUMBER.search(data[-_ENDS:])
    if why and number:
        error = json.dumps({"code": -32700, "message": why})
        return f'{{"jsonrpc":"2.0","id":{number[1].decode()},"error":{error}}}'
    return "" if why else data.decode("utf-8", "replace")


def _is_readable(data: bytearray) -> bool:
    from pydantic_core import from_json

    try:
        from_json(data)
    except ValueError:
        return False
    return True


class AcceptedAnswers:
    """Stream of a server's messages with their parts brought into form.

    Args:
        left_out: Called with the names of the tools that a list has and that cannot be used.
    """

    def __init__(self, stream: Any, left_out: Callable[[list[str]], None]) -> None:
        self._stream = stream
        self._left_out = left_out

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    async def __aenter__(self) -> AcceptedAnswers:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *raised: Any) -> Any:
        return await self._stream.__aexit__(*raised)

    def __aiter__(self) -> AcceptedAnswers:
        return self

    async def __anext__(self) -> Any:
        return self._accepted(await self._stream.__anext__())

    async def receive(self) -> Any:
        """Return the next message."""
        return self._accepted(await self._stream.receive())

    def _accepted(self, item: Any) -> Any:
        message = getattr(item, "message", None)
        result = getattr(message, "result", None)
        if not isinstance(result, dict) or result.get("resultType", "complete") != "complete":
            return item
        if "tools" in result:
            result, odd = accepted_tools(result)
            self._left_out(odd)
        elif "content" in result or "structuredContent" in result:
            result = accepted_answer(result)
        else:
            return item
        assert message is not None
        return dataclasses.replace(item, message=message.model_copy(update={"result": result}))


def accepted_tools(result: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return the usable fields of a list of tools, and the names of unusable ones."""
    tools: list[dict[str, Any]] = []
    odd: list[str] = []
    listed = result["tools"]
    for tool in listed if isinstance(listed, list) else ():
        name = tool.get("name") if isinstance(tool, dict) else None
        schema = object_schema(tool.get("inputSchema")) if isinstance(tool, dict) else None
        if not isinstance(name, str) or not name or schema is None:
            odd.append(plain_text(storable(name)) if isinstance(name, str) and name else "one without a name")
            continue
        description, notes = tool.get("description"), tool.get("annotations")
        reads = isinstance(notes, dict) and notes.get("readOnlyHint") is True
        tools.append(
            {
                "name": name,
                "description": description if isinstance(description, str) else "",
                "inputSchema": schema,
                "annotations": {"readOnlyHint": reads},
            }
        )
    cursor = result.get("nextCursor")
    others = {key: value for key, value in result.items() if key not in ("tools", "nextCursor", "_meta")}
    more = {"nextCursor": cursor} if isinstance(cursor, str) and cursor else {}
    return {**others, "tools": tools, **more}, odd


def object_schema(given: Any) -> dict[str, Any] | None:
    """Return the schema of a tool's arguments, None if it describes no object or is too long.

    What is absent or null counts as nothing.
    """
    schema = storable_value({} if given is None else given)
    if not isinstance(schema, dict):
        return None
    schema = {key: value for key, value in schema.items() if value is not None}
    kinds, properties = schema.get("type", "object"), schema.get("properties", {})
    if kinds != "object" and not (isinstance(kinds, list) and "object" in kinds):
        return None
    if not isinstance(properties, dict) or not all(isinstance(one, dict | bool) for one in properties.values()):
        return None
    required = schema.pop("required", [])
    names = [name for name in required if isinstance(name, str)] if isinstance(required, list) else []
    schema |= {"type": "object", "properties": properties} | ({"required": names} if names else {})
    return schema if len(json.dumps(schema, ensure_ascii=False)) <= SCHEMA_CHARS else None


def accepted_answer(result: dict[str, Any]) -> dict[str, Any]:
    """Return the answer to a call as blocks of text; other content is described."""
    blocks = result.get("content")
    texts = [_block_text(block) for block in blocks] if isinstance(blocks, list) else []
    if not any(texts) and (data := result.get("structuredContent")) is not None:
        texts = [json.dumps(data, ensure_ascii=False, indent=1)]
    content = [{"type": "text", "text": text} for text in texts if text]
    others = {key: value for key, value in result.items() if key not in ("structuredContent", "_meta")}
    return {**others, "content": content, "isError": result.get("isError") is True}


def _block_text(block: Any) -> str:
    if not isinstance(block, dict):
        return str(block)
    kind, text, data = (block.get(key) for key in ("type", "text", "data"))
    inner = block.get("resource")
    resource = inner if isinstance(inner, dict) else block
    if isinstance(text, str):
        return text
    if isinstance(data, str):
        return f"[{kind}: {block.get('mimeType')}, {size_text(len(data) * 3 // 4)}; it cannot be shown to you]"
    if kind == "resource_link":
        return f"[resource {block.get('name')}: {block.get('uri')}]"
    if isinstance(resource.get("text"), str):
        return str(resource["text"])
    if kind == "resource":
        return f"[resource {resource.get('uri')}: not text]"
    return f"[content of the unknown type {kind}]"
