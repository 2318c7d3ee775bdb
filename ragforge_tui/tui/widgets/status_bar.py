"""The status line: activity, mode, use of the context, and the keys that help now.

`status_parts` makes the parts, and `fitted` shortens and drops some on a narrow screen; both are pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from math import ceil
from typing import Literal

import msgspec
from rich.cells import cell_len, set_cell_size
from textual import events
from textual.content import Content
from textual.reactive import reactive
from textual.timer import Timer
from textual.widget import Widget

from ragforge_tui.shared.formatting import counted, short_count
from ragforge_tui.shared.sanitize import plain_text
from ragforge_tui.tui.command_registry import Registry, effective_keys
from ragforge_tui.tui.keys import key_name
from ragforge_tui.tui.limits import SCREEN
from ragforge_tui.tui.session.state import EngineState
from ragforge_tui.tui.widgets.clickable import command_at, runs_command

ACTIVITIES = {
    "idle": ("○", "dim", "idle"),
    "thinking": ("◐", "$warning", "thinking"),
    "answering": ("◐", "$warning", "answering"),
    "running": ("◐", "$warning", "running"),
}
OPENING = ("◐", "$warning", "opening")
ASKED = ("●", "$secondary bold", "waiting for you")
CONNECTIONS = {
    "starting": ("◐", "$warning", "starting"),
    "lost": ("●", "$error", "engine lost, restarting"),
    "closing": ("◐", "$warning", "closing"),
}
MODES = {
    "plan": ("plan", "$secondary"),
    "ask": ("ask", "dim"),
    "edits": ("accept edits", "$warning"),
    "auto": ("auto", "$warning"),
}
_KEYS = re.compile(r"(?:^|[·:] )((?:(?:/|\^?\S|F\d+|(?:alt|shift)\+\S+|enter|esc|space|tab) )+)")
"""Names of keys before what they do."""
LEAVE_SIDEBAR = "esc back to prompt"
NEXT_PANE = "tab next pane"
GAUGE_WARNS, GAUGE_ALARMS = 70, 90
"""Percent of the context window from which the gauge is colored."""

Focus = Literal["prompt", "question", "chat", "sidebar", "find", "history"]

Hint = tuple[str, str]
"""A key with its word, and the command that it runs."""
PALETTE = "palette"


class Part(msgspec.Struct, frozen=True):
    """One part of the line.

    Attributes:
        rank: Parts of a lower rank give way first.
        short: A shorter text, used before the part gives way.
        key: Whether it is right-aligned, among the keys.
        command: The command that a click runs; empty for none.
    """

    text: str
    style: str = "dim"
    rank: int = 0
    short: str = ""
    key: bool = False
    command: str = ""


class Situation(msgspec.Struct, frozen=True, kw_only=True):
    """What the widgets of the screen know, as far as it decides which keys help.

    Attributes:
        focus: The part of the screen that has the keyboard.
        refusal: The answer of Escape to the question that waits for the user; empty while none waits.
        drafting: Whether the prompt holds a text.
        newest_turn: The highest turn of the open conversation; 0 for none.
        chat_keys: What keys do with the block at the chat's cursor, the most useful first.
        editing: The turn whose message is being edited in the prompt; 0 for none.
        hints: Texts about keys with their commands, the most important first.
        stop: The key that stops an answer, and goes back a turn when pressed twice.
    """

    focus: Focus = "prompt"
    refusal: str = ""
    drafting: bool = False
    newest_turn: int = 0
    chat_keys: tuple[str, ...] = ()
    editing: int = 0
    hints: tuple[Hint, ...] = ()
    stop: str = "esc"


def status_parts(state: EngineState, situation: Situation, elapsed: int | None = None, retry_in: int = 0) -> list[Part]:
    """Return all parts for a state, from left to right.

    Args:
        elapsed: Seconds of the running turn, or of the question that it waits for.
        retry_in: Seconds until the request is sent again; 0 while none waits.
    """
    activity = ASKED if situation.refusal else ACTIVITIES[state.activity]
    if state.opening and not situation.refusal:
        activity = OPENING
    glyph, style, word = CONNECTIONS.get(state.connection) or activity
    graph = state.graph
    if state.connection == "up" and graph is not None and graph.phase == "starting":
        word = f"{word} · graph starting"
    mode, mode_style = MODES[state.mode]
    doing = f"{word}{f' {elapsed} s' if elapsed else ''}"
    if state.retry is not None and retry_in:
        doing = f"{state.retry.word}, {retry_in} s"
    parts = [
        Part(f"{glyph} {doing}", style, 100),
        Part(mode, mode_style, 89 if state.mode == "ask" else 99, command="mode"),
    ]
    if state.summarising:
        parts.append(Part("summarising", "dim", 50, command="tree"))
    if state.processes:
        running = f"{state.processes} process{'es' if state.processes > 1 else ''}"
        parts.append(Part(running, "$warning", 75, command="processes"))
    parts += _code(state)
    parts += _due(state)
    if state.memory is not None:
        parts.append(Part(f"memory {state.memory.percent} %", "dim", 15, command="tree"))
    if graph is not None and graph.journaled and graph.phase != "starting":
        parts.append(Part(f"{graph.journaled} in journal", "$warning", 90))
    return parts + _gauge(state) + _keys(state, situation)


def _code(state: EngineState) -> list[Part]:
    """Return how far the index of code is, while it has files to work on."""
    code = state.code
    if code is None or not code.running or not code.todo:
        return []
    done, todo = (counted(number) for number in (code.done, code.todo))
    what = {"linking": "code links", "embedding": "code vectors"}.get(code.phase, "code")
    return [Part(f"{what} {done}/{todo}", "dim", 15, short=f"{what} {100 * code.done // code.todo} %", command="code")]


def _due(state: EngineState) -> list[Part]:
    """Return a warning if the memory is behind, or has no vectors."""
    due = state.due
    if due is None:
        return []
    if due.words_only:
        return [Part("no vectors: words only", "$warning", 70, short="no vectors", command="tree")]
    behind = due.enabled and bool(due.behind) and not state.summarising
    return [Part("memory behind", "$warning", 70, command="tree")] if behind else []


def _gauge(state: EngineState) -> list[Part]:
    """Return how much of the context window the last request took."""
    model = state.model
    if model is None or model.offline or not model.context_window or not state.context_used:
        return []
    window = model.context_window
    # The last request may be of a larger window; the next one will fit.
    used = min(state.context_used, window)
    percent = round(100 * used / window)
    style = "$error" if percent >= GAUGE_ALARMS else "$warning" if percent >= GAUGE_WARNS else "dim"
    learned = f" (found {model.window_learned.astimezone():%-d %b})" if model.window_learned else ""
    source = " (assumed)" if model.window_assumed else learned
    whole = f"context {short_count(used)} of {short_count(window)}{source}, {percent} %"
    return [Part(whole, style, 60, short=f"ctx {percent} %", command="context")]


def _keys(state: EngineState, now: Situation) -> list[Part]:
    """Return the keys that help now; `stop` names the key of the chat, while sidebar and questions bind Escape."""
    stop, hints = now.stop, now.hints
    if now.editing:
        return [Part(f"editing turn {now.editing}: enter sends it as a branch · {stop} cancels", rank=95, key=True)]
    if now.refusal:
        tab = {"prompt": "tab answer · ", "question": "tab prompt · ", "sidebar": f"{NEXT_PANE} · "}.get(now.focus, "")
        refuse = f"{'esc' if now.focus == 'question' else stop} {now.refusal}"
        return [Part(f"{tab}{LEAVE_SIDEBAR if now.focus == 'sidebar' else refuse}", rank=95, key=True)]
    if now.focus == "sidebar":
        return [Part(NEXT_PANE, rank=90, key=True), Part(LEAVE_SIDEBAR, rank=95, key=True)]
    if now.focus == "find":
        return [Part(f"{stop} ends the search", rank=95, key=True)]
    if now.focus == "history":
        keys = (("enter takes it", 95), ("alt+w this folder or all", 93), (f"{stop} back to prompt", 94))
        return [Part(text, rank=rank, key=True) for text, rank in keys]
    stopping = Part(f"{stop} stop", rank=85, key=True, command="stop")
    if now.focus == "chat":
        again = "" if state.activity == "idle" else ", again: stop"
        leave = Part(f"{stop} back to prompt{again}", rank=95, key=True)
        return [*(Part(key, rank=90 - index, key=True) for index, key in enumerate(now.chat_keys)), leave]
    first = [] if state.activity == "idle" else [stopping]
    if state.busy and now.drafting and now.focus == "prompt":
        first.append(Part("enter for its next step · tab queue", rank=84, short="tab queue", key=True))
    if state.activity == "idle" and now.newest_turn and not now.drafting:
        hints = (*hints[:1], (f"{stop} {stop} go back", "branch"), *hints[1:])
    return first + [
        Part(text, rank=20 - index, key=True, command=command) for index, (text, command) in enumerate(hints)
    ]


def fitted(parts: list[Part], width: int) -> list[Part]:
    """Return the parts that fit: texts are shortened first, then the lowest ranks are dropped."""
    parts = list(parts)
    for shorten in (True, False):
        while _cells(parts) > width and len(parts) > 1:
            able = [part for part in parts if part.short] if shorten else parts
            if not able:
                break
            least = min(able, key=lambda part: part.rank)
            at = parts.index(least)
            parts[at : at + 1] = [msgspec.structs.replace(least, text=least.short, short="")] if shorten else []
    return parts


def _cells(parts: list[Part]) -> int:
    """Return the width with `` · `` between parts and between keys, and at least two spaces before the keys."""
    keys = [part for part in parts if part.key]
    left = [part for part in parts if not part.key]
    cells = sum(cell_len(part.text) for part in parts) + 3 * (max(len(left) - 1, 0) + max(len(keys) - 1, 0))
    return cells + (2 if keys and left else 0)


def drawn(parts: list[Part], width: int) -> Content:
    """Return the line, at most `width` cells wide."""
    left: list[Content] = []
    keys: list[Content] = []
    for part in parts:
        side = keys if part.key else left
        if side:
            side.append(Content.styled(" · ", "dim"))
        side.append(runs_command(_styled(part), part.command))
    used = sum(text.cell_length for text in (*left, *keys))
    if used > width and len(parts) == 1:
        return Content.styled(set_cell_size(plain_text(parts[0].text), max(width, 0)), parts[0].style)
    return Content.assemble(*left, " " * max(width - used, 0), *keys)


def _styled(part: Part) -> Content:
    """Return a part in its style; keys have the color that they have in every bar of keys."""
    text = plain_text(part.text)
    content = Content.styled(text, part.style)
    if part.key and part.style == "dim":
        for found in _KEYS.finditer(text):
            content = content.stylize("not dim $primary", found.start(1), found.end(1))
    return content


def foot_hints(registry: Registry, keymap: Mapping[str, str]) -> tuple[Hint, ...]:
    """Return hints for the status line with their commands, the most important first, with the user's own keys."""
    keys = effective_keys(keymap, registry)
    own = [
        (f"{key_name(keys[command.name])} {command.hint}", command.name)
        for command in registry.commands
        if command.hint and command.name != "stop" and command.name in keys
    ]
    return (("/ commands", "help"), (f"{key_name('ctrl+p')} palette", PALETTE), *own)


class StatusLine(Widget):
    """The status line; it is redrawn when one of its parts changes.

    Args:
        clock: Gives monotonic seconds, for the duration of turns.
    """

    ALLOW_SELECT = False

    parts: reactive[list[Part]] = reactive(list)
    hint: reactive[str] = reactive("")
    """A word in place of the keys, for a moment."""

    def __init__(self, clock: Callable[[], float]) -> None:
        super().__init__(id="status")
        self._clock = clock
        self._state = EngineState()
        self.situation = Situation()
        self._elapsed: int | None = None
        self._retry_in = 0
        self._asked_at: float | None = None
        """When the question appeared that waits for the user."""
        self._ticker: Timer | None = None
        self._hint_timer: Timer | None = None

    def show(self, state: EngineState, situation: Situation) -> None:
        """Show a state of engine and screen, and count the seconds of a running turn or of its question."""
        self._state, self.situation = state, situation
        if bool(situation.refusal) is (self._asked_at is None):
            self._asked_at = self._clock() if situation.refusal else None
            self._count()
        if state.turn_started is None:
            if self._ticker is not None:
                self._ticker.stop()
                self._ticker = None
            self._elapsed = None
        elif self._ticker is None and self.app.animation_level != "none":
            self._ticker = self.set_interval(1.0, self._tick)
        self._count_retry()
        self.parts = status_parts(state, situation, self._elapsed, self._retry_in)

    def _tick(self) -> None:
        self._count()
        self._count_retry()
        self.parts = status_parts(self._state, self.situation, self._elapsed, self._retry_in)

    def _count_retry(self) -> None:
        """Count the seconds until the request is sent again."""
        retry = self._state.retry
        self._retry_in = max(ceil(retry.at - self._clock()), 0) if retry is not None else 0

    def _count(self) -> None:
        """Count the seconds of the turn, or of the question that it waits for."""
        if (started := self._state.turn_started) is not None:
            self._elapsed = int(self._clock() - (started if self._asked_at is None else self._asked_at))

    def show_hint(self, text: str) -> None:
        """Show a word in place of the keys for a moment; an empty one gives them back."""
        self.hint = text
        if self._hint_timer is not None:
            self._hint_timer.stop()
        self._hint_timer = self.set_timer(SCREEN.hint, self._remove_hint)

    def _remove_hint(self) -> None:
        self.hint = ""

    def render(self) -> Content:
        """Return one line."""
        parts, width = self.parts, self.size.width
        if self.hint:
            parts = [*(part for part in parts if not part.key), Part(self.hint, "$warning", 95, key=True)]
        return drawn(fitted(parts, width), width)

    async def on_click(self, event: events.Click) -> None:
        """Run the command of the word under the mouse."""
        if command := command_at(event):
            event.stop()
            await self.app.run_action(f"command({command!r})")
