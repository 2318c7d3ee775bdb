"""Commands to export and import conversations as files."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from ragforge_tui.cli.common import ConversationArgument, JsonFlag, shared, with_memory
from ragforge_tui.cli.other_agents import IMPORT_AGENTS, import_files, import_from, list_found
from ragforge_tui.cli.output import print_json, print_text
from ragforge_tui.cli.start import FAILED, complain
from ragforge_tui.export import ExportFormat, export_bytes, from_json, write_export
from ragforge_tui.shared.errors import RagforgeError
from ragforge_tui.shared.files import MAX_EXPORT_BYTES, read_regular
from ragforge_tui.shared.requests.sessions import ExportConversation, ImportConversation

_BEGINNING = 4_096
"""Bytes in which the format of an export is named: it is the first key."""


def export(
    ctx: typer.Context,
    id: ConversationArgument,
    format: Annotated[
        ExportFormat, typer.Option(help="JSON can be imported without loss; Markdown and HTML are for reading.")
    ] = "json",
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="PATH", help="File, or folder for conv-<uuid>; else standard output."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Same as --format json.")] = False,
) -> None:
    """Write a whole conversation as JSON, Markdown, or one HTML page."""
    chosen: ExportFormat = "json" if json else format
    exported = with_memory(ctx, lambda engine: engine.request(ExportConversation(ref=id)))
    if output is None:
        sys.stdout.flush()
        sys.stdout.buffer.write(export_bytes(exported, chosen))
        sys.stdout.buffer.flush()
        return
    target = write_export(exported, chosen, output)
    complain(f"Exported to {target}.")


def import_(
    ctx: typer.Context,
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FILE …]",
            help="An exported JSON file ('-' reads standard input), a session file of another agent, an export of "
            "ChatGPT or Claude, or a folder of these. Without one, what other agents left on this machine is listed.",
        ),
    ] = None,
    agent: Annotated[
        str | None, typer.Option("--from", metavar="AGENT", help=f"Import the sessions of: {', '.join(IMPORT_AGENTS)}.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="With --from: the sessions of all folders.")] = False,
    folder: Annotated[
        Path | None, typer.Option("--folder", metavar="DIR", help="With --from: of this folder, not the current one.")
    ] = None,
    watch: Annotated[bool, typer.Option("--watch", help="With --from: import new turns until ctrl+c.")] = False,
    merge: Annotated[
        bool, typer.Option("--merge", help="Add new turns to a conversation that already exists.")
    ] = False,
    json: JsonFlag = False,
) -> None:
    """Import conversations: exports, or what other agents left; twice is once."""
    if agent is None and (everything or folder is not None or watch):
        raise typer.BadParameter("--all, --folder and --watch need --from AGENT.")
    if agent is not None and files:
        raise typer.BadParameter("Give files or --from, not both.")
    if agent is not None:
        place = None if everything else str((folder or Path(shared(ctx).workspace or ".")).expanduser().resolve())
        raise typer.Exit(0 if import_from(ctx, agent, folder=place, watch=watch, json=json) else FAILED)
    if not files:
        list_found(ctx, json=json)
        return
    paths = {file: Path(file).expanduser() for file in files}
    others = [path for file, path in paths.items() if file != "-" and not _is_own_export(path)]
    for file, path in paths.items():
        if path not in others:
            _import_export(ctx, file, path, merge=merge, json=json)
    if others and not import_files(ctx, others, json=json):
        raise typer.Exit(FAILED)


def _import_export(ctx: typer.Context, file: str, path: Path, *, merge: bool, json: bool) -> None:
    """Import an export of this program."""
    try:
        data = sys.stdin.buffer.read() if file == "-" else read_regular(path, MAX_EXPORT_BYTES)
    except OSError as error:
        raise RagforgeError(f"{file} cannot be read: {error.strerror}.", todo="'-' reads a pipe.") from error
    exported = from_json(data)
    imported = with_memory(ctx, lambda engine: engine.request(ImportConversation(data=exported, merge=merge)))
    conversation = imported.conversation
    named = f"{conversation.uuid} {conversation.title}".rstrip()
    if json:
        print_json({**msgspec.to_builtins(conversation), "created": imported.created, "added": imported.adds})
    elif imported.created:
        print_text(f"Imported {named}: {imported.adds.text()}.")
    else:
        print_text(f"Imported {named}: it already existed, {imported.adds.text()}{' added' if imported.adds else ''}.")


def _is_own_export(path: Path) -> bool:
    """Return whether a file begins like an export of this program; also for one that cannot be read, which is said."""
    try:
        beginning = read_regular(path, _BEGINNING, cut=True)
    except OSError:
        return not path.is_dir()
    return b'"ragforge-conversation"' in beginning
