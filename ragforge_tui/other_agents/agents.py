"""All agents whose sessions can be imported: where each keeps them, and how one is read."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
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
from ragforge_tui.other_agents.reading import (
    COMPRESSED,
    any_json,
    columns,
    fields,
    file_sessions,
    head,
    merged,
    word,
)
from ragforge_tui.other_agents.transcript import Transcript
from ragforge_tui.shared.found_sessions import FoundSession

_log = logging.getLogger(__name__)


class Agent(msgspec.Struct, frozen=True):
    """An agent: how its sessions are found below the home folder, and how one is read.

    Attributes:
        store: Folder of its data, None if it has no place of its own.
        places: Where sessions lie in the store, in any layout.
    """

    find: Callable[[Path], Iterable[FoundSession]]
    read: Callable[[FoundSession], Transcript]
    store: Callable[[Path], Path] | None = None
    places: tuple[str, ...] = ()


AGENTS: dict[str, Agent] = {
    claude_code.AGENT: Agent(claude_code.find, claude_code.read, claude_code.store, ("projects",)),
    codex.AGENT: Agent(codex.find, codex.read, codex.store, ("sessions", "archived_sessions")),
    opencode.AGENT: Agent(opencode.find, opencode.read, opencode.store, ("*.db", "storage/session", "storage/message")),
    gemini.GEMINI: Agent(gemini.find_gemini, gemini.read_gemini, gemini.store_gemini, ("tmp/*/chats",)),
    gemini.QWEN: Agent(gemini.find_qwen, gemini.read_qwen, gemini.store_qwen, ("projects/*/chats",)),
    vibe.AGENT: Agent(vibe.find, vibe.read, vibe.store, ("*",)),
    crush.AGENT: Agent(crush.find, crush.read),
    goose.AGENT: Agent(goose.find, goose.read, goose.store, ("*",)),
    cline.AGENT: Agent(cline.find, cline.read, cline.store, ("sessions",)),
    aider.AGENT: Agent(aider.find, aider.read),
}
"""By the name that `--from` takes, in the order of the list."""

_MOST_FILES = 20_000
"""Most files checked for an unreadable layout, or read from an imported folder."""
_TABLES = ("session", "sessions")
_PIECES = (".jsonl", COMPRESSED)
"""Endings of files that may hold one part of a session, while others hold the rest."""
_LONE = (".json", ".jsonl", COMPRESSED)
_LEVELS = 3
"""Folders above a file that may be the folder of its session."""
_EXPORTS = (chat_exports.CHATGPT, chat_exports.CLAUDE)


def find_sessions(home: Path, agents: Iterable[str] = (), *, folders: Sequence[Path] = ()) -> Iterator[FoundSession]:
    """Yield the sessions that agents left below a home folder. Nothing is read but the beginning of each file.

    A store with data in a form that is not known is yielded as one that is not readable.

    Args:
        home: The home folder.
        agents: Names of agents; empty for all, of which one whose store cannot be read is left out.
        folders: Folders in which the user works: an agent may keep its sessions there.

    Raises:
        OSError: The store of an agent that was named cannot be read.
    """
    for name in agents or AGENTS:
        try:
            near = aider.near(folders) if name == aider.AGENT else ()
            found = merged([*near, *AGENTS[name].find(home)])
            yield from found
            yield from _unread(name, home, found)
        except OSError as error:
            if agents:
                raise
            _log.warning("Sessions of %s cannot be listed: %s", name, error)
        except Exception:  # One odd entry must not hide the sessions of all others.
            _log.exception("Sessions of %s cannot be listed", name)


def _unread(name: str, home: Path, found: list[FoundSession]) -> Iterator[FoundSession]:
    """Yield an agent's store if its newest data is of no known form."""
    agent = AGENTS[name]
    if agent.store is None or not (store := agent.store(home)).is_dir():
        return
    own = {Path(path).parent for one in found for path in (one.path, *one.parts)}
    entries = (path for place in agent.places for root in store.glob(place) for path in _files_in(root))
    rest = [path for path in entries if not own & {*path.parents} and not path.name.startswith(".")]
    newest = max((Path(one.path).stat().st_mtime for one in found), default=0.0)
    for path in sorted(rest, key=_changed, reverse=True):
        if _changed(path) <= newest:
            return
        if path.suffix != ".md" and path.stat().st_size and not _is_known(path):
            size, place = sum(each.stat().st_size for each in rest), str(store)
            yield FoundSession(agent=name, id="", folder=place, path=place, bytes=size, readable=False)
            return


def _files_in(root: Path) -> list[Path]:
    paths = root.rglob("*") if root.is_dir() else iter([root])
    return [path for path in itertools.islice(paths, _MOST_FILES) if path.is_file()]


def _changed(path: Path) -> float:
    return path.stat().st_mtime


def _is_known(path: Path) -> bool:
    """Return whether a file is in a known form, such as the work of a helper, which is not listed."""
    if path.suffix == ".db":
        return any(columns(path, table) for table in _TABLES)
    return bool(_of_lines(head(path)) or gemini.session_head(path).get("sessionId"))


def read_session(found: FoundSession) -> Transcript:
    """Read a session.

    Raises:
        OSError: Its file cannot be read.
    """
    return chat_exports.read(found) if found.agent in _EXPORTS else AGENTS[found.agent].read(found)


def detect(path: Path, home: Path) -> list[FoundSession]:
    """Return the sessions in a file of any agent or in a folder of such files, recognised by their content.

    A session is its id: one that also lies in its agent's store has the id, the folder and the files it has there.

    Args:
        home: The home folder, below which the stores are.

    Raises:
        OSError: The file cannot be read.
    """
    path = path.absolute()
    folders = [folder for folder in (path, *path.parents[:_LEVELS]) if (folder / vibe.CURRENT).is_file()]
    if folders or (path / vibe.MESSAGES).is_file() or path.name == vibe.MESSAGES:
        folder = folders[0] if folders else path if path.is_dir() else path.parent
        found = list(vibe.in_folder(folder))
        if found:
            return found
    if path.is_dir():
        found = [one for file in sorted(_files_in(path)) for one in _of_folder(file)]
    else:
        found = list(_in_file(path))
    stored: dict[tuple[str, str], FoundSession] = {}
    for agent in {one.agent for one in found} & AGENTS.keys():
        stored |= {(one.agent, one.id): one for one in find_sessions(home, [agent])}
    by_path = {file: one for one in stored.values() for file in (one.path, *one.parts) if one.path.endswith(_LONE)}
    return merged(stored_too for one in found for stored_too in _in_store(one, stored, by_path))


def _in_store(
    one: FoundSession, stored: dict[tuple[str, str], FoundSession], by_path: dict[str, FoundSession]
) -> Iterator[FoundSession]:
    """Yield a session as it is in its agent's store, if it is there, then as it was found."""
    known = by_path.get(one.path) or stored.get((one.agent, one.id))
    if known is None:
        yield one
        return
    yield known
    if one.path.endswith(_PIECES):
        yield msgspec.structs.replace(one, id=known.id)


def _of_folder(file: Path) -> list[FoundSession]:
    """Return the sessions in a file of a folder; none if it is something else."""
    try:
        return list(_in_file(file))
    except OSError:
        return []


def _in_file(path: Path) -> Iterator[FoundSession]:
    if columns_of := _database(path):
        yield from columns_of(path)
        return
    if path.suffix == ".md":
        yield from aider.in_file(path)
        return
    found = next(iter(file_sessions("", [path])), None)
    if found is None:
        return
    if agent := _of_lines(lines := head(path)):
        yield msgspec.structs.replace(found, agent=agent, id=_id_in(agent, lines) or found.id, folder=_folder_in(lines))
        return
    if exported := chat_exports.in_export(path):
        yield from exported
        return
    value = any_json(path) if path.suffix == ".json" else None
    if gemini.is_gemini([fields(value)]):
        yield msgspec.structs.replace(found, agent=gemini.GEMINI, id=word(fields(value).get("sessionId")) or found.id)
    elif cline.is_ours(value):
        yield msgspec.structs.replace(found, agent=cline.AGENT, id=cline.session_id(path, value))


def _id_in(agent: str, lines: list[dict[str, Any]]) -> str:
    """Return the id that the lines of a session name; empty for an agent that names it by the file alone."""
    if agent == codex.AGENT:
        return codex.session_id(lines)
    return next((id for line in lines if (id := word(line.get("sessionId")))), "")


def _folder_in(lines: list[dict[str, Any]]) -> str:
    named = (word(line.get(key)) for line in lines for key in ("cwd", "working_dir"))
    return next(filter(None, named), "")


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
