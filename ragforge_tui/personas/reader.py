"""Reads `.luciform`, which looks like XML and need not be: whatever it is given, it makes a tree of it.

One pass, no recursion, no pattern that could try twice; so it takes a time that grows with the text alone, however
deep or crooked that is. It never raises on content, never resolves an entity and never opens anything. What a strict
parser would refuse is taken as it was probably meant and listed:

- `<` that begins no tag is text, and so is a tag that meets the next `<` before its `>`;
- an end tag closes the nearest open element of its name; what was open within is taken as closed before its first
  inner element, so that one forgotten end tag does not swallow what follows it;
- an end tag without an open element stands as a stray node.
"""

from __future__ import annotations

import re

from ragforge_tui.personas.luciform import NO_CHILDREN, Attribute, Luciform, Node, Severity, bare

MAX_DIAGNOSTICS = 1_000

# Nothing in them may be tried twice (possessive), so a match takes as long as what it matched.
_TAG = re.compile(r"<(/?+)([^\W\d_][^\s<>/=\"']*+)\s*+(/?+)>")
"""A tag without attributes whose name begins with a letter: most of them, read in one step."""
_NO_TAG = re.compile(r"<[\s\d]")
"""A `<` as in arithmetic or at the end of a word: text, and nothing to say of it."""
_NAME = re.compile(r"[^\s<>/=\"']++")
_ATTRIBUTE = re.compile(r"([^\s<>/=\"']++)(\s*+=\s*+)?+")
_SPACE = re.compile(r"\s*+")
_ROW = re.compile(r"<++")
_UNQUOTED = re.compile(r"[^\s<>\"']++")
_LEAVES = frozenset({"text", "cdata", "comment"})
_NO_NAME = frozenset("<>/=!?\"'&;,.:()[]{}+-*|\\`@#$%^~")


def read(text: str) -> Luciform:
    """The tree of a text."""
    return _Reader(text).read()


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._next: dict[str, int] = {}
        self._found: list[tuple[int, str, Severity]] = []
        self._unlisted = 0
        self._top = Node("element", 0, 0)
        self._stack = [self._top]
        self._open: dict[str, list[int]] = {}
        self._bares: dict[str, str] = {}
        self._text_start = 0

    def read(self) -> Luciform:
        text, find = self._text, self._text.find
        tag, plain_tag, no_tag = _TAG.match, self._plain_tag, _NO_TAG.match
        position = find("<")
        while position >= 0:
            match = tag(text, position)
            if match is not None:
                position = find("<", plain_tag(match, position))
            elif no_tag(text, position):
                position = find("<", position + 1)
            else:
                end = self._markup(position)
                position = find("<", self._stray(position) if end == position else end)
        self._flush_text(len(text))
        self._close_above(0)
        self._check_roots()
        # Unclosed elements are met at the end, before what follows them: sort what is said by place.
        self._found.sort(key=lambda found: found[0])
        return Luciform(text, list(self._top.children), self._found, self._unlisted)

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

    def _stray(self, position: int) -> int:
        """Pass over a `<` that begins no tag; of a row of them the last may."""
        text = self._text
        row = _ROW.match(text, position)
        end = row.end() if row else position + 1
        if end - position > 1:
            self._note(position, "'<' begins no tag here and is taken as text", severity="note")
            return end - 1
        if end < len(text) and not text[end].isspace() and not text[end].isdigit():
            self._note(position, "'<' begins no tag here and is taken as text", severity="note")
        return end

    # -- the tree

    def _flush_text(self, end: int) -> None:
        if end > self._text_start:
            self._stack[-1].add(Node("text", self._text_start, end))

    def _add(self, node: Node, end: int) -> int:
        """Put a node after the text before it; gives the offset after its token."""
        self._flush_text(node.start)
        self._stack[-1].add(node)
        self._text_start = end
        return end

    def _open_element(self, node: Node) -> None:
        name = self._bares.get(node.name) or self._bare(node.name)
        levels = self._open.get(name)
        if levels is None:
            self._open[name] = [len(self._stack)]
        else:
            levels.append(len(self._stack))
        self._stack.append(node)

    def _close_above(self, level: int) -> None:
        """Take everything open above `level` as closed where its first inner element begins.

        The children move up once, into an element that gets its end right after, so all moving is linear.
        """
        unclosed = self._stack[level + 1 :]
        if not unclosed:
            return
        del self._stack[level + 1 :]
        kept_here = list(self._stack[level].children)
        if level == 0:
            self._open.clear()
        listed = MAX_DIAGNOSTICS - len(self._found)
        self._unlisted += max(0, len(unclosed) - max(0, listed))
        for number, node in enumerate(unclosed):
            if level:
                self._open[self._bare(node.name)].pop()
            if number < listed:
                self._note(node.start, "<{}> is never closed", node.name)
            children = node.children
            if len(children) == 1 and children[0].kind not in _LEAVES:
                # The next unclosed one, which is emptied in its own turn.
                kept_here.append(children[0])
                node.children = NO_CHILDREN
                continue
            kept = 0
            while kept < len(children) and children[kept].kind in _LEAVES:
                kept += 1
            kept_here.extend(children[kept:])
            node.children = children[:kept]
        self._stack[level].children = kept_here

    # -- tokens

    def _plain_tag(self, match: re.Match[str], start: int) -> int:
        """A tag without attributes; gives the offset after it."""
        closing, name, empty = match.groups()
        if closing:
            return self._closed(name, start, match.end()) if not empty else self._end_tag(start)
        # As `_started` does it, without a call for each step: most of what there is to read is this.
        end = match.end()
        stack = self._stack
        if start > self._text_start:
            stack[-1].add(Node("text", self._text_start, start))
        self._text_start = end
        node = Node("element", start, end, name)
        stack[-1].add(node)
        if not empty:
            self._open_element(node)
        return end

    def _markup(self, start: int) -> int:
        """The offset after the token that begins with the `<` at `start`; `start` itself when it is text."""
        text = self._text
        if text.startswith("<!--", start):
            return self._delimited(start, "comment", "-->", 4)
        if text.startswith("<![CDATA[", start):
            return self._delimited(start, "cdata", "]]>", 9)
        second = text[start + 1 : start + 2]
        if second == "?":
            end = self._delimited(start, "declaration", "?>", 2)
            return end if end > start else self._delimited(start, "declaration", ">", 2)
        if second == "!":
            return self._declaration(start)
        if second == "/":
            return self._end_tag(start)
        if not second or second in _NO_NAME or second.isspace() or second.isdigit():
            return start
        return self._start_tag(start)

    def _delimited(self, start: int, kind: str, closing: str, opening: int) -> int:
        end = self._find(closing, start + opening)
        if end < 0:
            self._note(start, "a {} without its end is taken as text", kind)
            return start
        end += len(closing)
        if kind == "comment":
            return self._add(Node("comment", start, end), end)
        return self._add(Node("cdata" if kind == "cdata" else "declaration", start, end), end)

    def _declaration(self, start: int) -> int:
        end = self._find(">", start)
        bracket = self._find("[", start)
        closing = "]>" if 0 <= bracket < end else ">"
        return self._delimited(start, "declaration", closing, 2)

    def _end_tag(self, start: int) -> int:
        text = self._text
        match = _NAME.match(text, start + 2)
        name = match[0] if match else ""
        after = match.end() if match else start + 2
        end = self._find(">", after)
        following = self._find("<", after)
        if end < 0 or 0 <= following < end:
            if not name:
                return start
            self._note(start, "</{} has no '>'", name)
            end = after
        else:
            end += 1
        return self._closed(name, start, end)

    def _closed(self, name: str, start: int, end: int) -> int:
        """An end tag from `start` to `end`; gives `end`."""
        if start > self._text_start:
            self._flush_text(start)
        self._text_start = end
        level = self._level(name, start)
        if level is None:
            self._note(start, "</{}> closes nothing that is open", name)
            self._stack[-1].add(Node("stray", start, end, name))
            return end
        if level + 1 < len(self._stack):
            self._close_above(level)
        element = self._stack.pop()
        self._open[self._bare(element.name)].pop()
        element.close = (start, end)
        return end

    def _bare(self, name: str) -> str:
        """`bare`, worked out once for each name."""
        known = self._bares.get(name)
        if known is None:
            known = self._bares[name] = bare(name)
        return known

    def _level(self, name: str, start: int) -> int | None:
        """Where on the stack the element is that an end tag closes."""
        if not name:
            return len(self._stack) - 1 if len(self._stack) > 1 else None
        levels = self._open.get(self._bare(name))
        if not levels:
            return None
        if self._stack[levels[-1]].name != name:
            self._note(start, "</{}> closes an element that is written otherwise", name, severity="note")
        return levels[-1]

    def _start_tag(self, start: int) -> int:
        text = self._text
        match = _NAME.match(text, start + 1)
        if match is None:
            return start
        position = match.end()
        node = Node("element", start, start, match[0])
        noted = len(self._found), self._unlisted
        while True:
            match = _SPACE.match(text, position)
            position = match.end() if match else position
            character = text[position : position + 1]
            if character == ">":
                return self._started(node, position + 1, empty=False)
            if character == "/" and text[position + 1 : position + 2] == ">":
                return self._started(node, position + 2, empty=True)
            if character in ("<", ""):
                # All of it is text up to here; going back to its beginning would read it again and again.
                del self._found[noted[0] :]
                self._unlisted = noted[1]
                self._note(start, "<{} has no '>' and is taken as text", node.name)
                return max(position, start + 1)
            position = self._attribute(node, position)

    def _started(self, node: Node, end: int, *, empty: bool) -> int:
        if len(node.attributes) > 1:
            self._check_duplicates(node)
        node.end = end
        self._add(node, end)
        if not empty:
            self._open_element(node)
        return end

    def _attribute(self, node: Node, position: int) -> int:
        text = self._text
        match = _ATTRIBUTE.match(text, position)
        if match is None:
            self._note(position, "{} in a tag means nothing", text[position], severity="note")
            return position + 1
        end = match.end()
        raw: str | None = None
        if match[2]:
            raw, end = self._value(end)
        attribute = Attribute(match[1], raw, position)
        if isinstance(node.attributes, list):
            node.attributes.append(attribute)
        else:
            node.attributes = [attribute]
        return end

    def _value(self, position: int) -> tuple[str, int]:
        text = self._text
        quote = text[position : position + 1]
        if quote in ('"', "'"):
            end = self._quote_end(quote, position + 1)
            if end >= 0:
                return text[position + 1 : end], end + 1
            self._note(position, "a value without its closing {}", quote)
            position += 1
        else:
            self._note(position, "a value without quotes", severity="note")
        match = _UNQUOTED.match(text, position)
        if match is None:
            return "", position
        end = match.end()
        if text[end - 1] == "/" and text[end : end + 1] == ">":
            end -= 1
        return text[position:end], end

    def _quote_end(self, quote: str, start: int) -> int:
        """Where a quoted value ends. A `<` before its end is believed only on the same line."""
        end = self._find(quote, start)
        less = self._find("<", start)
        if end < 0 or less < 0 or end < less:
            return end
        line_end = self._find("\n", start)
        return end if line_end < 0 or end < line_end else -1

    # -- what is worth saying of well-formed things

    def _check_duplicates(self, node: Node) -> None:
        seen: set[str] = set()
        for attribute in node.attributes:
            if attribute.name in seen:
                self._note(attribute.start, "the attribute {} is given twice; the first counts", attribute.name)
            seen.add(attribute.name)

    def _check_roots(self) -> None:
        roots = [node for node in self._top.children if node.kind == "element"]
        if not roots:
            self._note(0, "no element: all of it is text", severity="note")
        for root in roots[1:]:
            self._note(root.start, "<{}> is a further root", root.name, severity="note")


def _shown(name: str) -> str:
    """A name as a diagnostic quotes it."""
    return name if len(name) <= 40 else f"{name[:39]}…"
