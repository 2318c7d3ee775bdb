"""The sessions that other agents left on this machine, by agent and folder; Enter imports those of a row."""

from __future__ import annotations

from typing import Protocol

from ragforge_tui.shared.formatting import counted, size_text
from ragforge_tui.shared.found_sessions import FoundInFolder, ListedSession, SessionImport, by_folder
from ragforge_tui.shared.requests.imports import ImportFoundSession, ListFoundSessions
from ragforge_tui.shared.wire import R, Request
from ragforge_tui.tui.folder import folder_text
from ragforge_tui.tui.widgets.choice_list import Choice
from ragforge_tui.tui.widgets.list_screen import FilterScreen

EVERYTHING = "everything"
HERE = "here"
_ROOM = 50


class Ask(Protocol):
    """Sends a request to the engine."""

    async def __call__(self, request: Request[R]) -> R: ...


class ImportScreen(FilterScreen[None]):
    """Imports session by session, so that leaving stops after one and the next start goes on from there."""

    DEFAULT_CSS = """
    ImportScreen > Vertical { width: 100; height: 80%; }
    ImportScreen Input { margin: 1 0 1 0; }
    """

    def __init__(self, ask: Ask, folder: str) -> None:
        super().__init__(
            "Sessions of other agents", self._rows_now, empty="no other agent left sessions here", verb="import"
        )
        self._ask = ask
        self._folder = folder
        self._listed: list[ListedSession] = []
        self._told = ""

    async def _rows_now(self) -> list[Choice]:
        self._listed = await self._ask(ListFoundSessions())
        places = by_folder(self._listed)
        here = [place for place in places if place.folder == self._folder]
        rows = [_sum(HERE, "This folder", here)] if here else []
        rows += [_sum(EVERYTHING, "Everything", places)] if len(places) > 1 else []
        return [*rows, *(_row(number, place) for number, place in enumerate(places))]

    def narrow(self, at: str = "") -> None:
        """Keep the outcome of an import in view until the next key."""
        super().narrow(at)
        if self._told:
            self._keys.show_note(self._told)
            self._told = ""

    def pick(self, key: str) -> None:
        """Import the sessions of a row, in place of an import that runs."""
        self.run_guarded(self._import(self._sessions_of(key)), group="rows")

    def _sessions_of(self, key: str) -> list[ListedSession]:
        if key == EVERYTHING:
            return self._listed
        if key == HERE:
            return [entry for entry in self._listed if entry.session.folder == self._folder]
        place = by_folder(self._listed)[int(key)]
        return [e for e in self._listed if (e.session.agent, e.session.folder) == (place.agent, place.folder)]

    async def _import(self, chosen: list[ListedSession]) -> None:
        new = [entry.session for entry in chosen if not entry.imported]
        outcomes: list[SessionImport] = []
        for done, session in enumerate(new, start=1):
            self._keys.show_note(f"importing {done} of {len(new)} · esc stops")
            outcomes.append(await self._ask(ImportFoundSession(session=session)))
        self._told = _told(outcomes)
        at = self._list.chosen.key if self._list.chosen is not None else ""
        self._rows = await self._rows_now()
        self.narrow(at)


def _told(outcomes: list[SessionImport]) -> str:
    """Return the outcome as one line."""
    turns = sum(len(outcome.adds.turns) for outcome in outcomes)
    failed = [outcome.error for outcome in outcomes if outcome.outcome == "failed"]
    brought = sum(outcome.outcome in ("imported", "extended") for outcome in outcomes)
    if not outcomes:
        return "nothing new there · esc back"
    text = f"{counted(brought, 'session')} with {counted(turns, 'turn')} imported · /sessions lists them"
    return f"{text} · {len(failed)} failed: {failed[0]}" if failed else text


def _sum(key: str, label: str, places: list[FoundInFolder]) -> Choice:
    total = FoundInFolder(agent="", folder="")
    for place in places:
        total.sessions += place.sessions
        total.bytes += place.bytes
        total.imported += place.imported
    return Choice(key=key, label=label, detail=_detail(total), heading="All of")


def _row(number: int, place: FoundInFolder) -> Choice:
    folder = folder_text(place.folder, "", _ROOM) if place.folder else "folder unknown"
    return Choice(key=str(number), label=folder, detail=_detail(place), heading=place.agent)


def _detail(place: FoundInFolder) -> str:
    if not place.sessions:
        return "in a form that this version cannot read"
    new = place.sessions - place.imported
    state = f"{new} new" if new else "imported"
    return f"{counted(place.sessions, 'session')} · {size_text(place.bytes)} · {state}"
