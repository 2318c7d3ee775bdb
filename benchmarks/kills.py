"""kill -9 at seeded points of a conversation: ``python -m benchmarks.kills [--points N] [--seed S]``.

The same run as the tests make, any number of points long: the graph's server, the engine or its host is killed
between turns, during them and inside tool calls; afterwards nothing acknowledged may be lost, doubled or out of
order. Needs a checkout (it uses tests/support); everything happens in a temporary home. Ends with status 1 when a
promise was broken.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from ragforge_tui.graph import GraphTarget, stop_server
from ragforge_tui.settings.schema import Loaded
from tests.support.agents import loaded_for, settings_for
from tests.support.kills import VICTIMS, Outcome, survive
from tests.support.openai_server import OpenAIServer
from tests.support.sizes import paths_under

PER_CONVERSATION = 10
"""Points in one conversation; the seed counts up from one conversation to the next."""


async def main(points: int, seed: int) -> int:
    """Kill, check, print; how many promises were broken."""
    began = time.perf_counter()
    victims: Counter[str] = Counter()
    turns = broken = 0
    print(f"{'seed':>6}{'kills':>7}{''.join(f'{victim:>12}' for victim in VICTIMS)}{'turns':>7}{'broken':>8}{'s':>8}")
    for number, start in enumerate(range(0, points, PER_CONVERSATION)):
        since = time.perf_counter()
        outcome, wrong = await one_conversation(min(PER_CONVERSATION, points - start), seed + number)
        killed = Counter(kill.split()[0] for kill in outcome.kills)
        columns = "".join(f"{killed[victim]:>12}" for victim in VICTIMS)
        acknowledged = len(outcome.acknowledged)
        print(
            f"{seed + number:>6}{len(outcome.kills):>7}{columns}{acknowledged:>7}{len(wrong):>8}"
            f"{time.perf_counter() - since:>8.1f}",
            flush=True,
        )
        for promise in wrong:
            print(f"       {promise}")
        victims += killed
        turns += acknowledged
        broken += len(wrong)
    each = " ".join(f"{victim}={victims[victim]}" for victim in VICTIMS)
    print(
        f"kills points={victims.total()} {each} turns={turns} seconds={time.perf_counter() - began:.0f} broken={broken}"
    )
    return broken


async def one_conversation(points: int, seed: int) -> tuple[Outcome, list[str]]:
    """A conversation under fire, in a home of its own."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        async with OpenAIServer() as server:
            loaded = loaded_in(Path(folder), server.base_url)
            try:
                return await survive(loaded, server, points=points, seed=seed)
            finally:
                await asyncio.to_thread(stop_server, loaded.paths)


def loaded_in(folder: Path, api_base: str) -> Loaded:
    """Settings for the scripted model and an embedded graph in that folder."""
    settings = settings_for(GraphTarget(embedded=True), api_base=api_base)
    return loaded_for(settings, paths_under(folder / "home"), folder / "workspace")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="kill -9 at seeded points; nothing acknowledged may be lost.")
    parser.add_argument("--points", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    sys.exit(1 if asyncio.run(main(arguments.points, arguments.seed)) else 0)
