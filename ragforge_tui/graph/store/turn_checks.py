"""Turns that do not hold exactly one answer, and moving an answer back to its question.

Until records found their turn by its first message, an answer could be stored under the question of another program
that wrote to the same conversation. One process runs one turn of a conversation at a time, so a reply belongs to the
last question that its writer had asked by then. Where that turn has no answer, the reply's place is certain.

Several replies of one turn are normal, as are superseded ones. An answer is a complete reply without calls.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any, Literal

import msgspec

from ragforge_tui.graph.connection import Graph, Transaction
from ragforge_tui.graph.labels import own_node
from ragforge_tui.graph.values import native
from ragforge_tui.graph.writer import writer_alive
from ragforge_tui.shared.records import now

_CONVERSATIONS_AT_ONCE = 200
_TURNS_AT_ONCE = 100
_TEXT_CHARS = 60
Problem = Literal["several answers", "no answer"]


class WrongTurn(msgspec.Struct, frozen=True, kw_only=True):
    """A turn with several answers, or with none.

    Attributes:
        question: Beginning of the user's message.
        moves: Uuids of its replies that certainly belong to other turns, with the indexes of those.
    """

    conversation_id: str
    turn_index: int
    problem: Problem
    question: str
    moves: dict[str, int] = {}


class _Said(msgspec.Struct):
    """A message as far as the check needs it."""

    uuid: str
    turn: int
    position: int
    role: str
    state: str
    writer: str
    lease_until: datetime | None
    timestamp: datetime
    doing: str
    text: str
    calls: int
    requests: int

    @property
    def is_answer(self) -> bool:
        """Whether it ends a turn, and this program wrote it: what was imported may have been divided otherwise."""
        return self.role == "assistant" and self.state == "complete" and not self.calls and self.requests > 0


class TurnChecks:
    """Check of the turns of all conversations."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    async def find(self) -> list[WrongTurn]:
        """Return the turns with several answers or none, without those that are being answered or ended in order."""
        found: list[WrongTurn] = []
        last = ""
        while rows := await self._graph.rows(
            f"MATCH {own_node('c', 'Conversation')} WHERE c.uuid > $last AND c.next_turn > 1 "
            "RETURN c.uuid AS uuid, c.next_turn AS next_turn ORDER BY uuid LIMIT $limit",
            last=last,
            limit=_CONVERSATIONS_AT_ONCE,
        ):
            for row in rows:
                found += _wrong_turns(row["uuid"], await self._turns(row["uuid"], row["next_turn"]))
            last = rows[-1]["uuid"]
        return found

    async def mend(self, found: list[WrongTurn]) -> int:
        """Move the replies whose turn is certain, and return their number; their turns get new recall keys."""
        moved = 0
        for wrong in found:
            for uuid, turn in wrong.moves.items():
                await self._move(wrong.conversation_id, uuid, wrong.turn_index, turn)
                moved += 1
        return moved

    async def _turns(self, conversation_id: str, next_turn: int) -> dict[int, list[_Said]]:
        turns: dict[int, list[_Said]] = {}
        for first in range(1, next_turn, _TURNS_AT_ONCE):
            rows = await self._graph.rows(
                "UNWIND range($first, $last) AS turn "
                f"MATCH {own_node('m', 'Message', 'conversation_id: $id, turn_index: turn')} "
                "WHERE m.state <> 'superseded' OPTIONAL MATCH (m)-[:MADE_TOOL_CALL]->(t:ToolCall) "
                "WITH m, count(t) AS calls OPTIONAL MATCH (m)-[:WAS_SENT]->(x:Context) "
                "WITH m, calls, count(x) AS requests RETURN m.uuid AS uuid, m.turn_index AS turn, "
                "m.position AS position, m.role AS role, m.state AS state, m.lease_until AS lease_until, "
                "m.timestamp AS timestamp, coalesce(toStringOrNull(m.writer), '') AS writer, "
                "coalesce(toStringOrNull(m.doing), '') AS doing, calls, requests, m.content_file AS text_file, "
                "substring(coalesce(toStringOrNull(m.content), ''), 0, $chars) AS text ORDER BY turn, position",
                id=conversation_id,
                first=first,
                last=min(first + _TURNS_AT_ONCE, next_turn) - 1,
                chars=_TEXT_CHARS,
            )
            await self._graph.contents.fill(rows, ("text",))
            for row in rows:
                row["text"] = row["text"][:_TEXT_CHARS]
                said = msgspec.convert({name: native(value) for name, value in row.items()}, _Said)
                turns.setdefault(said.turn, []).append(said)
        return turns

    async def _move(self, conversation_id: str, uuid: str, source: int, target: int) -> None:
        async def work(tx: Transaction) -> None:
            await tx.run(
                "MATCH (o:Message {conversation_id: $id, turn_index: $target}) WITH max(o.position) + 1 AS position "
                "MATCH (m:Message {uuid: $uuid, turn_index: $source}) "
                "SET m.turn_index = $target, m.position = position",
                id=conversation_id,
                uuid=uuid,
                source=source,
                target=target,
            )
            result = await tx.run(
                "MATCH (m:Message {conversation_id: $id, turn_index: $source}) "
                "RETURN m.uuid AS uuid, m.position AS position ORDER BY position",
                id=conversation_id,
                source=source,
            )
            rows: list[dict[str, Any]] = [dict(row) async for row in result]
            for position, row in enumerate(rows):
                if row["position"] != position:
                    await tx.run(
                        "MATCH (m:Message {uuid: $uuid}) SET m.position = $position",
                        uuid=row["uuid"],
                        position=position,
                    )
            # The next time the conversation is opened it makes them again.
            await tx.run(
                "MATCH (q:Message {conversation_id: $id, position: 0}) WHERE q.turn_index IN $turns "
                "SET q.recall_version = null",
                id=conversation_id,
                turns=[source, target],
            )

        await self._graph.write(work)


def _wrong_turns(conversation_id: str, turns: dict[int, list[_Said]]) -> Iterator[WrongTurn]:
    questions = [messages[0] for messages in turns.values() if messages[0].position == 0]
    # A process answers its newest question, or retries the newest turn of all.
    newest = {q.writer: q.turn for q in sorted(questions, key=lambda q: q.turn)}
    running = {*newest.values(), max(turns, default=0)}
    unanswered = {index for index, messages in turns.items() if _lacks_answer(messages, may_run=index in running)}
    taken: set[int] = set()
    for index, messages in turns.items():
        answers = [said for said in messages if said.is_answer]
        moves: dict[str, int] = {}
        if len(answers) > 1:
            for said in answers:
                home = _home(said, questions)
                if home != index and home in unanswered - taken and len(moves) < len(answers) - 1:
                    moves[said.uuid] = home
                    taken.add(home)
        if len(answers) > 1 or index in unanswered:
            yield WrongTurn(
                conversation_id=conversation_id,
                turn_index=index,
                problem="several answers" if len(answers) > 1 else "no answer",
                question=messages[0].text,
                moves=moves,
            )


def _home(said: _Said, questions: list[_Said]) -> int:
    """Return the turn of the last question that the writer of a reply had asked by then, 0 if that is unknown."""
    asked = [q for q in questions if q.writer == said.writer and q.timestamp <= said.timestamp]
    return max(asked, key=lambda q: (q.timestamp, q.turn)).turn if said.writer and asked else 0


def _lacks_answer(messages: list[_Said], *, may_run: bool) -> bool:
    """Return whether a turn ended without an answer and without saying why, and no process works on it."""
    last = messages[-1]
    if messages[0].role != "user" or messages[0].doing or any(said.role == "system" for said in messages):
        return False
    waits = last.role == "user" or (last.role == "assistant" and last.state == "complete" and last.calls > 0)
    return waits and not (may_run and last.writer and writer_alive(last.writer, last.lease_until, now()))
