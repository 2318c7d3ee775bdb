"""/help: every command and key, read from the registry. Loaded when it is first opened."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Static

from ragforge_tui.tui.commands import Registry, key_name

KEYS = (
    ("enter", "send"),
    ("^j, alt+enter", "new line"),
    ("↑ ↓", "earlier prompts; first, ↑ takes queued messages back"),
    ("tab", "complete; to a waiting question, else to the chat"),
    ("j k space", "in the chat: next and previous block, fold"),
    ("y c", "in the chat: copy the block, copy its code"),
    ("esc", "close what is open; else stop the answer"),
    ("^c", "copy a selection; else stop; twice when idle: quit"),
    ("page up/down", "scroll the chat"),
    ("^p", "palette"),
)


class HelpScreen(ModalScreen[None]):
    """Scrolls when it does not fit; any of Escape, Enter, q closes it."""

    CSS = """
    HelpScreen { align: center middle; }
    HelpScreen > VerticalScroll {
        scrollbar-size-vertical: 1;
        width: 90; max-width: 96%; height: auto; max-height: 90%; background: $surface; border: round $border;
        padding: 0 1;
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,enter,q,f1", "dismiss(None)", show=False)]

    def __init__(self, registry: Registry, version: str) -> None:
        super().__init__()
        self._registry = registry
        self._version = version

    def compose(self) -> ComposeResult:
        """One text."""
        with VerticalScroll():
            yield Static(self._text())

    def _text(self) -> Content:
        commands = self._registry.commands
        width = max(len(command.usage) for command in commands) + 2
        lines = [Content.styled(f"ragforge-chat {self._version}".strip(), "bold"), Content(), Content("Commands")]
        for command in commands:
            key = f"  {key_name(command.key)}" if command.key else ""
            lines.append(Content.assemble((f"  {command.usage:<{width}}", "$primary"), command.help, (key, "dim")))
        lines += [Content(), Content("Keys")]
        lines += [Content.assemble((f"  {key:<{width}}", "$primary"), text) for key, text in KEYS]
        return Content("\n").join(lines)
