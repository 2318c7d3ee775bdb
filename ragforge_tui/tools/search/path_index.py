"""Index of paths in which a fuzzy query over a hundred thousand of them takes milliseconds.

Used by `matching.py` for completing @names and by search_files. All paths are stored in one string, shortest first,
and so are their names. Finding a substring is then a search in C that stops at the first few hits, which are the best
ones. Only a query without substring matches is matched letter by letter.
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
"""Number of paths matching letter by letter that are ranked."""


class PathIndex:
    """Immutable index of paths; safe to search from any thread."""

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
        """Return the best paths for a query, whose letters must all occur in order.

        Substring matches and matches in file names rank highest, and shorter paths first. An empty query returns the
        paths nearest to the root.
        """
        needle = "".join(query.lower().split())
        if not needle:
            return self._shallow[:limit]
        matches: dict[int, None] = {}
        for rank in self._ranks(needle, limit):
            for number in rank:
                if len(matches) >= limit:
                    return [self._path(number) for number in matches]
                matches[number] = None
        return [self._path(number) for number in matches]

    def within(self, folder: str, rest: str, limit: int) -> list[str]:
        """Return the paths directly in a folder (``src/``) whose name contains `rest`, shortest first."""
        needle = rest.lower()
        below = (self._path(number) for number in _numbers(self._paths, self._path_starts)(f"\n{folder}"))
        # Every path below the folder is checked one by one, so a huge folder is only checked in part.
        direct = (path for path in islice(below, _MOST_WITHIN) if "/" not in path[len(folder) :])
        return list(islice((path for path in direct if needle in path[len(folder) :].lower()), limit))

    def __contains__(self, path: str) -> bool:
        return f"\n{path}\n" in self._paths

    def _ranks(self, needle: str, limit: int) -> Iterator[Iterable[int]]:
        """Yield the numbers of paths, best kind of match first. Later kinds are searched only on demand."""
        names = _numbers(self._names, self._name_starts)
        lower = _numbers(self._lower, self._lower_starts)
        yield from (names(f"\n{needle}\n"), lower(f"\n{needle}\n"), names(f"\n{needle}"))
        for text, numbers in ((self._names, names), (self._lower, lower)):
            inside = list(islice(numbers(needle), limit * 20))
            at_start = [number for number in inside if self._at_boundary(text, needle, number)]
            yield at_start
            yield inside
        yield self._spread_out(needle)

    def _spread_out(self, needle: str) -> list[int]:
        """Return the paths that contain the letters in order; those with all of them in the name come first."""
        # Each group stops at the letter it searches for, so the expression never backtracks.
        in_order = re.compile("".join(f"[^{re.escape(letter)}]*{re.escape(letter)}" for letter in needle)).match
        lines = ((number, _line(self._lower, self._lower_starts, number)) for number in self._with_letters(needle))
        hits = islice(((number, line) for number, line in lines if in_order(line)), _MOST_SPREAD)
        ranked: list[tuple[bool, int, int]] = []
        for number, line in hits:
            name = line.rpartition("/")[2]
            in_name = in_order(name) is not None
            ranked.append((not in_name, _spread(name if in_name else line, needle), number))
        return [number for _, _, number in sorted(ranked)]

    def _with_letters(self, needle: str) -> list[int]:
        """Return the paths that contain all the letters, in any order."""
        bits = _letter_bits(needle)[0]
        numbers: list[int] = ((self._bits & bits) == bits).nonzero()[0].tolist()
        return numbers

    def _at_boundary(self, text: str, needle: str, number: int) -> bool:
        starts = self._name_starts if text is self._names else self._lower_starts
        at = text.find(needle, starts[number])
        return text[at - 1] in _BOUNDARY

    def _path(self, number: int) -> str:
        return _line(self._paths, self._path_starts, number)


def _joined(lines: list[str]) -> tuple[str, array[int]]:
    """Return all lines in one string, each between line ends, and the start offset of each."""
    return "\n" + "\n".join(lines) + "\n", array("Q", accumulate((len(line) + 1 for line in lines), initial=1))


def _letter_bits(text: str) -> npt.NDArray[np.uint64]:
    """Return a bit set of the letters of each line; some letters share a bit, so the caller must verify a match."""
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
    """Return a function that yields the number of each line that contains a substring, in order."""

    def numbers(needle: str) -> Iterator[int]:
        at = text.find(needle)
        while at >= 0:
            number = bisect_right(starts, at + 1 if needle[0] == "\n" else at) - 1
            yield number
            at = text.find(needle, starts[number + 1] - 1)

    return numbers


def _spread(text: str, needle: str) -> int:
    """Return the number of other letters between those of the needle."""
    first = position = -1
    for letter in needle:
        position = text.find(letter, position + 1)
        first = position if first < 0 else first
    return position - first + 1 - len(needle)
