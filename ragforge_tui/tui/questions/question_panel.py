"""Panel above the prompt for questions of the engine, such as the approval of a tool call.

It takes the focus, one key answers, and it disappears. A letter that is no answer goes to the prompt. One that is waits
until the user can have read the question and no key follows: one that is part of a burst began a message. Its widgets
are made for the first question, because the start of the chat would have to wait for them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from time import monotonic
from typing import ClassVar, Literal

import msgspec
from rich.cells import cell_len
from textual import events
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.geometry import Size
from textual.message import Message
from textual.widgets import Input, Static

from ragforge_tui.shared.events import ApprovalRequested, CostLimitReached, TrustRequested
from ragforge_tui.shared.formatting import counted, dollars
from ragforge_tui.shared.rules import PROGRAMS
from ragforge_tui.shared.sanitize import plain_text
from ragforge_tui.shared.tool_calls import given_reason
from ragforge_tui.shared.truncation import cut_middle
from ragforge_tui.tui.drawing.lines import one_line
from ragforge_tui.tui.hint import Hint
from ragforge_tui.tui.limits import SCREEN
from ragforge_tui.tui.questions.command_text import MIN_ROWS, CommandText, drawn
from ragforge_tui.tui.questions.lines_left import LinesLeft
from ragforge_tui.tui.transcript.block_view import MARGIN, BlockView
from ragforge_tui.tui.widgets.choice_list import Choice, ChoiceList, line_cells
from ragforge_tui.tui.widgets.new_size import on_new_size

MAX_DETAIL_CHARS = 100_000
MAX_DIFF_CHARS = 1_000_000
MAX_TITLE_CHARS = 1_000
MAX_WHY_CHARS = 300
MAX_PATTERN_CHARS = 48
"""Of patterns within a choice; it stays on one line of a small terminal."""
MIN_DETAIL_LINES = MIN_ROWS
MIN_WAIT = 0.02
OWN_CELLS = 2 + 2 + 2
"""Margin, border and padding at the sides."""
OWN_LINES = 2 + 1
"""Border of the panel, and a line of the chat that stays in view."""
MARGINS = 2
"""Lines above and below the detail."""
SHORT = 30
"""Rows of the terminal up to which the detail has no margins and the answers share a line."""
WHOLE = Choice("whole", "show all of it", mark="o", short="whole")
RUN_CODE = frozenset({"@tests", "@checks", "cargo", "go", "make", "mypy", "npm", "pytest"})
"""Programs whose every call runs code of the folder."""
DetailKind = Literal["diff", "command", "text"]
DETAIL_KINDS: dict[Literal["write", "command", "secret", "web"], DetailKind] = {
    "web": "text",
    "write": "diff",
    "command": "command",
    "secret": "text",
}


class Question(msgspec.Struct):
    """One question.

    Attributes:
        key: Identifies it: the approval's id or the repository.
        answers: The choices; Escape picks the last one.
        answer: Called with the key of the choice and the typed reason.
        feedback: The answer that may have a reason, empty for none.
        saves: The patterns that ``always`` saves, after a second Enter.
        why: The reason that the model gave for its call.
        remembered: What memory says about the call.
        placeholder: Shown in the empty field for that reason.
        draft: Text that the field starts with.
        batch: Identifies the reply whose calls are asked about, one after another; empty for other questions.
        group: Shared by calls that are asked about together; empty for a question alone.
    """

    key: str
    kind: DetailKind
    title: str
    detail: str
    answers: list[Choice]
    answer: Callable[[str, str], None]
    feedback: str = ""
    saves: tuple[str, ...] = ()
    why: str = ""
    remembered: str = ""
    placeholder: str = "What should be done instead? Enter sends, Escape goes back"
    draft: str = ""
    batch: str = ""
    group: str = ""


def approval_question(event: ApprovalRequested, answer: Callable[[str, str], None]) -> Question:
    """Return an approval as a question."""
    answers = [Choice("once", "yes, this once", mark="y", short="once")]
    if scope := event.session_scope:
        label = f"yes, and allow {scope} for this session"
        # On one line the workspace, where file tools stay anyway, is left out.
        answers.append(Choice("session", label, mark="s", short=f"session: {scope.removesuffix(' in this workspace')}"))
    if event.always:
        # What it saves is asked about next.
        label = f"yes, and always allow {_named(event.always)} here"
        answers.append(Choice("always", label, mark="a", short="always…"))
    rest = "; it refuses the rest too" if event.batch else ""
    because = f"no{' to all' if event.batch else ''}, because…"
    answers.append(Choice("because", f"no, and say why{rest}", mark="w", short=because))
    answers.append(Choice("no", "no", mark="n", short="no"))
    return Question(
        event.approval_id,
        DETAIL_KINDS[event.kind],
        event.question,
        event.detail,
        answers,
        answer,
        feedback="no",
        saves=tuple(event.always),
        why=given_reason(event.call),
        remembered=event.remembered,
        batch=event.call.message_id,
        group=event.batch,
    )


def batch_question(calls: Sequence[Question], at: int) -> Question:
    """Return the question about several calls at once, which shows one of them."""
    shown = calls[at]
    answers = [Choice("once", f"yes, all {len(calls)}", mark="y", short=f"all {len(calls)}")]
    permissions = {next((one for one in call.answers if one.key == "session"), None) for call in calls}
    if len(permissions) == 1 and (permission := permissions.pop()) is not None:
        answers.append(permission)
    answers += [
        Choice("each", "answer them one by one", mark="e", short="one by one"),
        Choice("because", "no to all, and say why", mark="w", short="no, because…"),
        Choice("no", "no to all", mark="n", short="no"),
    ]
    edits = [call for call in calls if call.kind == "diff"]
    others = len(calls) - len(edits)
    # The question names the file, as the diff does.
    files = len({call.title.partition("?")[0].partition(" ")[2] for call in edits})
    parts = []
    if edits:
        parts.append(f"{counted(len(edits), 'edit')} in {counted(files, 'file')}")
    if others:
        parts.append(counted(others, "command"))
    title = f"Allow {' and '.join(parts)}? {at + 1} of {len(calls)} (← →): {shown.title}"
    return msgspec.structs.replace(shown, title=title, answers=answers)


def _named(patterns: Sequence[str]) -> str:
    """Return patterns as they are named in a choice, or their number if they are too long for one."""
    *others, last = (PROGRAMS.get(pattern, f"`{one_line(pattern)}`") for pattern in patterns)
    named = " and ".join([", ".join(others), last] if others else [last])
    if len(named) > MAX_PATTERN_CHARS:
        named = "this command, as shown next" if len(patterns) == 1 else f"its {len(patterns)} commands, as shown next"
    return named


def _saving_question(question: Question, answer: Callable[[str, str], None]) -> Question:
    """Return the question whether to save the patterns; only Enter and a click answer it."""
    several = len(question.saves) > 1
    what = f"these {len(question.saves)} rules" if several else "this rule"
    matches = "one of them, alone or in a chain," if several else "it"
    answers = [
        Choice("always", f"Enter: run the command, and save {'the rules' if several else 'the rule'}"),
        Choice("back", "back to the question"),
    ]
    title = f"Save {what} in your settings? Commands that match {matches} will run without asking in this folder."
    if any(pattern.partition(" ")[0] in RUN_CODE for pattern in question.saves):
        title += " They run the code they find there."
    lines = [f"{one}  {PROGRAMS[one]}, whatever the arguments" if one in PROGRAMS else one for one in question.saves]
    return Question(f"{question.key}:always", "text", title, "\n".join(lines), answers, answer)


def cost_question(event: CostLimitReached, answer: Callable[[str, str], None]) -> Question:
    """Return a reached cost limit as a question."""
    where = "This turn" if event.scope == "turn" else "This session"
    title = f"{where} has cost {dollars(event.spent)}; the next request would exceed {dollars(event.limit)}. Continue?"
    answers = [
        Choice("once", "one more request", mark="y"),
        Choice("session", f"raise the limit to {dollars(event.raised)} for this session", mark="s"),
        Choice("no", "stop; the answer so far is kept", mark="n"),
    ]
    return Question(event.approval_id, "text", title, "", answers, answer)


def trust_question(event: TrustRequested, answer: Callable[[str, str], None]) -> Question:
    """Return the question whether instructions of a folder may be used."""
    files = ", ".join(event.files)
    if event.persona:
        answers = [Choice("yes", "let it speak with exactly this text", mark="y"), Choice("no", "no", mark="n")]
        title = (
            f"Let the persona {event.persona} speak? Its file {files} is part of this folder and instructs the agent."
        )
        return Question(f"trust:{event.root}", "text", title, event.text, answers, answer)
    if event.question:
        answers = [Choice("yes", "yes, as long as the text stays the same", mark="y"), Choice("no", "no", mark="n")]
        return Question(f"trust:{event.root}", "text", event.question, event.text, answers, answer)
    answers = [Choice("yes", "use them, in this repository from now on", mark="y"), Choice("no", "no", mark="n")]
    title = f"Follow the instructions in {files}? They are part of this folder."
    return Question(f"trust:{event.root}", "text", title, event.text, answers, answer)


PLAN_KEY = "plan"


def plan_question(answer: Callable[[str, str], None]) -> Question:
    """Return the question whether to carry out a plan; its keys are digits, as a message may start with any letter."""
    answers = [
        Choice("ask", "carry it out, and ask before each edit and command", mark="1"),
        Choice("edits", "carry it out, and accept edits of files", mark="2"),
        Choice("plan", "keep planning", mark="3"),
    ]
    return Question(PLAN_KEY, "text", "Carry out this plan?", "", answers, answer)


class FeedbackInput(Input):
    """Field for the reason of a refusal or another text; Enter sends it to the panel."""

    def __init__(self, placeholder: str, draft: str = "") -> None:
        super().__init__(draft, placeholder=placeholder, compact=True, select_on_focus=False)

    async def action_submit(self) -> None:
        if isinstance(self.parent, QuestionPanel):
            self.parent.feedback_submitted(self.value.strip())


class QuestionPanel(Vertical, can_focus=True):
    """Shows one question at a time, in the order they came."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "move(-1)", show=False),
        Binding("down", "move(1)", show=False),
        Binding("left", "turn(-1)", show=False),
        Binding("right", "turn(1)", show=False),
        Binding("pageup", "page(-1)", show=False),
        Binding("pagedown", "page(1)", show=False),
        Binding("enter", "choose", show=False),
        Binding("escape", "screen.escape", show=False),
        Binding("tab", "leave", show=False),
    ]

    class Emptied(Message):
        """The last question was answered, or hiding the panel moved the focus; the next may be waiting already."""

    @dataclass
    class Left(Message):
        """The user wants the prompt back; letters that were held back belong there if no question came."""

        letters: str = ""

    @dataclass
    class WholeRequested(Message):
        """The user wants to read all that is asked about.

        Attributes:
            text: Makes a diff, or a command with numbered lines; for a thread.
        """

        title: str
        text: Callable[[], str]
        is_diff: bool

    def __init__(self) -> None:
        super().__init__(id="question")
        self._title = Static(id="question-title", markup=False)
        self._detail = Static(id="question-detail", markup=False)
        self._diff = BlockView()
        self._diff.id = "question-diff"
        self._diff.can_focus = False
        self._more = LinesLeft(self._diff)
        self._choices = ChoiceList()
        self._waiting: list[Question] = []
        self._saving: Question | None = None
        self._at = 0
        """The call that is shown, of those that are asked about together."""
        self._one_by_one = ""
        """Group of calls that the user answers one by one."""
        self._shown = ""
        self._guarded = ""
        """The question that the user had time to read; it counts as another one when a call joins it."""
        self._command: tuple[str, CommandText] | None = None
        self._made_for = Size()
        self._answers_from = 0.0
        self._held = ""
        """Letters that were typed too early and may be an answer."""
        self._held_at = 0.0
        self._held_act: Callable[[], None] | None = None
        self._coming = False
        """Whether the question has yet to get the focus, which the user has not moved elsewhere."""
        self._follows = False
        self._answered = Question("", "text", "", "", [], lambda *_: None)
        self._answered_at = -math.inf
        self.last_answer = -math.inf
        """Monotonic time of the last answer."""
        self.clock: Callable[[], float] = monotonic
        self.key_gap: Callable[[], float] = lambda: math.inf
        """Returns the time between the last two keys."""
        self.display = False

    def _lay_out(self) -> None:
        """Lay out title, scrolling detail or diff, and choices."""
        scroll = VerticalScroll(self._detail, id="question-scroll", can_focus=False)
        self.mount_all([self._title, scroll, self._diff, self._more, self._choices])
        on_new_size(self, self.make_room)
        # The rows of the terminal may change and leave the panel as it is.
        laid_out = self.screen.screen_layout_refresh_signal
        laid_out.subscribe(self, lambda screen: None if screen.size == self._made_for else self.make_room())

    @property
    def waiting(self) -> list[Question]:
        """Questions without an answer, the shown one first."""
        return list(self._waiting)

    @property
    def refusal(self) -> str:
        """Effect of Escape, in a few words."""
        if not self._waiting:
            return ""
        if not self.has_focus_within:
            return "question"
        if self._saving is not None or self.query("FeedbackInput"):
            return "back"
        return self._question.answers[-1].label.partition(";")[0]

    @property
    def _together(self) -> list[Question]:
        """The calls that the shown question is about."""
        group = self._waiting[0].group
        if not group or group == self._one_by_one:
            return self._waiting[:1]
        return [question for question in self._waiting if question.group == group]

    @property
    def _question(self) -> Question:
        if self._saving is not None:
            return self._saving
        calls = self._together
        return calls[0] if len(calls) == 1 else batch_question(calls, min(self._at, len(calls) - 1))

    @property
    def _may_answer(self) -> bool:
        return bool(self._waiting) and self.clock() >= self._answers_from

    def let_read(self) -> None:
        """Hold answers back until the user can have read the question."""
        self._answers_from = self.clock() + (SCREEN.read_next if self._follows else SCREEN.read)

    def early(self, letter: str) -> str:
        """Return what a letter adds to the empty prompt: nothing if it may answer a question that is on its way."""
        question = self._question if self._waiting else self._answered
        answers = [choice.mark for choice in question.answers]
        expected = self._coming if self._waiting else self.clock() < self._answered_at + SCREEN.gap
        if not expected or letter.lower() not in answers:
            return self.take_held() + letter
        if self._waiting:
            # At once: letters after this one must not be taken for a message because they arrive before the focus.
            self.screen.set_focus(self)
        self._hold(letter)
        return ""

    def take_held(self) -> str:
        """Return the held letter, which starts a message; drop other held keys."""
        held, self._held, self._held_act = self._held, "", None
        return held

    def _hold(self, letter: str, act: Callable[[], None] | None = None) -> None:
        """Hold an answer until no key follows it, and the question can have been read.

        Args:
            letter: Of the answer; empty for Enter and Escape, which are dropped while the question is read.
            act: Gives the answer of a key without a letter.
        """
        if not letter and not self._may_answer:
            return
        if 0 <= self.key_gap() < SCREEN.alone:
            self._type(self.take_held() + letter)
            return
        self._held, self._held_act = letter, act
        self._held_at = self.clock()
        if letter and self._waiting:
            self._choices.go_to(next((choice.key for choice in self._offered if choice.mark == letter.lower()), ""))
        self._give_later(SCREEN.alone if self._waiting else SCREEN.gap)

    def _give_later(self, seconds: float) -> None:
        held_at = self._held_at
        wait = max(seconds, self._answers_from - self.clock() if self._waiting else 0.0)
        if wait > 0:
            self.set_timer(max(wait, MIN_WAIT), lambda: self._give_held() if held_at == self._held_at else None)
        else:
            self._give_held()

    def _give_held(self) -> None:
        if not self._held and self._held_act is None:
            return
        if not self._waiting:
            self._type(self.take_held())
        elif not self._may_answer:
            self._give_later(0.0)
        else:
            act = self._held_act
            letter = self.take_held()
            if act is not None:
                act()
            else:
                self._answer(letter)

    def _type(self, letters: str) -> None:
        if letters:
            self.post_message(self.Left(letters))

    def _drop_held(self) -> None:
        if held := self.take_held():
            self.post_message(Hint(f"{held} came too early: press it again"))

    @property
    def _offered(self) -> list[Choice]:
        """The choices, and the one to see all that is asked about."""
        return [*self._choices.rows, *([WHOLE] if self._question.detail.strip() else [])]

    def _answer(self, letter: str) -> None:
        for choice in self._offered:
            if letter.lower() == choice.mark:
                self._pick(choice)
                return

    def on_focus(self) -> None:
        """Hold back keys that were typed before the focus moved here."""
        self._coming = False
        self.let_read()
        self._mute()

    def _mute(self) -> None:
        """Show no choice as chosen while Enter goes elsewhere."""
        self._choices.mute(not self.has_focus_within)

    on_blur = on_descendant_focus = on_descendant_blur = _mute

    def ask(self, question: Question) -> None:
        """Show a question, or queue it behind the current one; idempotent."""
        if any(waiting.key == question.key for waiting in self._waiting):
            return
        self._waiting.append(question)
        self._show()

    def withdraw(self, key: str) -> None:
        """Drop a question that was answered elsewhere or is obsolete."""
        self._waiting = [question for question in self._waiting if question.key != key]
        self._show()

    def clear(self) -> None:
        """Drop all questions."""
        self._waiting = []
        self._show()

    def _show(self) -> None:
        if self.query("FeedbackInput:focus"):
            # A removed field would pass the focus to some other widget, a moment later.
            self.screen.set_focus(self)
        self.query("FeedbackInput").remove()
        self.display = bool(self._waiting)
        if not self._waiting:
            self._saving = None
            self.post_message(self.Emptied())
            return
        if not self._title.is_attached:
            self._lay_out()
        if self._saving is not None and not self._saving.key.startswith(f"{self._waiting[0].key}:"):
            self._saving = None
        question = self._question
        title = plain_text(cut_middle(question.title, MAX_TITLE_CHARS, note=" … "))
        lines = 0
        if question.kind == "command":
            if self._command is None or self._command[0] != question.key:
                self._command = question.key, CommandText(question.detail)
            lines = self._command[1].line_count
        same = question.key == self._shown
        if question.kind == "diff" and not same:
            from ragforge_tui.tui.drawing.diff_lines import Diff
            from ragforge_tui.tui.transcript.diff_block import DiffBlock

            self._diff.view([DiffBlock(Diff(_limited(question.detail, MAX_DIFF_CHARS)))])
        elif question.kind == "text":
            self._detail.update(Content(_limited(plain_text(question.detail), MAX_DETAIL_CHARS)))
        why = one_line(question.why)[:MAX_WHY_CHARS]
        remembered = one_line(question.remembered)[:MAX_WHY_CHARS]
        counted = f" · {lines} lines" if lines > 1 else ""
        calls = self._together
        others = len(self._waiting) - len(calls)
        more = f"   ({others} more)" if others else ""
        reason = (f"why: {why}\n" if why else "", "$text-muted")
        # What follows the question, such as that a command is not confined, is the same each time.
        asked, mark, note = title.partition("? ")
        parts = (f"{asked}{mark.strip()}", "bold"), (f" {note}" if note else "", "$text-muted")
        memory = (f"memory: {remembered}\n" if remembered else "", "$text-warning")
        self._title.update(Content.assemble(reason, memory, *parts, (counted + more, "dim")))
        scroll = self.query_one("#question-scroll", VerticalScroll)
        given = bool(question.detail.strip())
        scroll.display = given and question.kind != "diff"
        self._diff.display = given and question.kind == "diff"
        self.set_class(not given, "-bare")
        scroll.scroll_home(animate=False)
        if not same:
            self._diff.scroll_home(animate=False)
        self._shown = question.key
        guarded = question.key if len(calls) == 1 else f"{question.group} {len(calls)}"
        if guarded != self._guarded:
            self._guarded = guarded
            self._drop_held()
            self._coming = not self.has_focus_within
            since = self.clock() - self._answered_at
            self._follows = bool(question.batch) and question.batch == self._answered.batch and since < SCREEN.batch
            self.let_read()
        self._choices.show(question.answers, keep=same)
        self._mute()
        self.make_room()

    def make_room(self) -> None:
        """Give the detail the lines that title, choices and other widgets leave: choices are never cut off."""
        if not self._waiting:
            return
        self._made_for = self.screen.size
        question = self._question
        taken = sum(
            one.outer_size.height + one.styles.margin.height
            for one in self.siblings
            if one.display and one.styles.height is not None and not one.styles.height.is_fraction
        )
        line = max(self.screen.size.width - 8, 1)
        title = min(len(question.title), MAX_TITLE_CHARS) // line + 1
        for text in filter(None, (question.why, question.remembered)):
            title += min(len(text), MAX_WHY_CHARS) // line + 1
        short = self.screen.size.height <= SHORT
        width = self.content_size.width or self.screen.size.width - OWN_CELLS
        offered = [*question.answers, *([WHOLE] if question.kind == "command" else [])]
        own = OWN_LINES + title + (2 if self.query("FeedbackInput") else 0)
        most = self.screen.size.height - taken - own - MARGINS
        room = max(most - len(question.answers), MIN_DETAIL_LINES)
        lines = self._detail_lines(question, width, room)
        may_line_up = short and all(one.short for one in question.answers) and line_cells(offered) <= width
        lined_up = may_line_up and lines > room
        self._choices.line_up(lined_up)
        if lined_up:
            room = max(most - 1, MIN_DETAIL_LINES)
            lines = self._detail_lines(question, width, room)
        self.set_class(short and lines > room, "-short")
        room += MARGINS if short and lines > room else 0
        if question.kind == "command":
            room = self._draw_command(question, width, room, lined_up=lined_up)
        self.query_one("#question-scroll").styles.max_height = room
        self._more.display = question.kind == "diff" and lines > room
        if question.kind == "diff":
            self._diff.styles.height = max(room - 1, MIN_DETAIL_LINES) if lines > room else lines
            self.call_after_refresh(self._more.count)

    def _detail_lines(self, question: Question, width: int, room: int) -> int:
        """Return the lines that all of the detail takes; of a command that has no room, one more than the room."""
        if question.kind == "diff":
            blocks = self._diff.document.blocks
            return sum(len(block.lines(max(1, width - MARGIN - 1), self._diff.palette)) for block in blocks)
        if question.kind == "command" and self._command is not None:
            rows, folded = self._command[1].rows(width, room)
            return len(rows) + folded
        return sum(cell_len(line) // width + 1 for line in question.detail.splitlines())

    def _draw_command(self, question: Question, width: int, room: int, *, lined_up: bool) -> int:
        """Draw beginning and end of a command, with a choice that opens all of it; return the number of its rows."""
        assert self._command is not None
        command = self._command[1]
        rows, folded = command.rows(width, room)
        answers = list(question.answers)
        if folded:
            room = room if lined_up else max(room - 1, MIN_DETAIL_LINES)
            rows, _ = command.rows(width, room)
            label = f"{WHOLE.label}, {_size(question.detail, command)}"
            answers.insert(-1, msgspec.structs.replace(WHOLE, label=label))
        self._detail.update(drawn(rows))
        if [choice.key for choice in self._choices.rows] != [choice.key for choice in answers]:
            self._choices.show(answers, keep=True)
        return room

    def on_hide(self) -> None:
        """Report the lost focus: this event arrives late, when the next question may already be shown."""
        if self._waiting:
            self.post_message(self.Emptied())

    def on_key(self, event: events.Key) -> None:
        """Pick a choice by its key, or hold the key back; the app passes any other letter to the prompt."""
        if not self._waiting or self.query("FeedbackInput"):
            return
        letter = event.character if event.is_printable and event.character else ""
        held = self._held
        if held and letter.lower() == held.lower() and self.key_gap() >= SCREEN.alone:
            event.stop()  # pressed again while it waits
        elif held and letter:
            event.stop()
            self._type(self.take_held() + letter)
        elif letter and letter.lower() in [choice.mark for choice in self._offered]:
            event.stop()
            self._hold(letter)

    def on_choice_list_picked(self, event: ChoiceList.Picked) -> None:
        """Pick the clicked choice."""
        event.stop()
        if self._may_answer:
            self._pick(event.choice)

    def action_move(self, step: int) -> None:
        self._choices.move(step, wrap=True)

    def action_turn(self, step: int) -> None:
        """Show another call of those that are asked about together; else move as the arrows up and down do."""
        calls = len(self._together) if self._waiting else 0
        if self._saving is not None or calls < 2:
            self._choices.move(step, wrap=True)
            return
        self._at = (min(self._at, calls - 1) + step) % calls
        self._show()

    def action_page(self, direction: int) -> None:
        scroll = self._diff if self._diff.display else self.query_one("#question-scroll", VerticalScroll)
        scroll.scroll_relative(y=direction * max(scroll.size.height - 1, 1), animate=False)

    def action_choose(self) -> None:
        if (choice := self._choices.chosen) is not None:
            self._hold("", lambda: self._pick(choice))

    def escape(self) -> bool:
        """Refuse; go back to the choices from a reason or a pattern, and to the panel from elsewhere."""
        if not self._waiting:
            return False
        if not self.has_focus_within:
            self.focus()
        elif self.query("FeedbackInput"):
            self.query("FeedbackInput").remove()
            self.focus()
        elif self._saving is not None:
            self._drop_saving()
        else:
            self._hold("", lambda: self._finish(self._question.answers[-1].key, ""))
        return True

    def action_leave(self) -> None:
        self.post_message(self.Left(self.take_held()))

    def _pick(self, choice: Choice) -> None:
        self._choices.go_to(choice.key)
        match choice.key:
            case "because":
                self._ask_why()
            case "whole":
                question, command = self._question, self._command
                numbered = command[1].numbered if command is not None and question.kind == "command" else None
                text = numbered or partial(str, question.detail)
                self.post_message(self.WholeRequested(question.title, text, is_diff=numbered is None))
            case "back":
                self._drop_saving()
            case "each":
                self._answered, self._answered_at = self._question, self.clock()
                self._one_by_one = self._question.group
                self._show()
            case "always" if self._saving is None:
                self._saving = _saving_question(self._waiting[0], self._waiting[0].answer)
                self._show()
            case _:
                self._finish(choice.key, "")

    def _drop_saving(self) -> None:
        self._saving = None
        self._show()

    def _ask_why(self) -> None:
        if not self.query(FeedbackInput):
            field = FeedbackInput(self._waiting[0].placeholder, self._waiting[0].draft)
            self.mount(field)
            field.focus()
            self.call_after_refresh(self.make_room)

    def feedback_submitted(self, text: str) -> None:
        """Refuse the shown call, and those of its reply that have no answer yet."""
        self._one_by_one = ""
        self._finish(self._question.feedback, text)

    def _finish(self, answer: str, feedback: str) -> None:
        self._answered, self._answered_at, self.last_answer = self._question, self.clock(), monotonic()
        self._saving = None
        answered, self._at = self._together, 0
        self._waiting = [question for question in self._waiting if question.key not in {one.key for one in answered}]
        for question in answered:
            question.answer(answer, feedback)
        self._show()
        if self._waiting:
            self.focus()


def _size(detail: str, command: CommandText) -> str:
    lines = f"{command.line_count} lines, " if command.line_count > 1 else ""
    return f"{lines}{counted(len(detail))} characters"


def _limited(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}\n… {len(text) - most} more characters are not shown"
