"""Record a session of the real engine: ``python -m tests.support.record_session FILE [--repository DIR]``.

Runs the engine on a copy of a repository with an embedded graph of its own. The model is the scripted server: it
thinks, streams, reads, searches, plans, edits and runs a command; approvals are given, one is refused; one answer is
stopped, one fails and is asked for again. `SESSION` says what is said, and what the model is to answer.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from ragforge_tui.engine.in_process import InProcessEngine
from ragforge_tui.graph import stop_server
from ragforge_tui.settings.load import load
from ragforge_tui.shared.events import ApprovalRequested, Event, SummaryCreated, TextDelta, TurnEnd
from ragforge_tui.shared.requests.turns import CancelTurn, CreateConversation, FetchTurns, RetryTurn, SendMessage
from ragforge_tui.shared.requests.work import AnswerApproval
from tests.support.model_script import Call, Step
from tests.support.openai_server import OpenAIServer
from tests.support.recorded_session import Recording, Said
from tests.support.waiting import until

ROOT = Path(__file__).resolve().parents[2]
STOP = "(stop it)"
FAIL = "(it fails)"
ANSWER = """The journal is read **record by record**; what cannot be written is *set aside*:

1. `drain` holds the lock
2. each line is one operation
   - unknown ones are kept
   - broken ones go to `aside/`

| what | where |
|---|---:|
| journal | `journal/` |
| set aside | `journal/aside/` |

```python
async def drain(store: Store) -> int:
    written = 0  # records, not lines
    return written
```

> Nothing is lost without a word.
"""
LONG = "".join(f"- point {number} of a long list, with `code` and **weight**\n" for number in range(1, 60))
TODOS = [{"content": "find the grace", "status": "completed"}, {"content": "raise it", "status": "in_progress"}]
SESSION: tuple[tuple[str, tuple[Step, ...]], ...] = (
    (
        "How does the journal set records aside?",
        (
            Step(
                reasoning="First the word, then the file it stands in.",
                text="I look where it is.",
                tool_calls=[
                    Call(name="grep_files", arguments={"pattern": "aside", "path": "ragforge_tui/graph"}),
                    Call(name="read_file", arguments={"path": "ragforge_tui/graph/writer.py", "end_line": 12}),
                ],
            ),
            Step(text=ANSWER, chunk=12),
        ),
    ),
    (
        "Raise the grace of the lease, and try it.",
        (
            Step(tool_calls=[Call(name="update_todos", arguments={"todos": TODOS})]),
            Step(
                text="The grace is raised.",
                tool_calls=[
                    Call(
                        name="edit_file",
                        arguments={
                            "path": "ragforge_tui/graph/writer.py",
                            "old_string": "timedelta(seconds=10)",
                            "new_string": "timedelta(seconds=15)",
                        },
                    ),
                    Call(name="edit_file", arguments={"path": "nowhere.py", "old_string": "a", "new_string": "b"}),
                ],
            ),
            Step(tool_calls=[Call(name="run_command", arguments={"command": "echo tried; exit 3"})]),
            Step(tool_calls=[Call(name="run_command", arguments={"command": "rm -rf build"})]),
            Step(text="The command was refused, so it is left at that.", reasoning="They said no."),
        ),
    ),
    (f"List everything {STOP}", (Step(text=LONG, chunk=40, delay=0.02),)),
    (f"And now? {FAIL}", (Step(status=401, message="the key is not valid"),)),
    ("Thank you.", (Step(text="You are welcome, *Ada*."),)),
)


class Recorder:
    """Reads what the engine says, answers approvals, and waits for what a session needs."""

    def __init__(self, engine: InProcessEngine, server: OpenAIServer) -> None:
        self._engine = engine
        self._server = server
        self.said: list[Said] = []
        self._start = time.monotonic()

    async def listen(self) -> None:
        """As long as the engine runs."""
        async for event in self._engine.events():
            # As through a pipe: what the engine does with a record later on does not change what was said.
            copy = msgspec.json.decode(msgspec.json.encode(event), type=Event)
            self.said.append(Said(round(time.monotonic() - self._start, 3), copy))
            if isinstance(event, ApprovalRequested):
                decision = "no" if "rm -rf" in event.detail else "once"
                await self._engine.request(
                    AnswerApproval(
                        approval_id=event.approval_id,
                        decision=decision,
                        feedback="not today" if decision == "no" else "",
                    )
                )

    async def until(self, holds: Callable[[Event], bool], count: int = 1) -> None:
        """Wait for so many events of a kind."""
        await until(lambda: sum(holds(said.event) for said in self.said) >= count)

    async def session(self) -> Recording:
        """Hold it."""
        view = await self._engine.request(CreateConversation(title="The journal", persona="Ragnarök"))
        uuid = view.conversation.uuid
        ended = 0
        for number, (text, steps) in enumerate(SESSION, 1):
            self._server.script(list(steps))
            deltas = sum(isinstance(said.event, TextDelta) for said in self.said)
            await self._engine.request(SendMessage(conversation_id=uuid, message_id=f"said-{number}", text=text))
            if STOP in text:
                await self.until(lambda event: isinstance(event, TextDelta), deltas + 6)
                await self._engine.request(CancelTurn(conversation_id=uuid))
            ended += 1
            await self.until(lambda event: isinstance(event, TurnEnd), ended)
            if FAIL in text:
                self._server.script([Step(text="Asked again, it goes well.")])
                await self._engine.request(RetryTurn(conversation_id=uuid))
                ended += 1
                await self.until(lambda event: isinstance(event, TurnEnd), ended)
        await self.until(lambda event: isinstance(event, SummaryCreated))
        opened = self._engine.agent.opened(uuid)
        assert opened is not None
        await opened.memory.settle()
        page = await self._engine.request(FetchTurns(conversation_id=uuid, start=1, end=len(SESSION) + 1))
        return Recording(view.conversation, self.said, page.turns)


async def record(folder: Path, repository: Path, out: Path) -> None:
    """Record the session into a file."""
    workspace = folder / "repository"
    shutil.copytree(repository, workspace / repository.name, ignore=shutil.ignore_patterns("__pycache__", ".*"))
    async with OpenAIServer() as server:
        flags = {
            "model.name": "openai/scripted",
            "model.api_base": server.base_url,
            "model.api_key": "none",
            "model.retries": 0,
            "user.name": "Ada",
            "agent.memory.summarization.model": "offline",
            "agent.memory.summarization.every_turns": 2,
        }
        loaded = load(workspace=str(workspace), flags=flags, env={"RAGFORGE_HOME": str(folder / "home")})
        try:
            engine = InProcessEngine(loaded, interactive=True)
            recorder = Recorder(engine, server)
            listening = asyncio.create_task(recorder.listen())
            recording = await recorder.session()
            await engine.close()
            await listening
        finally:
            stop_server(loaded.paths)
        recording.write(out, {str(workspace): "/w", str(folder): "/tmp", server.base_url: "http://model/v1"})


def main() -> None:
    """Record it."""
    parser = argparse.ArgumentParser(description="Record a session of the real engine for replaying in tests.")
    parser.add_argument("file", type=Path)
    parser.add_argument("--repository", type=Path, default=ROOT / "ragforge_tui", help="what the session is about")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="recording-", ignore_cleanup_errors=True) as folder:
        asyncio.run(record(Path(folder), given.repository, given.file))


if __name__ == "__main__":
    main()
