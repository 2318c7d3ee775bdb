"""Turns that the user runs without the model: a shell command or an undo.

They are stored like any other turn, so that they look the same live and resumed, and are exported, summarised and sent
like others. The typed text is the user message, and one message of role ``system`` holds the tool call. That role
separates it from a reply of the model: such a turn gets no answer, a retry skips it, and a request contains it as the
user's words with the result, never as a call by the model (see `memory.history`).
"""

from __future__ import annotations

import asyncio
import uuid
from typing import Any

import msgspec

from ragforge_tui.conversation.services import Services
from ragforge_tui.conversation.turn.runner import Stopped, error_info, stop_on_request, until_stopped
from ragforge_tui.conversation.turn.steering import UserCall
from ragforge_tui.conversation.turn.tool_runner import ToolRunner
from ragforge_tui.graph import writer_id
from ragforge_tui.llm import ToolRequest
from ragforge_tui.shared.events import MessageFinished, TurnCancelled, TurnCompleted, TurnEnd, TurnFailed
from ragforge_tui.shared.records import Message, Turn, now
from ragforge_tui.shared.tool_calls import ToolAccess
from ragforge_tui.tools.registry import PreparedCall, Toolbox


class _UserTools:
    """Toolbox for the user's own calls, which need no approval."""

    def __init__(self, toolbox: Toolbox) -> None:
        self._toolbox = toolbox

    def access(self, name: str) -> ToolAccess:
        return "command"

    async def prepare(self, name: str, arguments: str) -> PreparedCall:
        return await self._toolbox.prepare_for_user(name, arguments)

    def check(self, name: str) -> None:
        """Accept every tool: modes restrict the agent, not the user."""


class UserTurn:
    """Runner of one such turn, whose user message is already stored.

    Args:
        turn: The turn so far; the message with the call is added to it.
        stop: Event that ends the turn when it is set.
    """

    def __init__(self, services: Services, turn: Turn, call: UserCall, stop: asyncio.Event) -> None:
        self._turn = turn
        self._call = call
        self._recorder = services.recorder
        self._emit = services.emit
        self._stop = stop
        self._tools = ToolRunner(
            toolbox=_UserTools(services.toolbox),
            recorder=services.recorder,
            approvals=services.approvals,
            workspace=services.workspace,
            emit=services.emit,
            mode=lambda: "ask",
        )

    async def run(self) -> TurnEnd:
        """Run the turn and return its final event, which the caller emits once the conversation is free again."""
        try:
            async with stop_on_request(self._recorder, self._turn, self._stop):
                # Not stoppable: without this message the turn would look as if it waited for an answer.
                message = await self._store_message()
                request = ToolRequest(id=uuid.uuid4().hex, name=self._call.tool, arguments=self._call.arguments)
                await until_stopped(self._tools.run(message, [request], 1), self._stop)
        except Stopped:
            message = self._turn.messages[-1]
            message.state = "interrupted"
            await self._recorder.finish_message(message, self._turn.messages[0].uuid)
            return TurnCancelled(**self._where)
        except Exception as error:
            return TurnFailed(error=error_info(error), **self._where)
        return TurnCompleted(text="", **self._where)

    @property
    def _where(self) -> dict[str, Any]:
        return {"conversation_id": self._turn.messages[0].conversation_id, "turn_index": self._turn.turn_index}

    async def _store_message(self) -> Message:
        message = await self._recorder.add_message(
            Message(uuid=uuid.uuid4().hex, role="system", writer=writer_id(), timestamp=now(), **self._where),
            self._turn.messages[0].uuid,
        )
        self._turn.messages.append(message)
        self._emit(MessageFinished(message=msgspec.structs.replace(message, tool_calls=[]), **self._where))
        return message
