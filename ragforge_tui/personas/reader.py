"""Reads `.luciform`, which looks like XML and need not be: whatever it is given, it makes a tree of it.

One pass, no recursion, no pattern that could try twice; so it takes a time that grows with the text alone, however
deep or crooked that is. It never raises on content, never resolves an entity and never opens anything. What a strict
parser would refuse is taken as it was probably meant and listed:

- `<` that begins no tag is text, and so is a tag that meets the next `<` before its `>`;
- an end tag closes the nearest open element of its name; what was open within is taken as closed before its first
  inner element, so that one forgotten end tag does not swallow what follows it;
- an end tag without an open element stands as a stray node.

Tags without attributes are most of what there is to read: they are found by one pattern and handled in one loop,
without a call for each and without an object that stays.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ragforge_tui.personas.attributes import IN_TAG, NAME, ODD, TAG_END, UNQUOTED, after_value, attributes
from ragforge_tui.personas.luciform import (
    CDATA,
    COMMENT,
    DECLARATION,
    EMPTY,
    END_TAG,
    STRAY,
    UNCLOSED,
    Found,
    Luciform,
    Severity,
    Tokens,
    bare,
)

MAX_DIAGNOSTICS = 1_000

# Nothing in them may be tried twice (possessive), so a match takes as long as what it matched.
_NO_NAME = "<>/=!?\"'&;,.:()[]{}+-*|\\`@#$%^~"
"""What no name begins with, besides spaces and digits."""
_TAG_NAME = rf"[^\s\d{re.escape(_NO_NAME)}][^\s<>/=\"']*+"
_TOKEN = re.compile(rf"<(?:({_TAG_NAME})\s*+(?:>|(/)>|(?=<)())|/(?:({_TAG_NAME})[^<>]*+(?:>|(?=<)())|()>)|(?=[^\s\d]))")
"""A tag without attributes, by the last group that matched; or any other `<` but one as in arithmetic or at the end of
a word, which is text and nothing to say of."""
_OPENS, _EMPTY, _BROKEN, _CLOSES, _CUT, _NAMELESS = 1, 2, 3, 4, 5, 6
_CLOSING = frozenset({_CLOSES, _CUT, _NAMELESS})
_FAR = 200
"""From how many characters on it is cheaper to look anew behind a token than to pass over what is found within it."""
_ROW = re.compile(r"<++")
_NO_END = "<{} has no '>' and is taken as text"
_END_CUT = "</{} has no '>'"
_WORDS = {COMMENT: "comment", CDATA: "cdata", DECLARATION: "declaration"}


def read(text: str) -> Luciform:
    """The tree of a text."""
    return _Reader(text).read()


class _Reader:
    """One pass over one text.

    _stack, _names: Rows and names of the open elements, outermost first.
    _open: By name, the places on the stack where elements are open that an end tag of this name may close; names that
        differ by their signs and case share one list.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = Tokens()
        self._next: dict[str, int] = {}
        self._found: list[Found] = []
        self._unlisted = 0
        self._stack: list[int] = []
        self._names: list[str] = []
        self._open: dict[str, list[int]] = {}
        self._open_by_bare: dict[str, list[int]] = {}

    def read(self) -> Luciform:
        position = 0
        while position >= 0:
            position = self._plain_run(position)
        self._leave_unclosed(0)
        self._check_roots()
        # Unclosed elements are met at the end, before what follows them: sort what is said by place.
        self._found.sort(key=lambda found: found[0])
        return Luciform(self._text, self._tokens, self._found, self._unlisted)

    def _plain_run(self, position: int) -> int:
        """Read tags without attributes up to one that is more; gives the offset after that, -1 at the end.

        Does as `_opened` and `_closed` do, without calling them.
        """
        tokens, stack, names, by_name = self._tokens, self._stack, self._names, self._open
        starts, mates = tokens.starts.append, tokens.mates.append
        rows, found = tokens.starts, self._found
        passed = position
        for match in _TOKEN.finditer(self._text, position):
            start = match.start()
            if start < passed:
                continue
            which = match.lastindex
            if which == _OPENS:
                name = match[_OPENS]
                levels = by_name.get(name)
                if levels is None:
                    levels = self._levels(name)
                levels.append(len(stack))
                stack.append(len(rows))
                names.append(name)
                mates(UNCLOSED)
            elif which in _CLOSING:
                name = match[_CLOSES] or (names[-1] if names else "")
                if which == _CUT:
                    if len(found) < MAX_DIAGNOSTICS:
                        self._note(start, _END_CUT, name)
                    else:
                        self._unlisted += 1
                levels = by_name.get(name)
                if levels and names[-1] == name:
                    levels.pop()
                    names.pop()
                    tokens.mates[stack.pop()] = len(rows)
                    mates(END_TAG)
                elif not levels and len(found) == MAX_DIAGNOSTICS and (levels is not None or not name):
                    self._unlisted += 1
                    mates(STRAY)
                else:
                    mates(self._close(name, start))
            elif which == _EMPTY:
                mates(EMPTY)
            elif which == _BROKEN:
                self._note(start, _NO_END, match[_OPENS])
                continue
            else:
                passed = self._markup(start)
                if passed - start > _FAR:
                    return passed
                continue
            starts(start)
        return -1

    # -- finding and saying

    def _find(self, what: str, start: int) -> int:
        """The next `what` from `start` on, -1 for none. Remembers what it found ahead, so nothing is read twice."""
        known = self._next.get(what, -2)
        if known == -1 or known >= start:
            return known
        found = self._next[what] = self._text.find(what, start)
        return found

    def _note(self, offset: int, message: str, name: str = "", *, severity: Severity = "warning") -> None:
        """Keep something to say; `{}` in the message is the name, written only for what is kept."""
        if len(self._found) < MAX_DIAGNOSTICS:
            self._found.append((offset, message.replace("{}", _shown(name)), severity))
        else:
            self._unlisted += 1

    # -- the tree

    def _levels(self, name: str) -> list[int]:
        """Where elements are open that an end tag of this name may close."""
        levels = self._open.get(name)
        if levels is None:
            levels = self._open[name] = self._open_by_bare.setdefault(bare(name), [])
        return levels

    def _opened(self, name: str, start: int, end: int) -> None:
        self._levels(name).append(len(self._stack))
        self._stack.append(len(self._tokens))
        self._names.append(name)
        self._tokens.add(start, end, UNCLOSED)

    def _close(self, name: str, start: int) -> int:
        """Close what the end tag at `start` closes, without a name what is open last; gives what it is itself.

        Its row is the next to be added.
        """
        levels = self._levels(name or self._names[-1]) if name or self._names else None
        if not levels:
            self._note(start, "</{}> closes nothing that is open", name)
            return STRAY
        level = levels.pop()
        if name and self._names[level] != name:
            self._note(start, "</{}> closes an element that is written otherwise", name, severity="note")
        while len(self._found) == MAX_DIAGNOSTICS and len(self._stack) > level + 1:
            self._open[self._names.pop()].pop()
            self._stack.pop()
            self._unlisted += 1
        if len(self._stack) > level + 1:
            for unclosed in self._names[level + 1 :]:
                self._open[unclosed].pop()
            self._leave_unclosed(level + 1)
        self._names.pop()
        self._tokens.mates[self._stack.pop()] = len(self._tokens)
        return END_TAG

    def _leave_unclosed(self, level: int) -> None:
        """Take what is open from `level` on as never closed."""
        starts, room = self._tokens.starts, MAX_DIAGNOSTICS - len(self._found)
        for row, name in zip(self._stack[level : level + room], self._names[level:], strict=False):
            self._note(starts[row], "<{}> is never closed", name)
        self._unlisted += max(0, len(self._stack) - level - room)
        del self._stack[level:], self._names[level:]

    # -- tokens

    def _markup(self, start: int) -> int:
        """Read what begins with the `<` at `start`; gives the offset after it, or after that `<` when it is text."""
        second = self._text[start + 1]
        if second == "!":
            return self._bang(start)
        if second == "?":
            if self._find("?>", start + 2) < 0 <= self._find(">", start + 2):
                self._note(start, "a declaration that ends with '>', not with '?>'", severity="note")
                return self._delimited(start, DECLARATION, ">", 2)
            return self._delimited(start, DECLARATION, "?>", 2)
        if second == "/":
            return self._end_tag(start)
        if second in _NO_NAME or second.isdigit():
            return self._stray(start)
        return self._start_tag(start)

    def _stray(self, start: int) -> int:
        """Pass over a `<` that begins no tag; of a row of them the last may."""
        text = self._text
        if not text[start + 1].isdigit():
            self._note(start, "'<' begins no tag here and is taken as text", severity="note")
        row = _ROW.match(text, start + 1) if text[start + 1] == "<" else None
        return row.end() - 1 if row else start + 1

    def _bang(self, start: int) -> int:
        if self._text.startswith("<!--", start):
            return self._delimited(start, COMMENT, "-->", 4)
        if self._text.startswith("<![CDATA[", start):
            return self._delimited(start, CDATA, "]]>", 9)
        end = self._find(">", start)
        bracket = self._find("[", start)
        return self._delimited(start, DECLARATION, "]>" if 0 <= bracket < end else ">", 2)

    def _delimited(self, start: int, kind: int, closing: str, opening: int) -> int:
        """What ends with `closing`; gives the offset after it, that of text when there is no end."""
        end = self._find(closing, start + opening)
        if end < 0:
            self._note(start, "a {} without its end is taken as text", _WORDS[kind])
            return start + 1
        end += len(closing)
        self._tokens.add(start, end, kind)
        return end

    def _end_tag(self, start: int) -> int:
        """The offset after an end tag that is not a plain one, or of where it turns out to be text."""
        match = NAME.match(self._text, start + 2)
        name = match[0] if match else ""
        after = match.end() if match else start + 2
        end = self._find(">", after)
        following = self._find("<", after)
        if end < 0 or 0 <= following < end:
            if not name:
                return self._stray(start)
            self._note(start, _END_CUT, name)
            end = after
        else:
            end += 1
        self._tokens.add(start, end, self._close(name, start))
        return end

    def _start_tag(self, start: int) -> int:
        """The offset after a start tag with attributes or an odd name, or of where it turns out to be text."""
        text, step = self._text, IN_TAG.match
        match = NAME.match(text, start + 1)
        if match is None:
            return self._stray(start)
        name, given = match[0], list[str]()
        inside = position = match.end()
        noted, unlisted = len(self._found), self._unlisted
        while (match := step(text, position)) is not None:
            position = match.end()
            which = match.lastindex
            if which is None:
                character = text[position : position + 1]
                if character in ("<", ""):
                    break
                self._note(position, "{} in a tag means nothing", character, severity="note")
                position += 1
            elif which == TAG_END:
                if len(given) > 1:
                    self._check_duplicates(given, inside, position)
                if match[TAG_END] == "/>":
                    self._tokens.add(start, position, EMPTY)
                else:
                    self._opened(name, start, position)
                return position
            else:
                given.append(match[1])
                if which >= UNQUOTED:
                    self._note_value(match)
                    position = after_value(text, match)
        # All of it is text up to here; going back to its beginning would read it again and again.
        del self._found[noted:]
        self._unlisted = unlisted
        self._note(start, _NO_END, name)
        return position

    def _note_value(self, match: re.Match[str]) -> None:
        """Say what is odd about a value that is not between two quotes."""
        if len(self._found) == MAX_DIAGNOSTICS:
            self._unlisted += 1
            return
        start = match.start(match.lastindex or 0)
        quote = self._text[start : start + 1]
        if match.lastindex == ODD and quote in ('"', "'"):
            self._note(start, "a value without its closing {}", quote)
        else:
            self._note(start, "a value without quotes", severity="note")

    # -- what is worth saying of well-formed things

    def _check_duplicates(self, given: list[str], inside: int, end: int) -> None:
        """Say which attributes are given twice, of a tag whose name ends at `inside`."""
        left = len(given) - len(set(given))
        if not left:
            return
        seen: set[str] = set()
        for attribute in attributes(self._text, inside, end):
            if len(self._found) == MAX_DIAGNOSTICS or not left:
                break
            if attribute.name in seen:
                self._note(attribute.start, "the attribute {} is given twice; the first counts", attribute.name)
                left -= 1
            seen.add(attribute.name)
        self._unlisted += left

    def _check_roots(self) -> None:
        rows = self._root_rows()
        if next(rows, None) is None:
            self._note(0, "no element: all of it is text", severity="note")
        for row in rows:
            start = self._tokens.starts[row]
            match = NAME.match(self._text, start + 1)
            self._note(start, "<{}> is a further root", match[0] if match else "", severity="note")
            if self._unlisted:
                self._unlisted += sum(1 for _ in rows)

    def _root_rows(self) -> Iterator[int]:
        """The rows of the outermost elements."""
        mates = self._tokens.mates
        row = 0
        while row < len(mates):
            mate = mates[row]
            if mate >= EMPTY:
                yield row
            row = mate + 1 if mate >= 0 else row + 1


def _shown(name: str) -> str:
    """A name as a diagnostic quotes it."""
    return name if len(name) <= 40 else f"{name[:39]}…"
