"""Sessions of Crush: one database for each folder it was used in.

``projects.json`` in its data folder lists them. Format: charmbracelet/crush, internal/db/migrations and
internal/message/content.go.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from ragforge_tui.other_agents.blocks import add_parts, usage_of
from ragforge_tui.other_agents.reading import any_json, decoded, fields, items, row_of, rows, time_of, word
from ragforge_tui.other_agents.transcript import Transcript
from ragforge_tui.shared.found_sessions import FoundSession

AGENT = "crush"
DATABASE = "crush.db"


def find(home: Path) -> Iterator[FoundSession]:
    """Yield the sessions of all known folders. The sessions of helpers are left out."""
    data = Path(
        os.environ.get("CRUSH_GLOBAL_DATA") or Path(os.environ.get("XDG_DATA_HOME") or home / ".local/share") / "crush"
    )
    projects = items(fields(any_json(data / "projects.json")).get("projects"))
    places = [(Path(word(p.get("data_dir")) or f"{p.get('path')}/.crush"), word(p.get("path"))) for p in projects]
    for folder, workspace in dict.fromkeys(places):
        if (database := folder / DATABASE).is_file():
            yield from in_database(database, workspace)


def in_database(database: Path, workspace: str = "") -> Iterator[FoundSession]:
    """Yield the sessions of one database, of the folder it lies in if none is given."""
    workspace = workspace or str(database.absolute().parent.parent)
    for row in rows(
        database,
        "SELECT s.id AS id, s.updated_at AS changed, count(m.id) AS messages, sum(length(m.parts)) AS size "
        "FROM sessions s JOIN messages m ON m.session_id = s.id WHERE s.parent_session_id IS NULL "
        "GROUP BY s.id ORDER BY s.created_at",
    ):
        yield FoundSession(
            agent=AGENT,
            id=row["id"],
            folder=workspace,
            path=str(database),
            bytes=row["size"],
            version=f"{row['changed']}.{row['messages']}.{row['size']}",
        )


def read(found: FoundSession) -> Transcript:
    """Read a session.

    Raises:
        OSError: The database cannot be read.
    """
    database = Path(found.path)
    session = row_of(database, "sessions", found.id)
    transcript = Transcript(title=word(session.get("title")), folder=found.folder)
    for row in rows(
        database,
        "SELECT id, role, parts, model, created_at FROM messages WHERE session_id = ? ORDER BY created_at, rowid",
        found.id,
    ):
        parts, model = decoded(row["parts"]), row["model"] or ""
        add_parts(transcript, row["role"], parts, time_of(row["created_at"]), model=model)
    transcript.count(usage_of(session))  # they are counted for the whole session
    return transcript
