"""States of the sidebar's panes, and of what is opened from them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from ragforge_tui.shared.events import SummaryFailed, SummaryStarted
from ragforge_tui.shared.requests.memory import MemoryDue
from tests.support.calls_scene import calls_engine
from tests.support.fake_engine import FakeEngine, conversation
from tests.support.fake_memory import HOSTILE, summary
from tests.tui.pictures.stage import Stage, State, command, keys


def remembering() -> FakeEngine:
    """Twelve turns, nine of them summarised in three levels."""
    engine = calls_engine()
    engine.memory.due = MemoryDue(next_turns=3, next_chars=8_200)
    uuid = conversation(1).uuid
    engine.conversations[
        uuid
    ].summary = "Why retries doubled turns was looked into; one retry was left, and a test was added."
    engine.memory.summaries[uuid] = [
        summary(uuid, 1, 1, 3, "The user asked why turns double.", parent="s2-1", title="Doubled turns"),
        summary(uuid, 1, 4, 5, f"The lock was added. {HOSTILE}", parent="s2-1", topics=["locks"]),
        summary(uuid, 1, 6, 8, "One retry was left, with a test that retries twice.", parent="s2-6"),
        summary(uuid, 1, 9, 9, "The journal was read."),
        summary(uuid, 2, 1, 5, "Retries were studied and mended.", parent="s3-1"),
        summary(uuid, 2, 6, 8, "What was left to do was done.", parent="s3-1", actions_summary="Edited store.py."),
        summary(uuid, 3, 1, 8, "Turns that doubled: found, mended, tested."),
    ]
    return engine


def pane(key: str, *pressed: str) -> Callable[[Stage], Awaitable[None]]:
    """Show a pane by its key, and press keys in it."""

    async def bring(stage: Stage) -> None:
        await stage.press(key)
        await stage.until(lambda: stage.app.chat.sidebar.has_focus_within, "a pane in use")
        await stage.rest()
        await keys(*pressed)(stage)

    return bring


async def working(stage: Stage) -> None:
    """A summary is being made, another could not be."""
    await pane("f3")(stage)
    where = {"conversation_id": stage.owner.uuid}
    stage.tell(SummaryStarted(level=1, start_turn_index=10, end_turn_index=11, **where))  # type: ignore[arg-type]
    stage.tell(SummaryStarted(level=2, start_turn_index=9, end_turn_index=9, **where))  # type: ignore[arg-type]
    await stage.rest()
    stage.tell(
        SummaryFailed(
            conversation_id=stage.owner.uuid,
            level=2,
            start_turn_index=9,
            end_turn_index=9,
            reason="The model answered with nothing that can be read.",
        )
    )
    await stage.rest()


async def all_panes(stage: Stage) -> None:
    """Every pane was opened once, the memory last."""
    await keys("f4", "f5", "f3")(stage)
    await stage.shows("7 summaries")


PANES = (
    State("trace", pane("f4"), engine=calls_engine),
    State("trace-failed", pane("f4", "1"), engine=calls_engine),
    State("trace-text", pane("f4", "slash", *"pytest"), engine=calls_engine),
    State("call", pane("f4", "up", "enter"), engine=calls_engine),
    State("call-diff", pane("f4", "up", "up", "up", "up", "enter", "n", "n"), engine=calls_engine),
    State("call-failed", pane("f4", "1", "up", "enter"), engine=calls_engine),
    State("memory", pane("f3", "home", "down", "enter", "down", "enter", "down", "enter"), engine=remembering),
    State("memory-working", working, engine=remembering),
    State("memory-reading", pane("f3", "home", "enter", "down", "r"), engine=calls_engine),
    State("memory-topics", pane("f3", "2", "enter"), engine=remembering),
    State("files", pane("f5"), engine=calls_engine),
    State("files-preview", pane("f5", "enter"), engine=calls_engine),
    State("panes", all_panes, engine=remembering),
    State("what-was-sent", command("/context 7"), engine=calls_engine),
    State("what-was-sent-item", command("/context 7", "end", "enter"), engine=calls_engine),
)
