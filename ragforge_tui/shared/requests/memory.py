"""Requests about the memory: summaries, topics, sent requests and similar conversations.

The user interface requests the outline of the summary tree first and the rest on demand: a complete summary, the first
lines of turns, the places of a topic, the content of a sent request.
"""

from __future__ import annotations

from datetime import datetime

import msgspec

from ragforge_tui.shared.context_choices import Choice, ChosenItem
from ragforge_tui.shared.finding_records import ShownFinding
from ragforge_tui.shared.records import (
    AccessedFile,
    ContextItem,
    ContextItemKind,
    ContextRecord,
    Conversation,
    SimilarConversation,
    Summary,
    Topic,
)
from ragforge_tui.shared.wire import Request


class FetchFiles(Request[list[AccessedFile]]):
    """Files that the agent touched in an open conversation, each once."""

    conversation_id: str


class SummarizeConversation(Request[Conversation]):
    """Write the conversation's own summary now."""

    conversation_id: str


class FindSimilar(Request[list[SimilarConversation]]):
    """Conversations with a summary similar to this one's, most similar first. `ref` is an id or unique prefix."""

    ref: str
    limit: int = 10
    min_score: float | None = None
    """Smallest cosine; None for `recall.min_score`."""


class ListTopics(Request[list[Topic]]):
    """Topics that match the words of `query` or are similar to it, in one workspace or in all."""

    query: str = ""
    limit: int = 50
    workspace: str | None = None


class ResolveTopic(Request[list[Topic]]):
    """Topics that a search limited to `ref` covers: the one of this name or id, else the most similar ones."""

    ref: str
    workspace: str | None = None


class MergeTopics(Request[Topic]):
    """Merge two topics, given by id, name or alias; the younger becomes part of the older."""

    a: str
    b: str


class UnmergeTopic(Request[Topic]):
    """Undo the merge of a topic, given by its id, its own name or an alias."""

    ref: str


class TreeNode(msgspec.Struct, frozen=True, kw_only=True):
    """A summary in the outline of the tree.

    Attributes:
        title: Three to six words.
        headline: The start of its text.
        parent: Id of the summary that includes this one, empty while it belongs to the frontier.
        created_at: When it was written.
    """

    uuid: str
    level: int
    start_turn_index: int
    end_turn_index: int
    title: str = ""
    headline: str = ""
    topics: list[str] = []
    parent: str = ""
    created_at: datetime | None = None


class MemoryDue(msgspec.Struct, frozen=True, kw_only=True):
    """Text left until the next summary.

    Attributes:
        next_turns: Turns left until the next level 1 summary; it is also due after `next_chars` characters.
        behind: Why the memory is out of date; empty while it is up to date.
        enabled: Whether summaries are enabled.
        words_only: Whether the memory is searched by words alone, because no vectors can be made.
    """

    next_turns: int = 0
    next_chars: int = 0
    behind: str = ""
    enabled: bool = True
    words_only: bool = False


class MemoryTree(msgspec.Struct, frozen=True, kw_only=True):
    """Outline of a conversation's memory.

    Attributes:
        summary: Two or three sentences on the whole conversation; empty until it is written.
        nodes: All levels, ascending by level and first turn.
        last_turn: The newest turn.
    """

    summary: str = ""
    nodes: list[TreeNode] = []
    topics: list[Topic] = []
    last_turn: int = 0
    due: MemoryDue = MemoryDue()


class FetchTree(Request[MemoryTree]):
    """Outline of the memory of an open conversation."""

    conversation_id: str


class FetchDue(Request[MemoryDue]):
    """Text left until the next summary of an open conversation."""

    conversation_id: str


class ShownSummary(Summary, kw_only=True):
    """Summary with what became of its findings that no longer hold, by their place."""

    gone: dict[int, str] = msgspec.field(default_factory=dict)


class FetchSummary(Request[ShownSummary]):
    """One complete summary. Fails with kind ``not_found`` if it does not exist."""

    uuid: str


class FetchFindings(Request[list[ShownFinding]]):
    """Decisions, open points and other findings of an open conversation, newest first; those that hold come first."""

    conversation_id: str


class TurnLine(msgspec.Struct, frozen=True, kw_only=True):
    """First line of a turn. `text` is the start of the user's message, verbatim."""

    turn_index: int
    text: str
    timestamp: datetime


class FetchTurnLines(Request[list[TurnLine]]):
    """First lines of the turns from `first` to `last`, both included."""

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
    """Places of a topic, given by id, name or alias: in this conversation first, then in others of the workspace.

    Private conversations other than this one are skipped. Fails with kind ``not_found`` if no conversation in scope has
    the topic.
    """

    ref: str
    conversation_id: str = ""
    workspace: str | None = None


class SentRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Content of one request of a turn.

    Attributes:
        number: Number of the request, from 1, among the `count` requests with different content.
        replies: Number of model replies to requests with this content.
        last_turn: The newest turn of the conversation.
        preview: Whether it was not sent: it is what the next message would be sent with.
        chosen: What the user left out of the next requests, or pinned; empty if the conversation is not open.
    """

    record: ContextRecord
    number: int
    count: int
    replies: int = 1
    last_turn: int = 0
    preview: bool = False
    chosen: list[ChosenItem] = []


class FetchSent(Request[SentRequest]):
    """Content of a sent request; turn 0 is the newest turn, number 0 the last request of the turn.

    Fails with kind ``not_found`` if no request of the turn is stored.
    """

    conversation_id: str
    turn_index: int = 0
    number: int = 0


class FetchNext(Request[SentRequest]):
    """What the next request of an open conversation would hold; nothing is sent or stored.

    Attributes:
        text: The message; empty for the text of the last one.
    """

    conversation_id: str
    text: str = ""


class ChooseContext(Request[list[ChosenItem]]):
    """Leave an item out of the next requests of an open conversation, pin it, or take that back; return all choices.

    Fails if such an item is always sent, or if pinned items would take too many tokens.
    """

    conversation_id: str
    item: ContextItem
    choice: Choice


class RecalledUse(msgspec.Struct, frozen=True, kw_only=True):
    """A recalled item of a request, and whether the answer used it.

    Attributes:
        text: Its beginning.
        conversation_id: Empty for the conversation of the request.
        turn_index: The turn it leads to; 0 for none.
        last_turn: For a summary, the last of its turns.
        always: Whether it is a wish, which is sent whatever the message is about.
        reason: Why it counts as used: the turn that the answer cites, or the words in common; empty if it does not.
    """

    kind: ContextItemKind
    text: str
    conversation_id: str = ""
    title: str = ""
    turn_index: int = 0
    last_turn: int = 0
    tokens: int = 0
    always: bool = False
    used: bool = False
    reason: str = ""


class AnswerUse(msgspec.Struct, frozen=True, kw_only=True):
    """What the answer of a turn used of the recalled items, in the order in which they were sent."""

    turn_index: int
    items: list[RecalledUse] = []


class FetchWhy(Request[AnswerUse]):
    """The recalled items of a turn's requests that its answer used; turn 0 is the newest one that asked a model.

    Fails with kind ``not_found`` if no request of the turn is stored.
    """

    conversation_id: str
    turn_index: int = 0
