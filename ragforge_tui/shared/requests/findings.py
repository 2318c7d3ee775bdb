"""Requests about what is remembered: decisions, wishes, open points and facts, and acts on them."""

from __future__ import annotations

import msgspec

from ragforge_tui.shared.finding_records import KeptFinding, KeptKind
from ragforge_tui.shared.memory_acts import ActKind, MemoryAct
from ragforge_tui.shared.wire import Request


class RememberedList(msgspec.Struct, frozen=True, kw_only=True):
    """What is remembered.

    Attributes:
        findings: The newest first, in any state.
        titles: Titles of their conversations, by id.
        acts: The newest acts of the user on them, also those taken back.
    """

    findings: list[KeptFinding]
    titles: dict[str, str] = {}
    acts: list[MemoryAct] = []


class ListRemembered(Request[RememberedList]):
    """What is remembered in a folder, or in all folders without one.

    Attributes:
        kinds: Only these; empty for all.
        current: Only what holds or is still open.
        conversation_id: The conversation that asks, which may be private.
    """

    workspace: str | None = None
    kinds: tuple[KeptKind, ...] = ()
    current: bool = False
    conversation_id: str = ""


class ActOnFinding(Request[KeptFinding]):
    """Pin, edit, forget or confirm a finding; return it as it is now, after an edit the new one.

    Fails with kind ``not_found`` if there is no such finding, ``invalid`` if the act makes no sense for it.

    Attributes:
        ref: Its id or a unique prefix.
        text: The new text of an edit.
    """

    ref: str
    act: ActKind
    text: str = ""
    conversation_id: str = ""


class UndoMemoryAct(Request[MemoryAct]):
    """Take back the newest act on the memory that was not. Fails with kind ``invalid`` if there is none."""

    conversation_id: str = ""
