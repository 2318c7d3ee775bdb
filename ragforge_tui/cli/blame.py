"""Command `blame`: from a file or a line to the conversation and turn that made it."""

from __future__ import annotations

import re
from typing import Annotated

import typer

from ragforge_tui.cli.common import JsonFlag, WorkspaceOption, not_empty, settings, with_engine
from ragforge_tui.cli.output import bold, local_time, print_json, print_styled, print_text, shorten
from ragforge_tui.shared.requests.work import Blame, BlameEntry, BlameResult, CommitTurn
from ragforge_tui.shared.sanitize import plain_text

_SHORT = 8
_LINE = re.compile(r"(.+?):(\d{1,9})")
_RELATIONS = {
    "committed": "The commit was made in this turn.",
    "committed later": "The user committed what this turn wrote.",
    "named by the commit": "The commit names this turn.",
    "written": "This turn was the last to write the file.",
}


def blame(
    ctx: typer.Context,
    place: Annotated[str, typer.Argument(metavar="FILE[:LINE]", help="File, or a line of it.", callback=not_empty)],
    limit: Annotated[int, typer.Option(min=1, max=100, help="Maximum number of commits of a file.")] = 10,
    workspace: WorkspaceOption = None,
    json: JsonFlag = False,
) -> None:
    """Show the turns that made a file or a line, by the commits of its repository."""
    match = _LINE.fullmatch(place)
    path, line = (match[1], int(match[2])) if match is not None else (place, 0)
    if match is not None and not line:
        raise typer.BadParameter("Lines count from 1.")
    loaded = settings(ctx, workspace=workspace, model="offline")
    found = with_engine(loaded, lambda engine: engine.request(Blame(path=path, line=line, limit=limit)))
    if json:
        print_json(found)
        return
    _print(found)


def _print(found: BlameResult) -> None:
    if found.line:
        print_styled(f"{bold(f'{found.path}:{found.line}')}  {plain_text(shorten(found.text, 100))}")
    else:
        print_styled(bold(found.path))
    for entry in found.entries:
        print_text()
        _print_entry(entry, "The line" if found.line else "The file")


def _print_entry(entry: BlameEntry, subject: str) -> None:
    if entry.commit is not None:
        made = f"{local_time(entry.commit.committed_at)}  {plain_text(shorten(entry.commit.author, 40))}"
        print_styled(f"{bold(f'commit {entry.commit.hash[:_SHORT]}')}  {made}")
        print_text(f"  {shorten(entry.commit.subject, 100)}")
    else:
        print_text(f"{subject} is not committed yet.")
    if entry.turn is None:
        what = "this commit" if entry.commit is not None else "it"
        print_text(f"  No conversation in this graph is known to have made {what}.")
        return
    _print_turn(entry.turn)


def _print_turn(turn: CommitTurn) -> None:
    title = shorten(turn.title or "(untitled)", 70)
    print_text(f"  {turn.conversation_id[:_SHORT]} t{turn.turn_index}  {title}")
    if turn.question:
        print_text(f"  > {shorten(turn.question, 200)}")
    print_text(f"  {_RELATIONS.get(turn.relation, '')} Open it: ragforge-chat --resume {turn.conversation_id[:_SHORT]}")
