"""The topics of a folder: their places, merging two topics, and undoing that.

Loaded when first used. The lines come from `topic_list.py`.
"""

from __future__ import annotations

from typing import ClassVar, Protocol

import msgspec
from textual.binding import Binding, BindingType

from ragforge_tui.shared.events import Event, TopicsChanged
from ragforge_tui.shared.records import Topic
from ragforge_tui.shared.requests.memory import FetchTopicPlaces, ListTopics, MergeTopics, TopicPlace, UnmergeTopic
from ragforge_tui.shared.wire import R, Request
from ragforge_tui.tui.dialogs.detail import Section
from ragforge_tui.tui.memory.topic_list import NO_TOPICS, TopicList, TopicRows, topic_sections
from ragforge_tui.tui.widgets.key_bar import KeyHint
from ragforge_tui.tui.widgets.list_screen import TreeScreen

MOST_TOPICS = 1000


class Ask(Protocol):
    """Sends a request to the engine."""

    async def __call__(self, request: Request[R]) -> R: ...


class Step(msgspec.Struct, frozen=True):
    """A step that can be undone: a topic was merged into another, or split off."""

    merged: bool
    topic: str
    into: str
    names: str


class TopicsScreen(TreeScreen[TopicPlace | None]):
    """Returns the turns that the user wants to see, None if it was closed.

    Args:
        conversation_id: The open conversation, empty for none.
        query: Initial search words.
    """

    CSS = "TopicsScreen > Vertical { width: 100; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "dismiss(None)", "leave", show=False),
        Binding("M", "merge", "merge", show=False),
        Binding("x", "unmerge", "leave out, split off", show=False),
        Binding("u", "undo", "undo", show=False),
    ]

    def __init__(self, ask: Ask, *, conversation_id: str, workspace: str | None, query: str = "") -> None:
        self.rows = TopicRows(empty="loading …")
        super().__init__("Topics", self.rows, query=query)
        self._ask = ask
        self._conversation_id = conversation_id
        self._workspace = workspace
        self.topics = TopicList()
        self._done: list[Step] = []

    def on_mount(self) -> None:
        """Fetch the topics while the screen is already visible."""
        self.rows.focus()
        self._show_keys()
        self.run_guarded(self._load(), group="topics")

    def engine_event(self, event: Event) -> None:
        """Reload after a summary has changed the topics, here or in another terminal."""
        if isinstance(event, TopicsChanged) and self.topics.loaded:
            self.run_guarded(self._load(), group="news")  # It must not break off a merge that was just asked for.

    # -- drawing

    async def _load(self) -> None:
        query = self._words.value.strip()
        found = await self._ask(ListTopics(query=query, limit=MOST_TOPICS, workspace=self._workspace))
        self.topics.load(found)
        self._show()
        await self._find_places()

    def _show(self) -> None:
        empty = "no topic matches" if self._words.value.strip() else NO_TOPICS
        self.rows.show(self.topics.lines(self._conversation_id), empty=empty)

    async def _find_places(self) -> None:
        for uuid in self.topics.missing_places():
            self.topics.set_places(uuid, await self._places(uuid))
            self._show()

    async def _places(self, uuid: str) -> list[TopicPlace]:
        request = FetchTopicPlaces(ref=uuid, conversation_id=self._conversation_id, workspace=self._workspace)
        return await self._ask(request)

    def _show_keys(self) -> None:
        merge = "merge into" if self.rows.marked else "merge"
        hints = [KeyHint("leave", "esc", "back"), KeyHint("read", "r", "read"), KeyHint("go", "g", "go to")]
        hints += [KeyHint("merge", "M", merge, bool(self.rows.marked)), KeyHint("unmerge", "x", "split off")]
        hints += [KeyHint("undo", "u", "undo")] if self._done else []
        self._keys.show_keys([*hints, KeyHint("narrow", "/", "words")])

    # -- keys

    def leave(self) -> None:
        if self.rows.marked:
            self._mark("")
        else:
            super().leave()

    def filter_tree(self) -> None:
        """Ask for the topics that match the words."""
        if self.topics.loaded:
            self.run_guarded(self._load(), group="topics")

    def toggle(self, key: str, wanted: bool | None) -> bool:
        """Open or close a topic; its places are fetched when it opens."""
        changed = self.topics.toggle(key, wanted)
        if changed:
            self._show()
            self.run_guarded(self._find_places(), group="places")
        return changed

    def action_go(self) -> None:
        """Go to the turns of the chosen line."""
        if (place := self.topics.place(self.rows.chosen)) is not None:
            self.dismiss(place)

    def action_read(self) -> None:
        """Show all about the chosen topic."""
        topic = self.topics.topic(self.rows.chosen)
        if topic is None:
            return
        from ragforge_tui.tui.dialogs.text_viewer import DetailScreen

        async def load() -> tuple[str, list[Section]]:
            return topic.name, topic_sections(topic, await self._places(topic.uuid))

        self.app.push_screen(DetailScreen(topic.name, load, actions={}))

    # -- merging

    def _mark(self, key: str) -> None:
        self.rows.marked = key
        self.rows.refresh()
        self._show_keys()

    def action_merge(self) -> None:
        """Mark a topic; with one marked, merge it with the chosen one."""
        chosen = self.topics.topic(self.rows.chosen)
        marked = self.topics.topic(self.rows.marked) if self.rows.marked else None
        if chosen is None:
            return
        if marked is None or marked.uuid == chosen.uuid:
            self._mark("" if marked is not None else chosen.uuid)
            return
        self._mark("")

        async def work() -> None:
            root = await self._ask(MergeTopics(a=marked.uuid, b=chosen.uuid))
            gone, kept = (marked, chosen) if root.uuid == chosen.uuid else (chosen, marked)
            self._done.append(Step(True, gone.uuid, root.uuid, f"{gone.name} and {kept.name}"))
            await self._load()
            self.rows.choose(root.uuid)
            self.show_note(f"{gone.name} is merged into {kept.name} · u undoes it")

        self.run_guarded(work(), group="topics")

    def action_unmerge(self) -> None:
        """Split a name off the topic it was merged into."""
        key = self.rows.chosen
        topic = self.topics.topic(key)
        if topic is None:
            return
        merged = [near for near in topic.related if near.relation == "merged"]
        target = self.topics.merged(key) or (merged[0] if len(merged) == 1 else None)
        if target is None:
            self.toggle(topic.uuid, True)
            self.show_note("Choose the name to split off." if merged else f"Nothing was merged into {topic.name}.")
            return

        async def work() -> None:
            await self._ask(UnmergeTopic(ref=target.uuid))
            self._done.append(Step(False, target.uuid, topic.uuid, f"{target.name} and {topic.name}"))
            await self._load()
            self.rows.choose(target.uuid)
            self.show_note(f"{target.name} is a separate topic again · u undoes it")

        self.run_guarded(work(), group="topics")

    def action_undo(self) -> None:
        """Undo the last merge or split."""
        if not self._done:
            return
        step = self._done[-1]

        async def work() -> None:
            request: Request[Topic] = (
                UnmergeTopic(ref=step.topic) if step.merged else MergeTopics(a=step.topic, b=step.into)
            )
            await self._ask(request)
            self._done.pop()
            await self._load()
            self.show_note(f"Undone: {step.names} are {'separate' if step.merged else 'merged'} again")

        self.run_guarded(work(), group="topics")
