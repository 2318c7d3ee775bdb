"""Turns with several answers or none are found, and an answer returns to its question where that is certain."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from ragforge_tui.graph import Graph, Store
from ragforge_tui.shared.records import Message, now
from tests.support.records import call_of, conversation, message, supersede

START = now()


@pytest.fixture
def store(graph: Graph) -> Store:
    return Store(graph)


class Talk:
    """A conversation that ended processes have written to; a later message has a later time."""

    def __init__(self, store: Store, conversation_id: str) -> None:
        self.store = store
        self.id = conversation_id
        self._clock = 0

    def _message(self, writer: str, content: str, **fields: Any) -> Message:
        self._clock += 1
        moment = START + timedelta(seconds=self._clock)
        return message(self.id, content=content, writer=f"elsewhere|boot|{writer}|1", timestamp=moment, **fields)

    async def ask(self, writer: str, content: str) -> str:
        return (await self.store.messages.begin_turn(self._message(writer, content))).uuid

    async def reply(self, writer: str, content: str, turn: str, *, calls: bool = False, sent: bool = True) -> str:
        reply = await self.store.messages.add(self._message(writer, content, role="assistant"), turn)
        if calls:
            await self.store.tool_calls.start(call_of(reply.uuid), self.id)
        if sent:
            await self.store.contexts.store(reply.uuid, "{}", 1, "d")
        return reply.uuid

    async def texts(self) -> list[list[str]]:
        turns = await self.store.turns.between(self.id, start=1, end=99)
        assert [m.position for turn in turns for m in turn.messages] == [
            position for turn in turns for position in range(len(turn.messages))
        ]
        return [[m.content for m in turn.messages] for turn in turns]


@pytest.fixture
async def talk(store: Store) -> Talk:
    return Talk(store, (await store.conversations.create(conversation())).uuid)


async def test_answers_return_to_their_questions(store: Store, talk: Talk) -> None:
    """What two programs left when the graph came back while both were in a turn."""
    one = await talk.ask("one", "one-2")
    await talk.reply("one", "answer to one-2", one)
    two = await talk.ask("two", "two-3")
    await talk.reply("two", "looking for two-3", two, calls=True)
    three = await talk.ask("one", "one-3")
    await talk.reply("one", "looking for one-3", three, calls=True)
    moved = [await talk.reply("one", "answer to one-3", one), await talk.reply("two", "answer to two-3", one)]
    found = await store.turn_checks.find()
    assert [(turn.turn_index, turn.problem, turn.moves) for turn in found] == [
        (1, "several answers", {moved[0]: 3, moved[1]: 2}),
        (2, "no answer", {}),
        (3, "no answer", {}),
    ]
    assert await store.turn_checks.mend(found) == 2
    assert await talk.texts() == [
        ["one-2", "answer to one-2"],
        ["two-3", "looking for two-3", "answer to two-3"],
        ["one-3", "looking for one-3", "answer to one-3"],
    ]
    assert await store.turn_checks.find() == []


async def test_uncertain_turns_are_left_alone(store: Store, talk: Talk) -> None:
    turn = await talk.ask("one", "q")
    await talk.reply("one", "a", turn)
    await talk.reply("stranger", "whose?", turn)
    (found,) = await store.turn_checks.find()
    assert (found.problem, found.moves, found.question) == ("several answers", {}, "q")
    assert await store.turn_checks.mend([found]) == 0
    assert await talk.texts() == [["q", "a", "whose?"]]


async def test_usual_turns_are_right(store: Store, talk: Talk) -> None:
    steps = await talk.ask("one", "several replies")
    await talk.reply("one", "I look", steps, calls=True)
    await talk.reply("one", "found", steps)
    retried = await talk.ask("one", "retried")
    await talk.reply("one", "bad", retried)
    await supersede(store, talk.id, 2)
    await talk.reply("two", "good", retried)
    imported = await talk.ask("one", "of another program")
    await talk.reply("one", "first piece", imported, sent=False)
    await talk.reply("one", "second piece", imported, sent=False)
    stopped = await talk.ask("one", "stopped")
    await store.messages.add(message(talk.id, role="assistant", state="interrupted"), stopped)
    assert await store.turn_checks.find() == []


async def test_a_turn_whose_process_was_killed_has_no_answer(store: Store, talk: Talk) -> None:
    await talk.ask("one", "killed")
    (found,) = await store.turn_checks.find()
    assert (found.turn_index, found.problem, found.moves) == (1, "no answer", {})
