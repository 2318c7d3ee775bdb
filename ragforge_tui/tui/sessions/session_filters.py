"""The lines above and below the list of sessions: filters and keys, all of them clickable.

Pure; `session_picker.py` shows them and binds the keys.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from textual.content import Content
from textual.style import Style

from ragforge_tui.shared.records import Conversation
from ragforge_tui.shared.sanitize import plain_text
from ragforge_tui.tui.sessions.session_list_model import STATUSES, SessionFilter

FILTERS: tuple[tuple[str, str], ...] = (
    ("ctrl+f", "folder"),
    ("ctrl+s", "status"),
    ("ctrl+g", "tags"),
    ("ctrl+o", "order"),
)
ACTIONS: tuple[tuple[str, str, str], ...] = (
    ("ctrl+r", "rename", "rename"),
    ("ctrl+t", "tag", "tags"),
    ("ctrl+a", "archive", "archive"),
    ("ctrl+d", "delete", "delete"),
    ("ctrl+z", "undo", "undo"),
    ("ctrl+e", "export", "export"),
    ("ctrl+l", "private", "private"),
    ("tab", "preview", "preview"),
)
"""Key, action and word."""
ORDER_NAMES = {"updated": "last changed", "created": "newest", "title": "by title"}
EDITING = "enter apply · esc cancel"


def filter_bar(wanted: SessionFilter, *, everywhere: bool, count: str, width: int) -> Content:
    """Return the current filters and order; what differs from the default is highlighted."""
    values = {
        "folder": ("all folders" if everywhere else "this folder", everywhere),
        "status": ("any status" if wanted.status == "any" else wanted.status, wanted.status != "active"),
        "tags": (f"#{_line(wanted.tag)}" if wanted.tag else "all tags", bool(wanted.tag)),
        "order": (ORDER_NAMES[wanted.order], wanted.order != "updated"),
    }
    parts = [Content.styled("Sessions", "bold")]
    for key, name in FILTERS:
        value, changed = values[name]
        label = Content.assemble((f"{key_sign(key)} ", "dim"), (value, "$accent" if changed else ""))
        parts.append(clickable(label, f"screen.filter('{name}')"))
    parts.append(Content.styled(count, "dim"))
    return _broken(parts, "  ", width)


def key_bar(chosen: Conversation | None, *, nothing: str, undo: bool, width: int) -> Content:
    """Return the actions for the session at the cursor.

    Args:
        nothing: Shown if there is no session.
        undo: Whether a delete can be undone.
    """
    parts = [clickable("enter open", "screen.open") if chosen is not None else Content(nothing)]
    parts += [
        clickable(f"{key_sign(key)} {word}", f"screen.do('{name}')") for key, name, word in _offered(chosen, undo)
    ]
    return _broken([*parts, clickable("esc back", "screen.leave")], " · ", width)


def nothing_fits(unfiltered: Mapping[str, int], *, everywhere: bool) -> str:
    """Return the text of an empty list.

    Args:
        unfiltered: Number of sessions of each status that match the words without filters.
    """
    found = ", ".join(f"{unfiltered[status]} {status}" for status in STATUSES if unfiltered.get(status))
    if found:
        return f"no match; without the filters {found}"
    return f"no match in {'any' if everywhere else 'this'} folder"


def _offered(chosen: Conversation | None, undo: bool) -> Iterator[tuple[str, str, str]]:
    for key, name, word in ACTIONS:
        if name == "undo":
            if undo:
                yield key, name, word
        elif chosen is not None:
            match name, chosen.status:
                case "archive", "archived":
                    yield key, name, "unarchive"
                case "archive", "deleted":
                    pass
                case "delete", "deleted":
                    yield key, name, "restore"
                case _:
                    yield key, name, "not private" if name == "private" and chosen.private else word


def _broken(parts: list[Content], between: str, width: int) -> Content:
    """Wrap texts into lines of at most that width, without breaking a text."""
    lines = [parts[0]]
    for part in parts[1:]:
        longer = Content(between).join([lines[-1], part])
        if longer.cell_length <= width:
            lines[-1] = longer
        else:
            lines.append(part)
    return Content("\n").join(lines)


def clickable(label: str | Content, action: str) -> Content:
    """Return a text that runs an action when it is clicked."""
    text = Content(label) if isinstance(label, str) else label
    return text.stylize(Style.from_meta({"@click": action}))


def key_sign(key: str) -> str:
    return key.replace("ctrl+", "^")


def _line(text: str) -> str:
    return " ".join(plain_text(text).split())
