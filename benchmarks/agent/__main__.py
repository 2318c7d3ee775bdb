"""What the agent is given, and what a model makes of it: ``python -m benchmarks.agent [--model NAME]``.

Plays histories of some forty turns through the real product (agent, embedded graph, real tools in a temporary
workspace, LiteLLM to a server on loopback that answers as the history says), moves them to their days, and asks one
message of each task at their end. Without a model it scores what was sent: whether the facts that the answer needs are
in the request and in which part, how many tokens it has, and how many stand next to a message that needs nothing. With
one it scores answers too, by a judge. Needs a checkout (it uses tests/support).
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import msgspec

from benchmarks.agent.answers import Answering, EvaluationServer, file_answers, model_answers, write_request
from benchmarks.agent.play import Played, Stage, patient
from benchmarks.agent.scoring import Score, judge_prompt
from benchmarks.agent.tasks import Task, read_history, read_tasks
from ragforge_tui.graph import stop_server
from tests.support.model_script import Step

PLAYED_AT = 32_000
"""Window at which histories are played, if the run has it: small enough for cuts, and that of most local models."""
KEPT = 0.8
"""Share of a request that the next one has to begin with for a provider's cache to be of use."""


async def main(args: argparse.Namespace) -> dict[str, float]:
    """Play, ask, print the tables; return the figures."""
    tasks = read_tasks(args.task)
    answering: Answering | None = None
    if args.answers:
        answering = file_answers(args.answers)
    elif args.model:
        answering = model_answers(args.model, args.base_url)
    judge = model_answers(args.judge, args.base_url) if args.judge else answering
    scores: list[Score] = []
    prefixes: list[float] = []
    figures: dict[str, float] = {}
    with tempfile.TemporaryDirectory(prefix="agent-", ignore_cleanup_errors=True) as name:
        async with EvaluationServer() as server:
            stage = Stage(Path(name), server, summaries=args.summaries)
            try:
                for history in dict.fromkeys(task.history for task in tasks):
                    played = await stage.play(history, read_history(history), _played_at(args))
                    prefixes += played.prefixes
                    server.turns = answering or _noted
                    for task in [task for task in tasks if task.history == history]:
                        scores += await ask_all(stage, played, task, args, judge)
                    server.turns = None
                    order = {task.id: number for number, task in enumerate(tasks)}
                    scores.sort(key=lambda one: (one.window, order[one.id]))
                    figures = figures_of(scores, prefixes)
                    if args.json:
                        # After each history, so that a run that is stopped leaves what it measured.
                        data = msgspec.json.encode({"figures": figures, "scores": scores})
                        args.json.write_bytes(msgspec.json.format(data))
            finally:
                await stage.close()
                await asyncio.to_thread(stop_server, stage.loaded(tasks[0].history, _played_at(args)).paths)
    report(scores, figures)
    return figures


async def ask_all(
    stage: Stage, played: Played, task: Task, args: argparse.Namespace, judge: Answering | None
) -> list[Score]:
    """Ask a task at each of its windows."""
    scores = []
    for window in [task.window] if task.window else args.windows:
        score, requests = await stage.ask(played, task, window)
        scores.append(score)
        if args.requests and requests:
            args.requests.mkdir(parents=True, exist_ok=True)
            write_request(args.requests / f"{task.id}-{window}", requests[-1])
        if judge is not None:
            body = {"messages": [{"role": "user", "content": judge_prompt(task, score.answer)}]}
            score.judged = (await judge(body)).text
            score.right = score.judged.strip().casefold().startswith("yes")
        print(".", end="", flush=True)
    return scores


def figures_of(scores: Sequence[Score], prefixes: Sequence[float]) -> dict[str, float]:
    """Return the figures of a run, percentages from 0 to 100."""
    figures: dict[str, float] = {}
    for window in sorted({one.window for one in scores}):
        of = [one for one in scores if one.window == window]
        asked, idle = [one for one in of if one.gold], [one for one in of if not one.gold]
        if asked:
            groups = [part for one in asked for part in one.gold]
            figures[f"gold_{window}"] = _percent([one.complete for one in asked])
            figures[f"facts_{window}"] = _percent([bool(part) for part in groups])
            figures[f"block_{window}"] = statistics.median(one.block_tokens for one in asked)
        if idle:
            figures[f"for_nothing_{window}"] = statistics.median(one.block_tokens for one in idle)
            figures[f"recalled_for_nothing_{window}"] = _percent([one.recalled_tokens > 0 for one in idle])
        figures[f"tokens_{window}"] = statistics.median(one.tokens for one in of)
        figures[f"too_large_{window}"] = sum(one.largest > window for one in of)
        figures[f"failed_{window}"] = sum(bool(one.failed) for one in of)
        if judged := [one.right for one in of if one.right is not None]:
            figures[f"right_{window}"] = _percent(judged)
    if prefixes:
        figures["prefix_kept"] = _percent([share >= KEPT for share in prefixes])
    return figures


def report(scores: Sequence[Score], figures: dict[str, float]) -> None:
    """Print each task, each kind and the last line."""
    print(f"\n{'task':<26}{'window':>8}{'tokens':>8}{'largest':>8}{'past':>8}{'block':>7}{'recall':>7}  gold")
    for one in scores:
        gold = " ".join(part or "MISSING" for part in one.gold) or "-"
        right = "" if one.right is None else "  right" if one.right else "  WRONG"
        print(
            f"{one.id:<26}{one.window:>8}{one.tokens:>8}{one.largest:>8}{one.past_tokens:>8}{one.block_tokens:>7}"
            f"{one.recalled_tokens:>7}  {gold}{right}{'  ! ' + one.failed if one.failed else ''}"
        )
    print(f"\n{'kind':<24}{'window':>8}{'tasks':>7}{'gold':>7}{'block':>7}")
    for (kind, window), count in Counter((one.kind, one.window) for one in scores).items():
        of = [one for one in scores if (one.kind, one.window) == (kind, window)]
        gold = f"{sum(one.complete for one in of)}/{count}" if of[0].gold else "-"
        print(f"{kind:<24}{window:>8}{count:>7}{gold:>7}{statistics.median(one.block_tokens for one in of):>7.0f}")
    print("\nagent " + " ".join(f"{name}={value:.1f}".removesuffix(".0") for name, value in figures.items()))


async def _noted(_: object) -> Step:
    return Step(text="Noted.")


def _percent(held: Sequence[bool]) -> float:
    return 100 * sum(held) / len(held)


def parse() -> argparse.Namespace:
    """Return the arguments."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.agent", description=__doc__)
    parser.add_argument("--model", default="", help="model that answers, as LiteLLM names it")
    parser.add_argument("--base-url", default="", help="address of an OpenAI-compatible server for it")
    parser.add_argument("--judge", default="", help="model that judges answers; default: who answers")
    parser.add_argument("--answers", type=Path, metavar="DIR", help="wait for answers written there as files")
    default = [16_000, PLAYED_AT, 128_000]
    parser.add_argument("--windows", type=_numbers, default=default, help="default: 16000,32000,128000")
    parser.add_argument("--summaries", choices=("written", "extractive"), default="written")
    parser.add_argument("--task", action="append", metavar="ID", help="tasks with this in id or history")
    parser.add_argument("--requests", type=Path, metavar="DIR", help="write the last request of each task there")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write figures and scores there")
    return parser.parse_args()


def _played_at(args: argparse.Namespace) -> int:
    """Return the window at which histories are played, and the kept prefix is measured."""
    return PLAYED_AT if PLAYED_AT in args.windows else int(args.windows[0])


def _numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",")]


if __name__ == "__main__":
    with patient():
        asyncio.run(main(parse()))
