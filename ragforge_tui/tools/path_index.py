"""Paths laid out so that a fuzzy query over a hundred thousand of them takes milliseconds.

Used by `matching.py` for completing @names and by search_files. All paths stand in one text, shortest first, and so
do their names: looking for a piece of one is then a search in C that stops at the first few hits, which are the best
ones. Only what no piece fits goes letter by letter.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate, islice

import numpy as np
import numpy.typing as npt

_BOUNDARY = "/_-. \n"
_SHORTEST = 500
_LINE_END = 10
_LINES_AT_ONCE = 50_000
_MOST_WITHIN = 20_000
_MOST_SPREAD = 1_000
"""Paths that match letter by letter are weighed among the first so many."""


class PathIndex:
    """Read-only once made; safe to search from any thread."""

    def __init__(self, paths: Iterable[str]) -> None:
        ordered = sorted(paths, key=lambda path: (len(path), path))
        lowered = [path.lower().replace("\n", " ") for path in ordered]
        names = [path.rpartition("/")[2] for path in lowered]
        self._count = len(ordered)
        self._paths, self._path_starts = _joined(ordered)
        self._lower, self._lower_starts = _joined(lowered)
        self._names, self._name_starts = _joined(names)
        self._bits = _letter_bits("\n".join(lowered)) if lowered else np.zeros(0, np.uint64)
        self._shallow = sorted(ordered, key=lambda path: (path.count("/"), path))[:_SHORTEST]

    def __len__(self) -> int:
        return self._count

    def best(self, query: str, limit: int) -> list[str]:
        """The best paths for a query: every letter must occur in order; whole pieces, and file names, count most.

        Among equals the shortest comes first; an empty query gives those nearest to the root.
        """
        wanted = "".join(query.lower().split())
        if not wanted:
            return self._shallow[:limit]
        found: dict[int, None] = {}
        for rank in self._ranks(wanted, limit):
            for number in rank:
                if len(found) >= limit:
                    return [self._path(number) for number in found]
                found[number] = None
        return [self._path(number) for number in found]

    def within(self, folder: str, rest: str, limit: int) -> list[str]:
        """What stands directly in a folder (``src/``) and has `rest` in its name, shortest first."""
        wanted = rest.lower()
        there = (self._path(number) for number in _numbers(self._paths, self._path_starts)(f"\n{folder}"))
        # Looked at one by one: of a folder with everything under it only so many are.
        near = (path for path in islice(there, _MOST_WITHIN) if "/" not in path[len(folder) :])
        return list(islice((path for path in near if wanted in path[len(folder) :].lower()), limit))

    def __contains__(self, path: str) -> bool:
        return f"\n{path}\n" in self._paths

    def _ranks(self, wanted: str, limit: int) -> Iterator[Iterable[int]]:
        """Numbers of paths, best kind of match first. A later kind is looked for only when it is needed."""
        names = _numbers(self._names, self._name_starts)
        lower = _numbers(self._lower, self._lower_starts)
        yield from (names(f"\n{wanted}\n"), lower(f"\n{wanted}\n"), names(f"\n{wanted}"))
        for text, numbers in ((self._names, names), (self._lower, lower)):
            inside = list(islice(numbers(wanted), limit * 20))
            at_start = [number for number in inside if self._at_boundary(text, wanted, number)]
            yield at_start
            yield inside
        yield self._spread_out(wanted)

    def _spread_out(self, wanted: str) -> list[int]:
        """Paths that hold the letters in order, those whose name does first."""
        # Each piece stops at the letter it waits for, so nothing is ever tried twice.
        in_order = re.compile("".join(f"[^{re.escape(letter)}]*{re.escape(letter)}" for letter in wanted)).match
        lines = ((number, _line(self._lower, self._lower_starts, number)) for number in self._with_letters(wanted))
        hits = islice(((number, line) for number, line in lines if in_order(line)), _MOST_SPREAD)
        weighed: list[tuple[bool, int, int]] = []
        for number, line in hits:
            name = line.rpartition("/")[2]
            in_name = in_order(name) is not None
            weighed.append((not in_name, _spread(name if in_name else line, wanted), number))
        return [number for _, _, number in sorted(weighed)]

    def _with_letters(self, wanted: str) -> list[int]:
        """Paths that hold all the letters, in whatever order."""
        wanted_bits = _letter_bits(wanted)[0]
        found: list[int] = ((self._bits & wanted_bits) == wanted_bits).nonzero()[0].tolist()
        return found

    def _at_boundary(self, text: str, wanted: str, number: int) -> bool:
        starts = self._name_starts if text is self._names else self._lower_starts
        at = text.find(wanted, starts[number])
        return text[at - 1] in _BOUNDARY

    def _path(self, number: int) -> str:
        return _line(self._paths, self._path_starts, number)


def _joined(lines: list[str]) -> tuple[str, array[int]]:
    """All lines with a line end before and after each, and where each begins."""
    return "\n" + "\n".join(lines) + "\n", array("Q", accumulate((len(line) + 1 for line in lines), initial=1))


def _letter_bits(text: str) -> npt.NDArray[np.uint64]:
    """For each line which letters it holds, a bit a letter; some letters share one, which a reader has to bear."""
    letters = np.frombuffer(text.encode("utf-8", "replace"), np.uint8)
    starts = np.concatenate(([0], np.flatnonzero(letters == _LINE_END) + 1))
    bits = np.empty(len(starts), np.uint64)
    for first in range(0, len(starts), _LINES_AT_ONCE):
        some = starts[first : first + _LINES_AT_ONCE]
        end = starts[first + _LINES_AT_ONCE] if first + _LINES_AT_ONCE < len(starts) else len(letters)
        each = np.left_shift(np.uint64(1), (letters[some[0] : end] & 63).astype(np.uint64))
        each[letters[some[0] : end] == _LINE_END] = 0
        bits[first : first + len(some)] = np.bitwise_or.reduceat(each, some - some[0])
    return bits


def _line(text: str, starts: array[int], number: int) -> str:
    return text[starts[number] : starts[number + 1] - 1]


def _numbers(text: str, starts: array[int]) -> Callable[[str], Iterator[int]]:
    """Looks for a piece: the number of each line that holds it, in order."""

    def numbers(piece: str) -> Iterator[int]:
        at = text.find(piece)
        while at >= 0:
            number = bisect_right(starts, at + 1 if piece[0] == "\n" else at) - 1
            yield number
            at = text.find(piece, starts[number + 1] - 1)

    return numbers


def _spread(text: str, wanted: str) -> int:
    """How many letters lie between the wanted ones."""
    first = position = -1
    for letter in wanted:
        position = text.find(letter, position + 1)
        first = position if first < 0 else first
    return position - first + 1 - len(wanted)
