"""Records of attempts: commands that failed, edits that were undone, calls that the user refused."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

import msgspec

AttemptOutcome = Literal["missing", "needed", "extra", "other", "undone", "refused"]
"""``missing``: a program that was not found, where another way to start it worked. ``needed``: a command that failed
until it had more words; ``extra``: until words were left out; ``other``: until it was written in another way.
``undone``: an edit that was taken back. ``refused``: an edit or a command that the user did not want."""


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """A call or an edit that was tried in vain, and its outcome.

    Attributes:
        uuid: Derived from conversation, turn, key, outcome and what, so that storing it twice is storing it once.
        turn_index: The turn that tried it.
        end_turn: The turn in which it was undone or refused, or in which something else worked.
        message: Id of the message that tried it.
        workspace: Folder in which it was tried.
        key: What is looked up before something like it is tried again: the path of a file, or the program of a command
            with its subcommand.
        what: What was tried, on one line.
        why: The user's words, or what the failed command said; empty if nobody said.
        instead: What worked; for ``needed`` and ``extra`` the words that made the difference.
        words: The words of a command that failed or was refused.
        marks: Digests of the lines that an edit added and removed.
        scopes: Ids of the scopes that an edit was in.
        over: Whether it no longer holds: the same has worked since, or the undo was undone.
    """

    uuid: str
    conversation_id: str
    turn_index: int
    end_turn: int
    message: str
    workspace: str
    key: str
    outcome: AttemptOutcome
    what: str
    why: str = ""
    instead: str = ""
    words: list[str] = []
    marks: list[str] = []
    scopes: list[str] = []
    at: datetime
    over: bool = False
