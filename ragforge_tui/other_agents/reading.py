"""Tolerant reading of foreign stores: lines of JSON, databases, times, and the parts that messages consist of.

Agents append while this program reads, so a last line may be torn, and a database may be locked or of an older form.
What cannot be read is left out; the rest of the session is not.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
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
MOST_WHOLE = 512 * 1024**2
"""Most bytes in memory at once, unpacked; longer files are read line by line."""
COMPRESSED = ".zst"
_PACKED = 1_024
"""Bytes that are decompressed at once: they may become thousands of times as many."""
_HEAD_LINES = 40
_TEXTS = ("text", "content", "result", "output", "structured_content", "response", "value", "error")
"""Keys under which an object has its text, the best first."""
_MOST_HEAD = 16 * 1024**2
"""Bytes that are decompressed at most for the first lines of a file."""
_EXITS = ("exit_code", "exitCode", "exit", "exit_status", "returncode", "return_code")
_ERRORS = ("is_error", "isError", "error")
_FAILED = ("error", "failed", "failure", "cancelled", "declined")
_DEPTH = 4
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


def session_lines(found: FoundSession) -> Iterator[dict[str, Any]]:
    """Yield the lines of a session's files, from the oldest on; a line that an earlier file held is left out.

    Raises:
        OSError: A file cannot be read.
    """
    seen: set[bytes] = set()
    for path in (found.path, *found.parts):
        kept = set[bytes]()
        for line in json_lines(Path(path)):
            if found.parts:
                kept.add(key := hashlib.sha256(msgspec.json.encode(line)).digest())
                if key in seen:
                    continue
            yield line
        seen |= kept


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
        return decode_json(read_regular(path, MOST_WHOLE))
    except msgspec.MsgspecError:
        return None


def any_json(path: Path) -> Any:
    """Return the value of a JSON file that need not be there; None without one."""
    try:
        return whole_json(path)
    except OSError:
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


def row_of(database: Path, table: str, id: str) -> dict[str, Any]:
    """Return the row with an id, with all columns that the table has in this version; empty without one.

    Raises:
        OSError: The file is no database, or locked.
    """
    return dict(next(iter(rows(database, f"SELECT * FROM {table} WHERE id = ?", id)), {}))


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
    """Return the text of a content: a text, a list of contents, or an object that names its text."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(filter(None, map(text_of, content)))
    if not isinstance(content, dict):
        return ""
    texts = (text_of(content.get(key)) for key in _TEXTS)
    streams = (word(content.get("stdout")), word(content.get("stderr")))
    return next(filter(None, texts), "") or "\n".join(filter(None, streams))


def exit_status(value: object, depth: int = _DEPTH) -> int | None:
    """Return the exit status that a result names under a key of its own, the first that is not 0; None without one."""
    if not depth or not isinstance(value, dict | list):
        return None
    inner = list(value.values()) if isinstance(value, dict) else value
    own = [fields(value).get(key) for key in _EXITS]
    found = [status for status in own if isinstance(status, int) and not isinstance(status, bool)]
    found += [status for one in inner if (status := exit_status(one, depth - 1)) is not None]
    return next((status for status in found if status), 0) if found else None


def is_failure(value: object, depth: int = _DEPTH) -> bool:
    """Return whether a result reports that its call failed."""
    if not depth or not isinstance(value, dict | list):
        return False
    own = fields(value)
    told = own.get("success") is False or own.get("status") in _FAILED or own.get("outcome") in _FAILED
    inner = value if isinstance(value, list) else own.values()
    return told or any(own.get(key) for key in _ERRORS) or any(is_failure(one, depth - 1) for one in inner)


def decoded(text: object) -> Any:
    """Return the value of a JSON text; None if it is not JSON."""
    if not isinstance(text, str | bytes):
        return text
    try:
        return decode_json(text)
    except msgspec.MsgspecError:
        return None


def file_sessions(agent: str, paths: Iterable[Path]) -> Iterator[FoundSession]:
    """Yield one session for each regular file, named after it; those that vanished meanwhile are left out."""
    for path in sorted(paths, key=lambda path: (path.name, path)):
        with suppress(OSError):
            if size := path.stat().st_size:
                yield FoundSession(agent=agent, id=path.stem, path=str(path), bytes=size, version=version(path))


def merged(found: Iterable[FoundSession]) -> list[FoundSession]:
    """Return each session once: files of one id are its parts, in the order they are given."""
    sessions: dict[tuple[str, str], FoundSession] = {}
    for one in found:
        known = sessions.setdefault((one.agent, one.id), one)
        if one.path not in (known.path, *known.parts):
            sessions[one.agent, one.id] = msgspec.structs.replace(
                known,
                folder=known.folder or one.folder,
                parts=(*known.parts, one.path, *one.parts),
                bytes=known.bytes + one.bytes,
                version=f"{known.version}+{one.version}",
            )
    return list(sessions.values())


def version(path: Path) -> str:
    """Return a text that changes when a file does."""
    state = path.stat()
    return f"{state.st_size}.{state.st_mtime_ns}"
