"""The line that memory adds before a call of the agent runs, where there is one.

The user reads it in the question about the call, the model with the call's result or refusal. It never delays a call
noticeably: a late answer is dropped.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Sequence
from datetime import datetime
from pathlib import PurePosixPath

from ragforge_tui.conversation.limits import CONVERSATION
from ragforge_tui.conversation.services import Services
from ragforge_tui.graph import Store
from ragforge_tui.memory.attempts.contradiction import contradicts
from ragforge_tui.memory.attempts.edits import Change, changes_in
from ragforge_tui.memory.attempts.reminder import Decision, Place, Tried, before_command, before_edit, command_keys
from ragforge_tui.memory.language import MONTHS
from ragforge_tui.shared.errors import RagforgeError
from ragforge_tui.shared.finding_records import KeptKind
from ragforge_tui.shared.records import now
from ragforge_tui.shared.sanitize import plain_text
from ragforge_tui.tools.base import ApprovalNeed

log = logging.getLogger(__name__)

_MOST_PLACES = 20
"""Places of an edit whose scopes are looked up."""
_MOST_DECISIONS = 3
_BINDING: tuple[KeptKind, ...] = ("decision", "wish")
_LEAST_LETTERS = 4
"""Letters of a name that means a scope or a file where a text has it."""


class Reminders:
    """Lookup of the lines about the calls of one turn."""

    def __init__(self, services: Services, conversation_id: str, turn_index: int) -> None:
        self._services = services
        self._conversation_id = conversation_id
        self._place = Place(conversation_id, turn_index, _day)
        self._late: set[asyncio.Task[str]] = set()

    async def before(self, need: ApprovalNeed | None) -> str:
        """Return the line about a call, on plain text; empty without one, or if it is not found in time."""
        memory = self._services.settings.agent.memory
        if need is None or need.kind not in ("write", "command") or not memory.enabled:
            return ""
        if self._services.recorder.journaling:
            return ""
        task = asyncio.create_task(self._look(need), name="reminder")
        done, _ = await asyncio.wait({task}, timeout=CONVERSATION.reminder)
        if not done:
            # A statement that is cut off would close its connection; its answer comes too late and is dropped.
            self._late.add(task)
            task.add_done_callback(self._late.discard)
            return ""
        return task.result()

    async def _look(self, need: ApprovalNeed) -> str:
        try:
            store = await self._services.store()
            if need.kind == "command":
                return await self._about_command(store, need.command)
            changes = await asyncio.to_thread(changes_in, need.detail)
            return await self._about_edit(store, changes) if changes else ""
        except RagforgeError as error:
            log.info("nothing said before a call: %s", error)
        except Exception:
            log.exception("nothing said before a call")
        return ""

    async def _tried(self, store: Store, keys: Sequence[str]) -> list[Tried]:
        elsewhere = self._services.settings.agent.memory.recall.scope != "none"
        found = await store.attempts.about(
            str(self._services.workspace), keys, asking=self._conversation_id, elsewhere=elsewhere
        )
        return [Tried(each.attempt, each.title) for each in found]

    async def _about_command(self, store: Store, command: str) -> str:
        keys = command_keys(command)
        tried = await self._tried(store, keys) if keys else []
        return plain_text(before_command(command, tried, self._place)) if tried else ""

    async def _about_edit(self, store: Store, changes: Sequence[Change]) -> str:
        tried, decisions = await asyncio.gather(
            self._tried(store, [change.path for change in changes]), self._decisions(store, changes)
        )
        said = await asyncio.to_thread(before_edit, changes, tried, decisions, self._place)
        return plain_text(said)

    async def _decisions(self, store: Store, changes: Sequence[Change]) -> list[Decision]:
        """Return the decisions that an edit contradicts, of those about a file or scope that it changes."""
        workspace, asking = str(self._services.workspace), self._conversation_id
        places = [(change.path, *place) for change in changes for place in change.places][:_MOST_PLACES]
        found = await asyncio.gather(*(store.code.in_lines(workspace, *place) for place in places))
        scopes = {scope.uuid: scope.name for group in found for scope in group if scope.kind != "module"}
        paths = [change.path for change in changes]
        linked, folders = await asyncio.gather(
            store.findings.about(paths, list(scopes), workspace, asking=asking),
            store.findings.of_folder(workspace, kinds=_BINDING, asking=asking),
        )
        names = {*scopes.values(), *(PurePosixPath(path).name for path in paths)}
        named = [finding for finding in folders if _names(finding.text, names)]
        elsewhere = self._services.settings.agent.memory.recall.scope != "none"
        kept = [
            finding
            for finding in {one.uuid: one for one in (*linked, *named)}.values()
            if finding.kind in _BINDING
            and (elsewhere or finding.conversation_id == asking)
            and contradicts(finding.text, changes)
        ]
        return [
            Decision(
                finding.text,
                finding.conversation_id,
                finding.turn_index,
                (await store.conversations.get(finding.conversation_id)).title,
                finding.since,
            )
            for finding in kept[:_MOST_DECISIONS]
        ]


def _names(text: str, names: set[str]) -> bool:
    """Return whether a text names one of some files or scopes."""
    long = sorted(name for name in names if sum(character.isalpha() for character in name) >= _LEAST_LETTERS)
    return any(re.search(rf"(?<![\w.]){re.escape(name)}(?!\w)", text) for name in long)


def _day(moment: datetime) -> str:
    """Return a day in words, such as ``on 3 October``; with its year if that is another one."""
    local, today = moment.astimezone(), now().astimezone()
    if local.date() == today.date():
        return "today"
    year = f" {local.year}" if local.year != today.year else ""
    return f"on {local.day} {MONTHS['en'][local.month - 1]}{year}"
