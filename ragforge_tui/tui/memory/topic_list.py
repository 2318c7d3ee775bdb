"""The topics as the sidebar and the topics screen list them: each with its places and the names merged into it.

Pure, but for `TopicRows`, which draws the lines. The places of a topic are fetched when it is opened.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Literal

import msgspec
from rich.cells import cell_len
from rich.style import Style

from ragforge_tui.shared.records import RelatedTopic, Topic
from ragforge_tui.shared.requests.memory import TopicPlace
from ragforge_tui.tui.dialogs.detail import Section
from ragforge_tui.tui.drawing.lines import Run, clip, one_line
from ragforge_tui.tui.drawing.palette import Palette
from ragforge_tui.tui.memory.memory_tree import range_text
from ragforge_tui.tui.widgets.virtual_list import TreeList, fold_arrow, sign_or_word, with_text

Kind = Literal["topic", "merged", "place", "note"]


_BOLD = Style(bold=True)


class TopicLine(msgspec.Struct, frozen=True):
    """A line of the list.

    Attributes:
        key: Identifies the line; empty for one that cannot be chosen.
        open: Whether its places are listed; None if there are none.
        detail: Muted text after the main text.
        own: Whether a place is in the open conversation.
    """

    kind: Kind
    key: str
    depth: int = 0
    open: bool | None = None
    text: str = ""
    detail: str = ""
    own: bool = False


class TopicList:
    """Topics, the open ones among them, and their places."""

    def __init__(self) -> None:
        self.topics: list[Topic] = []
        self.loaded = False
        self._open: set[str] = set()
        self._places: dict[str, list[TopicPlace]] = {}

    def load(self, topics: Iterable[Topic]) -> list[Topic]:
        """Take in topics and return those that names were merged into; the places of open ones are fetched again."""
        before = {topic.uuid: _merged_names(topic) for topic in self.topics}
        self.topics = list(topics)
        self.loaded = True
        self._places = {}
        return [topic for topic in self.topics if before and _merged_names(topic) - before.get(topic.uuid, set())]

    def set_places(self, uuid: str, places: Sequence[TopicPlace]) -> None:
        self._places[uuid] = list(places)

    def missing_places(self) -> list[str]:
        """Return the ids of open topics whose places were not fetched yet."""
        return [topic.uuid for topic in self.topics if topic.uuid in self._open and topic.uuid not in self._places]

    def topic(self, key: str) -> Topic | None:
        """Return the topic of a line, or of its parent."""
        uuid = key.partition("|")[0]
        return next((topic for topic in self.topics if topic.uuid == uuid), None)

    def merged(self, key: str) -> RelatedTopic | None:
        """Return the merged name that a line shows."""
        uuid, kind, rest = _parts(key)
        topic = self.topic(uuid)
        if topic is None or kind != "merged":
            return None
        return next((near for near in topic.related if near.uuid == rest), None)

    def place(self, key: str) -> TopicPlace | None:
        """Return the turns that a line shows."""
        uuid, kind, rest = _parts(key)
        places = self._places.get(uuid, [])
        return places[int(rest)] if kind == "place" and int(rest) < len(places) else None

    def toggle(self, key: str, wanted: bool | None = None) -> bool:
        """Open or close a topic; return whether anything changed."""
        if self.topic(key) is None or "|" in key or wanted is (key in self._open):
            return False
        self._open.symmetric_difference_update({key})
        return True

    def lines(self, own: str, headline: Callable[[int, int], str] | None = None) -> list[TopicLine]:
        """Return the visible lines, for a chat with the conversation `own` open.

        Args:
            headline: Returns the beginning of the summary of some turns of that conversation.
        """
        found: list[TopicLine] = []
        for topic in self.topics:
            opened = topic.uuid in self._open
            found.append(TopicLine("topic", topic.uuid, 0, opened, topic.name, _counted(topic)))
            if not opened:
                continue
            if topic.description:
                found.append(TopicLine("note", "", 1, text=one_line(topic.description)))
            for near in topic.related:
                if near.relation == "merged":
                    found.append(TopicLine("merged", f"{topic.uuid}|merged|{near.uuid}", 1, text=near.name))
            places = self._places.get(topic.uuid)
            if places is None:
                found.append(TopicLine("note", "", 1, text="loading …"))
            elif not places:
                found.append(TopicLine("note", "", 1, text="no turns that can be shown"))
            for number, place in enumerate(places or ()):
                here = place.conversation_id == own
                known = headline(place.first, place.last) if here and headline is not None else ""
                away = place.title or f"untitled {place.conversation_id[:8]}"
                title = known or ("this conversation" if here else away)
                text = f"t{range_text(place.first, place.last)}"
                found.append(TopicLine("place", f"{topic.uuid}|place|{number}", 1, text=text, detail=title, own=here))
        return found


def topic_sections(topic: Topic, places: Sequence[TopicPlace] = ()) -> list[Section]:
    """Return the sections of a topic: description, merged names, related topics, places."""
    merged = [near.name for near in topic.related if near.relation == "merged"]
    near = [
        f"{other.name} ({other.confidence:.2f}){f': {other.reason}' if other.reason else ''}"
        for other in topic.related
        if other.relation == "related"
    ]
    where = [f"{place.title or place.conversation_id[:8]}: t{range_text(place.first, place.last)}" for place in places]
    parts = [
        ("Description", topic.description),
        ("Also called", "\n".join(merged)),
        ("Related", "\n".join(near)),
        ("Found in", "\n".join(where)),
    ]
    known = [(title, text) for title, text in parts if text] or [("Name", topic.name)]
    return [Section(title=title, text=text, kind="prose") for title, text in known]


def _merged_names(topic: Topic) -> set[str]:
    return {near.uuid for near in topic.related if near.relation == "merged"}


def _counted(topic: Topic) -> str:
    if not topic.summaries:
        return ""
    summaries = f"{topic.summaries} summar{'ies' if topic.summaries != 1 else 'y'}"
    return f"{summaries} · {topic.conversations} conversations" if topic.conversations > 1 else summaries


def _parts(key: str) -> tuple[str, str, str]:
    uuid, _, rest = key.partition("|")
    kind, _, value = rest.partition("|")
    return uuid, kind, value


NO_TOPICS = "topics appear once two summaries name them"
"""One is enough if a model wrote it."""


class TopicRows(TreeList[TopicLine]):
    """The topics.

    Attributes:
        marked: The key of one that is about to be merged.
        lit: Keys of topics that others were just merged into.
    """

    marked = ""
    lit: frozenset[str] = frozenset()

    def key_of(self, line: TopicLine) -> str:
        return line.key

    def draw(self, line: TopicLine, width: int, palette: Palette) -> list[Run]:
        """Draw a topic, a name merged into it, or turns."""
        lead: Run = ("  " * line.depth, palette.text)
        match line.kind:
            case "note":
                return [lead, (line.text, palette.muted)]
            case "merged":
                return with_text([lead, ("+ ", palette.muted)], f"{line.text} (merged)", palette.muted, width)
            case "place":
                style = palette.you if line.own else palette.link
                runs = [lead, ("  ", palette.text), (line.text, style), (" ", palette.text)]
                return with_text(runs, line.detail, palette.muted, width)
            case "topic":
                mark = sign_or_word("⋈", "to merge:", palette) if line.key == self.marked else ""
                head = [lead, (fold_arrow(line.open, palette), palette.arrow), (mark, palette.running)]
                name = one_line(line.text)
                style = palette.accent + _BOLD if line.key in self.lit else palette.text
                used = sum(cell_len(text) for text, _ in head)
                room = width - used - cell_len(line.detail) - 2
                if not line.detail or room < min(cell_len(name), 12):
                    return with_text(head, name, style, width)
                name = clip(name, room)
                gap = " " * (width - used - cell_len(name) - cell_len(line.detail))
                return [*head, (name, style), (gap, palette.text), (line.detail, palette.muted)]
