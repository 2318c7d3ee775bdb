"""Answers of the terminal among the keys, which nobody typed: colours, versions, device attributes, states.

They answer queries of this program or of the one before it, and may come late. Textual's parser would take them for
letters: BEL at the end of one is ctrl+g, and a carriage return in one would send the prompt.
"""

from __future__ import annotations

import re

_MAX_HELD = 64 * 1024
_ANSWER = re.compile(
    rb"\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)"  # OSC, DCS, SOS, PM and APC strings
    rb"|\x1b\[(?:[?>=][0-9;]*[cnuR]|[03]n|[468];[0-9]+;[0-9]+t)"  # not those that Textual understands
)
_UNFINISHED = re.compile(rb"\x1b(?:[\]PX^_][^\x07\x1b]*\x1b?|\[[?>=]?[0-9;]*)\Z")


def without_answers(typed: bytes) -> bytes:
    """Return the bytes of a terminal without its answers that are complete."""
    return _ANSWER.sub(b"", typed)


def split_unfinished(typed: bytes) -> tuple[bytes, bytes]:
    """Return bytes, and their end apart if it is a sequence that the next bytes may finish."""
    start = typed.rfind(b"\x1b", 0, len(typed) - 1)
    if start < 0 or len(typed) - start > _MAX_HELD or not _UNFINISHED.match(typed, start):
        return typed, b""
    return typed[:start], typed[start:]
