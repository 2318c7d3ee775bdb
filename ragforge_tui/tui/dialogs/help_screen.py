"""The /help screen: every command and key, from the registry. Loaded when first used."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Static

from ragforge_tui.shared.tool_calls import described_tools
from ragforge_tui.tui.command_registry import Registry, effective_keys, stop_key
from ragforge_tui.tui.drawing.lines import wrap_spans
from ragforge_tui.tui.keys import ALT, CTRL, LETTERS, PAGER, key_name
from ragforge_tui.tui.widgets.key_bar import KeyBar, KeyHint
from ragforge_tui.tui.widgets.list_screen import Dialog

NARROW = 76
WIDEST = 90
FRAME = 5
"""Columns of the border, the padding and the scroll bar."""
KEYS = (
    ("enter", "send; while the agent works, before its next step"),
    (f"{key_name('ctrl+j')}, {key_name('alt+enter')}", "new line"),
    ("↑ ↓", "earlier prompts; ↑ first takes back the last queued message"),
    ("tab", "complete; while the agent works, queue; else go to a waiting question or the chat"),
    ("@", "in the prompt: mention a file by a few letters of its name"),
    ("!", "at the start of the prompt: run a shell command"),
    ("tab shift+tab", "in the sidebar: next and previous pane; esc goes back to the prompt"),
)
"""Keys of the prompt and the sidebar; the numbers of single panes follow."""
SCREEN_KEYS = (
    *((key_name(key), CTRL[key]) for key in ("ctrl+c", "ctrl+z")),
    ("page up/down", "scroll the chat"),
    (key_name("ctrl+p"), CTRL["ctrl+p"]),
)
PLACES = (
    ("Keys of the chat, panes, lists and windows", LETTERS),
    ("Keys of the chat as a pager", PAGER),
    ("Keys of a list that typing filters", ALT),
)


class HelpScreen(Dialog[None]):
    """Scrolls if it does not fit; Escape, Enter or q closes it."""

    CSS = """
    HelpScreen > Vertical { width: 90; }
    HelpScreen VerticalScroll { height: 1fr; margin: 1 0; scrollbar-size-vertical: 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,enter,q,f1", "dismiss(None)", "leave", show=False)]

    def __init__(self, registry: Registry, version: str, keymap: Mapping[str, str]) -> None:
        super().__init__()
        self._registry = registry
        self._version = version
        self._keymap = keymap

    def compose(self) -> ComposeResult:
        with Vertical():
            title = f"Help · ragforge-chat {self._version}".strip()
            yield Static(f"{title} · keys, commands, tools", classes="title", markup=False)
            with VerticalScroll():
                yield Static(help_text(self._registry, self._keymap, screen=self.app.size.width))
            yield KeyBar(self, [KeyHint("scroll(1)", "pagedown", "scroll"), KeyHint("dismiss(None)", "esc", "back")])

    def action_scroll(self, pages: int) -> None:
        scrolled = self.query_one(VerticalScroll)
        scrolled.scroll_relative(y=pages * scrolled.size.height, animate=False)

    def on_mount(self) -> None:
        self.query_one(VerticalScroll).focus()  # so that the arrow keys scroll


def help_text(registry: Registry, keymap: Mapping[str, str], *, screen: int = 0) -> Content:
    """Return the keys, then all commands under their headings and the agent's tools.

    Args:
        screen: Columns of the screen; on a narrow one the help of a command is below it instead of next to it.
            0: lines may be of any length.
    """
    narrow = 0 < screen < NARROW
    room = min(WIDEST, screen) - FRAME if screen else 10_000
    keys = effective_keys(keymap, registry)
    width = 2 if narrow else max(len(command.usage) for command in registry.commands) + 2
    lines = [Content.styled("Keys", "bold")]
    command_keys = [command.keys for command in registry.commands if command.keys[0]]
    escape_keys = _escape_keys(stop_key(keymap, registry))
    for key, text in (*KEYS, *command_keys, *escape_keys, *SCREEN_KEYS):
        lines += _entry(key, text, "", width, narrow, room)
    for heading, commands in registry.groups().items():
        lines += [Content(), Content.styled(heading, "bold")]
        for command in commands:
            key = f"  {key_name(keys[command.name])}" if command.name in keys else ""
            lines += _entry(command.usage, command.help, key, width, narrow, room)
    for heading, meanings in PLACES:
        lines += [Content(), Content.styled(heading, "bold")]
        for key, text in meanings.items():
            lines += _entry(key_name(key), text, "", width, narrow, room)
    lines += [Content(), Content.styled("Tools of the agent", "bold")]
    for tool in described_tools():
        if tool.help and not tool.joined:
            # Settings and personas know it by its name.
            name = f"  {tool.name}" if tool.label else ""
            lines += _entry(tool.label or tool.name, tool.help, name, width, narrow, room)
    return Content("\n").join(lines)


def _escape_keys(stop: str) -> list[tuple[str, str]]:
    """Return Escape and the key that stops the answer; unless the user has changed the latter, they are the same."""
    chat = "back to the prompt, and from there stop the answer"
    back = (f"{stop} {stop}", "in the empty prompt: go back to an earlier turn")
    if stop == "esc":
        return [(stop, f"close a menu or screen; else {chat}"), back]
    return [("esc", "close a screen"), (stop, f"close a menu; else {chat}"), back]


def _entry(name: str, text: str, key: str, width: int, narrow: bool, room: int) -> list[Content]:
    if narrow:
        below = [Content(f"    {text[start:end]}") for start, end, _ in wrap_spans(text, max(1, room - 4))]
        return [Content.assemble((f"  {name}", "$primary"), (key, "dim")), *below]
    spans = wrap_spans(text, max(1, room - width - 2 - len(key)))
    lines = [Content(text[start:end]) for start, end, _ in spans]
    lines[-1] = Content.assemble(lines[-1], (key, "dim"))
    heads = [Content.styled(f"  {name:<{width}}", "$primary")] + [Content(" " * (width + 2))] * len(spans)
    return [head + line for head, line in zip(heads, lines, strict=False)]
