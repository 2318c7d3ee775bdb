"""A session as it was: what the engine said and when, and what is stored of it afterwards; JSON lines in a file.

Made by `python -m tests.support.record_session`, read by tests that show it again through the real screen.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from ragforge_tui.shared.events import Event, TurnEvent
from ragforge_tui.shared.records import Conversation, Turn
from tests.support.fake_engine import FakeEngine

_HERE = re.compile(rb'"(writer|owner)":"[^"]*"')


class Said(msgspec.Struct, frozen=True, tag="said"):
    """An event, `at` seconds after the first."""

    at: float
    event: Event


class Stored(msgspec.Struct, frozen=True, tag="stored"):
    """A turn as it is read back."""

    turn: Turn


class Began(msgspec.Struct, frozen=True, tag="began"):
    """The conversation, before anything was said."""

    conversation: Conversation


Line = Began | Said | Stored


class Recording(msgspec.Struct):
    """See the module."""

    conversation: Conversation
    said: list[Said]
    turns: list[Turn]

    def lines(self) -> Iterator[Line]:
        """As they stand in the file."""
        yield Began(self.conversation)
        yield from self.said
        yield from (Stored(turn) for turn in self.turns)

    def write(self, path: Path, hidden: dict[str, str]) -> None:
        """Write it, without the names of the machine and its user.

        Args:
            hidden: What is put in the place of texts that say something of this machine, such as folders.
        """
        data = b"".join(msgspec.json.encode(line) + b"\n" for line in self.lines())
        for text, instead in hidden.items():
            data = data.replace(text.encode(), instead.encode())
        path.write_bytes(_HERE.sub(rb'"\1":""', data))

    @classmethod
    def read(cls, path: Path) -> Recording:
        """From a file."""
        lines = [msgspec.json.decode(line, type=Line) for line in path.read_bytes().splitlines()]
        first = lines[0]
        assert isinstance(first, Began)
        said = [line for line in lines if isinstance(line, Said)]
        return cls(first.conversation, said, [line.turn for line in lines if isinstance(line, Stored)])

    def engine(self) -> FakeEngine:
        """An engine that has the conversation, and nothing said in it."""
        engine = FakeEngine()
        engine.store(msgspec.structs.replace(self.conversation))
        return engine

    def resumed(self) -> FakeEngine:
        """An engine that has the conversation whole."""
        engine = FakeEngine()
        engine.store(msgspec.structs.replace(self.conversation), *self.turns)
        return engine

    async def play(self, engine: FakeEngine, *, most_seconds: float = 0.0) -> None:
        """Let the engine say it again, in its order.

        Args:
            most_seconds: The longest pause that is kept between two events; 0: none, but others have their turn.
        """
        before = 0.0
        for said in self.said:
            await asyncio.sleep(min(said.at - before, most_seconds))
            before = said.at
            if not isinstance(said.event, TurnEvent) or said.event.conversation_id == self.conversation.uuid:
                engine.emit(said.event)
