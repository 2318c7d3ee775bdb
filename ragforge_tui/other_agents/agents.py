"""All agents whose sessions can be imported: where each keeps them, and how one is read."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from ragforge_tui.other_agents import (
    aider,
    chat_exports,
    claude_code,
    cline,
    codex,
    crush,
    gemini,
    goose,
    opencode,
    vibe,
)
from ragforge_tui.other_agents.reading import columns, fields, file_sessions, head, whole_json
from ragforge_tui.other_agents.transcript import Transcript
from ragforge_tui.shared.found_sessions import FoundSession

_log = logging.getLogger(__name__)


class Agent(msgspec.Struct, frozen=True):
    """An agent: how its sessions are found below the home folder, and how one is read."""

    find: Callable[[Path], Iterable[FoundSession]]
    read: Callable[[FoundSession], Transcript]


AGENTS: dict[str, Agent] = {
    claude_code.AGENT: Agent(claude_code.find, claude_code.read),
    codex.AGENT: Agent(codex.find, codex.read),
    opencode.AGENT: Agent(opencode.find, opencode.read),
    gemini.GEMINI: Agent(gemini.find_gemini, gemini.read_gemini),
    gemini.QWEN: Agent(gemini.find_qwen, gemini.read_qwen),
    vibe.AGENT: Agent(vibe.find, vibe.read),
    crush.AGENT: Agent(crush.find, crush.read),
    goose.AGENT: Agent(goose.find, goose.read),
    cline.AGENT: Agent(cline.find, cline.read),
    aider.AGENT: Agent(aider.find, aider.read),
}
"""By the name that `--from` takes, in the order of the list."""

_EXPORTS = (chat_exports.CHATGPT, chat_exports.CLAUDE)


def find_sessions(home: Path, agents: Iterable[str] = ()) -> Iterator[FoundSession]:
    """Yield the sessions that agents left below a home folder. Nothing is read but the beginning of each file.

    Args:
        home: The home folder.
        agents: Names of agents; empty for all, of which one whose store cannot be read is left out.

    Raises:
        OSError: The store of an agent that was named cannot be read.
    """
    for name in agents or AGENTS:
        try:
            yield from AGENTS[name].find(home)
        except OSError as error:
            if agents:
                raise
            _log.warning("Sessions of %s cannot be listed: %s", name, error)
        except Exception:  # One odd entry must not hide the sessions of all others.
            _log.exception("Sessions of %s cannot be listed", name)


def read_session(found: FoundSession) -> Transcript:
    """Read a session.

    Raises:
        OSError: Its file cannot be read.
    """
    return chat_exports.read(found) if found.agent in _EXPORTS else AGENTS[found.agent].read(found)


def detect(path: Path) -> list[FoundSession]:
    """Return the sessions in a file of any agent, recognised by its content; none if it is of no known form.

    Raises:
        OSError: The file cannot be read.
    """
    if path.is_dir() and (path / vibe.MESSAGES).is_file():
        path = path / vibe.MESSAGES
    if columns_of := _database(path):
        return list(columns_of(path))
    if path.suffix == ".md":
        return list(aider.in_file(path))
    found = next(iter(file_sessions("", [path])), None)
    if found is None:
        return []
    if path.name == vibe.MESSAGES and path.with_name(vibe.META).is_file():
        return [vibe.describe(path, found)]
    if agent := _of_lines(head(path)):
        return [msgspec.structs.replace(found, agent=agent, path=str(path.absolute()))]
    if exported := chat_exports.in_export(path):
        return exported
    value = whole_json(path) if path.suffix == ".json" else None
    agent = gemini.GEMINI if gemini.is_gemini([fields(value)]) else cline.AGENT if cline.is_ours(value) else ""
    return [msgspec.structs.replace(found, agent=agent, path=str(path.absolute()))] if agent else []


def _database(path: Path) -> Callable[[Path], Iterable[FoundSession]] | None:
    if path.suffix != ".db":
        return None
    if columns(path, "part"):
        return opencode.in_database
    names = columns(path, "messages")
    return goose.in_database if "content_json" in names else crush.in_database if "parts" in names else None


def _of_lines(lines: list[dict[str, Any]]) -> str:
    """Return the agent whose sessions begin with such lines; empty for none."""
    for agent, is_its in (
        (codex.AGENT, codex.is_ours),
        (gemini.QWEN, gemini.is_qwen),
        (claude_code.AGENT, claude_code.is_ours),
        (goose.AGENT, goose.is_ours),
        (gemini.GEMINI, gemini.is_gemini),
    ):
        if is_its(lines):
            return agent
    return ""
