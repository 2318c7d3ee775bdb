"""Requests about the memory as a whole; other modules import them from `wire`."""

from __future__ import annotations

import msgspec

from ragforge_tui.shared.records import AccessedFile, ContextRecord, Conversation, SimilarConversation, Summary, Topic
from ragforge_tui.shared.requests.base import Request


class FetchContext(Request[ContextRecord]):
    """Content of a turn's last request, as it was sent; turn 0 is the last turn that asked a model.

    Fails with kind ``not_found`` if no request of the turn is stored.
    """

    conversation_id: str
    turn_index: int = 0


class MemoryView(msgspec.Struct, kw_only=True, frozen=True):
    """Contents of a conversation's memory.

    Attributes:
        summary: Two or three sentences on the whole conversation; empty until it is written.
        summaries: All levels, ascending by level and first turn.
        next_turns: Turns left until the next level 1 summary; it is also due after `next_chars` characters.
        behind: Why the memory is out of date; empty while it is up to date.
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
    """Topics whose name or alias contains the words of `query`, in one workspace or in all."""

    query: str = ""
    limit: int = 50
    workspace: str | None = None


class MergeTopics(Request[Topic]):
    """Merge two topics, given by id, name or alias; the younger becomes part of the older."""

    a: str
    b: str


class UnmergeTopic(Request[Topic]):
    """Undo the merge of a topic, given by its id, its own name or an alias."""

    ref: str


class FindSimilar(Request[list[SimilarConversation]]):
    """Conversations with a summary similar to this one's, most similar first. `ref` is an id or unique prefix."""

    ref: str
    limit: int = 10
    min_score: float | None = None
    """Smallest cosine; None for `recall.min_score`."""


MemoryRequest = (
    FetchContext | FetchMemory | SummarizeConversation | ListTopics | MergeTopics | UnmergeTopic | FindSimilar
)
