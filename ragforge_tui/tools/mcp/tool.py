"""Tools of MCP servers as tools of the agent: their names, their limits, and their answers in words.

Descriptions, schemas and answers are foreign text; what a server says of its tools decides nothing but whether plan
mode has them, and every tool is asked about.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar

from ragforge_tui.shared.sanitize import plain_text, storable, visible
from ragforge_tui.shared.tool_calls import ToolInfo
from ragforge_tui.tools.base import ApprovalNeed, PassedArguments, Plan, Tool, ToolOutcome, failed

if TYPE_CHECKING:
    from mcp.types import CallToolResult
    from mcp.types import Tool as ListedTool

    from ragforge_tui.tools.mcp.connection import Connection

NAME_CHARS = 64
"""Characters that providers allow in the name of a tool."""
MOST_TOOLS = 64
"""Tools of all servers that models are offered."""
DESCRIPTION_CHARS = 2_000
ANSWER_CHARS = 2_000_000
"""What is kept of an answer before the tools' own limit applies."""

_NOT_ALLOWED = re.compile(r"[^A-Za-z0-9_-]+")


class McpTool(Tool):
    """Base class of the tools of MCP servers.

    Attributes:
        connection: The tool's server.
        listed_name: The name that the server knows.
        digest: Of its description and schema, so that a permission does not cover another tool of that name.
    """

    arguments = PassedArguments
    connection: ClassVar[Connection]
    listed_name: ClassVar[str]
    digest: ClassVar[str]

    async def prepare(self, arguments: PassedArguments) -> Plan:
        """See `Tool.prepare`; every call needs an approval."""
        server = self.connection
        need = ApprovalNeed(
            kind="secret",  # its detail is shown as text, not as a command
            question=f"Call {visible(self.listed_name)} of the MCP server {visible(server.name)}?",
            detail=visible(json.dumps(arguments.values, indent=2, ensure_ascii=False)),
            session_scope=f"every call of {self.name}",
            session_key=f"mcp:{self.name}:{self.digest}",
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
        left_out += [f"{connection.name}: {name}" for name in connection.left_out]
        for listed in connection.tools:
            if len(kinds) >= MOST_TOOLS:
                left_out.append(f"{connection.name}: {listed.name}")
                continue
            name = valid_name(connection.name, listed.name, names)
            names.add(name)
            kinds.append(_tool(name, connection, listed))
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
    """Return an answer as text."""
    text = "\n".join(block.text for block in result.content if block.type == "text")
    return storable(plain_text(text[:ANSWER_CHARS]))


def _tool(name: str, connection: Connection, listed: ListedTool) -> type[Tool]:
    schema = listed.input_schema
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
        "digest": hashlib.sha256(json.dumps([listed.description, schema]).encode()).hexdigest()[:16],
    }
    return type(name, (McpTool,), made)
