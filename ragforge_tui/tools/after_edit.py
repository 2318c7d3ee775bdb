"""Commands of the user's settings that run after a reply has edited files: a formatter, a linter, tests.

They run as commands of the agent do, out of the program's reach, and without a question, because the user's own
settings name them. What they print goes to the model with the result of the edit, in short. A file that they changed
counts as seen by the model, and undoing the turn takes their change back too.
"""

from __future__ import annotations

import asyncio
import fnmatch
import re
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path, PurePosixPath

import msgspec

from ragforge_tui.settings.schema import ToolSettings
from ragforge_tui.shared.errors import ToolError
from ragforge_tui.shared.records import FileAccess
from ragforge_tui.shared.truncation import cut_middle
from ragforge_tui.tools.base import SandboxRefusal, ToolContext, ToolOutcome, sandboxed
from ragforge_tui.tools.shell.run_command import RunCommand, RunCommandArguments
from ragforge_tui.tools.snapshots import digest_of
from ragforge_tui.tools.undo.restore import KeptFiles
from ragforge_tui.tools.workspace import read_bytes

MOST_CHARS = 2_000
"""Characters of one command's output, and of the diff of a file, that the model gets."""
_FILES = re.compile(r"\{(files|\*[^{}\s,]*)\}")
"""Place of the edited files in a command: all of them, or those that match a pattern such as ``*.py``."""


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """Outcome of one command; `error` is empty if it succeeded."""

    command: str
    error: str = ""


class AfterEdit:
    """The commands for one workspace.

    Args:
        frozen: Returns whether no command may start any more.
    """

    def __init__(self, context: ToolContext, kept: KeptFiles, frozen: Callable[[], bool]) -> None:
        self._context = context
        self._kept = kept
        self._frozen = frozen
        self._commands = commands_for(context.settings, context.workspace.root)
        self._tool = RunCommand(context)

    async def run(self, outcome: ToolOutcome, files: Sequence[str]) -> list[Check]:
        """Run the commands for edited files; what they did is added to the outcome of the last edit.

        Returns:
            The outcomes, none if no command is meant for these files.
        """
        before = await asyncio.to_thread(self._contents, files)
        checks: list[Check] = []
        texts: list[str] = []
        for template in self._commands:
            command = command_with(template, list(before))
            if not command or self._frozen():
                continue
            try:
                plan = await self._tool.prepare(RunCommandArguments(command=command))
                # Nobody is asked, so what a command in the sandbox has changed runs there only.
                held = plan.approval is not None and plan.approval.planted != ""
                before_call = sandboxed.set("workspace" if held else "")
                try:
                    done = await plan.run()
                finally:
                    sandboxed.reset(before_call)
            except (ToolError, SandboxRefusal) as error:
                done = ToolOutcome(text=str(error), success=False, error=str(error))
            checks.append(Check(command=template, error=done.error or ""))
            texts.append(f"$ {command}\n{cut_middle(done.text, MOST_CHARS)}")
        if texts:
            changed = await asyncio.to_thread(self._take_changes, outcome, before)
            parts = "\n".join([*texts, *changed])
            outcome.text += f"\n[After the edit these commands of the user's settings ran:\n{parts}]"
            outcome.data = {**outcome.data, "after_edit": msgspec.to_builtins(checks)}
        return checks

    async def close(self) -> None:
        await self._tool.close()

    def _contents(self, files: Sequence[str]) -> dict[str, bytes]:
        """Return the contents of the files that still exist, stored so that a change of them can be compared."""
        contents: dict[str, bytes] = {}
        for path in dict.fromkeys(files):
            try:
                place = self._context.workspace.locate(path)
                content = read_bytes(place)
            except ToolError:
                continue
            if content is not None:
                self._context.undo.keep(content, secret=place.secret)
                contents[path] = content
        return contents

    def _take_changes(self, outcome: ToolOutcome, before: dict[str, bytes]) -> list[str]:
        """Note what the commands changed in the files, as part of the last edit; return it in words."""
        told: list[str] = []
        for path, content in before.items():
            old, new = digest_of(content), self._kept.digest(path)
            if new is None or new == old:
                continue
            relative = self._context.workspace.locate(path).relative
            if self._context.seen.get(relative) == old:
                self._context.seen[relative] = new
            first = _amend(outcome, path, old, new)
            outcome.changes = [change for change in outcome.changes if change.path != path]
            outcome.changes += self._kept.line_changes(path, first, new)
            written = FileAccess(path=relative, access="write")
            outcome.files = [*(file for file in outcome.files if file != written), written]
            told.append(f"They changed {path}:\n{cut_middle(self._kept.diff(path, old, new), MOST_CHARS)}")
        return told


def _amend(outcome: ToolOutcome, path: str, old: str, new: str) -> str:
    """Record that a file was changed further; return the digest before the edit that the outcome is about, if any."""
    data = outcome.data = dict(outcome.data)
    if data.get("path") == path and data.get("after") == old:
        data["after"] = new
        return str(data["before"])
    changes = data["changes"] = [dict(change) for change in data.get("changes", [])]
    for change in changes:
        if change["path"] == path and change["after"] == old:
            change["after"] = new
            return str(change["before"])
    changes.append({"path": path, "before": old, "after": new})
    return old


def commands_for(settings: ToolSettings, workspace: Path) -> list[str]:
    """Return the commands for a workspace: those of the nearest folder above it, else those for all."""
    folders = {Path(folder).expanduser().resolve(): commands for folder, commands in settings.after_edit_in.items()}
    above = [folder for folder in folders if workspace.is_relative_to(folder)]
    return folders[max(above, key=lambda folder: len(folder.parts))] if above else settings.after_edit


def command_with(template: str, files: Sequence[str]) -> str:
    """Return a command with the edited files in their place; empty if it is meant for none of them."""
    missing = not files

    def chosen(match: re.Match[str]) -> str:
        nonlocal missing
        pattern = match[1]
        fitting = [path for path in files if pattern == "files" or fnmatch.fnmatch(PurePosixPath(path).name, pattern)]
        missing = missing or not fitting
        # A name that begins with a dash would be taken for an option.
        return shlex.join(f"./{path}" if path.startswith("-") else path for path in fitting)

    command = _FILES.sub(chosen, template)
    return "" if missing else command.strip()
