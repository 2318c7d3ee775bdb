"""One connection to an MCP server that changes its tools, or answers with more than can be read."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ragforge_tui.settings.schema import McpServer
from ragforge_tui.shared.errors import ToolError
from ragforge_tui.tools.mcp.connection import Connection
from ragforge_tui.tools.mcp.tool import tools_of

SERVER = """
import json, sys

tools = ["change", "gone", "deep"]
for line in sys.stdin:
    asked = json.loads(line)
    number, method = asked.get("id"), asked.get("method")
    result, error, more = None, None, None
    if method == "initialize":
        version = asked["params"]["protocolVersion"]
        result = {"protocolVersion": version, "capabilities": {"tools": {"listChanged": True}}}
        result["serverInfo"] = {"name": "s", "version": "1"}
    elif method == "tools/list":
        result = {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in tools]}
    elif method == "tools/call" and asked["params"]["name"] == "deep":
        print('{"jsonrpc":"2.0","id":%d,"result":%s}' % (number, "[" * 5000 + "]" * 5000), flush=True)
        continue
    elif method == "tools/call":
        tools = ["change", "fresh"]
        result = {"content": [{"type": "text", "text": "changed"}]}
        more = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
    elif number is not None:
        error = {"code": -32601, "message": "unknown"}
    if number is not None:
        answer = {"error": error} if error else {"result": result}
        print(json.dumps({"jsonrpc": "2.0", "id": number, **answer}), flush=True)
    if more:
        print(json.dumps(more), flush=True)
"""


@pytest.mark.slow
async def test_changed_tools_are_known_after_the_call_and_a_deep_answer_ends_it(tmp_path: Path) -> None:
    file = tmp_path / "server.py"
    file.write_text(SERVER)
    settings = McpServer(command=sys.executable, args=[str(file)])
    connection = Connection("s", settings, "own", tmp_path, timeout=300, changed=lambda: None)
    connection.start()
    try:
        await connection.settled()
        assert [tool.name for tool in connection.tools] == ["change", "gone", "deep"]
        with pytest.raises(ToolError, match="nested too deeply"):
            await connection.call("deep", {})
        await connection.call("change", {})
        assert [kind.info.name for kind in tools_of([connection])[0]] == ["s__change", "s__fresh"]
    finally:
        await connection.stop()
