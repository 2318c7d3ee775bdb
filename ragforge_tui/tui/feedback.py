"""The line in which a person says why not; loaded when it is first wanted."""

from __future__ import annotations

from textual.widgets import Input

from ragforge_tui.tui.panel import QuestionPanel


class FeedbackInput(Input):
    """Enter sends the reason to the panel it stands in."""

    def __init__(self) -> None:
        super().__init__(placeholder="What should be done instead? Enter sends, Escape goes back", compact=True)

    async def action_submit(self) -> None:
        """Hand the text to the panel."""
        if isinstance(self.parent, QuestionPanel):
            self.parent.feedback_given(self.value.strip())
