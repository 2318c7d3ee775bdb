"""Links from turns to the scopes that they touch by a tool or name in their texts.

Made in the background after a turn, and later for turns that were stored while the program was not running. Wrong links
are worse than missing ones: a name that several scopes have is linked only if the turn touches the file of one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from ragforge_tui.code.aliases import note_aliases, rebuild_aliases
from ragforge_tui.code.current import scopes_now
from ragforge_tui.code.limits import INDEXING
from ragforge_tui.code.mentions import Lines, Touched, chosen, touched_by
from ragforge_tui.graph import Store
from ragforge_tui.shared.code_records import Scope
from ragforge_tui.shared.pace import Pace
from ragforge_tui.shared.records import Turn

PAGE_TURNS = 20
MOST_SCOPES = 50
"""Scopes that one turn is linked to."""
NEW_POLL_SECONDS = 0.25


class CodeLinker:
    """Linking of the turns of one workspace.

    Args:
        store: Returns the store, waiting while the graph starts.
        pace: When this work may use the processor.
    """

    def __init__(self, store: Callable[[], Awaitable[Store]], workspace: Path, pace: Pace) -> None:
        self._store = store
        self._pace = pace
        self._folder = workspace
        self._workspace = str(workspace)

    async def link(self, conversation_id: str, *, until: int, ended: int = 0, wait: bool = False) -> None:
        """Link the turns that were not examined yet.

        Args:
            until: The last turn that has ended.
            ended: A turn that has just ended; it is examined again if it was before.
            wait: Wait until what that turn wrote is indexed, a few seconds at most.
        """
        store = await self._store()
        start = await store.code_links.through(conversation_id) + 1
        start = min(start, ended) if ended else start
        while start <= until:
            await self._pace.clear()
            end = min(start + PAGE_TURNS, until + 1)
            for turn in await store.turns.between(conversation_id, start=start, end=end):
                if turn.messages[-1].state == "streaming":
                    return
                await self._pace.clear()
                await self._link_turn(store, turn, INDEXING.written if wait and turn.turn_index == ended else 0.0)
                await store.code_links.set_through(conversation_id, turn.turn_index)
            start = end

    async def catch_up(self, leave: set[str]) -> None:
        """Link the turns of all conversations of the workspace except those that are open."""
        store = await self._store()
        for behind in await store.code_links.unlinked(self._workspace):
            if behind.conversation_id not in leave:
                await self.link(behind.conversation_id, until=behind.last)
        await rebuild_aliases(store, self._workspace)

    async def _link_turn(self, store: Store, turn: Turn, seconds: float) -> None:
        touched = await asyncio.to_thread(touched_by, turn)
        by_lines = await asyncio.to_thread(self._by_lines, touched)
        known = await store.code_links.existing([*touched.scopes, *by_lines])
        while seconds > 0 and not known.issuperset(by_lines):
            await asyncio.sleep(NEW_POLL_SECONDS)
            seconds -= NEW_POLL_SECONDS
            known = await store.code_links.existing([*touched.scopes, *by_lines])
        uuids = [uuid for uuid in (*touched.scopes, *by_lines) if uuid in known]
        wanted = list(dict.fromkeys([*uuids, *await self._by_names(store, touched)]))[:MOST_SCOPES]
        if wanted:
            # Who asks for the talks about a class means those about its methods too.
            around = await store.code_links.enclosing(wanted)
            await store.code.link_message(turn.messages[0].uuid, [*wanted, *around])
            await note_aliases(store, [*wanted, *around])

    async def _by_names(self, store: Store, touched: Touched) -> list[str]:
        if not touched.names:
            return []
        known = await store.code_links.named(self._workspace, sorted({name.last for name in touched.names}))
        files = {lines.path for lines in touched.lines}
        return [uuid for name in touched.names if (uuid := chosen(name, known, files))]

    def _by_lines(self, touched: Touched) -> list[str]:
        """Return the uuids of the scopes in the lines of a turn; reads and parses the files as they are now."""
        parsed = {path: scopes_now(self._folder, path) for path in dict.fromkeys(lines.path for lines in touched.lines)}
        return [scope.uuid for lines in touched.lines for scope in in_range(parsed[lines.path], lines)]


def in_range(scopes: Sequence[Scope], lines: Lines) -> list[Scope]:
    """Return the scopes of a file that some lines are about: of the whole file, its module alone."""
    if not lines.first:
        return [scope for scope in scopes if scope.kind == "module"][:1]
    shared = [scope for scope in scopes if scope.start_line <= lines.last and scope.end_line >= lines.first]
    kept: list[Scope] = []
    for scope in sorted(shared, key=lambda scope: scope.end_line - scope.start_line):
        around = any(scope.start_line <= one.start_line and one.end_line <= scope.end_line for one in kept)
        defined = lines.first <= scope.start_line <= lines.last
        if (scope.kind != "module" or not kept) and (defined or not around) and _holds(scope, lines):
            kept.append(scope)
    return kept


def _holds(scope: Scope, lines: Lines) -> bool:
    """Return whether a scope has one of the lines, so that lines of an older text do not mean another scope."""
    own = {line.strip() for line in scope.text.splitlines()}
    return not lines.texts or not own.isdisjoint(lines.texts)
