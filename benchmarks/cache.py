"""How much of a request a provider's prompt cache can reuse: ``python -m benchmarks.cache [--turns 60]``.

Plays a session of coding turns (questions, searches, reads, edits, test runs, long logs, thanks) through the agent and
its real tools against the scripted server, once for each window. Two requests share a prefix up to the first character
that differs in their messages as JSON, in order, the system message first. A turn counts as kept if its first request
starts with at least 80 % of the last request of the turn before. Tool schemas come before all messages at a provider
and are not counted. `step` is the largest fall of the past, in percent, from one turn to the next.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import tempfile
from collections.abc import Iterator
from itertools import pairwise, takewhile
from pathlib import Path
from typing import Any

import msgspec

from ragforge_tui.conversation import ConversationAgent
from ragforge_tui.graph import stop_server
from ragforge_tui.settings.schema import (
    AgentSettings,
    EmbeddingSettings,
    Loaded,
    MemorySettings,
    ModelSettings,
    Paths,
    Settings,
)
from tests.support.model_script import Call, Step
from tests.support.openai_server import OpenAIServer

WINDOWS = (32_000, 128_000, 200_000)
KEPT = 0.8
FILES = 24
KINDS = ("look", "ask", "edit", "edit", "thanks", "look", "log", "edit", "ask", "edit")
PROSE = (
    "the parser keeps a cursor and returns it to the caller when a token ends so that errors name the line where they "
    "begin while the reader counts bytes and leaves decoding to the next stage of this pipeline"
)


class Session:
    """Files of a workspace, and messages with the scripted replies of the model; the same for the same seed."""

    def __init__(self, workspace: Path, seed: int = 7) -> None:
        self._random = random.Random(seed)
        self._workspace = workspace
        for number in range(FILES):
            lines = (f"    value_{number}_{line} = {self._prose(6)!r}" for line in range(self._random.randint(60, 220)))
            (workspace / f"module{number}.py").write_text(f"def run_{number}():\n" + "\n".join(lines) + "\n")

    def turns(self, count: int) -> Iterator[tuple[str, list[Step]]]:
        """Yield each message with the replies to it."""
        for number in range(count):
            kind = KINDS[number % len(KINDS)]
            if kind == "thanks":
                yield "Thanks, that helps.", [Step(text="You are welcome.", chunk=4_000)]
                continue
            steps = [Step(text=self._prose(12), tool_calls=calls, chunk=4_000) for calls in self._calls(kind, number)]
            answer = self._prose(self._random.randint(80, 240))
            asked = f"{kind} {number}: {self._prose(self._random.randint(8, 40))}?"
            yield asked, [*steps, Step(text=answer, chunk=4_000)]

    def _calls(self, kind: str, number: int) -> Iterator[list[Call]]:
        name = f"module{self._random.randrange(FILES)}.py"
        read = Call(name="read_file", arguments={"path": name})
        if kind == "look":
            yield [Call(name="grep_files", arguments={"pattern": f"value_{number}_1"})]
            yield [read, Call(name="read_file", arguments={"path": f"module{self._random.randrange(FILES)}.py"})]
        elif kind == "edit":
            yield [read]
            old = (self._workspace / name).read_text().splitlines(keepends=True)[4:10]
            new = [f"    changed_{number}_{place} = {self._prose(6)!r}\n" for place in range(8)]
            edit = {"path": name, "old_string": "".join(old), "new_string": "".join(new)}
            yield [Call(name="edit_file", arguments=edit)]
            yield [self._log(self._random.randint(10, 50))]
        elif kind == "log":
            yield [self._log(self._random.randint(150, 500))]

    def _log(self, lines: int) -> Call:
        (self._workspace / "build.log").write_text("".join(f"{n:04} PASSED {self._prose(5)}\n" for n in range(lines)))
        return Call(name="run_command", arguments={"command": "cat build.log"})

    def _prose(self, words: int) -> str:
        return " ".join(self._random.choices(PROSE.split(), k=words))


async def main(count: int) -> None:
    """Play the session at each window; print the table and the last line."""
    print(f"{'window':>8}{'turns kept %':>14}{'requests kept %':>17}{'prefix %':>10}{'step %':>8}{'past, tokens':>14}")
    figures: dict[str, float] = {}
    for window in WINDOWS:
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            loaded = loaded_in(Path(folder), window)
            try:
                turns, past = await play(loaded, count)
            finally:
                await asyncio.to_thread(stop_server, loaded.paths)
        between = [shared(before[-1], after[0]) for before, after in pairwise(turns)]
        inside = [shared(a, b) for requests in turns for a, b in pairwise(requests)]
        kept = percent(between)
        every = percent(between + inside)
        mean = 100 * sum(between) / len(between)
        step = max(100 * (1 - after / before) for before, after in pairwise(past) if before)
        print(f"{window:>8}{kept:>14.1f}{every:>17.1f}{mean:>10.1f}{max(step, 0):>8.1f}{past[-1]:>14}")
        figures |= {f"turns_{window}": kept, f"requests_{window}": every, f"step_{window}": max(step, 0)}
    print("cache " + " ".join(f"{name}={value:.1f}" for name, value in figures.items()))


async def play(loaded: Loaded, count: int) -> tuple[list[list[str]], list[int]]:
    """Return the requests of each turn as text, and the tokens of its past."""
    turns: list[list[str]] = []
    past: list[int] = []
    async with OpenAIServer() as server:
        model = msgspec.structs.replace(loaded.settings.model, api_base=server.base_url)
        loaded = msgspec.structs.replace(loaded, settings=msgspec.structs.replace(loaded.settings, model=model))
        async with ConversationAgent(loaded, approve_all=True) as agent:
            conversation = await agent.create_conversation()
            for text, steps in Session(Path(loaded.workspace)).turns(count):
                server.script(steps)
                sent = len(server.chats())
                past.append((await conversation.build_context(text)).tokens)
                await conversation.send_message(text)
                await conversation.memory.settle()
                turns.append([rendered(body["messages"]) for body in server.chats()[sent:]])
    return turns, past


def rendered(messages: list[dict[str, Any]]) -> str:
    """Return messages as one text."""
    return "\n".join(json.dumps(message, ensure_ascii=False, sort_keys=True) for message in messages)


def shared(before: str, after: str) -> float:
    """Return the share of a request that the next one starts with."""
    same = takewhile(lambda pair: pair[0] == pair[1], zip(before, after, strict=False))
    return sum(1 for _ in same) / len(before)


def percent(shares: list[float]) -> float:
    """Return the percentage of shares that count as kept."""
    return 100 * sum(share >= KEPT for share in shares) / len(shares)


def loaded_in(folder: Path, window: int) -> Loaded:
    """Settings with a window, on an embedded graph, all folders under one."""
    workspace = folder / "workspace"
    workspace.mkdir()
    return Loaded(
        settings=Settings(
            model=ModelSettings(name="openai/scripted", api_key="none", context_window=window),
            agent=AgentSettings(memory=MemorySettings(embeddings=EmbeddingSettings(enabled=False))),
        ),
        paths=Paths(config=str(folder / "config"), data=str(folder / "data"), state=str(folder / "state")),
        workspace=str(workspace.resolve()),
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="How much of a request a provider's prompt cache can reuse.")
    parser.add_argument("--turns", type=int, default=60)
    asyncio.run(main(max(2, parser.parse_args().turns)))
