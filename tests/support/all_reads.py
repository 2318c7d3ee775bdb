"""Everything that reads a graph: the requests of a screen, the store behind the commands, backup, check and compact."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

from ragforge_tui.engine.in_process import InProcessEngine
from ragforge_tui.graph import Graph, Store
from ragforge_tui.graph.backup.backup_file import check
from ragforge_tui.graph.backup.snapshot import back_up
from ragforge_tui.shared.errors import NotFoundError
from ragforge_tui.shared.records import ConversationFilter, now
from ragforge_tui.shared.requests import memory, past, sessions, turns, work

Read = tuple[str, Callable[[], Awaitable[Any]]]


def requests_for(uuid: str, workspace: str | None) -> Iterator[Any]:
    """Requests of a screen that reads one conversation, or those of a folder; None: of all folders."""
    everything = past.PastChoice(workspace=workspace)
    yesterday = now() - timedelta(days=1)
    yield sessions.ListConversations(filter=ConversationFilter(status="any", workspace=workspace, query="e"))
    yield sessions.FollowConversations(since=yesterday, workspace=workspace)
    yield sessions.PeekConversation(conversation_id=uuid)
    yield sessions.Search(query="question wait", workspace=workspace)
    yield sessions.Search(query="question", topic="Shared", workspace=workspace)
    yield sessions.ExportConversation(ref=uuid)
    yield turns.OpenConversation(ref=uuid)
    yield turns.FetchTurns(conversation_id=uuid, start=1, end=20)
    yield turns.FindText(conversation_id=uuid, text="app")
    yield memory.FetchFiles(conversation_id=uuid)
    yield memory.FindSimilar(ref=uuid, min_score=-1.0)
    yield memory.ListTopics(workspace=workspace)
    yield memory.ListTopics(query="topic", workspace=workspace)
    yield memory.ResolveTopic(ref="Shared", workspace=workspace)
    yield memory.FetchTree(conversation_id=uuid)
    yield memory.FetchDue(conversation_id=uuid)
    yield memory.FetchFindings(conversation_id=uuid)
    yield memory.FetchTurnLines(conversation_id=uuid, first=1, last=9)
    yield memory.FetchTopicPlaces(ref="Shared", conversation_id=uuid, workspace=workspace)
    yield memory.FetchSent(conversation_id=uuid, turn_index=2)
    yield memory.FetchWhy(conversation_id=uuid, turn_index=2)
    yield past.ListInsights(choice=everything)
    yield past.PlanInsights(choice=everything)
    yield past.RecallPast(question="What was question 2 about?", choice=everything)
    yield past.Standup(since=yesterday, workspace=workspace)
    yield past.FetchUsage(by="cause", workspace=workspace)
    yield work.ListCalls(conversation_id=uuid)
    yield work.SessionDiff(conversation_id=uuid)
    yield work.PlanUndo(conversation_id=uuid)


def reads_of(store: Store, uuid: str, folder: Path) -> Iterator[Read]:
    """Calls of the store that commands make."""
    graph: Graph = store.graph
    yield "resolve", lambda: store.conversations.resolve(uuid[:8])
    yield "latest", lambda: store.conversations.latest("/w")
    yield "pulse", lambda: store.conversations.pulse(uuid)
    yield "expired", store.purges.expired
    yield "keys", lambda: store.recall.conversations_without_keys(99)
    yield "spans", lambda: sampled(store)
    yield "rows", lambda: store.recall.rows(uuid, start=1, end=9)
    yield "files", lambda: store.files.writes(uuid, ["write_it"], "/w")
    yield "mentions", lambda: store.files.mentions(uuid, before=9)
    yield "code", lambda: store.code.by_name("/w", "f1")
    yield "attempts", lambda: store.attempts.about("/w", ["src/app.py"], asking=uuid)
    yield "attempts of one", lambda: store.attempts.of_conversation(uuid)
    yield "unexamined", lambda: store.attempts.unexamined("/w")
    yield "lines", lambda: store.code.in_lines("/w", "src/app.py", 1, 9)
    yield "totals", store.code.totals
    yield "touched code", lambda: store.code_links.touched(uuid)
    yield "talks", lambda: store.code.conversations_about("s1")
    yield "count", lambda: store.code.count("/w")
    yield "neighbours", lambda: store.code.dependencies("s0")
    yield "unresolved", lambda: store.code.unresolved("s0")
    yield "words", lambda: store.code.search.vectors.words("/w", "fake")
    yield "commits", lambda: store.commits.turns_of_commits(["0123456789"])
    yield "a turn", lambda: store.commits.turn_at(uuid, 1)
    yield "a decision", lambda: store.commits.decision(uuid, 1)
    yield "changed lines", lambda: store.files.changed_lines([("/w", "src/app.py")])
    yield "contents", store.contents.info
    yield "check", lambda: listed(store)
    yield "info", graph.info
    yield "unembedded", lambda: unembedded(store)
    yield "backup", lambda: back_up(graph, folder / "every.backup")
    yield "backup's check", lambda: checked(folder / "every.backup")


async def sampled(store: Store) -> None:
    """Read the keys that recall takes a sample of."""
    await store.recall.sample_keys(await store.recall.sample_spans(), 10)


async def listed(store: Store) -> list[Any]:
    """The texts in files that are lost."""
    return [lost async for lost in store.contents.check()]


async def unembedded(store: Store) -> None:
    """Read what a new embedding model would embed."""
    for label in ("Message", "Summary", "Topic", "Conversation"):
        await store.vectors.missing(label, "another", limit=50)


async def checked(file: Path) -> None:
    """Read the backup."""
    check(file)


async def read_everything(engine: InProcessEngine, store: Store, uuid: str, folder: Path) -> list[str]:
    """Do all of it; what failed. That something is not found is an answer."""
    failed: list[str] = []
    reads: list[Read] = [
        (repr(request), lambda request=request: engine.request(request))  # type: ignore[misc]
        for workspace in (None, "/w")
        for request in requests_for(uuid, workspace)
    ]
    for name, read in [*reads, *reads_of(store, uuid, folder)]:
        try:
            await read()
        except NotFoundError:
            pass
        except Exception as error:
            cause = error.__cause__ or error
            failed.append(f"{name[:90]}: {type(error).__name__}: {str(cause)[-220:]}")
    return failed
