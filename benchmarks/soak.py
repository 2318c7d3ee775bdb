"""Memory of the embedded graph under load: ``python -m benchmarks.soak [--minutes 180] [--heap-mb 512] [--keep 40]``.

Conversations of 25 turns are held one after another, with vectors, summaries, recall in each turn and a search after
it; the oldest is purged once there are more than `--keep`, so that what is stored stays the same and only a leak can
grow. Prints a line every minute or more often: the memory of the graph's server and of this process, and the size of
the data. The growth is that from the second to the last quarter of the run, by their medians. Ends with status 1 when
a turn was lost. Linux only: it reads /proc.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import statistics
import sys
import tempfile
import time
from collections import deque
from pathlib import Path
from typing import Any

from benchmarks import synthetic
from benchmarks.footprint import cpu, resident
from ragforge_tui.conversation import ConversationAgent
from ragforge_tui.graph import server_status
from ragforge_tui.settings.schema import Paths

TURNS = 25
PARTS = 4
"""Of a run; the first is left out, in which the graph fills."""
SAMPLES = 40
"""In a short run; a longer one has one every minute."""


class Soak:
    """One run and what it saw."""

    def __init__(self, home: Path, *, minutes: float, keep: int) -> None:
        self._home = home
        self._length = minutes
        self._keep = keep
        self._text = synthetic.Text()
        self._began = time.monotonic()
        self._sampled = 0.0
        self._slowest = 0.0
        self.turns = 0
        self.lost = 0
        self.rows: list[tuple[float, float, float, float]] = []

    async def run(self, agent: ConversationAgent) -> None:
        """Hold and delete conversations for so long."""
        kept: deque[str] = deque()
        while self._minutes < self._length:
            kept.append(await self._hold(agent))
            if len(kept) > self._keep:
                await agent.delete_conversation(kept.popleft(), immediately=True)
        self._sample()

    @property
    def _minutes(self) -> float:
        return (time.monotonic() - self._began) / 60

    async def _hold(self, agent: ConversationAgent) -> str:
        conversation = await agent.create_conversation(self._text.question(3))
        for _ in range(TURNS):
            since = time.monotonic()
            await conversation.send_message(self._text.message())
            await agent.search(self._text.question(4), limit=5)
            self._slowest = max(self._slowest, time.monotonic() - since)
            self.turns += 1
            if time.monotonic() - self._sampled > min(60.0, self._length * 60 / SAMPLES):
                self._sample()
        await conversation.wait_idle()
        self.lost += TURNS - len(await conversation.get_history())
        conversation.close()
        return conversation.id

    def _sample(self) -> None:
        self._sampled = time.monotonic()
        address = server_status(paths_in(self._home))
        if address is None:
            print("the server is being started again", flush=True)
            return
        stored = sum(path.stat().st_size for path in self._home.rglob("*") if path.is_file()) / 1e6
        row = (self._minutes, resident(address.pid), resident(os.getpid()), stored)
        self.rows.append(row)
        print(
            f"{row[0]:>8.1f}{self.turns:>8}{row[1]:>11.0f}{row[2]:>9.0f}{row[3]:>9.0f}"
            f"{cpu(address.pid):>8.0f}{self._slowest * 1000:>12.0f}{address.pid:>9}",
            flush=True,
        )
        self._slowest = 0.0


def paths_in(home: Path) -> Paths:
    """The program's folders in a home of its own."""
    return Paths(config=str(home / "config"), data=str(home / "data"), state=str(home / "state"))


async def main(minutes: float, heap_mb: int, keep: int) -> int:
    """Run, print the last line, and return how many turns were lost."""
    logging.disable(logging.WARNING)  # recall that gives up on a busy machine
    text = synthetic.Text(seed=2)

    def answer(messages: list[dict[str, Any]]) -> str:
        return text.message()

    columns = (("minute", 8), ("turns", 8), ("server MB", 11), ("this MB", 9), ("data MB", 9), ("CPU s", 8))
    print("".join(f"{name:>{width}}" for name, width in (*columns, ("slowest ms", 12), ("pid", 9))))
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        home = Path(folder)
        soak = Soak(home, minutes=minutes, keep=keep)
        settings = {"graph": {"heap_mb": heap_mb, "linger_seconds": 0}, "agent": {"code": {"enabled": False}}}
        agent = ConversationAgent(settings, model=answer, embedder=synthetic.WordVectors(), home=home, workspace=home)
        async with agent:
            await soak.run(agent)
    quarters = [
        [row[1:] for row in soak.rows if minutes * part / PARTS <= row[0] < minutes * (part + 1) / PARTS + 0.1]
        for part in (1, PARTS - 1)
    ]
    (server, own, stored), (server_last, own_last, stored_last) = (
        [statistics.median(column) for column in zip(*quarter, strict=True)] for quarter in quarters
    )
    print(
        f"soak minutes={minutes:g} turns={soak.turns} lost={soak.lost} server_mb={server:.0f} "
        f"server_last_mb={server_last:.0f} growth={100 * (server_last / server - 1):.1f} "
        f"own_growth={100 * (own_last / own - 1):.1f} data_growth={100 * (stored_last / stored - 1):.1f}"
    )
    return soak.lost


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="The memory of the embedded graph under load.")
    parser.add_argument("--minutes", type=float, default=180)
    parser.add_argument("--heap-mb", type=int, default=512)
    parser.add_argument("--keep", type=int, default=40, help="conversations that stay stored")
    arguments = parser.parse_args()
    sys.exit(1 if asyncio.run(main(arguments.minutes, arguments.heap_mb, arguments.keep)) else 0)
