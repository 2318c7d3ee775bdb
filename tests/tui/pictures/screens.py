"""States of the screens that stand over the chat."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

from textual.widgets import Input

from tests.support.calls_scene import calls_engine
from tests.support.chat_scene import scene_engine
from tests.support.fake_code import HOSTILE, talk
from tests.support.fake_engine import CLOCK, FakeEngine, conversation, turn
from tests.support.fake_past import FRESH
from tests.tui.pictures.chat import talked
from tests.tui.pictures.stage import Stage, State, command, keys
from tests.tui.pictures.texts import CROOKED, DIFFS, IMPROVED

FILE = Path("/home/ada/.config/ragforge/config.yaml")


def stored_sessions() -> FakeEngine:
    """Sessions of several days, one with tags, one private, one a branch, one of another folder."""
    engine = scene_engine()
    engine.conversations[conversation(2).uuid].tags = ["db", "schema"]
    engine.conversations[conversation(3).uuid].private = True
    day = CLOCK.replace(day=1)
    parent = conversation(3).uuid
    branch = conversation(4, "Menu, shorter", updated_at=day, branch_of=parent, branch_turn=1)
    engine.store(branch, turn(branch, 1, "First words", "Last words"))
    away = conversation(5, "Elsewhere", workspace="/else", updated_at=day)
    engine.store(away, turn(away, 1, "First words", "Last words"))
    engine.conversations[conversation(1).uuid].summary = "Why retries doubled turns, and what was done about it."
    return engine


def sessions(*pressed: str) -> Callable[[Stage], Awaitable[None]]:
    """The list of sessions with its preview, and keys pressed there."""

    async def bring(stage: Stage) -> None:
        await stage.press("ctrl+o")
        await stage.shows("folder ")
        await keys(*pressed)(stage)

    return bring


async def narrowed(stage: Stage) -> None:
    """Typing narrows; the preview follows."""
    await sessions(*"menu")(stage)
    await stage.shows("First words")


async def deleted(stage: Stage) -> None:
    """One was deleted, and can be brought back."""
    await sessions("alt+d")(stage)
    await stage.shows("kept for 7 days")


async def searched(stage: Stage) -> None:
    """Words were found in some sessions."""
    await stage.press("ctrl+t", *"retr")
    await stage.shows(" hit")


async def nothing(stage: Stage) -> None:
    """Words that nobody said."""
    await stage.press("ctrl+t", *"zebra")
    await stage.until(lambda: "zebra" in stage.text())
    await stage.pilot.pause(0.4)


def speakers() -> FakeEngine:
    """With a persona whose file is crooked."""
    engine = talked()
    (engine.shelf.own / "Vega.luciform").write_text(CROOKED, encoding="utf-8")
    engine.shelf.improvement = IMPROVED
    return engine


def wizard(*steps: str) -> Callable[[Stage], Awaitable[None]]:
    """The form that makes a persona, some of it filled in."""

    async def bring(stage: Stage) -> None:
        await stage.command("/create-persona")
        for step in steps:
            await stage.press(*step, "enter")

    return bring


async def palette(stage: Stage) -> None:
    """The palette of commands, narrowed."""
    await stage.press("ctrl+p", *"pers")
    await stage.rest()
    stage.screen.query_one(Input).cursor_blink = False
    await stage.pilot.pause(0.3)


async def whole_palette(stage: Stage) -> None:
    """The palette of commands, with two that were used before."""
    for name in ("diff", "theme", "diff"):
        stage.app.chat.features.choose(name)
    await stage.press("ctrl+p")
    await stage.rest()
    stage.screen.query_one(Input).cursor_blink = False
    await stage.pilot.pause(0.3)


async def diff(stage: Stage) -> None:
    """What the agent changed."""
    stage.engine.work.diffs = DIFFS
    await stage.command("/diff")


async def second_diff(stage: Stage) -> None:
    """The second file of it."""
    await diff(stage)
    await stage.press("n")


def coded() -> FakeEngine:
    """Turns about a method of the scripted workspace."""
    engine = calls_engine()
    uuid = conversation(1).uuid
    engine.code.talks = [
        talk(uuid, 9, "Why is a message sent twice?", "Retries double turns"),
        talk(conversation(2).uuid, 1, f"Which index? {HOSTILE}", "Index allocation"),
    ]
    return engine


def unread() -> FakeEngine:
    """With a conversation that has no insight yet."""
    engine = stored_sessions()
    engine.past.missing = [FRESH]
    return engine


async def recalled(stage: Stage) -> None:
    """A question was asked, and its answers are there with the turn of the best one."""
    await stage.command("/recall how long do leases last?")
    await stage.shows("2 quotes")
    await stage.shows("An answer.")


async def answered(stage: Stage) -> None:
    """A model answered it from the quotes."""
    await recalled(stage)
    await stage.press("alt+m")
    await stage.shows("30 seconds [")


MADE = "/create-persona Lyra | orange | | Reviews SQL"
SETTINGS = {"config_file": FILE, "origins": {"model.name": "RAGFORGE_MODEL"}}
SCREENS = (
    State("help", keys("f1")),
    State("help-end", keys("f1", "end")),
    State("palette", whole_palette),
    State("palette-narrowed", palette),
    State("sessions", sessions(), engine=stored_sessions),
    State("sessions-narrowed", narrowed, engine=stored_sessions),
    State("sessions-all", sessions("alt+w", "down"), engine=stored_sessions),
    State("sessions-deleted", deleted, engine=stored_sessions),
    State("sessions-rename", sessions("down", "alt+r"), engine=stored_sessions),
    State("sessions-empty", sessions("alt+s"), engine=stored_sessions),
    State("search", searched, engine=stored_sessions),
    State("search-nothing", nothing, engine=stored_sessions),
    State("topics", command("/topics", "enter"), engine=calls_engine),
    State("topics-merge", command("/topics", "M", "down"), engine=calls_engine),
    State("insights", command("/insights", "enter"), engine=stored_sessions),
    State("insights-asked", command("/insights"), engine=unread),
    State("recall", recalled, engine=stored_sessions),
    State("recall-answer", answered, engine=stored_sessions),
    State("standup", command("/standup monday"), engine=stored_sessions),
    State("personas", command("/personas", *"vega"), engine=speakers),
    State("persona-wizard", wizard(), engine=speakers),
    State("persona-wizard-colour", wizard("Lyra", "Reviews SQL", "", "Deutsch"), engine=speakers),
    State("persona-draft", command(MADE), engine=speakers),
    State("persona-improved", command(MADE, "i"), engine=speakers),
    State("models", command("/model")),
    State("themes", command("/theme")),
    State("settings", command("/settings", "pagedown"), options=SETTINGS),
    State("settings-words", command("/settings model"), options=SETTINGS),
    State("settings-edit", command("/settings temperature", "enter"), options=SETTINGS),
    State("code", command("/code ses", "down"), engine=coded),
    State("code-touched", command("/code"), engine=coded),
    State("code-scope", command("/code send", "enter"), engine=coded),
    State("diff", diff),
    State("diff-second", second_diff),
)
