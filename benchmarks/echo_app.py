"""The apps whose typing `benchmarks.echo` measures: ``python -m benchmarks.echo_app SCENE``.

An empty Textual app with a text area, or the transcript above one: empty, with thousands of turns, or while text of
a given kind streams into it. Apart from `echo` because it runs in the pseudo-terminal, as its own process.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import count

from rich.console import RenderableType
from textual.app import App, ComposeResult
from textual.screen import Screen
from textual.widgets import TextArea

from ragforge_tui.shared.events import MessageStarted, TextDelta, TurnStarted
from ragforge_tui.shared.records import Message, Role, Turn
from ragforge_tui.tui.chat_driver import ChatDriver
from ragforge_tui.tui.transcript import Transcript

LOADED_TURNS = 5_000
TOKENS_PER_SECOND = 300
TOKEN = 4
"""Characters; about what a token has in English."""
PROMPT_CSS = "TextArea { height: 6; }"
CONVERSATION = "benchmark"
MOMENT = datetime(2026, 1, 1, tzinfo=UTC)
PARAGRAPH = (
    "The managed transaction is retried **inside** `append_turn`, but the id is made *in* the transaction, so each "
    "try is a new turn. See [the store](https://example.org/store) for what is retried and why.\n\n"
)
CODE = "    async def work(transaction, number: int = 3) -> str:\n        return await transaction.run('RETURN 1')\n"


def _mixed(number: int) -> str:
    if number % 4 == 1:
        return f"## Step {number}\n\n- first look at `index.py`\n- then **decide**\n\n"
    if number % 4 == 3:
        return f"```python\n{CODE}```\n\n"
    return PARAGRAPH


def _list(number: int) -> str:
    return f"- item {number} names `file_{number}.py` and says **why** it has to change before the others do\n"


def _table(number: int) -> str:
    head = "| file | lines | what |\n|---|---:|---|\n" if number == 0 else ""
    return f"{head}| `file_{number}.py` | {number * 7} | reads **one** thing and writes another |\n"


def _fence(number: int) -> str:
    return ("```python\n" if number == 0 else "") + CODE


STREAMS: dict[str, Callable[[int], str]] = {"mixed": _mixed, "list": _list, "table": _table, "fence": _fence}
SCENES = ("bare", "empty", "loaded", *STREAMS)


class Bare(App[None]):
    """What typing costs without us, in a text area of the same size."""

    CSS = PROMPT_CSS

    def compose(self) -> ComposeResult:
        """A text area alone."""
        yield TextArea()


class Chat(App[None]):
    """The transcript above a text area, drawn as the chat draws."""

    CSS = PROMPT_CSS + "Transcript { height: 1fr; }"

    def __init__(self, scene: str) -> None:
        super().__init__(ChatDriver)
        self._scene = scene
        self._transcript = Transcript()

    def compose(self) -> ComposeResult:
        """Both."""
        yield self._transcript
        yield TextArea()

    def _display(self, screen: Screen[object], renderable: RenderableType | None) -> None:
        if isinstance(self._driver, ChatDriver):
            renderable = self._driver.shown.only_changes(renderable)
        super()._display(screen, renderable)

    def on_mount(self) -> None:
        """Type into the text area; fill the transcript."""
        self.query_one(TextArea).focus()
        if self._scene == "loaded":
            turns = [stored_turn(index) for index in range(1, LOADED_TURNS + 1)]
            self._transcript.load(turns, first=1, last=LOADED_TURNS)
        if self._scene in STREAMS:
            self.run_worker(self._stream(STREAMS[self._scene]))

    async def _stream(self, piece: Callable[[int], str]) -> None:
        """Text at the given rate, a delta for each token, until the app ends."""
        asked = user_message(1)
        self._transcript.apply(TurnStarted(conversation_id=CONVERSATION, turn_index=1, message=asked))
        self._transcript.apply(MessageStarted(conversation_id=CONVERSATION, turn_index=1, message_id="m-1-1"))
        began, told, waiting, pieces = time.perf_counter(), 0, "", count()
        while True:
            await asyncio.sleep(1 / TOKENS_PER_SECOND)
            owed = int((time.perf_counter() - began) * TOKENS_PER_SECOND)
            for _ in range(owed - told):
                while len(waiting) < TOKEN:
                    waiting += piece(next(pieces))
                text, waiting = waiting[:TOKEN], waiting[TOKEN:]
                self._transcript.apply(
                    TextDelta(conversation_id=CONVERSATION, turn_index=1, message_id="m-1-1", text=text)
                )
            told = owed


def _message(role: Role, text: str, position: int, turn: int) -> Message:
    return Message(
        uuid=f"m-{turn}-{position}",
        conversation_id=CONVERSATION,
        turn_index=turn,
        position=position,
        role=role,
        content=text,
        timestamp=MOMENT,
    )


def user_message(turn: int) -> Message:
    """What is asked in a turn that streams."""
    return _message("user", "Please write.", 0, turn)


def stored_turn(index: int) -> Turn:
    """A turn of a long conversation."""
    answer = "".join(_mixed(number) for number in range(index % 4, index % 4 + 4))
    return Turn(
        turn_index=index,
        messages=[_message("user", f"Question {index}?", 0, index), _message("assistant", answer, 1, index)],
    )


def main(scene: str) -> None:
    """Run a scene until killed."""
    app: App[None] = Bare() if scene == "bare" else Chat(scene)
    app.run()


if __name__ == "__main__":
    main(sys.argv[1])
