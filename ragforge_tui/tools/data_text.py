"""Texts of the graph as tools return them: enclosed as data, long ones in pages.

Such texts come from users, models and files, so they are marked as data.
"""

from __future__ import annotations

from ragforge_tui.shared.errors import ToolError
from ragforge_tui.tools.base import ToolOutcome

PAGE_CHARS = 12_000
"""Characters of a text in one page."""
_EARLIEST_CUT = PAGE_CHARS * 3 // 4


def enclosed(text: str, tag: str, note: str) -> str:
    """Return the text after a note, between marks that it cannot close itself."""
    escaped = text.replace(f"</{tag}>", f"<\u200b/{tag}>").strip("\n")
    return f"{note}\n<{tag}>\n{escaped}\n</{tag}>"


def paged(name: str, text: str, offset: int, tag: str, note: str) -> ToolOutcome:
    """Return the page of a long text that starts at `offset`.

    Raises:
        ToolError: The text ends before it.
    """
    if offset and offset >= len(text):
        raise ToolError(f"{name} has {len(text)} characters.", todo="Give a smaller offset, or none.")
    page, end = _page(text, offset)
    more = f"\n[Characters {offset} to {end} of {len(text)}; continue with offset={end}.]"
    return ToolOutcome(text=enclosed(page, tag, note) + (more if end < len(text) else ""), full_size=len(text.encode()))


def _page(text: str, start: int) -> tuple[str, int]:
    """Return the page of a text that starts at `start`, cut at a nearby line end if there is one, and its end."""
    end = min(start + PAGE_CHARS, len(text))
    if end < len(text):
        line_end = text.rfind("\n", start + _EARLIEST_CUT, end)
        end = line_end + 1 if line_end >= 0 else end
    return text[start:end], end
