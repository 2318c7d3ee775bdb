"""What the memory reads from turns that have ended: findings, attempts, links to code, and words for that code.

Each is work of its own in the background; what a process leaves undone, the next start finds by query.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial

from ragforge_tui.code.called import call_scopes
from ragforge_tui.code.linker import CodeLinker
from ragforge_tui.conversation.attempts import AttemptFinder
from ragforge_tui.conversation.background_work import BackgroundWork
from ragforge_tui.conversation.services import Services
from ragforge_tui.memory.findings.keeper import FindingKeeper
from ragforge_tui.memory.summaries.prompt import LANGUAGE_NAMES
from ragforge_tui.shared.events import FindingsChanged
from ragforge_tui.shared.records import Conversation, Turn

Safely = Callable[[str, Callable[[], Awaitable[None]]], Awaitable[None]]
"""Runs work of a kind; its failure is recorded and does not spread."""


class TurnReaders:
    """Readers of the ended turns of one open conversation.

    Attributes:
        closing: The process ends soon, so that no model is asked any more.

    Args:
        record: The conversation, shared with its `Conversation`.
        said: Stores what messages wish; it comes before their turns are read, whose reading would word it otherwise.
        language: Returns the language of the conversation, empty while it is unknown.
    """

    def __init__(
        self,
        services: Services,
        record: Conversation,
        safely: Safely,
        said: Callable[[], Awaitable[None]],
        language: Callable[[], str],
    ) -> None:
        self._services = services
        self._record = record
        self._settings = services.settings.agent.memory
        self._said = said
        self._language = language
        self.closing = False
        short = record.uuid[:8]
        self.findings = BackgroundWork(f"findings {short}", partial(safely, "findings", self._keep_findings))
        self._code = BackgroundWork(f"code {short}", partial(safely, "code", self._link_code))
        self._called = BackgroundWork(f"called {short}", partial(safely, "called", self._call_code))
        self._attempts = BackgroundWork(f"attempts {short}", partial(safely, "attempts", self._find_attempts))
        self._unread: list[Turn] = []
        """Turns that have ended and were not read for findings yet."""
        self._ended = (record.next_turn - 1, 0)
        """The last turn that has ended, and the same once it ended in this process."""

    def turn_ended(self, turn: Turn) -> None:
        """Take in a turn; `ask` has it read."""
        self._unread.append(turn)
        self._ended = (max(self._ended[0], turn.turn_index), turn.turn_index)

    def turns_moved(self, moved: Mapping[int, int]) -> None:
        """Correct the assumed indexes of turns."""
        first, last = self._ended
        self._ended = moved.get(first, first), moved.get(last, last)

    def ask(self) -> None:
        """Read what was not read yet."""
        for work in (self.findings, self._code, self._attempts):
            work.ask()

    async def settle(self) -> None:
        """Wait until all has been read, except that lines on code are not awaited."""
        await self.findings.settle()
        await self._attempts.settle()
        if self._services.code.state.phase in ("ready", "elsewhere"):
            # Otherwise the links wait for the index, which may take minutes; the next start makes them.
            await self._code.settle()

    async def stop(self) -> None:
        for work in (self.findings, self._code, self._called, self._attempts):
            await work.stop()

    async def _keep_findings(self) -> None:
        """Store what turns decide, leave open, close and replace."""
        if not self._settings.enabled:
            return
        await self._said()
        ended, self._unread = self._unread, []
        wishes = self._settings.remember != "never"
        keeper = FindingKeeper(await self._services.store(), self._record, wishes=wishes)
        if await keeper.read_turns(ended):
            self._services.exports.turn_stored(self._record.uuid)
            self._services.emit(FindingsChanged(conversation_id=self._record.uuid))

    async def _link_code(self) -> None:
        """Link the turns that have ended to the code that they touch or name."""
        services = self._services
        await services.code.wait_indexed()
        if services.code.ready:
            until, ended = self._ended
            linker = CodeLinker(services.store, services.workspace, services.memory.pace)
            await linker.link(self._record.uuid, until=until, ended=ended, wait=services.code.keeps_current)
            self._called.ask()

    async def _call_code(self) -> None:
        """Let the model write what users would call some of the code that turns touched."""
        services = self._services
        if not (services.settings.agent.code.describe and self._settings.enabled) or self.closing:
            return
        model = await services.memory.summary_model("code", self._record.uuid)
        if self._settings.summarization.enabled and model is not None and not services.memory.backoff.seconds_left:
            language = LANGUAGE_NAMES.get(self._language(), "")
            await call_scopes(await services.store(), str(services.workspace), model, language)

    async def _find_attempts(self) -> None:
        """Note what the turns that have ended tried in vain."""
        if self._settings.enabled:
            services = self._services
            until, ended = self._ended
            finder = AttemptFinder(services.store, services.workspace, services.memory.pace)
            await finder.examine(self._record.uuid, until=until, ended=ended)
