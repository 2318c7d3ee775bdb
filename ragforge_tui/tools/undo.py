"""Earlier contents of files the agent wrote, kept by their SHA-256 so that an edit can be undone.

Used by the file tools, which keep a content before they replace it, and by whatever offers undo. Content-addressed:
the same content is kept once, and a damaged copy is noticed instead of restored. What was not kept again for
`KEPT_DAYS` is dropped, and beyond `KEPT_BYTES` the oldest; never anything of the last day or of this process.

A copy is the true bytes of the file, keys included, since an undo that puts a mask in place of a key would destroy it.
So copies are readable by their owner alone, and those that hold a secret are kept apart for `SECRET_DAYS` only.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import secrets
import time
from pathlib import Path

from ragforge_tui.errors import ToolError
from ragforge_tui.redaction import mask_secrets
from ragforge_tui.tools.workspace import Workspace, read_bytes, remove_file, write_bytes

log = logging.getLogger(__name__)

KEPT_DAYS = 30
SECRET_DAYS = 7
"""As long as a deleted conversation can be restored."""
KEPT_BYTES = 512 * 1024 * 1024
_DAY = 86_400.0

_SECRETS = "secrets"

ABSENT = ""
"""Digest of a file that is not there."""


def digest_of(content: bytes | None) -> str:
    """SHA-256 in hex, `ABSENT` for a file that is not there."""
    return ABSENT if content is None else hashlib.sha256(content).hexdigest()


class UndoStore:
    """A folder of contents. All methods block; call them in a thread."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._own: set[str] = set()

    def keep(self, content: bytes, *, secret: bool = False) -> str:
        """Keep a content durably and give its digest.

        Args:
            secret: It holds secrets, whatever is found in it.
        """
        digest = digest_of(content)
        self._own.add(digest)
        target = self._path(digest, secret=secret or _holds_secrets(content))
        with contextlib.suppress(FileNotFoundError):
            os.utime(target)  # as young as what it is kept for
            return digest
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        temporary = target.with_name(f".{secrets.token_hex(8)}.tmp")
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(target)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        return digest

    def load(self, digest: str) -> bytes:
        """The content with this digest.

        Raises:
            ToolError: When it was never kept here, or the copy is damaged.
        """
        if len(digest) != 64 or not set(digest) <= set("0123456789abcdef"):
            raise ToolError(f"{digest!r} is not a digest of a kept content.", kind="not_kept")
        path = next((path for secret in (False, True) if (path := self._path(digest, secret=secret)).exists()), None)
        try:
            content = path.read_bytes() if path is not None else None
        except FileNotFoundError:  # another process prunes too
            content = None
        if content is None:
            raise ToolError(f"No content {digest[:12]} is kept.", kind="not_kept")
        if digest_of(content) != digest:
            raise ToolError(f"The kept content {digest[:12]} is damaged.", kind="not_kept")
        return content

    def restore(self, workspace: Workspace, path: str, before: str, after: str) -> None:
        """Put a file back to what it was before a write, unless it changed since.

        The content that is replaced is kept too, so that an undo can be undone with the digests swapped.

        Raises:
            ToolError: When the file is no longer what the write left, or the earlier content is not kept.
        """
        place = workspace.locate(path)
        current = read_bytes(place)
        if digest_of(current) != after:
            raise ToolError(f"{place.shown} changed since that write, so it was left as it is.", kind="changed")
        earlier = None if before == ABSENT else self.load(before)
        if current is not None:
            self.keep(current, secret=place.secret)
        if earlier is not None:
            write_bytes(place, earlier)
        elif current is not None:
            remove_file(place)

    def prune(self, *, days: float = KEPT_DAYS, size: int = KEPT_BYTES) -> int:
        """Drop what is too old, then the oldest of what is too much; how many files went."""
        now = time.time()
        files: list[tuple[float, int, Path]] = []
        dropped = 0
        for path in (*self._folder.glob("??/*"), *self._folder.glob(f"{_SECRETS}/??/*")):
            with contextlib.suppress(FileNotFoundError):  # another process prunes too
                stat = path.stat()
                if path.parts[-3] == _SECRETS and now - stat.st_mtime > SECRET_DAYS * _DAY and not self._is_own(path):
                    path.unlink()
                    dropped += 1
                    continue
                files.append((stat.st_mtime, stat.st_size, path))
        total = sum(weight for _, weight, _ in files)
        for changed, weight, path in sorted(files):
            age = now - changed
            if age <= _DAY or (age <= days * _DAY and total <= size):
                break
            if self._is_own(path):
                continue
            path.unlink(missing_ok=True)
            total -= weight
            dropped += 1
        if dropped:
            log.info("dropped %d kept contents of files", dropped)
        return dropped

    def _is_own(self, path: Path) -> bool:
        return path.parent.name + path.name in self._own

    def _path(self, digest: str, *, secret: bool = False) -> Path:
        return (self._folder / _SECRETS if secret else self._folder) / digest[:2] / digest[2:]


def _holds_secrets(content: bytes) -> bool:
    text = content.decode("utf-8", "replace")
    return mask_secrets(text) != text
