"""Assembly of a turn when it starts: model, persona, tools for the current mode, and context.

`Conversation` uses it and decides when turns run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from ragforge_tui.conversation.budget import TurnBudget
from ragforge_tui.conversation.memory import ConversationMemory
from ragforge_tui.conversation.own_turns import Doing, OwnTurn
from ragforge_tui.conversation.prompt import system_parts
from ragforge_tui.conversation.tool_runner import ToolRunner
from ragforge_tui.conversation.turn import TurnRunner
from ragforge_tui.conversation.turn_window import TurnWindow
from ragforge_tui.llm import ChatModel
from ragforge_tui.memory.context import BuiltContext
from ragforge_tui.personas import Persona
from ragforge_tui.shared import records
from ragforge_tui.shared.records import Turn
from ragforge_tui.shared.requests.work import Mode
from ragforge_tui.tools.restrictions import RestrictedTools

if TYPE_CHECKING:
    from ragforge_tui.conversation.agent import ConversationAgent

CHARS_PER_TOKEN = 4


class TurnMaker:
    """Factory of the turn runners of one conversation.

    Args:
        window: Its newest turns.
        mode: Returns what the agent may currently do without asking.
    """

    def __init__(
        self,
        agent: ConversationAgent,
        record: records.Conversation,
        window: TurnWindow,
        memory: ConversationMemory,
        mode: Callable[[], Mode],
    ) -> None:
        self._agent = agent
        self._record = record
        self._window = window
        self._memory = memory
        self._mode = mode

    async def replies(self, turn: Turn, stop: asyncio.Event) -> TurnRunner:
        """Return the runner of a turn that a model answers."""
        agent = self._agent
        persona, model, tools = await self._speaker()
        planning = self._mode() == "plan"
        return TurnRunner(
            turn=turn,
            context=await self._context(turn, persona, model, tools, planning=planning),
            persona=persona,
            model=model,
            tools=ToolRunner(
                toolbox=tools,
                recorder=agent.recorder,
                approvals=agent.approvals,
                workspace=agent.workspace,
                emit=agent.emit,
                mode=self._mode,
            ),
            schemas=tools.schemas,
            mode=self._mode,
            planning=planning,
            recorder=agent.recorder,
            emit=agent.emit,
            max_iterations=agent.settings.model.max_iterations,
            stop=stop,
            budget=TurnBudget(
                agent.budget,
                agent.approvals,
                agent.emit,
                conversation_id=self._record.uuid,
                turn_index=turn.turn_index,
            ),
        )

    def own(self, turn: Turn, doing: Doing, stop: asyncio.Event) -> OwnTurn:
        """Return the runner of a turn that the user makes without the model."""
        agent = self._agent
        return OwnTurn(
            turn=turn,
            doing=doing,
            toolbox=agent.toolbox,
            recorder=agent.recorder,
            approvals=agent.approvals,
            workspace=agent.workspace,
            emit=agent.emit,
            stop=stop,
        )

    async def context(self, turn: Turn) -> BuiltContext:
        """Build the context of a turn's requests, without the turn's own messages."""
        persona, model, tools = await self._speaker()
        return await self._context(turn, persona, model, tools, planning=self._mode() == "plan")

    async def _speaker(self) -> tuple[Persona, ChatModel, RestrictedTools]:
        """Return the current persona, its model and its tools."""
        persona = await self._agent.personas.for_turn(self._record.persona)
        allowed_by = f"The persona {persona.name}"
        tools = RestrictedTools(self._agent.toolbox, persona.fields.tools, allowed_by, self._mode)
        return persona, await self._agent.model_for(persona), tools

    async def _context(
        self, turn: Turn, persona: Persona, model: ChatModel, tools: RestrictedTools, *, planning: bool
    ) -> BuiltContext:
        agent = self._agent
        instructions = await agent.workspace_instructions()
        earlier = [past for past in self._window.turns if past.turn_index < turn.turn_index]
        return await self._memory.context(
            turn.messages[0].content,
            turn_index=turn.turn_index,
            turns=earlier,
            first_message=None if agent.recorder.journaling else await self._window.first_message(),
            system=system_parts(agent.workspace, persona, agent.user_name, instructions, planning=planning),
            model=model,
            overhead=len(msgspec.json.encode(tools.schemas())) // CHARS_PER_TOKEN,
        )
