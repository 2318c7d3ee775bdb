"""The requests about the memory as a whole: a part of `protocol`, which everybody imports them from."""

from __future__ import annotations

import msgspec

from ragforge_tui.models import AccessedFile, ContextRecord, Conversation, SimilarConversation, Summary, Topic
from ragforge_tui.requests.base import Request


class FetchContext(Request[ContextRecord]):
    """What the requests of a turn held, as it was sent; turn 0 is the last one that asked a model.

    Fails with kind ``not_found`` when nothing was kept of it.
    """

    conversation_id: str
    turn_index: int = 0


class MemoryView(msgspec.Struct, kw_only=True, frozen=True):
    """What a conversation's memory holds.

    Attributes:
        summary: Two or three sentences on the whole conversation; empty until one was written.
        summaries: All levels, ascending by level and first turn.
        next_turns: Turns until the next level 1 summary by count, and `next_chars` by text; whichever comes first.
        behind: Why the memory is not up to date; empty while it is.
    """

    summary: str = ""
    summaries: list[Summary] = []
    topics: list[Topic] = []
    files: list[AccessedFile] = []
    next_turns: int = 0
    next_chars: int = 0
    behind: str = ""


class FetchMemory(Request[MemoryView]):
    """The memory of an open conversation."""

    conversation_id: str


class SummarizeConversation(Request[Conversation]):
    """Write the conversation's own summary now."""

    conversation_id: str


class ListTopics(Request[list[Topic]]):
    """Topics whose name or alias holds the words of `query`; of one workspace when it is given."""

    query: str = ""
    limit: int = 50
    workspace: str | None = None


class MergeTopics(Request[Topic]):
    """Make two topics one, each by id, name or alias: the younger goes into the older."""

    a: str
    b: str


class UnmergeTopic(Request[Topic]):
    """Undo the merge of a topic, by its id, its own name or an alias."""

    ref: str


class FindSimilar(Request[list[SimilarConversation]]):
    """Conversations whose summary is like this one's, most similar first. `ref` is an id or unique prefix."""

    ref: str
    limit: int = 10
    min_score: float | None = None
    """Smallest cosine; None: `recall.min_score`."""


MemoryRequest = (
    FetchContext | FetchMemory | SummarizeConversation | ListTopics | MergeTopics | UnmergeTopic | FindSimilar
)
