"""Command `import` for what other agents left: the list by agent and folder, and their import with its progress."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import msgspec
import typer

from ragforge_tui.cli.common import progress_of, with_memory
from ragforge_tui.cli.output import print_json, print_text, size, table
from ragforge_tui.cli.start import complain
from ragforge_tui.shared.found_sessions import ListedSession, SessionImport
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


class FoundInFolder(msgspec.Struct, kw_only=True):
    """Sessions of one agent in one folder, with their total size and how many the graph holds as they are now."""

    agent: str
    folder: str
    sessions: int = 0
    bytes: int = 0
    imported: int = 0


def by_folder(listed: Iterable[ListedSession]) -> list[FoundInFolder]:
    """Return the sums by agent and folder, the largest of each agent first."""
    sums: dict[tuple[str, str], FoundInFolder] = {}
    for entry in listed:
        key = entry.session.agent, entry.session.folder
        place = sums.setdefault(key, FoundInFolder(agent=key[0], folder=key[1]))
        place.sessions += 1
        place.bytes += entry.session.bytes
        place.imported += entry.imported
    order = list(dict.fromkeys(agent for agent, _ in sums))
    return sorted(sums.values(), key=lambda p: (order.index(p.agent), -p.bytes, p.folder))


def list_found(ctx: typer.Context, *, json: bool) -> None:
    """Print what other agents left, by agent and folder."""
    places = by_folder(with_memory(ctx, lambda engine: engine.request(ListFoundSessions())))
    if json:
        print_json(places)
    elif not places:
        print_text("No sessions of other agents were found on this machine.")
    else:
        rows = [[p.agent, p.folder or "(unknown)", str(p.sessions), size(p.bytes), str(p.imported)] for p in places]
        table(rows, ["AGENT", "FOLDER", "SESSIONS", "SIZE", "IMPORTED"])
        print_text()
        print_text("Import those of this folder with: ragforge-chat import --from AGENT (--all: of all folders)")


def import_from(ctx: typer.Context, agent: str, *, folder: str | None, watch: bool, json: bool) -> bool:
    """Import the sessions of an agent, of one folder or of all; return whether none failed."""

    async def work(engine: Engine) -> bool:
        fine = True
        while True:
            listed = await engine.request(ListFoundSessions(agents=(agent,)))
            chosen = [e for e in listed if folder is None or _inside(e.session.folder, folder)]
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


def _inside(place: str, folder: str) -> bool:
    return place == folder or place.startswith(folder.rstrip("/") + "/")


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
    parts = [f"{counts['imported']} sessions imported", f"{counts['extended']} extended", f"{turns} turns added"]
    parts += [f"{counts['empty']} without a message"] if counts["empty"] else []
    parts += [f"{counts['failed']} failed"] if counts["failed"] else []
    text = ", ".join(parts) + f"; {len(chosen) - len(outcomes) + counts['same']} were here already."
    writing = sum(outcome.still_written for _, outcome in outcomes)
    if writing:
        text += f" {writing} may still be written: the last turn comes with the next import."
    return text
