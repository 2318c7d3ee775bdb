"""Acts of the user on what is remembered, which `/memory` shows and takes back."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

import msgspec

from ragforge_tui.shared.finding_records import FindingState

ActKind = Literal["pin", "unpin", "forget", "confirm", "edit"]

ACT_WORDS: dict[ActKind, str] = {
    "pin": "pinned",
    "unpin": "released",
    "forget": "forgotten",
    "confirm": "confirmed as done",
    "edit": "edited",
}
FORGETTING = (
    "No request and no summary holds it any more. The words of its turn stay in the conversation: "
    "`ragforge-chat delete ID --now` removes that. `ragforge-chat graph compact` removes what you forgot from the "
    "disk; until then `ragforge-chat memory undo` takes this back."
)
"""What forgetting does, and what it does not."""


class ChangedText(msgspec.Struct, frozen=True, kw_only=True):
    """Properties of a summary or an insight that an act changed.

    Attributes:
        label: Label of the node.
        before: Its earlier values by property, and `after` those that the act set.
    """

    label: Literal["Summary", "Insight"]
    uuid: str
    before: dict[str, str | list[str]]
    after: dict[str, str | list[str]]


class MemoryAct(msgspec.Struct, frozen=True, kw_only=True):
    """One act of the user on a finding.

    Attributes:
        finding: Id of the finding.
        text: Its text at that time; `new_text` what an edit made of it.
        replaced_by: Id of the finding that an edit made.
        state: State of the finding before, with `until`, `closed_by` and `pinned`.
        undone: Whether it was taken back.
        changed: What it removed from summaries and insights.
    """

    uuid: str
    act: ActKind
    at: datetime
    finding: str
    text: str
    new_text: str = ""
    replaced_by: str = ""
    state: FindingState
    until: datetime | None = None
    closed_by: str = ""
    pinned: bool = False
    undone: bool = False
    changed: list[ChangedText] = []
