"""What the user left out of the next requests of an open conversation, and what they pinned.

Kept with the open conversation and not in the graph: it ends with the session. An item that is pinned is sent in a
section of its own, at the place of the memory block, and nowhere else in it.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable

import msgspec

from ragforge_tui.memory.context.truncation import cut_to, tokens_in
from ragforge_tui.memory.findings.settled import Settled
from ragforge_tui.memory.retrieval import Recalled, render_turns
from ragforge_tui.shared.code_records import FoundCode
from ragforge_tui.shared.context_choices import (
    EXCLUDABLE,
    PINNABLE,
    Choice,
    ChosenItem,
    finding_key,
    finding_words,
    item_key,
    source_key,
    turn_key,
)
from ragforge_tui.shared.errors import RagforgeError
from ragforge_tui.shared.formatting import counted
from ragforge_tui.shared.records import ContextItem, Summary, Turn

MOST_PINNED_TOKENS = 2_000
"""Tokens of all pinned items together: they are sent with each request."""
MOST_OF_ONE = 1_000
_CODE_NOTE = re.compile(r"\n\[[^\]\n]*\]\Z")
"""Note below code, as `ContextChoices.refresh` writes it."""


class ContextChoices:
    """The user's choices for the next requests of one conversation.

    Args:
        conversation_id: The conversation.
    """

    def __init__(self, conversation_id: str) -> None:
        self._own = conversation_id
        self._chosen: dict[str, ChosenItem] = {}

    def chosen(self) -> list[ChosenItem]:
        """Return the choices, oldest first."""
        return list(self._chosen.values())

    def choose(self, item: ContextItem, choice: Choice) -> None:
        """Remember a choice for an item, or forget it.

        Raises:
            RagforgeError: The item is always sent, or there is no room for another pinned one.
        """
        key = item_key(item, self._own)
        if choice == "usual":
            self._chosen.pop(key, None)
            return
        if item.kind not in (PINNABLE if choice == "pin" else EXCLUDABLE):
            what = "This cannot be pinned." if choice == "pin" else "This is sent with each request."
            raise RagforgeError(what, todo="Choose a turn, a finding, a summary or code.")
        if choice == "exclude":
            self._chosen[key] = ChosenItem(key=key, item=item, pinned=False)
            return
        pinned = _pinned(item)
        taken = sum(one.item.tokens for one in self._chosen.values() if one.pinned and one.key != key)
        if taken + pinned.tokens > MOST_PINNED_TOKENS:
            raise RagforgeError(
                f"Pinned items may have {counted(MOST_PINNED_TOKENS)} tokens together; {counted(taken)} are taken.",
                todo="Unpin another item first.",
            )
        self._chosen[key] = ChosenItem(key=key, item=pinned, pinned=True)

    @property
    def excluded(self) -> frozenset[str]:
        """Keys of the items that no request holds."""
        return frozenset(key for key, one in self._chosen.items() if not one.pinned)

    @property
    def pinned(self) -> list[ContextItem]:
        return [one.item for one in self._chosen.values() if one.pinned]

    async def refresh(self, code: Callable[[str], Awaitable[tuple[str, str]]]) -> None:
        """Bring pinned code to the state of the files; what is gone stays, with a note that it is.

        Args:
            code: Returns a scope as it is sent now, by its uuid, and why its text is not the file's; of one that no
                longer exists only that, and nothing if it is unknown.
        """
        for key, one in list(self._chosen.items()):
            if not one.pinned or one.item.kind != "code":
                continue
            text, note = await code(one.item.source)
            if text or note:
                text = text or _CODE_NOTE.sub("", one.item.text)
                item = _pinned(one.item, f"{text}\n[{note}]" if note else text)
                self._chosen[key] = msgspec.structs.replace(one, item=item)

    def settle(self, settled: Settled) -> None:
        """Take in what holds no more: of a pinned finding what replaced it is sent, else nothing.

        What the user forgot leaves pinned summaries too; pinned turns keep their words, as the conversation does.
        """
        for key, one in list(self._chosen.items()):
            item = one.item
            if not one.pinned or not settled:
                continue
            if item.kind == "summary" and (text := settled.without_forgotten(item.text)) != item.text:
                self._chosen[key] = msgspec.structs.replace(one, item=_pinned(item, text))
            if item.kind != "finding" or (gone := settled.said_in(finding_words(item.text), item.turn_index)) is None:
                continue
            del self._chosen[key]
            if (new := settled.successor(gone)) is not None:
                item = msgspec.structs.replace(
                    item,
                    source=new.uuid,
                    conversation_id="" if new.conversation_id == self._own else new.conversation_id,
                    turn_index=new.turn_index,
                    last_turn=0,
                    date=new.since,
                    text=f"- {new.text}",
                )
                key = item_key(item, self._own)
                self._chosen[key] = ChosenItem(key=key, item=_pinned(item), pinned=True)

    # --- what is left of the material of a request --------------------------------------------------------------------

    def turns(self, turns: list[Turn]) -> list[Turn]:
        """Return the past turns that may be sent as messages; pinned ones may."""
        excluded = self.excluded
        return [turn for turn in turns if turn_key(self._own, turn.turn_index) not in excluded] if excluded else turns

    def excluded_turns(self, first: int, last: int) -> set[int]:
        """Return the turns of this conversation that are not to be recalled, among those from `first` to `last`."""
        return {index for index in range(first, last) if turn_key(self._own, index) in self._chosen}

    def summaries(self, summaries: list[Summary]) -> list[Summary]:
        return [one for one in summaries if source_key("summary", one.uuid) not in self._chosen]

    def recalled(self, recalled: Recalled) -> Recalled:
        """Return what was recalled without what the user left out or pinned."""
        if not self._chosen:
            return recalled
        turns = [
            turn
            for turn in recalled.turns
            if turn_key(self._own if turn.own else turn.conversation_id, turn.turn_index) not in self._chosen
        ]
        if len(turns) < len(recalled.turns):
            text = render_turns(turns)
            recalled = msgspec.structs.replace(recalled, turns=turns, text=text, tokens=tokens_in(text))
        return msgspec.structs.replace(
            recalled,
            findings=[one for one in recalled.findings if finding_key(one.finding.text) not in self._chosen],
            summaries=[
                one for one in recalled.summaries if source_key("summary", one.summary.uuid) not in self._chosen
            ],
        )

    def code(self, found: FoundCode) -> FoundCode:
        scopes = [scope for scope in found.scopes if source_key("code", scope.uuid) not in self._chosen]
        return msgspec.structs.replace(found, scopes=scopes)

    def items(self, items: list[ContextItem]) -> list[ContextItem]:
        """Return the items of the section of topics or files that may be sent."""
        return [item for item in items if item_key(item, self._own) not in self._chosen]


def _pinned(item: ContextItem, text: str = "") -> ContextItem:
    """Return an item as it is sent while it is pinned: with its text, which is kept with each request."""
    text = text or item.text
    if item.kind in ("turn", "message") and not text.startswith("["):
        day = f"{item.date:%Y-%m-%d}" if item.date is not None else ""
        where = item.title if item.conversation_id else ""
        text = f"[{', '.join(part for part in (where, day, f't{item.turn_index}') if part)}] {text}"
    shown, _ = cut_to(text, MOST_OF_ONE)
    return msgspec.structs.replace(
        item, form="kept", positions=[], spans=[], cut=0, text=shown, tokens=tokens_in(shown) + 1
    )
