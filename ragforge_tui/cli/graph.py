"""Command `graph`: location of the memory, access from other tools, Cypher queries, and journals of other graphs."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
import typer

from ragforge_tui.cli import backup
from ragforge_tui.cli.common import (
    GraphOption,
    JsonFlag,
    confirmed,
    progress_of,
    run_async,
    settings,
    target_of,
    use_graph,
)
from ragforge_tui.cli.output import local_time, print_json, print_text, table
from ragforge_tui.cli.start import FAILED
from ragforge_tui.settings.schema import Loaded
from ragforge_tui.shared.errors import ConfigError, NotFoundError, RagforgeError
from ragforge_tui.shared.formatting import counted, size_text
from ragforge_tui.shared.records import SHORT_ID

if TYPE_CHECKING:
    from ragforge_tui.graph import Graph, JournalInfo
    from ragforge_tui.graph.foreign_counts import ForeignNodes
    from ragforge_tui.graph.store.contents import LostContent


graph_app = typer.Typer(
    help="Show, stop, adopt, query, back up and restore the graph that holds the memory.", no_args_is_help=True
)
journal_app = typer.Typer(
    help="List the records for unreachable graphs, or write them into another graph.", invoke_without_command=True
)
graph_app.add_typer(journal_app, name="journal")
backup.add_to(graph_app)


@graph_app.command()
def status(ctx: typer.Context, graph: GraphOption = None, json: JsonFlag = False) -> None:
    """Show where the graph is and how to open it in other Neo4j tools; starts nothing."""
    from ragforge_tui.graph import server_status

    loaded = settings(ctx, graph=graph)
    target = target_of(loaded)
    waiting = journals(loaded)
    if target.embedded and server_status(loaded.paths) is None:
        facts: dict[str, Any] = {"name": target.name, "chosen_by": target.chosen_by, "running": False}
    else:
        try:
            facts = {**run_async(use_graph(loaded, target, _facts)), "running": True}
        except RagforgeError:
            # The journals matter most while the graph is unreachable.
            if waiting and not json:
                show_journals(waiting)
            raise
    if json:
        print_json({**facts, "journals": waiting})
        return
    describe(facts)
    if waiting:
        show_journals(waiting)
    if not facts["running"]:
        print_text("The next chat starts it.")
    elif "password_file" in facts:
        print_text(f"Open it in any Neo4j tool: {facts['uri']}, user {facts['username']}, password in that file.")


async def _facts(graph: Graph) -> dict[str, Any]:
    from ragforge_tui.graph import Store

    return {**await graph.info(), "code": await Store(graph).code.totals()}


def describe(facts: dict[str, Any]) -> None:
    """Print the facts of a graph, one per line."""
    for name, value in facts.items():
        shown = value
        if name == "nodes":
            shown = ", ".join(f"{label} {counted(count)}" for label, count in value.items()) or "none"
        elif name == "size_bytes":
            shown = size_text(value)
        elif name == "code":
            shown = "; ".join(f"{index.workspace} {index.summary()}" for index in value)
        elif isinstance(value, bool):
            shown = "yes" if value else "no"
        if shown not in ("", None):
            print_text(f"{name.replace('_', ' '):14} {shown}")


@graph_app.command()
def stop(ctx: typer.Context) -> None:
    """Stop the embedded server now; a running chat starts it again."""
    from ragforge_tui.graph import stop_server

    loaded = settings(ctx)
    print_text("Stopped." if stop_server(loaded.paths) else "The embedded server was not running.")


@graph_app.command()
def adopt(ctx: typer.Context, graph: GraphOption = None) -> None:
    """Allow this program's schema in a graph that already holds other data, which stays unchanged."""
    loaded = settings(ctx, graph=graph)
    target = msgspec.structs.replace(target_of(loaded), adopt=True)
    facts = run_async(use_graph(loaded, target, lambda graph: graph.info()))
    print_text(f"Adopted: {facts['name']} (chosen by {facts['chosen_by']}).")


@graph_app.command()
def reembed(ctx: typer.Context, graph: GraphOption = None) -> None:
    """Recreate all vectors with the configured embedding model; run it again to continue an interrupted run."""
    from ragforge_tui.graph import Store
    from ragforge_tui.llm import Connections
    from ragforge_tui.llm.embeddings import make_embedder
    from ragforge_tui.memory.retrieval import reembed as recreate

    loaded = settings(ctx, graph=graph)
    embedder = make_embedder(loaded.settings.agent.memory.embeddings, loaded.settings.model, Connections(loaded.paths))
    if embedder is None:
        raise ConfigError(
            "No embedding model is configured.",
            todo="Set agent.memory.embeddings.enabled, and a model if the local one cannot be installed.",
        )
    done = run_async(
        use_graph(
            loaded,
            target_of(loaded),
            lambda graph: recreate(Store(graph), embedder, progress_of(f"vectors, {embedder.name}")),
        )
    )
    print_text(f"{done} vectors created with {embedder.name}.")


class Place(StrEnum):
    """Place to move texts to."""

    FILES = "files"
    GRAPH = "graph"


@graph_app.command()
def contents(
    ctx: typer.Context,
    to: Annotated[Place | None, typer.Option("--to", help="Move all texts there; can be stopped and repeated.")] = None,
    graph: GraphOption = None,
    json: JsonFlag = False,
) -> None:
    """Show whether texts are in the graph or in files, or move them."""
    from ragforge_tui.graph import Store

    loaded = settings(ctx, graph=graph)
    target = target_of(loaded)
    if to is None:
        info = run_async(use_graph(loaded, target, lambda graph: Store(graph).contents.info()))
        if json:
            print_json(info)
        else:
            describe(msgspec.structs.asdict(info) | {"folders": "; ".join(info.folders)})
        return
    place: Literal["files", "graph"] = to.value
    moving = progress_of("messages, calls and results")
    moved = run_async(use_graph(loaded, target, lambda graph: Store(graph).contents.move(place, moving)))
    if json:
        print_json(moved)
        return
    print_text(f"Texts moved: {moved.nodes} messages, calls and results.")
    if moved.left:
        print_text(
            f"{moved.left} stay where they are: still written, or lost. `ragforge-chat graph check` lists lost texts."
        )
    if moved.in_use:
        print_text("A running chat uses the files, so they stay. Run this again when it has ended to remove them.")
    setting = loaded.settings.agent.memory.persistence.type
    if (to is Place.FILES) != (setting == "hybrid"):
        wanted = "hybrid" if to is Place.FILES else "graph"
        print_text(f"New texts go elsewhere: agent.memory.persistence.type is {setting}, not {wanted}.")


@graph_app.command()
def check(
    ctx: typer.Context,
    graph: GraphOption = None,
    json: JsonFlag = False,
) -> None:
    """Verify texts in files, and count nodes of other programs."""

    async def look(graph: Graph) -> tuple[list[LostContent], list[ForeignNodes]]:
        from ragforge_tui.graph.foreign_counts import count_foreign_nodes

        return await lost_contents(graph), await count_foreign_nodes(graph)

    loaded = settings(ctx, graph=graph)
    lost, foreign = run_async(use_graph(loaded, target_of(loaded), look))
    if json:
        print_json({"lost_texts": lost, "foreign_nodes": foreign})
    else:
        _show_lost(lost)
        _show_foreign(foreign)
    if lost:
        raise typer.Exit(FAILED)


def _show_lost(lost: list[LostContent]) -> None:
    if lost:
        rows = [[text.conversation_id[:SHORT_ID], text.label, text.uuid, text.field, text.loss] for text in lost]
        table(rows, ["ID", "NODE", "NODE'S ID", "TEXT", "PROBLEM"])
        for reason in dict.fromkeys(text.reason for text in lost):
            print_text(f"{reason[0].upper()}{reason[1:]}.")
    else:
        print_text("All texts in files are there and unchanged.")


def _show_foreign(foreign: list[ForeignNodes]) -> None:
    if foreign:
        print_text("Nodes of other programs, or damaged ones, are left alone:")
        for nodes in foreign:
            print_text(f"  {nodes}")


async def lost_contents(graph: Graph) -> list[LostContent]:
    """Return the texts in files that cannot be read."""
    from ragforge_tui.graph import Store

    return [lost async for lost in Store(graph).contents.check()]


@graph_app.command()
def query(
    ctx: typer.Context,
    cypher: Annotated[str, typer.Argument(metavar="CYPHER", help="A read-only statement.")],
    graph: GraphOption = None,
    json: JsonFlag = False,
) -> None:
    """Run a read-only Cypher statement and print its rows."""
    loaded = settings(ctx, graph=graph)
    rows = run_async(use_graph(loaded, target_of(loaded), lambda graph: graph.query_readonly(cypher)))
    if json:
        print_json(rows)
    elif rows:
        table([[_cell(value) for value in row.values()] for row in rows], list(rows[0]))
    else:
        print_text("No rows.")


def _cell(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


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
    if not yes and not confirmed(question, "Nothing was written."):
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


def _chosen(infos: list[JournalInfo], key: str) -> JournalInfo:
    matching = [info for info in infos if info.key == key] or [info for info in infos if info.key.startswith(key)]
    if len(matching) != 1:
        what = "Several journals start" if matching else "No journal starts"
        raise NotFoundError(f"{what} with {key!r}.", todo="`ragforge-chat graph journal` lists them.")
    return matching[0]


def _short(info: JournalInfo) -> str:
    return info.key[: SHORT_ID + 3] if info.key.startswith("at-") else info.key[:SHORT_ID]


def _root(loaded: Loaded) -> Path:
    return Path(loaded.paths.state, "journal")
