"""The /rules screen: what the agent's calls may do without asking, must ask for, or may not do.

Loaded when first used. The engine validates and saves a rule; a folder is chosen by key, not typed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import ClassVar

import msgspec
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Input, Static

from ragforge_tui.shared.requests.rules import ChangeRule, RuleEntry, RuleList
from ragforge_tui.shared.rules import EFFECTS, PROGRAMS, Rule, parse_rule
from ragforge_tui.shared.sanitize import plain_text
from ragforge_tui.tui.widgets.choice_list import Choice, ChoiceList
from ragforge_tui.tui.widgets.key_bar import KeyBar, KeyHint
from ragforge_tui.tui.widgets.list_screen import BACK, EditLine, ListScreen

KEYS = (
    KeyHint("edit", "enter", "change"),
    KeyHint("turn_effect(1)", "right", "allow/ask/deny"),
    KeyHint("add", "a", "add"),
    KeyHint("remove", "d", "remove"),
    KeyHint("turn_folder", "w", "this folder/all"),
    BACK,
)
EDIT_KEYS = (KeyHint("save", "enter", "save"), KeyHint("leave", "esc", "cancel"))
EXAMPLES = (
    "allow @tests · allow git commit * · ask write(docs/) · deny git push * · deny write(*.lock)\n"
    f"kinds of programs: {', '.join(f'{name} ({what})' for name, what in PROGRAMS.items())}"
)
EMPTY = "No rules: writes and commands ask. a adds one; an answer “always” to a question does too."


class RulesScreen(ListScreen[None]):
    """Stays open while rules are changed; Escape leaves.

    Args:
        load: Returns the rules.
        change: Changes one, and returns the rules.
    """

    CSS = """
    RulesScreen > Vertical { width: 110; height: 80%; }
    RulesScreen ChoiceList { margin-top: 1; }
    RulesScreen #rules-about { height: auto; margin-top: 1; color: $text-muted; }
    RulesScreen #rules-note { height: auto; min-height: 1; max-height: 4; }
    """
    AUTO_FOCUS = ""  # Not the hidden line, which would take the letters.
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "edit", show=False),
        Binding("a", "add", "add", show=False),
        Binding("d,delete", "remove", "remove, forget, delete", show=False),
        Binding("right", "turn_effect(1)", show=False),
        Binding("left", "turn_effect(-1)", show=False),
        Binding("w", "turn_folder", "this folder or all", show=False),
    ]

    def __init__(
        self, load: Callable[[], Awaitable[RuleList]], change: Callable[[ChangeRule], Awaitable[RuleList]]
    ) -> None:
        super().__init__()
        self._load = load
        self._change = change
        self._found = RuleList(rules=[], folder="")
        self._editing: RuleEntry | None = None
        self.cursor_list = self._list = ChoiceList(detail_right=True)
        self._title = Static("Rules", classes="title", markup=False)
        self._line = EditLine(line_id="rules-line", select=False)
        self._note = Static(id="rules-note", markup=False)
        self._keys = KeyBar(self)
        self._keys.show_note("loading …")

    def compose(self) -> ComposeResult:
        """Lay out title, rules, examples, the line to edit, and keys."""
        with Vertical():
            yield self._title
            yield self._list
            yield Static(EXAMPLES, id="rules-about", markup=False)
            yield self._line
            yield self._note
            yield self._keys

    def on_mount(self) -> None:
        """Fetch the rules while the screen is already visible."""
        self.run_guarded(self._fill(), group="rules")

    async def _fill(self) -> None:
        self._show(await self._load())

    def _show(self, found: RuleList, note: str = "") -> None:
        self._found = found
        saved = f", saved in {found.file}" if found.file else ""
        self._title.update(plain_text(f"Rules for the agent's calls{saved}"))
        self._list.show([self._row(entry) for entry in self._ordered()], keep=True)
        self._note.update(Content.styled(plain_text(note or ("" if found.rules else EMPTY)), "dim"))
        self._keys.show_keys(EDIT_KEYS if self._line.display else KEYS)

    def _ordered(self) -> list[RuleEntry]:
        """Return the rules of this folder, those of all, those of the session, and those of other folders."""
        return sorted(self._found.rules, key=lambda entry: _GROUPS.index(self._group(entry)))

    def _group(self, entry: RuleEntry) -> str:
        if entry.session:
            return "Until this chat ends"
        if entry.rule.folder:
            return "In this folder" if entry.rule.folder == self._found.folder else "In other folders"
        return "In every folder"

    def _row(self, entry: RuleEntry) -> Choice:
        rule, group = entry.rule, self._group(entry)
        detail = rule.folder if group == "In other folders" else PROGRAMS.get(rule.about, "")
        return Choice(_key(entry), f"{rule.effect:<6}{rule.about}", detail, group)

    @property
    def _chosen(self) -> RuleEntry | None:
        key = self._list.chosen.key if self._list.chosen else ""
        return next((entry for entry in self._found.rules if _key(entry) == key), None)

    def _save(self, old: Rule | None, new: Rule | None) -> None:
        self.run_guarded(self._store(old, new), group="rules")

    async def _store(self, old: Rule | None, new: Rule | None) -> None:
        found = await self._change(ChangeRule(old=old, new=new))
        if self._line.display:
            self._end_edit()
        self._show(found, f"Removed: {old}" if new is None else f"Saved: {new}")
        if new is not None:
            self._list.go_to(f"{new}")

    def action_edit(self) -> None:
        """Edit the rule at the cursor; its folder stays."""
        if (entry := self._chosen) is not None:
            self._editing = entry
            self._begin(f"{entry.rule.effect} {entry.rule.about}")

    def action_add(self) -> None:
        """Type a new rule, for this folder."""
        self._editing = None
        self._begin("allow ")

    def _begin(self, text: str) -> None:
        self._note.update("")
        self._keys.show_keys(EDIT_KEYS)
        self._line.begin("rule ", text)

    def _end_edit(self) -> None:
        self._line.end()
        self._keys.show_keys(KEYS)
        self.set_focus(None)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.action_save()

    def action_save(self) -> None:
        """Save the typed rule."""
        try:
            rule = parse_rule(self._line.value)
        except ValueError as error:
            self.show_error(f"This is no rule, because {error}.")
            return
        old = self._editing.rule if self._editing is not None else None
        folder = rule.folder or (old.folder if old is not None else self._found.folder)
        self._save(old, msgspec.structs.replace(rule, folder=folder))

    def on_choice_list_picked(self, event: ChoiceList.Picked) -> None:
        """Choose a rule; a second click edits it."""
        event.stop()
        if event.again and not self._line.display:
            self.action_edit()

    def action_remove(self) -> None:
        if (entry := self._chosen) is not None and not self._line.display:
            self._save(entry.rule, None)

    def action_turn_effect(self, step: int) -> None:
        """Let the rule allow, ask or deny, in turn."""
        if (entry := self._chosen) is not None and not self._line.display:
            following = EFFECTS[(EFFECTS.index(entry.rule.effect) + step) % len(EFFECTS)]
            self._save(entry.rule, msgspec.structs.replace(entry.rule, effect=following))

    def action_turn_folder(self) -> None:
        """Let the rule hold in this folder, or in all."""
        if (entry := self._chosen) is not None and not entry.session and not self._line.display:
            folder = "" if entry.rule.folder else self._found.folder
            self._save(entry.rule, msgspec.structs.replace(entry.rule, folder=folder))

    def action_move(self, step: int) -> None:
        """Move the cursor, unless a rule is being typed."""
        if not self._line.display:
            super().action_move(step)

    def show_error(self, sentence: str) -> None:
        self._note.update(Content.styled(plain_text(sentence), "$error"))
        self._keys.show_keys(EDIT_KEYS if self._line.display else KEYS)

    def action_leave(self) -> None:
        """Leave the line, then the screen."""
        if self._line.display:
            self._end_edit()
            self._note.update("")
        else:
            self.dismiss(None)


_GROUPS = ("In this folder", "In every folder", "Until this chat ends", "In other folders")


def _key(entry: RuleEntry) -> str:
    return f"session {entry.rule}" if entry.session else str(entry.rule)
