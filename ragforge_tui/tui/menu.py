"""The slash menu: commands that fit what is being typed, just above the prompt."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Container

from ragforge_tui.tui.choices import Choice, ChoiceList
from ragforge_tui.tui.commands import Command, key_name


class SlashMenu(Container):
    """Hidden while there is nothing to offer; the prompt keeps the focus and moves the cursor."""

    def __init__(self) -> None:
        super().__init__(id="menu")
        self._list = ChoiceList(max_rows=8)
        self._commands: dict[str, Command] = {}

    def compose(self) -> ComposeResult:
        """One list."""
        yield self._list

    @property
    def chosen(self) -> Command | None:
        """The command under the cursor; None while the menu is closed."""
        choice = self._list.chosen if self.display else None
        return self._commands[choice.key] if choice else None

    def offer(self, commands: list[Command]) -> None:
        """Show these; none closes the menu."""
        self._commands = {command.name: command for command in commands}
        self.display = bool(commands)
        self._list.show([_row(command) for command in commands])

    def move(self, step: int) -> None:
        """Move the cursor, round the ends."""
        self._list.move(step, wrap=True)

    def close(self) -> None:
        """Hide it until the text changes."""
        self.offer([])


def _row(command: Command) -> Choice:
    detail = f"{command.help} · {key_name(command.key)}" if command.key else command.help
    return Choice(command.name, command.usage, detail)
