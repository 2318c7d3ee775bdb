"""Requests about the sessions of other agents: which there are, and importing one."""

from __future__ import annotations

from ragforge_tui.shared.found_sessions import FoundSession, ListedSession, SessionImport
from ragforge_tui.shared.wire import Request


class ListFoundSessions(Request[list[ListedSession]]):
    """Sessions that other agents left on this machine, or those in some files."""

    agents: tuple[str, ...] = ()
    """Names as in `--from`; empty for all."""
    folder: str = ""
    """Folder whose own sessions are looked for too, in addition to the workspace's."""
    files: tuple[str, ...] = ()
    """Paths of sessions, databases, exports, or folders with them, to look into instead."""


class ImportFoundSession(Request[SessionImport]):
    """Import one session. What cannot be read is reported in the answer, so that the next one can follow."""

    session: FoundSession
