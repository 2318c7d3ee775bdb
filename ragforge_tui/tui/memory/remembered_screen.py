"""What is remembered: wishes, decisions, open points and facts, to read, pin, edit, forget and confirm.

Loaded when first used. The lines come from `remembered_list.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.widget import Widget
from textual.widgets import Input

from ragforge_tui.shared.finding_records import KeptFinding
from ragforge_tui.shared.memory_acts import ACT_WORDS, ActKind
from ragforge_tui.shared.requests.findings import ActOnFinding, ListRemembered, UndoMemoryAct
from ragforge_tui.tui.dialogs.detail import Section
from ragforge_tui.tui.drawing.lines import one_line
from ragforge_tui.tui.memory.remembered_list import RememberedModel, RememberedRows, act_lines
from ragforge_tui.tui.memory.topics_screen import Ask
from ragforge_tui.tui.widgets.key_bar import KeyHint
from ragforge_tui.tui.widgets.list_screen import EditLine, TreeScreen

_EDIT = "remembered-text"
_NOTHING = 'nothing is remembered yet: say "from now on …", "never …" or "I prefer …"'


class RememberedScreen(TreeScreen[tuple[str, int] | None]):
    """Returns the conversation and turn that the user wants to see, None if it was closed.

    Args:
        workspace: The folder whose memory is shown; ``w`` shows that of all folders.
        conversation_id: The open conversation, which may be private; empty for none.
        now: Returns the time in the user's time zone.
        query: Initial words.
    """

    CSS = "RememberedScreen > Vertical { width: 120; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "leave", "leave", show=False),
        Binding("p", "pin", "pin", show=False),
        Binding("e", "edit", "edit", show=False),
        Binding("d", "act('forget')", "remove, forget, delete", show=False),
        Binding("f", "act('confirm')", "mark as done", show=False),
        Binding("u", "undo", "undo", show=False),
        Binding("1", "everything", "list, filter or finding of that number", show=False),
        Binding("w", "folders", "this folder or all", show=False),
        Binding("U", "log", "what you did", show=False),
    ]

    def __init__(
        self, ask: Ask, *, workspace: str | None, conversation_id: str, now: Callable[[], datetime], query: str = ""
    ) -> None:
        self.rows = RememberedRows(empty="loading …")
        super().__init__("What is remembered", self.rows, query=query)
        self._ask = ask
        self._workspace = workspace
        self._all_folders = workspace is None
        self._conversation_id = conversation_id
        self._now = now
        self.model = RememberedModel()
        self._line = EditLine(line_id=_EDIT, select=False)
        self._edited = ""
        """Id of the finding whose text is edited; empty for none."""

    def below_tree(self) -> Iterable[Widget]:
        return (self._line,)

    def on_mount(self) -> None:
        """Fetch what is remembered while the screen is already visible."""
        self.rows.focus()
        self._show_keys()
        self.run_guarded(self._load(), group="remembered")

    # -- drawing

    async def _load(self) -> None:
        workspace = None if self._all_folders else self._workspace
        request = ListRemembered(workspace=workspace, conversation_id=self._conversation_id)
        self.model.load(await self._ask(request))
        self._show_keys()
        self._show()

    def _show(self) -> None:
        query = self._words.value
        empty = "nothing that is remembered has these words" if query.strip() else _NOTHING
        self.rows.show(self.model.lines(query, self._now()), empty=empty)

    def on_resize(self, event: events.Resize) -> None:
        super().on_resize(event)
        if self.model.loaded:
            self.call_after_refresh(self._show)

    def _show_keys(self) -> None:
        hints = [
            KeyHint("leave", "esc", "back"),
            KeyHint("go", "enter", "its turn"),
            KeyHint("pin", "p", "pin"),
            KeyHint("edit", "e", "edit"),
            KeyHint("act('forget')", "d", "forget"),
            KeyHint("act('confirm')", "f", "done"),
            KeyHint("undo", "u", "undo"),
            KeyHint("read", "r", "read"),
            KeyHint("everything", "1", "also old", self.model.everything),
            KeyHint("folders", "w", "all folders", self._all_folders),
            KeyHint("log", "U", "what you did"),
            KeyHint("narrow", "/", "words"),
        ]
        self._keys.show_keys(hints)

    # -- keys of the tree

    def filter_tree(self) -> None:
        if self.model.loaded:
            self._show()

    def toggle(self, key: str, wanted: bool | None) -> bool:
        changed = self.model.toggle(key, wanted)
        if changed:
            self._show()
        return changed

    def action_leave(self) -> None:
        if self._edited:
            self._end_edit()
        else:
            super().action_leave()

    def action_go(self) -> None:
        """Go to the turn of the chosen finding."""
        if (finding := self.model.finding(self.rows.chosen)) is not None:
            self.dismiss((finding.conversation_id, finding.turn_index))

    def action_read(self) -> None:
        """Show all about the chosen finding."""
        if (finding := self.model.finding(self.rows.chosen)) is not None:
            self._show_details(one_line(finding.text), self.model.sections(finding))

    def action_log(self) -> None:
        """Show what the user did with what is remembered."""
        text = "\n".join(act_lines(self.model.acts)) or "Nothing was pinned, edited, forgotten or confirmed yet."
        self._show_details("What you did with it", [Section(title="Newest first", text=text, kind="prose")])

    def _show_details(self, title: str, sections: list[Section]) -> None:
        from ragforge_tui.tui.dialogs.text_viewer import DetailScreen

        async def load() -> tuple[str, list[Section]]:
            return title, sections

        self.app.push_screen(DetailScreen(title, load, actions={}))

    def action_everything(self) -> None:
        """List what is done, replaced or forgotten too, or only what holds."""
        self.model.everything = not self.model.everything
        self._show()
        self._show_keys()

    def action_folders(self) -> None:
        """Show the memory of all folders, or of this one."""
        if self._workspace is not None:
            self.switch(self._load, group="remembered", _all_folders=not self._all_folders)

    # -- acts

    def action_pin(self) -> None:
        finding = self.model.finding(self.rows.chosen)
        self.action_act("unpin" if finding is not None and finding.pinned else "pin")

    def action_act(self, act: ActKind) -> None:
        """Pin, forget or confirm the chosen finding."""
        if (finding := self.model.finding(self.rows.chosen)) is not None:
            self.run_guarded(self._act(finding, act), group="act")
        else:
            self.show_note("Choose one of the sentences.")

    async def _act(self, finding: KeptFinding, act: ActKind, text: str = "") -> None:
        request = ActOnFinding(ref=finding.uuid, act=act, text=text, conversation_id=self._conversation_id)
        listed = self._keys_of_findings()
        place = listed.index(finding.uuid) if finding.uuid in listed else 0
        changed = await self._ask(request)
        await self._load()
        listed = self._keys_of_findings()
        if changed.uuid in listed:
            self.rows.choose(changed.uuid)
        elif listed:
            self.rows.choose(listed[min(place, len(listed) - 1)])
        told = f"{ACT_WORDS[act].capitalize()}. u takes it back."
        if act == "forget":
            told = f"Forgotten; the words of t{finding.turn_index} stay in their conversation. u takes it back."
        self.show_note(told)

    def _keys_of_findings(self) -> list[str]:
        """Return the keys of the findings that are listed."""
        lines = self.model.lines(self._words.value, self._now())
        return [line.key for line in lines if self.model.finding(line.key) is not None]

    def action_undo(self) -> None:
        """Take the newest act back."""

        async def work() -> None:
            act = await self._ask(UndoMemoryAct(conversation_id=self._conversation_id))
            await self._load()
            self.rows.choose(act.finding)
            self.show_note(f"Taken back: {ACT_WORDS[act.act]} “{one_line(act.text)}”")

        self.run_guarded(work(), group="act")

    def action_edit(self) -> None:
        """Edit the text of the chosen finding."""
        if (finding := self.model.finding(self.rows.chosen)) is not None:
            self._edited = finding.uuid
            self._line.begin("text ", one_line(finding.text))

    def _end_edit(self) -> None:
        self._edited = ""
        self._line.end()
        self.rows.focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Filter while the user types words."""
        if event.input.id != _EDIT:
            super().on_input_changed(event)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Store the edited text, or go to the list."""
        if event.input.id != _EDIT:
            super().on_input_submitted(event)
            return
        event.stop()
        finding, text = self.model.finding(self._edited), event.value.strip()
        self._end_edit()
        if finding is not None and text and text != finding.text:
            self.run_guarded(self._act(finding, "edit", text), group="act")
