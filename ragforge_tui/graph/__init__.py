"""The graph: the only room that imports the neo4j driver and contains Cypher.

Names are loaded when first used, so that the embedded server, which lives in this room too,
runs without the driver, and the command line can name the room without paying for it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from neo4j import AsyncDriver as AsyncDriver

    from ragforge_tui.graph.connection import Graph as Graph
    from ragforge_tui.graph.dialect import Dialect as Dialect
    from ragforge_tui.graph.embedded.attach import server_status as server_status
    from ragforge_tui.graph.embedded.attach import stop_server as stop_server
    from ragforge_tui.graph.journal import Journal as Journal
    from ragforge_tui.graph.journal import move_journal as move_journal
    from ragforge_tui.graph.journal_files import JournalFolders as JournalFolders
    from ragforge_tui.graph.journal_files import JournalInfo as JournalInfo
    from ragforge_tui.graph.own_driver import driver_target as driver_target
    from ragforge_tui.graph.repositories import Store as Store
    from ragforge_tui.graph.target import GraphTarget as GraphTarget
    from ragforge_tui.graph.target import resolve_target as resolve_target
    from ragforge_tui.graph.writer import writer_alive as writer_alive
    from ragforge_tui.graph.writer import writer_id as writer_id

_EXPORTS = {
    "AsyncDriver": "connection",
    "Dialect": "dialect",
    "Graph": "connection",
    "GraphTarget": "target",
    "Journal": "journal",
    "JournalFolders": "journal_files",
    "JournalInfo": "journal_files",
    "Store": "repositories",
    "driver_target": "own_driver",
    "move_journal": "journal",
    "resolve_target": "target",
    "server_status": "embedded.attach",
    "stop_server": "embedded.attach",
    "writer_alive": "writer",
    "writer_id": "writer",
}


def __getattr__(name: str) -> Any:
    if name not in _EXPORTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_EXPORTS[name]}"), name)


def __dir__() -> list[str]:
    return sorted(_EXPORTS)
