"""Creating and editing a persona: a form, then a review of the draft and of the model's proposal.

Only the name is required. Nothing is saved until the user accepts. Loaded when a persona is first created or edited.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import ClassVar, Literal

import msgspec
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Input, Static

from ragforge_tui.shared.persona_colors import color_of
from ragforge_tui.shared.persona_records import QUESTIONS, PersonaBrief, PersonaDraft
from ragforge_tui.shared.sanitize import plain_text
from ragforge_tui.tui.drawing.diff_lines import Diff
from ragforge_tui.tui.drawing.lines import one_line
from ragforge_tui.tui.drawing.palette import COLOR_NAMES, persona_color
from ragforge_tui.tui.personas.persona_preview import HangingText, changes, preview, signature
from ragforge_tui.tui.transcript.block_view import BlockView
from ragforge_tui.tui.transcript.diff_block import DiffBlock
from ragforge_tui.tui.widgets.key_bar import KeyBar, KeyHint
from ragforge_tui.tui.widgets.list_screen import Dialog

LABEL_CELLS = 10
COLOR_HELP = "The colour of its name."


class PersonaForm(Dialog[PersonaBrief | None]):
    """Returns the answers, None if it was cancelled. Enter goes to the next field, and from the last one on.

    Args:
        brief: The answers to begin with.
        kept: They were kept when the form was cancelled.
    """

    CSS = f"""
    PersonaForm > Vertical {{ width: 84; height: auto; }}
    PersonaForm Horizontal {{ height: 1; }}
    PersonaForm .label {{ width: {LABEL_CELLS}; color: $text-muted; }}
    PersonaForm Input {{ width: 1fr; }}
    PersonaForm .form-title {{ margin-bottom: 1; }}
    PersonaForm #form-help {{ height: auto; min-height: 2; margin: 1 0; }}
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", show=False),
        Binding("up", "app.focus_previous", show=False),
        Binding("down", "app.focus_next", show=False),
    ]

    def __init__(self, brief: PersonaBrief | None = None, *, kept: bool = False) -> None:
        super().__init__()
        self._note = "as you left it" if brief is not None and kept else "only the name is required"
        answers = brief.answers() if brief is not None else {}
        self._fields = {
            one.field: Input(answers.get(one.field, ""), placeholder=one.help or COLOR_HELP, compact=True)
            for one in QUESTIONS
        }
        self._help = Static(id="form-help", markup=False)
        self._keys = KeyBar(self)

    def compose(self) -> ComposeResult:
        """Lay out a line for each question, what helps with the one at hand, and the keys."""
        with Vertical():
            title = Content.assemble(("New persona", "bold"), (f"  {self._note}", "dim"))
            yield Static(title, classes="form-title")
            for one in QUESTIONS:
                with Horizontal():
                    yield Static(one.title, classes="label", markup=False)
                    yield self._fields[one.field]
            yield self._help
            yield self._keys

    def on_mount(self) -> None:
        self._fields["name"].focus()

    def answers(self) -> dict[str, str]:
        """Return what is typed, by field."""
        return {name: field.value.strip() for name, field in self._fields.items()}

    @property
    def _at(self) -> str:
        """The field that has the focus."""
        return next((name for name, one in self._fields.items() if one.has_focus), "name")

    def on_descendant_focus(self) -> None:
        """Help with the field."""
        self._show()

    def _show(self, problem: str = "") -> None:
        help_text = next(one.help for one in QUESTIONS if one.field == self._at)
        text = Content(help_text) if help_text else self._colors()
        self._help.update(Content.styled(problem, "$error") if problem else text)
        last = self._at == QUESTIONS[-1].field
        self._keys.show_keys(
            [
                KeyHint("next", "enter", "make the draft" if last else "next"),
                KeyHint("leave", "esc", "cancel"),
            ]
        )

    def _colors(self) -> Content:
        parts: list[Content | str] = []
        for name in COLOR_NAMES:
            color = persona_color(name, dark=self.app.current_theme.dark)
            parts += [Content.styled(name, f"bold {color.hex}" if color else "bold"), " "]
        return Content.assemble(*parts, "or #rrggbb")

    def on_input_submitted(self) -> None:
        """Go to the next field, or from the last one on to the draft; what cannot be used is reported at its field."""
        answers = self.answers()
        names = list(answers)
        at = self._at
        last = at == names[-1]
        if not answers["name"] and (last or at == "name"):
            self._report("name", "A name is required.")
        elif answers["color"] and not color_of(answers["color"]) and (last or at == "color"):
            self._report("color", f"{plain_text(answers['color'])!r} is no colour: use a common name or #rrggbb.")
        elif last:
            self.dismiss(PersonaBrief.of(answers))
        else:
            self._fields[names[names.index(at) + 1]].focus()

    def _report(self, field: str, problem: str) -> None:
        self._fields[field].focus()
        # The focus event, which shows the help, comes first.
        self.call_later(self._show, problem)

    def show_error(self, sentence: str) -> None:
        self._show(sentence)

    def action_leave(self) -> None:
        self.dismiss(None)


DRAFT_KEYS = (
    KeyHint("finish('use')", "enter", "save and use"),
    KeyHint("finish('save')", "ctrl+s", "save"),
    KeyHint("improve", "m", "improve with the model"),
    KeyHint("finish('edit')", "e", "edit"),
    KeyHint("leave", "esc", "discard"),
)
DIFF_KEYS = (
    KeyHint("accept(True)", "y", "accept"),
    KeyHint("accept(False)", "n", "keep the draft"),
    KeyHint("scroll(10)", "pagedown", "scroll"),
)


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
        Binding("ctrl+s", "finish('save')", "save", show=False),
        Binding("e", "finish('edit')", "edit", show=False),
        Binding("m", "improve", "let the model do it", show=False),
        Binding("y", "accept(True)", "yes", show=False),
        Binding("n", "accept(False)", "no", show=False),
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
        self._keys = KeyBar(self)

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
        if self._improving:
            self._keys.show_keys([KeyHint("leave", "esc", "stop")], lead="the model is writing …")
        else:
            self._keys.show_keys(DIFF_KEYS if self._proposal is not None else DRAFT_KEYS)
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
