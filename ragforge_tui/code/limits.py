"""Times of the index of code: how long is waited before files are looked at, and for what another process does.

They are one value, so that a test that measures what is indexed, and not how fast the machine is, sets them in one
place.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class IndexingLimits:
    """Times of the index of code, in seconds.

    Attributes:
        changes: Longest time for which changes of files are collected.
        pause: Time without changes after which the collected ones are reported.
        report: Shortest time between two reports of progress, and between two looks at what another process has
            indexed.
        take_over: Between two attempts to take over a workspace that another process indexes.
        wait: Longest wait of a tool for an index that is being made.
        retry: After a failure.
        rescan: Between two looks at all files where they cannot be watched.
        written: Longest wait for scopes that a turn has just written to be indexed, before it is linked to them.
    """

    changes: float = 0.8
    pause: float = 0.15
    report: float = 0.5
    take_over: float = 10.0
    wait: float = 10.0
    retry: float = 30.0
    rescan: float = 60.0
    written: float = 6.0


INDEXING = IndexingLimits()
