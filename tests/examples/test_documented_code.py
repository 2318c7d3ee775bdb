"""The code in the manual of the Python API and in its docstrings runs, with the offline assistant and one server."""

from __future__ import annotations

import ast
import asyncio
import inspect
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from types import CodeType
from typing import Any

import pytest

import ragforge_tui
from ragforge_tui import ConversationAgent
from ragforge_tui.graph import GraphTarget
from ragforge_tui.settings.schema import Paths
from tests.conftest import EMBEDDED
from tests.support.fake_embedder import FakeEmbedder

MANUAL = Path(__file__).parents[2] / "docs" / "python-api.md"
_BLOCK = re.compile(r"^( *)```python\n(.*?)^\1```", re.M | re.S)


@pytest.fixture
def graph_target(embedded_paths: Paths) -> GraphTarget:
    """The embedded graph alone: examples on both backends are in `test_examples`."""
    return EMBEDDED


def blocks_of(text: str) -> list[str]:
    """The blocks of Python code in a text."""
    return [textwrap.dedent(match[2]) for match in _BLOCK.finditer(text)]


async def run(code: str, origin: str, names: dict[str, Any]) -> None:
    """Run code as an asynchronous REPL would, with await at its top level."""
    compiled: CodeType = compile(code, origin, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    result = eval(compiled, names)
    if inspect.isawaitable(result):
        await result


def documented() -> Iterator[tuple[str, str]]:
    """Yield name and docstring of all public objects and their public methods."""
    for name in ragforge_tui.__dir__():
        value = getattr(ragforge_tui, name)
        if not getattr(value, "__module__", "").startswith("ragforge_tui"):
            continue
        yield name, inspect.getdoc(value) or ""
        if inspect.isclass(value):
            for method, function in inspect.getmembers(value, inspect.isfunction):
                if not method.startswith("_"):
                    yield f"{name}.{method}", inspect.getdoc(function) or ""


@pytest.mark.slow
async def test_the_manual_runs(program: Path) -> None:
    names: dict[str, Any] = {"__name__": "manual"}
    blocks = blocks_of(MANUAL.read_text("utf-8"))
    assert len(blocks) >= 8
    for number, code in enumerate(blocks, 1):
        await run(code, f"{MANUAL.name}, block {number}", names)


@pytest.mark.slow
async def test_the_examples_in_docstrings_run(program: Path) -> None:
    examples = {name: blocks_of(text) for name, text in documented()}
    run_examples = {name: blocks for name, blocks in examples.items() if blocks}
    assert {"ConversationAgent", "tool", "FunctionModel", "SyncConversationAgent"} <= set(run_examples)
    async with ConversationAgent(embedder=FakeEmbedder()) as agent:
        for name, blocks in run_examples.items():
            conversation = await agent.create_conversation("Examples")
            await conversation.send_message("Where is `greet` defined?")
            for code in blocks:
                names = {"__name__": "example", "agent": agent, "conversation": conversation}
                if name.startswith("Sync"):
                    await asyncio.to_thread(exec, compile(code, name, "exec"), names)
                else:
                    await run(code, name, names)
