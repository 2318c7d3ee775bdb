"""Command `import` for what other agents left: the list by agent and folder, and their import with its progress."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from pathlib import Path

import msgspec
import typer

from ragforge_tui.cli.common import progress_of, with_memory
from ragforge_tui.cli.output import print_json, print_text, table
from ragforge_tui.cli.start import complain
from ragforge_tui.shared.formatting import counted, size_text
from ragforge_tui.shared.found_sessions import ListedSession, SessionImport, by_folder, is_inside
from ragforge_tui.shared.requests.imports import ImportFoundSession, ListFoundSessions
from ragforge_tui.shared.wire import Engine

IMPORT_AGENTS = (
    "claude-code",
    "codex",
    "opencode",
    "gemini-cli",
    "qwen",
    "vibe",
    "crush",
    "goose",
    "cline",
    "aider",
)
"""Names for `--from`, as in `other_agents`, which --help does not import."""

WATCH_SECONDS = 30.0
"""Pause between two looks with `--watch`."""
_MOST_FAILURES = 20


def list_found(ctx: typer.Context, *, json: bool) -> None:
    """Print what other agents left, by agent and folder."""
    places = by_folder(with_memory(ctx, lambda engine: engine.request(ListFoundSessions())))
    if json:
        print_json(places)
    elif not places:
        print_text("No sessions of other agents were found on this machine.")
    else:
        rows = [
            [p.agent, p.folder or "(unknown)", str(p.sessions), size_text(p.bytes), str(p.imported)] for p in places
        ]
        table(rows, ["AGENT", "FOLDER", "SESSIONS", "SIZE", "IMPORTED"])
        print_text()
        print_text("Import those of this folder with: ragforge-chat import --from AGENT (--all: of all folders)")


def import_from(ctx: typer.Context, agent: str, *, folder: str | None, watch: bool, json: bool) -> bool:
    """Import the sessions of an agent, of one folder or of all; return whether none failed."""

    async def work(engine: Engine) -> bool:
        fine = True
        while True:
            listed = await engine.request(ListFoundSessions(agents=(agent,)))
            chosen = [e for e in listed if folder is None or is_inside(e.session.folder, folder)]
            fine &= await _import(engine, chosen, json=json, quiet=watch)
            if not watch:
                return fine
            await asyncio.sleep(WATCH_SECONDS)

    return with_memory(ctx, work)


def import_file(ctx: typer.Context, path: Path, *, json: bool) -> bool:
    """Import all sessions in a file of another program; return whether none failed."""

    place = str(path.absolute())

    async def work(engine: Engine) -> bool:
        return await _import(engine, await engine.request(ListFoundSessions(file=place)), json=json)

    return with_memory(ctx, work)


async def _import(engine: Engine, chosen: list[ListedSession], *, json: bool, quiet: bool = False) -> bool:
    """Import the sessions that changed since they were imported, and tell the outcome."""
    new = [entry.session for entry in chosen if not entry.imported]
    show = progress_of("sessions")
    outcomes: list[tuple[str, SessionImport]] = []
    for done, session in enumerate(new, start=1):
        outcomes.append((session.id, await engine.request(ImportFoundSession(session=session))))
        show(done, len(new))
    failed = [(id, outcome.error) for id, outcome in outcomes if outcome.outcome == "failed"]
    if json:
        print_json([{"id": id, **msgspec.to_builtins(outcome)} for id, outcome in outcomes])
    elif outcomes or not quiet:
        print_text(_told(chosen, outcomes))
    for id, error in failed[:_MOST_FAILURES]:
        complain(f"{id}: {error}")
    return not failed


def _told(chosen: list[ListedSession], outcomes: list[tuple[str, SessionImport]]) -> str:
    """Return the outcome in sentences."""
    if not chosen:
        return "No session was found there. Try --all, or list what there is with: ragforge-chat import"
    counts: dict[str, int] = defaultdict(int)
    for _, outcome in outcomes:
        counts[outcome.outcome] += 1
    turns = sum(len(outcome.adds.turns) for _, outcome in outcomes)
    parts = [
        f"{counted(counts['imported'], 'session')} imported",
        f"{counts['extended']} extended",
        f"{counted(turns)} turns added",
    ]
    parts += [f"{counts['empty']} without a message"] if counts["empty"] else []
    parts += [f"{counts['failed']} failed"] if counts["failed"] else []
    text = ", ".join(parts) + f"; {len(chosen) - len(outcomes) + counts['same']} were here already."
    writing = sum(outcome.still_written for _, outcome in outcomes)
    if writing:
        text += f" {writing} may still be written: the last turn comes with the next import."
    return text
