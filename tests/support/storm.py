"""A storm: two chats, an API program and `ask` write to one conversation while graph, engines and host are killed.

``python -m tests.support.storm --turns 800 --graph-kills 30 --engine-kills 45 --host-kills 14`` takes about an hour;
everything happens in a temporary home. Each message has one right answer, so that a misplaced one shows: afterwards
every acknowledged message is stored once, every announced answer stands in the turn of its question, and no turn has
two. The last line is ``storm turns=… kills=… broken=…``; the status is 1 when a promise was broken.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from ragforge_tui.conversation import ConversationAgent
from ragforge_tui.graph import GraphTarget, stop_server
from ragforge_tui.settings.schema import Loaded
from ragforge_tui.shared.errors import GraphError, RagforgeError
from ragforge_tui.shared.records import Turn
from tests.support.agents import loaded_for, settings_for, with_host, with_memory
from tests.support.hosts import end_host
from tests.support.kills import PATIENCE, KillRun, Victim, answer_to, broken_promises, question, read_back, script
from tests.support.openai_server import OpenAIServer
from tests.support.sizes import paths_under

WRITERS = ("chat1", "chat2", "api", "ask")
PAUSE_SECONDS = 2.0
"""Longest pause between two kills; a turn takes about one second."""


class Storm:
    """One conversation and everybody who writes to it."""

    def __init__(self, loaded: Loaded, server: OpenAIServer, conversation_id: str, turns: int, seed: int) -> None:
        self._loaded = loaded
        self._server = server
        self._id = conversation_id
        self._turns = {name: turns // len(WRITERS) for name in WRITERS}
        self._random = random.Random(seed)
        self.chats = [KillRun(loaded, seed + n, conversation_id=conversation_id) for n in (1, 2)]
        self.answered: list[str] = []
        """Messages whose right answer was announced to a program or printed."""
        self.broken: list[str] = []
        self.kills = 0

    async def run(self, kills: list[Victim]) -> None:
        """Talk while those are killed, in random order."""
        self._random.shuffle(kills)
        killing = asyncio.create_task(self._kill(kills))
        await asyncio.gather(
            self._chat(self.chats[0], "chat1"), self._chat(self.chats[1], "chat2"), self._program(), self._commands()
        )
        killing.cancel()
        await asyncio.gather(killing, return_exceptions=True)

    async def _kill(self, kills: list[Victim]) -> None:
        for victim in kills:
            await asyncio.sleep(self._random.uniform(0.2, PAUSE_SECONDS))
            self._random.choice(self.chats).kill(victim)
            self.kills += 1

    async def _chat(self, chat: KillRun, name: str) -> None:
        for number in range(self._turns[name]):
            await chat.one_turn(question(f"{name}-{number}"))
        await chat.close()

    async def _program(self) -> None:
        async with ConversationAgent(self._loaded, approve_all=True) as agent:
            conversation = None
            while conversation is None:
                with suppress(GraphError):  # It may be killed while it is read.
                    await ready(agent)
                    conversation = await agent.load_conversation(self._id)
            for number in range(self._turns["api"]):
                asked = question(f"api-{number}")
                with suppress(RagforgeError):
                    self._note(asked, (await conversation.send_message(asked)).content)

    async def _commands(self) -> None:
        environment = {
            **os.environ,
            "RAGFORGE_HOME": str(Path(self._loaded.paths.state).parent),
            "RAGFORGE_MODEL": "openai/scripted",
            "RAGFORGE_API_BASE": self._server.base_url,
            "RAGFORGE_API_KEY": "test",
        }
        for number in range(self._turns["ask"]):
            asked = question(f"ask-{number}")
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "ragforge_tui", "ask", asked, "--resume", self._id, "--json", "--yes"),
                cwd=self._loaded.workspace,
                env=environment,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
            )
            out, _ = await process.communicate()
            last = json.loads(out.splitlines()[-1]) if out.strip() else {}
            if last.get("type") == "turn_completed":
                self._note(asked, last["text"])

    def _note(self, asked: str, answer: str) -> None:
        self.answered.append(asked)
        if answer != answer_to(asked):
            self.broken.append(f"{asked} was answered with {answer!r}")

    def check(self, turns: list[Turn]) -> list[str]:
        """Return the promises that were broken."""
        broken = [*self.broken]
        for chat in self.chats:
            broken += broken_promises(chat.outcome, turns)
        stored = [turn.messages[0].content for turn in turns]
        broken += [f"{asked} is stored {stored.count(asked)} times" for asked in stored if stored.count(asked) > 1]
        right = {turn.messages[0].content for turn in turns if turn.messages[-1].content.startswith(answer_to(""))}
        broken += [f"the answer to {asked} is lost" for asked in self.answered if asked not in right]
        return list(dict.fromkeys(broken))


async def storm(loaded: Loaded, server: OpenAIServer, *, turns: int, kills: list[Victim], seed: int) -> Storm:
    """Run one; what was broken is in `broken`."""
    each = turns // len(WRITERS)
    server.script(script([f"{name}-{number}" for name in WRITERS for number in range(each)]))
    # A recalled question in a request would take the reply of another turn.
    loaded = with_memory(loaded, enabled=False)
    async with ConversationAgent(loaded) as agent:
        await ready(agent)
        record = (await agent.create_conversation("storm")).record
    run = Storm(loaded, server, record.uuid, turns, seed)
    await run.run(kills)
    run.broken = run.check(await read_back(loaded, record.uuid))
    return run


async def ready(agent: ConversationAgent) -> None:
    """Wait for the graph, which may have been killed or be slow to start."""
    async with asyncio.timeout(PATIENCE):
        while agent.graph_state.phase != "ready":
            await asyncio.sleep(0.2)


def write_settings(folder: Path) -> None:
    """Write the settings of `ask`, which has a process of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.yaml").write_text("agent:\n  memory:\n    enabled: false\n")


async def main(arguments: argparse.Namespace) -> int:
    """Run a storm of that size in a temporary home; return the number of broken promises."""
    kills: list[Victim] = [
        *(["server"] * arguments.graph_kills),
        *(["engine"] * arguments.engine_kills),
        *(["host"] * arguments.host_kills),
    ]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        async with OpenAIServer() as server:
            settings = settings_for(GraphTarget(embedded=True), api_base=server.base_url)
            paths = paths_under(Path(folder, "home"))
            loaded = with_host(loaded_for(settings, paths, Path(folder, "workspace")))
            write_settings(Path(folder, "home"))
            try:
                run = await storm(loaded, server, turns=arguments.turns, kills=kills, seed=arguments.seed)
            finally:
                end_host(loaded)
                stop_server(loaded.paths)
    for promise in run.broken:
        print(promise)
    print(f"storm turns={arguments.turns} kills={run.kills} broken={len(run.broken)}")
    return len(run.broken)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--turns", type=int, default=80)
    parser.add_argument("--graph-kills", type=int, default=3)
    parser.add_argument("--engine-kills", type=int, default=4)
    parser.add_argument("--host-kills", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    sys.exit(1 if asyncio.run(main(parser.parse_args())) else 0)
