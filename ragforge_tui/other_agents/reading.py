"""Tolerant reading of foreign stores: lines of JSON, databases, times, and the parts that messages consist of.

Agents append while this program reads, so a last line may be torn, and a database may be locked or of an older form.
What cannot be read is left out; the rest of the session is not.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from io import BufferedReader, RawIOBase
from pathlib import Path
from typing import Any
from urllib.parse import quote

import msgspec

from ragforge_tui.shared.files import open_regular, read_regular
from ragforge_tui.shared.found_sessions import FoundSession
from ragforge_tui.shared.json_text import decode_json

MOST_LINE = 64 * 1024 * 1024
"""Bytes of a line; a longer one is left out, since it holds pictures rather than words."""
MOST_FILE = 2 * 1024**3
COMPRESSED = ".zst"
_PACKED = 1_024
"""Bytes that are decompressed at once: they may become thousands of times as many."""
_HEAD_LINES = 40
_MOST_HEAD = 16 * 1024**2
"""Bytes that are decompressed at most for the first lines of a file."""
_MOST_DIGITS = 20
_LAST_YEAR = 3000
_LATEST = 32_503_680_000
"""Seconds until the year 3000: a larger number counts milliseconds."""


def json_lines(path: Path, *, most: int | None = None) -> Iterator[dict[str, Any]]:
    """Yield the objects of a file of JSON lines; lines that are no object are left out.

    Args:
        path: The file.
        most: Number of lines to read; None reads all.

    Raises:
        OSError: The file cannot be read.
    """
    with closing(_lines_of(path, most)) as file:
        number = 0
        while line := file.readline(MOST_LINE):
            number += 1
            if most is not None and number > most:
                return
            try:
                value = decode_json(line)
            except msgspec.MsgspecError:
                continue
            if isinstance(value, dict):
                yield value


def _lines_of(path: Path, most: int | None) -> BufferedReader:
    """Open a file of lines, decompressed if its name says that it is compressed.

    Args:
        most: Number of lines that are read; None for all.

    Raises:
        OSError: The file cannot be read.
    """
    file = open_regular(path)
    if path.suffix != COMPRESSED:
        return file
    return BufferedReader(_Decompressed(file, MOST_FILE if most is None else _MOST_HEAD))


class _Decompressed(RawIOBase):
    """Content of a file compressed with Zstandard; where it is torn or damaged, it ends."""

    def __init__(self, file: BufferedReader, most: int) -> None:
        import zstandard  # when first needed: few stores hold compressed files

        self._file = file
        self._content = zstandard.ZstdDecompressor().decompressobj(read_across_frames=True)
        self._damage = zstandard.ZstdError
        self._left = b""
        self._room = most
        """Bytes that may still be decompressed: a small file can hold a huge one."""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._left and self._room > 0 and (packed := self._file.read(_PACKED)):
            try:
                self._left = self._content.decompress(packed)
            except self._damage:
                return 0
            self._room -= len(self._left)
        data, self._left = self._left[: len(buffer)], self._left[len(buffer) :]
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._file.close()
        super().close()


def head(path: Path) -> list[dict[str, Any]]:
    """Return the first objects of a file of JSON lines; none if it cannot be read."""
    try:
        return list(json_lines(path, most=_HEAD_LINES))
    except OSError:
        return []


def whole_json(path: Path) -> Any:
    """Return the value of a JSON file; None if it is not JSON.

    Raises:
        OSError: The file cannot be read.
    """
    try:
        return decode_json(read_regular(path, MOST_FILE))
    except msgspec.MsgspecError:
        return None


def rows(database: Path, statement: str, *values: object) -> list[sqlite3.Row]:
    """Return the rows of a query, read without writing to the database; none if it lacks the table.

    Raises:
        OSError: The file is no database, or locked.
    """
    place = f"file:{quote(str(database.absolute()))}?mode=ro"
    try:
        with closing(sqlite3.connect(place, uri=True, timeout=5)) as connection:
            connection.row_factory = sqlite3.Row
            connection.text_factory = lambda data: data.decode("utf-8", "replace")
            return connection.execute(statement, values).fetchall()
    except sqlite3.OperationalError as error:
        if "no such" in str(error):
            return []
        raise OSError(f"{database}: {error}") from error
    except sqlite3.DatabaseError as error:
        raise OSError(f"{database}: {error}") from error


def columns(database: Path, table: str) -> set[str]:
    """Return the names of a table's columns; none without the table."""
    return {row["name"] for row in rows(database, "SELECT name FROM pragma_table_info(?)", table)}


def time_of(value: object) -> datetime | None:
    """Return a moment given as ISO text or as seconds or milliseconds since 1970; None for anything else."""
    if isinstance(value, str) and value.strip():
        text = value.strip()
        if text.isascii() and text.isdecimal():
            return time_of(int(text)) if len(text) < _MOST_DIGITS else None
        try:
            moment = datetime.fromisoformat(text)
            moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
        except (ValueError, OverflowError):
            return None
        return moment if moment.year < _LAST_YEAR else None
    if isinstance(value, int | float) and not isinstance(value, bool) and value > 0:
        try:
            return datetime.fromtimestamp(value / 1_000 if value > _LATEST else value, tz=UTC)
        except (OverflowError, ValueError, OSError):
            return None
    return None


def fields(value: object) -> dict[str, Any]:
    """Return an object, or an empty one in the place of anything else."""
    return value if isinstance(value, dict) else {}


def items(value: object) -> list[dict[str, Any]]:
    """Return the objects of a list; none in the place of anything else."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def word(value: object) -> str:
    """Return a text, or an empty one in the place of anything else."""
    return value if isinstance(value, str) else ""


def number(value: object) -> int:
    """Return a count; 0 in the place of anything else."""
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) and value > 0 else 0


def text_of(content: object) -> str:
    """Return the text of a message's content: a text, or a list of texts and of parts with `text` or `content`."""
    if isinstance(content, str):
        return content
    if isinstance(content, dict):
        return word(content.get("text")) or text_of(content.get("content", ""))
    if isinstance(content, list):
        return "\n".join(filter(None, (text_of(part) for part in content)))
    return ""


def decoded(text: object) -> Any:
    """Return the value of a JSON text; None if it is not JSON."""
    if not isinstance(text, str | bytes):
        return text
    try:
        return decode_json(text)
    except msgspec.MsgspecError:
        return None


def file_sessions(agent: str, paths: Iterable[Path], *, inside: Path | None = None) -> Iterator[FoundSession]:
    """Yield one session for each regular file, named after it; those that vanished meanwhile are left out."""
    for path in sorted(paths):
        try:
            state = path.stat()
        except OSError:
            continue
        if state.st_size:
            name = path.stem if inside is None else str(path.relative_to(inside))
            yield FoundSession(agent=agent, id=name, path=str(path), bytes=state.st_size, version=version(path))


def version(path: Path) -> str:
    """Return a text that changes when a file does."""
    state = path.stat()
    return f"{state.st_size}.{state.st_mtime_ns}"
