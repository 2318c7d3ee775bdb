"""`graph journal`: what waits for graphs that were away, and writing it into the one that is open."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ragforge_tui.cli.common import GraphOption, JsonFlag, run_async, settings
from ragforge_tui.cli.graph_use import target_of, use_graph
from ragforge_tui.cli.output import local_time, say, say_json, table
from ragforge_tui.config import Loaded
from ragforge_tui.errors import NotFoundError, RagforgeError

if TYPE_CHECKING:
    from ragforge_tui.graph import Graph, JournalInfo

SHORT_KEY = 8

journal_app = typer.Typer(
    help="List what waits for graphs that were away, or write it into another one.", invoke_without_command=True
)


def journals(loaded: Loaded) -> list[JournalInfo]:
    """Return the journals that hold anything, the oldest first."""
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
    """List the journals: for which graph, how many records, since when."""
    if ctx.invoked_subcommand is not None:
        return
    found = journals(settings(ctx))
    if json:
        say_json(found)
    elif found:
        show_journals(found)
        say("Each is written in when its graph is reached again, or with `ragforge-chat graph journal write JOURNAL`.")
    else:
        say("No journal holds anything.")


@journal_app.command()
def write(
    ctx: typer.Context,
    journal: Annotated[str, typer.Argument(metavar="JOURNAL", help="As listed, or its beginning.")],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    graph: GraphOption = None,
) -> None:
    """Write a journal into the graph in use, also when it belongs to another one."""
    loaded = settings(ctx, graph=graph)
    info = _chosen(journals(loaded), journal)
    target = target_of(loaded)
    refused = f" and {info.refused} that were refused" if info.refused else ""
    question = f"Write {info.records} records{refused} for {info.name} into {target.name}?"
    if not yes and not _agreed(question):
        say("Nothing was written.")
        return

    async def move(opened: Graph) -> str:
        from ragforge_tui.graph import Store, move_journal

        moved = await move_journal(_root(loaded), info.key, Store(opened), workspace=loaded.workspace)
        parts = [f"{moved.written} records were written into {target.name}"]
        if moved.conversations:
            parts.append(f"{moved.conversations} conversations were made for turns of the other graph")
        if moved.refused:
            parts.append(f"{moved.refused} records were refused and kept")
        if moved.busy:
            parts.append(f"{moved.busy} files of a running chat were left alone")
        return "; ".join(parts) + "."

    say(run_async(use_graph(loaded, target, move)))


def _agreed(question: str) -> bool:
    if not sys.stdin.isatty():
        raise RagforgeError(question, kept="Nothing was written.", todo="Repeat it with --yes.", kind="confirm")
    return typer.confirm(question)


def _chosen(found: list[JournalInfo], wanted: str) -> JournalInfo:
    matching = [info for info in found if info.key == wanted] or [info for info in found if info.key.startswith(wanted)]
    if len(matching) != 1:
        what = "Several journals begin" if matching else "No journal begins"
        raise NotFoundError(f"{what} with {wanted!r}.", todo="`ragforge-chat graph journal` lists them.")
    return matching[0]


def _short(info: JournalInfo) -> str:
    return info.key[: SHORT_KEY + 3] if info.key.startswith("at-") else info.key[:SHORT_KEY]


def _root(loaded: Loaded) -> Path:
    return Path(loaded.paths.state, "journal")
