"""Vim's keys in the prompt: the normal mode with motions, operators, counts and registers of one text.

Only what fingers do without thinking: h j k l w b e 0 ^ $ gg G f t, d c y with these, with themselves and with ``iw``
and ``aw``, x X s S D C Y r ~ p P u ctrl+r i a I A o O. Enter sends in both modes, and the history stays on j and k.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Literal

from textual.widgets import TextArea

VimMode = Literal["insert", "normal"]
_WORD = re.compile(r"\w+|[^\w\s]+|^(?=\n)", re.MULTILINE)
"""What w, b and e count as a word: letters, signs, or an empty line."""
_OPERATORS = "dcy"
_FINDS = "ftFT"
_MOST_REPEATED = 999


class VimKeys:
    """Vim's keys of one text area.

    Attributes:
        mode: Insert, where keys type, or normal.

    Args:
        changed: Called when the mode has changed.
    """

    def __init__(self, area: TextArea, changed: Callable[[], None]) -> None:
        self._area = area
        self._changed = changed
        self.mode: VimMode = "insert"
        self._typed = ""
        """Keys of a command that is not complete."""
        self._register = ""
        self._whole_lines = False
        """Whether the register holds whole lines."""

    def escape(self) -> bool:
        """Go to the normal mode, or drop a command that is not complete; return False if there was nothing to do."""
        if self.mode == "insert":
            self._set("normal")
            if self._column:
                self._go(self._offset - 1)
            return True
        had, self._typed = bool(self._typed), ""
        return had

    def insert(self) -> None:
        """Go to the insert mode, as after a message was sent."""
        self._typed = ""
        self._set("insert")

    def press(self, key: str, character: str | None) -> bool:
        """Handle a key; return False for one that is not Vim's, such as Enter, or any in the insert mode."""
        if self.mode == "insert":
            return False
        if key == "ctrl+r":
            self._area.redo()
        elif key == "backspace":
            self._go(self._offset - 1)
        elif character is None or not character.isprintable():
            return False
        else:
            self._typed += character
            if self._run(self._typed):
                self._typed = ""
                if self.mode == "normal" and self._column and self._offset == self._line_end:
                    self._go(self._offset - 1)  # On the last letter, not behind it.
        return True

    # -- one command

    def _run(self, typed: str) -> bool:
        """Carry out a command; return False while it is not complete. An unknown one does nothing."""
        digits, rest = _count(typed)
        if not rest:
            return False
        count = min(int(digits or 1), _MOST_REPEATED)
        first = rest[0]
        if first in _OPERATORS:
            return self._operate(first, rest[1:], count)
        if first in _FINDS or first in "gr":
            if len(rest) < 2:
                return False
            if first == "r":
                self._replace(self._offset, min(self._offset + count, self._line_end), rest[1] * count)
                self._go(self._offset - 1)
                return True
        if (goal := self._motion(rest, count, counted=bool(digits))) is not None:
            self._go(goal)
        else:
            self._simple(first, count)
        return True

    def _simple(self, key: str, count: int) -> None:
        at, end = self._offset, self._line_end
        match key:
            case "i":
                self._set("insert")
            case "a":
                self._set("insert")
                self._go(min(at + 1, end))
            case "I":
                self._set("insert")
                self._go(self._indent)
            case "A":
                self._set("insert")
                self._go(end)
            case "o" | "O":
                place = end if key == "o" else self._line_start
                self._set("insert")
                self._replace(place, place, "\n")
                self._go(place + 1 if key == "o" else place)
            case "x":
                self._take(at, min(at + count, end), delete=True)
            case "X":
                self._take(max(at - count, self._line_start), at, delete=True)
            case "s":
                self._take(at, min(at + count, end), delete=True)
                self._set("insert")
            case "S":
                self._lines("c", count)
            case "D" | "C":
                self._take(at, end, delete=True)
                if key == "C":
                    self._set("insert")
            case "Y":
                self._lines("y", count)
            case "~":
                stop = min(at + count, end)
                self._replace(at, stop, self._text[at:stop].swapcase())
            case "p" | "P":
                self._put(after=key == "p", count=count)
            case "u":
                for _ in range(count):
                    self._area.undo()
            case "j":
                self._area.action_cursor_down()
            case "k":
                self._area.action_cursor_up()

    def _operate(self, operator: str, rest: str, before: int) -> bool:
        digits, motion = _count(rest)
        if not motion or (motion[0] in _FINDS + "gia" and len(motion) < 2):
            return False
        count = min(before * int(digits or 1), _MOST_REPEATED)
        if motion == operator or motion in ("j", "k"):
            self._lines(operator, count + (motion != operator), up=motion == "k")
            return True
        found = self._range(operator, motion, count)
        if found is not None:
            self._take(*found, delete=operator != "y")
            if operator == "y":
                self._go(found[0])
            elif operator == "c":
                self._set("insert")
        return True

    def _range(self, operator: str, motion: str, count: int) -> tuple[int, int] | None:
        """Return the text that an operator with a motion is about, None for an unknown motion."""
        at = self._offset
        if motion in ("iw", "aw"):
            return self._word_at(at, blanks=motion == "aw")
        if motion == "w":
            # cw leaves the blank after the word; dw on the last word of a line leaves the line's end.
            if operator == "c" and at < len(self._text) and not self._text[at].isspace():
                return at, self._ends(at - 1, count) + 1
            return at, min(self._starts(at, count), self._line_end) if count == 1 else self._starts(at, count)
        goal = self._motion(motion, count, counted=True)
        if goal is None:
            return None
        inclusive = motion[0] in "e$ft" and goal >= at
        return min(at, goal), max(at, goal) + (inclusive and goal < len(self._text) and motion != "$")

    def _motion(self, keys: str, count: int, *, counted: bool) -> int | None:
        """Return where a motion leads, None for other keys."""
        text, at = self._text, self._offset
        match keys[0]:
            case "h":
                return max(at - count, self._line_start)
            case "l" | " ":
                return min(at + count, self._line_end)
            case "0":
                return self._line_start
            case "^":
                return self._indent
            case "$":
                return self._line_end
            case "w":
                return self._starts(at, count)
            case "b":
                before = [found.start() for found in _WORD.finditer(text, 0, at) if found.start() < at]
                return before[-count] if count <= len(before) else 0
            case "e":
                return self._ends(at, count)
            case "g" if keys == "gg":
                return self._line_offset(count if counted else 1)
            case "G":
                return self._line_offset(count) if counted else self._line_offset(text.count("\n") + 1)
            case "f" | "t" | "F" | "T":
                return self._found(keys[0], keys[1], count)
        return None

    def _starts(self, at: int, count: int) -> int:
        after = [found.start() for found in _WORD.finditer(self._text) if found.start() > at]
        return after[count - 1] if count <= len(after) else len(self._text)

    def _ends(self, at: int, count: int) -> int:
        after = [found.end() - 1 for found in _WORD.finditer(self._text) if found.end() - 1 > at]
        return after[count - 1] if count <= len(after) else max(len(self._text) - 1, 0)

    def _found(self, key: str, wanted: str, count: int) -> int | None:
        at = self._offset
        if key in "ft":
            places = [place for place in range(at + 1, self._line_end) if self._text[place] == wanted]
        else:
            places = [place for place in range(at - 1, self._line_start - 1, -1) if self._text[place] == wanted]
        if count > len(places):
            return at
        return places[count - 1] + {"t": -1, "T": 1}.get(key, 0)

    def _word_at(self, at: int, *, blanks: bool) -> tuple[int, int] | None:
        for found in _WORD.finditer(self._text):
            if found.start() <= at < found.end():
                end = found.end()
                while blanks and end < self._line_end and self._text[end] in " \t":
                    end += 1
                return found.start(), end
        return None

    # -- whole lines and the register

    def _lines(self, operator: str, count: int, *, up: bool = False) -> None:
        """Delete, change or copy whole lines."""
        rows = self._text.split("\n")
        here = self._text.count("\n", 0, self._offset)
        first = max(here - count + 1, 0) if up else here
        last = here if up else min(here + count - 1, len(rows) - 1)
        start = self._line_offset(first + 1)
        end = self._line_offset(last + 1) + len(rows[last])
        self._register, self._whole_lines = self._text[start:end], True
        if operator == "y":
            return
        if operator == "c":
            self._replace(start, end, "")
            self._set("insert")
        elif end < len(self._text):
            self._replace(start, end + 1, "")
        else:
            self._replace(max(start - 1, 0), end, "")
        if operator == "d":
            self._go(self._line_start)

    def _take(self, start: int, end: int, *, delete: bool) -> None:
        if start >= end:
            return
        self._register, self._whole_lines = self._text[start:end], False
        if delete:
            self._replace(start, end, "")

    def _put(self, *, after: bool, count: int) -> None:
        if not self._register:
            return
        if self._whole_lines:
            lines = "\n".join([self._register] * count)
            place = self._line_end if after else self._line_start
            self._replace(place, place, f"\n{lines}" if after else f"{lines}\n")
            self._go(place + after)
        else:
            place = min(self._offset + after, self._line_end)
            self._replace(place, place, self._register * count)
            self._go(place + len(self._register) * count - 1)

    # -- the text as one string

    @property
    def _text(self) -> str:
        return self._area.text

    @property
    def _column(self) -> int:
        return self._area.cursor_location[1]

    @property
    def _offset(self) -> int:
        row, column = self._area.cursor_location
        return self._line_offset(row + 1) + column

    @property
    def _line_start(self) -> int:
        return self._offset - self._column

    @property
    def _line_end(self) -> int:
        end = self._text.find("\n", self._offset)
        return len(self._text) if end < 0 else end

    @property
    def _indent(self) -> int:
        line = self._text[self._line_start : self._line_end]
        return self._line_start + len(line) - len(line.lstrip())

    def _line_offset(self, number: int) -> int:
        """Return where a line begins, counted from 1; the last line if there are fewer."""
        rows = self._text.split("\n")
        return sum(len(row) + 1 for row in rows[: min(number, len(rows)) - 1])

    def _location(self, offset: int) -> tuple[int, int]:
        before = self._text[: max(0, min(offset, len(self._text)))]
        return before.count("\n"), len(before) - before.rfind("\n") - 1

    def _go(self, offset: int) -> None:
        self._area.move_cursor(self._location(offset))

    def _replace(self, start: int, end: int, text: str) -> None:
        self._area.replace(text, self._location(start), self._location(end), maintain_selection_offset=False)
        self._go(start + len(text))

    def _set(self, mode: VimMode) -> None:
        if mode != self.mode:
            self.mode = mode
            self._changed()


def _count(keys: str) -> tuple[str, str]:
    """Return the count before a command, and the command; 0 alone is a motion."""
    digits = re.match(r"(?:[1-9]\d*)?", keys)
    number = digits[0] if digits else ""
    return number, keys[len(number) :]
