"""Which recalled items an answer used, judged from texts alone.

An item counts as used if the answer cites its turn, or if both have at least two rare words in common that the question
lacks; one is enough if it is a number or a name of code. Rare are words that at most a third of the items have. What a
model took from an item and put into quite other words is not seen.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from ragforge_tui.memory.context.sections import WISHES_SECTION
from ragforge_tui.memory.language import language_of
from ragforge_tui.memory.retrieval.terms import FALLBACK, asked_words, stems
from ragforge_tui.shared.json_text import json_object
from ragforge_tui.shared.records import ContextItem, ContextItemKind, ContextRecord, Turn
from ragforge_tui.shared.requests.memory import AnswerUse, RecalledUse
from ragforge_tui.shared.sanitize import plain_text

RECALLED: frozenset[ContextItemKind] = frozenset({"turn", "summary", "finding", "code"})
"""Kinds of items that memory adds to a request."""
_SHOWN_CHARS = 120
_SHOWN_WORDS = 4
_FEWEST_WORDS = 2
_RARE_SHARE = 3
_CITED = re.compile(r"\[(?:([^\[\]\n]{1,120}?)\s*·\s*)?(t\d{1,6}(?:\s*[,–-]\s*t\d{1,6})*)\]")
_STRONG = re.compile(r"\w*\d\w*|\w+_\w+|[a-z]+[A-Z]\w*")
_WORD = re.compile(r"\w+(?:_\w+)*")


def used_items(record: ContextRecord, turn: Turn) -> AnswerUse:
    """Return the recalled items of a request, with those that the turn's answer used.

    Args:
        record: The request with its texts.
        turn: The turn with the question, the replies and the arguments of their calls.
    """
    recalled = [
        (item, section.name == WISHES_SECTION)
        for section in record.sections
        for item in section.items
        if item.kind in RECALLED and item.text
    ]
    question = _terms(message.content for message in turn.messages if message.role == "user")
    answer = "\n".join(_written(turn))
    said = _terms([answer])
    own = [_terms([item.text]) for item, _ in recalled]
    counts = Counter(term for terms in own for term in terms)
    most = max(1, len(recalled) // _RARE_SHARE)
    cited = _cited(answer)
    uses = []
    for (item, wish), terms in zip(recalled, own, strict=True):
        shared = [said[term] for term in terms if term in said and term not in question and counts[term] <= most]
        reason = _citation(item, cited) or _overlap(shared)
        uses.append(
            RecalledUse(
                kind=item.kind,
                text=_beginning(item),
                conversation_id=item.conversation_id,
                title=item.title if item.conversation_id else "",
                turn_index=item.turn_index,
                last_turn=item.last_turn,
                tokens=item.tokens,
                always=wish,
                used=bool(reason),
                reason=reason,
            )
        )
    return AnswerUse(turn_index=turn.turn_index, items=uses)


def _written(turn: Turn) -> Iterable[str]:
    """Yield what the model wrote: its texts, and the arguments of its calls."""
    for message in turn.messages:
        if message.role == "assistant" and message.state != "superseded":
            yield message.content
            for call in message.tool_calls:
                yield from (value for value in json_object(call.arguments).values() if isinstance(value, str))


def _terms(texts: Iterable[str]) -> dict[str, str]:
    """Return the stems of the content words of texts, each with a word of the text."""
    text = "\n".join(texts)
    language = language_of(text) or FALLBACK
    words = [*asked_words(text, language), *(word for word in _WORD.findall(text) if _STRONG.fullmatch(word))]
    return dict(zip(stems(words, language), words, strict=True))


def _cited(answer: str) -> set[tuple[str, int]]:
    """Return the turns that an answer cites, with the folded title of another conversation where it names one."""
    found: set[tuple[str, int]] = set()
    for title, turns in _CITED.findall(answer):
        found |= {(" ".join(title.split()).casefold(), int(number)) for number in re.findall(r"t(\d+)", turns)}
    return found


def _citation(item: ContextItem, cited: set[tuple[str, int]]) -> str:
    if not item.turn_index:
        return ""
    title = " ".join(item.title.split()).casefold() if item.conversation_id else ""
    for wanted, turn in sorted(cited):
        same = wanted == title or (bool(wanted) and bool(title) and title.startswith(wanted.removesuffix("…")))
        if same and item.turn_index <= turn <= max(item.last_turn, item.turn_index):
            return f"cites t{turn}"
    return ""


def _overlap(shared: Sequence[str]) -> str:
    if len(shared) < _FEWEST_WORDS and not any(_STRONG.fullmatch(word) for word in shared):
        return ""
    return f"shares {', '.join(shared[:_SHOWN_WORDS])}"


def _beginning(item: ContextItem) -> str:
    text = " ".join(plain_text(item.text).split())
    return text if len(text) <= _SHOWN_CHARS else text[: _SHOWN_CHARS - 1].rstrip() + "…"
