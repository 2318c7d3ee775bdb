"""What the memory of a scripted conversation holds: the same answers each time, with foreign text in them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec

from ragforge_tui.shared.context_choices import ChosenItem, item_key
from ragforge_tui.shared.errors import NotFoundError
from ragforge_tui.shared.finding_records import ShownFinding
from ragforge_tui.shared.records import (
    AccessedFile,
    ContextItem,
    ContextRecord,
    ContextSection,
    Finding,
    RelatedTopic,
    SimilarConversation,
    Summary,
    Topic,
)
from ragforge_tui.shared.requests.memory import (
    AnswerUse,
    ChooseContext,
    FetchDue,
    FetchFiles,
    FetchFindings,
    FetchNext,
    FetchSent,
    FetchSummary,
    FetchTopicPlaces,
    FetchTree,
    FetchTurnLines,
    FetchWhy,
    FindSimilar,
    ListTopics,
    MemoryDue,
    MemoryTree,
    MergeTopics,
    RecalledUse,
    SentRequest,
    ShownSummary,
    SummarizeConversation,
    TopicPlace,
    TreeNode,
    TurnLine,
    UnmergeTopic,
)
from tests.support.fake_answers import answers

if TYPE_CHECKING:
    from tests.support.fake_engine import FakeEngine

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

    def __init__(self, engine: FakeEngine) -> None:
        self._engine = engine
        self.files: list[AccessedFile] | None = None
        self.chosen: list[ChosenItem] = []
        self.summaries: dict[str, list[Summary]] = {}
        self.due = MemoryDue()
        self.merges: list[tuple[str, str]] = []
        self.requests = 1
        self.verified = True
        self.findings: list[ShownFinding] = []
        self.gone: dict[int, str] = {}
        self.uses: list[RecalledUse] = []

    @answers(FetchTree)
    def _fetch_tree(self, request: FetchTree) -> Any:
        uuid = request.conversation_id
        return MemoryTree(
            summary=self._engine.conversations[uuid].summary,
            nodes=[_node(one) for one in self._summaries(uuid)],
            topics=self._topics(),
            last_turn=len(self._engine.turns.get(uuid, [])),
            due=self.due,
        )

    @answers(FetchDue)
    def _fetch_due(self, request: FetchDue) -> Any:
        return self.due

    @answers(FetchSummary)
    def _fetch_summary(self, request: FetchSummary) -> Any:
        wanted = request.uuid
        known = [one for owner in self._engine.conversations for one in self._summaries(owner)]
        found = next((one for one in known if one.uuid == wanted), None)
        if found is None:
            raise NotFoundError("This summary is not there any more.")
        return ShownSummary(**{name: getattr(found, name) for name in found.__struct_fields__}, gone=self.gone)

    @answers(FetchTurnLines)
    def _fetch_turn_lines(self, request: FetchTurnLines) -> Any:
        first = request.first
        last = request.last
        return [
            TurnLine(turn_index=one.turn_index, text=one.messages[0].content, timestamp=CLOCK)
            for one in self._engine.turns.get(request.conversation_id, [])
            if first <= one.turn_index <= last
        ]

    @answers(FetchTopicPlaces)
    def _fetch_topic_places(self, request: FetchTopicPlaces) -> Any:
        uuid = request.conversation_id
        other = next((one for one in self._engine.conversations.values() if one.uuid != uuid), None)
        own = [TopicPlace(conversation_id=uuid, title="", first=1, last=3)] if uuid else []
        away = [TopicPlace(conversation_id=other.uuid, title=other.title, first=1, last=1)] if other else []
        return own + away

    @answers(FetchFindings)
    def _fetch_findings(self, request: FetchFindings) -> Any:
        uuid = request.conversation_id
        told = [finding for one in self._summaries(uuid) if one.level == 1 for finding in one.key_findings]
        return self.findings or [ShownFinding(text=one.text, turns=one.turns, kind=one.kind) for one in told]

    @answers(FetchSent)
    def _fetch_sent(self, request: FetchSent) -> Any:
        uuid = request.conversation_id
        turn = request.turn_index
        number = request.number
        last = max(len(self._engine.turns.get(uuid, [])), 7)
        if turn > last:
            raise NotFoundError(f"The conversation {uuid[:8]} has no turn {turn}.")
        record = msgspec.structs.replace(_context(uuid, turn or last), verified=self.verified)
        which = number or self.requests
        return SentRequest(
            record=record, number=which, count=self.requests, replies=2, last_turn=last, chosen=list(self.chosen)
        )

    @answers(FetchNext)
    def _fetch_next(self, request: FetchNext) -> Any:
        uuid = request.conversation_id
        last = max(len(self._engine.turns.get(uuid, [])), 7)
        record = _context(uuid, last + 1)
        record.sections[-1].items[-1].text = request.text
        return SentRequest(record=record, number=1, count=1, last_turn=last, preview=True, chosen=list(self.chosen))

    @answers(ChooseContext)
    def _choose_context(self, request: ChooseContext) -> Any:
        key = item_key(request.item, request.conversation_id)
        self.chosen = [one for one in self.chosen if one.key != key]
        if request.choice != "usual":
            self.chosen.append(ChosenItem(key=key, item=request.item, pinned=request.choice == "pin"))
        return self.chosen

    @answers(FetchWhy)
    def _fetch_why(self, request: FetchWhy) -> AnswerUse:
        if request.turn_index > 90:
            raise NotFoundError(f"No sent request of turn {request.turn_index} is stored.")
        return AnswerUse(turn_index=request.turn_index or 2, items=list(self.uses))

    def _summaries(self, uuid: str) -> list[Summary]:
        return self.summaries.get(uuid) or _summaries(uuid)

    def _topics(self) -> list[Topic]:
        topics = {topic.uuid: topic for topic in _topics()}
        for loser, winner in self.merges:
            gone = topics.pop(loser)
            topics[winner].related.append(RelatedTopic(uuid=loser, name=gone.name, relation="merged"))
        return list(topics.values())

    @answers(FetchFiles)
    def _fetch_files(self, request: FetchFiles) -> Any:
        return FILES if self.files is None else self.files

    @answers(SummarizeConversation)
    def _summarize_conversation(self, request: SummarizeConversation) -> Any:
        uuid = request.conversation_id
        found = self._engine.conversations[uuid]
        found.summary = "Discussed why retries doubled turns; done: one retry; found: the lock was missing."
        return found

    @answers(ListTopics)
    def _list_topics(self, request: ListTopics) -> Any:
        query = request.query
        return [topic for topic in self._topics() if query.lower() in topic.name]

    @answers(MergeTopics)
    def _merge_topics(self, request: MergeTopics) -> Any:
        a = request.a
        b = request.b
        winner, loser = sorted((a, b))
        self.merges.append((loser, winner))
        return next(topic for topic in _topics() if topic.uuid == winner)

    @answers(UnmergeTopic)
    def _unmerge_topic(self, request: UnmergeTopic) -> Any:
        ref = request.ref
        self.merges = [pair for pair in self.merges if pair[0] != ref]
        return next(topic for topic in _topics() if topic.uuid == ref)

    @answers(FindSimilar)
    def _find_similar(self, request: FindSimilar) -> Any:
        ref = request.ref
        others = [one for uuid, one in self._engine.conversations.items() if uuid != ref]
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
