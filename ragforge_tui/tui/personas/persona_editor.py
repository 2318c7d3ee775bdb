"""Creating and editing a persona: eight questions, then a review of the draft and of the model's proposal.

Only the name is required. Nothing is saved until the user accepts. Loaded when a persona is first created or edited.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import ClassVar, Literal

import msgspec
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Input, Static

from ragforge_tui.shared.persona_colors import color_of
from ragforge_tui.shared.persona_records import QUESTIONS, PersonaBrief, PersonaDraft, PersonaQuestion
from ragforge_tui.shared.sanitize import plain_text
from ragforge_tui.tui.drawing.diff_lines import Diff
from ragforge_tui.tui.drawing.lines import one_line
from ragforge_tui.tui.drawing.palette import COLOR_NAMES, persona_color
from ragforge_tui.tui.personas.persona_preview import HangingText, changes, preview, signature
from ragforge_tui.tui.transcript.block_view import BlockView
from ragforge_tui.tui.transcript.diff_block import DiffBlock
from ragforge_tui.tui.widgets.list_screen import Dialog


class PersonaWizard(Dialog[PersonaBrief | None]):
    """Returns the answers, None if it was cancelled. Enter continues (empty skips), ctrl+b goes back."""

    CSS = """
    PersonaWizard > Vertical { width: 84; height: auto; }
    PersonaWizard Static { height: auto; }
    PersonaWizard #wizard-help { min-height: 2; }
    /* A line for each answer from the start, so that the box does not jump as they pile up. */
    PersonaWizard #wizard-answers { min-height: 7; }
    PersonaWizard Input { margin: 1 0; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", show=False),
        Binding("ctrl+b,shift+tab", "back", show=False, priority=True),
    ]

    def __init__(self, brief: PersonaBrief | None = None) -> None:
        super().__init__()
        self._answers: dict[str, str] = brief.answers() if brief is not None else {}
        self._at = 0
        self._title = Static(markup=False)
        self._help = Static(id="wizard-help", markup=False)
        self._summary = Static(id="wizard-answers", markup=False)
        self._input = Input(compact=True)
        self._keys = Static(classes="keys", markup=False)

    def compose(self) -> ComposeResult:
        """Lay out progress, question, answer, earlier answers and keys."""
        with Vertical():
            yield self._title
            yield self._help
            yield self._input
            yield self._summary
            yield self._keys

    def on_mount(self) -> None:
        self._input.focus()
        self._show()

    @property
    def _step(self) -> PersonaQuestion:
        return QUESTIONS[self._at]

    def _show(self, problem: str = "", typed: str | None = None) -> None:
        step = self._step
        self._title.update(
            Content.assemble(
                ("New persona", "bold"), (f"  {self._at + 1} of {len(QUESTIONS)} · {step.title}", "$primary")
            )
        )
        text = Content(step.help) if step.help else self._colors()
        self._help.update(Content.assemble(text, "\n", (problem, "$error")) if problem else text)
        self._input.value = self._answers.get(step.field, "") if typed is None else typed
        self._input.cursor_position = len(self._input.value)
        lines = [
            Content.assemble((f"{one.title:<10}", "dim"), plain_text(self._answers[one.field]).replace("\n", " ")[:200])
            for one in QUESTIONS
            if one is not step and self._answers.get(one.field)
        ]
        self._summary.update(Content("\n").join(lines))
        last = "make the draft" if self._at == len(QUESTIONS) - 1 else "next"
        skip = "" if step.field == "name" else ", empty skips"
        back = " · ^b back" if self._at else ""
        self._keys.update(f"enter {last}{skip}{back} · esc cancel")

    def _colors(self) -> Content:
        parts: list[Content | str] = []
        for name in COLOR_NAMES:
            color = persona_color(name, dark=self.app.current_theme.dark)
            parts += [Content.styled(name, f"bold {color.hex}" if color else "bold"), " "]
        return Content.assemble(*parts, "or #rrggbb")

    def on_input_submitted(self) -> None:
        """Store the answer and continue."""
        value = self._input.value.strip()
        if self._step.field == "name" and not value:
            self._show("A name is required.")
            return
        if self._step.field == "color" and value and not color_of(value):
            self._show(f"{plain_text(value)!r} is no colour: use a common name or #rrggbb.", value)
            return
        self._answers[self._step.field] = value
        if self._at + 1 < len(QUESTIONS):
            self._at += 1
            self._show()
        else:
            self.dismiss(PersonaBrief.of(self._answers))

    def show_error(self, sentence: str) -> None:
        self._show(sentence)

    def action_back(self) -> None:
        """Go back to the question before; the current answer is kept."""
        if self._at:
            self._answers[self._step.field] = self._input.value.strip()
            self._at -= 1
            self._show()

    def action_leave(self) -> None:
        self.dismiss(None)


DRAFT_KEYS = "enter save and use · s save · i improve with the model · e edit · esc discard"
ASKING_KEYS = "the model is writing … · esc stop"
DIFF_KEYS = "y accept · n keep the draft · page up/down"


class Reviewed(msgspec.Struct, frozen=True):
    """A text and what to do with it."""

    text: str
    action: Literal["save", "use", "edit"]


class PersonaReview(Dialog[Reviewed | None]):
    """Returns the decision, None if the draft was discarded.

    Args:
        improve: Asks the model for a better text.
    """

    CSS = """
    PersonaReview > Vertical { width: 120; height: 90%; }
    PersonaReview VerticalScroll { height: 1fr; margin: 1 0; scrollbar-size-vertical: 1; }
    PersonaReview BlockView { height: 1fr; margin: 1 0; overflow-x: hidden; scrollbar-size-vertical: 1; }
    PersonaReview BlockView { background: $surface; }
    PersonaReview #review-text { height: auto; }
    PersonaReview #review-note { height: auto; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", show=False),
        Binding("enter", "finish('use')", show=False),
        Binding("s", "finish('save')", show=False),
        Binding("e", "finish('edit')", show=False),
        Binding("i", "improve", show=False),
        Binding("y", "accept(True)", show=False),
        Binding("n", "accept(False)", show=False),
        Binding("up", "scroll(-1)", show=False),
        Binding("down", "scroll(1)", show=False),
        Binding("pageup", "scroll(-10)", show=False),
        Binding("pagedown", "scroll(10)", show=False),
    ]

    def __init__(
        self, draft: PersonaDraft, improve: Callable[[str], Awaitable[PersonaDraft]], *, note: str = ""
    ) -> None:
        super().__init__()
        self._draft = draft
        self._improve = improve
        self._proposal: PersonaDraft | None = None
        self._improving = False
        self._first_note = note
        self._title = Static(classes="title", markup=False)
        self._text = HangingText(id="review-text")
        self._diff = BlockView()
        self._diff.can_focus = False
        self._note = Static(id="review-note", markup=False)
        self._keys = Static(classes="keys", markup=False)

    def compose(self) -> ComposeResult:
        with Vertical():
            yield self._title
            yield VerticalScroll(self._text, can_focus=False)
            yield self._diff
            yield self._note
            yield self._keys

    def on_mount(self) -> None:
        self.app.theme_changed_signal.subscribe(self, lambda _: self._draw_text())
        self._show(self._first_note)

    def _show(self, note: str = "", style: str = "$warning") -> None:
        self._draw_text()
        self._note.update(Content.styled(note, style) if note else "")
        self._note.display = bool(note)
        keys = ASKING_KEYS if self._improving else DRAFT_KEYS
        self._keys.update(DIFF_KEYS if self._proposal is not None else keys)
        self._scrolled.scroll_home(animate=False)

    @property
    def _scrolled(self) -> VerticalScroll | BlockView:
        return self.query_one(VerticalScroll) if self._proposal is None else self._diff

    def _draw_text(self) -> None:
        self.query_one(VerticalScroll).display = self._proposal is None
        self._diff.display = self._proposal is not None
        if self._proposal is not None:
            self._title.update(f"Proposed changes to {signature(self._draft.info)}")
            changed = changes(one_line(self._draft.info.name), self._draft.text, self._proposal.text)
            self._diff.view([DiffBlock(Diff(changed))])
        else:
            self._title.update("Draft of a persona")
            dark = self.app.current_theme.dark
            self._text.show(preview(self._draft.info, self._draft.text, dark=dark))

    def action_improve(self) -> None:
        if self._proposal is None and not self._improving:
            self._improving = True
            self._show()
            self.run_guarded(self._ask(), group="improve")

    async def _ask(self) -> None:
        try:
            proposal = await self._improve(self._draft.text)
        finally:
            self._improving = False
        same = proposal.text.strip() == self._draft.text.strip()
        self._proposal = None if same else proposal
        self._show("The model proposes no changes." if same else "")

    def show_error(self, sentence: str) -> None:
        self._show(sentence)

    def action_accept(self, accept: bool) -> None:
        """Accept the proposal, or save the draft."""
        if self._proposal is None:
            return
        if accept:
            self._draft = self._proposal
        self._proposal = None
        self._show("Accepted; nothing is saved yet." if accept else "The draft is unchanged.", "$text-muted")

    def action_finish(self, action: Literal["save", "use", "edit"]) -> None:
        """Save the draft; not while a proposal waits for an answer."""
        if self._proposal is None and not self._improving:
            self.dismiss(Reviewed(self._draft.text, action))

    def action_scroll(self, step: int) -> None:
        self._scrolled.scroll_relative(y=step, animate=False)

    def action_leave(self) -> None:
        """Stop the model, else reject the proposal, else discard the draft."""
        if self._improving:
            self.workers.cancel_group(self, "improve")
            self._improving = False
            self._show("Stopped; the draft is unchanged.")
        elif self._proposal is not None:
            self.action_accept(False)
        else:
            self.dismiss(None)
