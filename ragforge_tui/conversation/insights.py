"""Runs over many past conversations that make their insights: chosen, counted, made in batches, cancelled."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from ragforge_tui.conversation.shared_memory import SharedMemory
from ragforge_tui.conversation.storage.graph_connection import GraphConnection
from ragforge_tui.graph import Store
from ragforge_tui.llm import THIS_MACHINE, ChatModel
from ragforge_tui.memory.findings.keeper import FindingKeeper
from ragforge_tui.memory.findings.shown import FindingOutcomes, outcomes_of
from ragforge_tui.memory.insights import InsightWriter, estimated_tokens, is_due
from ragforge_tui.shared.errors import ModelError, NotFoundError, RagforgeError
from ragforge_tui.shared.events import Event, InsightsProgress
from ragforge_tui.shared.finding_records import KeptFinding
from ragforge_tui.shared.past_records import InsightEntry, InsightPlan, InsightsMade, PastChoice
from ragforge_tui.shared.records import Conversation, ConversationFilter, Insight, fingerprint

log = logging.getLogger(__name__)

ALL = PastChoice()
BATCH = 4
"""Conversations that a remote model is asked about at once; one on this machine answers one after another."""
GIVEN_UP = 2
"""Failed batches in a row after which the rest of a run is left for later."""
_MOST = 100_000
_MOST_FOLDERS = 100


async def chosen(store: Store, choice: PastChoice) -> list[Conversation]:
    """Return the conversations of a choice, those that changed last first.

    Raises:
        NotFoundError: An id or the topic does not exist.
    """
    if choice.refs:
        named = [await store.conversations.resolve(ref) for ref in choice.refs]
        return [one for one in {one.uuid: one for one in named}.values() if one.status != "deleted"]
    found = await store.conversations.matching(
        ConversationFilter(
            status=choice.status,
            tags=choice.tags,
            workspace=choice.workspace,
            since=choice.since,
            until=choice.until,
            limit=_MOST,
        )
    )
    if choice.topic:
        on_topic = await store.topics.turns(choice.topic, workspace=choice.workspace)
        found = [one for one in found if one.uuid in on_topic]
    return [one for one in found if one.status != "deleted" and (not one.private or one.uuid == choice.current)]


class Insights:
    """Insights of past conversations, and the one run at a time that makes the missing ones.

    Args:
        memory: Gives the model that writes summaries.
        emit: Receives an event for each stored insight.
    """

    def __init__(self, graph: GraphConnection, memory: SharedMemory, emit: Callable[[Event], None]) -> None:
        self._graph = graph
        self._memory = memory
        self._emit = emit
        self._run: asyncio.Task[InsightsMade] | None = None
        self._made = 0
        self._left = 0

    async def entries(self, choice: PastChoice = ALL) -> list[InsightEntry]:
        """Return the stored insights of a choice, by default of all active conversations."""
        store = await self._graph.store()
        conversations = await chosen(store, choice)
        insights = await store.insights.of([one.uuid for one in conversations])
        shown = [one for one in conversations if one.uuid in insights]
        asking = choice.current if any(one.private for one in shown) else ""
        outcomes = await outcomes_of(store, list(dict.fromkeys(one.workspace for one in shown))[:_MOST_FOLDERS], asking)
        return [_entry(one, insights[one.uuid], outcomes) for one in shown]

    async def kept(self, choice: PastChoice) -> list[KeptFinding]:
        """Return the open points, wishes and decisions that a choice of conversations keeps now, newest first."""
        store = await self._graph.store()
        ids = [one.uuid for one in await chosen(store, choice)]
        return await store.findings.among(ids, kinds=("open", "wish", "decision"))

    async def plan(self, choice: PastChoice, most: int) -> InsightPlan:
        """Return what `make` would do."""
        model = await self._memory.summary_model("insight")
        due = await self._due(choice, model, most)
        if model is None:
            return InsightPlan(count=len(due))
        tokens = await asyncio.to_thread(estimated_tokens, due, model.context_window)
        return InsightPlan(count=len(due), tokens=tokens, model=model.name, destination=model.destination)

    async def make(self, choice: PastChoice = ALL, most: int = 0) -> InsightsMade:
        """Make the missing insights, each stored at once.

        Args:
            most: Most conversations that a model is asked about; 0 for no limit.

        Raises:
            RagforgeError: Another run is in progress.

        Examples:
            ```python
            await agent.past.insights.make(most=20)
            for insight in await agent.past.insights.entries():
                print(insight.main_topic, insight.key_findings, insight.action_items)
            ```
        """
        if self._run is not None:
            raise RagforgeError("Insights are being made already.", todo="Wait until they are done.", kind="busy")
        self._made = self._left = 0
        run = self._run = asyncio.create_task(self._make(choice, most), name="insights")
        try:
            return await run
        except asyncio.CancelledError:
            if (caller := asyncio.current_task()) is not None and caller.cancelling():
                raise
            return InsightsMade(made=self._made, left=self._left, cancelled=True)
        finally:
            self._run = None

    async def cancel(self) -> None:
        """Stop the run, if there is one, and wait until it has ended."""
        if (run := self._run) is not None:
            run.cancel()
            await asyncio.wait([run])

    async def _due(self, choice: PastChoice, model: ChatModel | None, most: int) -> list[Conversation]:
        store = await self._graph.store()
        conversations = await chosen(store, choice)
        insights = await store.insights.of([one.uuid for one in conversations])
        name = model.name if model is not None else ""
        due = [one for one in conversations if is_due(one, insights.get(one.uuid), name)]
        return due[:most] if most and name else due

    async def _make(self, choice: PastChoice, most: int) -> InsightsMade:
        model = await self._memory.summary_model("insight")
        everything = await self._due(choice, model, 0)
        due = everything[:most] if most and model is not None else everything
        self._left = len(everything)
        store = await self._graph.store()
        self._emit(InsightsProgress(done=0, total=len(due)))
        failures = 0
        size = BATCH if model is not None and model.destination != THIS_MACHINE else 1
        for start in range(0, len(due), size):
            batch = due[start : start + size]
            problems = await asyncio.gather(*(self._write(store, one, len(due)) for one in batch))
            failures = failures + 1 if all(problems) else 0
            if failures == GIVEN_UP:
                return InsightsMade(made=self._made, left=self._left, problem=next(filter(None, problems)))
        return InsightsMade(made=self._made, left=self._left)

    async def _write(self, store: Store, conversation: Conversation, total: int) -> str:
        """Write one insight and return why the model failed, empty if it did not."""
        writer = InsightWriter(store, await self._memory.summary_model("insight", conversation.uuid))
        try:
            insight = await writer.write(conversation)
            store = await self._graph.store()
            points = [*insight.key_findings, *insight.action_items]
            await FindingKeeper(store, conversation).noted(points, insight.made_by, insight.up_to_turn)
            outcomes = await outcomes_of(store, [conversation.workspace], conversation.uuid)
        except NotFoundError:
            self._left -= 1  # deleted meanwhile
            return ""
        except (ModelError, TimeoutError) as error:
            log.warning("no insight of %s: %s", conversation.uuid, str(error) or "the model did not answer in time")
            return str(error) or "The model did not answer in time."
        self._made += 1
        self._left -= 1
        self._emit(InsightsProgress(done=self._made, total=total, entry=_entry(conversation, insight, outcomes)))
        return ""


def _entry(conversation: Conversation, insight: Insight, outcomes: FindingOutcomes) -> InsightEntry:
    points = [*insight.key_findings, *insight.action_items]
    shown = outcomes.all_shown(points, conversation.uuid, insight.up_to_turn)
    fields = {name: getattr(insight, name) for name in insight.__struct_fields__}
    return InsightEntry(
        **fields,
        title=conversation.title,
        workspace=conversation.workspace,
        tags=conversation.tags,
        updated_at=conversation.updated_at,
        turns=conversation.next_turn - 1,
        gone={at: one for at, one in enumerate(shown) if one.became},
        outdated=insight.fingerprint != fingerprint(conversation),
    )
