"""What an import refuses: nothing of a refused file is stored, and nothing is added where nobody asked for it."""

from __future__ import annotations

import uuid
from collections.abc import Callable

import msgspec
import pytest

from ragforge_tui.graph import Graph, Store
from ragforge_tui.shared.errors import GraphError, GraphUnavailableError
from ragforge_tui.shared.export_records import ConversationExport, StoredContext
from ragforge_tui.shared.records import Summary, ToolResult, Turn, now
from tests.support.records import call_of, conversation, message, one_turn, rows_of
from tests.support.stored_memory import remembered

_NODES = "MATCH (n) WHERE NOT n:RagforgeSchema AND NOT n:RagforgeMigration RETURN n.uuid"
NO_IDS = [
    "",
    "a/b",
    "-rf",
    "../../x",
    "x/../../../../../victim/package",
    "z" * 5000,
    "\x1b[31mred",
    "nul\0x",
    "{12345678-1234-4234-8234-123456789abc}",
    "12345678-1234-4234-8234-123456789ABC",
    "12345678-1234-4234-8234-123456789abc\n",
    "12345678123442348234-123456789abc",
]


REFUSED_UNREAD = pytest.mark.parametrize("graph_target", ["embedded"], indirect=True)
"""Refused before the first request to a graph, so one backend is enough."""


@pytest.fixture
def store(graph: Graph) -> Store:
    return Store(graph)


def exported(turns: int = 2, **fields: object) -> ConversationExport:
    """A small export with one record of each kind that a turn leads to."""
    c = conversation(**fields)
    export = ConversationExport(conversation=c, turns=[])
    for index in range(1, turns + 1):
        answer = message(c.uuid, role="assistant", content=f"answer {index}", turn_index=index, position=1)
        call = call_of(answer.uuid)
        call.result = ToolResult(
            uuid=str(uuid.uuid4()), tool_call_id=call.uuid, success=True, result="{}", timestamp=now()
        )
        answer.tool_calls = [call]
        asked = message(c.uuid, content=f"question {index}", turn_index=index)
        export.turns.append(Turn(turn_index=index, messages=[asked, answer]))
    export.memory.summaries = [
        Summary(
            uuid=str(uuid.uuid4()),
            conversation_id=c.uuid,
            level=1,
            conversation_summary="s",
            start_turn_index=1,
            end_turn_index=turns,
            turn_count=turns,
            created_at=now(),
        )
    ]
    export.contexts = [
        StoredContext(
            uuid=str(uuid.uuid4()),
            turn_index=1,
            messages=[export.turns[0].messages[1].uuid],
            items="[]",
            created_at=now(),
        )
    ]
    return export


def renamed(export: ConversationExport, old: str, new: str) -> ConversationExport:
    """The export with one id replaced everywhere."""
    text = msgspec.json.encode(export).replace(msgspec.json.encode(old), msgspec.json.encode(new))
    return msgspec.json.decode(text, type=ConversationExport)


@REFUSED_UNREAD
@pytest.mark.parametrize("bad", NO_IDS, ids=range(len(NO_IDS)))
async def test_an_id_that_is_no_uuid_is_refused(store: Store, graph: Graph, bad: str) -> None:
    good = exported(1)
    with pytest.raises(GraphError, match="not a UUID") as refused:
        await store.transfer.import_(renamed(good, good.conversation.uuid, bad))
    assert refused.value.info.kept == "Nothing was stored."
    assert await rows_of(graph, _NODES) == 0


@REFUSED_UNREAD
@pytest.mark.parametrize("kind", ["message", "call", "result", "context", "summary"])
async def test_so_is_that_of_every_other_kind_of_node(store: Store, graph: Graph, kind: str) -> None:
    good = exported(1)
    answer = good.turns[0].messages[1]
    result = answer.tool_calls[0].result
    assert result
    ids = {
        "message": answer.uuid,
        "call": answer.tool_calls[0].uuid,
        "result": result.uuid,
        "context": good.contexts[0].uuid,
        "summary": good.memory.summaries[0].uuid,
    }
    with pytest.raises(GraphError, match="not a UUID"):
        await store.transfer.import_(renamed(good, ids[kind], "../../x"))
    assert await rows_of(graph, _NODES) == 0
    undashed = uuid.UUID(ids[kind]).hex
    assert (await store.transfer.import_(renamed(good, ids[kind], undashed))).created


def _turn_moved(to: int) -> Callable[[ConversationExport], None]:
    def change(e: ConversationExport) -> None:
        e.turns[1].turn_index = to
        for m in e.turns[1].messages:
            m.turn_index = to

    return change


def _message_of_another_turn(e: ConversationExport) -> None:
    e.turns[1].messages[1].turn_index = 10**9


def _no_message(e: ConversationExport) -> None:
    e.turns[1].messages = []


def _a_far_position(e: ConversationExport) -> None:
    e.turns[1].messages[0].position = 5


def _of_another_conversation(e: ConversationExport) -> None:
    for m in e.turns[1].messages:
        m.conversation_id = str(uuid.uuid4())


def _branch_far_away(e: ConversationExport) -> None:
    e.conversation.branch_of, e.conversation.branch_turn = str(uuid.uuid4()), 10**9


def _turn_without_a_parent(e: ConversationExport) -> None:
    e.conversation.branch_turn = 10**9


def _a_high_level(e: ConversationExport) -> None:
    e.memory.summaries[0].level = 10**9


def _a_long_summary(e: ConversationExport) -> None:
    e.memory.summaries[0].end_turn_index = 10**9


def _a_foreign_summary(e: ConversationExport) -> None:
    e.memory.summaries[0].conversation_id = str(uuid.uuid4())


def _a_foreign_context(e: ConversationExport) -> None:
    e.contexts[0].messages.append(str(uuid.uuid4()))


def _a_call_of_another_message(e: ConversationExport) -> None:
    e.turns[0].messages[1].tool_calls[0].message_id = str(uuid.uuid4())


def _a_number_too_large(e: ConversationExport) -> None:
    e.turns[0].messages[1].token_count = 2**63


def _twice(e: ConversationExport) -> None:
    e.turns[1].messages[0].uuid = e.turns[0].messages[0].uuid


@REFUSED_UNREAD
@pytest.mark.parametrize(
    "change",
    [
        *(_turn_moved(to) for to in (10**9, 2**63 - 1, 3, 1, 0, -5)),
        _message_of_another_turn,
        _no_message,
        _a_far_position,
        _of_another_conversation,
        _branch_far_away,
        _turn_without_a_parent,
        _a_high_level,
        _a_long_summary,
        _a_foreign_summary,
        _a_foreign_context,
        _a_call_of_another_message,
        _a_number_too_large,
        _twice,
    ],
)
async def test_records_that_do_not_belong_together_are_refused(
    store: Store, graph: Graph, change: Callable[[ConversationExport], None]
) -> None:
    export = exported(2)
    change(export)
    with pytest.raises(GraphError, match="cannot be imported"):
        await store.transfer.import_(export)
    assert await rows_of(graph, _NODES) == 0


async def test_nothing_is_added_to_a_conversation_unless_asked(store: Store, graph: Graph) -> None:
    uuid_ = await remembered(store)
    export = await store.transfer.export(uuid_)
    nodes = await rows_of(graph, _NODES)
    last = len(export.turns)
    forged = message(uuid_, content="INJECTED", turn_index=last + 1)
    export.turns.append(Turn(turn_index=last + 1, messages=[forged]))
    with pytest.raises(GraphError, match=rf"would add to it: turn {last + 1}, 1 message\b") as refused:
        await store.transfer.import_(export)
    assert "--merge" in refused.value.info.todo
    assert await rows_of(graph, _NODES) == nodes
    done = await store.transfer.import_(export, merge=True)
    assert (done.created, done.adds.turns, done.adds.messages) == (False, [last + 1], 1)
    assert (await store.turns.between(uuid_, start=last + 1, end=99))[0].messages[0].content == "INJECTED"


async def test_a_message_or_call_more_in_a_known_turn_counts_too(store: Store) -> None:
    export = exported(1)
    await store.transfer.import_(export)
    answer = export.turns[0].messages[1]
    answer.tool_calls.append(call_of(answer.uuid, ordinal=1))
    with pytest.raises(GraphError, match="1 tool call"):
        await store.transfer.import_(export)
    answer.tool_calls.pop()
    export.turns[0].messages.append(message(answer.conversation_id, role="assistant", turn_index=1, position=2))
    with pytest.raises(GraphError, match="1 message"):
        await store.transfer.import_(export)


async def test_an_unchanged_file_is_nothing_new(store: Store) -> None:
    export = await store.transfer.export(await remembered(store))
    again = await store.transfer.import_(export)
    assert (again.created, bool(again.adds), again.adds.text()) == (False, False, "nothing new")
    await store.purges.purge(export.conversation.uuid)
    first = await store.transfer.import_(export)
    assert first.created
    assert first.adds.turns == [turn.turn_index for turn in export.turns]
    assert first.adds.summaries == len(export.memory.summaries)
    assert not (await store.transfer.import_(export)).adds


@pytest.mark.parametrize("merge", [False, True])
async def test_no_turn_goes_into_a_conversation_the_file_is_not_about(store: Store, graph: Graph, merge: bool) -> None:
    victim = await store.conversations.create(conversation(title="mine"))
    await one_turn(store, victim.uuid, "q")
    shared = (await store.transfer.export(victim.uuid)).turns
    attack = exported(2, branch_of=victim.uuid, branch_turn=2)
    attack.turns[0] = shared[0]
    for m in attack.turns[1].messages:
        m.conversation_id = victim.uuid
    attack.memory.summaries, attack.contexts = [], []
    before = await rows_of(graph, _NODES)
    with pytest.raises(GraphError, match=f"branch of conversation {victim.uuid} and would add turn 2"):
        await store.transfer.import_(attack, merge=merge)
    assert await rows_of(graph, _NODES) == before
    assert (await store.conversations.get(victim.uuid)).next_turn == 2


async def test_a_record_that_is_somebody_elses_is_refused(store: Store, graph: Graph) -> None:
    mine = exported(1)
    await store.transfer.import_(mine)
    before = await rows_of(graph, _NODES)
    for taken in (mine.turns[0].messages[0].uuid, mine.turns[0].messages[1].tool_calls[0].uuid):
        other = exported(1)
        answer = other.turns[0].messages[1]
        theirs = (
            answer.tool_calls[0].uuid if taken != mine.turns[0].messages[0].uuid else other.turns[0].messages[0].uuid
        )
        with pytest.raises(GraphError, match="another position"):
            await store.transfer.import_(renamed(other, theirs, taken), merge=True)
    assert await rows_of(graph, _NODES) == before


async def test_only_the_file_that_was_cut_short_continues_without_being_asked(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    export = exported(2)
    real, left = Graph.write, 2

    async def write(self: Graph, work, **options):  # type: ignore[no-untyped-def]
        nonlocal left
        left -= 1
        if left < 0:
            raise GraphUnavailableError("cut")
        return await real(self, work, **options)

    monkeypatch.setattr(Graph, "write", write)
    with pytest.raises(GraphUnavailableError):
        await store.transfer.import_(export)
    monkeypatch.undo()
    other = msgspec.json.decode(msgspec.json.encode(export), type=ConversationExport)
    other.turns[1].messages[1].content = "not what was being imported"
    with pytest.raises(GraphError, match="would add"):
        await store.transfer.import_(other)
    assert (await store.transfer.import_(export)).created
    assert not (await store.transfer.import_(export)).created


async def test_a_huge_turn_index_of_an_earlier_release_is_read_at_once(store: Store, graph: Graph) -> None:
    c = await store.conversations.create(conversation())
    await one_turn(store, c.uuid, "first")

    async def work(tx) -> None:  # type: ignore[no-untyped-def]
        await tx.run(
            "MATCH (c:Conversation {uuid: $uuid}), (m:Message {conversation_id: $uuid, position: 0}) "
            "SET c.next_turn = 1000000001 "
            "CREATE (c)-[:HAS_MESSAGE]->(:Message {uuid: $other, conversation_id: $uuid, turn_index: 1000000000, "
            "position: 0, role: 'user', content: 'far', state: 'complete', timestamp: m.timestamp})",
            uuid=c.uuid,
            other=str(uuid.uuid4()),
        )

    await graph.write(work)
    export = await store.transfer.export(c.uuid)
    assert [turn.turn_index for turn in export.turns] == [1, 10**9]
    assert [line.turn_index for line in await store.turns.lines(c.uuid, 1, 10**9)] == [1, 10**9]
