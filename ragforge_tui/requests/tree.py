"""The requests about the memory piece by piece: a part of `protocol`, which everybody imports them from.

A screen asks for the outline of the tree of summaries and for the rest as it is looked at: a summary whole, what was
said in some turns, where a topic is found, what one request of a turn held.
"""

from __future__ import annotations

from datetime import datetime

import msgspec

from ragforge_tui.models import ContextRecord, Summary, Topic
from ragforge_tui.requests.base import Request


class TreeNode(msgspec.Struct, frozen=True, kw_only=True):
    """A summary in the outline of the tree.

    Attributes:
        headline: How it begins.
        parent: Id of the summary that summarises this one, empty while it stands on the frontier.
    """

    uuid: str
    level: int
    start_turn_index: int
    end_turn_index: int
    headline: str = ""
    topics: list[str] = []
    parent: str = ""


class MemoryDue(msgspec.Struct, frozen=True, kw_only=True):
    """What the summariser waits for.

    Attributes:
        next_turns: Turns until the next level 1 summary by count, and `next_chars` by text; whichever comes first.
        behind: Why the memory is not up to date; empty while it is.
        enabled: Whether summaries are made at all.
    """

    next_turns: int = 0
    next_chars: int = 0
    behind: str = ""
    enabled: bool = True


class MemoryTree(msgspec.Struct, frozen=True, kw_only=True):
    """The outline of what a conversation's memory holds.

    Attributes:
        summary: Two or three sentences on the whole conversation; empty until one was written.
        nodes: All levels, ascending by level and first turn.
        last_turn: The newest turn.
    """

    summary: str = ""
    nodes: list[TreeNode] = []
    topics: list[Topic] = []
    last_turn: int = 0
    due: MemoryDue = MemoryDue()


class FetchTree(Request[MemoryTree]):
    """The outline of the memory of an open conversation."""

    conversation_id: str


class FetchDue(Request[MemoryDue]):
    """What the summariser of an open conversation waits for."""

    conversation_id: str


class FetchSummary(Request[Summary]):
    """One summary whole. Fails with kind ``not_found`` when there is no such summary."""

    uuid: str


class TurnLine(msgspec.Struct, frozen=True, kw_only=True):
    """How a turn begins. `text` is the start of what the person said, as it was written."""

    turn_index: int
    text: str
    timestamp: datetime


class FetchTurnLines(Request[list[TurnLine]]):
    """How the turns from `first` to `last`, both included, begin."""

    conversation_id: str
    first: int
    last: int


class TopicPlace(msgspec.Struct, frozen=True, kw_only=True):
    """Turns whose summary has a topic, `first` to `last`, both included."""

    conversation_id: str
    title: str
    first: int
    last: int


class FetchTopicPlaces(Request[list[TopicPlace]]):
    """Where a topic, by id, name or alias, is found: in this conversation first, then in others of the workspace.

    A private conversation is looked into only when it is this one. Fails with kind ``not_found`` when no conversation
    in scope has the topic.
    """

    ref: str
    conversation_id: str = ""
    workspace: str | None = None


class SentRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What one of the requests of a turn held.

    Attributes:
        number: Which, from 1, of `count` that held different things.
        replies: How many replies of the model were given to requests that began so.
        last_turn: The newest turn of the conversation.
    """

    record: ContextRecord
    number: int
    count: int
    replies: int = 1
    last_turn: int = 0


class FetchSent(Request[SentRequest]):
    """What a request of a turn held, as it was sent; turn 0 is the newest, number 0 the last request of the turn.

    Fails with kind ``not_found`` when nothing was kept of it.
    """

    conversation_id: str
    turn_index: int = 0
    number: int = 0


TreeRequest = FetchTree | FetchDue | FetchSummary | FetchTurnLines | FetchTopicPlaces | FetchSent
