"""What a scripted engine remembers: a wish, a replaced one, an open point and a decision, with foreign text."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec

from ragforge_tui.shared.errors import RagforgeError
from ragforge_tui.shared.finding_records import KeptFinding
from ragforge_tui.shared.memory_acts import MemoryAct
from ragforge_tui.shared.requests.findings import ActOnFinding, ListRemembered, RememberedList, UndoMemoryAct
from tests.support.fake_answers import answers

CLOCK = datetime(2026, 11, 3, 14, 2, tzinfo=UTC)
HOSTILE = "\x1b[31m[bold]red[/bold]\x1b]0;owned\x07"
FIRST, SECOND = "00000001-0000-4000-8000-000000000000", "00000002-0000-4000-8000-000000000000"


def kept(uuid: str, kind: str, text: str, **changes: Any) -> KeptFinding:
    """A finding of turn 2 of the first conversation."""
    values: dict[str, Any] = {
        "state": "open" if kind == "open" else "valid",
        "workspace": "/w/harbour",
        "conversation_id": FIRST,
        "turn_index": 2,
        "since": CLOCK,
    }
    return msgspec.convert({"uuid": uuid, "kind": kind, "text": text, **values, **changes}, KeptFinding)


class RememberedShelf:
    """Answers the requests about what is remembered."""

    def __init__(self) -> None:
        self.findings = [
            kept("w2", "wish", "Run the tests with -x."),
            kept("w1", "wish", "Run the tests with -q.", state="replaced", replaced_by="w2", turn_index=1),
            kept("w3", "wish", "Answer in German.", scope="user", conversation_id=SECOND, turn_index=1),
            kept("d1", "decision", f"Sqlite it is {HOSTILE}"),
            kept("o1", "open", "Write the docs."),
            kept("o2", "open", "Mend naturalsize.", state="done", closed_by="t3: edited naturalsize"),
        ]
        self.acts: list[MemoryAct] = []

    @answers(ListRemembered)
    def _list(self, request: ListRemembered) -> Any:
        titles = {FIRST: "Retries double turns", SECOND: "Index allocation"}
        return RememberedList(findings=list(self.findings), titles=titles, acts=self.acts[::-1])

    @answers(ActOnFinding)
    def _act(self, request: ActOnFinding) -> Any:
        at = next(place for place, one in enumerate(self.findings) if one.uuid == request.ref)
        one = self.findings[at]
        if request.act == "confirm" and one.kind != "open":
            raise RagforgeError("Only an open point can be confirmed as done.", kind="invalid")
        changes: dict[str, Any] = {
            "pin": {"pinned": True},
            "unpin": {"pinned": False},
            "forget": {"state": "forgotten"},
            "confirm": {"state": "done", "closed_by": "confirmed by the user"},
            "edit": {"text": request.text},
        }[request.act]
        act = MemoryAct(uuid="a", act=request.act, at=CLOCK, finding=one.uuid, text=one.text, state=one.state)
        self.acts.append(act)
        self.findings[at] = msgspec.structs.replace(one, **changes)
        return self.findings[at]

    @answers(UndoMemoryAct)
    def _undo(self, request: UndoMemoryAct) -> Any:
        act = self.acts.pop()
        at = next(place for place, one in enumerate(self.findings) if one.uuid == act.finding)
        self.findings[at] = msgspec.structs.replace(self.findings[at], state=act.state, text=act.text, pinned=False)
        return msgspec.structs.replace(act, undone=True)
