"""The chat screen as commands, panes and dialogs see it.

They depend on this protocol instead of on the screen, so that no module but the program's start imports it.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, runtime_checkable

from textual.app import App
from textual.screen import Screen

from ragforge_tui.shared.events import Event
from ragforge_tui.tui.command_registry import Registry
from ragforge_tui.tui.features import Features
from ragforge_tui.tui.navigator import Navigator
from ragforge_tui.tui.session.engine_session import EngineSession
from ragforge_tui.tui.session.state import ChatOptions

if TYPE_CHECKING:
    from ragforge_tui.tui.prompt.prompt import Prompt
    from ragforge_tui.tui.questions.question_panel import Question, QuestionPanel
    from ragforge_tui.tui.transcript import Transcript
    from ragforge_tui.tui.widgets.queue import Queue

T = TypeVar("T")

FIND_BAR = "find"
"""The id of the search bar, by which it is known before it is imported."""
HISTORY_BAR = "history"
"""The id of the search in the earlier prompts."""


class Host(Protocol):
    """Session, widgets and actions of one chat screen."""

    @property
    def app(self) -> App[Any]:
        """The Textual app, for what only the framework can do."""
        ...

    @property
    def session(self) -> EngineSession:
        """Connection to the engine and what it reported."""
        ...

    @property
    def options(self) -> ChatOptions:
        """Options of the chat, with the settings as they are now."""
        ...

    @property
    def registry(self) -> Registry: ...

    @property
    def navigator(self) -> Navigator: ...

    @property
    def transcript(self) -> Transcript: ...

    @property
    def prompt(self) -> Prompt: ...

    @property
    def questions(self) -> QuestionPanel: ...

    @property
    def queue(self) -> Queue: ...

    @property
    def sidebar(self) -> Panes: ...

    @property
    def settings(self) -> ScreenSettings: ...

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

    async def leave(self) -> None:
        """End the engine in order and leave the chat."""


class Panes(Protocol):
    """The sidebar."""

    def toggle(self, pane: str = "") -> None:
        """Show a pane, or close what its key opened; without a name, show or hide the sidebar."""

    def uncover(self) -> bool:
        """Hide it if it covers the chat; return whether it did."""
        ...


class ScreenSettings(Protocol):
    """The settings of the screen."""

    def apply(self, key: str, value: Any) -> list[str]:
        """Let a setting take effect now; return the problems with it."""
        ...

    def problems(self) -> list[str]:
        """Return the problems with all of them, in sentences."""
        ...

    def use_theme(self, setting: str) -> None:
        """Use the theme that a setting names, for now."""


@runtime_checkable
class AnswersEscape(Protocol):
    """A widget with something for Escape to close or to refuse."""

    def escape(self) -> bool:
        """Answer Escape; return False to leave it to what is around."""
        ...


@runtime_checkable
class EventScreen(Protocol):
    """A screen over the chat that updates itself while it is open."""

    def engine_event(self, event: Event) -> None:
        """Take in an event of any conversation, except for deltas. Must be cheap."""
