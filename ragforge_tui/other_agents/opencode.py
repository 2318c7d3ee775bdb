"""Sessions of opencode, in its database, or as JSON files of its earlier versions.

Format: sst/opencode, packages/opencode/src/session/message-v2.ts: messages and their parts as JSON.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from ragforge_tui.other_agents.blocks import add_parts, own_words, usage_of
from ragforge_tui.other_agents.reading import columns, decoded, fields, row_of, rows, time_of, version, whole_json, word
from ragforge_tui.other_agents.transcript import Transcript
from ragforge_tui.shared.found_sessions import FoundSession

AGENT = "opencode"
DATABASE = "opencode.db"
_TASK = "task"
"""Tool that starts a helper."""


def store(home: Path) -> Path:
    """Return the folder in which sessions are kept."""
    return Path(os.environ.get("XDG_DATA_HOME") or home / ".local/share") / "opencode"


def find(home: Path) -> Iterator[FoundSession]:
    """Yield the sessions of the database, then those that only files hold; helpers come with their parents."""
    root = store(home)
    seen: set[str] = set()
    if (root / DATABASE).is_file():
        for found in in_database(root / DATABASE):
            seen.add(found.id)
            yield found
    for path in sorted(root.glob("storage/session/*/*.json")):
        if path.stem not in seen:
            session = fields(whole_json(path))
            if session and not session.get("parentID"):
                folder = word(session.get("directory"))
                yield FoundSession(
                    agent=AGENT,
                    id=path.stem,
                    folder=folder,
                    path=str(path),
                    bytes=path.stat().st_size,
                    version=version(path),
                )


def in_database(database: Path) -> Iterator[FoundSession]:
    """Yield the sessions of a database; texts stay in it, since it may be gigabytes."""
    parents = "AND parent_id IS NULL" if "parent_id" in columns(database, "session") else ""
    for row in rows(
        database,
        "SELECT s.id AS id, s.directory AS folder, s.time_updated AS changed, coalesce(sum(length(p.data)), 0) AS size "
        "FROM session s LEFT JOIN message m ON m.session_id = s.id LEFT JOIN part p ON p.message_id = m.id "
        f"WHERE true {parents.replace('parent_id', 's.parent_id')} GROUP BY s.id ORDER BY s.time_created",
    ):
        yield FoundSession(
            agent=AGENT,
            id=row["id"],
            folder=row["folder"] or "",
            path=str(database),
            bytes=row["size"],
            version=f"{row['changed']}.{row['size']}",
        )


def read(found: FoundSession) -> Transcript:
    """Read a session.

    Raises:
        OSError: The database or a file cannot be read.
    """
    path = Path(found.path)
    stored = fields(whole_json(path)) if path.suffix == ".json" else row_of(path, "session", found.id)
    transcript = Transcript(title=word(stored.get("title")), folder=found.folder)
    for id, message, parts in _stored(path, found.id):
        _add(transcript, id, message, parts)
        for part in parts:
            session = _helper_of(part)
            if session and session != found.id:
                helper = Transcript(folder=found.folder)
                for each in _stored(path, session):
                    _add(helper, *each)
                transcript.helper(_call_id(part), session, helper)
    return transcript


def _helper_of(part: dict[str, Any]) -> str:
    """Return the session of the helper that a call started; empty for any other part."""
    known = fields(fields(part.get("state")).get("metadata"))
    return word(known.get("sessionId") or known.get("sessionID")) if part.get("tool") == _TASK else ""


_Stored = tuple[str, dict[str, Any], list[dict[str, Any]]]


def _stored(place: Path, session: str) -> Iterator[_Stored]:
    """Yield the messages of a session in the database, or next to the file of another one."""
    return (
        _from_files(place.with_name(f"{session}.json")) if place.suffix == ".json" else _from_database(place, session)
    )


def _from_database(database: Path, session: str) -> Iterator[_Stored]:
    order = "ORDER BY time_created, id" if "time_created" in columns(database, "message") else "ORDER BY id"
    for row in rows(database, f"SELECT id, data FROM message WHERE session_id = ? {order}", session):
        parts = rows(database, "SELECT data FROM part WHERE message_id = ? ORDER BY id", row["id"])
        yield row["id"], fields(decoded(row["data"])), [fields(decoded(part["data"])) for part in parts]


def _from_files(session: Path) -> Iterator[_Stored]:
    storage = session.parent.parent.parent
    for path in sorted((storage / "message" / session.stem).glob("*.json")):
        parts = [fields(whole_json(part)) for part in sorted((storage / "part" / path.stem).glob("*.json"))]
        yield path.stem, fields(whole_json(path)), parts


def _add(transcript: Transcript, id: str, message: dict[str, Any], parts: Iterable[dict[str, Any]]) -> None:
    at = time_of(fields(message.get("time")).get("created"))
    parts = list(parts)
    if message.get("role") == "user":
        said = [word(part.get("text")) for part in parts if part.get("type") == "text" and not part.get("synthetic")]
        named = [f"[file: {word(part.get('filename'))}]" for part in parts if part.get("type") == "file"]
        # Without its id, which a fork gives anew: the time stays.
        transcript.user("\n\n".join(filter(None, [*map(own_words, said), *named])), at)
        return
    model = "/".join(filter(None, (word(message.get("providerID")), word(message.get("modelID")))))
    usage = usage_of({**fields(message.get("tokens")), "cost": message.get("cost")}, cached_apart=True)
    transcript.reply("", at, model=model, usage=usage, id=id)
    add_parts(transcript, "assistant", [part for part in parts if part.get("type") in ("text", "reasoning")], at, id=id)
    for part in parts:
        if part.get("type") == "tool":
            state, call = fields(part.get("state")), _call_id(part)
            times = fields(state.get("time"))
            transcript.call(call, word(part.get("tool")), state.get("input", {}), time_of(times.get("start")) or at)
            if (status := state.get("status")) in ("completed", "error"):
                failed = status == "error"
                output = word(state.get("error" if failed else "output"))
                details = state.get("metadata")
                transcript.result(call, output, time_of(times.get("end")), failed=failed, details=details)


def _call_id(part: dict[str, Any]) -> str:
    return word(part.get("callID") or part.get("id"))
