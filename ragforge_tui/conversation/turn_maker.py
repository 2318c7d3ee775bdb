"""What a turn of a conversation needs, put together when it begins: model, persona, tools in their mode, context.

Used by `Conversation`, which decides when turns run; here is only what they are made of.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from ragforge_tui import models
from ragforge_tui.conversation.budget import TurnBudget
from ragforge_tui.conversation.memory import ConversationMemory
from ragforge_tui.conversation.own_turns import Doing, OwnTurn
from ragforge_tui.conversation.prompt import system_parts
from ragforge_tui.conversation.tool_runner import ToolRunner
from ragforge_tui.conversation.turn import TurnRunner
from ragforge_tui.conversation.turn_window import TurnWindow
from ragforge_tui.llm import ChatModel
from ragforge_tui.memory.context import BuiltContext
from ragforge_tui.models import Turn
from ragforge_tui.personas import Persona
from ragforge_tui.requests.work import Mode
from ragforge_tui.tools.modes import ModeTools
from ragforge_tui.tools.narrowed import NarrowedTools

if TYPE_CHECKING:
    from ragforge_tui.conversation.agent import ConversationAgent

CHARS_PER_TOKEN = 4


class TurnMaker:
    """Makes the runners of one conversation's turns.

    Args:
        window: Its newest turns.
        mode: What the agent may do without asking, as it is now.
    """

    def __init__(
        self,
        agent: ConversationAgent,
        record: models.Conversation,
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
        """The runner of a turn that a model answers."""
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
        """The runner of a turn the person makes without the model."""
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
        """What the requests of a turn would hold before its own messages."""
        persona, model, tools = await self._speaker()
        return await self._context(turn, persona, model, tools, planning=self._mode() == "plan")

    async def _speaker(self) -> tuple[Persona, ChatModel, ModeTools]:
        """Who speaks, with which model and which tools."""
        persona = await self._agent.personas.for_turn(self._record.persona)
        narrowed = NarrowedTools(self._agent.toolbox, persona.fields.tools, f"The persona {persona.name}")
        return persona, await self._agent.model_for(persona), ModeTools(narrowed, self._mode)

    async def _context(
        self, turn: Turn, persona: Persona, model: ChatModel, tools: ModeTools, *, planning: bool
    ) -> BuiltContext:
        agent = self._agent
        instructions = await agent.workspace_instructions()
        earlier = [known for known in self._window.turns if known.turn_index < turn.turn_index]
        return await self._memory.context(
            turn.messages[0].content,
            turn_index=turn.turn_index,
            turns=earlier,
            first_message=None if agent.recorder.journaling else await self._window.first_message(),
            system=system_parts(agent.workspace, persona, agent.user_name, instructions, planning=planning),
            model=model,
            overhead=len(msgspec.json.encode(tools.schemas())) // CHARS_PER_TOKEN,
        )
