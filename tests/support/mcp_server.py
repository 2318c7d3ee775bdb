"""A real MCP server for tests, made with the protocol's own package: stdio, or streamable HTTP at a port."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from mcp.server import MCPServer
from mcp.types import ImageContent, ToolAnnotations

server = MCPServer("probe")


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def add(first: int, second: int) -> int:
    """Add two numbers."""
    return first + second


@server.tool(name="environment of")
def environment(name: str) -> str:
    """Return a variable of the server's environment."""
    return os.environ.get(name, "not set")


@server.tool()
def noise() -> str:
    """Return what a terminal or a log must not see."""
    return "\x1b[31mred\x1b[0m sk-" + "a1B2" * 8 + "\n" + "long line\n" * 20_000


@server.tool()
def picture() -> ImageContent:
    """Return an image."""
    return ImageContent(type="image", data="aGVsbG8=", mime_type="image/png")


@server.tool()
def die(file: str) -> str:
    """End the server, and note that it did."""
    with Path(file).open("a") as deaths:
        deaths.write("x")
    print("the disk is on fire", file=sys.stderr, flush=True)
    os._exit(3)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        server.run("streamable-http", port=int(sys.argv[1]))
    else:
        server.run()
