"""kill -9 at random points, and what must hold afterwards.

A conversation goes on, one message after another, on an embedded graph of its own, while the graph's server, the
engine or the engine host is killed at a random moment: between turns, during them, inside a tool call.
Or each conversation begins when nothing runs, and the kill falls while the graph starts and the journal takes its
records, or while that is drained. Used by the tests with a few seeded points; `benchmarks.kills` makes any number of
the first.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import uuid
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Literal

import msgspec

from ragforge_tui.conversation import ConversationAgent
from ragforge_tui.engine.client import ChildEngine
from ragforge_tui.engine.warm.client import host_pid
from ragforge_tui.graph import JournalFolders, server_status
from ragforge_tui.settings.schema import Loaded
from ragforge_tui.shared.errors import STORED_ALREADY, EngineGoneError, GraphError, RagforgeError
from ragforge_tui.shared.events import ApprovalRequested, TurnCompleted, TurnEnd, TurnsMoved
from ragforge_tui.shared.records import Turn
from ragforge_tui.shared.requests.turns import CreateConversation, OpenConversation, SendMessage
from ragforge_tui.shared.requests.work import AnswerApproval
from tests.support.openai_server import OpenAIServer

Victim = Literal["server", "engine", "host"]
VICTIMS: tuple[Victim, ...] = ("server", "engine", "host")
TURN_SECONDS = 1.2
"""About as long as a scripted turn takes; a kill falls anywhere in it or in the pause after it."""
START_SECONDS = 1.5
"""About as long as the graph takes to start and to take over the journal."""
PATIENCE = 240.0
LAST = "last"
ANSWER = "the whole answer, word by word, " * 6


ATTEMPTS = 4
"""Times a message may reach the model: each kill of an engine may cost one."""


def question(point: object) -> str:
    """A message that no other one contains."""
    return f"<{point}>, please"


def answer_to(asked: str) -> str:
    """The one right answer."""
    return f"{ANSWER}{asked}"


def script(points: Iterable[object]) -> list[dict[str, object]]:
    """Replies for those messages and their repetitions: each runs a command, then answers slowly."""
    command = {"name": "run_command", "arguments": {"command": "sleep 0.3; echo ran"}}
    steps: list[dict[str, object]] = []
    for asked in map(question, points):
        turn: list[dict[str, object]] = [
            {"tool_calls": [command], "match": asked},
            {"text": answer_to(asked), "duration": 0.5, "match": asked},
        ]
        steps += turn * ATTEMPTS
    return steps


class Outcome(msgspec.Struct, kw_only=True):
    """What was promised while things were killed.

    Attributes:
        acknowledged: Ids of messages whose storing was confirmed, in order.
        completed: Index of each turn whose end was announced as complete.
    """

    conversation_id: str
    acknowledged: list[str] = []
    completed: list[int] = []
    kills: list[str] = []


class KillRun:
    """One conversation under fire."""

    def __init__(
        self, loaded: Loaded, seed: int, *, seconds: float = TURN_SECONDS * 1.3, conversation_id: str = ""
    ) -> None:
        self._loaded = loaded
        self._seconds = seconds
        self._random = random.Random(seed)
        self._engine: ChildEngine | None = None
        self.outcome = Outcome(conversation_id=conversation_id)

    async def run(self, points: int) -> Outcome:
        """Hold a conversation of about `points` turns with one kill in each."""
        for point in range(points):
            victim = self._random.choice(VICTIMS)
            delay = self._random.uniform(0.0, self._seconds)
            turn = asyncio.create_task(self.one_turn(question(point)))
            await asyncio.sleep(delay)
            self.outcome.kills.append(f"{victim} after {delay:.2f} s in turn {point}")
            self.kill(victim)
            await asyncio.wait_for(turn, PATIENCE)
        await self.one_turn(question(LAST))
        await self.close()
        return self.outcome

    async def close(self) -> None:
        """End the engine in order."""
        if self._engine is not None:
            await self._engine.close()

    async def _connected(self) -> ChildEngine:
        if self._engine is None or self._engine._gone:
            self._engine = await ChildEngine.start(self._loaded)
            if not self.outcome.conversation_id:
                view = await self._engine.request(CreateConversation(title="under fire"))
                self.outcome.conversation_id = view.conversation.uuid
            else:
                await self._engine.request(OpenConversation(ref=self.outcome.conversation_id))
        return self._engine

    async def one_turn(self, text: str) -> None:
        """Send until it is acknowledged, with the same id; then wait for the end, or for the engine to be killed."""
        message_id = uuid.uuid4().hex
        while True:
            try:
                engine = await self._connected()
                await engine.request(
                    SendMessage(conversation_id=self.outcome.conversation_id, message_id=message_id, text=text)
                )
            except EngineGoneError:
                continue
            except RagforgeError as error:
                if error.info.kind == STORED_ALREADY:
                    self.outcome.acknowledged.append(message_id)
                    return  # A killed engine had begun to answer it.
                # Nothing was acknowledged: on a slow machine the graph comes back later than a request waits.
                if not error.info.kind.startswith("graph"):
                    raise
                await asyncio.sleep(0.5)
                continue
            self.outcome.acknowledged.append(message_id)
            break
        async for event in engine.events():
            if isinstance(event, ApprovalRequested):
                with suppress(EngineGoneError):
                    await engine.request(AnswerApproval(approval_id=event.approval_id, decision="session"))
            if isinstance(event, TurnsMoved) and event.conversation_id == self.outcome.conversation_id:
                self.outcome.completed = [event.moved.get(index, index) for index in self.outcome.completed]
            if isinstance(event, TurnCompleted):
                self.outcome.completed.append(event.turn_index)
            if isinstance(event, TurnEnd):
                return

    def kill(self, victim: Victim) -> None:
        """Kill it, if it runs."""
        if victim == "engine":
            pid = self._engine.pid if self._engine is not None and not self._engine._gone else 0
        elif victim == "host":
            pid = host_pid(self._loaded) or 0
        else:
            address = server_status(self._loaded.paths)
            pid = 0 if address is None else address.pid
        if pid:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                self.outcome.kills.append(f"{victim} was gone")


async def read_back(loaded: Loaded, conversation_id: str) -> list[Turn]:
    """All turns as a new process reads them."""
    async with ConversationAgent(loaded) as reader, asyncio.timeout(PATIENCE):
        while True:
            try:
                return await (await reader.load_conversation(conversation_id)).get_history()
            except GraphError:
                await asyncio.sleep(0.5)


def broken_promises(outcome: Outcome, turns: list[Turn]) -> list[str]:
    """What does not hold of what was promised; empty when all does."""
    broken: list[str] = []
    indexes = [turn.turn_index for turn in turns]
    if indexes != list(range(1, len(turns) + 1)):
        broken.append(f"turn indexes {indexes}")
    stored = [turn.messages[0].uuid for turn in turns]
    for message_id in outcome.acknowledged:
        if stored.count(message_id) != 1:
            broken.append(f"acknowledged message {message_id} is stored {stored.count(message_id)} times")
    for turn in turns:
        positions = [message.position for message in turn.messages]
        if positions != list(range(len(positions))):
            broken.append(f"turn {turn.turn_index} has positions {positions}")
        last, right = turn.messages[-1], answer_to(turn.messages[0].content)
        if turn.turn_index in outcome.completed and (last.state, last.content) != ("complete", right):
            broken.append(f"completed turn {turn.turn_index} ends {last.state} with {len(last.content)} characters")
        answers = [m.content for m in turn.messages if m.role == "assistant" and m.state == "complete" and m.content]
        if answers not in ([], [right]):
            broken.append(f"turn {turn.turn_index}, {turn.messages[0].content}: {len(answers)} answers, {answers}")
        broken += [
            f"a message of turn {turn.turn_index} is still streaming"
            for message in turn.messages
            if message.state == "streaming"
        ]
    return broken


async def survive(loaded: Loaded, server: OpenAIServer, *, points: int, seed: int) -> tuple[Outcome, list[str]]:
    """Run and check; returns what happened and which promises were broken."""
    server.script(script([*range(points), LAST]))
    run = KillRun(loaded, seed)
    try:
        outcome = await run.run(points)
    except BaseException as error:
        error.add_note(f"killed: {run.outcome.kills}")
        raise
    turns = await read_back(loaded, outcome.conversation_id)
    return outcome, broken_promises(outcome, turns)


async def survive_cold_starts(
    loaded: Loaded, server: OpenAIServer, *, points: int, seed: int
) -> list[tuple[Outcome, list[str]]]:
    """Begin that many conversations when nothing runs, with one kill in each; what happened and what was broken."""
    server.script(script([0, LAST]) * points)
    outcomes = []
    for point in range(points):
        _kill_graph(loaded)
        outcomes.append(await KillRun(loaded, seed * 1_000 + point, seconds=START_SECONDS).run(1))
    checked = []
    for outcome in outcomes:
        broken = broken_promises(outcome, await read_back(loaded, outcome.conversation_id))
        checked.append((outcome, broken))
    left = JournalFolders(Path(loaded.paths.state, "journal")).waiting()
    checked[-1][1].extend(f"the journal of {info.name} holds {info.amount()}, {info.refused} refused" for info in left)
    return checked


def _kill_graph(loaded: Loaded) -> None:
    """Kill the server, so that the next chat starts one."""
    address = server_status(loaded.paths)
    if address is not None:
        with suppress(ProcessLookupError):
            os.kill(address.pid, signal.SIGKILL)
