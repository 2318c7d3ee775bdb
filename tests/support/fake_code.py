"""The code of a scripted workspace: a few scopes with their references, and turns about them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec

from ragforge_tui.shared.code_records import Scope, ScopeTalk, UnresolvedName
from ragforge_tui.shared.code_views import ScopeCode, ScopeLink, ScopeView, TouchedScope
from ragforge_tui.shared.errors import NotFoundError
from ragforge_tui.shared.requests.code import FetchScope, FindScopes, ListTouchedCode, SearchCode
from tests.support.fake_answers import answers

CLOCK = datetime(2026, 11, 3, 14, 2, tzinfo=UTC)
HOSTILE = "\x1b[31m[bold]red[/bold]\x1b]0;owned\x07"
SEND = '''async def send(self, text: str) -> int:
    """Send a message, at most twice."""
    for attempt in range(2):
        try:
            return await self.open().write(text)
        except ConnectionError:
            log.warning("attempt %d failed", attempt)
    raise Lost(text)
'''


def scope(uuid: str, name: str, kind: str, file: str, first: int, last: int, **more: Any) -> Scope:
    """A scope of the scripted workspace."""
    values = {"uuid": uuid, "name": name.rpartition(".")[2], "qualified_name": name, "kind": kind, "language": "python"}
    lines = {"file": file, "start_line": first, "end_line": last, "workspace": "/w"}
    return msgspec.convert({**values, **lines, **more}, Scope)


SCOPES = [
    scope(
        "c1",
        "Session.send",
        "method",
        "src/session.py",
        41,
        48,
        signature="async def send(self, text: str) -> int",
        doc="Send a message, at most twice.",
        text=SEND,
    ),
    scope("c2", "Session", "class", "src/session.py", 12, 90, signature="class Session(Base)", text="class Session:\n"),
    scope("c3", "main", "function", "src/app.py", 5, 30, signature="def main() -> None", text="def main(): ...\n"),
    scope(
        "c4", "Session.open", "method", "src/session.py", 20, 39, signature="def open(self)", text="def open(self):\n"
    ),
    scope("c5", f"odd_{HOSTILE}", "function", "src/a folder/odd.py", 1, 2, text=f"# {HOSTILE}\n"),
]


class CodeShelf:
    """Answers the requests about code."""

    def __init__(self) -> None:
        self.scopes = list(SCOPES)
        self.touched = [
            TouchedScope(scope=SCOPES[0], turn_index=9, turns=3),
            TouchedScope(scope=SCOPES[2], turn_index=4),
        ]
        self.talks: list[ScopeTalk] = []

    @answers(SearchCode)
    def _search_code(self, request: SearchCode) -> Any:
        query = request.query
        path = request.path
        below = [one for one in self.scopes if one.file.startswith(path)]
        return [_short(one) for one in below if query.casefold() in one.qualified_name.casefold()]

    @answers(FindScopes)
    def _find_scopes(self, request: FindScopes) -> Any:
        name = request.name
        return [_short(one) for one in self.scopes if name in (one.name, one.qualified_name)]

    @answers(ListTouchedCode)
    def _list_touched_code(self, request: ListTouchedCode) -> Any:
        return self.touched

    @answers(FetchScope)
    def _fetch_scope(self, request: FetchScope) -> Any:
        uuid = request.uuid
        return self._view(uuid)

    def _view(self, uuid: str) -> ScopeView:
        one = next((one for one in self.scopes if one.uuid == uuid), None)
        if one is None:
            raise NotFoundError("This code is no longer in the graph.")
        view = ScopeView(scope=_short(one), code=ScopeCode(text=one.text, first_line=one.start_line))
        if uuid == "c1":
            view.callers = [ScopeLink(scope=SCOPES[2], kind="calls", line=17)]
            view.callees = [ScopeLink(scope=SCOPES[3], kind="calls", line=45, confidence=0.7)]
            view.unresolved = [
                UnresolvedName(source="c1", name=name, kind="calls") for name in ("range", "log.warning")
            ]
            view.talks = self.talks
        return view


def talk(conversation_id: str, turn: int, text: str, title: str = "") -> ScopeTalk:
    """A turn about a scope."""
    return ScopeTalk(
        conversation_id=conversation_id,
        title=title,
        turn_index=turn,
        message_id=f"m{turn}",
        timestamp=CLOCK,
        role="user",
        text=text,
    )


def _short(one: Scope) -> Scope:
    return msgspec.structs.replace(one, text="")
