"""What the memory of a scripted conversation holds: the same answers each time, with foreign text in them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec

from ragforge_tui.shared.errors import NotFoundError
from ragforge_tui.shared.records import (
    AccessedFile,
    ContextItem,
    ContextRecord,
    ContextSection,
    Conversation,
    Finding,
    RelatedTopic,
    SimilarConversation,
    Summary,
    Topic,
    Turn,
)
from ragforge_tui.shared.requests.memory import (
    FetchDue,
    FetchFiles,
    FetchFindings,
    FetchSent,
    FetchSummary,
    FetchTopicPlaces,
    FetchTree,
    FetchTurnLines,
    FindSimilar,
    ListTopics,
    MemoryDue,
    MemoryTree,
    MergeTopics,
    SentRequest,
    SummarizeConversation,
    TopicPlace,
    TreeNode,
    TurnLine,
    UnmergeTopic,
)
from tests.support.request_subjects import MemoryRequest, TreeRequest

CLOCK = datetime(2026, 11, 3, 14, 2, tzinfo=UTC)
HOSTILE = "\x1b[31m[bold]red[/bold]\x1b]0;owned\x07"


def summary(uuid: str, level: int, first: int, last: int, text: str, **more: Any) -> Summary:
    """A summary of the scene."""
    return Summary(
        uuid=f"s{level}-{first}",
        conversation_id=uuid,
        level=level,
        conversation_summary=text,
        start_turn_index=first,
        end_turn_index=last,
        turn_count=last - first + 1,
        made_by="extractive",
        created_at=CLOCK,
        **more,
    )


class MemoryShelf:
    """Answers the requests about the memory."""

    def __init__(self, conversations: dict[str, Conversation]) -> None:
        self._conversations = conversations
        self.files: list[AccessedFile] | None = None
        self.summaries: dict[str, list[Summary]] = {}
        self.due = MemoryDue()
        self.merges: list[tuple[str, str]] = []
        self.requests = 1
        self.verified = True

    def piece(self, request: TreeRequest, turns: list[Turn]) -> Any:
        """As the engine would answer a request about a piece of the memory."""
        match request:
            case FetchTree(conversation_id=uuid):
                return MemoryTree(
                    summary=self._conversations[uuid].summary,
                    nodes=[_node(one) for one in self._summaries(uuid)],
                    topics=self._topics(),
                    last_turn=len(turns),
                    due=self.due,
                )
            case FetchDue():
                return self.due
            case FetchSummary(uuid=wanted):
                known = [one for owner in self._conversations for one in self._summaries(owner)]
                found = next((one for one in known if one.uuid == wanted), None)
                if found is None:
                    raise NotFoundError("This summary is not there any more.")
                return found
            case FetchTurnLines(first=first, last=last):
                return [
                    TurnLine(turn_index=one.turn_index, text=one.messages[0].content, timestamp=CLOCK)
                    for one in turns
                    if first <= one.turn_index <= last
                ]
            case FetchTopicPlaces(conversation_id=uuid):
                other = next((one for one in self._conversations.values() if one.uuid != uuid), None)
                own = [TopicPlace(conversation_id=uuid, title="", first=1, last=3)] if uuid else []
                away = [TopicPlace(conversation_id=other.uuid, title=other.title, first=1, last=1)] if other else []
                return own + away
            case FetchFindings(conversation_id=uuid):
                return [finding for one in self._summaries(uuid) if one.level == 1 for finding in one.key_findings]
            case FetchSent(conversation_id=uuid, turn_index=turn, number=number):
                last = max(len(turns), 7)
                if turn > last:
                    raise NotFoundError(f"The conversation {uuid[:8]} has no turn {turn}.")
                record = msgspec.structs.replace(_context(uuid, turn or last), verified=self.verified)
                which = number or self.requests
                return SentRequest(record=record, number=which, count=self.requests, replies=2, last_turn=last)

    def _summaries(self, uuid: str) -> list[Summary]:
        return self.summaries.get(uuid) or _summaries(uuid)

    def _topics(self) -> list[Topic]:
        topics = {topic.uuid: topic for topic in _topics()}
        for loser, winner in self.merges:
            gone = topics.pop(loser)
            topics[winner].related.append(RelatedTopic(uuid=loser, name=gone.name, relation="merged"))
        return list(topics.values())

    def answer(self, request: MemoryRequest) -> Any:
        """As the engine would."""
        match request:
            case FetchFiles():
                return FILES if self.files is None else self.files
            case SummarizeConversation(conversation_id=uuid):
                found = self._conversations[uuid]
                found.summary = "Discussed why retries doubled turns; done: one retry; found: the lock was missing."
                return found
            case ListTopics(query=query):
                return [topic for topic in self._topics() if query.lower() in topic.name]
            case MergeTopics(a=a, b=b):
                winner, loser = sorted((a, b))
                self.merges.append((loser, winner))
                return next(topic for topic in _topics() if topic.uuid == winner)
            case UnmergeTopic(ref=ref):
                self.merges = [pair for pair in self.merges if pair[0] != ref]
                return next(topic for topic in _topics() if topic.uuid == ref)
            case FindSimilar(ref=ref):
                others = [one for uuid, one in self._conversations.items() if uuid != ref]
                return [SimilarConversation(conversation=one, score=0.81 - n / 10) for n, one in enumerate(others)]


def _node(made: Summary) -> TreeNode:
    return TreeNode(
        uuid=made.uuid,
        level=made.level,
        start_turn_index=made.start_turn_index,
        end_turn_index=made.end_turn_index,
        title=made.title,
        headline=made.conversation_summary,
        topics=made.topics,
        parent=made.parent,
        created_at=made.created_at,
    )


def _topics() -> list[Topic]:
    near = RelatedTopic(uuid="t2", name="locks", confidence=0.6)
    return [
        Topic(uuid="t1", name="retries", created_at=CLOCK, summaries=3, conversations=2, related=[near]),
        Topic(uuid="t2", name=f"locks {HOSTILE}", created_at=CLOCK, summaries=1, conversations=1),
    ]


def _summaries(uuid: str) -> list[Summary]:
    finding = Finding(text="The second retry began before the first had ended.", turns=[2, 3], kind="decision")
    return [
        summary(
            uuid,
            1,
            1,
            3,
            "The user asked why turns double.",
            parent="s2-1",
            title=f"Doubled turns {HOSTILE}",
            key_findings=[finding],
        ),
        summary(uuid, 1, 4, 5, f"The lock was added. {HOSTILE}", parent="s2-1", topics=["locks"]),
        summary(uuid, 2, 1, 5, "Retries were studied and mended.", actions_summary="Read store.py, edited it."),
    ]


FILES = [
    AccessedFile(path="src/store.py", group="modified", tool="edit_file", turn_index=4, timestamp=CLOCK),
    AccessedFile(path="README.md", group="read", tool="read_file", turn_index=1, timestamp=CLOCK),
]


def _context(uuid: str, turn: int) -> ContextRecord:
    return ContextRecord(
        conversation_id=uuid,
        turn_index=turn,
        model="claude-sonnet",
        budget=25_000,
        tokens=1_240,
        created_at=CLOCK,
        sections=[
            ContextSection(
                name="system",
                title="Instructions",
                tokens=40,
                items=[ContextItem(kind="persona", title="Ragnarök", tokens=40, text="Be ✶.")],
            ),
            ContextSection(
                name="recalled",
                title="Earlier turns that may matter",
                budget=3_000,
                tokens=1_200,
                items=[
                    ContextItem(kind="turn", turn_index=2, date=CLOCK, tokens=80, text="> Why twice?\nThe lock."),
                    ContextItem(
                        kind="turn",
                        conversation_id="00000002-0000",
                        title="Index allocation",
                        turn_index=9,
                        date=CLOCK,
                        tokens=60,
                        cut=120,
                        text=f"> And here? {HOSTILE}",
                    ),
                ],
            ),
        ],
    )
