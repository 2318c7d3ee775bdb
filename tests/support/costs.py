"""Processor time of each test, and the memory its worker held after it.

Wall time depends on what else the machine does; processor time hardly. Children are counted once they were waited for.
"""

from __future__ import annotations

import os
import sys
import time
from collections import defaultdict
from collections.abc import Iterator

import psutil
import pytest

NAMED = 10
MOST_SECONDS = 2.0
"""Processor time above which a test needs one of `COSTLY` as a mark, or a cheaper way to show the same."""
COSTLY = ("slow", "cold", "hypothesis", "neo4j")
_SECONDS = "cpu_seconds"
_OF = "cpu_of"
_MEGABYTES = "worker_mb"
_MARKED = "costly"
END = "(servers and fixtures of a whole worker)"
_LOADED = "litellm"

_process = psutil.Process()
_marked_at = pytest.StashKey[float]()
_last = pytest.StashKey[bool]()
_had_litellm = pytest.StashKey[bool]()


def _used() -> float:
    times = os.times()
    return time.process_time() + times.children_user + times.children_system


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    """Note where a test starts, and whether it is the worker's last."""
    item.stash[_marked_at] = _used()
    item.stash[_last] = nextitem is None
    item.stash[_had_litellm] = "litellm" in sys.modules
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[pytest.TestReport]:
    """Add to a report the costs of its phase."""
    report: pytest.TestReport = yield  # type: ignore[misc]  # a wrapper receives what the others returned
    now = _used()
    # The last teardown of a worker waits for its servers, whose processor time is that of all tests.
    of = END if item.stash[_last] and report.when == "teardown" else item.nodeid
    # The first test of a worker that needs LiteLLM pays for its import.
    loaded = not item.stash[_had_litellm] and "litellm" in sys.modules
    report.user_properties = [
        (_SECONDS, now - item.stash[_marked_at]),
        (_OF, of),
        (_MEGABYTES, _process.memory_info().rss / 1e6),
        (_MARKED, loaded or any(item.get_closest_marker(name) for name in COSTLY)),
        (_LOADED, loaded and not _may_load(item)),
    ]
    item.stash[_marked_at] = now
    return report


def _may_load(item: pytest.Item) -> bool:
    """Return whether LiteLLM is the subject of a test, or left to `make test-all`."""
    return "llm" in item.path.parent.parts or any(item.get_closest_marker(name) for name in ("http", *COSTLY))


class Costs:
    """What all tests of a run used, collected where the run is reported."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self.marked: set[str] = set()
        self.loading: set[str] = set()
        self.megabytes: dict[str, float] = defaultdict(float)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add one phase of a test."""
        found = dict(report.user_properties)
        self.seconds[str(found.get(_OF, report.nodeid))] += float(found.get(_SECONDS, 0.0))  # type: ignore[arg-type]
        worker = getattr(report, "worker_id", "main")
        self.megabytes[worker] = max(self.megabytes[worker], float(found.get(_MEGABYTES, 0.0)))  # type: ignore[arg-type]
        if found.get(_MARKED):
            self.marked.add(report.nodeid)
        if found.get(_LOADED):
            self.loading.add(report.nodeid)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Name the most expensive tests, and those that are too expensive for what they are marked as."""
        total = sum(self.seconds.values())
        most = ", ".join(f"{name} {size:.0f} MB" for name, size in sorted(self.megabytes.items()))
        terminalreporter.section(
            f"processor time: {total:.0f} s in {len(self.seconds) - (END in self.seconds)} tests; {most}"
        )
        ordered = sorted(self.seconds.items(), key=lambda item: -item[1])
        for nodeid, seconds in ordered[:NAMED]:
            terminalreporter.line(f"{seconds:6.1f} s  {nodeid}")
        for nodeid, seconds in ordered:
            if seconds > MOST_SECONDS and nodeid not in self.marked and nodeid != END:
                terminalreporter.line(f"FAULT: {nodeid} used {seconds:.1f} s and is not marked slow.", red=True)
        for nodeid in sorted(self.loading):
            said = "loaded LiteLLM, which costs each worker seconds: script its model or mark it http."
            terminalreporter.line(f"FAULT: {nodeid} {said}", red=True)
        if path := os.environ.get("RAGFORGE_TEST_COSTS"):
            with open(path, "w", encoding="utf-8") as file:  # noqa: PTH123
                file.writelines(f"{seconds:.3f}\t{nodeid}\n" for nodeid, seconds in ordered)
