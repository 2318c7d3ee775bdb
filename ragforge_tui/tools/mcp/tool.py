"""Tools of MCP servers as tools of the agent: their names, their limits, and their answers in words.

Descriptions, schemas and answers are foreign text; what a server says of its tools decides nothing but whether plan
mode has them, and every tool is asked about.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from ragforge_tui.shared.formatting import size_text
from ragforge_tui.shared.sanitize import plain_text, storable, storable_value, visible
from ragforge_tui.shared.tool_calls import ToolInfo
from ragforge_tui.tools.base import ApprovalNeed, PassedArguments, Plan, Tool, ToolOutcome, failed

if TYPE_CHECKING:
    from mcp.types import CallToolResult, ContentBlock
    from mcp.types import Tool as ListedTool

    from ragforge_tui.tools.mcp.connection import Connection

NAME_CHARS = 64
"""Characters that providers allow in the name of a tool."""
MOST_TOOLS = 64
"""Tools of all servers that models are offered."""
DESCRIPTION_CHARS = 2_000
SCHEMA_CHARS = 16_000
"""A tool with a longer schema is left out: it would be in every request."""
ANSWER_CHARS = 2_000_000
"""What is kept of an answer before the tools' own limit applies."""

_NOT_ALLOWED = re.compile(r"[^A-Za-z0-9_-]+")


class McpTool(Tool):
    """Base class of the tools of MCP servers.

    Attributes:
        connection: The tool's server.
        listed_name: The name that the server knows.
    """

    arguments = PassedArguments
    connection: ClassVar[Connection]
    listed_name: ClassVar[str]

    async def prepare(self, arguments: PassedArguments) -> Plan:
        """See `Tool.prepare`; every call needs an approval."""
        server = self.connection
        need = ApprovalNeed(
            kind="secret",  # its detail is shown as text, not as a command
            question=f"Call {visible(self.listed_name)} of the MCP server {visible(server.name)}?",
            detail=visible(json.dumps(arguments.values, indent=2, ensure_ascii=False)),
            session_scope=f"every call of {self.name}",
            session_key=f"mcp:{self.name}",
        )
        return Plan(run=lambda: self.run(arguments), approval=need)

    async def run(self, arguments: PassedArguments) -> ToolOutcome:
        """Call the tool; what it answers is foreign text."""
        result = await self.connection.call(self.listed_name, arguments.values)
        text = answer_text(result)
        return failed(text or f"{self.name} failed without a reason.") if result.is_error else ToolOutcome(text=text)


def tools_of(connections: Iterable[Connection]) -> tuple[list[type[Tool]], list[str]]:
    """Return the tools of all servers as the agent has them, and the names of those that are left out."""
    kinds: list[type[Tool]] = []
    left_out: list[str] = []
    names: set[str] = set()
    for connection in connections:
        for listed in connection.tools:
            schema = _schema(listed)
            if len(kinds) >= MOST_TOOLS or schema is None:
                left_out.append(f"{connection.name}: {listed.name}")
                continue
            name = valid_name(connection.name, listed.name, names)
            names.add(name)
            kinds.append(_tool(name, connection, listed, schema))
    return kinds, left_out


def valid_name(server: str, tool: str, taken: set[str]) -> str:
    """Return ``server__tool`` with the characters and the length that providers allow, different from others."""
    name = f"{_NOT_ALLOWED.sub('_', server)}__{_NOT_ALLOWED.sub('_', tool)}"[:NAME_CHARS]
    number = 2
    unique = name
    while unique in taken:
        ending = f"_{number}"
        unique = name[: NAME_CHARS - len(ending)] + ending
        number += 1
    return unique


def answer_text(result: CallToolResult) -> str:
    """Return an answer as text; images and other data are told in words."""
    text = "\n".join(filter(None, map(_block_text, result.content)))
    if not text and result.structured_content is not None:
        text = json.dumps(result.structured_content, ensure_ascii=False, indent=1)
    return storable(plain_text(text[:ANSWER_CHARS]))


def _block_text(block: ContentBlock) -> str:
    match block.type:
        case "text":
            return block.text
        case "image" | "audio":
            size = size_text(len(block.data) * 3 // 4)
            return f"[{block.type}: {block.mime_type}, {size}; it cannot be shown to you]"
        case "resource_link":
            return f"[resource {block.name}: {block.uri}]"
        case "resource":
            text = getattr(block.resource, "text", None)
            return text if isinstance(text, str) else f"[resource {block.resource.uri}: not text]"
    return ""


def _schema(listed: ListedTool) -> dict[str, Any] | None:
    schema = storable_value(listed.input_schema)
    fits = isinstance(schema, dict) and len(msgspec.json.encode(schema)) <= SCHEMA_CHARS
    return {"type": "object", "properties": {}, **schema} if fits else None


def _tool(name: str, connection: Connection, listed: ListedTool, schema: dict[str, Any]) -> type[Tool]:
    described = storable(plain_text(listed.description or ""))[:DESCRIPTION_CHARS]
    reads = listed.annotations is not None and listed.annotations.read_only_hint is True
    texts = [
        key for key, value in schema["properties"].items() if isinstance(value, dict) and value.get("type") == "string"
    ]
    made = {
        "__doc__": f"The tool {name}.",
        "info": ToolInfo(
            name=name,
            help=described.split("\n", 1)[0][:80].rstrip("."),
            access="read" if reads else "command",
            main_argument=texts[0] if texts else "",
            result="prose",
        ),
        "description": f"Tool of the MCP server {connection.name}. {described}".rstrip(),
        "passed_schema": schema,
        "connection": connection,
        "listed_name": listed.name,
    }
    return type(name, (McpTool,), made)
