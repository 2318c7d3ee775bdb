"""Finding of attempts in stored turns, in the background.

Each conversation notes how far it was examined, so that a crash, an import or a graph that was away leaves nothing out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec

from ragforge_tui.code.current import scopes_now
from ragforge_tui.graph import Store
from ragforge_tui.memory.attempts.edits import line_digests
from ragforge_tui.memory.attempts.finder import LOOK_BACK, FoundAttempts, find_attempts
from ragforge_tui.shared.attempt_records import Attempt
from ragforge_tui.shared.pace import Pace
from ragforge_tui.shared.records import Turn

PAGE_TURNS = 20


class AttemptFinder:
    """Finder of attempts in the conversations of one workspace.

    Args:
        store: Returns the store, waiting while the graph starts.
        pace: When this work may use the processor.
    """

    def __init__(self, store: Callable[[], Awaitable[Store]], workspace: Path, pace: Pace) -> None:
        self._store = store
        self._folder = workspace
        self._workspace = str(workspace)
        self._pace = pace

    async def examine(self, conversation_id: str, *, until: int, ended: int = 0) -> None:
        """Store the attempts of the turns that were not examined yet.

        Args:
            until: The last turn that has ended.
            ended: A turn that has just ended; it is examined again if it was before, since it may be a retry.
        """
        store = await self._store()
        through = await store.attempts.through(conversation_id)
        through = min(through, ended - 1) if ended else through
        while through < until:
            await self._pace.clear()
            end = min(through + PAGE_TURNS, until)
            start = max(1, through + 1 - LOOK_BACK)
            turns = await store.turns.between(conversation_id, start=start, end=end + 1)
            if not turns or turns[-1].messages[-1].state == "streaming":
                return
            await self._examine(store, conversation_id, turns, through)
            through = end
            await store.attempts.set_through(conversation_id, through)

    async def _examine(self, store: Store, conversation_id: str, turns: list[Turn], through: int) -> None:
        found: FoundAttempts = await asyncio.to_thread(find_attempts, turns, self._workspace, after=through)
        if found.attempts:
            await store.attempts.add(await asyncio.to_thread(self._placed, found.attempts))
        if found.redone:
            await store.attempts.redone(conversation_id, found.redone)
        if found.keys:
            known = await store.attempts.about(self._workspace, found.keys, asking=conversation_id)
            before = [each.attempt for each in known if _ended_before(each.attempt, conversation_id, through + 1)]
            over = await asyncio.to_thread(lambda: [each.uuid for each in before if found.settles(each)])
            if over:
                await store.attempts.set_over(over)

    async def catch_up(self, leave: set[str]) -> None:
        """Examine the turns of all conversations of the workspace except those that are open."""
        store = await self._store()
        for behind in await store.attempts.unexamined(self._workspace):
            if behind.conversation_id not in leave:
                await self.examine(behind.conversation_id, until=behind.last)

    def _placed(self, attempts: list[Attempt]) -> list[Attempt]:
        """Return attempts with the scopes that they were in; reads and parses their files as they are now.

        What was undone or refused left the lines that it would have removed.
        """
        by_path = {path: scopes_now(self._folder, path) for path in {each.key for each in attempts if each.marks}}
        placed = []
        for attempt in attempts:
            scopes = by_path.get(attempt.key, []) if attempt.marks else []
            wanted = {mark[1:] for mark in attempt.marks if mark[0] == "-"}
            inside = [scope for scope in scopes if wanted & line_digests(scope.text)]
            inner = sorted(inside, key=lambda scope: scope.end_line - scope.start_line)[:1]
            placed.append(msgspec.structs.replace(attempt, scopes=[scope.uuid for scope in inner]))
        return placed


def _ended_before(attempt: Attempt, conversation_id: str, turn: int) -> bool:
    return attempt.conversation_id != conversation_id or attempt.end_turn < turn
