"""The list of sessions: rows with filters, search and branches below their parents, and the lines of keys around it.

Pure. Search texts and rows are made once per session and cached, so that a letter typed over thousands of sessions
costs milliseconds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import date, datetime, timedelta
from typing import Any, Literal, get_args

import msgspec

from ragforge_tui.shared.events import ModelChanged
from ragforge_tui.shared.formatting import counted, short_count
from ragforge_tui.shared.records import PURGE_AFTER_DAYS, Conversation
from ragforge_tui.tui import fuzzy
from ragforge_tui.tui.drawing.lines import one_line
from ragforge_tui.tui.drawing.palette import DEFAULT_GLYPH
from ragforge_tui.tui.keys import key_name
from ragforge_tui.tui.widgets.choice_list import Choice
from ragforge_tui.tui.widgets.key_bar import KeyHint
from ragforge_tui.tui.widgets.list_screen import BACK

"""Days for which a deleted conversation can be restored."""


def session_row(
    conversation: Conversation,
    now: datetime,
    *,
    current: str = "",
    glyphs: Mapping[str, str] | None = None,
    narrow: bool = False,
) -> Choice:
    """Return a conversation as a row, with times in the user's time zone.

    Args:
        current: Id of the open one.
        glyphs: Glyphs of personas, by name.
        narrow: Whether there is little room next to the title.
    """
    count = conversation.message_count
    moment = conversation.updated_at.astimezone(now.tzinfo)
    messages = "" if narrow else f" message{'' if count == 1 else 's'}"
    detail = f"{count}{messages} · {short_time(moment, now.date())}"
    badges = [badge for badge in _badges(conversation, now) if badge]
    if conversation.uuid == current:
        badges.insert(0, "open now")
    glyph = (glyphs or {}).get(conversation.persona) or DEFAULT_GLYPH
    sign = f"{glyph} " if conversation.persona else ""
    return Choice(
        conversation.uuid,
        session_title(conversation),
        detail,
        lead=f"{branch_sign(conversation, narrow=narrow)}{sign}",
        badge=f"({', '.join(badges)})" if badges else "",
    )


def _badges(conversation: Conversation, now: datetime) -> Iterable[str]:
    yield "private" if conversation.private else ""
    if conversation.status == "deleted" and conversation.deleted_at is not None:
        left = conversation.deleted_at + timedelta(days=PURGE_AFTER_DAYS) - now
        days = max(left.days, 0)
        yield f"deleted, kept {counted(days, 'day')}" if days else "deleted, purged soon"
    elif conversation.status != "active":
        yield conversation.status


def session_title(conversation: Conversation) -> str:
    return conversation.title.strip() or f"untitled {conversation.uuid[:8]}"


def branch_sign(conversation: Conversation, *, narrow: bool = False) -> str:
    """Return the turn at which it branches off; empty for a conversation that is no branch."""
    if not conversation.branch_of:
        return ""
    if not conversation.branch_turn:
        return "start · " if narrow else "from the start · "
    return f"{'t' if narrow else 'from turn '}{conversation.branch_turn} · "


def date_group(day: date, today: date) -> str:
    """Return the heading of a day."""
    age = (today - day).days
    if age <= 0:
        return "Today"
    if age == 1:
        return "Yesterday"
    if age < 7:
        return "This week"
    return day.strftime("%B %Y")


def short_time(moment: datetime, today: date) -> str:
    """Return the time for today, else the date."""
    if moment.date() == today:
        return moment.strftime("%H:%M")
    return f"{moment.day} {moment:%b}" if moment.year == today.year else f"{moment.day} {moment:%b %Y}"


def model_rows(names: Iterable[str], current: ModelChanged | None) -> list[Choice]:
    """Return models as rows, the current one first."""
    in_use = current.name if current else ""
    ordered = sorted(names, key=lambda name: (name != in_use, name))
    return [Choice(name, name, _in_use(current) if current and name == in_use else "") for name in ordered]


def _in_use(model: ModelChanged) -> str:
    if model.window_assumed:
        return f"in use · window {short_count(model.context_window)} assumed"
    if model.window_learned is None:
        return "in use"
    day = f"{model.window_learned.astimezone():%-d %b}"
    return f"in use · window {short_count(model.context_window)}, learned {day}; choose again to reset"


Status = Literal["active", "archived", "deleted", "any"]
Order = Literal["updated", "created", "title"]
STATUSES: tuple[Status, ...] = get_args(Status)
ORDERS: tuple[Order, ...] = get_args(Order)
ID_LETTERS = 4
"""Minimum letters of a word that may be the beginning of an id."""
_HEXADECIMAL = frozenset("0123456789abcdef-")
_IN_SUMMARY = 2.0
_IN_ID = 60.0


class SessionFilter(msgspec.Struct, frozen=True):
    """Filters and order of the list.

    Attributes:
        query: Words for title, tags, id and summary; ``#word`` searches the tags only.
        tag: Only sessions with this tag; empty for all.
    """

    query: str = ""
    status: Status = "active"
    tag: str = ""
    order: Order = "updated"


class RowStyle(msgspec.Struct, frozen=True):
    """Everything that rows depend on besides their sessions."""

    now: datetime
    current: str = ""
    glyphs: Mapping[str, str] = {}
    narrow: bool = False


class _Searched(msgspec.Struct, frozen=True):
    """The texts of a session that are searched: `text` is title and tags, where letters may be apart."""

    text: str
    tags: tuple[str, ...]
    uuid: str
    summary: str


class SessionList:
    """All known sessions, and the rows made of them."""

    def __init__(self) -> None:
        self._records: dict[str, Conversation] = {}
        self._searched: dict[str, _Searched] = {}
        self._rows: dict[str, Choice] = {}
        self._style: RowStyle | None = None
        self._ordered: dict[Order, list[Conversation]] = {}
        self._matched: tuple[SessionFilter, list[Conversation]] | None = None

    def __len__(self) -> int:
        return len(self._records)

    def get(self, uuid: str) -> Conversation | None:
        """Return the session with an id, if it is known."""
        return self._records.get(uuid)

    @property
    def newest(self) -> datetime | None:
        return max((record.updated_at for record in self._records.values()), default=None)

    def replace(self, records: Iterable[Conversation]) -> bool:
        """Replace all sessions; return whether anything changed."""
        fresh = {record.uuid: record for record in records}
        if fresh == self._records:
            return False
        for uuid in [uuid for uuid, record in self._records.items() if fresh.get(uuid) != record]:
            self._forget(uuid)
        self._records = fresh
        self._invalidate()
        return True

    def put(self, records: Iterable[Conversation]) -> bool:
        """Add or update sessions; return whether anything changed."""
        changed = [record for record in records if self._records.get(record.uuid) != record]
        for record in changed:
            self._forget(record.uuid)
            self._records[record.uuid] = record
        if changed:
            self._invalidate()
        return bool(changed)

    def _forget(self, uuid: str) -> None:
        self._searched.pop(uuid, None)
        self._rows.pop(uuid, None)

    def _invalidate(self) -> None:
        self._ordered.clear()
        self._matched = None

    def tags(self, status: Status) -> list[str]:
        """Return the tags of the sessions with a status, the most frequent first."""
        counted = Counter(tag for record in self._of(status) for tag in record.tags)
        return sorted(counted, key=lambda tag: (-counted[tag], tag))

    def branches(self, uuid: str) -> int:
        """Return the number of branches of a session."""
        return sum(record.branch_of == uuid for record in self._records.values())

    def rows(self, wanted: SessionFilter, style: RowStyle) -> list[Choice]:
        """Return the rows: with words the best match first, else in order, branches below their parents."""
        if self._style is None or _row_key(self._style) != _row_key(style):
            self._rows.clear()
        self._style = style
        if wanted.query.strip():
            return [self._row(record, style) for record in self._matching(wanted)]
        return self._tree(self._wanted(wanted), wanted.order, style)

    def _wanted(self, wanted: SessionFilter) -> list[Conversation]:
        """Return the sessions that pass the filters, in order."""
        if (ordered := self._ordered.get(wanted.order)) is None:
            ordered = self._ordered[wanted.order] = sorted(self._records.values(), key=_key(wanted.order))
        status, tag = wanted.status, wanted.tag
        return [r for r in ordered if status in ("any", r.status) and (not tag or tag in r.tags)]

    def _of(self, status: Status) -> Iterable[Conversation]:
        return (record for record in self._records.values() if status in ("any", record.status))

    def _row(self, record: Conversation, style: RowStyle) -> Choice:
        if (made := self._rows.get(record.uuid)) is None:
            made = session_row(record, style.now, current=style.current, glyphs=style.glyphs, narrow=style.narrow)
            self._rows[record.uuid] = made
        return made

    # -- search

    def _matching(self, wanted: SessionFilter) -> list[Conversation]:
        words = wanted.query.casefold().split()
        records = self._wanted(wanted)
        if self._matched is not None and _narrower(wanted, self._matched[0]):
            # Each letter more can only leave sessions out.
            known = {record.uuid for record in self._matched[1]}
            records = [record for record in records if record.uuid in known]
        scored = [(score, record) for record in records if (score := self._score(words, record)) is not None]
        scored.sort(key=lambda pair: -pair[0])
        found = [record for _, record in scored]
        self._matched = (wanted, found)
        return found

    def _score(self, words: list[str], record: Conversation) -> float | None:
        text = self._searched.get(record.uuid)
        if text is None:
            text = _Searched(
                " ".join((session_title(record), *record.tags)).casefold(),
                tuple(tag.casefold() for tag in record.tags),
                record.uuid,
                record.summary.casefold(),
            )
            self._searched[record.uuid] = text
        total = 0.0
        for word in words:
            if (found := _score_word(word, text)) is None:
                return None
            total += found
        return total

    def unfiltered(self, query: str) -> Counter[str]:
        """Return the number of sessions of each status that match the words without filters."""
        words = query.casefold().split()
        return Counter(r.status for r in self._records.values() if self._score(words, r) is not None)

    # -- the tree of branches

    def _tree(self, wanted: list[Conversation], order: Order, style: RowStyle) -> list[Choice]:
        listed = {record.uuid for record in wanted}
        children: dict[str, list[Conversation]] = {}
        roots: list[Conversation] = []
        for record in wanted:
            if record.branch_of and record.branch_of in listed:
                children.setdefault(record.branch_of, []).append(record)
            else:
                roots.append(record)
        zone, today = style.now.tzinfo, style.now.date()
        families = [(root, _family(root, children)) for root in roots]
        moments = {root.uuid: _moment(family, order) for root, family in families}
        if order == "updated":
            families.sort(key=lambda pair: moments[pair[0].uuid], reverse=True)
        rows: list[Choice] = []
        for root, family in families:
            heading = date_group(moments[root.uuid].astimezone(zone).date(), today) if order != "title" else ""
            for record, stem in family:
                row = self._row(record, style)
                rows.append(msgspec.structs.replace(row, lead=f"{stem}{row.lead}", heading=heading))
        return rows


def _row_key(style: RowStyle) -> tuple[Any, ...]:
    """Return what the cached rows depend on; the time of day does not matter to them."""
    return style.now.date(), style.current, dict(style.glyphs), style.narrow


def _score_word(word: str, text: _Searched) -> float | None:
    if word.startswith("#"):
        tag = word[1:]
        return _IN_ID if any(known.startswith(tag) for known in text.tags) else None
    if len(word) >= ID_LETTERS and text.uuid.startswith(word):
        return _IN_ID
    # Letters with gaps between them are found in any long text; a summary must have the word itself.
    found = fuzzy.score(word, text.text)
    if found is None and word in text.summary:
        return _IN_SUMMARY * len(word)
    return found


def _narrower(now: SessionFilter, before: SessionFilter) -> bool:
    """Return whether all matches are among the matches before.

    A word that becomes long enough to be the beginning of an id can match more than before.
    """
    same = msgspec.structs.replace(now, query=before.query) == before
    last = before.query.split()[-1:]
    known = bool(last) and (len(last[0]) >= ID_LETTERS or not _HEXADECIMAL.issuperset(last[0].casefold()))
    return same and known and now.query.startswith(before.query)


def _family(root: Conversation, children: Mapping[str, list[Conversation]]) -> list[tuple[Conversation, str]]:
    """Return a session and its branches, each after its parent, with the lines of the tree."""
    if root.uuid not in children:
        return [(root, "")]
    found: list[tuple[Conversation, str]] = []
    left = [(root, "", "")]
    while left:
        record, stem, below = left.pop()
        found.append((record, stem))
        own = sorted(children.get(record.uuid, ()), key=lambda c: (c.branch_turn or 0, c.created_at, c.uuid))
        steps = [("└ ", "  ") if child is own[-1] else ("├ ", "│ ") for child in own]
        left += [(child, below + sign, below + line) for child, (sign, line) in zip(own, steps, strict=True)][::-1]
    return found


def _moment(family: list[tuple[Conversation, str]], order: Order) -> datetime:
    """Return the time by which a family is ordered: its start, or its last change."""
    if order == "created":
        return family[0][0].created_at
    return max(record.updated_at for record, _ in family) if len(family) > 1 else family[0][0].updated_at


def _key(order: Order) -> Callable[[Conversation], Any]:
    match order:
        case "title":
            return lambda record: (session_title(record).casefold(), record.uuid)
        case "created":
            return lambda record: (-record.created_at.timestamp(), record.uuid)
        case "updated":
            return lambda record: (-record.updated_at.timestamp(), record.uuid)


FILTERS: tuple[tuple[str, str], ...] = (
    ("alt+w", "folder"),
    ("alt+s", "status"),
    ("alt+g", "tags"),
    ("alt+o", "order"),
)
ACTIONS: tuple[tuple[str, str, str], ...] = (
    ("alt+r", "rename", "rename"),
    ("alt+t", "tag", "tags"),
    ("alt+a", "archive", "archive"),
    ("alt+d", "delete", "delete"),
    ("alt+u", "undo", "undo"),
    ("alt+x", "export", "export"),
    ("alt+p", "private", "private"),
    ("tab", "preview", "preview"),
)
"""Key, action and word."""
KEY_OF = {name: key_name(key) for key, name, _ in ACTIONS}
"""Keys of actions as they are written on the screen."""
ORDER_NAMES = {"updated": "by change", "created": "by start", "title": "by title"}
EDITING = (KeyHint("apply", "enter", "apply"), KeyHint("leave", "esc", "cancel"))


def filter_keys(wanted: SessionFilter, *, everywhere: bool) -> list[KeyHint]:
    """Return the current filters and order; what differs from the default is highlighted."""
    values = {
        "folder": ("all folders" if everywhere else "this folder", everywhere),
        "status": ("any status" if wanted.status == "any" else wanted.status, wanted.status != "active"),
        "tags": (f"#{one_line(wanted.tag)}" if wanted.tag else "tags", bool(wanted.tag)),
        "order": (ORDER_NAMES[wanted.order], wanted.order != "updated"),
    }
    return [KeyHint(f"filter('{name}')", key, *values[name]) for key, name in FILTERS]


def action_keys(chosen: Conversation | None, *, undo: bool, preview: bool = False) -> list[KeyHint]:
    """Return the actions for the session at the cursor.

    Args:
        undo: Whether a delete can be undone.
        preview: Whether the preview is shown; then its key is left out.
    """
    opened = [] if chosen is None else [KeyHint("open", "enter", "open")]
    offered = [one for one in _offered(chosen, undo) if not (preview and one[1] == "preview")]
    return [*opened, *(KeyHint(f"do('{name}')", key, word) for key, name, word in offered), BACK]


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
