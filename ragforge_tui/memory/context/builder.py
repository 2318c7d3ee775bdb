"""Construction of a request's context, section by section, within one budget.

While the conversation fits, if necessary with the largest and oldest results cut, all its turns are sent, and the
memory block holds only what matters from other conversations. Once it no longer fits, the newest turns are sent and the
block represents the older ones: recalled findings, summaries and turns, the first message, the frontier of the
summaries, earlier queries, recent files, topics. No text is sent twice. Used by conversation/.

The shares of the sections are the project's own choice: the goal 5 %, the frontier of the summaries 10 %, recent files
5 %, topics 2 %, earlier queries 5 %; the rest goes to the newest and the recalled turns.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable
from typing import Literal

import msgspec

from ragforge_tui.llm.tokens import CHARS_PER_TOKEN
from ragforge_tui.memory.context.history_window import REPRESENTED_TOKENS, HistoryWindow, Limits, Past, tokens_of
from ragforge_tui.memory.context.sections import (
    BLOCK_VERSION,
    PAST_SECTION,
    TITLES,
    block_text,
    cache_marks,
    files_section,
    findings_section,
    frontier_section,
    goal_section,
    heading_tokens,
    queries_section,
    recalled_section,
    recalled_summaries_section,
    request_messages,
    request_parts,
    topics_section,
    without_told,
)
from ragforge_tui.memory.context.truncation import tokens_in
from ragforge_tui.memory.history import ChatMessage, without_graph
from ragforge_tui.memory.recall import Recall, Recalled
from ragforge_tui.settings.schema import MemorySettings
from ragforge_tui.shared.records import ContextItem, ContextRecord, ContextSection, Message, Summary, Turn, now

ANSWER_TOKENS = 4_096
"""Reserved in the model's window for its answer; a quarter of the window if that is less."""
SMALLEST_PAST_TOKENS = 256

SHARES = {"goal": 0.05, "frontier": 0.10, "files": 0.05, "topics": 0.02, "queries": 0.05}
REPRESENTED_TURNS = 2
"""Newest turns that are always sent, whatever the strategy."""
FRAME_TOKENS = 120
"""The block's opening and closing lines and the separators of its sections, with some margin."""
QUERIES = 20
ORDER = ("findings", "summaries", "recalled", "goal", "frontier", "queries", "files", "topics")
"""Order of the block's sections: what matches the message first, then how the conversation went."""
FINDINGS_TOKENS = 500


class SystemPart(msgspec.Struct, frozen=True, kw_only=True):
    """Part of the system message: the program's instructions, an AGENTS.md, the persona."""

    kind: Literal["system", "instructions", "persona"]
    name: str
    text: str

    @property
    def digest(self) -> str:
        """SHA-256 of the text, as hexadecimal digits."""
        return hashlib.sha256(self.text.encode()).hexdigest()


class ContextInputs(msgspec.Struct, kw_only=True):
    """Material a context is built from.

    Attributes:
        turns: The conversation's turns before the new one, ascending and without gaps up to the newest; starting at
            turn 1 if all of them may be sent.
        first_message: The user's first message, None if there is none.
        files: Renders the recently accessed files within a number of tokens; empty if there are none.
        overhead: Tokens of the tools' schemas.
    """

    conversation_id: str
    turn_index: int
    text: str
    model: str
    window: int
    overhead: int = 0
    system: list[SystemPart]
    turns: list[Turn]
    first_message: Message | None = None
    summaries: list[Summary] = []
    files: Callable[[int], str] = lambda tokens: ""


class BuiltContext(msgspec.Struct, frozen=True):
    """Context of a request: everything before the turn's own messages.

    Attributes:
        record: Sections, items, sources, tokens.
        past: The past turns as real messages.
    """

    record: ContextRecord
    past: list[ChatMessage]

    @property
    def sections(self) -> list[ContextSection]:
        """The sections in the order they are sent."""
        return self.record.sections

    @property
    def tokens(self) -> int:
        """Tokens of the past, without the stable part."""
        return self.record.tokens

    @property
    def held(self) -> frozenset[int]:
        """Turns of the conversation whose texts are sent uncut."""
        return frozenset(
            item.turn_index
            for section in self.sections
            for item in section.items
            if (item.kind == "message" and not item.form.startswith(("text:", "trimmed:")))
            or (item.kind == "turn" and not item.conversation_id and not item.cut)
        )

    def render(self) -> list[ChatMessage]:
        """Return the messages to send, one of role system first."""
        return request_messages(self.record, self.past)

    @property
    def cache_marks(self) -> list[int]:
        """Offsets in the system message that end a prefix shared with later requests."""
        return cache_marks(self.record.sections[0].items)


class _Draft(msgspec.Struct, kw_only=True):
    """Context under construction. `reserved` tokens are for the sections that are filled last."""

    budget: Budget
    past: Past
    sent: set[int]
    reserved: int = 0
    recall_tokens: int = 0
    frontier: ContextSection | None = None
    files: ContextSection | None = None
    topics: ContextSection | None = None

    @property
    def used(self) -> int:
        """Tokens that are taken or reserved."""
        taken = sum(section.tokens for section in (self.frontier, self.files, self.topics) if section)
        return FRAME_TOKENS + self.past.tokens + self.reserved + taken


class ContextBuilder:
    """Builder of the contexts of one conversation, turn after turn."""

    def __init__(self, settings: MemorySettings) -> None:
        self._settings = settings
        self._past = HistoryWindow()

    async def build(self, inputs: ContextInputs, recall: Recall | None = None) -> BuiltContext:
        """Return the context of a new message. Counting and cutting run in a thread.

        Args:
            recall: None if there is nothing to recall from.
        """
        draft = await asyncio.to_thread(self._draft, inputs)
        recalled = None
        if recall is not None and draft.recall_tokens > 0:
            recalled = await recall.for_context(
                inputs.text,
                exclude=draft.sent,
                max_tokens=draft.recall_tokens,
                own=not draft.past.complete,
                exclude_summaries={item.source for item in draft.frontier.items} if draft.frontier else (),
            )
        return await asyncio.to_thread(self._assemble, inputs, draft, recalled)

    def _draft(self, inputs: ContextInputs) -> _Draft:
        """Build everything except the recalled sections, which depend on what is sent anyway."""
        stable = inputs.overhead + tokens_in(inputs.text) + sum(tokens_in(part.text) for part in inputs.system)
        budget = past_budget(self._settings, inputs.window, stable)
        past = self._choose_past(inputs, budget)
        draft = _Draft(budget=budget, past=past, sent={sent.turn.turn_index for sent in past.turns})
        if not self._settings.enabled:
            return draft
        if not past.complete:
            first = min(draft.sent, default=inputs.turn_index)
            frontier = [s for s in inputs.summaries if not s.parent and s.start_turn_index < first]
            draft.frontier = frontier_section(frontier, budget.share("frontier"))
            draft.reserved = budget.share("goal") + budget.share("queries")
            left = budget.total - draft.used
            draft.files = files_section(inputs.files, min(budget.share("files"), left))
            draft.topics = topics_section(inputs.summaries, min(budget.share("topics"), left - draft.files.tokens))
        if self._settings.recall.strategy != "recent":
            left = budget.total - draft.used - heading_tokens("recalled")
            draft.recall_tokens = min(self._settings.recall.max_tokens, left)
        return draft

    def _choose_past(self, inputs: ContextInputs, budget: Budget) -> Past:
        limit = self._settings.max_context_messages
        complete = self._past.all_turns(inputs.turns, budget.total, limit)
        if complete is not None:
            return complete
        if not self._settings.enabled:
            return self._past.newest(inputs.turns, Limits(budget.total, len(inputs.turns), limit))
        recall, recent = self._settings.recall, self._settings.recent
        tokens = budget.rest - FRAME_TOKENS
        if recall.strategy != "recent":
            tokens = max(tokens - min(recall.max_tokens, tokens // 2), min(tokens, REPRESENTED_TOKENS))
        turns = REPRESENTED_TURNS if recall.strategy == "relevant" else max(recent.max_turns, REPRESENTED_TURNS)
        return self._past.newest(inputs.turns, Limits(min(tokens, recent.max_chars // CHARS_PER_TOKEN), turns, limit))

    def _assemble(self, inputs: ContextInputs, draft: _Draft, recalled: Recalled | None) -> BuiltContext:
        sections: list[ContextSection] = []
        if recalled is not None:
            turns = recalled_section(recalled)
            left = draft.budget.total - draft.used - turns.tokens
            findings = findings_section(recalled.findings, min(FINDINGS_TOKENS, left))
            sections += [findings, recalled_summaries_section(recalled.summaries, left - findings.tokens), turns]
        if draft.frontier:
            whole = {turn.turn_index for turn in recalled.turns if turn.own and not turn.cut} if recalled else set()
            sections.append(without_told(draft.frontier, draft.sent | whole))
        if self._settings.enabled and not draft.past.complete:
            sections += self._goal_and_queries(inputs, draft, recalled)
        sections += [section for section in (draft.files, draft.topics) if section]
        block = sorted((s for s in sections if s.items), key=lambda section: ORDER.index(section.name))
        record = ContextRecord(
            conversation_id=inputs.conversation_id,
            turn_index=inputs.turn_index,
            model=inputs.model,
            strategy=self._settings.recall.strategy,
            whole=draft.past.whole,
            budget=draft.budget.total,
            version=BLOCK_VERSION,
            created_at=now(),
            sections=[_system_section(inputs.system), _past_section(draft.past), *block],
        )
        record.tokens = draft.past.tokens + (tokens_in(block_text(block)) if block else 0)
        built = BuiltContext(record, [message for sent in draft.past.turns for message in sent.messages])
        record.digest = digest_of(request_parts(record, built.past))
        return built

    def _goal_and_queries(
        self, inputs: ContextInputs, draft: _Draft, recalled: Recalled | None
    ) -> list[ContextSection]:
        """Return the first message and the recent queries, as far as they are not sent or recalled anyway."""
        present = draft.sent | ({turn.turn_index for turn in recalled.turns if turn.own} if recalled else set())
        goal = inputs.first_message if 1 not in present else None
        first = min(draft.sent, default=inputs.turn_index)
        asked = [t.messages[0] for t in inputs.turns if 1 < t.turn_index < first and t.turn_index not in present]
        return [
            goal_section(goal, draft.budget.share("goal")),
            queries_section(asked[-QUERIES:], draft.budget.share("queries")),
        ]


def without_memory(inputs: ContextInputs) -> BuiltContext:
    """Return the context to send while the graph is unavailable: all messages if few, else the first and last nine."""
    past = without_graph(inputs.turns)
    items = [ContextItem(kind="note", role=m["role"], tokens=tokens_of([m]), text=m["content"]) for m in past]
    tokens = sum(item.tokens for item in items)
    section = ContextSection(name=PAST_SECTION, title=TITLES[PAST_SECTION], tokens=tokens, items=items)
    record = ContextRecord(
        conversation_id=inputs.conversation_id,
        turn_index=inputs.turn_index,
        model=inputs.model,
        strategy="without graph",
        tokens=tokens,
        version=BLOCK_VERSION,
        created_at=now(),
        sections=[_system_section(inputs.system), section],
    )
    record.digest = digest_of(request_parts(record, past))
    return BuiltContext(record, past)


def digest_of(messages: list[ChatMessage]) -> str:
    """Return the SHA-256 of the parts of a request, as hexadecimal digits."""
    return hashlib.sha256(msgspec.json.encode(messages)).hexdigest()


def _system_section(parts: list[SystemPart]) -> ContextSection:
    items = [
        ContextItem(
            kind=part.kind,
            source=part.digest,
            title=part.name,
            role="system",
            tokens=tokens_in(part.text),
            text=part.text,
        )
        for part in parts
    ]
    return ContextSection(name="system", title=TITLES["system"], tokens=sum(i.tokens for i in items), items=items)


def _past_section(past: Past) -> ContextSection:
    items = [
        ContextItem(
            kind="message",
            turn_index=sent.turn.turn_index,
            date=sent.turn.messages[0].timestamp,
            form=sent.form,
            positions=sent.positions,
            tokens=sent.tokens,
            text="\n".join(message["content"] for message in sent.messages if message["content"]),
        )
        for sent in past.turns
    ]
    return ContextSection(name=PAST_SECTION, title=TITLES[PAST_SECTION], tokens=past.tokens, items=items)


class Budget(msgspec.Struct, frozen=True):
    """Tokens for the past, and for its sections once the conversation no longer fits."""

    total: int

    def share(self, section: str) -> int:
        """Return the tokens a section may take."""
        return int(self.total * SHARES[section])

    @property
    def rest(self) -> int:
        """Tokens shared by the newest and the recalled turns."""
        return self.total - sum(self.share(section) for section in SHARES)


def answer_tokens(window: int) -> int:
    """Return the tokens of a window that are reserved for the answer."""
    return min(ANSWER_TOKENS, window // 4)


def system_tokens(context: BuiltContext) -> int:
    """Return the tokens of a context's system message."""
    return context.record.sections[0].tokens


def past_budget(settings: MemorySettings, window: int, overhead: int) -> Budget:
    """Return the budget of the past.

    Args:
        window: Tokens the model reads at most.
        overhead: Tokens that are sent in any case: the stable part, the tools, the new message.
    """
    # The results of its tools make the running turn grow in addition to the past.
    available = (window - answer_tokens(window) - overhead) * 2 // 3
    return Budget(max(SMALLEST_PAST_TOKENS, min(settings.max_context_chars // CHARS_PER_TOKEN, available)))
