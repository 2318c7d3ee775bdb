"""The memory pane: the live tree of summaries over the turns, or the topics with the turns that mention them.

The lines come from `memory_tree.py` and `topic_list.py`. The beginnings of turns and the places of topics are
fetched when they come into view.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from itertools import pairwise
from typing import ClassVar, Literal

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.timer import Timer
from textual.widget import Widget

from ragforge_tui.shared.errors import RagforgeError
from ragforge_tui.shared.events import (
    ConversationChanged,
    Event,
    FindingsChanged,
    MessageStarted,
    SummaryCreated,
    TopicsChanged,
)
from ragforge_tui.shared.records import RECALLED, Topic
from ragforge_tui.shared.requests.memory import (
    FetchFindings,
    FetchSent,
    FetchSummary,
    FetchTopicPlaces,
    FetchTree,
    FetchTurnLines,
    TopicPlace,
)
from ragforge_tui.shared.sanitize import plain_text
from ragforge_tui.tui.dialogs.detail import Section
from ragforge_tui.tui.drawing.lines import clip, one_line, wrap_spans
from ragforge_tui.tui.host import Host
from ragforge_tui.tui.limits import SCREEN
from ragforge_tui.tui.memory.finding_list import FindingList, FindingRows, finding_turns
from ragforge_tui.tui.memory.memory_tree import (
    ABOUT,
    ABOUT_LINES,
    SummaryTree,
    TreeLine,
    TreeRows,
    cited_turns,
    memory_sections,
    state_text,
    summary_sections,
    summary_title,
    turn_of,
    turns_text,
    unmarked,
)
from ragforge_tui.tui.memory.topic_list import NO_TOPICS, TopicList, TopicRows, topic_sections
from ragforge_tui.tui.sidebar.pane import Pane
from ragforge_tui.tui.widgets.key_bar import KeyBar, KeyHint
from ragforge_tui.tui.widgets.new_size import on_new_size
from ragforge_tui.tui.widgets.virtual_list import MARGIN, TreeList, VirtualList

log = logging.getLogger(__name__)

FETCH_SECONDS = 0.02
AROUND = 30
"""Turns that are fetched before and after those in view."""
MOST_TURNS = 300
USED = "tree line"
"""The feature: something in the pane was read or opened."""
BEFORE_SUMMARIES = "every few turns become one line here"
EXPLANATION = "summaries of this talk · Enter opens one"
View = Literal["tree", "findings", "topics"]
_READ, _GO = KeyHint("read", "r", "read"), KeyHint("show_turns", "g", "turn")
_STATE, _SENT = KeyHint("state", "i", "about"), KeyHint("sent", "v", "sent")


class Foot(Widget):
    """Shows what the summarizer does, if anything, and explains the pane until it was used; a click shows more."""

    ALLOW_SELECT = False
    DEFAULT_CSS = "Foot { height: 1; padding: 0 1; }"

    def __init__(self, pane: MemoryPane) -> None:
        super().__init__()
        self._pane = pane

    def update(self) -> None:
        """Show the line, or nothing."""
        self.display = bool(self._text)
        self.refresh()

    @property
    def _text(self) -> str:
        pane = self._pane
        state = pane.session.state
        if pane.merged:
            return f"topics merged into {pane.merged}"
        text = state_text(state.due, state.memory.left if state.memory else "")
        if text or pane.memory.empty or USED in pane.host.features.used:
            return one_line(text)
        return EXPLANATION if pane.memory.levels else BEFORE_SUMMARIES

    def render(self) -> Content:
        """Return one line."""
        due = self._pane.session.state.due
        style = "$accent bold" if self._pane.merged else "$warning" if due is not None and due.behind else "dim"
        return Content.styled(clip(self._text, self.content_size.width), style)

    async def on_click(self) -> None:
        self._pane.action_state()


class MissingTurns:
    """Collects the turns that came into view without their first words, and fetches them together."""

    def __init__(self, pane: MemoryPane) -> None:
        self._pane = pane
        self._missing: set[int] = set()
        self._requested: set[int] = set()

    def forget(self) -> None:
        """Start again for another conversation."""
        self._missing.clear()
        self._requested.clear()

    def request_again(self) -> None:
        """Request also turns that were requested before."""
        self._requested.clear()

    def came_into_view(self, turn: int) -> None:
        """Fetch the beginning of a turn, unless it was requested already."""
        if turn in self._requested:
            return
        self._missing.add(turn)
        if len(self._missing) == 1:
            self._pane.set_timer(FETCH_SECONDS, self._fetch)

    def _fetch(self) -> None:
        wanted = sorted(self._missing - self._requested)
        self._missing.clear()
        if not wanted:
            return
        first = max(1, wanted[0] - AROUND)
        last = next((a for a, b in pairwise(wanted) if b - a > AROUND), wanted[-1])
        last = min(last + AROUND, first + MOST_TURNS, max(self._pane.memory.last_turn, wanted[0]))
        self._requested.update(range(first, last + 1))
        self._pane.session.spawn(self._pane.fetch_lines(first, last), group="memory turns")


class MemoryPane(Pane):
    """Lists summaries, findings or topics, with keys to read them and to go to their turns."""

    name_: ClassVar[str] = "memory"
    label: ClassVar[str] = "Memory"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("r", "read", "read", show=False),
        Binding("g", "show_turns", "go to its turn", show=False),
        Binding("v", "sent", "view: whole, its code, as it was sent", show=False),
        Binding("1", "switch('findings')", "list, filter or finding of that number", show=False),
        Binding("2", "switch('topics')", "list, filter or finding of that number", show=False),
        Binding("i", "state", "what it holds", show=False),
        Binding("M", "manage", "merge", show=False),
    ]

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self.memory = SummaryTree()
        self.topics = TopicList()
        self.findings = FindingList()
        self._turns = MissingTurns(self)
        self.tree_rows = TreeRows(self._turns.came_into_view, host.now)
        self.topic_rows = TopicRows(empty=NO_TOPICS)
        self.finding_rows = FindingRows(empty="loading …")
        self.view: View = "tree"
        self._lit_timer: Timer | None = None
        self.merged = ""
        self._foot = Foot(self)
        self._bar = KeyBar(self)
        self._error = ""
        self._fresh = True
        self._recalled_for = 0

    def compose(self) -> ComposeResult:
        """Lay out the lists, the state of the summarizer and the keys."""
        self.topic_rows.display = self.finding_rows.display = False
        yield self.tree_rows
        yield self.finding_rows
        yield self.topic_rows
        yield self._foot
        yield self._bar

    @property
    def rows(self) -> TreeRows | TopicRows | FindingRows:
        match self.view:
            case "tree":
                return self.tree_rows
            case "findings":
                return self.finding_rows
            case "topics":
                return self.topic_rows

    # -- calls of the sidebar

    def opened(self) -> None:
        """Fetch the outline."""
        self._turns.request_again()
        self.show()
        if not self.memory.loaded:
            self._fetch()

    def conversation_changed(self) -> None:
        """Drop the lists."""
        self.memory, self.topics, self.findings = SummaryTree(), TopicList(), FindingList()
        self._unlight()
        self._fresh = True
        self._turns.forget()
        self.show()

    def event(self, event: Event) -> None:
        """Take in an event about the memory."""
        changed = self.memory.apply(event)
        match event:
            case SummaryCreated(summary=made):
                self.findings.loaded = False
                self._light(self.tree_rows, [made.uuid])
                if self.display and self.view == "findings":
                    self._fetch_findings()
            case MessageStarted():
                # The request was sent: what was recalled for it is known.
                self._look_up_recalled(event.turn_index)
            case FindingsChanged():
                self.findings.loaded = False
                if self.display and self.view == "findings":
                    self._fetch_findings()
            case TopicsChanged():
                self.topics.loaded = False
                if self.display and self.memory.loaded:
                    self._fetch()
            case ConversationChanged():
                changed = True
        if changed:
            self.show_soon()

    def due_changed(self) -> None:
        """Update the state of the summarizer; without its engine it writes nothing."""
        if not self.session.state.summarising and self.memory.stop_working():
            self.show()
        self._foot.update()

    def on_mount(self) -> None:
        self.call_later(self.show)  # What was fetched before, for the line that counts it.
        on_new_size(self, self.show)

    # -- lists

    def show(self, *, stay: bool = False) -> None:
        self.note = self.memory.count()
        if not self.is_mounted:
            return
        state = self.session.state
        waits = "loading …" if state.conversation_id or state.opening else "no messages yet"
        lines = self.memory.lines() if self.memory.loaded or self.memory.working else []
        self.tree_rows.show([*self._about(), *lines], empty=self._error or waits, stay=stay)
        if self._fresh and self.memory.loaded and lines:
            # The newest summary, rather than the turns after it or the text above all.
            self._fresh = False
            self.tree_rows.choose(next((line.key for line in lines[::-1] if line.kind == "summary"), lines[-1].key))
        self.topic_rows.show(self.topics.lines(state.conversation_id, self._headline))
        none = "no findings yet" if self.findings.loaded else waits
        self.finding_rows.show(self.findings.lines(self.size.width - MARGIN - 1), empty=none)
        self._foot.update()
        self._bar.display = not self.memory.empty
        self.own_column = bool(self.memory.levels)
        self.tally = str(sum(self.memory.levels.values()) or turns_text(self.memory.last_turn)) if lines else ""
        self.needed = 0 if self.memory.empty else max(self.rows.count, 1) + 1 + self._foot.display
        self._bar.show_keys(self._hints())

    def _hints(self) -> list[KeyHint]:
        findings = KeyHint("switch('findings')", "1", "findings")
        topics = KeyHint("switch('topics')", "2", "topics")
        match self.view:
            case "tree":
                return [_READ, _GO, findings, topics, _STATE, _SENT]
            case "findings":
                return [_READ, _GO, KeyHint("switch('findings')", "1", "summaries"), topics]
            case "topics":
                tree = KeyHint("switch('topics')", "2", "summaries")
                return [_READ, _GO, findings, tree, KeyHint("manage", "M", "merge")]

    def _light(self, rows: TreeRows | TopicRows, keys: Iterable[str]) -> None:
        """Highlight lines for a moment."""
        fresh = frozenset(keys)
        if self.display and fresh:
            rows.lit |= fresh
            rows.refresh()
            if self._lit_timer is not None:
                self._lit_timer.stop()
            self._lit_timer = self.set_timer(SCREEN.lit, self._unlight)

    def _light_merged(self, merged: list[Topic]) -> None:
        """Highlight topics that others were merged into, and name them where the topics are not in view."""
        if merged and self.display:
            self.merged = ", ".join(one_line(topic.name) for topic in merged)
            self._light(self.topic_rows, (topic.uuid for topic in merged))

    def _unlight(self) -> None:
        if self._lit_timer is not None:
            self._lit_timer.stop()
            self._lit_timer = None
        self.merged = ""
        self.tree_rows.lit = self.topic_rows.lit = frozenset()
        self.tree_rows.refresh()
        self.topic_rows.refresh()
        self._foot.update()

    def _look_up_recalled(self, turn: int) -> None:
        """Highlight the summaries that were recalled for a turn, or whose turns were."""
        if self.display and self.memory.levels and turn != self._recalled_for:
            self._recalled_for = turn
            self.session.spawn(self._fetch_recalled(turn), group="memory recalled", exclusive=True)

    async def _fetch_recalled(self, turn: int) -> None:
        session, tree = self.session, self.memory
        uuid = session.state.conversation_id
        try:
            sent = await session.ask(FetchSent(conversation_id=uuid, turn_index=turn))
        except RagforgeError:
            return  # Nothing was stored for this turn, or not yet.
        if tree is not self.memory:
            return
        found: set[str] = set()
        for section in sent.record.sections:
            for item in section.items if section.name in RECALLED else ():
                if item.conversation_id in ("", uuid):
                    first, last = tree.range_of(item.source)
                    found.update(tree.over(first or item.turn_index, last or item.turn_index))
        self._light(self.tree_rows, found)

    def _headline(self, first: int, last: int) -> str:
        node = self.memory.at(first, last)
        return node.title or node.headline if node is not None else ""

    def _about(self) -> list[TreeLine]:
        """Return the summary of the conversation, truncated to the available lines."""
        conversation = self.session.state.conversation
        text = one_line(unmarked(conversation.summary)) if conversation is not None else ""
        width = self.tree_rows.scrollable_content_region.width - MARGIN
        if not text or width < 1:
            return []
        parts = [text[start:end] for start, end, _ in wrap_spans(text, width)]
        if len(parts) > ABOUT_LINES:
            parts = [*parts[: ABOUT_LINES - 1], clip(" ".join(parts[ABOUT_LINES - 1 :]), width)]
        return [TreeLine("about", ABOUT, text=part, part=number) for number, part in enumerate(parts)]

    def _fetch(self) -> None:
        self._error = ""
        if self.session.state.conversation_id:
            self.session.spawn(self._fetch_tree(), group="memory", exclusive=True)

    async def _fetch_tree(self) -> None:
        session, tree = self.session, self.memory
        try:
            found = await session.ask(FetchTree(conversation_id=session.state.conversation_id))
        except RagforgeError as error:
            # No notice, since the user did not ask. Shown in place of the tree; opening the pane again retries.
            log.info("memory not fetched: %s", error)
            self._error = plain_text(error.info.what)
            self.show()
            return
        if tree is not self.memory:
            return
        tree.load(found)
        self._light_merged(self.topics.load(found.topics))
        session.state.due = found.due
        conversation = session.state.conversation
        if conversation is not None and not conversation.summary:
            conversation.summary = found.summary
        self.show()
        self._fetch_places()
        if self.view == "findings":
            self._fetch_findings()

    def _fetch_findings(self) -> None:
        if not self.findings.loaded and self.session.state.conversation_id:
            self.session.spawn(self._read_findings(), group="memory findings", exclusive=True)

    async def _read_findings(self) -> None:
        findings = self.findings
        try:
            found = await self.session.ask(FetchFindings(conversation_id=self.session.state.conversation_id))
        except RagforgeError as error:
            log.info("findings not fetched: %s", error)
            return
        if findings is self.findings:
            findings.load(found)
            self.show()

    async def fetch_lines(self, first: int, last: int) -> None:
        """Fetch the first words of turns."""
        session, tree = self.session, self.memory
        request = FetchTurnLines(conversation_id=session.state.conversation_id, first=first, last=last)
        try:
            lines = await session.ask(request)
        except RagforgeError as error:
            log.info("turns not fetched: %s", error)
            return
        tree.add_turns(lines)
        if tree is self.memory:
            self.show()

    def _fetch_places(self) -> None:
        if unknown := self.topics.missing_places():
            self.session.spawn(self._fetch_topics(unknown), group="memory topics", exclusive=True)

    async def _fetch_topics(self, uuids: list[str]) -> None:
        topics = self.topics
        for uuid in uuids:
            topics.set_places(uuid, await self._places(uuid))
            if topics is self.topics:
                self.show()

    async def _places(self, uuid: str) -> list[TopicPlace]:
        session = self.session
        request = FetchTopicPlaces(
            ref=uuid,
            conversation_id=session.state.conversation_id,
            workspace=self.host.options.workspace or None,
        )
        try:
            return await session.ask(request)
        except RagforgeError as error:
            log.info("places of a topic not fetched: %s", error)
            return []

    # -- keys

    def on_virtual_list_opened(self, event: VirtualList.Opened) -> None:
        """Open or close a line, or go to its turns."""
        event.stop()
        self._used()
        if event.key == ABOUT or (event.rows is self.tree_rows and self.memory.failure(event.key)):
            self.action_read()
        elif (gone := self.findings.get(event.key) if self.view == "findings" else None) and gone.leads_turn:
            # What no longer holds leads to the turn that closed or replaced it.
            self.host.navigator.go_to_turns(gone.leads_turn, conversation_id=gone.leads_to)
        elif not self._toggle(event.key, None):
            self.action_show_turns()

    def on_tree_list_folded(self, event: TreeList.Folded) -> None:
        """Open or close a line, or go to its parent."""
        event.stop()
        if not self._toggle(event.key, event.wanted) and event.wanted is False:
            above = event.key.partition("|")[0] if self.view == "topics" else self.memory.parent_of(event.key)
            if above:
                self.rows.choose(above)

    def _toggle(self, key: str, wanted: bool | None) -> bool:
        if self.view == "findings":
            return False
        topics = self.view == "topics"
        changed = self.topics.toggle(key, wanted) if topics else self.memory.toggle(key, wanted)
        if changed:
            self.show(stay=True)
            self._fetch_places()
        return changed

    def _used(self) -> None:
        self.host.features.add(USED)
        self._foot.update()

    def action_switch(self, view: View) -> None:
        """Show the findings or the topics, and with the same key the summaries again."""
        focused = self.has_focus_within
        self.view = "tree" if view == self.view else view
        self.mode = "" if self.view == "tree" else self.view
        for rows in (self.tree_rows, self.finding_rows, self.topic_rows):
            rows.display = rows is self.rows
        self.show()
        if focused:
            self.rows.focus()
        match self.view:
            case "topics" if not self.topics.loaded:
                self._fetch()
            case "findings":
                self._used()
                self._fetch_findings()

    def action_state(self) -> None:
        """Show what the memory of this conversation consists of, and what the next summary waits for."""
        from ragforge_tui.tui.dialogs.text_viewer import DetailScreen

        state = self.session.state
        about = state.conversation.summary if state.conversation is not None else ""
        title = "Memory of this conversation"

        async def load() -> tuple[str, list[Section]]:
            return title, memory_sections(self.memory, about, state.due)

        self._used()
        self.app.push_screen(DetailScreen(title, load, actions={}))

    def action_manage(self) -> None:
        """Open the topics screen, where topics are merged."""
        self.host.run_command("topics")

    def action_show_turns(self) -> None:
        """Bring the turns of the chosen line into view, in another conversation if they are there."""
        key = self.rows.chosen
        if self.view == "findings":
            finding = self.findings.get(key)
            turns = finding.turns if finding is not None else []
            first, last = min(turns, default=0), max(turns, default=0)
        elif self.view == "tree":
            first, last = self.memory.range_of(key)
        elif (place := self.topics.place(key)) is not None:
            self.host.navigator.go_to_turns(place.first, place.last, conversation_id=place.conversation_id)
            return
        else:
            return
        if first:
            self.host.navigator.go_to_turns(first, last)

    def action_sent(self) -> None:
        """Show the request of the chosen turn, or of the last turn of a summary."""
        _, last = self.memory.range_of(self.tree_rows.chosen)
        if last and self.view == "tree":
            self.host.run_command("context", str(last))

    def action_read(self) -> None:
        """Read the summary, finding, topic or turn of the chosen line."""
        key = self.rows.chosen
        self._used()
        if self.view == "findings":
            self._read_finding(key)
        elif self.view == "topics":
            if (topic := self.topics.topic(key)) is not None:
                self._read_topic(topic)
        elif self.memory.node(key) is not None:
            self._read_summary(key)
        elif turn_of(key):
            self.action_show_turns()
        else:
            self._read_text(key)

    def _read_summary(self, uuid: str) -> None:
        from ragforge_tui.tui.dialogs.text_viewer import DetailScreen

        node = self.memory.node(uuid)
        assert node is not None
        turns = {"turns": (node.start_turn_index, node.end_turn_index)}

        async def load() -> tuple[str, list[Section]]:
            summary = await self.session.ask(FetchSummary(uuid=uuid))
            for key, turn in cited_turns(summary).items():
                turns[f"finding-{key}"] = turn, turn
                screen.offer(key, f"finding-{key}", f"t{turn}")
            return summary_title(summary), summary_sections(summary)

        def closed(action: str | None) -> None:
            if action in turns:
                self.host.navigator.go_to_turns(*turns[action])

        screen = DetailScreen(node.title or "Summary", load, actions={"g": ("turns", "its turns")})
        self.app.push_screen(screen, closed)

    def _read_finding(self, key: str) -> None:
        from ragforge_tui.tui.dialogs.text_viewer import DetailScreen

        finding = self.findings.get(key)
        if finding is None:
            return
        title = (finding.kind or "finding").capitalize()
        became = [Section(title="No longer so", text=finding.became, kind="prose")] if finding.became else []

        async def load() -> tuple[str, list[Section]]:
            text = Section(title=finding_turns(finding), text=unmarked(finding.text), kind="prose")
            return title, [text, *became]

        def closed(action: str | None) -> None:
            if action == "turns" and finding.turns:
                self.host.navigator.go_to_turns(min(finding.turns), max(finding.turns))

        actions = {"g": ("turns", "its turns")} if finding.turns else {}
        self.app.push_screen(DetailScreen(title, load, actions=actions), closed)

    def _read_topic(self, topic: Topic) -> None:
        from ragforge_tui.tui.dialogs.text_viewer import DetailScreen

        async def load() -> tuple[str, list[Section]]:
            return topic.name, topic_sections(topic, await self._places(topic.uuid))

        self.app.push_screen(DetailScreen(topic.name, load, actions={}))

    def _read_text(self, key: str) -> None:
        """Show the summary of the conversation, or why one could not be made."""
        from ragforge_tui.tui.dialogs.text_viewer import DetailScreen

        conversation = self.session.state.conversation
        about = conversation.summary if conversation is not None and key == ABOUT else ""
        title = "This conversation" if about else "This summary failed; it is retried later"
        text = unmarked(about) or self.memory.failure(key)
        if text:

            async def load() -> tuple[str, list[Section]]:
                return title, [Section(title="Summary" if about else "Why", text=text, kind="prose")]

            self.app.push_screen(DetailScreen(title, load, actions={}))
