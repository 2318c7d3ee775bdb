"""Command `blame`: from a file or a line to the turn that wrote it, and to its commit."""

from __future__ import annotations

import re
from typing import Annotated, Any

import typer

from ragforge_tui.cli.common import JsonFlag, WorkspaceOption, not_empty, settings, with_engine
from ragforge_tui.cli.output import bold, local_time, print_json, print_styled, print_text, shorten
from ragforge_tui.shared.own_command import resume_command
from ragforge_tui.shared.requests.work import Blame, BlamedLines, BlamedTurn, BlameResult
from ragforge_tui.shared.sanitize import plain_text

_SHORT = 8
_LINE = re.compile(r"(.+?):(\d{1,9})")


def blame(
    ctx: typer.Context,
    place: Annotated[str, typer.Argument(metavar="FILE[:LINE]", help="File, or a line of it.", callback=not_empty)],
    workspace: WorkspaceOption = None,
    json: JsonFlag = False,
) -> None:
    """Show the turn that wrote each line of a file, or one line, with its commit and the turn that made that."""
    match = _LINE.fullmatch(place)
    path, line = (match[1], int(match[2])) if match is not None else (place, 0)
    if match is not None and not line:
        raise typer.BadParameter("Lines count from 1.")
    loaded = settings(ctx, workspace=workspace, model="offline")
    found = with_engine(loaded, lambda engine: engine.request(Blame(path=path, line=line)))
    if json:
        print_json([_row(n, lines) for lines in found.lines for n in range(lines.first, lines.last + 1)])
    elif line:
        print_styled(f"{bold(f'{found.path}:{line}')}  {plain_text(shorten(found.text, 100))}")
        _print_line(found.lines[0])
    else:
        _print_file(found)


def _row(line: int, lines: BlamedLines) -> dict[str, Any]:
    turn, commit, by = lines.turn, lines.commit, lines.committed_by
    return {
        "line": line,
        "conversation_id": turn.conversation_id if turn else None,
        "turn_index": turn.turn_index if turn else None,
        "commit": commit.hash if commit else None,
        "commit_conversation_id": by.conversation_id if by else None,
        "commit_turn_index": by.turn_index if by else None,
        "decision": turn.decision if turn else None,
    }


def _print_line(lines: BlamedLines) -> None:
    print_text()
    if lines.turn is None:
        print_text("The line is not by a turn: no stored write explains it.")
    else:
        _print_turn("written in", lines.turn)
    print_text()
    if lines.commit is None:
        print_text("The line is not committed yet.")
        return
    made = f"{local_time(lines.commit.committed_at)}  {plain_text(shorten(lines.commit.author, 40))}"
    print_styled(f"{bold(f'commit {lines.commit.hash[:_SHORT]}')}  {made}")
    print_text(f"  {shorten(lines.commit.subject, 100)}")
    if lines.committed_by is not None:
        opened = lines.turn is not None and lines.turn.conversation_id == lines.committed_by.conversation_id
        _print_turn("committed in", lines.committed_by, opened=opened)


def _print_file(found: BlameResult) -> None:
    print_styled(bold(found.path))
    if not found.lines:
        print_text("The file is empty.")
        return
    width = max(len(_span(lines)) for lines in found.lines)
    for lines in found.lines:
        turn = _name(lines.turn) if lines.turn else "not by a turn"
        commit = f"commit {lines.commit.hash[:_SHORT]}" if lines.commit else "not committed"
        by = f", made in {_name(lines.committed_by)}" if lines.committed_by else ""
        print_text(f"  {_span(lines):>{width}}  {turn:<14}  {commit}{by}")
    for writer in {_name(lines.turn): lines.turn for lines in found.lines if lines.turn is not None}.values():
        print_text()
        _print_turn("written in", writer)


def _span(lines: BlamedLines) -> str:
    return str(lines.first) if lines.first == lines.last else f"{lines.first}-{lines.last}"


def _name(turn: BlamedTurn) -> str:
    return f"{turn.conversation_id[:_SHORT]} t{turn.turn_index}"


def _print_turn(how: str, turn: BlamedTurn, *, opened: bool = False) -> None:
    """Print a turn and how to open its conversation, unless that was printed before (`opened`)."""
    print_styled(f"{how} {bold(_name(turn))}  {plain_text(shorten(turn.title or '(untitled)', 70))}")
    if turn.question:
        print_text(f"  > {shorten(turn.question, 200)}")
    if turn.decision:
        print_text(f"  Decision: {shorten(turn.decision, 200)}")
    if not opened:
        print_text(f"  Open it: {resume_command(turn.conversation_id)}")
