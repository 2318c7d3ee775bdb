"""Skills in the open Agent Skills format, and own commands: found in folders, and read by the agent when needed."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from ragforge_tui.shared.encoding import decode
from ragforge_tui.shared.errors import ToolError
from ragforge_tui.shared.files import read_regular
from ragforge_tui.shared.prompts import OwnPrompt
from ragforge_tui.shared.sanitize import plain_text, storable
from ragforge_tui.shared.tool_calls import ToolInfo
from ragforge_tui.tools.base import Tool, ToolArguments, ToolOutcome
from ragforge_tui.tools.sensitive import is_secret

log = logging.getLogger(__name__)

SKILL_FILE = "SKILL.md"
MAX_BYTES = 64 * 1024
"""Bytes of a SKILL.md or a command."""
MOST = 100
"""Skills or commands of one folder."""
DESCRIPTION_CHARS = 1_024
LISTED_CHARS = 8_000
"""Characters of the list of skills in a request."""
MOST_FILES = 50
FILE_BYTES = 256 * 1024
"""Bytes of another file of a skill."""

_NAME = re.compile(r"[A-Za-z0-9][\w-]{0,63}")
_COMMAND = re.compile(r"[A-Za-z][\w-]{0,63}")
_FRONT = re.compile(r"\A\s*---[ \t]*\n(.*?)^---[ \t]*(?:\n|\Z)", re.S | re.M)
_FIELD = re.compile(r"^([A-Za-z][\w-]*)[ \t]*:(.*(?:\n(?:[ \t#-].*)?$)*)", re.M)
"""A field with the lines that continue it."""


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """A skill or a command in its file.

    Attributes:
        file: Path of its file.
        whole: All of the file, which a project's consent is about.
        body: The file without its front matter.
        hidden: The skill is for the user alone (``disable-model-invocation``).
    """

    prompt: OwnPrompt
    file: Path
    whole: str
    body: str
    hidden: bool = False


def front_matter(text: str) -> tuple[dict[str, Any], str]:
    """Return the fields between the marks at the start of a text, and the rest; no fields if there are no marks.

    Each field is read by itself, so that one that is not YAML takes no other along: then its value is what follows the
    colon, as also for a list, which other agents show as it was written.
    """
    match = _FRONT.match(text)
    if match is None:
        return {}, text
    fields = {field[1]: _value(field[0], field[2]) for field in _FIELD.finditer(match[1])}
    return fields, text[match.end() :]


def _value(field: str, written: str) -> Any:
    import yaml  # the start of a chat without skills needs none

    try:
        (value,) = yaml.safe_load(field).values()
    except (yaml.YAMLError, AttributeError, ValueError, RecursionError):
        value = None
    return value if isinstance(value, str | bool | int | float) else " ".join(written.split())


def find_skills(folder: Path, *, project: bool, problems: list[str]) -> list[Found]:
    """Return the skills below a folder; faults of others are added to `problems`. Blocks.

    A folder without a skill of its own may hold the folders of skills.
    """
    files: list[Path] = []
    for inner in sorted(folder.glob("*/")):
        files += _skill_files(inner) or [file for deeper in sorted(inner.glob("*/")) for file in _skill_files(deeper)]
    return _found(files, folder, "skill", project, problems)


def _skill_files(folder: Path) -> list[Path]:
    return [file for file in sorted(folder.glob("*.[mM][dD]")) if file.name.lower() == SKILL_FILE.lower()][:1]


def find_commands(folder: Path, *, project: bool, problems: list[str]) -> list[Found]:
    """Return the commands in a folder; what is wrong with others is added to `problems`. Blocks."""
    return _found(sorted(folder.glob("*.md")), folder, "command", project, problems)


def _found(files: Iterable[Path], folder: Path, kind: str, project: bool, problems: list[str]) -> list[Found]:
    found: list[Found] = []
    for file in list(files)[:MOST]:
        try:
            # A project's link must not lead to a file that its text does not show.
            if project and not file.resolve().is_relative_to(folder.resolve()):
                raise ValueError("it is a link out of its folder")
            text = storable(_text(read_regular(file, MAX_BYTES)))
            found.append(_skill(file, text, project) if kind == "skill" else _command(file, text, project))
        except (OSError, ValueError) as error:
            name = file.parent.name if kind == "skill" else file.stem
            reason = error.strerror if isinstance(error, OSError) else str(error)
            problems.append(f"The {kind} {plain_text(name)} is not used: {plain_text(str(reason))}.")
    return found


def _text(content: bytes) -> str:
    """Return the text of a file with the line ends of this system, whatever program wrote it."""
    decoded = decode(content)
    if decoded is None:
        raise ValueError("it is not text")
    return decoded[0].removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")


def _skill(file: Path, text: str, project: bool) -> Found:
    data, body = front_matter(text)
    name = str(data.get("name") or file.parent.name)
    description = _line(data.get("description"))
    if not _NAME.fullmatch(name):
        raise ValueError("its name may have only letters, digits, - and _, at most 64")
    if not description:
        unended = text.lstrip().startswith("---") and not data
        raise ValueError(f"its {SKILL_FILE} has no {'--- after its fields' if unended else 'description'}")
    prompt = OwnPrompt(
        kind="skill",
        name=name,
        description=description,
        origin="project" if project else "own",
        arguments=_line(data.get("argument-hint")),
    )
    return Found(prompt=prompt, file=file, whole=text, body=body, hidden=data.get("disable-model-invocation") is True)


def _command(file: Path, text: str, project: bool) -> Found:
    if not _COMMAND.fullmatch(file.stem):
        raise ValueError("its name must begin with a letter and have only letters, digits, - and _")
    data, body = front_matter(text)
    if not body.strip():
        raise ValueError("it is empty")
    prompt = OwnPrompt(
        kind="command",
        name=file.stem,
        description=_line(data.get("description")) or _line(body.strip().split("\n", 1)[0].lstrip("# ")),
        origin="project" if project else "own",
        arguments=_line(data.get("argument-hint")) or ("[WORDS]" if "$" in body else ""),
        text=body.strip(),
    )
    return Found(prompt=prompt, file=file, whole=text, body=body)


def _line(value: object) -> str:
    return " ".join(plain_text(str(value or "")).split())[:DESCRIPTION_CHARS]


def listed(skills: Iterable[Found]) -> str:
    """Return the skills as a request lists them, by name and description; empty without any."""
    lines: list[str] = []
    left = 0
    size = 0
    for skill in skills:
        line = f"- {skill.prompt.name}: {skill.prompt.description}"
        size += len(line)
        if skill.hidden:
            continue
        if size > LISTED_CHARS:
            left += 1
        else:
            lines.append(line)
    if left:
        lines.append(f"- and {left} more, which the user names when they are wanted")
    return "\n".join(lines)


class ReadSkillArguments(ToolArguments):
    name: str
    file: str = ""


class ReadSkill(Tool):
    """Tool that reads a skill; offered only where there are skills."""

    info = ToolInfo(
        name="read_skill",
        help="read a skill",
        access="read",
        main_argument="name",
        result="prose",
        verb="read the skill {}",
    )
    description = "Return the instructions of a skill, or with `file` another file of its folder."
    arguments = ReadSkillArguments
    skills: ClassVar[dict[str, Found]]

    async def run(self, arguments: ReadSkillArguments) -> ToolOutcome:
        """Return a skill's text with the list of its files, or one of them."""
        skill = self.skills.get(arguments.name)
        if skill is None:
            raise ToolError(
                f"There is no skill {storable(arguments.name)!r}.", todo=f"The skills are: {', '.join(self.skills)}."
            )
        folder = skill.file.parent
        if not arguments.file or arguments.file == skill.file.name:
            files = await asyncio.to_thread(_files, folder)
            more = f"\n\n[Other files of the skill, in {folder}: {', '.join(files)}]" if files else ""
            return ToolOutcome(text=plain_text(skill.body.strip()) + more)
        return ToolOutcome(text=plain_text(await asyncio.to_thread(_read, folder, arguments.file)))


def with_skills(skills: dict[str, Found]) -> type[Tool]:
    """Return the tool that reads these skills."""
    return type("ReadSkill", (ReadSkill,), {"__doc__": ReadSkill.__doc__, "skills": skills})


def _files(folder: Path) -> list[str]:
    names = (file.relative_to(folder).as_posix() for file in sorted(folder.rglob("*")) if file.is_file())
    return [name for name in names if name.lower() != SKILL_FILE.lower()][:MOST_FILES]


def _read(folder: Path, name: str) -> str:
    file = (folder / name).resolve()
    if is_secret(name) or is_secret(file.name):
        raise ToolError(f"{storable(name)} may hold secrets, so it is not read as part of a skill.")
    if not file.is_relative_to(folder.resolve()):
        raise ToolError(f"{storable(name)} is not in the skill's folder.", todo="Name a file relative to it.")
    try:
        return storable(read_regular(file, FILE_BYTES, cut=True).decode("utf-8", "replace"))
    except OSError as error:
        raise ToolError(f"{storable(name)} cannot be read: {error.strerror}.") from error
