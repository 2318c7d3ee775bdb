"""Skills and commands of one session: the user's own, and the project's once the user has allowed their texts.

They are read when the session starts.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path

from ragforge_tui.conversation.trust.project import ProjectTrust
from ragforge_tui.shared.account import home_folder
from ragforge_tui.shared.events import Event, Notice, OwnPromptsFound
from ragforge_tui.tools.registry import Toolbox
from ragforge_tui.tools.skills import Found, find_commands, find_skills, listed, with_skills

log = logging.getLogger(__name__)

SKILL_FOLDER = Path(".agents", "skills")
COMMAND_FOLDERS = (Path(".agents", "commands"), Path(".ragforge", "commands"))

_INTRODUCTION = """\
Skills: instructions for certain tasks, of which these are the names and what they are for. Before you work on such a \
task, read the skill with read_skill and follow it; do not read one that does not fit."""
_QUESTION = "Use the skills and commands of this folder? They instruct the agent."


class OwnPrompts:
    """Skills and commands.

    Args:
        config: The user's config folder.
    """

    def __init__(
        self, workspace: Path, config: Path, project: ProjectTrust, toolbox: Toolbox, emit: Callable[[Event], None]
    ) -> None:
        self._workspace = workspace
        self._config = config
        self._project = project
        self._toolbox = toolbox
        self._emit = emit
        self._skills: dict[str, Found] = {}
        self._commands: dict[str, Found] = {}
        self._starting: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Look for skills and commands in the background."""
        if self._starting is None:
            self._starting = asyncio.create_task(self._start(), name="own prompts")

    async def ready(self) -> None:
        """Wait until they are known, and for the user's consent to the project's."""
        if self._starting is not None:
            await asyncio.shield(self._starting)

    @property
    def part(self) -> str:
        """The names and descriptions of the skills for the system message; empty without any."""
        names = listed(self._skills.values())
        return f"{_INTRODUCTION}\n{names}" if names else ""

    async def close(self) -> None:
        """Stop looking and waiting."""
        if self._starting is not None:
            self._starting.cancel()
            await asyncio.gather(self._starting, return_exceptions=True)

    async def _start(self) -> None:
        try:
            own, project, problems = await asyncio.to_thread(self._find)
        except OSError as error:
            log.warning("skills and commands are not read: %s", error)
            return
        self._add(own)
        if project:
            files = [(found.file.relative_to(self._workspace.resolve()).as_posix(), found.whole) for found in project]
            if await self._project.allowed("prompts", _QUESTION, files):
                self._add(project)
        for problem in problems:
            self._emit(Notice(text=problem, level="warning"))

    def _find(self) -> tuple[list[Found], list[Found], list[str]]:
        problems: list[str] = []
        home = home_folder()
        own = [
            *find_skills(self._config / "skills", project=False, problems=problems),
            *find_skills(home / SKILL_FOLDER, project=False, problems=problems),
            *find_commands(self._config / "commands", project=False, problems=problems),
        ]
        if self._workspace == home.resolve():
            return own, [], problems
        project: list[Found] = []
        for folder in (SKILL_FOLDER, *COMMAND_FOLDERS):
            place = (self._workspace / folder).resolve()
            if not place.is_dir():
                continue
            # A folder elsewhere would bring in files that the consent does not show.
            if not place.is_relative_to(self._workspace.resolve()):
                problems.append(f"{folder} is not used: it is a link out of the project.")
                continue
            find = find_skills if folder == SKILL_FOLDER else find_commands
            project += find(place, project=True, problems=problems)
        return own, project, problems

    def _add(self, found: list[Found]) -> None:
        """Use more of them; of two with a name the first counts."""
        for one in found:
            known = self._skills if one.prompt.kind == "skill" else self._commands
            known.setdefault(one.prompt.name, one)
        if self._skills:
            self._toolbox.set_external("skills", [with_skills(self._skills)])
        if found:
            prompts = [one.prompt for one in (*self._commands.values(), *self._skills.values())]
            self._emit(OwnPromptsFound(prompts=prompts))
