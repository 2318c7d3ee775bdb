"""Replacements in the text of a file, as edit_file and patches make them.

A model copies the text to replace from what it has seen, and now and then gets its white space, or characters that look
alike, wrong. Where only one place can be meant, that place is replaced and the answer says so; otherwise the error
shows the closest lines. Whatever is equal in the old and the new text keeps the characters and line ends of the file.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from ragforge_tui.shared.encoding import lines_of
from ragforge_tui.shared.errors import ToolError
from ragforge_tui.shared.look_alikes import folded, folded_character
from ragforge_tui.shared.sanitize import visible
from ragforge_tui.shared.truncation import cut_middle
from ragforge_tui.tools.diff import line_opcodes

CLOSE = 0.6
"""Share of equal words from which lines are shown as the closest."""
AROUND = 15
"""Lines shown before and after a place of a file that changed."""
MOST_FOLDED = 8_000_000
"""Characters of a text in which look-alikes are searched for."""
LOOKED_ALIKE = "Characters of old_string only look like those of {}, which keep theirs where nothing changed."
_MOST_NAMED = 10
_SHOWN_LINES = 12
_SHOWN_CHARS = 500
"""Of one of the closest lines."""
_RARE = 20
"""Most places of a line that still helps to locate a piece."""
_CANDIDATES = 3
_SHORTEST = 0.3
"""Part of a line's length that one like it has at least."""
_WORD = re.compile(r"\w+|[^\w\s]")
_LINE_END = re.compile(r"\r\n")
_FOLDED = re.compile(r"\r\n|[^\x00-\x7f]")


class Replaced(NamedTuple):
    """A text after a replacement.

    Attributes:
        text: The whole text.
        note: What the model should know about how its text was matched; empty if it matched exactly.
    """

    text: str
    note: str = ""


class Span(NamedTuple):
    """Place of a piece in a text, by offsets."""

    start: int
    end: int


class View:
    """Text in which some characters are replaced by others, with the place of each in the original.

    Args:
        pattern: Matches each character that is replaced.
    """

    def __init__(self, text: str, pattern: re.Pattern[str]) -> None:
        self._starts: list[int] = []
        self._changes: list[tuple[Span, Span]] = []
        """Of each replaced character its place in the original, and in the view."""
        parts: list[str] = []
        size = last = 0
        for match in pattern.finditer(text):
            new = "\n" if match[0][0] == "\r" else folded_character(match[0])
            if new == match[0]:
                continue
            parts += (text[last : match.start()], new)
            size += match.start() - last
            self._starts.append(size)
            self._changes.append((Span(*match.span()), Span(size, size + len(new))))
            size += len(new)
            last = match.end()
        self.text = "".join([*parts, text[last:]])

    def spans(self, piece: str, most: int) -> list[Span]:
        """Return the places of a piece in the original; none that begins or ends within a character."""
        found: list[Span] = []
        for at in _occurrences(self.text, piece):
            start, end = self.start_of(at), self.end_of(at + len(piece))
            if start is not None and end is not None and start <= end and not self._cuts(at, at + len(piece)):
                found.append(Span(start, end))
            if len(found) == most:
                break
        return found

    def _cuts(self, *places: int) -> bool:
        """Return whether an accent at one of the places belongs to the letter before it."""
        return any(unicodedata.combining(letter) for place in places for letter in self.text[place : place + 1])

    def start_of(self, place: int) -> int | None:
        """Return where in the original a piece at this place begins; None within a character."""
        at = bisect_right(self._starts, place) - 1
        if at < 0:
            return place
        original, here = self._changes[at]
        if here.start < place < here.end:
            return None
        return original.start if place == here.start < here.end else original.end + place - here.end

    def end_of(self, place: int) -> int | None:
        """Return where in the original a piece that ends at this place ends; None within a character."""
        at = bisect_left(self._starts, place) - 1
        if at < 0:
            return place
        original, here = self._changes[at]
        return original.end + place - here.end if place >= here.end else None


def replace(text: str, old: str, new: str, path: str, *, everywhere: bool = False) -> Replaced:
    """Replace the only occurrence of a piece, or all of them; equal lines keep the characters and ends of the file.

    Args:
        path: The file's name for messages.
        everywhere: Replace all occurrences; only exact ones.

    Raises:
        ToolError: The piece is empty, equal to the new one, missing or not unique.
    """
    if not old:
        raise ToolError("old_string is empty.", todo="Give the text to replace, or use write_file.", kind="no_match")
    if old == new:
        raise ToolError("old_string and new_string are equal; there is nothing to do.", kind="no_change")
    spans, alike = _found(text, old, None if everywhere else _MOST_NAMED)
    if everywhere and spans and not alike:
        return Replaced(_all_replaced(text, spans, new), f"{len(spans)} places were replaced.")
    if len(spans) > 1:
        lines = [text.count("\n", 0, span.start) + 1 for span in spans]
        raise ToolError(
            f"old_string is not unique in {path}: it starts on lines {', '.join(map(str, lines))}.",
            todo="Include more of the lines around it, or set replace_all.",
            kind="not_unique",
        )
    if spans:
        changed = _replaced_at(text, spans[0], old, new)
        first, last = (text.count("\n", 0, at) + 1 for at in spans[0])
        return Replaced(changed, LOOKED_ALIKE.format(lines_named(first, last)) if alike else "")
    if not everywhere and (shifted := replaced_but_for_space(text, old, new)) is not None:
        return shifted
    raise ToolError(
        f"old_string does not occur in {path}.{closest(text, old)}",
        todo="Copy it exactly from the file, without line numbers and with its indentation.",
        kind="no_match",
    )


def _found(text: str, old: str, most: int | None) -> tuple[list[Span], bool]:
    """Return the places of a piece, and whether only look-alikes of it are there."""
    exact = [Span(at, at + len(old)) for at in islice(_occurrences(text, old), most)]
    if most is None:
        exact = [span for at, span in enumerate(exact) if not at or span.start >= exact[at - 1].end]
    if exact:
        return exact, False
    wanted = _LINE_END.sub("\n", old)
    if ("\r" in text or wanted != old) and (spans := View(text, _LINE_END).spans(wanted, most or len(text))):
        return spans, False
    if len(text) > MOST_FOLDED or (text.isascii() and old.isascii()) or not (alike := folded(wanted)):
        return [], False
    return View(text, _FOLDED).spans(alike, _MOST_NAMED), True


def _all_replaced(text: str, spans: Sequence[Span], new: str) -> str:
    parts: list[str] = []
    done = 0
    for start, end in spans:
        parts += (text[done:start], new if "\r" in new else new.replace("\n", _end_near(text, start)))
        done = end
    return "".join([*parts, text[done:]])


def _replaced_at(text: str, span: Span, old: str, new: str) -> str:
    """Return a text with one piece replaced, whole lines at a time."""
    start = text.rfind("\n", 0, span.start) + 1
    head, end = text[start : span.start], span.end
    if text[end - 1] != "\n" or (head + new)[-1:] not in ("", "\n"):
        end = text.find("\n", end) + 1 or len(text)
    tail = text[span.end : end]
    region = rewritten(text[start:end], head + old + tail, head + new + tail, _end_near(text, start))
    return text[:start] + region + text[end:]


def rewritten(raw: str, old: str, new: str, end: str) -> str:
    """Return lines of a file with the changes from one text to another.

    Args:
        raw: The lines, which may differ from `old` in line ends, white space and look-alikes.
        old: As many lines.
        end: Line end near them.
    """
    lines, before, after = split(raw), split(old), split(new)
    result: list[str] = []
    for tag, i, j, k, m in line_opcodes(before, after):
        if tag == "equal":
            result += lines[i:j]
            continue
        for at in range(k, m):
            same = i + at - k
            paired = same < j and same < len(lines)
            kept = lines[same] if paired else (result[-1] if result else end)
            body = _body_kept(bare(lines[same]), bare(before[same]), bare(after[at])) if paired else bare(after[at])
            given = _end_of(after[at])
            result.append(body + ((_end_of(kept) or end) if given == "\n" else given))
    for at, line in enumerate(result[:-1]):
        result[at] = line if _end_of(line) else line + end
    return "".join(result)


def _body_kept(raw: str, old: str, new: str) -> str:
    """Return the new line with the characters of the file where it equals the old one."""
    if raw == old or folded(raw) != folded(old):
        return new
    head = _common(old, new)
    tail = _common(old[head:][::-1], new[head:][::-1])
    view = View(raw, _FOLDED)
    start = view.end_of(len(folded(old[:head])))
    end = view.start_of(len(view.text) - len(folded(old[len(old) - tail :])))
    if start is None or end is None or start > end:
        return new
    return raw[:start] + new[head : len(new) - tail] + raw[end:]


def _common(one: str, other: str) -> int:
    """Return the number of first characters that two texts share."""
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def split(text: str) -> list[str]:
    """Split into lines with their ends; only newlines end a line."""
    lines = [f"{line}\n" for line in text.split("\n")]
    last = lines.pop()[:-1]
    return [*lines, last] if last else lines


def _end_of(line: str) -> str:
    return "\r\n" if line.endswith("\r\n") else "\n" if line.endswith("\n") else ""


def bare(line: str) -> str:
    return line[: len(line) - len(_end_of(line))]


def _end_near(text: str, at: int) -> str:
    """Return the end of the line at an offset, of the one before if that has none."""
    for found in (text.find("\n", at), text.rfind("\n", 0, at)):
        if found >= 0:
            return "\r\n" if text[found - 1 : found] == "\r" else "\n"
    return "\n"


def whole_rewritten(old: str, new: str) -> str:
    """Return the whole new text of a file, whose equal lines keep their ends; ends that the new text gives stay."""
    if "\r\n" in new or "\r\n" not in old:
        return new
    return rewritten(old, old.replace("\r\n", "\n"), new, _end_near(old, 0))


def replace_lines(lines: list[str], at: int, old: Sequence[str], new: Sequence[str]) -> None:
    """Replace lines of a file, given with their ends, in place.

    Args:
        old: What they are meant to be, without ends.
        new: Without ends; the last line of a file that has no end keeps none.
    """
    end = next((_end_of(line) for line in reversed(lines[:at]) if _end_of(line)), "") or _end_near(
        "".join(lines[:1]), 0
    )
    count = len(old)
    unended = bool(lines) and at + count == len(lines) and not _end_of(lines[-1])
    if unended and not count and new:
        lines[-1] += end
    asked, wanted = ("".join(f"{line}\n" for line in side) for side in (old, new))
    if unended:
        asked, wanted = asked.removesuffix("\n"), wanted.removesuffix("\n")
    lines[at : at + count] = split(rewritten("".join(lines[at : at + count]), asked, wanted, end))


def lines_around(text: str, old: str) -> str:
    """Return the numbered lines around the only occurrence of a piece; empty if it does not occur exactly once."""
    if not old or text.count(old) != 1:
        return ""
    start = text.count("\n", 0, text.index(old))
    end = start + old.count("\n") + 1
    first = max(start - AROUND, 0)
    return "\n".join(
        f"{number:>6}\t{visible(line)}" for number, line in enumerate(lines_of(text)[first : end + AROUND], first + 1)
    )


def _occurrences(text: str, piece: str) -> Iterator[int]:
    at = text.find(piece) if piece else -1
    while at >= 0:
        yield at
        at = text.find(piece, at + 1)


def replaced_but_for_space(text: str, old: str, new: str, above: int = 0) -> Replaced | None:
    """Return the text with whole lines replaced that differ in white space only, if just one place has such lines.

    All lines must be indented more, or less, by the same amount; the new lines are shifted by it too.

    Args:
        above: Lines of the file above the text, for the note.
    """
    lines, wanted = split(text), split(old)
    bare = "".join(f"{folded(line).strip()}\n" for line in wanted)
    if not bare.strip():
        return None
    stripped = "\n" + "".join(f"{folded(line).strip()}\n" for line in lines)
    places = list(islice(_occurrences(stripped, f"\n{bare}"), 2))
    if len(places) != 1:
        return None
    start = stripped.count("\n", 0, places[0])
    end = start + len(wanted)
    shift = _shift(wanted, lines[start:end])
    if shift is None:
        return None
    asked, moved = ("".join(_shifted(line, shift) for line in split(side)) for side in (old, new))
    if moved and _end_of(lines[end - 1]) and not _end_of(moved):
        moved += "\n"
        asked += "" if _end_of(asked) else "\n"
    region = rewritten("".join(lines[start:end]), asked, moved, _end_of(lines[start - 1]) or "\n")
    return Replaced(
        "".join([*lines[:start], region, *lines[end:]]),
        f"The white space of old_string differed from {lines_named(start + above + 1, end + above)}; "
        "the new lines have the file's indentation.",
    )


def lines_named(first: int, last: int) -> str:
    return f"lines {first} to {last}" if last > first else f"line {last}"


def _shift(wanted: list[str], found: list[str]) -> tuple[str, str] | None:
    """Return the indentation to replace and the one that takes its place, if one rule leads from all lines to all."""
    pairs = {(_indent(one), _indent(other)) for one, other in zip(wanted, found, strict=True) if one.strip()}
    before, after = min(pairs, key=lambda pair: len(pair[0]))
    fits = all(one.startswith(before) and other == after + one.removeprefix(before) for one, other in pairs)
    return (before, after) if fits else None


def _shifted(line: str, shift: tuple[str, str]) -> str:
    before, after = shift
    return after + line.removeprefix(before) if line.strip() and line.startswith(before) else line


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def closest(text: str, old: str) -> str:
    """Return the lines that are most like a piece, with their numbers; empty if none are.

    The work grows with the length of both: likeness is the share of words that both have, wherever they are.
    """
    lines, wanted = lines_of(text), lines_of(old)
    starts = _starts_by_rare_lines(lines, wanted) or _starts_by_longest_line(lines, wanted)
    words = _words(wanted)
    rated = [(_likeness(words, _words(lines[at : at + len(wanted)])), -at) for at in starts]
    score, at = max(rated, default=(0.0, 0))
    if score < CLOSE:
        return ""
    near = lines[-at : min(len(wanted), _SHOWN_LINES) - at]
    shown = [f"{number:>6}\t{visible(cut_middle(line, _SHOWN_CHARS))}" for number, line in enumerate(near, 1 - at)]
    return "\n".join([f" The closest lines ({score:.0%} alike):", *shown, ""])


def _starts_by_rare_lines(lines: list[str], wanted: list[str]) -> list[int]:
    """Return where a piece would begin if its lines were those equal ones of the text that are rare there."""
    asked = {line.strip() for line in wanted} - {""}
    places: defaultdict[str, list[int]] = defaultdict(list)
    for at, line in enumerate(lines):
        if (bare := line.strip()) in asked:
            places[bare].append(at)
    rare = min(map(len, places.values()), default=0)
    votes: Counter[int] = Counter()
    for number, line in enumerate(wanted):
        found = places.get(line.strip(), [])
        if len(found) <= max(rare, _RARE):
            votes.update(max(at - number, 0) for at in found[:_RARE])
    return [at for at, _ in votes.most_common(_CANDIDATES)]


def _starts_by_longest_line(lines: list[str], wanted: list[str]) -> list[int]:
    longest = max(wanted, key=len, default="")
    words = _words([longest])
    # A line of another size shares too few words, however many they are.
    sizes = range(int(len(longest) * _SHORTEST), int(len(longest) / _SHORTEST) + 1)
    rated = ((_likeness(words, _words([line])), -at) for at, line in enumerate(lines) if len(line) in sizes)
    return [max(-at - wanted.index(longest), 0) for score, at in sorted(rated)[-_CANDIDATES:] if score >= CLOSE]


def _words(lines: Iterable[str]) -> Counter[str]:
    return Counter(word for line in lines for word in _WORD.findall(line))


def _likeness(one: Counter[str], other: Counter[str]) -> float:
    few, many = sorted((one, other), key=len)
    common = sum(min(count, many[word]) for word, count in few.items() if word in many)
    return 2 * common / ((one.total() + other.total()) or 1)
