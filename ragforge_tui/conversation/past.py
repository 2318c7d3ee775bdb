"""The past conversations of one agent as a whole: their insights, questions to them, and the work of some days."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from datetime import datetime

from ragforge_tui.conversation.insights import Insights, chosen
from ragforge_tui.conversation.shared_memory import SharedMemory
from ragforge_tui.conversation.storage.graph_connection import GraphConnection
from ragforge_tui.memory.past import PastQuestions, work_done
from ragforge_tui.memory.past.question import answer_from
from ragforge_tui.memory.spending import usage_report
from ragforge_tui.shared.errors import ModelError
from ragforge_tui.shared.events import Event
from ragforge_tui.shared.finding_records import KeptFinding, KeptKind
from ragforge_tui.shared.moments import last_working_day
from ragforge_tui.shared.past_records import PastChoice, Quote, Recalled, WorkDone
from ragforge_tui.shared.records import now
from ragforge_tui.shared.usage_records import UsageBy, UsageReport

log = logging.getLogger(__name__)


class Past:
    """Access to all past conversations: what was decided, done, found and spent in them.

    Attributes:
        insights: Their insights, and the run that makes the missing ones.
    """

    def __init__(self, graph: GraphConnection, memory: SharedMemory, emit: Callable[[Event], None]) -> None:
        self.insights = Insights(graph, memory, emit)
        self._graph = graph
        self._memory = memory
        self._questions = PastQuestions(memory.questions)

    async def recall(
        self, question: str, choice: PastChoice | None = None, *, limit: int = 10, answer: bool = False
    ) -> Recalled:
        """Return the passages that answer a question, and a model's answer from them if one is wanted.

        The passages are returned whatever becomes of the answer.

        Args:
            choice: The conversations to ask; None for all of this folder.

        Raises:
            RagforgeError: The question has no word to search for.

        Examples:
            ```python
            found = await agent.past.recall("Where is greet defined?", limit=3)
            for quote in found.quotes:
                print(quote.title, quote.turn_index, quote.quote)
            ```
        """
        choice = choice or PastChoice(workspace=self._memory.questions.workspace, status="any")
        conversations = await chosen(await self._graph.store(), choice)
        quotes = await self._questions.quotes(
            question, conversations, since=choice.since, until=choice.until, limit=limit
        )
        return await self._answered(question, quotes) if answer and quotes else Recalled(quotes=quotes)

    async def _answered(self, question: str, quotes: list[Quote]) -> Recalled:
        model = await self._memory.summary_model("answer", quotes[0].conversation_id)
        if model is None:
            return Recalled(quotes=quotes, problem="No model is configured, so the quotes stand alone.")
        try:
            text = await answer_from(model, question, quotes)
        except (ModelError, TimeoutError) as error:
            log.warning("no answer from the past: %s", error)
            return Recalled(quotes=quotes, problem=str(error) or f"{model.name} did not answer in time.")
        return Recalled(quotes=quotes, answer=text, answered_by=model.name)

    async def standup(
        self,
        since: datetime | None = None,
        *,
        until: datetime | None = None,
        workspace: str | None = None,
        current: str = "",
    ) -> list[WorkDone]:
        """Return the work done in a range of time.

        Args:
            since: None for the start of the last working day.
            workspace: Only in this folder; None for all.
            current: The open conversation, which may be private.

        Examples:
            ```python
            for work in await agent.past.standup():
                print(work.title, work.text, work.files, work.commits)
            ```
        """
        since = since or last_working_day(now())
        return await work_done(
            await self._graph.store(), since=since, until=until, workspace=workspace, private=current
        )

    async def findings(
        self, *, kinds: Collection[KeptKind] | None = None, workspace: str | None = None, current: bool = True
    ) -> list[KeptFinding]:
        """Return decisions, wishes, open points and facts, the newest first.

        Args:
            kinds: Only these; None for all.
            workspace: Those of this folder, None for the agent's, and those that hold everywhere.
            current: Leave out what is done, replaced or forgotten.

        Examples:
            ```python
            for finding in await agent.past.findings(kinds=["decision", "open"]):
                print(finding.kind, finding.text, finding.conversation_id, finding.turn_index)
            ```
        """
        folder = self._memory.questions.workspace if workspace is None else workspace
        return await (await self._graph.store()).findings.of_folder(folder, kinds=kinds, current=current)

    async def usage(
        self,
        by: UsageBy = "day",
        *,
        since: datetime | None = None,
        workspace: str | None = None,
        conversation_id: str = "",
    ) -> UsageReport:
        """Return what requests to models took: tokens, requests, and the price where it is known.

        Args:
            since: None for all that is stored.
            workspace: Only conversations of this folder.
            conversation_id: Only this conversation and its helpers.

        Examples:
            ```python
            for row in (await agent.past.usage("cause")).rows:
                print(row.group, row.name, row.input_tokens, row.cost_usd)
            ```
        """
        store = await self._graph.store()
        return await usage_report(store, by, since=since, workspace=workspace, conversation_id=conversation_id)
