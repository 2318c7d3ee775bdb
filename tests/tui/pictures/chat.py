"""States of the chat itself: what is said and done, and how it looks while it comes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from textual.events import Paste
from textual.geometry import Offset
from textual.selection import Selection

from ragforge_tui.shared.errors import ErrorInfo, GraphUnavailableError
from ragforge_tui.shared.events import (
    Event,
    GraphChanged,
    MessageStarted,
    ModelRetry,
    ReasoningDelta,
    TextDelta,
    TurnFailed,
)
from ragforge_tui.shared.records import Conversation
from ragforge_tui.shared.requests.turns import FetchTurns
from ragforge_tui.shared.requests.work import UndoPlan
from tests.support.fake_engine import FakeEngine, conversation, message, turn
from tests.tui.pictures.stage import Stage, State, as_it_is, keys
from tests.tui.pictures.texts import DIFFS, MARKDOWN, PARAGRAPH
from tests.tui.transcript.samples import plain_turns, working_turn


async def drafted(stage: Stage) -> None:
    """A message stands in the prompt."""
    stage.app.chat.prompt.insert("take the first one, and add a test that retries twice")


def working() -> FakeEngine:
    """A turn with a tool call of every kind, and a short one after it."""
    engine = FakeEngine()
    engine.store(conversation(1, "Retries double turns"), working_turn(), *plain_turns(1, first=2))
    return engine


async def notices(stage: Stage) -> None:
    """What the program says for itself."""
    notice = stage.app.chat.session.notice
    notice("The model is asked again from here on.", "info")
    notice("tui.theme: there is no theme 'nrod'; /theme shows all of them.", "warning")
    notice("The graph cannot be reached. What was said is kept in a journal. It is tried again by itself.", "error")


async def unfolded(stage: Stage) -> None:
    """Everything that folds is open, seen from the top."""
    view = stage.app.chat.transcript
    for block in view.document.blocks:
        if block.folded:
            view.toggle_fold(block)
    await keys("tab", "home")(stage)


async def unfolded_end(stage: Stage) -> None:
    """The same, further down: results, the plan, the exit of a command."""
    await unfolded(stage)
    await keys("pagedown")(stage)


async def draft_selected(stage: Stage) -> None:
    """A part of the draft is selected with the keyboard."""
    await drafted(stage)
    await keys(*["shift+left"] * 20)(stage)


async def lines_selected(stage: Stage) -> None:
    """Some lines are selected with the mouse."""
    view = stage.app.chat.transcript
    rows = [row.at for row in view._rows if row.line is not None]
    stage.screen.selections = {view: Selection(Offset(6, rows[1]), Offset(24, rows[12]))}


def written() -> FakeEngine:
    """An answer with all that Markdown has."""
    engine = FakeEngine()
    owner = conversation(1, "Everything an answer may hold")
    engine.store(owner, turn(owner, 1, "Show me all you can write.", MARKDOWN))
    return engine


def engine_sending(*kinds: type[Event]) -> FakeEngine:
    """An engine that begins an answer, and goes no further than these kinds of events."""

    async def script(engine: FakeEngine, owner: Conversation, index: int, text: str) -> AsyncIterator[Event]:
        where: dict[str, Any] = {"conversation_id": owner.uuid, "turn_index": index}
        reply = message(owner, index, "assistant", "", 1)
        yield MessageStarted(message_id=reply.uuid, persona=owner.persona, model="fake", **where)
        yield ReasoningDelta(message_id=reply.uuid, text="First the index, then what is retried.", **where)
        if TextDelta in kinds:
            for start in range(0, len(PARAGRAPH), 24):
                yield TextDelta(message_id=reply.uuid, text=PARAGRAPH[start : start + 24], **where)
        if ModelRetry in kinds:
            yield ModelRetry(attempt=2, attempts=5, wait_seconds=4, reason="The provider is overloaded (529).", **where)
        if TurnFailed in kinds:
            error = ErrorInfo(
                kind="overloaded",
                what="The provider is overloaded (529), asked 5 times.",
                kept="What had come is kept.",
                todo="/retry asks again; /model chooses another one.",
            )
            yield TurnFailed(error=error, **where)
        else:
            await asyncio.Event().wait()

    engine = FakeEngine(script=script)
    owner = conversation(1, "Retries double turns")
    engine.store(owner, turn(owner, 1, "How is a turn's index allocated?", "In one transaction, with a `MERGE`."))
    return engine


def asked(shown: str) -> Any:
    """Send a message and wait for its first event."""

    async def bring(stage: Stage) -> None:
        await stage.type("The retry in store.py doubles turns. Why?")
        await stage.shows(shown)

    return bring


async def queued(stage: Stage) -> None:
    """Messages typed while an answer comes."""
    await asked("thinking …")(stage)
    messages = stage.app.chat.session.message_queue
    for count, text in enumerate(("and is it the same on Neo4j?", "then mend it\nand add a test", "and run it"), 1):
        await stage.type(text)
        await stage.until(lambda count=count: [item.place for item in messages.items] == ["queued"] * count)


async def pasted(stage: Stage) -> None:
    """A large paste in the middle of a message of several lines."""
    prompt = stage.app.chat.prompt
    prompt.insert("why does this fail?\n")
    prompt.post_message(Paste("line\n" * 412))
    await stage.shows("[pasted")
    prompt.insert("\nin the last run of the tests")


def typed(text: str) -> Any:
    """Type in the prompt, until the menu is there."""

    async def bring(stage: Stage) -> None:
        await stage.press(*text)
        await stage.until(lambda: stage.app.chat.prompt.completing.open, "the menu")

    return bring


def zoo() -> FakeEngine:
    """A hundred turns."""
    engine = FakeEngine()
    owner = conversation(1, "Zoo")
    animals = {97: "an okapi, and one more okapi", 98: "the OKAPI again", 40: "last okapi"}
    engine.store(owner, *[turn(owner, n, f"question {n}", animals.get(n, "answer")) for n in range(1, 101)])
    return engine


async def found(stage: Stage) -> None:
    """A text was looked for."""
    await stage.press("ctrl+f")
    stage.fill("okapi")
    await stage.shows(" of 3")


async def found_nothing(stage: Stage) -> None:
    """It is nowhere."""
    await stage.press("ctrl+f")
    stage.fill("whale")
    await stage.shows("no match")


async def branched(stage: Stage) -> None:
    """A branch was begun, and an earlier message of it is being edited."""
    await stage.type("/branch 3")
    await stage.shows("shares turns 1 to 3")
    await stage.type("/edit 2")
    await stage.until(lambda: stage.app.chat.prompt.text == "question 2")


async def going_back(stage: Stage) -> None:
    """Escape twice: the messages that one can go back to."""
    await stage.press("escape", "escape")
    await stage.shows("question 95")


async def gap(stage: Stage) -> None:
    """Turns that cannot be fetched stand as one line between those that are there."""
    await stage.type("/turn 30")
    await stage.until(lambda: stage.app.chat.transcript.turn_in_view == 30)
    stage.engine.failures[FetchTurns] = GraphUnavailableError("The graph is away.")
    stage.app.chat.transcript.scroll_to_turn(48)
    await stage.shows(", loading …")


async def own_command(stage: Stage) -> None:
    """A command of the person's own ran; an undo is asked about."""
    stage.engine.work.undo_plan = UndoPlan(turn_index=1, restored=DIFFS[1:])
    await stage.type("!git status")
    await stage.shows("output of git status")
    await stage.press("shift+tab")
    await stage.type("/undo")
    await stage.until(lambda: stage.app.chat.questions.has_focus, "the question")


def away() -> FakeEngine:
    """The graph is starting."""
    return FakeEngine(phase="starting")


async def waiting(stage: Stage) -> None:
    """A message typed before the graph was there."""
    await stage.type("typed before the graph was there")
    await stage.shows("typed before")


async def graph_down(stage: Stage) -> None:
    """The graph went away in the middle."""
    error = ErrorInfo(
        kind="graph_unreachable",
        what="The graph at bolt://db:7687 does not answer.",
        kept="What is said is kept in a journal and written in later.",
        todo="It is tried again by itself.",
    )
    stage.tell(GraphChanged(phase="unreachable", name="bolt://db:7687", error=error, journaled=3))
    await stage.shows("3 in journal")


async def lost(stage: Stage) -> None:
    """The engine ended in the middle of an answer; the next one is slow to come."""
    await asked("thinking …")(stage)
    stage.engine.crash()
    await stage.shows("It is restarting.")


async def private(stage: Stage) -> None:
    """Nobody recalls this conversation."""
    await stage.type("/private on")
    await stage.until(lambda: stage.owner.private)


def without_model() -> FakeEngine:
    """The offline assistant answers."""
    engine = working()
    engine.model = type(engine.model)(phase="ready", name="offline", offline=True, destination="this machine")
    return engine


async def selected(stage: Stage) -> None:
    """The keyboard is in the chat, at a block."""
    await keys("tab", "k", "k")(stage)


def talked() -> FakeEngine:
    """A conversation in which the speaker changed."""
    engine = FakeEngine()
    owner = conversation(1, "Three voices", persona="Dev")
    looks = [("Ragnarök", "✶", "violet"), ("Vega", "☾", "#ffb000"), ("Dev", "▸", "green")]
    turns = [
        turn(owner, index, f"Question {index}", "An answer.", persona=name, persona_glyph=glyph, persona_color=color)
        for index, (name, glyph, color) in enumerate(looks, 1)
    ]
    engine.store(owner, *turns)
    return engine


CHAT = (
    State("empty", as_it_is, engine=FakeEngine, options={"continue_last": False}),
    State("chat", drafted),
    State("work-folded", keys("tab", "home"), engine=working),
    State("notices", notices, engine=working),
    State("work-open", unfolded, engine=working),
    State("work-open-end", unfolded_end, engine=working),
    State("draft-selected", draft_selected, engine=working),
    State("work-selected", lines_selected, engine=working),
    State("cursor", selected, engine=working),
    State("markdown", keys("tab", "home"), engine=written),
    State("markdown-end", as_it_is, engine=written),
    State("thinking", asked("thinking …"), engine=lambda: engine_sending()),
    State("streaming", asked("as long as"), engine=lambda: engine_sending(TextDelta)),
    State("retrying", asked("retrying ("), engine=lambda: engine_sending(TextDelta, ModelRetry)),
    State("failed", asked("asked 5 times"), engine=lambda: engine_sending(TextDelta, TurnFailed)),
    State("queue", queued, engine=lambda: engine_sending()),
    State("paste", pasted),
    State("complete-files", typed("see @s")),
    State("complete-commands", typed("/e")),
    State("complete-arguments", typed("/model ")),
    State("find", found, engine=zoo),
    State("find-nothing", found_nothing, engine=zoo),
    State("branch-edit", branched, engine=zoo),
    State("branch-pick", going_back, engine=zoo),
    State("gap", gap, engine=zoo),
    State("own-command-undo", own_command),
    State("starting", waiting, engine=away, options={"continue_last": False}),
    State("graph-down", graph_down),
    State("engine-lost", lost, engine=lambda: engine_sending()),
    State("private", private),
    State("offline", as_it_is, engine=without_model),
    State("persona-switches", as_it_is, engine=talked),
    State("plain", as_it_is, engine=working, tui={"plain": True}),
)
