"""All past conversations, and the code of the workspace, for programs without an event loop."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from ragforge_tui.code.lookup import CodeLookup
from ragforge_tui.conversation.insights import ALL, Insights
from ragforge_tui.conversation.loop_thread import LoopThread
from ragforge_tui.conversation.past import Past
from ragforge_tui.shared.code_records import BrainHit, Scope, UnresolvedName
from ragforge_tui.shared.code_views import ScopeCode, ScopeLink, ScopeView
from ragforge_tui.shared.finding_records import KeptFinding, KeptKind
from ragforge_tui.shared.past_records import InsightEntry, InsightsMade, PastChoice, Recalled, WorkDone
from ragforge_tui.shared.usage_records import UsageBy, UsageReport


class SyncInsights:
    """`Insights` whose methods wait for their results."""

    def __init__(self, insights: Insights, thread: LoopThread) -> None:
        self._insights = insights
        self._thread = thread

    def entries(self, choice: PastChoice = ALL) -> list[InsightEntry]:
        """See `Insights.entries`."""
        return self._thread.run(self._insights.entries(choice))

    def make(self, choice: PastChoice = ALL, most: int = 0) -> InsightsMade:
        """See `Insights.make`."""
        return self._thread.run(self._insights.make(choice, most))


class SyncPast:
    """`Past` whose methods wait for their results.

    Attributes:
        insights: Insights of past conversations.
    """

    def __init__(self, past: Past, thread: LoopThread) -> None:
        self.insights = SyncInsights(past.insights, thread)
        self._past = past
        self._thread = thread

    def recall(
        self, question: str, choice: PastChoice | None = None, *, limit: int = 10, answer: bool = False
    ) -> Recalled:
        """See `Past.recall`."""
        return self._thread.run(self._past.recall(question, choice, limit=limit, answer=answer))

    def standup(
        self,
        since: datetime | None = None,
        *,
        until: datetime | None = None,
        workspace: str | None = None,
        current: str = "",
    ) -> list[WorkDone]:
        """See `Past.standup`."""
        return self._thread.run(self._past.standup(since, until=until, workspace=workspace, current=current))

    def findings(
        self, *, kinds: Collection[KeptKind] | None = None, workspace: str | None = None, current: bool = True
    ) -> list[KeptFinding]:
        """See `Past.findings`."""
        return self._thread.run(self._past.findings(kinds=kinds, workspace=workspace, current=current))

    def usage(
        self,
        by: UsageBy = "day",
        *,
        since: datetime | None = None,
        workspace: str | None = None,
        conversation_id: str = "",
    ) -> UsageReport:
        """See `Past.usage`."""
        return self._thread.run(self._past.usage(by, since=since, workspace=workspace, conversation_id=conversation_id))


class SyncCode:
    """`CodeLookup` whose methods wait for their results."""

    def __init__(self, lookup: CodeLookup, thread: LoopThread) -> None:
        self._lookup = lookup
        self._thread = thread

    def search(self, query: str, *, path: str = "", kind: str = "", limit: int = 10) -> list[Scope]:
        """See `CodeLookup.search`."""
        return self._thread.run(self._lookup.search(query, path=path, kind=kind, limit=limit))

    def brain_search(self, query: str, *, limit: int = 10) -> list[BrainHit]:
        """See `CodeLookup.brain_search`."""
        return self._thread.run(self._lookup.brain_search(query, limit=limit))

    def named(self, name: str) -> list[Scope]:
        """See `CodeLookup.named`."""
        return self._thread.run(self._lookup.named(name))

    def in_file(self, path: str) -> list[Scope]:
        """See `CodeLookup.in_file`."""
        return self._thread.run(self._lookup.in_file(path))

    def code(self, scope: Scope) -> ScopeCode:
        """See `CodeLookup.code`."""
        return self._thread.run(self._lookup.code(scope))

    def view(self, scope: Scope) -> ScopeView:
        """See `CodeLookup.view`."""
        return self._thread.run(self._lookup.view(scope))

    def dependents(self, scope: Scope, *, depth: int = 1) -> list[ScopeLink]:
        """See `CodeLookup.dependents`."""
        return self._thread.run(self._lookup.dependents(scope, depth=depth))

    def dependencies(self, scope: Scope, *, depth: int = 1) -> tuple[list[ScopeLink], list[UnresolvedName]]:
        """See `CodeLookup.dependencies`."""
        return self._thread.run(self._lookup.dependencies(scope, depth=depth))
