"""Which turns of a long conversation are read for a request, and which are dropped again."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from ragforge_tui.conversation.turn.window import MOST_TURNS, PAGE_TURNS, TurnWindow
from ragforge_tui.shared.errors import GraphError
from ragforge_tui.shared.records import ToolResult, Turn, now
from tests.support.records import call_of, conversation
from tests.support.turns import turn_of


class Turns:
    """A store of one conversation that notes what is read."""

    def __init__(self, count: int, chars: int, result: int = 0) -> None:
        self.turns = [turn_of("c", index, "q" * chars, "a" * chars) for index in range(1, count + 1)]
        for turn in self.turns if result else []:
            outcome = ToolResult(uuid="r", tool_call_id="t", success=True, result="r" * result, timestamp=now())
            turn.messages[1].tool_calls = [call_of(turn.messages[1].uuid, result=outcome)]
        self.read: list[tuple[int, int]] = []
        self.fails = False

    async def between(self, conversation_id: str, *, start: int, end: int) -> list[Turn]:
        if self.fails:
            raise GraphError("gone")
        self.read.append((start, end))
        return self.turns[start - 1 : end - 1]

    async def store(self) -> Any:
        return SimpleNamespace(turns=self)


def window(turns: Turns) -> TurnWindow:
    return TurnWindow(conversation(), turns.turns[-12:], turns.store)


async def test_as_many_turns_are_read_as_a_request_may_hold() -> None:
    stored = Turns(1_000, chars=100)
    held = window(stored)
    await held.extend(tokens=10_000)
    count = len(held.turns)
    assert 250 <= count <= 350
    assert [turn.turn_index for turn in held.turns] == list(range(1_001 - count, 1_001))
    read = len(stored.read)
    await held.extend(tokens=10_000)
    assert len(stored.read) == read
    await held.extend(tokens=100_000)
    assert held.turns[0].turn_index == 1


async def test_results_count_as_they_would_be_cut_and_tiny_turns_have_a_limit() -> None:
    held = window(Turns(400, chars=500, result=50_000))
    await held.extend(tokens=20_000)
    assert 50 <= len(held.turns) <= 62
    held = window(Turns(3_000, chars=1))
    await held.extend(tokens=100_000)
    assert len(held.turns) == MOST_TURNS


async def test_turns_too_old_to_be_sent_are_dropped() -> None:
    stored = Turns(400, chars=1_000)
    held = window(stored)
    await held.extend(tokens=10_000)
    for turn in Turns(800, chars=1_000).turns[400:]:
        held.add(turn)
    assert len(held.turns) <= 2 * PAGE_TURNS + 1
    assert held.turns[-1].turn_index == 800


async def test_turns_of_other_processes_are_read_and_a_lost_graph_leaves_what_is_there() -> None:
    stored = Turns(100, chars=10)
    held = TurnWindow(conversation(), stored.turns[60:80], stored.store)
    await held.catch_up(101)
    assert [turn.turn_index for turn in held.turns] == list(range(61, 101))
    stored.fails = True
    await held.extend(tokens=10_000)
    assert held.turns[0].turn_index == 61
    empty = TurnWindow(conversation(), [], Turns(100, chars=10).store)
    await empty.catch_up(101)
    assert empty.turns[0].turn_index == 101 - PAGE_TURNS
