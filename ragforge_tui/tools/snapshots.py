"""Earlier contents of files that the agent wrote, stored by their SHA-256 so that an edit can be undone.

Used by the file tools, which store a content before they replace it, and by undo. The store is content-addressed: the
same content is stored once, and a damaged copy is detected instead of restored. Contents not stored again for
`KEPT_DAYS` are dropped, and beyond `KEPT_BYTES` the oldest ones; never those of the last day or of this process.

A copy has the exact bytes of the file, keys included, since restoring a mask in place of a key would destroy the key.
Copies are therefore readable by their owner alone, and those with a secret are stored separately for `SECRET_DAYS`
only.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import time
from collections.abc import Collection
from pathlib import Path

from ragforge_tui.shared.errors import ToolError
from ragforge_tui.shared.files import atomic_write, read_regular
from ragforge_tui.shared.redaction import mask_secrets
from ragforge_tui.tools.workspace import Workspace, read_bytes, remove_file, runs, write_bytes

log = logging.getLogger(__name__)

KEPT_DAYS = 30
SECRET_DAYS = 7
"""As for a deleted conversation, which can be restored for the same time."""
KEPT_BYTES = 512 * 1024 * 1024
_DAY = 86_400.0

_SECRETS = "secrets"

ABSENT = ""
"""Digest of a missing file."""


def digest_of(content: bytes | None) -> str:
    """Return the SHA-256 in hex, `ABSENT` for a missing file."""
    return ABSENT if content is None else hashlib.sha256(content).hexdigest()


class UndoStore:
    """Folder of stored contents. All methods block; call them in a thread."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._own: set[str] = set()

    def keep(self, content: bytes, *, secret: bool = False, text: bool = True, runs: bool = False) -> str:
        """Store a content durably and return its digest.

        Args:
            secret: Treat the content as secret, even if no secret is found in it.
            text: Whether to look for secrets in it; in the bytes of an image there are none.
            runs: The file may be run as a program, which its copy remembers.
        """
        digest = digest_of(content)
        self._own.add(digest)
        target = self._path(digest, secret=secret or (text and _holds_secrets(content)))
        try:
            os.utime(target)  # its age counts from now
        except FileNotFoundError:
            atomic_write(target, content)
        target.chmod(0o700 if runs else 0o600)
        return digest

    def load(self, digest: str) -> bytes:
        """Return the content with this digest.

        Raises:
            ToolError: The content was never stored here, or its copy is damaged.
        """
        if len(digest) != 64 or not set(digest) <= set("0123456789abcdef"):
            raise ToolError(f"{digest!r} is not a digest of a stored content.", kind="not_kept")
        path = self._found(digest)
        try:
            content = read_regular(path, KEPT_BYTES) if path is not None else None
        except FileNotFoundError:  # another process prunes too
            content = None
        if content is None:
            raise ToolError(f"The content {digest[:12]} is not stored.", kind="not_kept")
        if digest_of(content) != digest:
            raise ToolError(f"The stored content {digest[:12]} is damaged.", kind="not_kept")
        return content

    def holds_any(self) -> bool:
        """Return whether any content is stored."""
        return any(self._folder.glob("*/*"))

    def forget(self, digests: Collection[str]) -> list[str]:
        """Remove contents, and return sentences on those that cannot be removed."""
        left = []
        for path in (self._path(digest, secret=secret) for digest in digests for secret in (False, True)):
            try:
                path.unlink(missing_ok=True)
            except OSError as error:
                left.append(f"The copy {path} could not be removed: {error.strerror}.")
        return left

    def restore(self, workspace: Workspace, path: str, before: str, after: str) -> None:
        """Restore a file to its content before a write, unless it has changed since.

        The replaced content is stored too, so that an undo can be undone with the digests swapped.

        Raises:
            ToolError: The file has changed since it was written, or the earlier content is not stored.
        """
        place = workspace.locate(path)
        current = read_bytes(place)
        if digest_of(current) != after:
            raise ToolError(f"{place.shown} has changed since that write.", kind="changed")
        earlier = None if before == ABSENT else self.load(before)
        if current is not None:
            self.keep(current, secret=place.secret, runs=runs(place))
        if earlier is not None:
            copy = self._found(before)
            executable = copy is not None and os.access(copy, os.X_OK)
            write_bytes(place, earlier, mode=0o600 if place.secret else 0o777 if executable else 0o666)
        elif current is not None:
            remove_file(place)

    def _found(self, digest: str) -> Path | None:
        return next((path for secret in (False, True) if (path := self._path(digest, secret=secret)).exists()), None)

    def prune(self, *, days: float = KEPT_DAYS, size: int = KEPT_BYTES) -> int:
        """Drop contents older than `days`, then the oldest ones beyond `size` bytes.

        Returns:
            The number of contents dropped.
        """
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
            log.info("dropped %d stored contents of files", dropped)
        return dropped

    def _is_own(self, path: Path) -> bool:
        return path.parent.name + path.name in self._own

    def _path(self, digest: str, *, secret: bool = False) -> Path:
        return (self._folder / _SECRETS if secret else self._folder) / digest[:2] / digest[2:]


def _holds_secrets(content: bytes) -> bool:
    text = content.decode("utf-8", "replace")
    return mask_secrets(text) != text
