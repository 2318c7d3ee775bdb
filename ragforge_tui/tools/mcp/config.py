"""Configured MCP servers: those of the project's `.mcp.json`, and references to environment variables.

Values of env, headers, args and url may refer to variables as ``${NAME}`` or ``${NAME:-default}``, so that no secret
has to be in a file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from ragforge_tui.settings.schema import McpServer
from ragforge_tui.shared.errors import ConfigError
from ragforge_tui.shared.files import read_regular
from ragforge_tui.shared.json_text import decode_json
from ragforge_tui.shared.keys_in_use import hide, usable_key

PROJECT_FILE = ".mcp.json"
MAX_BYTES = 256 * 1024

_REFERENCE = re.compile(r"\$\{(\w+)(?::-([^}]*))?\}")
_KNOWN = frozenset(McpServer.__struct_fields__)


def project_text(workspace: Path) -> str:
    """Return the text of the project's file; empty without one. A link out of the workspace is not followed."""
    file = workspace / PROJECT_FILE
    if not file.is_file() or not file.resolve().is_relative_to(workspace.resolve()):
        return ""
    return read_regular(file, MAX_BYTES, cut=True).decode("utf-8", "replace")


def project_servers(text: str) -> dict[str, McpServer]:
    """Return the servers of a `.mcp.json`; keys that only other programs know are ignored.

    Raises:
        ConfigError: The text is no such file.
    """
    try:
        data: Any = decode_json(text)
        listed = data["mcpServers"]
        known = {name: {key: entry[key] for key in entry if key in _KNOWN} for name, entry in listed.items()}
        return msgspec.convert(known, dict[str, McpServer])
    except (msgspec.MsgspecError, KeyError, TypeError, AttributeError) as error:
        raise ConfigError(f"{PROJECT_FILE} is not used: it is no list of MCP servers ({error}).") from error


def header_values(headers: Mapping[str, str], env: Mapping[str, str]) -> dict[str, str]:
    """Return headers with their references replaced, trimmed; their values are masked from now on.

    Raises:
        ConfigError: A variable without a default is not set.
        ModelError: No header can hold a value.
    """
    values = {
        name: usable_key(expanded(value, env, usable_key), f"the header {name}") for name, value in headers.items()
    }
    for word in " ".join(values.values()).split():
        hide(word)
    return values


def expanded(text: str, env: Mapping[str, str], read: Callable[[str, str], str] = lambda value, _: value) -> str:
    """Return a value with its references to variables replaced.

    Args:
        read: Returns what is used of a variable's value; called with the value and the variable's name.

    Raises:
        ConfigError: A variable without a default is not set.
    """

    def value(match: re.Match[str]) -> str:
        found = env.get(match[1], match[2])
        if found is None:
            raise ConfigError(f"The variable {match[1]} is not set.", todo="Set it, then restart the server.")
        return read(found, match[1])

    return _REFERENCE.sub(value, text)
