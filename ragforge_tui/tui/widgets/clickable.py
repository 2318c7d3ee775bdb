"""Words that run an action when they are clicked, for lines without a widget for each word."""

from __future__ import annotations

from textual import events
from textual.content import Content
from textual.style import Style

_COMMAND = "command"


def clickable(label: str | Content, action: str) -> Content:
    """Return a text that runs an action when it is clicked."""
    text = Content(label) if isinstance(label, str) else label
    return text.stylize(Style.from_meta({"@click": action}))


def runs_command(label: Content, command: str) -> Content:
    """Return a text that names the command a click on it runs, see `command_at`; it keeps its colours."""
    return label.stylize(Style.from_meta({_COMMAND: command})) if command else label


def command_at(event: events.Click) -> str:
    """Return the command that the clicked text runs; empty for none."""
    return str(event.style.meta.get(_COMMAND, ""))
