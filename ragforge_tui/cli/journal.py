"""Command `graph journal`: records for unreachable graphs, and writing them to the current graph."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ragforge_tui.cli.common import GraphOption, JsonFlag, run_async, settings
from ragforge_tui.cli.graph_use import target_of, use_graph
from ragforge_tui.cli.output import local_time, print_json, print_text, table
from ragforge_tui.settings.schema import Loaded
from ragforge_tui.shared.errors import NotFoundError, RagforgeError

if TYPE_CHECKING:
    from ragforge_tui.graph import Graph, JournalInfo

SHORT_KEY = 8

journal_app = typer.Typer(
    help="List the records for unreachable graphs, or write them into another graph.", invoke_without_command=True
)


def journals(loaded: Loaded) -> list[JournalInfo]:
    """Return the journals that hold records, oldest first."""
    from ragforge_tui.graph import JournalFolders

    return JournalFolders(_root(loaded)).waiting()


def show_journals(found: list[JournalInfo]) -> None:
    """Print journals as a table."""
    head = ["JOURNAL", "RECORDS", "REFUSED", "SINCE", "GRAPH"]
    rows = [
        [
            _short(info),
            str(info.records),
            str(info.refused),
            local_time(info.since) if info.since else "",
            info.name,
        ]
        for info in found
    ]
    table(rows, head)


@journal_app.callback()
def list_journals(ctx: typer.Context, json: JsonFlag = False) -> None:
    """List the journals with their graph, number of records and age."""
    if ctx.invoked_subcommand is not None:
        return
    found = journals(settings(ctx))
    if json:
        print_json(found)
    elif found:
        show_journals(found)
        print_text("Each is written once its graph is reachable, or with `ragforge-chat graph journal write JOURNAL`.")
    else:
        print_text("The journals are empty.")


@journal_app.command()
def write(
    ctx: typer.Context,
    journal: Annotated[str, typer.Argument(metavar="JOURNAL", help="Name of the journal, or its start.")],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    graph: GraphOption = None,
) -> None:
    """Write a journal into the current graph, even if it belongs to another one."""
    loaded = settings(ctx, graph=graph)
    info = _chosen(journals(loaded), journal)
    target = target_of(loaded)
    refused = f" and {info.refused} refused ones" if info.refused else ""
    question = f"Write {info.records} records{refused} for {info.name} into {target.name}?"
    if not yes and not _agreed(question):
        print_text("Nothing was written.")
        return

    async def move(opened: Graph) -> str:
        from ragforge_tui.graph import Store, move_journal

        moved = await move_journal(_root(loaded), info.key, Store(opened), workspace=loaded.workspace)
        parts = [f"{moved.written} records written into {target.name}"]
        if moved.conversations:
            parts.append(f"{moved.conversations} conversations created for turns of the other graph")
        if moved.refused:
            parts.append(f"{moved.refused} records refused and kept in the journal")
        if moved.busy:
            parts.append(f"{moved.busy} files of a running chat skipped")
        return "; ".join(parts) + "."

    print_text(run_async(use_graph(loaded, target, move)))


def _agreed(question: str) -> bool:
    if not sys.stdin.isatty():
        raise RagforgeError(question, kept="Nothing was written.", todo="Add --yes to confirm.", kind="confirm")
    return typer.confirm(question)


def _chosen(infos: list[JournalInfo], key: str) -> JournalInfo:
    matching = [info for info in infos if info.key == key] or [info for info in infos if info.key.startswith(key)]
    if len(matching) != 1:
        what = "Several journals start" if matching else "No journal starts"
        raise NotFoundError(f"{what} with {key!r}.", todo="`ragforge-chat graph journal` lists them.")
    return matching[0]


def _short(info: JournalInfo) -> str:
    return info.key[: SHORT_KEY + 3] if info.key.startswith("at-") else info.key[:SHORT_KEY]


def _root(loaded: Loaded) -> Path:
    return Path(loaded.paths.state, "journal")
