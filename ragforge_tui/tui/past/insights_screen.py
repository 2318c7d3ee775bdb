"""The insights of past conversations: stored ones at once, missing ones made while the screen is open.

Before a model is asked, the number of conversations and tokens is shown and confirmed. Loaded when first used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Static

from ragforge_tui.shared.events import Event, InsightsProgress
from ragforge_tui.shared.formatting import counted
from ragforge_tui.shared.past_records import InsightPlan, InsightsMade, PastChoice
from ragforge_tui.shared.requests.past import ListInsights, ListKept, MakeInsights, PlanInsights
from ragforge_tui.shared.sanitize import plain_text
from ragforge_tui.tui.dialogs.detail import Section
from ragforge_tui.tui.memory.topics_screen import Ask
from ragforge_tui.tui.past.insight_list import InsightList, InsightRows, insight_sections
from ragforge_tui.tui.widgets.key_bar import KeyBar, KeyHint
from ragforge_tui.tui.widgets.list_screen import TreeScreen
from ragforge_tui.tui.widgets.virtual_list import MARGIN

Place = tuple[str, int]
"""Conversation and turn."""


class InsightsScreen(TreeScreen[Place | None]):
    """Returns the turn that the user wants to see, None if it was closed.

    Args:
        cancel: Stops the run that makes insights; what it made is kept.
        query: Initial words to filter by.
    """

    CSS = """
    InsightsScreen > Vertical { width: 110; }
    InsightsScreen #insights-question { height: auto; color: $accent; display: none; }
    InsightsScreen #insights-answers { padding: 0; margin-bottom: 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "leave", "leave", show=False),
        Binding("m", "plan", "let the model do it", show=False),
        Binding("y", "agree", "yes", show=False),
        Binding("n", "refuse", "no", show=False),
    ]

    def __init__(
        self, ask: Ask, choice: PastChoice, *, now: Callable[[], datetime], cancel: Callable[[], None], query: str = ""
    ) -> None:
        self.rows = InsightRows(empty="loading …")
        super().__init__("Insights", self.rows, query=query)
        self._ask = ask
        self._choice = choice
        self._now = now
        self._cancel = cancel
        self.insights = InsightList()
        self._question = Static(id="insights-question", markup=False)
        self._answers = KeyBar(
            self, [KeyHint("agree", "y", "yes", True), KeyHint("refuse", "n", "not now")], id="insights-answers"
        )
        self._answers.display = False
        self._plan: InsightPlan | None = None
        self._making = False

    def above_tree(self) -> Iterable[Widget]:
        return (self._question, self._answers)

    def on_mount(self) -> None:
        """Fetch the insights while the screen is already visible."""
        self.rows.focus()
        self._show_keys()
        self.run_guarded(self._begin(), group="insights")

    def engine_event(self, event: Event) -> None:
        """Show each insight as soon as it is made."""
        if isinstance(event, InsightsProgress) and self._making:
            if event.entry is not None:
                self.insights.put(event.entry)
                self._show()
            self._keys.show_note(f"{event.done} of {event.total} · esc stops and leaves, what is done is kept")

    # -- making

    async def _begin(self) -> None:
        await self._load()
        await self._find_missing()

    async def _load(self) -> None:
        kept = await self._ask(ListKept(choice=self._choice))
        self.insights.load_kept(kept)
        found = await self._ask(ListInsights(choice=self._choice))
        self.insights.load(found)
        self._show()

    async def _find_missing(self, *, told: bool = False) -> None:
        """Ask before a model is used for the missing insights; without one they are made at once."""
        plan = await self._ask(PlanInsights(choice=self._choice))
        if not plan.count:
            self._show(empty="no conversation yet")
            if told:
                self.show_note("Every conversation has its insight.")
        elif plan.model:
            self._ask_user(plan)
            self._show(empty="no insights yet")
        else:
            await self._make()

    def _ask_user(self, plan: InsightPlan | None) -> None:
        """Show the question what a run may take, or remove it."""
        self._plan = plan
        self._question.display = self._answers.display = plan is not None
        if plan is not None:
            many = counted(plan.count, "conversation")
            text = f"Ask {plan.model} ({plan.destination}) about {many}, {counted(plan.tokens)} tokens at most?"
            self._question.update(Content(plain_text(text)))
        self._show_keys()

    async def _make(self) -> None:
        self._ask_user(None)
        self._making = True
        self._keys.show_note("starting …")
        try:
            made = await self._ask(MakeInsights(choice=self._choice))
        finally:
            self._making = False
        await self._load()
        self._show_keys()
        self.show_note(_outcome(made), "$error" if made.problem else "dim")

    # -- drawing

    def _show(self, *, empty: str | None = None) -> None:
        width = max(20, self.rows.scrollable_content_region.width - MARGIN)
        query = self._words.value
        lines = self.insights.lines(query, self._now(), width)
        self.rows.show(lines, empty="no insight has these words" if query.strip() else empty)

    def on_resize(self, event: events.Resize) -> None:
        if self.insights.loaded:
            self.call_after_refresh(self._show)

    def _show_keys(self) -> None:
        if self._plan is not None:
            self._keys.show_keys([KeyHint("leave", "esc", "back")])
            return
        hints = [KeyHint("leave", "esc", "back"), KeyHint("go", "g", "go to"), KeyHint("read", "r", "read")]
        self._keys.show_keys([*hints, KeyHint("plan", "m", "make missing"), KeyHint("narrow", "/", "words")])

    # -- keys

    def leave(self) -> None:
        """Stop a run and leave; what the run made is kept."""
        if self._making:
            self._cancel()
        super().leave()

    def filter_tree(self) -> None:
        if self.insights.loaded:
            self._show()

    def action_plan(self) -> None:
        """Find the conversations that lack a current insight."""
        if not self._making:
            self.run_guarded(self._find_missing(told=True), group="insights")

    def action_agree(self) -> None:
        if self._plan is not None and not self._making:
            self.run_guarded(self._make(), group="insights")

    def action_refuse(self) -> None:
        if self._plan is not None:
            self._ask_user(None)

    def toggle(self, key: str, wanted: bool | None) -> bool:
        changed = self.insights.toggle(key, wanted)
        if changed:
            self._show()
        return changed

    def action_go(self) -> None:
        """Go to the conversation of the chosen line, at the turn it cites."""
        if (place := self.insights.place(self.rows.chosen)) is not None:
            if self._making:
                self._cancel()
            self.dismiss(place)

    def action_read(self) -> None:
        """Show all of the chosen insight."""
        entry = self.insights.entry(self.rows.chosen)
        if entry is None:
            return
        from ragforge_tui.tui.dialogs.text_viewer import DetailScreen

        async def load() -> tuple[str, list[Section]]:
            return title, insight_sections(entry)

        title = entry.title or f"untitled {entry.conversation_id[:8]}"
        self.app.push_screen(DetailScreen(title, load, actions={}))


def _outcome(made: InsightsMade) -> str:
    left = f" · {made.left} left, m makes them" if made.left else ""
    if made.problem:
        return f"{made.problem} {made.made} made and kept{left}"
    return f"{counted(made.made, 'insight')} made{left}"
