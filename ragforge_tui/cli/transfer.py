"""Commands to export and import conversations as files."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from ragforge_tui.cli.common import ConversationArgument, JsonFlag, with_memory
from ragforge_tui.cli.output import print_json, print_text
from ragforge_tui.cli.start import complain
from ragforge_tui.export import ExportFormat, export_bytes, from_json, write_export
from ragforge_tui.shared.errors import RagforgeError
from ragforge_tui.shared.files import MAX_EXPORT_BYTES, read_regular
from ragforge_tui.shared.requests.sessions import ExportConversation, ImportConversation


def export(
    ctx: typer.Context,
    id: ConversationArgument,
    format: Annotated[
        ExportFormat, typer.Option(help="JSON can be imported without loss; Markdown is for reading.")
    ] = "json",
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="PATH", help="File, or folder for conv-<uuid>; else standard output."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Same as --format json.")] = False,
) -> None:
    """Write a whole conversation as JSON or Markdown."""
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
    file: Annotated[str, typer.Argument(metavar="FILE", help="An exported JSON file; '-' reads standard input.")],
    merge: Annotated[
        bool, typer.Option("--merge", help="Add new turns to a conversation that already exists.")
    ] = False,
    json: JsonFlag = False,
) -> None:
    """Import an exported conversation; ids stay the same, and repeating it changes nothing."""
    try:
        data = sys.stdin.buffer.read() if file == "-" else read_regular(Path(file).expanduser(), MAX_EXPORT_BYTES)
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
