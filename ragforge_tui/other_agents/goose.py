"""Sessions of Goose: a database, and the JSON lines of versions before 1.10.

Format: vshulcz/deja-vu, docs/registry/goose.md; block/goose, crates/goose/src/conversation/message.rs.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from ragforge_tui.other_agents.blocks import add_parts, usage_of
from ragforge_tui.other_agents.reading import (
    columns,
    decoded,
    fields,
    file_sessions,
    head,
    json_lines,
    row_of,
    rows,
    time_of,
    word,
)
from ragforge_tui.other_agents.transcript import Transcript
from ragforge_tui.shared.found_sessions import FoundSession

AGENT = "goose"
DATABASE = "sessions.db"


def store(home: Path) -> Path:
    """Return the folder in which sessions are kept."""
    return Path(os.environ.get("XDG_DATA_HOME") or home / ".local/share") / "goose/sessions"


def find(home: Path) -> Iterator[FoundSession]:
    """Yield the sessions of the database, then those that only files hold: files stay behind when it is made."""
    root = store(home)
    seen: set[str] = set()
    if (root / DATABASE).is_file():
        for found in in_database(root / DATABASE):
            seen.add(found.id)
            yield found
    for found in file_sessions(AGENT, root.glob("*.jsonl")):
        if found.id not in seen:
            first = next(iter(head(Path(found.path))), {})
            folder = word(first.get("working_dir"))
            yield FoundSession(
                agent=AGENT, id=found.id, folder=folder, path=found.path, bytes=found.bytes, version=found.version
            )


def is_ours(lines: list[dict[str, Any]]) -> bool:
    """Return whether a file that begins with these lines is a session."""
    return bool(lines) and "working_dir" in lines[0]


def in_database(database: Path) -> Iterator[FoundSession]:
    """Yield the user's sessions of a database; those of helpers and of a schedule are of other types."""
    typed = "session_type" in columns(database, "sessions")
    own = "WHERE s.session_type NOT IN ('sub_agent', 'hidden', 'scheduled')" if typed else ""
    for row in rows(
        database,
        "SELECT s.id AS id, s.working_dir AS folder, count(m.id) AS messages, "
        "coalesce(sum(length(m.content_json)), 0) AS size "
        f"FROM sessions s JOIN messages m ON m.session_id = s.id {own} GROUP BY s.id ORDER BY s.created_at",
    ):
        yield FoundSession(
            agent=AGENT,
            id=row["id"],
            folder=row["folder"] or "",
            path=str(database),
            bytes=row["size"],
            version=f"{row['messages']}.{row['size']}",
        )


def read(found: FoundSession) -> Transcript:
    """Read a session.

    Raises:
        OSError: The database or the file cannot be read.
    """
    path = Path(found.path)
    transcript = Transcript(folder=found.folder)
    if path.suffix == ".jsonl":
        for line in json_lines(path):
            transcript.title = transcript.title or word(line.get("description"))
            _add(transcript, line.get("role"), line.get("content"), time_of(line.get("created")), line.get("metadata"))
        return transcript
    session = row_of(path, "sessions", found.id)
    transcript.title = word(session.get("description") or session.get("name"))
    model = word(fields(decoded(session.get("model_config_json"))).get("model_name"))
    shown = "metadata_json" if "metadata_json" in columns(path, "messages") else "NULL"
    columns_read = f"role, content_json, created_timestamp AS at, {shown} AS shown"
    for row in rows(path, f"SELECT {columns_read} FROM messages WHERE session_id = ? ORDER BY id", found.id):
        _add(transcript, row["role"], decoded(row["content_json"]), time_of(row["at"]), decoded(row["shown"]), model)
    transcript.count(usage_of(session))  # they are counted for the whole session
    return transcript


def _add(
    transcript: Transcript, role: object, content: object, at: datetime | None, shown: object, model: str = ""
) -> None:
    """Add a message; hidden text is the program's, but its results are kept."""
    hidden = role == "user" and fields(shown).get("userVisible") is False
    add_parts(transcript, "tool" if hidden else role, content, at, model=model)
