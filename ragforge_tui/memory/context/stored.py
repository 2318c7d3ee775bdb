"""Conversion of a request's context for the graph, and back.

Only sources and cuts are stored; texts are looked up again and assembled by the same code that built the request. The
digest verifies that the result equals the request; a source that changed since is reported, not hidden.
"""

from __future__ import annotations

from itertools import chain
from typing import Any

import msgspec

from ragforge_tui.graph import Store
from ragforge_tui.memory.context.builder import BuiltContext, digest_of
from ragforge_tui.memory.context.history_window import MESSAGE_TOKENS
from ragforge_tui.memory.context.sections import (
    FRAME_SECTION,
    KEPT,
    MESSAGE_SECTION,
    PAST_SECTION,
    TITLES,
    block_sections,
    item_label,
    past_messages,
    request_parts,
    summary_text,
)
from ragforge_tui.memory.context.truncation import take, tokens_in
from ragforge_tui.memory.context.turn_formats import render_turn
from ragforge_tui.memory.history import ChatMessage, message_text
from ragforge_tui.memory.retrieval.keys import said_text
from ragforge_tui.memory.retrieval.packing import CUT_MARK
from ragforge_tui.shared.errors import NotFoundError
from ragforge_tui.shared.records import ContextItem, ContextRecord, ContextSection, Message, Summary, Turn

STORED_ONCE = ("system", "instructions", "persona", "tools", "environment")
"""Kinds of items whose texts are stored by their digests."""
LOOKED_UP = (*STORED_ONCE, "message", "goal", "query", "summary", "turn")
"""Kinds of items whose texts the graph holds already."""
MISSING = "[this text is no longer in the graph]"


class StoredContext(msgspec.Struct, frozen=True):
    """Context as the store takes it: see `Store.store_context`."""

    items: str
    tokens: int
    digest: str
    texts: dict[str, str]


def to_stored(context: BuiltContext) -> StoredContext:
    """Return the context for the store, without the texts that can be looked up again."""
    record = context.record
    sections = [
        msgspec.structs.replace(section, items=[_without_text(item) for item in section.items])
        for section in record.sections
    ]
    return StoredContext(
        items=msgspec.json.encode(msgspec.structs.replace(record, sections=sections)).decode(),
        tokens=record.tokens,
        digest=record.digest,
        texts={item.source: item.text for item in _stored_once(record)},
    )


async def look_up(record: ContextRecord, store: Store) -> ContextRecord:
    """Return the record with its texts; `verified` is set if they are, to the letter, those that were sent."""
    sources = _Sources(store, record.conversation_id)
    digests = [item.source for item in _stored_once(record)]
    system = await store.contexts.system_texts(digests) if digests else {}
    past: list[ContextItem] = []
    for section in record.sections:
        if section.name == PAST_SECTION and section.items:
            await sources.read(section.items[0].turn_index, section.items[-1].turn_index)
            past = section.items
            continue
        for item in section.items:
            if item.kind in STORED_ONCE:
                item.text = system.get(item.source, MISSING)
            elif not item.text:
                item.text = await _text_of(item, sources)
    sent = [await _past_messages(item, sources) for item in past]
    record.verified = digest_of(request_parts(record, [*chain.from_iterable(sent)])) == record.digest
    for item, messages in zip(past, sent, strict=True):
        item.text = "\n".join(filter(None, map(message_text, messages)))
    return record


def accounted(record: ContextRecord, message: Message) -> ContextRecord:
    """Return the record with everything that was sent listed, so that items add up to sections and these to the whole.

    Headings, separators and the frame of the memory block become items of their own, and the user's message a section.
    """
    sections: list[ContextSection] = []
    for section in record.sections:
        rest = section.tokens - sum(item.tokens for item in section.items)
        items = [*section.items, *_frame(rest)] if section.items else section.items
        tokens = sum(item.tokens for item in items)
        sections.append(msgspec.structs.replace(section, items=items, tokens=tokens))
    past = sum(s.tokens for s in [*block_sections(record), *(s for s in record.sections if s.name == PAST_SECTION)])
    frame = _frame(record.tokens - past)
    if frame:
        # It surrounds the block, which is sent after the past turns.
        after = next((at for at, s in enumerate(sections) if s.name == PAST_SECTION), len(sections) - 1) + 1
        sections.insert(after, _section_of(FRAME_SECTION, frame))
    asked = ContextItem(
        kind="query",
        source=message.uuid,
        turn_index=message.turn_index,
        date=message.timestamp,
        tokens=tokens_in(message.content) + MESSAGE_TOKENS,
        text=message.content,
    )
    return msgspec.structs.replace(record, sections=[*sections, _section_of(MESSAGE_SECTION, [asked])])


def _frame(tokens: int) -> list[ContextItem]:
    return [ContextItem(kind="frame", tokens=tokens)] if tokens > 0 else []


def _section_of(name: str, items: list[ContextItem]) -> ContextSection:
    return ContextSection(name=name, title=TITLES[name], tokens=sum(item.tokens for item in items), items=items)


class _Sources:
    """Cache of turns and summaries, each read once."""

    def __init__(self, store: Store, own: str) -> None:
        self._store = store
        self._own = own
        self._turns: dict[tuple[str, int], Turn | None] = {}
        self._summaries: dict[str, dict[str, Summary]] = {}

    async def read(self, first: int, last: int) -> None:
        """Read a run of the conversation's own turns at once."""
        for turn in await self._store.turns.between(self._own, start=first, end=last + 1):
            self._turns[self._own, turn.turn_index] = turn

    async def summary(self, conversation_id: str, uuid: str) -> Summary | None:
        """Return a summary of the conversation it was recalled from; None if it is gone."""
        source = conversation_id or self._own
        if source not in self._summaries:
            self._summaries[source] = {summary.uuid: summary for summary in await self._store.summaries.of(source)}
        return self._summaries.get(source, {}).get(uuid)

    async def get(self, conversation_id: str, index: int) -> Turn | None:
        """Return a turn; None if it is gone."""
        key = (conversation_id or self._own, index)
        if key not in self._turns:
            try:
                turns = await self._store.turns.between(key[0], start=index, end=index + 1)
            except NotFoundError:
                turns = []
            self._turns[key] = turns[0] if turns else None
        return self._turns[key]


def _stored_once(record: ContextRecord) -> list[ContextItem]:
    return [item for section in record.sections for item in section.items if item.kind in STORED_ONCE]


def _without_text(item: ContextItem) -> ContextItem:
    if item.kind not in LOOKED_UP or item.form == KEPT:
        return item
    return msgspec.structs.replace(item, text="")


async def _past_messages(item: ContextItem, sources: _Sources) -> list[ChatMessage]:
    if item.kind == "note":
        return [{"role": item.role, "content": item.text}]
    turn = await sources.get("", item.turn_index)
    return [] if turn is None else past_messages(item, render_turn(turn, item.form, item.positions))


async def _text_of(item: ContextItem, sources: _Sources) -> str:
    source: str | None = None
    match item.kind:
        case "goal" | "query":
            turn = await sources.get("", item.turn_index)
            texts: dict[str, Any] = {message.uuid: message.content for message in turn.messages} if turn else {}
            source = texts.get(item.source)
        case "summary":
            summary = await sources.summary(item.conversation_id, item.source)
            source = summary_text(summary) if summary else None
        case "turn":
            turn = await sources.get(item.conversation_id, item.turn_index)
            return take(said_text(turn), item.spans, CUT_MARK) if turn else MISSING
    return MISSING if source is None else item_label(item) + take(source, item.spans)
