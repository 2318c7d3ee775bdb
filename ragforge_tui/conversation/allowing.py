"""Commands that the user allows permanently, held in memory and written to the user's settings file.

Used by the approvals. A project's file can never add to them: `settings/load` rejects the key there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path

from ragforge_tui.shared.errors import ConfigError
from ragforge_tui.shared.events import Notice
from ragforge_tui.tools.allowed import offer, problem_of

KEY = "tools.allow_commands"


class AllowedCommands:
    """Patterns of commands that run without asking.

    Args:
        patterns: The patterns in the settings.
        config_file: The user's settings file. If empty, new patterns are not saved and end with the engine.
    """

    def __init__(self, patterns: Iterable[str] = (), config_file: str = "") -> None:
        self.patterns = list(patterns)
        self._file = config_file

    def problems(self) -> list[str]:
        """Return a sentence for each invalid pattern, which allows nothing."""
        wrong = ((pattern, problem_of(pattern)) for pattern in self.patterns)
        return [f"{KEY}: {pattern!r} allows nothing, {problem}." for pattern, problem in wrong if problem]

    def offer(self, command: str) -> str:
        """Return the pattern to offer for this command; empty if there is none."""
        return offer(command) if command else ""

    async def add(self, pattern: str) -> Notice:
        """Allow a pattern from now on; return a notice that names the file, or why it was not saved."""
        if pattern not in self.patterns:
            self.patterns.append(pattern)
        if not self._file:
            return Notice(text=f"`{pattern}` runs without asking until the chat ends.")
        try:
            await asyncio.to_thread(_save, Path(self._file), pattern)
        except ConfigError as error:
            return Notice(text=f"`{pattern}` runs without asking, but only in this chat: {error}", level="warning")
        return Notice(text=f"`{pattern}` runs without asking from now on: {KEY} in {self._file}.")


def _save(file: Path, pattern: str) -> None:
    from ragforge_tui.settings.edit import set_value
    from ragforge_tui.settings.parse import parse_yaml

    try:
        values = parse_yaml(file, file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        values = None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file}: cannot be read: {error}.") from error
    section = values.get("tools") if isinstance(values, dict) else None
    saved = section.get("allow_commands") if isinstance(section, dict) else None
    patterns = list(saved) if isinstance(saved, list) else []
    if pattern not in patterns:
        set_value(file, KEY, [*patterns, pattern])
