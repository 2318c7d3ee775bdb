"""Histories played through the real product, moved to their days, and brought back for each task."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from unittest import mock

import msgspec

from benchmarks.agent.answers import EvaluationServer
from benchmarks.agent.scoring import Score, kept_prefix, score
from benchmarks.agent.tasks import History, PlayedTurn, Task, written_summary
from ragforge_tui.conversation import Conversation, ConversationAgent
from ragforge_tui.conversation.limits import CONVERSATION
from ragforge_tui.settings.load import load
from ragforge_tui.settings.schema import Loaded, Paths
from ragforge_tui.shared.errors import RagforgeError
from ragforge_tui.shared.export_records import ConversationExport
from ragforge_tui.shared.limits import LIMITS
from ragforge_tui.shared.records import now
from tests.support.model_script import Call, Step

BETWEEN_TURNS = timedelta(minutes=6)
BEFORE_THE_QUESTION = timedelta(minutes=20)
PATIENCE_SECONDS = 60.0
RECALLED = ("findings", "summaries", "recalled")
"""Sections of a request that are looked up for its message; the others stand for turns that are not sent."""
_GIT = ("git", "-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "commit.gpgsign=false")


@contextmanager
def patient() -> Iterator[None]:
    """Let memory take its time, so that a busy machine changes no score."""
    with (
        mock.patch.object(LIMITS, "recall", PATIENCE_SECONDS),
        mock.patch.object(LIMITS, "load", PATIENCE_SECONDS),
        mock.patch.object(CONVERSATION, "reminder", PATIENCE_SECONDS),
    ):
        yield


class Played(msgspec.Struct):
    """A history that was played: what to import, the files at its end, and the share of each request kept by the next.

    Attributes:
        exports: Of its conversations; tasks continue the last one.
        prefixes: One for each turn after the first.
    """

    exports: list[ConversationExport]
    files: Path
    prefixes: list[float]


class Stage:
    """Folders, settings and the server of one run.

    Args:
        folder: An empty folder, for the program's own home and for workspaces.
        summaries: ``written``: a model's, assembled from the data; ``extractive``: the product's own extracts.
        paths: Folders of another graph than one of this run's own.
        flags: Further settings.
    """

    def __init__(
        self,
        folder: Path,
        server: EvaluationServer,
        *,
        summaries: str = "written",
        paths: Paths | None = None,
        flags: dict[str, Any] | None = None,
    ) -> None:
        self._folder = folder
        self._server = server
        self._summaries = summaries
        self._paths = paths
        self._flags = flags or {}
        self._agents: dict[tuple[str, int], ConversationAgent] = {}

    def loaded(self, history: str, window: int) -> Loaded:
        """Return the settings for a workspace and a window; all share one graph."""
        flags = {
            "model.name": "openai/evaluated",
            "model.api_base": self._server.base_url,
            "model.api_key": "none",
            "model.retries": 0,
            "model.context_window": window,
            "user.name": "Ada",
            **self._flags,
        }
        if self._summaries == "extractive":
            flags["agent.memory.summarization.model"] = "offline"
        workspace = self.workspace(history)
        workspace.mkdir(exist_ok=True)
        loaded = load(workspace=str(workspace), flags=flags, env={"RAGFORGE_HOME": str(self._folder / "home")})
        return msgspec.structs.replace(loaded, paths=self._paths or loaded.paths)

    def workspace(self, history: str) -> Path:
        """Return the folder in which a history is played."""
        return self._folder / history

    async def close(self) -> None:
        """Close the agents."""
        for agent in self._agents.values():
            await agent.close(settle_seconds=0)

    async def _agent(self, history: str, window: int) -> ConversationAgent:
        if (history, window) not in self._agents:
            agent = ConversationAgent(self.loaded(history, window), approve_all=True)
            agent.start()
            self._agents[history, window] = agent
            # Longer than the product waits: nothing here depends on how busy the machine is.
            await agent.services.graph.store(PATIENCE_SECONDS)
        return self._agents[history, window]

    # --- playing ----------------------------------------------------------------------------------------------------

    async def play(self, name: str, history: History, window: int) -> Played:
        """Play a history in a workspace of that name, and take its conversations out of the graph again."""
        workspace = self.workspace(name)
        await asyncio.to_thread(_prepare, workspace, history)
        agent = await self._agent(name, window)
        store = await agent.store()
        exports = []
        prefixes: list[float] = []
        for part in history.conversations():
            conversation = await agent.create_conversation(title=part.title)
            self._server.plain = self._summarizer(part.turn)
            prefixes = await self._converse(conversation, part.turn)
            await conversation.memory.settle()
            export = await store.transfer.export(conversation.record.uuid)
            move_in_time(export, part.turn, workspace if part.title == history.title else None)
            exports.append(export)
        for export in exports:
            await agent.delete_conversation(export.conversation.uuid, immediately=True)
        self._server.plain = lambda system, material: "{}"
        kept = self._folder / f"{name}.kept"
        await asyncio.to_thread(shutil.move, workspace, kept)
        return Played(exports, kept, prefixes)

    def _summarizer(self, turns: list[PlayedTurn]) -> Any:
        if self._summaries == "extractive":
            return lambda system, material: "{}"
        return lambda system, material: written_summary(turns, system, material)

    async def _converse(self, conversation: Conversation, turns: list[PlayedTurn]) -> list[float]:
        """Play the turns; return how much of each turn's last request the next turn's first one keeps."""
        last: dict[str, Any] | None = None
        prefixes = []
        for number, turn in enumerate(turns, 1):
            self._server.requests.clear()
            if turn.own:
                await conversation.run_command(turn.own)
                await conversation.wait_idle()
            elif turn.undo:
                await conversation.undo(turn.undo)
                await conversation.wait_idle()
            else:
                self._server.script([*map(step_of, turn.calls), Step(text=turn.answer, chunk=2_000)])
                await conversation.send_message(turn.ask)
            await _check(conversation, number, turn)
            # As between two messages of a user: summaries and search keys are there for the next turn.
            await conversation.memory.settle()
            if sent := self._server.chats():
                if last is not None:
                    prefixes.append(kept_prefix(last, sent[0]))
                last = sent[-1]
        return prefixes

    # --- asking -----------------------------------------------------------------------------------------------------

    async def ask(self, played: Played, task: Task, window: int) -> tuple[Score, list[dict[str, Any]]]:
        """Bring the history back, ask the task's message, and score what was sent; the requests come along."""
        workspace = self.workspace(task.history)
        shutil.rmtree(workspace, ignore_errors=True)
        await asyncio.to_thread(shutil.copytree, played.files, workspace)
        agent = await self._agent(task.history, window)
        store = await agent.store()
        for export in played.exports:
            await store.transfer.import_(export)
        uuid = played.exports[-1].conversation.uuid
        conversation = await agent.load_conversation(uuid)
        conversation.memory.start()
        await conversation.memory.settle()
        context = await conversation.build_context(task.ask)
        self._server.requests.clear()
        self._server.script([*map(step_of, task.calls)])
        failed = answer = ""
        try:
            answer = (await conversation.send_message(task.ask)).content
        except RagforgeError as error:
            failed = str(error)
        requests = self._server.chats()
        self._server.script([])
        await agent.delete_conversation(uuid, immediately=True)
        result = score(task, window, requests, failed=failed)
        result.answer = answer
        result.recalled_tokens = sum(section.tokens for section in context.sections if section.name in RECALLED)
        return result, requests


def step_of(call: dict[str, Any]) -> Step:
    """Return the reply of a model that makes this call."""
    arguments = {key: value for key, value in call.items() if key != "tool"}
    # Nine letters and digits, as Mistral's template wants it.
    made = Call(name=call["tool"], arguments=arguments, id=f"c{zlib.crc32(str(call).encode()):08x}")
    return Step(tool_calls=[made], chunk=2_000)


def move_in_time(export: ConversationExport, turns: list[PlayedTurn], workspace: Path | None) -> None:
    """Give each turn of a conversation, what belongs to it and the files it wrote the day that the data names."""
    times = _times(turns)
    real = [turn.messages[0].timestamp for turn in export.turns]
    moved = dict(zip(real, times, strict=True))
    export.memory.findings = [
        msgspec.structs.replace(
            one, since=times[one.turn_index - 1], until=moved.get(one.until, times[-1]) if one.until else None
        )
        for one in export.memory.findings
    ]
    for turn, at in zip(export.turns, times, strict=True):
        by = at - turn.messages[0].timestamp
        for message in turn.messages:
            message.timestamp += by
            for call in message.tool_calls:
                call.timestamp += by
                if call.result is not None:
                    call.result.timestamp += by
    for summary in export.memory.summaries:
        summary.created_at = times[summary.end_turn_index - 1] + timedelta(minutes=1)
    export.memory.attempts = [
        msgspec.structs.replace(one, at=times[one.turn_index - 1]) for one in export.memory.attempts
    ]
    export.contexts = []
    export.conversation.created_at, export.conversation.updated_at = times[0], times[-1]
    for path in workspace.rglob("*") if workspace else ():
        changed = datetime.fromtimestamp(path.stat().st_mtime, tz=real[0].tzinfo)
        before = [at for at, began in zip(times, real, strict=True) if began <= changed]
        stamp = (before[-1] if before else times[0] - timedelta(days=1)).timestamp()
        os.utime(path, (stamp, stamp))


def _times(turns: list[PlayedTurn]) -> list[datetime]:
    """Return when each turn began: each sitting ends a while before the present time of its day."""
    sittings: list[tuple[int, int]] = []
    for turn in turns:
        if turn.day is not None:
            sittings.append((turn.day, 0))
        day, count = sittings[-1]
        sittings[-1] = (day, count + 1)
    times = []
    for day, count in sittings:
        end = now() - timedelta(days=day) - BEFORE_THE_QUESTION
        times += [end - BETWEEN_TURNS * (count - 1 - n) for n in range(count)]
    return times


def _prepare(workspace: Path, history: History) -> None:
    history.write_files(workspace)
    for arguments in (("init", "-q", "-b", "main"), ("add", "-A"), ("commit", "-q", "-m", "Copy the modules")):
        subprocess.run([*_GIT, *arguments], cwd=workspace, check=True)


async def _check(conversation: Conversation, number: int, turn: PlayedTurn) -> None:
    """Raise unless the turn's calls did what the data says: a history with a failed edit would score nonsense."""
    done = (await conversation.get_history(1))[-1]
    calls = [call for message in done.messages for call in message.tool_calls]
    ended = enumerate((call.result for call in calls), 1)
    failed = [end.error for n, end in ended if end is not None and end.success == (n in turn.fails)]
    if failed or len(calls) != (len(turn.calls) or bool(turn.own or turn.undo)):
        raise SystemExit(f"turn {number} of {conversation.record.title!r}: {failed or len(calls)}")
