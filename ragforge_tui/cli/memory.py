"""Command `memory`: what is remembered (wishes, decisions, open points, facts), and acts on it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ragforge_tui.cli.common import JsonFlag, not_empty, with_memory
from ragforge_tui.cli.output import print_json, print_text, shorten, table
from ragforge_tui.shared.finding_records import KeptFinding, KeptKind
from ragforge_tui.shared.memory_acts import ACT_WORDS, FORGETTING, ActKind
from ragforge_tui.shared.records import SHORT_ID
from ragforge_tui.shared.requests.findings import ActOnFinding, ListRemembered, RememberedList, UndoMemoryAct

KindOption = Annotated[
    list[str] | None,
    typer.Option("--kind", metavar="KIND", help="Only wish, decision, open or fact; may be repeated."),
]
FolderOption = Annotated[
    str | None, typer.Option("--folder", metavar="DIR", help="Only what holds in this folder; without it, in all.")
]
AllFlag = Annotated[bool, typer.Option("--all", help="Also what is done, replaced or forgotten.")]
FindingArgument = Annotated[str, typer.Argument(metavar="ID", help="Id or unique prefix.", callback=not_empty)]
_KINDS: tuple[KeptKind, ...] = ("wish", "decision", "open", "fact")

memory_app = typer.Typer(help="Show what is remembered, and pin, forget or confirm it.", rich_markup_mode=None)


@memory_app.callback(invoke_without_command=True)
def memory(
    ctx: typer.Context,
    kind: KindOption = None,
    folder: FolderOption = None,
    everything: AllFlag = False,
    json: JsonFlag = False,
) -> None:
    """Show what is remembered, and pin, forget or confirm it. Without a command, list it."""
    if ctx.invoked_subcommand is None:
        list_(ctx, kind=kind, folder=folder, everything=everything, json=json)


@memory_app.command("list")
def list_(
    ctx: typer.Context,
    kind: KindOption = None,
    folder: FolderOption = None,
    everything: AllFlag = False,
    json: JsonFlag = False,
) -> None:
    """List wishes, decisions, open points and facts, the newest first."""
    kinds: list[KeptKind] = []
    for name in kind or []:
        known = next((one for one in _KINDS if one == name), None)
        if known is None:
            raise typer.BadParameter(f"There is no kind {name!r}: use {', '.join(_KINDS)}.")
        kinds.append(known)
    workspace = str(Path(folder).expanduser().resolve()) if folder else None
    request = ListRemembered(workspace=workspace, kinds=tuple(kinds), current=not everything)
    found = with_memory(ctx, lambda engine: engine.request(request))
    if json:
        print_json(found.findings)
    elif not found.findings:
        print_text("Nothing is remembered.")
    else:
        _print(found)


def _print(found: RememberedList) -> None:
    rows = [
        (
            one.uuid[:SHORT_ID],
            one.kind,
            "pinned" if one.pinned and one.is_current else one.state,
            "everywhere" if one.scope == "user" else shorten(Path(one.workspace).name, 24),
            f"{one.since.astimezone():%Y-%m-%d}",
            f"{shorten(found.titles.get(one.conversation_id, '') or one.conversation_id[:SHORT_ID], 30)} · "
            f"t{one.turn_index}",
            shorten(one.text, 100),
        )
        for one in found.findings
    ]
    table(rows, ("ID", "KIND", "STATE", "FOLDER", "SINCE", "FROM", "TEXT"))


@memory_app.command()
def pin(ctx: typer.Context, ref: FindingArgument, json: JsonFlag = False) -> None:
    """Pin a finding: pinned wishes are sent first; again releases it."""
    found = with_memory(ctx, lambda engine: engine.request(ListRemembered(current=True)))
    pinned = any(one.pinned for one in found.findings if one.uuid.startswith(ref))
    _act(ctx, ref, "unpin" if pinned else "pin", json=json)


@memory_app.command()
def forget(ctx: typer.Context, ref: FindingArgument, json: JsonFlag = False) -> None:
    """Forget a finding: nothing recalls or sends it any more; `graph compact` removes it for good."""
    _act(ctx, ref, "forget", json=json)
    if not json:
        print_text(FORGETTING)


@memory_app.command()
def confirm(ctx: typer.Context, ref: FindingArgument, json: JsonFlag = False) -> None:
    """Confirm that an open point is done."""
    _act(ctx, ref, "confirm", json=json)


@memory_app.command()
def undo(ctx: typer.Context, json: JsonFlag = False) -> None:
    """Take back the newest of these acts, in the chat or here."""
    act = with_memory(ctx, lambda engine: engine.request(UndoMemoryAct()))
    if json:
        print_json(act)
    else:
        print_text(f"Taken back: {ACT_WORDS[act.act]} “{act.text}”.")


def _act(ctx: typer.Context, ref: str, act: ActKind, *, json: bool) -> None:
    changed: KeptFinding = with_memory(ctx, lambda engine: engine.request(ActOnFinding(ref=ref, act=act)))
    if json:
        print_json(changed)
    else:
        print_text(f"{ACT_WORDS[act].capitalize()}: “{changed.text}”.")
