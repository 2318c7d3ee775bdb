"""The first screen: who answers, where, with which model, what to continue, and what to try.

Shown above the chat until a conversation is open. It is complete at the first paint, except for facts from the engine:
greeting, model, sessions and branch have their lines from the start, so that nothing moves when they arrive. The rows
are made by `welcome_rows`, which is pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import datetime

import msgspec
from rich.cells import cell_len
from rich.style import Style
from textual import events
from textual.message import Message
from textual.reactive import reactive
from textual.strip import Strip
from textual.widget import Widget

from ragforge_tui.shared.errors import RagforgeError
from ragforge_tui.shared.events import ModelChanged
from ragforge_tui.shared.finding_records import KeptFinding
from ragforge_tui.shared.formatting import counted
from ragforge_tui.shared.model_help import OFFLINE_ANSWERS, WAYS_TO_A_MODEL
from ragforge_tui.shared.moments import age_text
from ragforge_tui.shared.past_records import PastChoice
from ragforge_tui.shared.records import Conversation, ConversationFilter
from ragforge_tui.shared.requests.imports import ListFoundSessions
from ragforge_tui.shared.requests.past import ListKept
from ragforge_tui.shared.requests.sessions import ListConversations
from ragforge_tui.tui.command_registry import effective_keys
from ragforge_tui.tui.drawing.lines import Run, clip, line_of, one_line
from ragforge_tui.tui.drawing.palette import DEFAULT_GLYPH, Palette, palette_for
from ragforge_tui.tui.folder import folder_text
from ragforge_tui.tui.host import Host
from ragforge_tui.tui.keys import spoken_key
from ragforge_tui.tui.sessions.session_list_model import short_time
from ragforge_tui.tui.welcome.tips import chosen_tips, sign_of
from ragforge_tui.tui.widgets.header import origin

SESSIONS = 3
POINTS = 3
_POINT = "point"
_LISTS_KEPT = "memory"
"""The command that lists what is kept."""
WIDEST = 76
FEWEST_TIPS = 2
_LABEL = 8
_FACTS_WIDTH = 44
"""Columns from which sessions have their turns and age next to them."""
_LOGO = ("·", "∙", "•", "●")
"""The logo: turns that become a memory."""
NAME = "ragforge"
CLAIM = "the chat that remembers"
CHAT_FEATURES = frozenset({"undo", "edit", "branch", "context", "recall"})
"""Tips about a conversation that does not exist yet, or about a command with an argument: a click runs nothing."""
NO_MODEL = ((f"offline: {OFFLINE_ANSWERS}", ""), (WAYS_TO_A_MODEL[0], "connect"), (WAYS_TO_A_MODEL[1], ""))
"""Ways to get a model, each with the command that a click on its line runs."""


class WelcomeContents(msgspec.Struct, frozen=True):
    """Everything that the first screen shows.

    Attributes:
        sessions: The newest conversations of the folder; None while unknown.
        tips: What to type or press, what it does, and the command that a click runs.
        kept: Open points, wishes and decisions that the folder keeps, the newest first.
        found: Sessions of other agents on this machine that are not imported yet, by agent.
        import_key: The key that shows them.
        continue_key: The key that continues the newest conversation.
        model: None while unknown.
    """

    version: str = ""
    glyph: str = ""
    color: str = ""
    greeting: str = ""
    folder: str = ""
    branch: str = ""
    model: ModelChanged | None = None
    sessions: tuple[Conversation, ...] | None = None
    tips: tuple[tuple[str, str, str], ...] = ()
    kept: tuple[KeptFinding, ...] = ()
    found: tuple[tuple[str, int], ...] = ()
    import_key: str = ""
    continue_key: str = ""
    now: datetime | None = None


class Row(msgspec.Struct, frozen=True):
    """One line; a click on it runs `action`, a command with its argument, if there is one."""

    runs: tuple[Run, ...] = ()
    action: str = ""


def welcome_rows(shown: WelcomeContents, width: int, height: int, palette: Palette) -> list[Row]:
    """Return the rows for a width; a small height has fewer tips, then no gaps, no tips, and fewer sessions."""
    head = [_logo(shown, width, palette)]
    greeting = [_greeting(shown, width, palette)]
    facts = [_fact("folder", folder_text(shown.folder, shown.branch, width - _LABEL), palette)] if shown.folder else []
    facts += _model(shown.model, width, palette)
    sessions = _sessions(shown, width, palette)
    tips = _tips(shown, width, palette)
    kept = _kept(shown, width, palette)
    # Last, because it arrives last: nothing moves.
    groups = [head, greeting, facts, sessions, tips, kept]
    gap = 1
    while True:
        rows = [row for group in groups if group for row in [*[Row()] * gap, *group]][gap:]
        if len(rows) <= height:
            return [_cut(row, width) for row in rows]
        if len(tips) > FEWEST_TIPS:
            tips.pop()
        elif gap:
            gap = 0
        elif tips:
            tips.pop()
        elif kept:
            kept.pop()
        elif len(sessions) > 1:
            sessions.pop()
        else:
            return [_cut(row, width) for row in rows[: max(height, 0)]]


def _cut(row: Row, width: int) -> Row:
    """Return the row, truncated to the width of the screen."""
    room, runs = width, []
    for text, style in row.runs:
        shown = clip(text, room)
        room -= cell_len(shown)
        runs.append((shown, style))
    return Row(tuple(runs), row.action)


def _logo(shown: WelcomeContents, width: int, palette: Palette) -> Row:
    inks = (palette.faint, palette.muted, palette.accent, palette.accent)
    runs: list[Run] = (
        [] if palette.plain else [(sign, ink) for sign, ink in zip(_LOGO, inks, strict=True)] + [(" ", palette.text)]
    )
    runs += [(NAME, palette.accent + Style(bold=True)), (f"  {CLAIM}", palette.muted)]
    version = one_line(shown.version)
    used = sum(cell_len(text) for text, _ in runs)
    if version and used + cell_len(version) + 2 <= width:
        runs.append((" " * (width - used - cell_len(version)) + version, palette.muted))
    return Row(tuple(runs))


def _greeting(shown: WelcomeContents, width: int, palette: Palette) -> Row:
    style = palette.speaker(shown.color)
    glyph = one_line(shown.glyph) or DEFAULT_GLYPH
    greeting = one_line(shown.greeting)
    if not greeting:
        return Row()
    # Many greetings begin with the persona's glyph themselves.
    sign = "" if palette.plain or greeting.startswith(glyph) else f"{glyph} "
    return Row(((clip(f"{sign}{greeting}", width), style),))


def _fact(label: str, text: str, palette: Palette, action: str = "") -> Row:
    return Row(((f"{label:<{_LABEL}}", palette.muted), (text, palette.text)), action)


def _model(model: ModelChanged | None, width: int, palette: Palette) -> list[Row]:
    """Return the model and where words go, or how to get a model."""
    room = width - _LABEL
    if model is None or (model.phase == "loading" and not model.name):
        return [_fact("model", "waiting for the engine …", palette)]
    if model.offline:
        rows = []
        for number, (text, action) in enumerate(NO_MODEL):
            style = palette.text if action or not number else palette.muted
            label = (f"{'model' if not number else '':<{_LABEL}}", palette.muted)
            rows.append(Row((label, (clip(text, room), palette.running if not number else style)), action))
        return rows
    if model.phase == "failed":
        return [Row(((f"{'model':<{_LABEL}}", palette.muted), (clip(_failed(model), room), palette.failed)), "model")]
    name = clip(one_line(model.name), max(room // 2, 8))
    where = one_line(model.destination)
    text = "" if not where else "nothing leaves this machine" if where == "this machine" else f"words go to {where}"
    between = " · " if text else ""
    rest = clip(f"{between}{text}", max(room - cell_len(name), 0))
    return [Row(((f"{'model':<{_LABEL}}", palette.muted), (name, palette.text), (rest, palette.muted)), "model")]


def _failed(model: ModelChanged) -> str:
    return f"{one_line(model.name) or 'none'} cannot be used · /model chooses another"


def _sessions(shown: WelcomeContents, width: int, palette: Palette) -> list[Row]:
    """Return the newest sessions; their lines are there before they are known, so that the tips do not move."""
    if shown.sessions is None:
        return [Row()] * (SESSIONS + 1)
    if not shown.sessions:
        rows = [Row((("No conversation in this folder yet: your first message starts one.", palette.muted),))]
        rows += [_found(shown, width, palette)] if shown.found else []
        return [*rows, *[Row()] * (SESSIONS + 1 - len(rows))]
    places = [str(place) for place in range(1, len(shown.sessions) + 1)]
    which = (
        f" the newest · {', '.join(places[:-1])} or {places[-1]}, then Enter, for one of these"
        if len(places) > 1
        else ""
    )
    hint = ((f"{'continue':<{_LABEL}}  ", palette.muted), (shown.continue_key, palette.you), (which, palette.muted))
    rows = [Row(hint)]
    for number, session in enumerate(shown.sessions[:SESSIONS], 1):
        turns = session.next_turn - 1
        facts = f"{turns} turn{' ' if turns == 1 else 's'}"
        if width < _FACTS_WIDTH:
            facts = ""
        elif shown.now is not None:
            facts += f"{age_text(session.updated_at, shown.now):>8}"
        if branch := origin(session):
            facts = f"{branch} · {facts}" if facts else branch
        room = max(width - 3 - cell_len(facts) - 2, 4)
        title = clip(one_line(session.title) or f"untitled {session.uuid[:8]}", room)
        gap = " " * max(width - 3 - cell_len(title) - cell_len(facts), 1)
        style = palette.text + Style(bold=True) if number == 1 else palette.text
        runs: tuple[Run, ...] = (
            (f"{number}  ", palette.accent),
            (title, style),
            (gap, palette.text),
            (facts, palette.muted),
        )
        rows.append(Row(runs, f"continue {number}"))
    return [*rows, *[Row()] * (SESSIONS + 1 - len(rows))]


def _kept(shown: WelcomeContents, width: int, palette: Palette) -> list[Row]:
    """Return the newest open points with their turn and day, and how many wishes and decisions the folder keeps."""
    points = open_points(shown.kept)
    rows: list[Row] = []
    for number, point in enumerate(points, 1 + len((shown.sessions or ())[:SESSIONS])):
        when = short_time(point.since.astimezone(shown.now.tzinfo), shown.now.date()) if shown.now else ""
        facts = f"t{point.turn_index} · {when}" if when else f"t{point.turn_index}"
        label = "open" if not rows else ""
        lead = f"{label:<{_LABEL}}{number}  "
        text = clip(one_line(point.text), max(width - cell_len(lead) - cell_len(facts) - 2, 4))
        gap = " " * max(width - cell_len(lead) - cell_len(text) - cell_len(facts), 1)
        runs: tuple[Run, ...] = (
            (f"{label:<{_LABEL}}", palette.muted),
            (f"{number}  ", palette.accent),
            (text, palette.text),
            (gap, palette.text),
            (facts, palette.muted),
        )
        rows.append(Row(runs, f"{_POINT} {number}"))
    kinds = Counter(one.kind for one in shown.kept)
    counts = [(kinds["open"] - len(points), "more open point")]
    counts += [(kinds["wish"], "wish"), (kinds["decision"], "decision")]
    told = [f"{count} {noun}{'' if count == 1 else 'es' if noun == 'wish' else 's'}" for count, noun in counts if count]
    if told:
        text = clip(" · ".join(told), max(width - _LABEL - len(_LISTS_KEPT) - 3, 4))
        keeps = (f"{'keeps':<{_LABEL}}", palette.muted)
        rows.append(Row((keeps, (text, palette.text), (f"  /{_LISTS_KEPT}", palette.you)), _LISTS_KEPT))
    return rows


def open_points(kept: Iterable[KeptFinding]) -> list[KeptFinding]:
    """Return the open points that the first screen shows: pinned ones first, then the newest."""
    points = [one for one in kept if one.kind == "open"]
    return sorted(points, key=lambda one: not one.pinned)[:POINTS]


def _found(shown: WelcomeContents, width: int, palette: Palette) -> Row:
    """Return what other agents left, and the key that brings it in."""
    count = sum(sessions for _, sessions in shown.found)
    agents = ", ".join(one_line(agent) for agent, _ in shown.found)
    text = f"imports {counted(count, 'earlier session')} of {agents}"
    key = f"{shown.import_key}  "
    return Row(((key, palette.you), (clip(text, max(width - cell_len(key), 0)), palette.text)), "import")


def _tips(shown: WelcomeContents, width: int, palette: Palette) -> list[Row]:
    wide = max((cell_len(sign) for sign, _, _ in shown.tips), default=0)
    rows = []
    for sign, text, action in shown.tips:
        lead = f"{sign}{' ' * (wide - cell_len(sign))}  "
        rows.append(Row(((lead, palette.you), (clip(text, width - cell_len(lead)), palette.muted)), action))
    return rows


class Welcome(Widget):
    """The first screen, and what it offers: tips, and the newest conversations of the folder."""

    ALLOW_SELECT = False

    contents: reactive[WelcomeContents] = reactive(WelcomeContents())

    class Clicked(Message):
        """A line was clicked; `action` is a command and its argument."""

        def __init__(self, action: str) -> None:
            super().__init__()
            self.action = action

    def __init__(self, host: Host) -> None:
        super().__init__(id="welcome")
        self._host = host
        self._recent: tuple[Conversation, ...] | None = None
        self._kept: tuple[KeptFinding, ...] = ()
        self._found: tuple[tuple[str, int], ...] = ()
        self._tips: tuple[tuple[str, str, str], ...] = ()
        self.choose_tips()
        self._rows: list[Row] = []
        self._key: object = None
        self._palette: Palette | None = None
        self._hovered = -1

    def on_mount(self) -> None:
        self.app.theme_changed_signal.subscribe(self, self._theme_changed)

    def _theme_changed(self, _: object) -> None:
        self._palette = None
        self._key = None
        self.refresh()

    # -- contents

    def choose_tips(self) -> None:
        """Choose the tips to show, with the user's own keys."""
        registry, features, keymap = self._host.registry, self._host.features, self._host.options.tui.keymap

        def action(feature: str) -> str:
            return feature if registry.get(feature) is not None and feature not in CHAT_FEATURES else ""

        tips = chosen_tips(features.used, features.starts)
        self._tips = tuple((sign_of(tip, registry, keymap), tip.text, action(tip.feature)) for tip in tips)

    def update(self) -> bool:
        """Show the first screen while no conversation is open; return whether it is shown."""
        session = self._host.session
        state = session.state
        self.display = state.conversation is None and not state.opening and not len(session.message_queue)
        if self.display:
            self.contents = self._contents_now()
        return self.display

    def _contents_now(self) -> WelcomeContents:
        state, options = self._host.session.state, self._host.options
        glyph, color = state.persona_styles.get(state.speaker, ("", ""))
        keys = effective_keys(options.tui.keymap, self._host.registry)
        return WelcomeContents(
            version=options.version,
            glyph=glyph,
            color=color,
            greeting=state.greetings.get(state.speaker, ""),
            folder=state.folder,
            branch=state.branch,
            model=state.model,
            sessions=self._recent,
            tips=self._tips,
            kept=self._kept,
            found=self._found,
            import_key=spoken_key(keys["import"]) if "import" in keys else "/import",
            continue_key=spoken_key(keys["continue"]) if "continue" in keys else "/continue",
            now=self._host.now().replace(second=0, microsecond=0) if self._recent else None,
        )

    def refresh_recent(self) -> None:
        """Fetch the newest conversations of the folder, if they are shown and the graph answers."""
        state = self._host.session.state
        ready = state.graph is not None and state.graph.phase == "ready"
        if ready and state.conversation is None and not state.opening and state.folder:
            self._host.session.spawn(self._fetch_recent(), group="recent", exclusive=True)

    async def _fetch_recent(self) -> None:
        session = self._host.session
        try:
            found = await session.ask(
                ListConversations(filter=ConversationFilter(workspace=session.state.folder, limit=SESSIONS))
            )
        except RagforgeError:
            return  # The user did not ask for it: no notice.
        self._recent = tuple(found)
        session.changed()
        if not found:
            await self._look_for_other_agents()
        else:
            await self._look_for_findings()

    async def _look_for_findings(self) -> None:
        """Fetch what the folder keeps: open points, wishes and decisions."""
        session = self._host.session
        try:
            kept = await session.ask(ListKept(choice=PastChoice(workspace=session.state.folder, status="any")))
        except RagforgeError:
            return
        self._kept = tuple(kept)
        session.changed()

    async def _look_for_other_agents(self) -> None:
        """Count what other agents left, for a user who begins in this folder."""
        try:
            listed = await self._host.session.ask(ListFoundSessions())
        except RagforgeError:
            return
        counts = Counter(entry.session.agent for entry in listed if not entry.imported)
        self._found = tuple(counts.items())
        self._host.session.changed()

    def pick(self, text: str) -> bool:
        """Open a listed conversation or open point if a message is nothing but its number; return whether it was."""
        number = text.strip()
        recent, points = (self._recent or ())[:SESSIONS], open_points(self._kept)
        if not self.display or number not in [str(place + 1) for place in range(len(recent) + len(points))]:
            return False
        place = int(number) - 1
        if place < len(recent):
            self._host.navigator.go_to_conversation(recent[place].uuid)
        else:
            point = points[place - len(recent)]
            self._host.navigator.go_to_turns(point.turn_index, conversation_id=point.conversation_id)
        return True

    # -- drawing

    @property
    def _columns(self) -> int:
        return max(1, min(WIDEST, self.size.width - 4))

    def _laid_out(self) -> tuple[list[Row], int, int]:
        """Return the rows, the row of the first one and its column."""
        size = self.size
        if self._palette is None:
            self._palette = palette_for(self.app)
        key = (size, self.contents)
        if key != self._key:
            self._key = key
            self._rows = welcome_rows(self.contents, self._columns, size.height - 1, self._palette)
        left = max((size.width - self._columns) // 2, 0) if size.width >= WIDEST + 4 else 2
        # What the folder keeps arrives last and moves nothing while there is room.
        above = len(self._rows) - sum(row.action.startswith(_POINT) or row.action == _LISTS_KEPT for row in self._rows)
        top = min((size.height - above) // 3, size.height - len(self._rows))
        return self._rows, max(top, 1), left

    def render_line(self, y: int) -> Strip:
        """Draw one row."""
        rows, top, left = self._laid_out()
        width, base = self.size.width, self.rich_style
        at = y - top
        runs: list[Run] = []
        if 0 <= at < len(rows):
            row = rows[at]
            runs = [(" " * left, Style()), *row.runs]
            if row.action and at == self._hovered:
                runs = [runs[0], *((text, style + Style(underline=True)) for text, style in row.runs)]
        return line_of(runs, width).strip.crop_extend(0, width, None).apply_style(base)

    def _row_at(self, y: int) -> int:
        rows, top, _ = self._laid_out()
        at = y - top
        return at if 0 <= at < len(rows) and rows[at].action else -1

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Underline a line that can be clicked."""
        hovered = self._row_at(event.y)
        if hovered != self._hovered:
            self._hovered = hovered
            self.refresh()

    def on_leave(self) -> None:
        if self._hovered >= 0:
            self._hovered = -1
            self.refresh()

    def on_click(self, event: events.Click) -> None:
        """Run the command of the line."""
        at = self._row_at(event.y)
        if at >= 0:
            event.stop()
            name, _, number = self._rows[at].action.partition(" ")
            if name == _POINT:
                self.pick(number)
            else:
                self.post_message(self.Clicked(self._rows[at].action))
