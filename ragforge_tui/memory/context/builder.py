"""Construction of a request's context, section by section, within one budget.

While the conversation fits, if necessary with the largest and oldest results cut, all its turns are sent, and the
memory block holds only what matters from other conversations. Once it no longer fits, the newest turns are sent and the
block represents the older ones: recalled findings, summaries and turns, the first message, the frontier of the
summaries, earlier queries, recent files, topics. No text is sent twice. Used by conversation/.

The shares of the sections are the project's own choice: the goal 5 %, the frontier of the summaries as much as it needs
up to 25 %, code 10 %, recent files 5 %, topics 2 %, earlier queries 5 %, recalled turns 25 %, each up to a number of
tokens; what they do not take goes to the newest turns. The frontier may exceed its share by what the turns sent leave
free.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Collection
from typing import Literal

import msgspec

from ragforge_tui.llm.tokens import CHARS_PER_TOKEN
from ragforge_tui.memory.context.choices import MOST_PINNED_TOKENS, ContextChoices
from ragforge_tui.memory.context.code import code_section
from ragforge_tui.memory.context.history_window import (
    CUT_TO,
    MESSAGE_TOKENS,
    HistoryWindow,
    Limits,
    Past,
    shortened,
    tokens_of,
)
from ragforge_tui.memory.context.sections import (
    BEFORE_PAST,
    CODE_SECTION,
    ENVIRONMENT_SECTION,
    NOTE_SECTION,
    PAST_SECTION,
    SYSTEM_SECTION,
    TITLES,
    TOOLS_SECTION,
    WISHES_SECTION,
    block_text,
    cache_marks,
    day_of,
    files_section,
    finding_text,
    findings_section,
    frontier_section,
    goal_section,
    heading_tokens,
    past_messages,
    queries_section,
    recalled_section,
    recalled_summaries_section,
    request_messages,
    request_parts,
    section_of,
    settled_lines,
    topics_section,
    without_told,
)
from ragforge_tui.memory.context.truncation import tokens_in
from ragforge_tui.memory.context.wishes import told_again
from ragforge_tui.memory.findings.settled import NOTHING_SETTLED, Settled, without_settled
from ragforge_tui.memory.history import ChatMessage, has_reasoning, message_text, without_graph
from ragforge_tui.memory.retrieval import Recall, Recalled
from ragforge_tui.settings.schema import MemorySettings, RecentSettings
from ragforge_tui.shared.code_records import FoundCode
from ragforge_tui.shared.context_choices import PINNED_SECTION
from ragforge_tui.shared.images import image_tokens
from ragforge_tui.shared.records import (
    NOT_SEARCHED,
    ContextItem,
    ContextRecord,
    ContextSection,
    Message,
    Summary,
    Turn,
    now,
)

ANSWER_TOKENS = 4_096
"""Reserved in the model's window for its answer; a quarter of the window if that is less."""
SMALLEST_PAST_TOKENS = 256

PAST_SHARE = 0.6
"""Default share of the window for the past, after the answer and everything that is sent in any case; the rest is for
the running turn, whose results make it grow."""
SMALL_WINDOW = 64_000
"""Windows below this are worth using up: their past is what is missed first, and a running turn can be shortened."""
SMALL_PAST_SHARE = 0.75
SMALL_CUT_TO = 0.85
"""`PAST_SHARE`, and the share of the limit in use after a cut, for small windows."""
MOST_PAST_SHARE = 2 / 3
"""Largest share that the setting can give to the past."""
SHARES = {
    "goal": (0.05, 1_000),
    "frontier": (0.25, 10_000),
    CODE_SECTION: (0.10, 1_500),
    "files": (0.05, 1_000),
    "topics": (0.02, 200),
    "queries": (0.05, 1_200),
}
"""Largest share of the past and most tokens of each section. The frontier has to represent every turn left out: some
2 500 tokens for each level of summaries with the default settings."""
RECALL_SHARE = 0.25
REPRESENTED_TURNS = 2
"""Newest turns that are always sent, whatever the strategy."""
REASONED_TURNS = 2
"""Newest turns that are sent with the model's reasoning, to models that take it."""
REPRESENTED_TOKENS = 100
"""Reserved for these turns before any section."""
FRAME_TOKENS = 120
"""The block's opening and closing lines and the separators of its sections, with some margin."""
QUERIES = 20
_MATCHES = (PINNED_SECTION, "findings", "summaries", "recalled", CODE_SECTION)
ORDER = (*_MATCHES, "goal", "frontier", "queries", "files", "topics")
"""Order of the block's sections: what matches the message first, then how the conversation went."""
FINDINGS_TOKENS = 500
PINNED_SHARE = 0.25
"""Largest share of the past for pinned items, so that they leave room in a small window."""
FALLBACK_TOKENS = 2_000
"""Most tokens of the summaries sent while the graph is unavailable."""

Strategy = Literal["hybrid", "recent", "relevant"]

FindCode = Callable[[str], Awaitable[FoundCode]]
"""Returns the scopes that matter for a message, within the time that a request may wait for them."""


class SystemPart(msgspec.Struct, frozen=True, kw_only=True):
    """Part of a request that does not come from the memory, stored once per text.

    Attributes:
        kind: ``system``, ``instructions`` (an AGENTS.md) and ``persona`` form the system message, ``environment`` is
            sent before the first turn, and ``tools`` next to the messages.
        section: Section of the record; empty for the one of its kind.
    """

    kind: Literal["system", "instructions", "persona", "tools", "environment"]
    name: str
    text: str
    section: str = ""

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
        settled: Findings that hold no more; what repeats them is not sent as current.
        overhead: Tokens of the tools' schemas.
        reasoning: Whether the model takes back the reasoning of its newest turns.
        wishes: Section of what the user wishes; empty for none.
    """

    conversation_id: str
    turn_index: int
    text: str
    model: str
    window: int
    overhead: int = 0
    reasoning: bool = False
    system: list[SystemPart]
    turns: list[Turn]
    first_message: Message | None = None
    summaries: list[Summary] = []
    files: Callable[[int], str] = lambda tokens: ""
    wishes: ContextSection | None = None
    settled: Settled = NOTHING_SETTLED


class ContextOptions(msgspec.Struct, kw_only=True, frozen=True):
    """Choices for one context in place of the settings; None leaves a setting as it is.

    Attributes:
        recent_messages: Most messages of newest turns; turns are sent whole, and at least one unless it is 0.
        relevant_turns: Most recalled turns.
        summaries: Whether to send what summaries hold: summaries, findings and topics.
    """

    strategy: Strategy | None = None
    recent_messages: int | None = None
    relevant_turns: int | None = None
    summaries: bool = True

    def settings(self, settings: MemorySettings) -> MemorySettings:
        """Return the settings with the chosen strategy, and without limits that a choice replaces."""
        if self.recent_messages is not None:
            settings = msgspec.structs.replace(settings, max_context_messages=None, recent=RecentSettings())
        if self.strategy is not None:
            recall = msgspec.structs.replace(settings.recall, strategy=self.strategy)
            settings = msgspec.structs.replace(settings, recall=recall)
        return settings

    def inputs(self, inputs: ContextInputs) -> ContextInputs:
        """Return the material without the parts that are not to be sent."""
        turns = inputs.turns
        if self.recent_messages is not None:
            turns = _newest(turns, self.recent_messages)
        elif self.strategy == "relevant":
            turns = turns[-REPRESENTED_TURNS:]
        return msgspec.structs.replace(inputs, turns=turns, summaries=inputs.summaries if self.summaries else [])


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
            if (item.kind == "message" and not item.form.startswith(("text:", "texts:", "tight:")))
            or (item.kind == "turn" and not item.conversation_id and not item.cut)
        )

    @property
    def condensed(self) -> tuple[int, int]:
        """The last of the older turns that are not sent, and the number of summaries that stand for them; or 0, 0."""
        items = [item for section in self.sections for item in section.items]
        sent = [item.turn_index for item in items if item.kind == "message" and item.turn_index]
        first = min(sent, default=0)
        frontier = [
            item
            for section in self.sections
            for item in (section.items if section.name == "frontier" else ())
            if item.kind == "summary" and item.turn_index < first
        ]
        return (first - 1, len(frontier)) if frontier else (0, 0)

    def render(self) -> list[ChatMessage]:
        """Return the messages to send, one of role system first."""
        return request_messages(self.record, self.past)

    @property
    def cache_marks(self) -> list[int]:
        """Offsets in the system message that end a prefix shared with later requests."""
        return cache_marks(self.record.sections[0].items)


class _Draft(msgspec.Struct, kw_only=True):
    """Context under construction. `reserved` and `code_tokens` are for the sections that are filled last."""

    budget: Budget
    past: Past
    sent: set[int]
    reserved: int = 0
    code_tokens: int = 0
    recall_tokens: int = 0
    pinned: ContextSection | None = None
    frontier: ContextSection | None = None
    files: ContextSection | None = None
    topics: ContextSection | None = None

    @property
    def used(self) -> int:
        """Tokens that are taken or reserved."""
        taken = sum(section.tokens for section in (self.pinned, self.frontier, self.files, self.topics) if section)
        return FRAME_TOKENS + self.past.tokens + self.reserved + self.code_tokens + taken


class ContextBuilder:
    """Builder of the contexts of one conversation, turn after turn.

    Args:
        choices: What the user left out or pinned.
    """

    def __init__(self, settings: MemorySettings, choices: ContextChoices | None = None) -> None:
        self._settings = settings
        self._choices = choices or ContextChoices("")
        self._past = HistoryWindow()

    async def build(
        self,
        inputs: ContextInputs,
        recall: Recall | None = None,
        code: FindCode | None = None,
        options: ContextOptions | None = None,
    ) -> BuiltContext:
        """Return the context of a new message. Counting and cutting run in a thread.

        Args:
            recall: None if there is nothing to recall from.
            code: None if the workspace has no index of its code.
            options: Choices for this context alone, which leave the choice of turns for later requests unchanged.
        """
        if options is not None:
            return await ContextBuilder(options.settings(self._settings), self._choices)._build(
                options.inputs(inputs), recall, code, options
            )
        return await self._build(inputs, recall, code, ContextOptions())

    async def cuts(self, inputs: ContextInputs, *, with_code: bool) -> bool:
        """Return whether the context of a new message will hold less of a turn than the one before."""
        trial = ContextBuilder(self._settings, self._choices)
        trial._past = self._past.copy()
        await asyncio.to_thread(trial._draft, inputs, with_code=with_code)
        return trial._past.steps > 0

    async def _build(
        self, inputs: ContextInputs, recall: Recall | None, code: FindCode | None, options: ContextOptions
    ) -> BuiltContext:
        finding = asyncio.ensure_future(code(inputs.text)) if code is not None else None
        try:
            draft = await asyncio.to_thread(self._draft, inputs, with_code=code is not None)
            recalled = await self._recalled(inputs, draft, recall, options)
            found = await finding if finding is not None else FoundCode()
        finally:
            if finding is not None:
                finding.cancel()
        return await asyncio.to_thread(self._assemble, inputs, draft, recalled, found)

    async def _recalled(
        self, inputs: ContextInputs, draft: _Draft, recall: Recall | None, options: ContextOptions
    ) -> Recalled | None:
        if recall is None or draft.recall_tokens <= 0:
            return None
        return await recall.for_context(
            inputs.text,
            exclude={*draft.sent, inputs.turn_index, *self._choices.excluded_turns(1, inputs.turn_index)},
            max_tokens=draft.recall_tokens,
            own=not draft.past.complete,
            exclude_summaries={item.source for item in draft.frontier.items} if draft.frontier else (),
            most=options.relevant_turns,
            summaries=options.summaries,
        )

    def _draft(self, inputs: ContextInputs, *, with_code: bool) -> _Draft:
        """Build everything except the recalled sections, which depend on the rest of the request."""
        budget = Budget(past_tokens(self._settings, inputs.window, _stable_tokens(inputs)))
        inputs = msgspec.structs.replace(inputs, turns=self._choices.turns(inputs.turns))
        if not self._settings.enabled:
            past = self._past.choose(inputs.turns, self._limits(inputs, budget.total, budget.total))
            return _Draft(budget=budget, past=past, sent=set())
        files = files_section(inputs.files, budget.share("files"))
        topics = topics_section(inputs.summaries, budget.share("topics"))
        frontier = [summary for summary in self._choices.summaries(inputs.summaries) if not summary.parent]
        frontier, altered = without_settled(frontier, inputs.settled)
        pinned = self._pinned_section(budget, inputs.wishes)
        later = budget.share("goal") + budget.share("queries")
        recall = self._settings.recall
        recalled = 0 if recall.strategy == "recent" else min(recall.max_tokens, int(budget.total * RECALL_SHARE))
        code = budget.share(CODE_SECTION) if with_code else 0
        left = budget.total - FRAME_TOKENS - recalled - code - pinned.tokens
        days = {turn.turn_index: day_of(turn.messages[0].timestamp) for turn in inputs.turns}
        represented = frontier_section(frontier, budget.share("frontier"), days, altered).tokens
        sections = files.tokens + topics.tokens + later + represented
        # No turn of this conversation is cut to make room for others; where it is cut, its own are recalled too.
        complete = left + max(0, recalled - FINDINGS_TOKENS)
        past = self._past.choose(inputs.turns, self._limits(inputs, complete, left - sections))
        if not inputs.turns and inputs.turn_index > 1:
            past = Past([], complete=False)
        sent = {sent.turn.turn_index for sent in past.turns}
        pinned = self._pinned_section(budget, inputs.wishes, sent)
        draft = _Draft(budget=budget, past=past, sent=sent, code_tokens=code, pinned=pinned)
        if not past.complete:
            # While all turns are sent, files and topics would repeat them.
            draft.files, draft.topics = self._chosen(files), self._chosen(topics)
            first = min(draft.sent, default=inputs.turn_index)
            left = budget.total - draft.used - later
            older = [summary for summary in frontier if summary.start_turn_index < first]
            # Tokens freed by a step go to the summaries until turns need them.
            share = max(min(budget.share("frontier"), left), left - recalled)
            draft.frontier = frontier_section(older, share, days, altered)
            draft.reserved = later
        if recall.strategy != "recent":
            left = budget.total - draft.used - heading_tokens("recalled")
            draft.recall_tokens = min(recall.max_tokens, left)
        return draft

    def _pinned_section(
        self, budget: Budget, wishes: ContextSection | None, sent: Collection[int] = ()
    ) -> ContextSection:
        """Return the section of pinned items, without turns and wishes that are sent anyway."""
        pinned = self._choices.pinned
        again = told_again((item.text for item in pinned if item.kind == "finding"), wishes)
        wanted = [
            item
            for item in pinned
            if (item.kind not in ("turn", "message") or item.conversation_id or item.turn_index not in sent)
            and (item.kind != "finding" or item.text not in again)
        ]
        items = list(wanted)
        while sum(item.tokens for item in items) > budget.total * PINNED_SHARE:
            items.pop()
        return section_of(PINNED_SECTION, MOST_PINNED_TOKENS, items, len(wanted) - len(items))

    def _chosen(self, section: ContextSection) -> ContextSection:
        """Return a section without the items that the user left out."""
        items = self._choices.items(section.items)
        if len(items) == len(section.items):
            return section
        return section_of(section.name, section.budget, items, section.left_out)

    def _limits(self, inputs: ContextInputs, complete: int, tokens: int) -> Limits:
        """Return the limits of the past, with some tokens for the newest turns even if the sections need all."""
        memory = self._settings
        turns = memory.recent.max_turns
        if memory.enabled and memory.recall.strategy == "relevant":
            turns = REPRESENTED_TURNS
        most = tokens if memory.recent.max_chars is None else memory.recent.max_chars // CHARS_PER_TOKEN
        return Limits(
            complete=max(complete, REPRESENTED_TOKENS),
            tokens=max(min(tokens, most), REPRESENTED_TOKENS),
            # Without summaries to wait for, the oldest turns are simply left out.
            covered=max((s.end_turn_index for s in inputs.summaries), default=0)
            if memory.enabled and memory.summarization.enabled
            else inputs.turn_index,
            cut_to=SMALL_CUT_TO if inputs.window < SMALL_WINDOW else CUT_TO,
            turns=turns and max(turns, REPRESENTED_TURNS),
            messages=memory.max_context_messages,
            reasoned=frozenset(
                turn.turn_index
                for turn in inputs.turns[-REASONED_TURNS:]
                if inputs.reasoning and _reasoned_by(turn, inputs.model)
            ),
        )

    def _assemble(
        self, inputs: ContextInputs, draft: _Draft, recalled: Recalled | None, found: FoundCode
    ) -> BuiltContext:
        if recalled is not None:
            recalled = self._choices.recalled(recalled)
        past_sent = (message for sent in draft.past.turns for message in sent.messages)
        sections = [code_section(self._choices.code(found).scopes, draft.code_tokens, past_sent)]
        if draft.frontier:
            whole = {turn.turn_index for turn in recalled.turns if turn.own and not turn.cut} if recalled else set()
            sections.append(without_told(draft.frontier, draft.sent | whole))
        if recalled is not None:
            turns = recalled_section(recalled)
            left = draft.budget.total - draft.used - turns.tokens
            told = "\n".join(item.text for section in sections for item in section.items)
            again = told_again((finding.finding.text for finding in recalled.findings), inputs.wishes)
            untold = [
                finding
                for finding in recalled.findings
                if finding_text(finding.finding) not in told and finding.finding.text not in again
            ]
            gone = settled_lines(recalled.turns, inputs.settled)
            findings = findings_section(untold, min(FINDINGS_TOKENS, left), gone)
            summaries = recalled_summaries_section(recalled.summaries, left - findings.tokens, inputs.settled)
            sections += [findings, summaries, turns]
        if self._settings.enabled and not draft.past.complete:
            sections += self._goal_and_queries(inputs, draft, recalled)
        sections += [section for section in (draft.pinned, draft.files, draft.topics) if section]
        block = sorted((s for s in sections if s.items), key=lambda section: ORDER.index(section.name))
        record = ContextRecord(
            conversation_id=inputs.conversation_id,
            turn_index=inputs.turn_index,
            model=inputs.model,
            strategy=self._settings.recall.strategy,
            whole=draft.past.whole,
            budget=draft.budget.total,
            missing=(missing := [*filter(None, [found.missing]), *(recalled.missing if recalled is not None else [])]),
            created_at=now(),
            sections=_all_sections(inputs, past := _past_section(draft.past), block, missing),
        )
        record.tokens = past.tokens + (tokens_in(block_text(block)) if block else 0)
        sent = zip(past.items, draft.past.turns, strict=True)
        built = BuiltContext(record, [message for item, each in sent for message in past_messages(item, each.messages)])
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
            self._chosen(goal_section(goal, draft.budget.share("goal"))),
            self._chosen(queries_section(asked[-QUERIES:], draft.budget.share("queries"))),
        ]


def _reasoned_by(turn: Turn, model: str) -> bool:
    """Return whether this model wrote all replies of a turn, and reasoned: another model's thoughts are not its own."""
    replies = [message for message in turn.messages if message.role == "assistant" and message.state != "superseded"]
    return all(reply.model == model for reply in replies) and any(has_reasoning(reply) for reply in replies)


def without_memory(settings: MemorySettings, inputs: ContextInputs, *, missing: str = "") -> BuiltContext:
    """Return the context to send while the graph is unavailable: all messages if few, else the first and last nine.

    Texts that are too long for the model's window keep head and tail.

    Args:
        missing: What could not be searched and why, as a sentence for the record.
    """

    def summarised(first: int, last: int) -> str:
        frontier = [s for s in inputs.summaries if not s.parent and s.start_turn_index <= last]
        older = [summary for summary in frontier if summary.end_turn_index >= first]
        section = frontier_section(older, min(FALLBACK_TOKENS, inputs.window // 8), {})
        return "\n".join(item.text for item in section.items)

    limit = past_tokens(settings, inputs.window, _stable_tokens(inputs))
    past = shortened(without_graph(inputs.turns, summarised), limit)
    items = [ContextItem(kind="note", role=m["role"], tokens=tokens_of([m]), text=m["content"]) for m in past]
    tokens = sum(item.tokens for item in items)
    section = ContextSection(name=PAST_SECTION, title=TITLES[PAST_SECTION], tokens=tokens, items=items)
    record = ContextRecord(
        conversation_id=inputs.conversation_id,
        turn_index=inputs.turn_index,
        model=inputs.model,
        strategy="without graph",
        tokens=tokens,
        missing=[missing] if missing else [],
        created_at=now(),
        sections=_all_sections(inputs, section, [], [missing]),
    )
    record.digest = digest_of(request_parts(record, past))
    return BuiltContext(record, past)


def _newest(turns: list[Turn], messages: int) -> list[Turn]:
    """Return the newest turns that have at most so many messages together, and at least one turn."""
    kept: list[Turn] = []
    count = 0
    for turn in reversed(turns[-messages:] if messages else []):
        count += sum(message.state != "superseded" for message in turn.messages)
        if kept and count > messages:
            break
        kept.append(turn)
    return kept[::-1]


def digest_of(messages: list[ChatMessage]) -> str:
    """Return the SHA-256 of the parts of a request, as hexadecimal digits."""
    return hashlib.sha256(msgspec.json.encode(messages)).hexdigest()


def _all_sections(
    inputs: ContextInputs, past: ContextSection, block: list[ContextSection], missing: list[str]
) -> list[ContextSection]:
    """Return the sections of a request: the system message first, the others in the order they are sent.

    Args:
        missing: What was late or failed; the model is told of searches that did not run, else it takes silence for no.
    """
    named: dict[str, list[SystemPart]] = {SYSTEM_SECTION: []}
    for part in inputs.system:
        own = part.kind if part.kind in (TOOLS_SECTION, ENVIRONMENT_SECTION) else SYSTEM_SECTION
        named.setdefault(part.section or own, []).append(part)
    if unsearched := [sentence for sentence in missing if NOT_SEARCHED in sentence]:
        told = f"[Memory: {' '.join(unsearched)} Look with a search tool before you rely on there being nothing.]"
        note = SystemPart(kind="environment", name="note", text=told, section=NOTE_SECTION)
        named.setdefault(NOTE_SECTION, []).insert(0, note)
    before = [_part_section(name, named[name]) for name in BEFORE_PAST if name in named]
    before += [inputs.wishes] if inputs.wishes is not None and inputs.wishes.items else []
    return [*before, past, *block, *(_part_section(NOTE_SECTION, note) for note in [named.get(NOTE_SECTION)] if note)]


def _part_section(name: str, parts: list[SystemPart]) -> ContextSection:
    items = [
        ContextItem(
            kind=part.kind,
            source=part.digest,
            title=part.name,
            role="user" if part.kind == "environment" else "system",
            tokens=_part_tokens(part),
            text=part.text,
        )
        for part in parts
    ]
    return ContextSection(name=name, title=TITLES[name], tokens=sum(i.tokens for i in items), items=items)


def _past_section(past: Past) -> ContextSection:
    """Return the section of the past; the first turn of each earlier day is marked with the date."""
    items = []
    day = day_of(now())
    for sent in past.turns:
        item = ContextItem(
            kind="message",
            turn_index=sent.turn.turn_index,
            date=sent.turn.messages[0].timestamp,
            form=sent.form,
            positions=sent.positions,
            tokens=sent.tokens,
            text="\n".join(filter(None, map(message_text, sent.messages))),
        )
        if day != (day := day_of(sent.turn.messages[0].timestamp)):
            item.title = f"{day:%A, %Y-%m-%d}"
            item.tokens += tokens_in(item.title) + MESSAGE_TOKENS
        items.append(item)
    tokens = sum(item.tokens for item in items)
    return ContextSection(name=PAST_SECTION, title=TITLES[PAST_SECTION], tokens=tokens, items=items)


def _part_tokens(part: SystemPart) -> int:
    """Return the tokens of a part, with those of the images that a message's note names."""
    return tokens_in(part.text) + (image_tokens(part.text) if part.section == NOTE_SECTION else 0)


class Budget(msgspec.Struct, frozen=True):
    """Tokens for the past, and for its sections once the conversation no longer fits."""

    total: int

    def share(self, section: str) -> int:
        """Return the tokens a section may take."""
        share, most = SHARES[section]
        return min(int(self.total * share), most)


def answer_tokens(window: int) -> int:
    """Return the tokens of a window that are reserved for the answer."""
    return min(ANSWER_TOKENS, window // 4)


def system_tokens(context: BuiltContext) -> int:
    """Return the tokens of a context's system message, of the environment and of the new message's images."""
    images = (item for section in context.sections if section.name == NOTE_SECTION for item in section.items)
    stable = sum(s.tokens for s in context.sections if s.name in (SYSTEM_SECTION, ENVIRONMENT_SECTION, WISHES_SECTION))
    return stable + sum(image_tokens(item.text) for item in images)


def _stable_tokens(inputs: ContextInputs) -> int:
    """Return the tokens that are sent in any case: the stable part, the tools, the new message."""
    parts = sum(_part_tokens(part) for part in inputs.system if part.kind != "tools")
    wishes = inputs.wishes.tokens if inputs.wishes is not None else 0
    return inputs.overhead + tokens_in(inputs.text) + parts + wishes


def past_tokens(settings: MemorySettings, window: int, overhead: int = 0) -> int:
    """Return the most tokens of the past in a request.

    Args:
        window: Tokens the model reads at most.
        overhead: Tokens that are sent in any case: the stable part, the tools, the new message.
    """
    available = window - answer_tokens(window) - overhead
    if settings.max_context_chars is None:
        total = int(available * (SMALL_PAST_SHARE if window < SMALL_WINDOW else PAST_SHARE))
    else:
        total = min(settings.max_context_chars // CHARS_PER_TOKEN, int(available * MOST_PAST_SHARE))
    return max(SMALLEST_PAST_TOKENS, total)
