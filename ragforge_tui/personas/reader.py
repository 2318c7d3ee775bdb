"""Lenient reader for `.luciform`, which looks like XML but need not be well-formed: any text yields a tree.

It takes one pass, without recursion or backtracking patterns, so its time is linear in the text's length, no matter
how deeply nested or malformed the text is. It never raises on content, never resolves an entity and never opens a
file. What a strict parser would reject is interpreted as probably intended, and recorded as a diagnostic:

- a `<` that starts no tag is text, and so is a tag in which another `<` precedes the `>`;
- an end tag closes the nearest open element of its name; elements open within it end before their first inner
  element, so that one forgotten end tag does not swallow everything after it;
- an end tag without an open element becomes a stray node.

Most tags have no attributes. One pattern finds those and one loop handles them, without a call or a lasting object
for each.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ragforge_tui.personas.luciform import (
    CDATA,
    COMMENT,
    DECLARATION,
    EMPTY,
    END_TAG,
    IN_TAG,
    NAME,
    ODD,
    STRAY,
    TAG_END,
    UNCLOSED,
    UNQUOTED,
    Luciform,
    RawDiagnostic,
    Severity,
    Tokens,
    after_value,
    attributes,
    bare,
)

MAX_DIAGNOSTICS = 1_000

# Possessive quantifiers rule out backtracking, so a match takes time linear in its length.
_NO_NAME = "<>/=!?\"'&;,.:()[]{}+-*|\\`@#$%^~"
"""Characters that cannot start a name, in addition to spaces and digits."""
_TAG_NAME = rf"[^\s\d{re.escape(_NO_NAME)}][^\s<>/=\"']*+"
_TOKEN = re.compile(rf"<(?:({_TAG_NAME})\s*+(?:>|(/)>|(?=<)())|/(?:({_TAG_NAME})[^<>]*+(?:>|(?=<)())|()>)|(?=[^\s\d]))")
"""A tag without attributes, classified by the last group that matched, or another `<` (no group). A `<` before a space
or a digit, as in arithmetic, or at the end of the text is plain text and needs no diagnostic."""
_OPENS, _EMPTY, _BROKEN, _CLOSES, _CUT, _NAMELESS = 1, 2, 3, 4, 5, 6
_CLOSING = frozenset({_CLOSES, _CUT, _NAMELESS})
_FAR = 200
"""Token length in characters from which restarting the search behind it is cheaper than skipping matches in it."""
_RUN = re.compile(r"<++")
_NO_END = "<{} has no '>' and is read as text"
_END_CUT = "</{} has no '>'"
_LABELS = {COMMENT: "comment", CDATA: "cdata", DECLARATION: "declaration"}


def read(text: str) -> Luciform:
    """Parse a text into a tree; malformed markup is recorded as diagnostics, never raised."""
    return _Reader(text).read()


class _Reader:
    """Single pass over one text.

    Attributes:
        _stack: Rows of the open elements, outermost first.
        _names: Names of the open elements, in the same order.
        _open: By name, the stack levels of the open elements that an end tag of this name may close. Names that differ
            only in symbols and case share one list.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = Tokens()
        self._next: dict[str, int] = {}
        self._diagnostics: list[RawDiagnostic] = []
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
        # Unclosed elements are reported only once the text is read: sort the diagnostics by offset.
        self._diagnostics.sort(key=lambda diagnostic: diagnostic[0])
        return Luciform(self._text, self._tokens, self._diagnostics, self._unlisted)

    def _plain_run(self, position: int) -> int:
        """Read tags without attributes up to a longer token, which is read too.

        Repeats the work of `_opened` and `_close` inline, which saves a call for each tag.

        Returns:
            The offset after the longer token, -1 at the end of the text.
        """
        tokens, stack, names, by_name = self._tokens, self._stack, self._names, self._open
        starts, mates = tokens.starts.append, tokens.mates.append
        rows, diagnostics = tokens.starts, self._diagnostics
        read_to = position
        for match in _TOKEN.finditer(self._text, position):
            start = match.start()
            if start < read_to:
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
                    if len(diagnostics) < MAX_DIAGNOSTICS:
                        self._note(start, _END_CUT, name)
                    else:
                        self._unlisted += 1
                levels = by_name.get(name)
                if levels and names[-1] == name:
                    levels.pop()
                    names.pop()
                    tokens.mates[stack.pop()] = len(rows)
                    mates(END_TAG)
                elif not levels and len(diagnostics) == MAX_DIAGNOSTICS and (levels is not None or not name):
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
                read_to = self._markup(start)
                if read_to - start > _FAR:
                    return read_to
                continue
            starts(start)
        return -1

    # -- searching and reporting

    def _find(self, what: str, start: int) -> int:
        """Return the offset of the next `what` from `start` on, -1 for none.

        Results are cached, so that no stretch of text is searched twice for the same string.
        """
        cached = self._next.get(what, -2)
        if cached == -1 or cached >= start:
            return cached
        offset = self._next[what] = self._text.find(what, start)
        return offset

    def _note(self, offset: int, message: str, name: str = "", *, severity: Severity = "warning") -> None:
        """Record a diagnostic; `{}` in the message is replaced by the name, but only if it is recorded."""
        if len(self._diagnostics) < MAX_DIAGNOSTICS:
            self._diagnostics.append((offset, message.replace("{}", _shown(name)), severity))
        else:
            self._unlisted += 1

    # -- the tree

    def _levels(self, name: str) -> list[int]:
        """Return the stack levels of the open elements that an end tag of this name may close."""
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
        """Close the element that the end tag at `start` closes; without a name, the innermost open one.

        Returns:
            The kind of the end tag, which the caller adds as the next row: `END_TAG` or `STRAY`.
        """
        levels = self._levels(name or self._names[-1]) if name or self._names else None
        if not levels:
            self._note(start, "</{}> has no opening tag", name)
            return STRAY
        level = levels.pop()
        if name and self._names[level] != name:
            self._note(start, "</{}> closes an element that is spelled differently", name, severity="note")
        while len(self._diagnostics) == MAX_DIAGNOSTICS and len(self._stack) > level + 1:
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
        """Report the open elements from `level` on as never closed."""
        starts, remaining = self._tokens.starts, MAX_DIAGNOSTICS - len(self._diagnostics)
        for row, name in zip(self._stack[level : level + remaining], self._names[level:], strict=False):
            self._note(starts[row], "<{}> is never closed", name)
        self._unlisted += max(0, len(self._stack) - level - remaining)
        del self._stack[level:], self._names[level:]

    # -- tokens

    def _markup(self, start: int) -> int:
        """Read the token that starts with the `<` at `start`.

        Returns:
            The offset after the token, or after that `<` if it is text.
        """
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
        """Skip a `<` that starts no tag; in a run of several, the last one may start a tag."""
        text = self._text
        if not text[start + 1].isdigit():
            self._note(start, "'<' does not start a tag here and is read as text", severity="note")
        run = _RUN.match(text, start + 1) if text[start + 1] == "<" else None
        return run.end() - 1 if run else start + 1

    def _bang(self, start: int) -> int:
        if self._text.startswith("<!--", start):
            return self._delimited(start, COMMENT, "-->", 4)
        if self._text.startswith("<![CDATA[", start):
            return self._delimited(start, CDATA, "]]>", 9)
        end = self._find(">", start)
        bracket = self._find("[", start)
        return self._delimited(start, DECLARATION, "]>" if 0 <= bracket < end else ">", 2)

    def _delimited(self, start: int, kind: int, closing: str, opening: int) -> int:
        """Read a token that ends with `closing`.

        Returns:
            The offset after the token, or after its `<` if the end is missing and it counts as text.
        """
        end = self._find(closing, start + opening)
        if end < 0:
            self._note(start, "an unterminated {} is read as text", _LABELS[kind])
            return start + 1
        end += len(closing)
        self._tokens.add(start, end, kind)
        return end

    def _end_tag(self, start: int) -> int:
        """Read an end tag that `_plain_run` cannot handle.

        Returns:
            The offset after the tag, or the offset up to which it turned out to be text.
        """
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
        """Read a start tag with attributes or an unusual name.

        Returns:
            The offset after the tag, or the offset up to which it turned out to be text.
        """
        text, step = self._text, IN_TAG.match
        match = NAME.match(text, start + 1)
        if match is None:
            return self._stray(start)
        name, given = match[0], list[str]()
        inside = position = match.end()
        noted, unlisted = len(self._diagnostics), self._unlisted
        while (match := step(text, position)) is not None:
            position = match.end()
            which = match.lastindex
            if which is None:
                character = text[position : position + 1]
                if character in ("<", ""):
                    break
                self._note(position, "{} has no meaning in a tag", character, severity="note")
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
        # All of it is text up to here. Going back to its start would read it again for each such tag.
        del self._diagnostics[noted:]
        self._unlisted = unlisted
        self._note(start, _NO_END, name)
        return position

    def _note_value(self, match: re.Match[str]) -> None:
        """Report a value that is not enclosed in quotes."""
        if len(self._diagnostics) == MAX_DIAGNOSTICS:
            self._unlisted += 1
            return
        start = match.start(match.lastindex or 0)
        quote = self._text[start : start + 1]
        if match.lastindex == ODD and quote in ('"', "'"):
            self._note(start, "a value lacks its closing {}", quote)
        else:
            self._note(start, "a value without quotes", severity="note")

    # -- checks of well-formed markup

    def _check_duplicates(self, given: list[str], inside: int, end: int) -> None:
        """Report the duplicate attributes of a tag whose name ends at `inside`."""
        unreported = len(given) - len(set(given))
        if not unreported:
            return
        seen: set[str] = set()
        for attribute in attributes(self._text, inside, end):
            if len(self._diagnostics) == MAX_DIAGNOSTICS or not unreported:
                break
            if attribute.name in seen:
                self._note(attribute.start, "the attribute {} is given twice; the first counts", attribute.name)
                unreported -= 1
            seen.add(attribute.name)
        self._unlisted += unreported

    def _check_roots(self) -> None:
        rows = self._root_rows()
        if next(rows, None) is None:
            self._note(0, "no element: all of it is text", severity="note")
        for row in rows:
            start = self._tokens.starts[row]
            match = NAME.match(self._text, start + 1)
            self._note(start, "<{}> is an additional root", match[0] if match else "", severity="note")
            if self._unlisted:
                self._unlisted += sum(1 for _ in rows)

    def _root_rows(self) -> Iterator[int]:
        """Yield the rows of the outermost elements."""
        mates = self._tokens.mates
        row = 0
        while row < len(mates):
            mate = mates[row]
            if mate >= EMPTY:
                yield row
            row = mate + 1 if mate >= 0 else row + 1


def _shown(name: str) -> str:
    """Return a name as a diagnostic quotes it, shortened to 40 characters."""
    return name if len(name) <= 40 else f"{name[:39]}…"
