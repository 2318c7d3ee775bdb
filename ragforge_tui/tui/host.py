"""The chat screen as commands, panes and dialogs see it.

They depend on this protocol instead of on the app, so that no module but the program's start imports the app.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from textual.app import App
from textual.screen import Screen

from ragforge_tui.tui.command_registry import Registry
from ragforge_tui.tui.features import Features
from ragforge_tui.tui.session.engine_session import EngineSession
from ragforge_tui.tui.session.state import ChatOptions

if TYPE_CHECKING:
    from ragforge_tui.tui.prompt.prompt import Prompt
    from ragforge_tui.tui.questions.question_panel import Question
    from ragforge_tui.tui.transcript import Transcript

T = TypeVar("T")

FIND_BAR = "find"
"""The id of the search bar, by which it is known before it is imported."""


class Host(Protocol):
    """Session, widgets and actions of one chat screen."""

    @property
    def app(self) -> App[str]:
        """The Textual app, for what only the framework can do."""
        ...

    @property
    def session(self) -> EngineSession:
        """Connection to the engine and state of the chat."""
        ...

    @property
    def options(self) -> ChatOptions:
        """Options of the chat, with the settings as they are now."""
        ...

    @property
    def registry(self) -> Registry: ...

    @property
    def transcript(self) -> Transcript: ...

    @property
    def prompt(self) -> Prompt: ...

    @property
    def features(self) -> Features:
        """Record of the features that the user has used."""
        ...

    @property
    def plain(self) -> bool: ...

    def now(self) -> datetime:
        """Return the time in the user's time zone."""
        ...

    def open_screen(self, screen: Screen[T | None], picked: Callable[[T], object] | None = None) -> None:
        """Show a screen over the chat; `picked` receives its result, unless it was left without one."""

    def run_command(self, name: str, argument: str = "") -> None:
        """Run a command by name; its errors become notices."""

    def hint(self, text: str) -> None:
        """Show a word in the status line for a moment."""

    def ask_user(self, question: Question) -> None:
        """Show a question above the prompt."""

    def message_returned(self, text: str) -> None:
        """Put a message back into the prompt, which gets the focus."""

    def save_draft(self) -> None:
        """Store the contents of the prompt."""

    def toggle_pane(self, name: str = "") -> None:
        """Show or leave a pane of the sidebar; without a name, show or hide the sidebar."""

    def uncover_chat(self) -> None:
        """Hide a sidebar that covers the chat."""

    def go_to_turns(self, first: int, last: int = 0, *, conversation_id: str = "") -> None:
        """Bring turns into view, of the open conversation or another one."""

    async def show_turn(self, turn_index: int, last: int = 0) -> None:
        """Bring turns of the open conversation into view and mark them for a moment.

        Raises:
            NotFoundError: The conversation has no such turn.
        """

    def go_to_conversation(self, conversation_id: str, turn: int = 0) -> None:
        """Open a conversation in the background, at a turn or at its end."""

    async def open_conversation(self, ref: str, *, turn: int = 0) -> None:
        """Open a conversation by id or prefix, at a turn or at its end."""

    def apply_setting(self, key: str, value: Any) -> list[str]:
        """Let a setting of the screen take effect now; return the problems with it."""
        ...

    def use_theme(self, setting: str) -> None:
        """Use the theme that a setting names, for now."""

    async def leave(self) -> None:
        """End the engine in order and leave the chat."""
