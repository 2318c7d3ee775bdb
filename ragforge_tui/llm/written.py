"""Reasoning and tool calls that a server left in the text of an answer.

Servers of local models parse what their model writes, or fail to: then tags of reasoning, often without the opening
one that the template has put into the prompt, and calls in the model's own dialect arrive as text. They are known by
their shape, not by dialect: a marker that names thinking; an object with the name of a tool and its arguments; a
marker with the name of a tool, followed by an object, by pairs of tags, or by Python arguments. What is in a code
fence, between backticks or in quotation marks stays text, and so does a call with more words on its line.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from ragforge_tui.llm.base import ReasoningPart, TextPart, ThoughtEnded
from ragforge_tui.llm.forms import known_tool

_THINKING = r"\w*(?:think|thought|reason|reflect|analysis)\w*"
_OPEN = re.compile(
    r"<\|channel\|>\s*(?:analysis|thought)[^<\n]*<\|message\|>|<\|channel>\s*\w+[ \t]*\n"
    rf"|[<◁]\|?(?:\w+:)?{_THINKING}\|?[>▷]|(?-i:\[[A-Z_]*THINK[A-Z_]*\])|Here is my thought process:",
    re.IGNORECASE,
)
_ANSWER = re.compile(
    r"(?:<\|end\|>)?\s*(?:<\|start\|>\w+)?<\|channel\|>\s*(?:final|commentary)\b(?! to=)[^<\n]*<\|message\|>"
    rf"|<channel\|>|[<◁](?:/\|?|\|/|\|end_of_)(?:\w+:)?{_THINKING}\|?[>▷]|(?-i:\[/[A-Z_]*THINK[A-Z_]*\])"
    r"|Here is my response:",
    re.IGNORECASE,
)
"""Marker before an answer, after a thought."""
_CLOSE = re.compile(rf"{_ANSWER.pattern}|<\|end\|>", re.IGNORECASE)
_ENDED_HERE = re.compile(r"(?=<\|(?:start|channel)\|>[^<]*(?:<\|channel\|>)?[^<]*to=)")
"""Place in Harmony's channels where a call follows a thought."""
_TOKEN = re.compile(r"<\|\w+\|?>(?:assistant|final)?")
"""Token of a template that carries no words."""
_MARK = r"(?:</?[^\s<>/][^<>\n]{0,120}>|\[/?[A-Z_]{3,}\])"
_MARKS = re.compile(rf"(?:\s|{_MARK}|```|\])*")
_STARTS = re.compile(r"[<\[◁{`~]|Here is my ")
_HALF = re.compile(
    r"(?:[<\[◁][^\s<>\]▷]{0,40}|(?:<\|\w+\|?>\s*\w*[ \t]*){1,2}(?:<\|?\w*\|?)?|\{\s*|Here is my [\w ]{0,16})\Z"
)
"""Text that may become a marker with the next piece."""
_FENCE = re.compile(r"(`{3,}|~{3,})[^\n`]*(\n|\Z)")
_PROSE = re.compile(r"\w+[,.]? \w+[,.]? \w+[,.]? ")
_QUOTES = "\"'“”‘’«»„`"
_MOST_WORDS, _MOST_WORDS_FIRST = 8, 40
"""Words before the name of a tool in a call; more at the start of an answer, where an object may be one."""
_MOST_MISSES, _MOST_READ = 1_000, 20
"""Places of an answer that are looked at, and those that are read to the end: foreign text must take no long time."""
_MOST_CHARS, _MOST_SEARCHED = 400, 2_000
_AFTER_NAME = re.compile(rf"(?:\.call)?(?::\d+)?[\"']?\s*(?:{_MARK}|>|\s|```|(?:[\w-]+\s*){{1,3}}(?=[<\[{{]))*")
_PAIR = re.compile(
    r"\s*(?:<(?P<tag>[^\s<>/=]*(?:param|arg)[^\s<>/=]*)(?:=|\s+name=)[\"']?(?P<key>[\w-]+)[\"']?[^<>]*>(?P<value>.*?)"
    r"</(?P=tag)>|<(?P<k>\w*key\w*)>(?P<key2>.*?)</(?P=k)>\s*<(?P<v>\w*value\w*)>(?P<value2>.*?)</(?P=v)>"
    r"|<(?P<key3>[\w-]+)>(?P<value3>.*?)</(?P=key3)>)",
    re.DOTALL,
)
_DECODER = json.JSONDecoder(strict=False)

Tools = Mapping[str, Mapping[str, Any]]
"""Schemas of the arguments by the name of the tool."""
Call = tuple[str, str]
"""Name and arguments as JSON."""


class TextReader:
    """Reader of the text of one answer, fed in pieces.

    Args:
        tools: Tools that may be called.

    Attributes:
        thought: Whether there was reasoning in the text.
        calls: Calls in the text, known after `rest`.
    """

    def __init__(self, tools: Tools) -> None:
        self._tools = tools
        self._names = re.compile(_any_of(tools)) if tools else None
        self._held = ""
        self._waiting: list[str] = []
        """Pieces that arrived since the text held may be a call."""
        self._lead = ""
        """White space that begins the answer."""
        self._line = ""
        """End of the text passed on, since the last line break."""
        self._fence = ""
        self._misses = 0
        """Places that looked like a call and were none; those that were read to the end count for many."""
        self._thinking = self._gap = False
        self._said = False
        self.thought = False
        self.calls: list[Call] = []

    def feed(self, text: str) -> Iterator[TextPart | ReasoningPart | ThoughtEnded]:
        """Yield the parts that can be shown now; text that may turn out to be a marker or a call is held back."""
        if self._waiting:
            self._waiting.append(text)
            return
        self._held += text
        yield from self._read(whole=False)

    def rest(self) -> Iterator[TextPart | ReasoningPart | ThoughtEnded]:
        """Yield the text held back, once no more arrives."""
        self._held += "".join(self._waiting)
        self._waiting = []
        yield from self._read(whole=True)
        if self._lead and not (self.thought or self.calls):
            yield from self._pass_on(0)

    def _read(self, *, whole: bool) -> Iterator[TextPart | ReasoningPart | ThoughtEnded]:
        while self._held:
            before = len(self._held)
            if self._thinking:
                yield from self._think(whole=whole)
            elif self._gap and not (text := self._held.lstrip()):
                self._held = text
            elif self._fence:
                yield from self._in_fence(whole=whole)
            else:
                self._held = self._held.lstrip() if self._gap else self._held
                self._gap = False
                yield from self._text(whole=whole)
            if len(self._held) == before:
                return

    # --- reasoning -----------------------------------------------------------------------------------------------

    def _think(self, *, whole: bool) -> Iterator[ReasoningPart]:
        match = _CLOSE.search(self._held) or _ENDED_HERE.search(self._held)
        thought, after = (self._held, "") if match is None else (self._held[: match.start()], self._held[match.end() :])
        if match is None and not whole and (half := _half_close(thought)):
            thought, after = thought[:-half], thought[-half:]
        # White space around the thought is layout; so is a line end that arrives with the closing tag.
        thought = thought if self.thought else thought.lstrip()
        thought = thought if match is None else thought.rstrip()
        self._held = after
        if match is not None:
            self._thinking, self._gap, self._line = False, True, ""
        if thought:
            self.thought = True
            yield ReasoningPart(thought)

    def _closes(self, match: re.Match[str]) -> bool:
        """Return whether a marker without an opening one ends a thought: it begins or ends its line, or the answer."""
        after = self._held[match.end() :]
        return not self._line.strip() or not after.strip(" ") or bool(re.match(r" *[\r\n]|[\w*#<\[{(]", after))

    # --- text ----------------------------------------------------------------------------------------------------

    def _pass_on(self, count: int) -> Iterator[TextPart]:
        text, self._held = self._lead + self._held[:count], self._held[count:]
        self._lead = ""
        if text:
            self._said = self._said or bool(text.strip())
            self._line = (self._line + text).rpartition("\n")[2][-200:]
            yield TextPart(text)

    def _in_fence(self, *, whole: bool) -> Iterator[TextPart]:
        match = re.search(rf"^[ \t]*{re.escape(self._fence)}[`~]*[ \t]*(?:\n|\Z)", self._held, re.MULTILINE)
        if match is not None and (self._line.strip() == "" or match.start() > 0) and (whole or match[0][-1:] == "\n"):
            self._fence = ""
            yield from self._pass_on(match.end())
        elif whole:
            yield from self._pass_on(len(self._held))
        else:
            last = self._held.rfind("\n") + 1
            tail = self._held[last:]
            held = len(tail) if tail.strip(" \t`~") == "" and (last or not self._line.strip()) else 0
            yield from self._pass_on(len(self._held) - held)

    def _text(self, *, whole: bool) -> Iterator[TextPart | ReasoningPart | ThoughtEnded]:
        if not self._said and (blank := len(self._held) - len(self._held.lstrip())):
            # White space before a thought is layout.
            self._lead, self._held = self._lead + self._held[:blank], self._held[blank:]
            return
        match = _STARTS.search(self._held)
        if match is None or match.start() > 0:
            half = 0 if whole or match else _half(self._held, "Here is my ")
            yield from self._pass_on(match.start() if match else len(self._held) - half)
            return
        at_start = not self._line.strip()
        if self._held[0] in "`~":
            yield from self._code(at_start, whole=whole)
            return
        quoted = (self._line[-1:] in _QUOTES and self._line != "") or self._line.lstrip().startswith(">")
        if not whole and _HALF.match(self._held):
            return
        closed = None if quoted else _ANSWER.match(self._held)
        if closed and not whole and self._line.strip() and not self._held[closed.end() :].strip(" "):
            return
        if closed and self._closes(closed):
            if self._said:
                yield ThoughtEnded()
            self._held, self._gap, self._said, self._line = self._held[closed.end() :], True, False, ""
            self.thought = True
        elif not quoted and at_start and (opened := _OPEN.match(self._held)):
            self._held, self._thinking = self._held[opened.end() :], True
            self._lead = ""
        elif not quoted and (likely := self._likely_call(at_start)) is not False:
            if whole and not self._took_calls():
                yield from self._token_or_text()
            elif likely and not whole:
                self._waiting = [""]
        elif not quoted:
            yield from self._token_or_text()
        else:
            yield from self._pass_on(1)

    def _code(self, at_start: bool, *, whole: bool) -> Iterator[TextPart]:
        """Pass on code between backticks, and the beginning of a fence; one that begins an answer may be a call."""
        run = len(self._held) - len(self._held.lstrip(self._held[0]))
        if not whole and run == len(self._held):
            return
        if run >= 3 and at_start:
            fence = _FENCE.match(self._held)
            if fence is None or (not whole and not fence[2]):
                if whole or "`" in self._held[run:]:
                    yield from self._pass_on(run)
                return
            likely = None if self._said else self._likely_call(at_start)
            if not self._said and likely is not False and not whole:
                self._waiting = [""] if likely else []
            elif not (likely and self._took_calls()):
                self._fence = fence[1]
                yield from self._pass_on(fence.end())
            return
        closing = self._held.find(self._held[:run], run) if self._held[0] == "`" else 0
        line = self._held.find("\n", run)
        if closing < 0 and line < 0 and not whole and len(self._held) < _MOST_CHARS:
            return
        inline = closing > 0 and (line < 0 or closing < line)
        yield from self._pass_on(closing + run if inline else run)

    # --- calls ---------------------------------------------------------------------------------------------------

    def _likely_call(self, at_start: bool) -> bool | None:
        """Return whether the text held begins a call; None if that is not decided yet."""
        held = self._held
        self._misses += 1
        if self._names is None or self._misses > _MOST_MISSES or (held[0] in "{`" and not at_start) or held[0] == "◁":
            return False
        if re.match(r"\[(?!\s*[{\"]|[A-Z_]*(?:\]|\Z)|\s*\Z)|<(?![/|｜\w]|\Z)|\{(?!\s*\"|\s*\Z)", held):
            named = self._names.match(held, 1)
            return named is not None and held[named.end() : named.end() + 1] in ("(", "")
        name = self._names.search(held[:_MOST_SEARCHED])
        lead = held[: name.start() if name else _MOST_SEARCHED]
        plain = re.sub(_MARK, " ", lead)
        if held[0] != "{" and _PROSE.search(plain):
            return False
        words = len(re.findall(r"\w+", plain))
        most = _MOST_WORDS if self._said or held[0] != "{" else _MOST_WORDS_FIRST
        if words > most or (len(lead) > _MOST_CHARS and most == _MOST_WORDS):
            return False
        return None if name is None or name.end() == len(held) else True

    def _took_calls(self) -> bool:
        """Take in the calls at the start of the held text; return whether there are any."""
        found = read_calls(self._held, self._tools)
        if found is None:
            self._misses += _MOST_MISSES // _MOST_READ
            return False
        self.calls += found[0]
        self._held, self._gap = self._held[found[1] :], True
        return True

    def _token_or_text(self) -> Iterator[TextPart]:
        token = _TOKEN.match(self._held)
        if token is None:
            yield from self._pass_on(1)
        else:
            self._held = self._held[token.end() :]


def read_calls(text: str, tools: Tools) -> tuple[list[Call], int] | None:
    """Return the calls at the start of a text and their end; None without any.

    Other text may follow on a new line; after calls without a marker only white space may.
    """
    calls: list[Call] = []
    position = 0
    marked = bool(re.match(_MARK, text))
    while (found := _next_call(text, position, tools)) is not None:
        more, position = found
        calls += more
    if not calls:
        return None
    end = _MARKS.match(text, position)
    assert end is not None
    after = text[end.end() :]
    alone = not after.strip() or (marked and "\n" in end[0])
    return (calls, end.end()) if alone else None


def _next_call(text: str, position: int, tools: Tools) -> tuple[list[Call], int] | None:
    match = re.compile(rf"\{{|\[(?=\s*[\{{\[])|{_any_of(tools)}").search(text, position, position + _MOST_SEARCHED)
    if match is None:
        return None
    lead = re.sub(_MARK, " ", text[position : match.start()])
    if len(re.findall(r"\w+", lead)) > _MOST_WORDS or len(lead) > _MOST_CHARS:
        return None
    if match[0] not in tools:
        try:
            value, end = _DECODER.raw_decode(text, match.start())
        except (ValueError, RecursionError):
            return None
        calls = _calls_of(value, tools)
        return (calls, end) if calls else None
    arguments = _arguments(text, match.end(), tools[match[0]])
    if arguments is None:
        return None
    values, end = arguments
    return [(match[0], msgspec.json.encode(values).decode())], end


def _calls_of(value: Any, tools: Tools) -> list[Call]:
    """Return the calls in an object: it names a tool and holds its arguments, whatever the keys, or holds such ones."""
    if isinstance(value, list):
        return [call for each in value for call in _calls_of(each, tools)]
    if not isinstance(value, dict):
        return []
    name = next((known for each in value.values() if isinstance(each, str) and (known := known_tool(each, tools))), "")
    objects = [each for each in map(_object, value.values()) if each is not None]
    if name and objects:
        return [(name, msgspec.json.encode(objects[0]).decode())]
    return [call for each in value.values() for call in _calls_of(each, tools)]


def _object(value: Any) -> dict[str, Any] | None:
    if isinstance(value, str) and value.lstrip()[:1] == "{":
        try:
            value = json.loads(value, strict=False)
        except (ValueError, RecursionError):
            return None
    return value if isinstance(value, dict) else None


def _arguments(text: str, at: int, schema: Mapping[str, Any]) -> tuple[dict[str, Any], int] | None:
    """Return the arguments after the name of a tool, and where they end; None if there are none."""
    properties = schema.get("properties") or {}
    opened = re.compile(r"[\"']?[^<>\n{(]*>?").match(text, at)
    assert opened is not None
    pairs, end = {}, opened.end()
    while match := _PAIR.match(text, end):
        key = (match["key"] or match["key2"] or match["key3"] or "").strip()
        if match["key3"] is not None and key not in properties:
            break
        value = next(v for v in (match["value"], match["value2"], match["value3"]) if v is not None)
        pairs[key] = _typed(value.removeprefix("\n").removesuffix("\n"), properties.get(key))
        end = match.end()
    if pairs:
        return pairs, end
    filled = _AFTER_NAME.match(text, at)
    assert filled is not None
    start = filled.end()
    if text[start : start + 1] == "(":
        return _python(text, start)
    if text[start : start + 1] == "{":
        try:
            value, end = _DECODER.raw_decode(text, start)
        except (ValueError, RecursionError):
            return None
        return (value, end) if isinstance(value, dict) else None
    if re.compile(r"[\"']?\s*(?:>\s*</|/>)").match(text, at) and not schema.get("required"):
        return {}, start
    return None


def _python(text: str, at: int) -> tuple[dict[str, Any], int] | None:
    """Return the keyword arguments of a call in Python, and where it ends."""
    for match in list(re.compile(r"\)").finditer(text, at))[:50]:
        try:
            call = ast.parse(f"f{text[at : match.end()]}", mode="eval").body
            assert isinstance(call, ast.Call)
            return {each.arg: ast.literal_eval(each.value) for each in call.keywords if each.arg}, match.end()
        except (SyntaxError, ValueError, RecursionError, AssertionError):
            continue
    return None


def _typed(value: str, schema: Any) -> Any:
    """Return a value that was written as text, in the type its schema names."""
    kind = schema.get("type") if isinstance(schema, Mapping) else None
    if kind == "string" or (isinstance(kind, list) and "string" in kind):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def _any_of(tools: Tools) -> str:
    return "|".join(rf"(?<![\w-]){re.escape(name)}(?![\w-])" for name in tools) or r"(?!)"


def _half_close(text: str) -> int:
    """Return how many characters at the end may be the start of a marker that ends a thought."""
    start = max(text.rfind(char, max(0, len(text) - 60)) for char in "<[◁")
    if start >= 0 and not re.search(r"[>\]▷]", text[start:].replace("|>", "")):
        return len(text) - start
    return _half(text, "Here is my response:")


def _half(text: str, words: str) -> int:
    """Return how many characters at the end of a text are the start of these words."""
    return next((n for n in range(min(len(words) - 1, len(text)), 0, -1) if text.endswith(words[:n])), 0)
