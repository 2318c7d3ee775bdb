"""Commands `graph backup`, `restore`, `copy` and `compact`: the whole graph in a file, in another graph, or smaller."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

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
from ragforge_tui.cli.output import print_json, print_text
from ragforge_tui.settings.schema import Loaded
from ragforge_tui.shared.errors import ConfigError
from ragforge_tui.shared.files import make_private
from ragforge_tui.shared.formatting import size_text

if TYPE_CHECKING:
    from ragforge_tui.graph import Graph, GraphTarget
    from ragforge_tui.graph.backup.restore import Restored
    from ragforge_tui.graph.backup.snapshot import BackupInfo

BackupArgument = Annotated[Path, typer.Argument(metavar="FILE", help="A file that `graph backup` wrote.")]
ReplaceFlag = Annotated[bool, typer.Option("--replace", help="Replace what the graph holds; a backup of that is kept.")]
YesFlag = Annotated[bool, typer.Option("--yes", help="Do not ask.")]


def backup(
    ctx: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="File to write; an older backup there is replaced.")],
    graph: GraphOption = None,
    json: JsonFlag = False,
) -> None:
    """Write the whole graph into one file, with the texts that are in files; chats may run meanwhile."""
    from ragforge_tui.graph.backup.snapshot import back_up

    loaded = settings(ctx, graph=graph)
    path = file.expanduser().absolute()
    info = run_async(
        use_graph(loaded, target_of(loaded), lambda graph: back_up(graph, path, progress_of("conversations")))
    )
    if json:
        print_json(info)
    else:
        print_text(f"{describe_backup(info)} written to {info.file}, {size_text(info.size_bytes)}.")
        _report_lost(info)


def restore(
    ctx: typer.Context,
    file: BackupArgument,
    replace: ReplaceFlag = False,
    yes: YesFlag = False,
    graph: GraphOption = None,
    json: JsonFlag = False,
) -> None:
    """Make the graph what a backup holds, on either backend; run it again if it was interrupted."""
    loaded = settings(ctx, graph=graph)
    target = target_of(loaded)
    if replace and not yes and not confirmed(f"Replace everything in {target.name} by {file}?", "Nothing was changed."):
        print_text("Nothing was changed.")
        return
    _show(_restored(loaded, target, file.expanduser().absolute(), replace=replace), json=json)


def copy(
    ctx: typer.Context,
    to: Annotated[str, typer.Option("--to", metavar="URI", help="Neo4j URI, or 'embedded'.")],
    replace: ReplaceFlag = False,
    yes: YesFlag = False,
    graph: GraphOption = None,
    json: JsonFlag = False,
) -> None:
    """Copy the whole graph into another one, such as from the embedded graph into a Neo4j."""
    from ragforge_tui.graph.backup.snapshot import back_up

    loaded = settings(ctx, graph=graph)
    source = target_of(loaded)
    other = settings(ctx, graph=to)
    target = target_of(other)
    if target.address == source.address:
        raise ConfigError(f"{target.name} is the graph that would be copied.", todo="Name another one with --to.")
    if replace and not yes and not confirmed(f"Replace everything in {target.name}?", "Nothing was changed."):
        print_text("Nothing was changed.")
        return
    folder = _backups(loaded)
    make_private(folder)
    with tempfile.TemporaryDirectory(dir=folder, prefix="copy-") as temporary:
        path = Path(temporary, "copy.backup")
        run_async(use_graph(loaded, source, lambda graph: back_up(graph, path, progress_of("conversations"))))
        done = _restored(other, target, path, replace=replace)
    _show(done, json=json)


def compact(ctx: typer.Context, graph: GraphOption = None, json: JsonFlag = False) -> None:
    """Make the graph and its files smaller, and drop what you forgot and the code of folders that are gone."""
    from ragforge_tui.graph import stop_server
    from ragforge_tui.graph.compact import compact as work
    from ragforge_tui.graph.embedded.files import ServerFiles

    loaded = settings(ctx, graph=graph)
    target = target_of(loaded)
    files = ServerFiles.of(loaded.paths)
    before = files.size() if target.embedded else 0
    done = run_async(use_graph(loaded, target, work))
    if done.rebuilt:
        # It drops its log when it ends; the next chat starts it again.
        stop_server(loaded.paths)
    after = files.size() if target.embedded else 0
    if json:
        print_json({**msgspec.structs.asdict(done), "database_before": before, "database_after": after})
        return
    if target.embedded:
        print_text(f"Database: {size_text(before)} before, {size_text(after)} now.")
    else:
        print_text("Database: the Neo4j server looks after its own files.")
    print_text(f"Texts in files: {size_text(done.contents_before)} before, {size_text(done.contents_after)} now.")
    if done.forgotten:
        print_text(f"Findings that you forgot, removed for good: {done.forgotten}")
    for workspace in done.indexes_dropped:
        print_text(f"Code index dropped, since the folder is gone: {workspace}")
    if done.in_use:
        print_text("Chats use the graph, so not everything was done. Run this again when they have ended.")


def _restored(loaded: Loaded, target: GraphTarget, path: Path, *, replace: bool) -> Restored:
    from ragforge_tui.graph.backup.restore import restore

    async def work(graph: Graph) -> Restored:
        return await restore(
            graph, path, replace=replace, keep=_backups(loaded), progress=progress_of("nodes and relationships")
        )

    return run_async(use_graph(loaded, target, work, restoring=True))


def _show(done: Restored, *, json: bool) -> None:
    if json:
        print_json(done)
        return
    print_text(f"{describe_backup(done.backup)} restored into {done.graph}.")
    if done.dropped:
        print_text(f"{done.dropped} relationships left out: their nodes were removed while the backup was written.")
    _report_lost(done.backup)
    if done.kept:
        print_text(f"What was there before is in {done.kept}.")


def describe_backup(info: BackupInfo) -> str:
    """Return what a backup holds, in words."""
    texts = f", {info.texts} texts from files" if info.texts else ""
    return (
        f"{info.nodes.get('Conversation', 0)} conversations ({sum(info.nodes.values())} nodes, "
        f"{info.relationships} relationships{texts})"
    )


def _report_lost(info: BackupInfo) -> None:
    if info.lost:
        print_text(
            f"{info.lost} texts in files could not be read and are missing; `graph check` on their machine lists them."
        )


def _backups(loaded: Loaded) -> Path:
    return Path(loaded.paths.data, "backups")


def add_to(graph_app: typer.Typer) -> None:
    for command in (backup, restore, copy, compact):
        graph_app.command()(command)
