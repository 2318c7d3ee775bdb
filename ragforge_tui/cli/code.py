"""Command for the code of a folder: search for it, and list the conversations about a piece of it."""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import Annotated, Any

import msgspec
import typer

from ragforge_tui.cli.common import JsonFlag, WorkspaceOption, not_empty, shared, with_memory
from ragforge_tui.cli.output import local_time, print_json, print_text, shorten, table
from ragforge_tui.cli.start import complain
from ragforge_tui.shared.code_records import Scope, ScopeKind, ScopeTalk
from ragforge_tui.shared.code_views import scope_name, scope_place
from ragforge_tui.shared.errors import NotFoundError
from ragforge_tui.shared.events import CodeIndexChanged
from ragforge_tui.shared.records import SHORT_ID
from ragforge_tui.shared.requests.code import FindScopes, IndexCode, ListScopeTalks, SearchCode
from ragforge_tui.shared.wire import Engine

CONVERSATIONS = "conversations"
QUIET_SECONDS = 1.0
"""An index that is current sooner is not reported."""
_PHASES = {
    "looking": "looking for changed files",
    "reading": "files read",
    "linking": "files linked",
    "embedding": "files prepared for search by meaning",
}


def code(
    ctx: typer.Context,
    query: Annotated[
        list[str],
        typer.Argument(
            metavar="QUERY | conversations SCOPE",
            help="A name, or words for what the code does; after 'conversations' a name, file:name or file:line.",
        ),
    ],
    kind: Annotated[ScopeKind | None, typer.Option(help="Only code of this kind.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of results.")] = 20,
    workspace: WorkspaceOption = None,
    json: JsonFlag = False,
) -> None:
    """Search the code of a folder by name and meaning, or list the conversations about a piece of it."""
    if workspace is not None:
        shared(ctx).workspace = workspace
    not_empty(" ".join(query))
    if query[0] == CONVERSATIONS and len(query) > 1:
        _conversations(ctx, " ".join(query[1:]), limit, json=json)
        return
    request = SearchCode(query=" ".join(query), kind=kind or "", limit=limit)

    async def work(engine: Engine) -> list[Scope]:
        await _indexed(engine)
        return await engine.request(request)

    found = with_memory(ctx, work)
    if json:
        print_json([_json_of(scope) for scope in found])
    elif not found:
        print_text("No matches.")
    else:
        rows = [(scope.kind, scope_name(scope), scope_place(scope), shorten(scope.signature, 80)) for scope in found]
        table(rows, ("KIND", "NAME", "PLACE", "SIGNATURE"))


def _conversations(ctx: typer.Context, name: str, limit: int, *, json: bool) -> None:
    async def work(engine: Engine) -> list[ScopeTalk]:
        await _indexed(engine)
        matches = await engine.request(FindScopes(name=name))
        if not matches:
            raise NotFoundError(f"The index has no code named {name!r}.", todo="ragforge-chat code WORDS searches it.")
        about = [talk for one in matches for talk in await engine.request(ListScopeTalks(uuid=one.uuid, limit=limit))]
        turns = {(talk.conversation_id, talk.turn_index): talk for talk in about}
        return sorted(turns.values(), key=lambda talk: talk.timestamp, reverse=True)[:limit]

    found = with_memory(ctx, work)
    if json:
        print_json([_talk_json(talk) for talk in found])
    elif not found:
        print_text("No conversation is about it yet.")
    else:
        rows = [
            (
                talk.conversation_id[:SHORT_ID],
                f"t{talk.turn_index}",
                local_time(talk.timestamp),
                shorten(talk.title or "(untitled)", 40),
                shorten(talk.text, 60),
            )
            for talk in found
        ]
        table(rows, ("ID", "TURN", "DATE", "TITLE", "MESSAGE"))


async def _indexed(engine: Engine) -> None:
    """Wait until the folder is indexed, with progress on stderr while it takes time."""
    watching = asyncio.create_task(_report_progress(engine))
    try:
        problem = await engine.request(IndexCode())
    finally:
        watching.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await watching
    if problem:
        complain(problem)


async def _report_progress(engine: Engine) -> None:
    start = time.monotonic()
    async for event in engine.events():
        if isinstance(event, CodeIndexChanged) and event.running and time.monotonic() - start > QUIET_SECONDS:
            done = f"{event.done} of {event.todo} " if event.todo else ""
            complain(f"Indexing the folder: {done}{_PHASES.get(event.phase, event.phase)}.")


def _json_of(scope: Scope) -> dict[str, Any]:
    return {name: getattr(scope, name) for name in ("uuid", "name", "kind", "file", "start_line", "end_line")}


def _talk_json(talk: ScopeTalk) -> dict[str, Any]:
    told = msgspec.to_builtins(talk)
    return {name: told[name] for name in ("conversation_id", "title", "turn_index", "timestamp", "text")}
