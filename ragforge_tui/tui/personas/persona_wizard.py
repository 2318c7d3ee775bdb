"""Eight questions about a new persona: Enter continues (empty skips), ctrl+b goes back, Escape cancels.

Only the name is required. Loaded when /create-persona is first used.
"""

from __future__ import annotations

from typing import ClassVar

import msgspec
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from ragforge_tui.shared.persona_records import PersonaBrief
from ragforge_tui.shared.sanitize import plain_text
from ragforge_tui.tui.style.persona_colors import NAMES, ink


class Step(msgspec.Struct, frozen=True):
    """One question; `field` belongs to the brief."""

    field: str
    title: str
    help: str


STEPS = (
    Step("name", "Name", "Its name, as in /set-persona NAME."),
    Step("purpose", "Purpose", "Its purpose in a sentence: reviews SQL; tells stories about logs."),
    Step("tone", "Tone", "How it sounds: dry, warm, solemn, playful."),
    Step("language", "Language", "The language it speaks; empty: the one you write."),
    Step("color", "Colour", ""),
    Step("glyph", "Glyph", "The sign before its name: ✶ ◆ ∿ ◎ ⟁ ☾ ⚗ ⛧ 🜂 or any other."),
    Step("rules", "Rules", "Rules it always follows, separated by semicolons."),
    Step("examples", "Examples", "Example sentences, separated by semicolons."),
)


class PersonaWizard(ModalScreen[PersonaBrief | None]):
    """Returns the answers, None if it was cancelled."""

    CSS = """
    PersonaWizard { align: center middle; }
    PersonaWizard > Vertical {
        width: 84; max-width: 96%; height: auto; background: $surface; border: round $border; padding: 0 1;
    }
    PersonaWizard Static { height: auto; }
    PersonaWizard Input { margin: 1 0; background: $panel; }
    PersonaWizard #wizard-keys { color: $text-muted; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", show=False),
        Binding("ctrl+b,shift+tab", "back", show=False, priority=True),
    ]

    def __init__(self, brief: PersonaBrief | None = None) -> None:
        super().__init__()
        self._answers: dict[str, str] = msgspec.structs.asdict(brief) if brief is not None else {}
        self._at = 0
        self._title = Static(id="wizard-title", markup=False)
        self._help = Static(id="wizard-help", markup=False)
        self._given = Static(id="wizard-given", markup=False)
        self._input = Input(compact=True)
        self._keys = Static(id="wizard-keys", markup=False)

    def compose(self) -> ComposeResult:
        """Lay out progress, question, answer, earlier answers and keys."""
        with Vertical():
            yield self._title
            yield self._help
            yield self._input
            yield self._given
            yield self._keys

    def on_mount(self) -> None:
        self._input.focus()
        self._show()

    @property
    def _step(self) -> Step:
        return STEPS[self._at]

    def _show(self, problem: str = "") -> None:
        step = self._step
        self._title.update(
            Content.assemble(("New persona", "bold"), (f"  {self._at + 1} of {len(STEPS)} · {step.title}", "$primary"))
        )
        text = Content(step.help) if step.help else self._colors()
        self._help.update(Content.assemble(text, "\n", (problem, "$error")) if problem else text)
        self._input.value = self._answers.get(step.field, "")
        self._input.cursor_position = len(self._input.value)
        given = [
            Content.assemble((f"{one.title:<10}", "dim"), plain_text(self._answers[one.field]).replace("\n", " ")[:200])
            for one in STEPS
            if one is not step and self._answers.get(one.field)
        ]
        self._given.update(Content("\n").join(given))
        last = "make the draft" if self._at == len(STEPS) - 1 else "next"
        skip = "" if step.field == "name" else ", empty skips"
        back = " · ^b back" if self._at else ""
        self._keys.update(f"enter {last}{skip}{back} · esc cancel")

    def _colors(self) -> Content:
        parts: list[Content | str] = []
        for name in NAMES:
            color = ink(name, dark=self.app.current_theme.dark)
            parts += [Content.styled(name, f"bold {color.hex}" if color else "bold"), " "]
        return Content.assemble(*parts, "or #rrggbb")

    def on_input_submitted(self) -> None:
        """Store the answer and continue."""
        value = self._input.value.strip()
        if self._step.field == "name" and not value:
            self._show("A name is required.")
            return
        self._answers[self._step.field] = value
        if self._at + 1 < len(STEPS):
            self._at += 1
            self._show()
        else:
            self.dismiss(msgspec.convert(self._answers, PersonaBrief))

    def action_back(self) -> None:
        """Go back to the question before; the current answer is kept."""
        if self._at:
            self._answers[self._step.field] = self._input.value.strip()
            self._at -= 1
            self._show()

    def action_leave(self) -> None:
        self.dismiss(None)
