"""Replacement of one exact piece of a text, the core of edit_file.

Used by `files.py`. A pure function, so that every mistake of a model can be tested without a file.
"""

from __future__ import annotations

from ragforge_tui.shared.encoding import line_end_of, with_line_ends
from ragforge_tui.shared.errors import ToolError


def replace_once(text: str, old: str, new: str, path: str) -> str:
    """Replace the only occurrence of a piece and preserve the file's line ends.

    Raises:
        ToolError: The piece is empty, equal to the new one, missing or not unique.
    """
    if not old:
        raise ToolError("old_string is empty.", todo="Give the text to replace, or use write_file.", kind="no_match")
    if old == new:
        raise ToolError("old_string and new_string are equal; there is nothing to do.", kind="no_change")
    line_end = line_end_of(text)
    if line_end == "\r\n":
        new = with_line_ends(new, line_end)
    if old not in text and "\r\n" in text:
        old = with_line_ends(old, "\r\n")
    position = text.find(old)
    if position < 0:
        raise ToolError(
            f"old_string does not occur in {path}.{_near_miss(text, old)}",
            todo="Copy it exactly from the file, without line numbers and with its indentation.",
            kind="no_match",
        )
    if text.find(old, position + 1) >= 0:
        lines = [str(text.count("\n", 0, at) + 1) for at in _occurrences(text, old)]
        raise ToolError(
            f"old_string is not unique in {path}: it starts on lines {', '.join(lines)}.",
            todo="Include more of the lines around it.",
            kind="not_unique",
        )
    return text[:position] + new + text[position + len(old) :]


def _occurrences(text: str, piece: str, most: int = 10) -> list[int]:
    offsets: list[int] = []
    at = text.find(piece)
    while at >= 0 and len(offsets) < most:
        offsets.append(at)
        at = text.find(piece, at + 1)
    return offsets


def _near_miss(text: str, old: str) -> str:
    """Return a hint with the line where the piece occurs with different white space; empty if it does not."""
    old_lines = [line.strip() for line in old.strip().split("\n")]
    lines = [line.strip() for line in text.split("\n")]
    for index in range(len(lines) - len(old_lines) + 1):
        if lines[index] == old_lines[0] and lines[index : index + len(old_lines)] == old_lines:
            return f" With different white space it occurs on line {index + 1}."
    return ""
