"""Phrases an extractive summary adds around quotations, by language.

Used by `extractive`, `joining` and `actions`; the words themselves are in `phrase_tables`.
"""

from __future__ import annotations

import msgspec


class Phrases(msgspec.Struct, frozen=True, kw_only=True):
    """Phrases of one language; `{}` marks the place of the quoted text."""

    quote: str
    asked: str
    said: str
    then_asked: str
    then_said: str
    answer: str
    reply: str
    no_answer: str
    interrupted: str
    turn: str
    turns: str
    about: str
    began: str
    done: str
    found: str
    person: str
    read: str
    wrote: str
    edited: str
    created: str
    listed: str
    searched: str
    looked_for: str
    ran: str
    planned: str
    told: str
    used: str
    failed: str
    unknown: str
    matches: str
    entries: str
    lines: str
    exit: str
    times: str
    why: str
    and_more: str
    nothing: str
    conjunction: str
