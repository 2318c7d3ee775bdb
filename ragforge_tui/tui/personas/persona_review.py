"""Review of a persona's draft: its text with errors marked, and the model's proposal as a diff.

Nothing is saved until the user accepts. Loaded when a persona is first created or edited.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import ClassVar, Literal

import msgspec
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from ragforge_tui.shared.errors import RagforgeError
from ragforge_tui.shared.persona_records import PersonaDraft
from ragforge_tui.tui.drawing.hanging_indent import HangingText
from ragforge_tui.tui.personas.persona_preview import changes, preview, signature

DRAFT_KEYS = "enter save and speak · s save · i improve with the model · e edit · esc discard"
ASKING_KEYS = "the model is writing … · esc stop"
DIFF_KEYS = "y accept · n keep the draft · page up/down"


class Reviewed(msgspec.Struct, frozen=True):
    """A text and what to do with it."""

    text: str
    action: Literal["save", "use", "edit"]


class PersonaReview(ModalScreen[Reviewed | None]):
    """Returns the decision, None if the draft was discarded.

    Args:
        improve: Asks the model for a better text.
    """

    CSS = """
    PersonaReview { align: center middle; }
    PersonaReview > Vertical {
        width: 120; max-width: 98%; height: 90%; background: $surface; border: round $border; padding: 0 1;
    }
    PersonaReview #review-title { text-style: bold; }
    PersonaReview VerticalScroll { height: 1fr; margin: 1 0; scrollbar-size-vertical: 1; }
    PersonaReview #review-text { height: auto; }
    PersonaReview #review-note { height: auto; }
    PersonaReview #review-keys { color: $text-muted; }
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
        self._asking = False
        self._first_note = note
        self._title = Static(id="review-title", markup=False)
        self._text = HangingText(id="review-text")
        self._note = Static(id="review-note", markup=False)
        self._keys = Static(id="review-keys", markup=False)

    def compose(self) -> ComposeResult:
        with Vertical():
            yield self._title
            yield VerticalScroll(self._text, can_focus=False)
            yield self._note
            yield self._keys

    def on_mount(self) -> None:
        self._show(self._first_note)

    def _show(self, note: str = "", style: str = "$warning") -> None:
        if self._proposal is not None:
            self._title.update(f"Proposed changes to {signature(self._draft.info)}")
            self._text.show(changes(self._draft.text, self._proposal.text))
        else:
            self._title.update("Draft of a persona")
            dark = self.app.current_theme.dark
            self._text.show(preview(self._draft.info, self._draft.text, dark=dark))
        self._note.update(Content.styled(note, style) if note else "")
        self._note.display = bool(note)
        asking = ASKING_KEYS if self._asking else DRAFT_KEYS
        self._keys.update(DIFF_KEYS if self._proposal is not None else asking)
        self.query_one(VerticalScroll).scroll_home(animate=False)

    def action_improve(self) -> None:
        """Ask the model for a proposal."""
        if self._proposal is None and not self._asking:
            self._asking = True
            self._show()
            self.run_worker(self._ask(), name="improve", group="improve", exclusive=True, exit_on_error=False)

    async def _ask(self) -> None:
        note = ""
        try:
            proposal = await self._improve(self._draft.text)
            if proposal.text.strip() == self._draft.text.strip():
                note = "The model proposes no changes."
            else:
                self._proposal = proposal
        except RagforgeError as error:
            note = error.info.sentence()
        finally:
            self._asking = False
        self._show(note)

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
        if self._proposal is None and not self._asking:
            self.dismiss(Reviewed(self._draft.text, action))

    def action_scroll(self, step: int) -> None:
        self.query_one(VerticalScroll).scroll_relative(y=step, animate=False)

    def action_leave(self) -> None:
        """Stop the model, else reject the proposal, else discard the draft."""
        if self._asking:
            self.workers.cancel_group(self, "improve")
            self._asking = False
            self._show("Stopped; the draft is unchanged.")
        elif self._proposal is not None:
            self.action_accept(False)
        else:
            self.dismiss(None)
