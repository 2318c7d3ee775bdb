"""Turns that a person makes without the model: a command of theirs, an undo.

Stored like any other turn, so that it is shown alike live and resumed, exported, summarised and sent later: what was
typed is the user message, and one message of role ``system`` holds the call that was made. That role tells it from
what a model said: nobody answers such a turn, a retry does not ask again for it, and a request holds it as the
person's words with the result, never as a call the model made (see `memory.history`).
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable
from pathlib import Path

import msgspec

from ragforge_tui.conversation.approvals import Approvals
from ragforge_tui.conversation.recorder import Recorder
from ragforge_tui.conversation.tool_runner import ToolRunner
from ragforge_tui.conversation.turn import STOP_POLL_SECONDS, Stopped, error_info, until_stopped
from ragforge_tui.events import Event, MessageFinished, TurnCancelled, TurnCompleted, TurnEnd, TurnFailed
from ragforge_tui.graph import writer_id
from ragforge_tui.llm import ToolRequest
from ragforge_tui.models import Message, Turn, now
from ragforge_tui.tools import Access, PreparedCall, Toolbox


class Doing(msgspec.Struct, frozen=True):
    """What a person does in a turn of their own: the tool, and its arguments as JSON."""

    tool: str
    arguments: str


class Waiting(msgspec.Struct, frozen=True):
    """What was typed and has not begun; with `doing` no model is asked."""

    text: str
    message_id: str
    doing: Doing | None = None


class _PersonsTools:
    """The toolbox as the person uses it: without being asked."""

    def __init__(self, toolbox: Toolbox) -> None:
        self._toolbox = toolbox

    def access(self, name: str) -> Access:
        return "command"

    async def prepare(self, name: str, arguments: str) -> PreparedCall:
        return await self._toolbox.prepare_for_person(name, arguments)

    def check(self, name: str) -> None:
        """The person may do anything in any mode."""


class OwnTurn:
    """Runs one such turn, whose user message is stored.

    Args:
        turn: The turn so far; the message with the call is added to it.
        stop: Set by whoever wants the turn to end.
    """

    def __init__(
        self,
        *,
        turn: Turn,
        doing: Doing,
        toolbox: Toolbox,
        recorder: Recorder,
        approvals: Approvals,
        workspace: Path,
        emit: Callable[[Event], None],
        stop: asyncio.Event,
    ) -> None:
        self._turn = turn
        self._doing = doing
        self._recorder = recorder
        self._emit = emit
        self._stop = stop
        self._tools = ToolRunner(
            toolbox=_PersonsTools(toolbox),
            recorder=recorder,
            approvals=approvals,
            workspace=workspace,
            emit=emit,
            mode=lambda: "ask",
        )

    async def run(self) -> TurnEnd:
        """Run to the end; returns the turn's last event, which the caller emits when the turn is free again."""
        conversation_id, turn_index = self._turn.messages[0].conversation_id, self._turn.turn_index
        watcher = asyncio.create_task(self._watch_for_stop(conversation_id))
        try:
            # A stop comes after it: without this message the turn would look like one that waits for an answer.
            message = await self._store_message(conversation_id)
            await until_stopped(self._do(message), self._stop)
        except Stopped:
            await self._mark_interrupted()
            return TurnCancelled(conversation_id=conversation_id, turn_index=turn_index)
        except Exception as error:
            return TurnFailed(error=error_info(error), conversation_id=conversation_id, turn_index=turn_index)
        finally:
            watcher.cancel()
            await asyncio.gather(watcher, return_exceptions=True)
        return TurnCompleted(text="", conversation_id=conversation_id, turn_index=turn_index)

    async def _store_message(self, conversation_id: str) -> Message:
        message = await self._recorder.add_message(
            Message(
                uuid=uuid.uuid4().hex,
                conversation_id=conversation_id,
                turn_index=self._turn.turn_index,
                role="system",
                writer=writer_id(),
                timestamp=now(),
            )
        )
        self._turn.messages.append(message)
        self._emit(
            MessageFinished(
                conversation_id=conversation_id,
                turn_index=message.turn_index,
                message=msgspec.structs.replace(message, tool_calls=[]),
            )
        )
        return message

    async def _do(self, message: Message) -> None:
        request = ToolRequest(id=uuid.uuid4().hex, name=self._doing.tool, arguments=self._doing.arguments)
        await self._tools.run(message, [request], 1)

    async def _mark_interrupted(self) -> None:
        message = self._turn.messages[-1]
        message.state = "interrupted"
        await self._recorder.finish_message(message)

    async def _watch_for_stop(self, conversation_id: str) -> None:
        """See a stop that another process asks for through the graph."""
        while not self._stop.is_set():
            await asyncio.sleep(STOP_POLL_SECONDS)
            if await self._recorder.stop_requested(conversation_id, self._turn.turn_index):
                self._stop.set()
