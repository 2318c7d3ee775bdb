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
SETTLE_SECONDS = 30.0
"""Longest wait for the memory to read imported turns; the next start reads the rest."""
_MOST_FAILURES = 20
_UNREAD = "Sessions of {} are there in a form that this version cannot read."


def list_found(ctx: typer.Context, *, json: bool) -> None:
    """Print what other agents left, by agent and folder."""
    places = by_folder(with_memory(ctx, lambda engine: engine.request(ListFoundSessions())))
    unread = [place.agent for place in places if not place.sessions]
    if json:
        print_json(places)
        return
    for agent in unread:
        print_text(_UNREAD.format(agent))
    if len(unread) == len(places):
        if not unread:
            print_text("No sessions of other agents were found on this machine.")
    else:
        rows = [
            [p.agent, p.folder or "(unknown)", str(p.sessions), size_text(p.bytes), str(p.imported)]
            for p in places
            if p.sessions
        ]
        table(rows, ["AGENT", "FOLDER", "SESSIONS", "SIZE", "IMPORTED"])
        print_text()
        print_text("Import those of this folder with: ragforge-chat import --from AGENT (--all: of all folders)")


def import_from(ctx: typer.Context, agent: str, *, folder: str | None, watch: bool, json: bool) -> bool:
    """Import the sessions of an agent, of one folder or of all; return whether none failed."""

    async def work(engine: Engine) -> bool:
        fine, told = True, False
        while True:
            listed = await engine.request(ListFoundSessions(agents=(agent,), folder=folder or ""))
            if not told and any(not entry.session.readable for entry in listed):
                complain(_UNREAD.format(agent))
                told = True
            readable = [entry for entry in listed if entry.session.readable]
            chosen = [entry for entry in readable if folder is None or is_inside(entry.session.folder, folder)]
            fine &= await _import(engine, chosen, json=json, quiet=watch)
            if not watch:
                return fine
            await asyncio.sleep(WATCH_SECONDS)

    return with_memory(ctx, work, settle_seconds=SETTLE_SECONDS)


def import_files(ctx: typer.Context, paths: list[Path], *, json: bool) -> bool:
    """Import all sessions in files and folders of other programs; return whether none failed."""

    places = tuple(str(path.absolute()) for path in paths)

    async def work(engine: Engine) -> bool:
        return await _import(engine, await engine.request(ListFoundSessions(files=places)), json=json)

    return with_memory(ctx, work, settle_seconds=SETTLE_SECONDS)


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
    grown = sum(len(outcome.adds.grown) for _, outcome in outcomes)
    parts += [f"{grown} completed"] if grown else []
    parts += [f"{counts['empty']} without a message that this version can read"] if counts["empty"] else []
    parts += [f"{counts['failed']} failed"] if counts["failed"] else []
    return ", ".join(parts) + f"; {len(chosen) - len(outcomes) + counts['same']} were here already."
