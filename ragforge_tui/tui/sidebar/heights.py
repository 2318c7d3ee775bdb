"""Heights of panes one above the other: each as tall as what it holds, and the rest to those that scroll."""

from __future__ import annotations

from collections.abc import Sequence


def heights(needed: Sequence[int], weights: Sequence[int], rows: int) -> list[int]:
    """Return the rows of each pane.

    Args:
        needed: Rows that each would fill.
        weights: How rows that do not suffice are shared among those that need more.
        rows: All rows there are.
    """
    given = [0] * len(needed)
    left, waiting = max(rows, 0), list(range(len(needed)))
    while waiting:
        whole = sum(weights[at] for at in waiting)
        content = [at for at in waiting if needed[at] * whole <= left * weights[at]]
        if not content:
            break
        for at in content:
            given[at] = needed[at]
        left -= sum(needed[at] for at in content)
        waiting = [at for at in waiting if at not in content]
    for number, at in enumerate(waiting):
        whole = sum(weights[other] for other in waiting[number:])
        given[at] = min(left * weights[at] // whole, needed[at])
        left -= given[at]
    return given
