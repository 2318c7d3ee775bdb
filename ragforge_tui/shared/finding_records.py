"""Findings with a life: decisions, wishes, open points and facts that turns stated, and what became of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from typing import Literal

import msgspec

from ragforge_tui.shared.records import Finding, FindingKind

KeptKind = Literal["decision", "wish", "open", "fact"]
FindingState = Literal["open", "done", "valid", "replaced", "forgotten"]
FindingScope = Literal["user", "folder", "conversation"]

FORGOTTEN_BY_USER = "forgotten by the user"
"""`KeptFinding.closed_by` of a finding that the user forgot: its text is not told again, not even as settled."""
FORGOTTEN_SENTENCE = "[…]"
"""Placeholder in a summary's text for a sentence that was forgotten."""
CURRENT: tuple[FindingState, ...] = ("open", "valid")
"""States of findings that are sent and shown as they are."""


SUMMED: tuple[tuple[KeptKind, str], ...] = (("open", "Open"), ("wish", "Wishes"), ("decision", "Decisions"))
"""Kinds that are counted over many conversations, with their labels; facts are too many to mean something."""


class KeptFinding(msgspec.Struct, frozen=True, kw_only=True):
    """Statement of a turn that outlives its conversation's summaries.

    Attributes:
        scope: Where it holds: wherever the user works, in the folder, or in its conversation only.
        pinned: The user wants it kept in sight.
        workspace: Folder of its conversation.
        since: When its turn stated it.
        until: When it was closed, replaced or forgotten.
        made_by: ``rule``, ``user``, ``tool``, or the name of the model that noted it.
        replaced_by: Id of the finding that took its place.
        closed_by: What closed it, with the turn: ``t14: edited naturalsize``.
        files: Paths of the files it is about.
        scopes: Ids of the code scopes it is about.
    """

    uuid: str
    kind: KeptKind
    text: str
    state: FindingState
    scope: FindingScope = "folder"
    pinned: bool = False
    workspace: str = ""
    conversation_id: str
    turn_index: int
    since: datetime
    until: datetime | None = None
    made_by: str = "rule"
    replaced_by: str = ""
    closed_by: str = ""
    files: list[str] = []
    scopes: list[str] = []

    @property
    def is_current(self) -> bool:
        """Whether it still holds or is still to do."""
        return self.state in CURRENT


class ShownFinding(Finding, frozen=True, kw_only=True):
    """Finding as the screens show it.

    Attributes:
        became: What became of it, in words, if it no longer holds; it is shown struck through.
        leads_to: Conversation of the turn that closed or replaced it; empty for its own.
        leads_turn: That turn; 0 without one.
    """

    became: str = ""
    leads_to: str = ""
    leads_turn: int = 0


def finding_sums(findings: Iterable[KeptFinding]) -> str:
    """Return how many findings there are of each kind, such as ``Open 4 · Wishes 5 · Decisions 7``."""
    counts = Counter(finding.kind for finding in findings)
    return " · ".join(f"{label} {counts[kind]}" for kind, label in SUMMED)


def kept_kind(kind: FindingKind) -> KeptKind:
    """Return the kind under which a finding of a summary is kept; one without a kind is a fact."""
    if kind == "preference":
        return "wish"
    return kind or "fact"


def said_kind(kind: KeptKind) -> FindingKind:
    """Return the kind that summaries and screens give a kept finding."""
    return "preference" if kind == "wish" else kind


def first_state(kind: KeptKind) -> FindingState:
    """Return the state that a finding begins with."""
    return "open" if kind == "open" else "valid"
