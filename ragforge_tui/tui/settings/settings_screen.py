"""The /settings screen: every setting with its value and source, changed in place; and the /theme list.

Loaded when first used. Values are saved in the user's settings file, whose comments are kept; `setting_rows.py`
describes the settings.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Input, Static

from ragforge_tui.settings.edit import remove_value, set_value
from ragforge_tui.shared.errors import RagforgeError
from ragforge_tui.shared.sanitize import plain_text
from ragforge_tui.tui.drawing.theme import NAMES
from ragforge_tui.tui.settings.setting_rows import Setting, following, matching, parse, section_title, shown
from ragforge_tui.tui.widgets.choice_list import Choice, ChoiceList
from ragforge_tui.tui.widgets.key_bar import KeyBar, KeyHint
from ragforge_tui.tui.widgets.list_screen import BACK, EditLine, ListScreen, Picker
from ragforge_tui.tui.workers import start_worker

KEYS = (KeyHint("change", "enter", "change"), KeyHint("reset", "alt+d", "default"), BACK)
NAME_CELLS = 26
"""Least cells of the names, so that values are at about column 30."""
EDIT_KEYS = (KeyHint("change", "enter", "save"), KeyHint("leave", "esc", "cancel"))


class SettingsScreen(ListScreen[None]):
    """Stays open while settings are changed; Escape leaves."""

    CSS = """
    SettingsScreen > Vertical { width: 140; height: 90%; }
    SettingsScreen ChoiceList { margin-top: 1; }
    SettingsScreen #settings-about { height: auto; min-height: 4; max-height: 6; margin-top: 1; }
    SettingsScreen #settings-note { height: auto; min-height: 1; max-height: 6; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("alt+d", "reset", "remove, forget, delete", show=False, priority=True),
    ]

    def __init__(
        self, read: Callable[[], list[Setting]], file: Path, changed: Callable[[str, Any], list[str]], query: str = ""
    ) -> None:
        """Create the screen.

        Args:
            read: Returns the current settings.
            file: The user's settings file.
            changed: Applies a setting that takes effect at once; returns the problems with it.
            query: Initial search words.
        """
        super().__init__()
        self._read = read
        self._file = file
        self._changed = changed
        self._query = query
        self._settings: dict[str, Setting] = {}
        self._editing = ""
        self._saved = False
        """Whether the last thing the user did was to change a setting."""
        self.cursor_list = self._list = ChoiceList(label_cells=NAME_CELLS)
        self._about = Static(id="settings-about", markup=False)
        self._line = EditLine(line_id="settings-value", select=True)
        self._note = Static(id="settings-note", markup=False)
        self._keys = KeyBar(self, KEYS)

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static(f"Settings, saved in {plain_text(str(self._file))}", classes="title", markup=False)
            yield Input(self._query, placeholder="type to search", compact=True, id="settings-query")
            yield self._list
            yield self._about
            yield self._line
            yield self._note
            yield self._keys

    def on_mount(self) -> None:
        """Read the settings."""
        self.query_one("#settings-query", Input).focus()
        self._reload()

    # -- showing

    def _reload(self) -> None:
        try:
            self._settings = {setting.key: setting for setting in self._read()}
        except RagforgeError as error:
            self.show_error(error.info.sentence())
        self._show(keep=True)

    def _show(self, *, keep: bool = False) -> None:
        query = self.query_one("#settings-query", Input).value
        found = matching(list(self._settings.values()), query)
        headings = not query.strip()
        rows = [_row(one, one.key.rpartition(".")[2] if headings else one.key.removeprefix("agent.")) for one in found]
        self._list.show(rows, headings=headings, keep=keep)
        self._show_details()

    @property
    def _chosen(self) -> Setting | None:
        choice = self._list.chosen
        return self._settings[choice.key] if choice else None

    def _show_details(self) -> None:
        setting = self._chosen
        if setting is None:
            self._about.update(Content.styled("no match", "dim"))
            return
        default = shown(setting, setting.default)
        facts = [setting.expected, f"by default: {default}", setting.since]
        lines = [
            Content.styled(setting.key, "bold"),
            Content(setting.description),
            Content.styled(" · ".join(facts), "dim"),
        ]
        if setting.wins:
            own = f"your file has {shown(setting, setting.own)}, but " if setting.is_own else ""
            lines.append(Content.styled(f"{own}{setting.wins} overrides your file", "$warning"))
        self._about.update(Content("\n").join(lines))

    def _show_message(self, text: str, style: str = "dim") -> None:
        self._note.update(Content.styled(plain_text(text), style))

    # -- changing

    def _change(self) -> None:
        """Change the setting at the cursor: the next value, or a line to type one."""
        setting = self._chosen
        if setting is None:
            return
        self._show_message("")
        if setting.kind == "switch":
            self._save(setting, following(setting))
        elif setting.choices:
            self._choose(setting)
        else:
            self._editing = setting.key
            self._keys.show_keys(EDIT_KEYS)
            self._line.begin(f"{setting.key.rpartition('.')[2]} ", setting.typed, password=setting.secret)

    def _choose(self, setting: Setting) -> None:
        """Let the user choose among all values."""
        values = {str(value): value for value in setting.choices}

        async def rows() -> list[Choice]:
            marks = {str(setting.default): "default", str(setting.value): "in effect"}
            return [Choice(name, shown(setting, value), marks.get(name, "")) for name, value in values.items()]

        def picked(name: str | None) -> None:
            if name is not None:
                self._save(setting, values[name])

        self.app.push_screen(Picker(setting.key, rows, empty="nothing", verb="use", at=str(setting.value)), picked)

    def _end_edit(self) -> None:
        self._editing = ""
        self._line.end()
        self._keys.show_keys(KEYS)
        self.query_one("#settings-query", Input).focus()

    def _save(self, setting: Setting, value: Any) -> None:
        """Save a value; the default is saved by removing the setting from the file."""
        start_worker(self, self._write(setting, value), group="write")

    async def _write(self, setting: Setting, value: Any) -> None:
        try:
            if value == setting.default:
                await asyncio.to_thread(remove_value, self._file, setting.key)
            else:
                await asyncio.to_thread(set_value, self._file, setting.key, value)
        except RagforgeError as error:
            self.show_error(error.info.sentence())
            return
        self._saved = True
        self.query_one("#settings-query", Input).action_select_all()  # The next letter starts another search.
        self._reload()
        if setting.wins:
            self._show_message(f"Saved in your file, but {setting.wins} overrides it.", "$warning")
        elif setting.live and (problems := self._changed(setting.key, value)):
            self._show_message("\n".join(problems), "$warning")
        else:
            self._show_message(f"{setting.key}: {shown(setting, value)}, {setting.since}")

    def on_input_changed(self, event: Input.Changed) -> None:
        """Filter while the user types; show errors of a value before it is saved."""
        event.stop()
        if event.input.id == "settings-query":
            self._saved = False
            self._show()
        elif self._editing:
            self._check(event.value)

    def _check(self, typed: str) -> None:
        try:
            parse(self._settings[self._editing], typed)
        except RagforgeError as error:
            self.show_error(error.info.sentence())
        else:
            self._show_message("")

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Change the setting, or save the typed value."""
        event.stop()
        self.action_change()

    def action_change(self) -> None:
        """Change the setting, or save the typed value."""
        if not self._editing:
            self._change()
            return
        setting = self._settings[self._editing]
        try:
            value = parse(setting, self._line.value)
        except RagforgeError as error:
            self.show_error(error.info.sentence())
            return
        self._end_edit()
        self._save(setting, value)

    def on_choice_list_picked(self, event: ChoiceList.Picked) -> None:
        """Choose a setting; a second click changes it."""
        event.stop()
        if self._editing:
            self._end_edit()
        if event.again:
            self._change()
        self._show_details()

    def action_reset(self) -> None:
        """Go back to the default."""
        setting = self._chosen
        if setting is not None and not self._editing:
            self._save(setting, setting.default)

    def action_move(self, step: int) -> None:
        """Move the cursor, unless a value is being typed."""
        if not self._editing:
            super().action_move(step)

    def cursor_moved(self) -> None:
        """Show the setting at the cursor."""
        self._saved = False
        self._show_message("")
        self._show_details()

    def show_error(self, sentence: str) -> None:
        self._show_message(sentence, "$error")

    def action_leave(self) -> None:
        """Leave the line, the search, then the screen; after a change the screen at once."""
        search = self.query_one("#settings-query", Input)
        self._show_message("")
        if self._editing:
            self._end_edit()
        elif search.value and not self._saved:
            search.value = ""
        else:
            self.dismiss(None)


def _row(setting: Setting, name: str) -> Choice:
    """Return a row: the name, the value next to it, the meaning, and the source if it is not the default."""
    meaning = re.split(r"\. (?=[A-Z])", setting.description, maxsplit=1)[0]
    badge = "" if setting.origin == "default" else setting.origin
    return Choice(setting.key, name, meaning, section_title(setting.section), value=setting.shown, badge=badge)


class ThemePicker(Picker):
    """Tries on the theme at the cursor; Enter keeps it. It covers little, so that the chat stays visible.

    Args:
        others: Names of themes that are not the chat's own.
        current: The current setting.
        try_theme: Uses a theme for now.
    """

    DEFAULT_CSS = """
    ThemePicker { align: right bottom; background: transparent; }
    ThemePicker > Vertical { width: 60; height: 15; max-height: 80%; margin: 0 1 4 0; }
    ThemePicker Input { margin: 0; }
    """
    page = 8

    def __init__(self, others: list[str], current: str, try_theme: Callable[[str], None]) -> None:
        super().__init__("Theme", self._themes, empty="no theme", verb="save", at=current, detail_right=False)
        self._others = others
        self._current = current
        self._try_theme = try_theme

    async def _themes(self) -> list[Choice]:
        own = [Choice(key, key, description, "The chat's own") for key, description in NAMES.items()]
        return own + [Choice(name, name, "", "Textual's") for name in self._others]

    def searched(self, row: Choice) -> str:
        return f"{row.key} {row.detail}"

    def on_input_changed(self) -> None:
        self.narrow()
        self.cursor_moved()

    def on_choice_list_picked(self, event: ChoiceList.Picked) -> None:
        """Try a theme on; a second click keeps it."""
        event.prevent_default(not event.again)
        self.cursor_moved()

    def cursor_moved(self) -> None:
        if (choice := self._list.chosen) is not None:
            self._try_theme(choice.key)

    def action_leave(self) -> None:
        """Go back to the theme before."""
        self._try_theme(self._current)
        self.dismiss(None)
