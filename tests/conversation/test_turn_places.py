"""Each answer stays with its question, whoever writes and whenever the graph is away.

A model of several programs on one conversation: real recorders and real journals, interleaved at every operation of
the store, which may be lost before it is done or before it is acknowledged, in the middle of a drain as well. In the
end the graph holds exactly what was acknowledged, each message in the turn of its question.

The breadth comes from a stand-in of the store's operations, which take microseconds; the same schedules run against
both backends with fewer examples. Many more: ``RAGFORGE_SCHEDULES=3000`` with a run of this file by hand.
"""

from __future__ import annotations

import asyncio
import logging
import os
import tempfile
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Protocol, TypeVar, cast

import msgspec
import pytest
from hypothesis import HealthCheck, Verbosity, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from ragforge_tui.conversation.storage import recorder as recorder_module
from ragforge_tui.conversation.storage.graph_connection import GraphConnection
from ragforge_tui.conversation.storage.recorder import Recorder
from ragforge_tui.graph import Graph, Journal, Store
from ragforge_tui.shared.errors import ErrorInfo, GraphUnavailableError, NotFoundError
from ragforge_tui.shared.records import Conversation, Message, ToolCall, ToolResult, Turn, now
from tests.conftest import empty
from tests.support.property_tests import PROFILE
from tests.support.records import call_of, conversation, message

T = TypeVar("T")
ADDRESS = "a"
SCHEDULES = int(os.environ.get("RAGFORGE_SCHEDULES", "20" if PROFILE == "short" else "250"))
STEPS = 40
WRITERS = st.integers(0, 3)


class Tables(Protocol):
    """What the model asks of a store in the end."""

    async def turns_of(self, conversation_id: str) -> list[Turn]: ...


class StandIn:
    """The store's operations in memory, with the rules of its statements: see `graph/store/messages.py`."""

    def __init__(self) -> None:
        self.graph = SimpleNamespace(identity="g" * 8, identify=self._identify)
        self.rows: dict[str, Message] = {}
        self.calls: dict[str, ToolCall] = {}
        self.known: dict[str, Conversation] = {}
        self.next_turn: dict[str, int] = {}
        self.conversations = SimpleNamespace(create=self._create, get=self._get)
        self.messages = SimpleNamespace(
            begin_turn=self._begin_turn, add=self._add, finish=self._finish, places=self._places
        )
        self.tool_calls = SimpleNamespace(start=self._start, finish=self._finish_call)
        self.contexts = SimpleNamespace()

    async def _identify(self) -> str:
        return self.graph.identity

    async def _create(self, c: Conversation) -> Conversation:
        self.next_turn.setdefault(c.uuid, 1)
        return self.known.setdefault(c.uuid, msgspec.structs.replace(c))

    async def _get(self, uuid: str) -> Conversation:
        if uuid not in self.known:
            raise NotFoundError("none")
        return self.known[uuid]

    async def _begin_turn(self, m: Message) -> Message:
        if m.uuid not in self.rows:
            await self._get(m.conversation_id)
            index = self.next_turn[m.conversation_id]
            self.next_turn[m.conversation_id] += 1
            self.rows[m.uuid] = msgspec.structs.replace(m, turn_index=index, position=0)
        return msgspec.structs.replace(self.rows[m.uuid])

    async def _add(self, m: Message, turn_id: str) -> Message:
        if m.uuid not in self.rows:
            await self._get(m.conversation_id)
            if turn_id not in self.rows:
                raise NotFoundError("no such turn")
            index = self.rows[turn_id].turn_index
            taken = [o.position for o in self._in(m.conversation_id) if o.turn_index == index]
            self.rows[m.uuid] = msgspec.structs.replace(m, turn_index=index, position=max(taken, default=-1) + 1)
        return msgspec.structs.replace(self.rows[m.uuid])

    async def _finish(self, m: Message, turn_id: str) -> None:
        if m.uuid not in self.rows:
            await (self._begin_turn(m) if m.uuid == turn_id else self._add(m, turn_id))
        row = self.rows[m.uuid]
        row.content, row.state = m.content, m.state

    async def _places(self, turn_ids: list[str]) -> dict[str, int]:
        return {uuid: self.rows[uuid].turn_index for uuid in turn_ids if uuid in self.rows}

    async def _start(self, c: ToolCall, conversation_id: str) -> None:
        self.calls.setdefault(c.uuid, msgspec.structs.replace(c))

    async def _finish_call(self, c: ToolCall, workspace: str) -> None:
        self.calls[c.uuid] = msgspec.structs.replace(c)

    def _in(self, conversation_id: str) -> list[Message]:
        return [row for row in self.rows.values() if row.conversation_id == conversation_id]

    async def turns_of(self, conversation_id: str) -> list[Turn]:
        turns: dict[int, Turn] = {}
        for row in sorted(self._in(conversation_id), key=lambda row: (row.turn_index, row.position)):
            row.tool_calls = [call for call in self.calls.values() if call.message_id == row.uuid]
            turns.setdefault(row.turn_index, Turn(turn_index=row.turn_index)).messages.append(row)
        return list(turns.values())


class RealTables:
    """The turns in a real graph."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def turns_of(self, conversation_id: str) -> list[Turn]:
        return await self._store.turns.between(conversation_id, start=1, end=10_000)


class Weather:
    """Whether the graph can be reached, and what happens in between two of its operations."""

    def __init__(self) -> None:
        self.up = True
        self.left: int | None = None
        """Operations until the graph goes away."""
        self.done_first = False
        """Whether the last of them is done, though nobody learns of it."""
        self.between: list[Callable[[], Awaitable[object]]] = []
        """What other tasks do while a drain waits for the graph."""


class Reached:
    """A store reached through the weather."""

    def __init__(self, store: Any, weather: Weather) -> None:
        self.graph = store.graph
        self._store = store
        self._weather = weather

    def __getattr__(self, name: str) -> Any:
        return _Repository(getattr(self._store, name), self._weather)


class _Repository:
    def __init__(self, repository: Any, weather: Weather) -> None:
        self._repository = repository
        self._weather = weather

    def __getattr__(self, name: str) -> Any:
        async def call(*args: Any, **kwargs: Any) -> Any:
            weather = self._weather
            if weather.between:
                await weather.between.pop()()
            if not weather.up:
                raise GraphUnavailableError("away")
            if weather.left is not None:
                weather.left -= 1
                if weather.left < 0:
                    weather.up, weather.left = False, None
                    if weather.done_first:
                        await getattr(self._repository, name)(*args, **kwargs)
                    raise GraphUnavailableError("away")
            return await getattr(self._repository, name)(*args, **kwargs)

        return call


class Connection:
    """What a recorder needs of `GraphConnection`; it connects again when the model wants it."""

    def __init__(self, store: Reached) -> None:
        self.store = store
        self.state = SimpleNamespace(phase="ready")

    async def store_for_record(self) -> Reached:
        if self.state.phase != "ready":
            raise GraphUnavailableError("away")
        return self.store

    def lost(self, error: ErrorInfo) -> None:
        self.state.phase = "unreachable"

    def set_journaled(self, count: int) -> None:
        pass


class Program:
    """One program that talks, an operation at a time; a turn is a question, a reply with a call, and the answer."""

    def __init__(self, name: str, root: Path, store: Reached, conversation_id: str) -> None:
        self.name = name
        self._conversation_id = conversation_id
        self._connection = Connection(store)
        self._journal = Journal(root, ADDRESS)
        self.recorder = Recorder(self._journal, cast(GraphConnection, self._connection))
        self.turn: Turn | None = None
        self._call: ToolCall | None = None
        self._stage = 0
        self._count = 0
        self.stepping = False

    @property
    def connected(self) -> bool:
        return self._connection.state.phase == "ready"

    async def step(self, acknowledged: dict[str, list[Message]]) -> None:
        """Do the next operation of a turn; what returns is acknowledged."""
        if self.stepping:
            return
        self.stepping = True
        try:
            await self._step(acknowledged)
        finally:
            self.stepping = False

    async def _step(self, acknowledged: dict[str, list[Message]]) -> None:
        recorder, stage = self.recorder, self._stage
        if stage == 0 or self.turn is None:
            self._count += 1
            asked = await recorder.begin_turn(message(self._conversation_id, content=f"{self.name}{self._count}?"))
            self.turn = Turn(turn_index=asked.turn_index, messages=[asked])
            acknowledged[asked.uuid] = [msgspec.structs.replace(asked)]
            self._stage = 1
            return
        turn_id = self.turn.messages[0].uuid
        told = acknowledged[turn_id]
        if stage in (1, 5):
            reply = message(self._conversation_id, role="assistant", state="streaming", turn_index=self.turn.turn_index)
            self.turn.messages.append(await recorder.add_message(reply, turn_id))
            told.append(msgspec.structs.replace(reply))
        elif stage in (2, 6):
            reply = self.turn.messages[-1]
            reply.content, reply.state = f"{self.turn.messages[0].content} {stage}", "complete"
            await recorder.finish_message(reply, turn_id)
            told[-1].content, told[-1].state = reply.content, reply.state
        elif stage == 3:
            self._call = call_of(self.turn.messages[-1].uuid)
            await recorder.start_tool_call(self._call, self.turn.messages[-1])
        elif self._call is not None:
            self._call.success = True
            self._call.result = ToolResult(
                uuid=f"{self._call.uuid}r", tool_call_id=self._call.uuid, success=True, result="{}", timestamp=now()
            )
            await recorder.finish_tool_call(self._call, "/w")
            told[-1].tool_calls = [self._call]
        self._stage = (stage + 1) % 7

    async def reconnect(self) -> None:
        """Find the graph again, as `GraphConnection` and the agent do."""
        try:
            places = await self.recorder.drain(cast(Store, self._connection.store))
        except GraphUnavailableError:
            return
        if self.turn is not None:
            self.turn.turn_index = places.get(self.turn.messages[0].uuid, self.turn.turn_index)
        self._connection.state.phase = "ready"

    def die(self) -> None:
        """End without a word; the next program drains what is left."""
        self._journal.close()


class TurnPlaces(RuleBasedStateMachine):
    """The schedules."""

    store: Any
    tables: Tables
    run: Callable[[Coroutine[Any, Any, Any]], Any]

    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory()
        self.weather = Weather()
        self.reached = Reached(self.store, self.weather)
        self.conversation = conversation()
        self.acknowledged: dict[str, list[Message]] = {}
        self.programs: list[Program] = []
        self.started = 0

    @initialize(count=st.integers(2, 4))
    def start(self, count: int) -> None:
        self.run(self.store.conversations.create(self.conversation))
        for _ in range(count):
            self._start_one()

    def _start_one(self) -> Program:
        self.started += 1
        root = Path(self._folder.name, "journal")
        program = Program(f"p{self.started}.", root, self.reached, self.conversation.uuid)
        self.programs.append(program)
        return program

    def _of(self, number: int) -> Program:
        return self.programs[number % len(self.programs)]

    @rule(number=WRITERS, steps=st.integers(1, 7))
    def talk(self, number: int, steps: int) -> None:
        program = self._of(number)
        for _ in range(steps):
            self.run(program.step(self.acknowledged))

    @precondition(lambda self: self.weather.up)
    @rule(operations=st.integers(0, 9), done_first=st.booleans())
    def go_away(self, operations: int, done_first: bool) -> None:
        self.weather.left, self.weather.done_first = operations, done_first

    @rule()
    def come_back(self) -> None:
        self.weather.up, self.weather.left = True, None

    @rule(number=WRITERS, meanwhile=st.lists(WRITERS, max_size=4))
    def drain(self, number: int, meanwhile: list[int]) -> None:
        """Connect again, while others, or this one itself, go on with their turns."""
        program = self._of(number)
        if program.connected:
            return

        def step_of(one: Program) -> Callable[[], Awaitable[object]]:
            return lambda: one.step(self.acknowledged)

        # Who is connected would take its own place in `between`.
        self.weather.between = [step_of(self._of(other)) for other in meanwhile if not self._of(other).connected]
        self.run(program.reconnect())
        self.weather.between = []

    @rule(number=WRITERS)
    def die(self, number: int) -> None:
        program = self._of(number)
        program.die()
        self.programs.remove(program)
        # A program that starts reads the conversation, so it needs the graph for that.
        heir = self._start_one()
        if not self.weather.up:
            heir._connection.state.phase = "unreachable"

    def teardown(self) -> None:
        try:
            if self.programs:
                self._check()
        finally:
            self._folder.cleanup()

    def _check(self) -> None:
        self.come_back()
        for program in self.programs:
            self.run(program.reconnect())
        self._start_one()
        self.run(self.programs[-1].reconnect())
        left = [path for path in Path(self._folder.name).rglob("*") if path.suffix in (".jsonl", ".rejected")]
        assert left == [], [path.read_text() for path in left]
        turns = self.run(self.tables.turns_of(self.conversation.uuid))
        assert [turn.turn_index for turn in turns] == list(range(1, len(turns) + 1))
        stored = {turn.messages[0].uuid: turn for turn in turns}
        assert set(stored) == set(self.acknowledged)
        for turn_id, told in self.acknowledged.items():
            turn = stored[turn_id]
            assert [m.position for m in turn.messages] == list(range(len(told)))
            assert [_summary(m) for m in turn.messages] == [_summary(m) for m in told]
        for program in self.programs:
            if program.turn is not None:
                assert program.turn.turn_index == stored[program.turn.messages[0].uuid].turn_index


def _summary(m: Message) -> tuple[str, str, str, list[str]]:
    done = [call.uuid for call in m.tool_calls if call.result is not None]
    # A graph's reader reports a streaming message without a living writer as interrupted.
    return m.uuid, m.content, "open" if m.state in ("streaming", "interrupted") else m.state, done


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """Count no tokens and wait for no disk: neither has to do with places."""

    async def uncounted(_: Message) -> None:
        return None

    monkeypatch.setattr(recorder_module, "set_token_count", uncounted)
    monkeypatch.setattr(os, "fsync", lambda _: None)
    caplog.set_level(logging.ERROR, logger="ragforge_tui")


def schedules(count: int, steps: int) -> settings:
    """Settings of a run."""
    return settings(
        max_examples=count,
        stateful_step_count=steps,
        deadline=None,
        verbosity=Verbosity.quiet,
        suppress_health_check=list(HealthCheck),
    )


@pytest.mark.hypothesis
def test_answers_stay_with_their_questions(quick: None) -> None:
    loop = asyncio.new_event_loop()

    class InMemory(TurnPlaces):
        run = staticmethod(loop.run_until_complete)

        def __init__(self) -> None:
            self.store = self.tables = StandIn()
            super().__init__()

    try:
        run_state_machine_as_test(InMemory, settings=schedules(SCHEDULES, STEPS))  # type: ignore[no-untyped-call]
    finally:
        loop.close()


@pytest.mark.hypothesis
async def test_answers_stay_with_their_questions_in_a_real_graph(graph: Graph, quick: None) -> None:
    loop = asyncio.get_running_loop()
    await empty(graph)

    def wait_for(work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, loop).result()

    class InGraph(TurnPlaces):
        run = staticmethod(wait_for)

        def __init__(self) -> None:
            self.store = Store(graph)
            self.tables = RealTables(self.store)
            super().__init__()

    count = max(2, SCHEDULES // 80)
    await asyncio.to_thread(run_state_machine_as_test, InGraph, settings=schedules(count, STEPS // 2))
