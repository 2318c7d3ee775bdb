"""Text that means harm, in every record that an engine gives out.

`HostileEngine` is the scripted engine as seen through somebody who could write into everything: what models, files,
providers, other programs and people say carries `HOSTILE` at its end.
"""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from ragforge_tui.shared.events import Event
from ragforge_tui.shared.wire import Request
from tests.support.fake_engine import FakeEngine

R = TypeVar("R")
MARKUP = "[red]x[/]"
HOSTILE = (
    f" {MARKUP} [/oops] \x1b[31mred\x1b[5;5H\x1b[2J\x1b]0;owned\x07\x1b]8;;http://evil.example\x1b\\l\x1b]8;;\x1b\\"
    "\x1b]52;c;b3duZWQ=\x07\x1bPqowned\x1b\\\x1b_owned\x1b\\\x9b2J\x9d0;owned\x9c\u202edesrever\u202c\u2066\u200b\x00"
    "z\u0301\u0302\u0303\u0304\u0305\u0306 👩‍👩‍👧‍👦🏳️‍🌈👍🏽 日本 \r\x08\x7f"
)
_KEPT = frozenset(
    {"uuid", "persona", "origin", "mode", "level", "kind", "relation", "digest", "workspace", "root", "key", "phase"}
)
"""What the program itself makes, or what names a thing: it would be another thing with another name."""
_JSON = ("arguments", "result")


def _spoilt(value: Any, name: str = "") -> Any:
    if isinstance(value, msgspec.Struct):
        texts = {
            field.encode_name: _spoilt(getattr(value, field.name), field.name)
            for field in msgspec.structs.fields(value)
            if not (field.type is not str and isinstance(getattr(value, field.name), str))
            or field.name in ("error", "key_color")
        }
        return msgspec.structs.replace(value, **texts)
    if isinstance(value, list | tuple):
        return type(value)(_spoilt(item, name) for item in value)
    if isinstance(value, dict):
        return {key: _spoilt(item, str(key)) for key, item in value.items()}
    if not isinstance(value, str) or not value or name in _KEPT or name.endswith(("_id", "_uuid", "_ids", "_of")):
        return value
    if name in _JSON and value.startswith("{"):
        return json.dumps(_spoilt(json.loads(value)))
    if name == "diff":
        return value.replace("\n", f"{HOSTILE.replace(chr(13), '')}\n")
    return value + HOSTILE


class HostileEngine:
    """Gives out what another engine says, spoilt; see the module."""

    def __init__(self, engine: FakeEngine) -> None:
        self._engine = engine

    async def request(self, request: Request[R]) -> R:
        """Ask the engine itself."""
        spoilt: R = _spoilt(await self._engine.request(request))
        return spoilt

    async def events(self) -> AsyncIterator[Event]:
        """What it says."""
        async for event in self._engine.events():
            yield _spoilt(event)

    async def close(self) -> None:
        """End it."""
        await self._engine.close()


def main() -> int:
    """Show a chat with it in this terminal."""
    from ragforge_tui.tui.app import ChatOptions, run_chat
    from tests.support.calls_scene import calls_engine

    async def connect() -> HostileEngine:
        await asyncio.sleep(0)
        return HostileEngine(calls_engine())

    folder = Path(os.environ.get("SCENE_STATE") or tempfile.mkdtemp())
    return run_chat(connect, ChatOptions(continue_last=True, state_dir=folder, workspace="/w", version="0.1.0"))


if __name__ == "__main__":
    raise SystemExit(main())
