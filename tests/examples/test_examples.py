"""Each example runs with the offline assistant on both backends and prints what it is there to show."""

from __future__ import annotations

import asyncio
import importlib
from pathlib import Path

import pytest

from ragforge_tui.graph import GraphTarget

EXAMPLES = {
    "quickstart": ["greeting.py", "Called grep_files", "Turn 3 of 'Debug authentication'"],
    "own_tools": ["stock succeeded", "stock failed", "KeyError: 'screw'", "Ordered 2 pieces, express."],
    "own_model": ["Auth: We split authentication into a service and its store.", "Auth\n"],
    "history_and_context": ["3 turns, the first asks: Where is `greet` defined?", "Found turn", "read greeting.py in"],
    "branches_and_exports": [
        "Alternative approach has 2 turns",
        "Imported again: False",
        "['.json'",
    ],
    "plain_script": ["[glob_files]", "greeting.py", "Summary: "],
}


@pytest.mark.parametrize("name", EXAMPLES)
async def test_an_example_runs(name: str, program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main = importlib.import_module(f"examples.{name}").main
    if asyncio.iscoroutinefunction(main):
        await main()
    else:
        await asyncio.to_thread(main)
    printed = capsys.readouterr().out
    assert [text for text in EXAMPLES[name] if text not in printed] == [], printed


async def test_a_driver_of_the_program_is_used_and_stays_open(
    program: Path, graph_target: GraphTarget, capsys: pytest.CaptureFixture[str]
) -> None:
    if graph_target.embedded:
        pytest.skip("a driver reaches a Neo4j")
    await importlib.import_module("examples.own_driver").main()
    assert "Messages in the graph: 3" in capsys.readouterr().out


def test_every_example_is_run_and_listed() -> None:
    folder = Path(__file__).parents[2] / "examples"
    names = {path.stem for path in folder.glob("*.py")} - {"__init__"}
    assert names == {*EXAMPLES, "own_driver", "session"}
    listed = (folder / "README.md").read_text("utf-8")
    assert [name for name in names if f"`{name}.py`" not in listed] == []
