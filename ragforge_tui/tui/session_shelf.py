"""The sessions a picker knows, and which of them it shows in which order: filters, search, branches under parents.

Pure; `session_picker.py` shows its rows. What a search compares and what a row says is made once a session and kept,
so that a letter typed over thousands of them costs milliseconds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, Literal, get_args

import msgspec

from ragforge_tui.models import Conversation
from ragforge_tui.tui import fuzzy
from ragforge_tui.tui.choices import Choice
from ragforge_tui.tui.picking import date_group, session_row, session_title

Status = Literal["active", "archived", "deleted", "any"]
Order = Literal["updated", "created", "title"]
STATUSES: tuple[Status, ...] = get_args(Status)
ORDERS: tuple[Order, ...] = get_args(Order)
ID_LETTERS = 4
"""So many letters at least are taken for the beginning of an id."""
_IN_SUMMARY = 2.0
_IN_ID = 60.0


class Narrowed(msgspec.Struct, frozen=True):
    """What of the shelf is wanted.

    Attributes:
        query: Words for title, tags, id and summary; ``#word`` is looked for in tags only.
        tag: Only those with this tag; empty: all.
    """

    query: str = ""
    status: Status = "active"
    tag: str = ""
    order: Order = "updated"


class Looks(msgspec.Struct, frozen=True):
    """What rows depend on beside their sessions."""

    now: datetime
    current: str = ""
    glyphs: Mapping[str, str] = {}
    narrow: bool = False


class _Searched(msgspec.Struct, frozen=True):
    title: str
    tags: tuple[str, ...]
    uuid: str
    summary: str


class SessionShelf:
    """See the module."""

    def __init__(self) -> None:
        self._records: dict[str, Conversation] = {}
        self._searched: dict[str, _Searched] = {}
        self._rows: dict[str, Choice] = {}
        self._looks: Looks | None = None

    def __len__(self) -> int:
        return len(self._records)

    def get(self, uuid: str) -> Conversation | None:
        """The session of that id, when it is known."""
        return self._records.get(uuid)

    @property
    def newest(self) -> datetime | None:
        """When the last change was that is known."""
        return max((record.updated_at for record in self._records.values()), default=None)

    def replace(self, records: Iterable[Conversation]) -> bool:
        """These are all there are; whether that is news."""
        fresh = {record.uuid: record for record in records}
        if fresh == self._records:
            return False
        for uuid in [uuid for uuid, record in self._records.items() if fresh.get(uuid) != record]:
            self._forget(uuid)
        self._records = fresh
        return True

    def put(self, records: Iterable[Conversation]) -> bool:
        """Add these or put them in the place of what was known of them; whether anything is news."""
        news = [record for record in records if self._records.get(record.uuid) != record]
        for record in news:
            self._forget(record.uuid)
            self._records[record.uuid] = record
        return bool(news)

    def _forget(self, uuid: str) -> None:
        self._searched.pop(uuid, None)
        self._rows.pop(uuid, None)

    def tags(self, status: Status) -> list[str]:
        """Tags of the sessions of that status, the most used first."""
        counted = Counter(tag for record in self._of(status) for tag in record.tags)
        return sorted(counted, key=lambda tag: (-counted[tag], tag))

    def branches(self, uuid: str) -> int:
        """How many sessions branch off this one."""
        return sum(record.branch_of == uuid for record in self._records.values())

    def rows(self, narrowed: Narrowed, looks: Looks) -> list[Choice]:
        """The rows wanted: with words best match first, else in order, branches under the session they leave."""
        if self._looks is None or _kept(self._looks) != _kept(looks):
            self._rows.clear()
        self._looks = looks
        wanted = [r for r in self._of(narrowed.status) if not narrowed.tag or narrowed.tag in r.tags]
        if words := narrowed.query.casefold().split():
            return [self._row(record, looks) for record in self._matching(words, wanted, narrowed.order)]
        return self._tree(wanted, narrowed.order, looks)

    def _of(self, status: Status) -> Iterable[Conversation]:
        return (record for record in self._records.values() if status in ("any", record.status))

    def _row(self, record: Conversation, looks: Looks) -> Choice:
        if (made := self._rows.get(record.uuid)) is None:
            made = session_row(record, looks.now, current=looks.current, glyphs=looks.glyphs, narrow=looks.narrow)
            self._rows[record.uuid] = made
        return made

    # -- search

    def _matching(self, words: list[str], records: Iterable[Conversation], order: Order) -> list[Conversation]:
        scored = [
            (score, record) for record in _ordered(records, order) if (score := self._score(words, record)) is not None
        ]
        scored.sort(key=lambda pair: -pair[0])
        return [record for _, record in scored]

    def _score(self, words: list[str], record: Conversation) -> float | None:
        text = self._searched.get(record.uuid)
        if text is None:
            text = _Searched(
                session_title(record).casefold(),
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

    # -- the tree of branches

    def _tree(self, wanted: list[Conversation], order: Order, looks: Looks) -> list[Choice]:
        listed = {record.uuid for record in wanted}
        children: dict[str, list[Conversation]] = {}
        roots: list[Conversation] = []
        for record in wanted:
            if record.branch_of and record.branch_of in listed:
                children.setdefault(record.branch_of, []).append(record)
            else:
                roots.append(record)
        zone, today = looks.now.tzinfo, looks.now.date()
        moments = {record.uuid: _moment(record, order, children) for record in roots}
        rows: list[Choice] = []
        for root in sorted(roots, key=_key(order, moments)):
            heading = ""
            if order != "title":
                heading = date_group(moments[root.uuid].astimezone(zone).date(), today)
            for record, stem in _family(root, children):
                row = self._row(record, looks)
                lead = f"{stem}{row.lead}"
                rows.append(msgspec.structs.replace(row, lead=lead, heading=heading))
        return rows


def _kept(looks: Looks) -> tuple[Any, ...]:
    """What rows say changes with these only; the hour does not matter to them."""
    return looks.now.date(), looks.current, dict(looks.glyphs), looks.narrow


def _score_word(word: str, text: _Searched) -> float | None:
    if word.startswith("#"):
        tag = word[1:]
        return _IN_ID if any(known.startswith(tag) for known in text.tags) else None
    if len(word) >= ID_LETTERS and text.uuid.startswith(word):
        return _IN_ID
    # Letters with gaps between them are found in any long text; a summary must have the word itself.
    fields = (text.title, *text.tags)
    scores = [score for field in fields if (score := fuzzy.score(word, field)) is not None]
    if word in text.summary:
        scores.append(_IN_SUMMARY * len(word))
    return max(scores, default=None)


def _family(root: Conversation, children: Mapping[str, list[Conversation]]) -> list[tuple[Conversation, str]]:
    """A session and all that branch off it, each after its parent, with the lines that lead to it."""
    found: list[tuple[Conversation, str]] = []
    left = [(root, "", "")]
    while left:
        record, stem, below = left.pop()
        found.append((record, stem))
        own = sorted(children.get(record.uuid, ()), key=lambda c: (c.branch_turn or 0, c.created_at, c.uuid))
        steps = [("└ ", "  ") if child is own[-1] else ("├ ", "│ ") for child in own]
        left += [(child, below + sign, below + line) for child, (sign, line) in zip(own, steps, strict=True)][::-1]
    return found


def _moment(root: Conversation, order: Order, children: Mapping[str, list[Conversation]]) -> datetime:
    """The moment a family is ordered by: when it began, or when any of it changed last."""
    if order == "created" or root.uuid not in children:
        return root.created_at if order == "created" else root.updated_at
    return max(record.updated_at for record, _ in _family(root, children))


def _key(order: Order, moments: Mapping[str, datetime]) -> Callable[[Conversation], Any]:
    if order == "title":
        return lambda record: (session_title(record).casefold(), record.uuid)
    return lambda record: (-moments[record.uuid].timestamp(), record.uuid)


def _ordered(records: Iterable[Conversation], order: Order) -> list[Conversation]:
    found = list(records)
    return sorted(found, key=_key(order, {r.uuid: r.created_at if order == "created" else r.updated_at for r in found}))
