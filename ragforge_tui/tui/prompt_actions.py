"""What the commands about the prompt do. A part of `ChatActions`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ragforge_tui.tui.app import ChatApp


class PromptActions:
    """The commands about what stands in the prompt of one chat screen."""

    _app: ChatApp

    async def edit_prompt(self) -> None:
        """Write the prompt in the person's own editor; nothing is sent by leaving it."""
        from ragforge_tui.tui.editor import edited

        prompt = self._app.prompt
        # The chat stands still meanwhile: what is there must outlive it.
        self._app.save_draft()
        text = await edited(self._app, prompt.whole, "prompt.md")
        prompt.put_whole(text.rstrip())
        prompt.focus()
