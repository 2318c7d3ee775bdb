"""A recorded session of the real engine through the real screen: what came live is what is read back later.

The recording is `tests/data/session.jsonl`; `python -m tests.support.record_session` makes another.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from ragforge_tui.shared.events import TextDelta, ToolCallFinished, TurnCancelled, TurnFailed
from tests.support.recorded_session import Recording
from tests.tui.conftest import Chat, ChatRunner
from tests.tui.pictures.picture import Capture, check, render
from tests.tui.pictures.stage import Stage, State
from tests.tui.pictures.test_pictures import SIZES

HERE = Path(__file__).resolve().parent
SESSION = HERE.parent / "data" / "session.jsonl"


@pytest.fixture(scope="module")
def recording() -> Recording:
    """The recorded session."""
    return Recording.read(SESSION)


def rows(chat: Chat) -> list[tuple[str, int, bool | None, list[str]]]:
    """Everything the transcript shows, block by block: kind, turn, folded or not, lines."""
    transcript = chat.app.chat.transcript
    return [
        (block.kind, block.turn_index, block.folded, [line.strip.text for line in block.draw(76, transcript.palette)])
        for block in transcript.document.blocks
    ]


def shown(blocks: list[tuple[str, int, bool | None, list[str]]], word: str) -> bool:
    return any(word in line for *_, lines in blocks for line in lines)


async def test_a_replay_equals_the_live_view(run_chat: ChatRunner, recording: Recording) -> None:
    async with run_chat(recording.engine(), resume=recording.conversation.uuid) as chat:
        await chat.until(lambda: chat.app.chat.session.state.conversation)
        await recording.play(chat.engine)
        await chat.until(lambda: shown(rows(chat), "You are welcome"))
        await chat.until(lambda: not chat.app.chat.session.state.busy)
        live = rows(chat)
        assert chat.happened(TextDelta) and chat.happened(TurnCancelled) and chat.happened(TurnFailed)
        assert sum(isinstance(event, ToolCallFinished) for event in chat.events) == 7
        assert not chat.app.chat.questions.waiting
    async with run_chat(recording.resumed(), resume=recording.conversation.uuid) as chat:
        await chat.until(lambda: shown(rows(chat), "You are welcome"))
        assert rows(chat) == live


@pytest.mark.parametrize("size", ["80x24", "120x40"])
async def test_its_end(tmp_path: Path, recording: Recording, size: str, update_pictures: bool) -> None:
    async def replayed(stage: Stage) -> None:
        await stage.until(lambda: stage.app.chat.session.state.conversation)
        await recording.play(stage.engine)
        await stage.shows("You are welcome")
        await stage.shows("files 3")

    options = {"continue_last": False, "resume": recording.conversation.uuid}
    state = State("replay", replayed, engine=recording.engine, tui={"sidebar": True}, options=options)
    stage = state.stage(tmp_path, "dark")
    async with stage.app.run_test(size=SIZES[size]) as stage.pilot:
        await stage.opened()
        await state.bring(stage)
        await stage.rest()
        actual = render({"dark": Capture(stage.screen)})
    check(HERE / "pictures" / "replay" / f"{size}.txt", actual, update=update_pictures)
