"""Panel above the prompt for a question of the engine: may this tool run, may these instructions be used.

Not part of the transcript: it takes the focus, one key answers it, and then it disappears. A letter that is no answer
is meant for the prompt and goes there, and so does any letter typed before the user can have read the question.
"""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import Any, ClassVar, Literal, Protocol, get_args

import msgspec
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.widgets import Input, Static

from ragforge_tui.shared.events import ApprovalDecision, ApprovalRequested, CostLimitReached, TrustRequested
from ragforge_tui.shared.formatting import dollars
from ragforge_tui.shared.requests.base import Request
from ragforge_tui.shared.sanitize import plain_text
from ragforge_tui.shared.truncation import cut_middle
from ragforge_tui.shared.wire import AnswerApproval, AnswerTrust
from ragforge_tui.tui.drawing.code import diff_content
from ragforge_tui.tui.questions.command_text import MIN_ROWS, CommandText, counted, drawn
from ragforge_tui.tui.session.engine_session import EngineSession
from ragforge_tui.tui.style.palette import Palette, palette_for
from ragforge_tui.tui.terminal import Attention
from ragforge_tui.tui.widgets.choice_list import Choice, ChoiceList

MAX_DETAIL_CHARS = 100_000
MAX_TITLE_CHARS = 1_000
MIN_DETAIL_LINES = MIN_ROWS
READ_SECONDS = 0.7
"""No key counts as an answer for this long after a question was shown or got the focus: it was typed before."""
OWN_CELLS = 2 + 2 + 2
"""Margin, border and padding at the sides."""
OWN_LINES = 2 + 2 + 1
"""Border of the panel, margins of the detail, and a line of the chat that stays in view."""
DetailKind = Literal["diff", "command", "text"]
DETAIL_KINDS: dict[Literal["write", "command", "secret"], DetailKind] = {
    "write": "diff",
    "command": "command",
    "secret": "text",
}


class Question(msgspec.Struct):
    """What is asked.

    Attributes:
        key: Names it: the approval's id or the repository.
        answers: Choices by the key that picks them; the last one is what Escape means.
        feedback: The answer that may carry words, empty when none may.
        saves: The pattern that ``always`` saves; it is shown, and Enter wanted once more.
    """

    key: str
    kind: DetailKind
    title: str
    detail: str
    answers: list[Choice]
    answer: Callable[[str, str], None]
    feedback: str = ""
    saves: str = ""


def approval_question(event: ApprovalRequested, answer: Callable[[str, str], None]) -> Question:
    """An `ApprovalRequested` as a question."""
    answers = [Choice("once", "once", mark="y")]
    if event.session_scope:
        answers.append(Choice("session", f"this session: {event.session_scope}", mark="s"))
    if event.always:
        answers.append(Choice("always", f"always `{event.always}`, saved in your settings", mark="a"))
    answers += [Choice("because", "no, and say why", mark="w"), Choice("no", "no", mark="n")]
    return Question(
        event.approval_id,
        DETAIL_KINDS[event.kind],
        event.question,
        event.detail,
        answers,
        answer,
        feedback="no",
        saves=event.always,
    )


def _saving_question(question: Question, answer: Callable[[str, str], None]) -> Question:
    """Ask whether the pattern is to be saved; only Enter and a click answer."""
    answers = [Choice("always", "Enter: run it, and save this pattern"), Choice("back", "back to the question")]
    title = "Save this pattern? Commands that fit it will run without asking, in every folder, from now on."
    return Question(f"{question.key}:always", "command", title, question.saves, answers, answer)


def cost_question(event: CostLimitReached, answer: Callable[[str, str], None]) -> Question:
    """A `CostLimitReached` as a question."""
    where = "This turn" if event.scope == "turn" else "This session"
    title = f"{where} has cost {dollars(event.spent)}; the next request would go beyond {dollars(event.limit)}. Go on?"
    answers = [
        Choice("once", "one more request", mark="y"),
        Choice("session", f"raise the limit to {dollars(event.raised)} for this session", mark="s"),
        Choice("no", "stop; what came is kept", mark="n"),
    ]
    return Question(event.approval_id, "text", title, "", answers, answer)


def trust_question(event: TrustRequested, answer: Callable[[str, str], None]) -> Question:
    """A `TrustRequested` as a question."""
    files = ", ".join(event.files)
    if event.persona:
        answers = [Choice("yes", "let it speak, with exactly this text", mark="y"), Choice("no", "no", mark="n")]
        title = f"Let the persona {event.persona} speak? Its file {files} came with the folder and instructs the agent."
        return Question(f"trust:{event.root}", "text", title, event.text, answers, answer)
    answers = [Choice("yes", "use them, in this repository from now on", mark="y"), Choice("no", "no", mark="n")]
    title = f"Follow the instructions in {files}? They came with the folder."
    return Question(f"trust:{event.root}", "text", title, event.text, answers, answer)


class FeedbackInput(Input):
    """Field for the reason of a refusal; Enter sends it to the panel."""

    def __init__(self) -> None:
        super().__init__(placeholder="What should be done instead? Enter sends, Escape goes back", compact=True)

    async def action_submit(self) -> None:
        """Hand the text to the panel."""
        if isinstance(self.parent, QuestionPanel):
            self.parent.feedback_given(self.value.strip())


class QuestionPanel(Vertical, can_focus=True):
    """Shows one question at a time, in the order they came."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,left", "move(-1)", show=False),
        Binding("down,right", "move(1)", show=False),
        Binding("pageup", "page(-1)", show=False),
        Binding("pagedown", "page(1)", show=False),
        Binding("enter", "choose", show=False),
        Binding("escape", "refuse", show=False),
        Binding("tab", "leave", show=False),
    ]

    class Emptied(Message):
        """The last question was answered, or the panel lost the keyboard over that; the next may be there already."""

    class Left(Message):
        """The user wants the prompt back for a moment."""

    class CommandViewRequested(Message):
        """The user wants to read the whole command."""

        def __init__(self, title: str, command: CommandText) -> None:
            super().__init__()
            self.title = title
            self.command = command

    def __init__(self) -> None:
        super().__init__(id="question")
        self._title = Static(id="question-title", markup=False)
        self._detail = Static(id="question-detail", markup=False)
        self._choices = ChoiceList()
        self._waiting: list[Question] = []
        self._saving: Question | None = None
        self._shown = ""
        self._command: tuple[str, CommandText] | None = None
        self._answers_from = 0.0
        self.clock: Callable[[], float] = monotonic
        self.display = False

    def compose(self) -> ComposeResult:
        """Title, detail that scrolls, choices."""
        yield self._title
        yield VerticalScroll(self._detail, id="question-scroll", can_focus=False)
        yield self._choices

    def on_mount(self) -> None:
        self.app.theme_changed_signal.subscribe(self, lambda _: self._draw_detail())

    @property
    def waiting(self) -> list[Question]:
        """Questions without an answer, the shown one first."""
        return list(self._waiting)

    @property
    def _question(self) -> Question:
        """The question that is shown."""
        return self._saving or self._waiting[0]

    @property
    def _may_answer(self) -> bool:
        return bool(self._waiting) and self.clock() >= self._answers_from

    def let_read(self) -> None:
        """Ignore answers until the user can have read what is shown."""
        self._answers_from = self.clock() + READ_SECONDS

    def on_focus(self) -> None:
        """A key that is on its way was meant for what had the focus before."""
        self.let_read()

    def ask(self, question: Question) -> None:
        """Show it, or keep it until its turn comes; asked twice is asked once."""
        if any(waiting.key == question.key for waiting in self._waiting):
            return
        self._waiting.append(question)
        self._show()

    def withdraw(self, key: str) -> None:
        """It was answered elsewhere, or nobody wants to know any more."""
        self._waiting = [question for question in self._waiting if question.key != key]
        self._show()

    def clear(self) -> None:
        """Drop all of them."""
        self._waiting = []
        self._show()

    def _show(self) -> None:
        if self.query("FeedbackInput:focus"):
            # Taken away with the keyboard, the field would give it to some other widget, a moment later.
            self.screen.set_focus(self)
        self.query("FeedbackInput").remove()
        self.display = bool(self._waiting)
        if not self._waiting:
            self._saving = None
            self.post_message(self.Emptied())
            return
        if self._saving is not None and not self._saving.key.startswith(f"{self._waiting[0].key}:"):
            self._saving = None
        question = self._question
        title = plain_text(cut_middle(question.title, MAX_TITLE_CHARS, note=" … "))
        lines = 0
        if question.kind == "command":
            if self._command is None or self._command[0] != question.key:
                self._command = question.key, CommandText(question.detail)
            lines = self._command[1].line_count
        self._draw_detail()
        counted = f" · {lines} lines" if lines > 1 else ""
        more = f"   ({len(self._waiting) - 1} more)" if len(self._waiting) > 1 else ""
        self._title.update(Content.assemble((title, "bold"), (counted + more, "dim")))
        scroll = self.query_one("#question-scroll", VerticalScroll)
        scroll.display = bool(question.detail.strip())
        self.set_class(not scroll.display, "-bare")
        scroll.scroll_home(animate=False)
        same = question.key == self._shown
        self._shown = question.key
        if not same:
            self.let_read()
        self._choices.show(question.answers, keep=same)
        self.make_room()

    def _draw_detail(self) -> None:
        """Draw a text or a diff; how much of a command is drawn depends on the room."""
        if self._waiting and self._question.kind != "command":
            self._detail.update(_detail(self._question, palette_for(self.app)))

    def make_room(self) -> None:
        """Let the detail have what title, choices and the rest of the screen leave: choices are never cut off."""
        if not self._waiting:
            return
        question = self._question
        taken = sum(
            one.outer_size.height + one.styles.margin.height
            for one in self.siblings
            if one.display and one.styles.height is not None and not one.styles.height.is_fraction
        )
        title = min(len(question.title), MAX_TITLE_CHARS) // max(self.screen.size.width - 8, 1) + 1
        own = OWN_LINES + title + len(question.answers) + (2 if self.query("FeedbackInput") else 0)
        room = max(self.screen.size.height - taken - own, MIN_DETAIL_LINES)
        if question.kind == "command":
            room = self._draw_command(question, room)
        self.query_one("#question-scroll").styles.max_height = room

    def _draw_command(self, question: Question, room: int) -> int:
        """Draw beginning and end of a command, with a choice that opens all of it; returns the rows it may have."""
        assert self._command is not None
        command = self._command[1]
        width = self.content_size.width or self.screen.size.width - OWN_CELLS
        rows, folded = command.rows(width, room)
        answers = list(question.answers)
        if folded:
            room = max(room - 1, MIN_DETAIL_LINES)
            rows, _ = command.rows(width, room)
            answers.insert(-1, Choice("whole", f"show all of it, {_size(question.detail, command)}", mark="o"))
        self._detail.update(drawn(rows))
        if [choice.key for choice in self._choices.rows] != [choice.key for choice in answers]:
            self._choices.show(answers, keep=True)
        return room

    def on_hide(self) -> None:
        """Hidden after the last answer, and told so late: the next question may be shown by then, without keyboard."""
        if self._waiting:
            self.post_message(self.Emptied())

    def on_resize(self) -> None:
        """The room for the detail changed."""
        self.make_room()

    def on_key(self, event: events.Key) -> None:
        """A choice's own key picks it; any other letter goes on to the app, which gives it to the prompt."""
        if self._may_answer and not self.query("FeedbackInput"):
            for choice in self._choices.rows:
                if event.key.lower() == choice.mark:
                    event.stop()
                    self._pick(choice)
                    return

    def on_choice_list_picked(self, event: ChoiceList.Picked) -> None:
        """A click picks too."""
        event.stop()
        if self._may_answer:
            self._pick(event.choice)

    def action_move(self, step: int) -> None:
        """To the next choice."""
        self._choices.move(step, wrap=True)

    def action_page(self, direction: int) -> None:
        """Scroll the detail."""
        scroll = self.query_one("#question-scroll", VerticalScroll)
        scroll.scroll_relative(y=direction * max(scroll.size.height - 1, 1), animate=False)

    def action_choose(self) -> None:
        """Pick the choice under the cursor."""
        if self._may_answer and (choice := self._choices.chosen) is not None:
            self._pick(choice)

    def action_refuse(self) -> None:
        """Escape: no. While a reason is typed, or a pattern is looked at: back to the choices."""
        if self.query("FeedbackInput"):
            self.query("FeedbackInput").remove()
            self.focus()
        elif self._saving is not None:
            self._leave_saving()
        elif self._may_answer:
            self._finish(self._waiting[0].answers[-1].key, "")

    def action_leave(self) -> None:
        """Back to the prompt, the question stays."""
        self.post_message(self.Left())

    def _pick(self, choice: Choice) -> None:
        match choice.key:
            case "because":
                self._ask_why()
            case "whole":
                self._show_whole()
            case "back":
                self._leave_saving()
            case "always" if self._saving is None:
                self._saving = _saving_question(self._waiting[0], self._waiting[0].answer)
                self._show()
            case _:
                self._finish(choice.key, "")

    def _leave_saving(self) -> None:
        self._saving = None
        self._show()

    def _show_whole(self) -> None:
        assert self._command is not None
        self.post_message(self.CommandViewRequested(self._question.title, self._command[1]))

    def _ask_why(self) -> None:
        if not self.query(FeedbackInput):
            field = FeedbackInput()
            self.mount(field)
            field.focus()
            self.call_after_refresh(self.make_room)

    def feedback_given(self, text: str) -> None:
        """The reason was typed."""
        self._finish(self._waiting[0].feedback, text)

    def _finish(self, answer: str, feedback: str) -> None:
        self._saving = None
        question = self._waiting.pop(0)
        question.answer(answer, feedback)
        self._show()
        if self._waiting:
            self.focus()


def _size(detail: str, command: CommandText) -> str:
    lines = f"{command.line_count} lines, " if command.line_count > 1 else ""
    return f"{lines}{counted(len(detail))} characters"


def _detail(question: Question, palette: Palette) -> Content:
    text = plain_text(question.detail)
    if len(text) > MAX_DETAIL_CHARS:
        text = f"{text[:MAX_DETAIL_CHARS]}\n… {len(text) - MAX_DETAIL_CHARS} more characters are not shown"
    if question.kind == "diff":
        return Content("\n").join([diff_content(line, palette) for line in text.splitlines()])
    return Content(text)


DECISIONS: tuple[ApprovalDecision, ...] = get_args(ApprovalDecision)


class QuestionHost(Protocol):
    """The screen as far as questions need it."""

    @property
    def session(self) -> EngineSession:
        """Receives the answers."""
        ...

    @property
    def attention(self) -> Attention:
        """Calls the user back to the terminal."""
        ...

    def ask_user(self, question: Question) -> None:
        """Show a question above the prompt."""

    def persona_refused(self, name: str) -> None:
        """Go back to the previous persona."""


def ask_approval(host: QuestionHost, event: ApprovalRequested) -> None:
    """Ask whether a tool may run, also for a conversation that is not open."""

    def answer(decision: str, feedback: str) -> None:
        choice: ApprovalDecision = next((known for known in DECISIONS if known == decision), "no")
        _send(host, AnswerApproval(approval_id=event.approval_id, decision=choice, feedback=feedback))

    host.attention.call(event.question)
    host.ask_user(approval_question(event, answer))


def ask_cost(host: QuestionHost, event: CostLimitReached) -> None:
    """Ask whether a turn may exceed its cost limit, also for a conversation that is not open."""

    def answer(decision: str, _: str) -> None:
        choice: ApprovalDecision = next((known for known in DECISIONS if known == decision), "no")
        _send(host, AnswerApproval(approval_id=event.approval_id, decision=choice))

    question = cost_question(event, answer)
    host.attention.call(question.title)
    host.ask_user(question)


def ask_trust(host: QuestionHost, event: TrustRequested) -> None:
    """Ask whether instructions that came with the folder may be used."""

    def answer(decision: str, _: str) -> None:
        _send(host, AnswerTrust(root=event.root, allow=decision == "yes"))
        if event.persona and decision != "yes":
            host.persona_refused(event.persona)

    question = trust_question(event, answer)
    host.attention.call(question.title)
    host.ask_user(question)


def _send(host: QuestionHost, request: Request[Any]) -> None:
    async def send() -> None:
        await host.session.ask(request)

    host.session.spawn(send(), group="answer")
