"""Findings that a turn marks: "Decision: …", "still to do", "from now on", "never …". Nothing is inferred.

Precision comes first: a false open point misleads whoever continues. Only what the user typed counts, nothing that was
pasted or piped, and nothing that a colon hands over, as in "Translate: …". Code, quotations, questions, requests and
hypotheticals mark nothing. An answer marks open points alone, of its own, not those that it read. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from ragforge_tui.memory.findings.likeness import gist
from ragforge_tui.memory.findings.marks import LABELLED, Marks, marks
from ragforge_tui.memory.language import language_of
from ragforge_tui.memory.prose import FENCE, PASTED, compress, own_words, sentences, strip_markdown, without_code
from ragforge_tui.shared.finding_records import FindingScope, KeptKind
from ragforge_tui.shared.records import FindingKind, Message, Turn
from ragforge_tui.shared.tool_calls import result_text

MOST_MARKED = 10
"""Findings of one turn that are kept: more are a pasted list."""
TEXT_CHARS = 300
_FEWEST_WORDS = 2
_FEWEST_FACT_WORDS = 5
_QUOTED = re.compile(
    r"`[^`\n]*`|“[^“”\n]*”|„[^„“”\n]*[“”]|«[^«»\n]*»|\"[^\"\n]*\"|(?<!\w)'[^'\n]{2,80}'(?!\w)|‘[^‘’\n]*’(?!\w)"
)
_HIDDEN = "·"
_BLOCK_QUOTE = re.compile(r"^[ \t]*>.*$", re.M)
_LIST_ITEM = re.compile(r"^[ \t]*(?:[-*+•]|\d{1,3}[.)])[ \t]+")
_DONE_ITEM = re.compile(r"^[ \t]*(?:[-*+•]|\d{1,3}[.)])[ \t]+(?:\[[xX]\]|~~|✓|✔|☑|✅)")
_HEADING = re.compile(r"^[ \t]*#{1,6}[ \t]")
_OPENER = re.compile(r"^(?:and|also|so|but|ok|okay|et|und|y|e|en|и)[,:]? +", re.I)
_LOGGED = re.compile(r"^\W?\d{4}-\d\d-\d\d\b|^\W?\d\d:\d\d:\d\d\b")
_LEFT = re.compile(
    r"\b(?:leave open|left open|open (?:points?|questions?)|decide|decisions?|rules?|wishes|to do)\b", re.I
)
_CHOSEN_NOW = re.compile(
    r"(?:prefer|préf[èé]r|bevorzug|prefi[er]|preferi|liever|lieber|предпочита).{0,40}\b(?:option|variante?|"
    r"the (?:first|second|third|last|other|former|latter)|this one|that one|erste[nr]?|zweite[nr]?|première?|deuxième|"
    r"primer[oa]|segund[oa]|prim[oa]|second[oa]|eerste|tweede|primeir[oa]|перв\w+|втор\w+)\b",
    re.I,
)
"""Choice among what was offered, which holds for this time."""
_REFERRING = re.compile(r"\b(?:that|this|it|das|dies|ça|cela|eso|esto|ciò|questo|dat|dit|isso|isto|это)\b", re.I)
_FEWEST_WITH_REFERENCE = 6
"""Words from which a wish can be understood although it refers to what was said before."""
_COLON = re.compile(r"[:：](?=\s)")
_FOR = re.compile(r"(?:for|pour|für|para|per|voor|для|dla)\b", re.I)
_PARAGRAPH_END = re.compile(r"\n[ \t]*\n")
_REPEATED = 0.75
"""Share of the words of a statement that a line has which it repeats."""
_QUESTION = re.compile(r"[?？]\s*[\"'”’»)\]]*$")


class Marked(msgspec.Struct, frozen=True):
    """Statement that a turn marks.

    Attributes:
        sentence: The whole sentence with its mark.
    """

    kind: KeptKind
    text: str
    by_user: bool
    sentence: str
    scope: FindingScope = "folder"


def marked_findings(turn: Turn) -> list[Marked]:
    """Return what a turn marks, in order, each once; not an answer to what was decided or is open: it repeats that."""
    found: dict[tuple[KeptKind, str], Marked] = {}
    past = any(message.role == "user" and _asks_back(message.content) for message in turn.messages)
    for message in turn.messages:
        by_user = message.role == "user"
        if message.role not in ("user", "assistant") or message.state == "superseded" or message.doing:
            continue
        if by_user or not past:
            for one in _marked(message):
                if not by_user and _is_repeated(one, turn):
                    continue
                found.setdefault((one.kind, one.text.casefold()), one)
    return list(found.values())[:MOST_MARKED]


def _is_repeated(one: Marked, turn: Turn) -> bool:
    """Return whether a statement repeats a text of the turn that neither user nor model wrote."""
    mine = gist(one.sentence)
    longest = max(mine.stems, key=len, default="")
    texts = [text for message in turn.messages for text in message.materials]
    texts += [result_text(call) for message in turn.messages for call in message.tool_calls]
    return any(
        mine.share_in(gist(line)) >= _REPEATED
        for text in texts
        for line in text.splitlines()
        if longest in line.casefold()
    )


def said_sentences(text: str) -> list[tuple[str, str]]:
    """Return the sentences of a message without code and quoted blocks, each also with its quotations hidden."""
    own = strip_markdown(without_code(PASTED.sub("\n", _BLOCK_QUOTE.sub("", FENCE.sub("\n", text)))))
    return [(sentence, _masked(sentence)) for sentence in sentences(own)]


def _asks_back(text: str) -> bool:
    """Return whether a message asks for what was decided or is open."""
    known = marks(language_of(text))
    return any(
        (_QUESTION.search(sentence) or known.asking.search(sentence))
        and (known.said["open"].search(sentence) or known.said["decision"].search(sentence) or _LEFT.search(sentence))
        for sentence in sentences(text)
    )


def _marked(message: Message) -> Iterator[Marked]:
    by_user = message.role == "user"
    text = _BLOCK_QUOTE.sub("", FENCE.sub("\n", message.typed if by_user else message.content))
    known = marks(language_of(text))
    if by_user:
        own = (_before_colon(part, known) for part in _PARAGRAPH_END.split(PASTED.sub("\n", text)))
        text = without_code("\n".join(own))
    else:
        text = own_words(text)
    listed: KeptKind | None = None
    quoting = False
    """Whether a line introduced the next text, as before a paste, which is not the user's own word."""
    waiting = False
    """Whether the line below a label is its text."""
    for raw in text.splitlines():
        line = strip_markdown(raw).strip("*_ ")
        if not line or _LOGGED.match(line):
            continue
        item = _LIST_ITEM.match(raw) is not None
        if heading := _heading(line, raw, known):
            listed, waiting = heading, True
            continue
        if listed is not None and (item or waiting):
            waiting = False
            if not _DONE_ITEM.match(raw) and (one := _labelled(listed, line, line, by_user, known)):
                yield one
            if not item:
                listed = None
            continue
        listed = None
        if not (by_user and quoting and not item):
            yield from _of_line(line, by_user, known)
        quoting = quoting or line.endswith((":", "："))


def _before_colon(paragraph: str, known: Marks) -> str:
    """Return a paragraph up to the line in which a colon hands something over."""
    lines = paragraph.splitlines()
    for at, line in enumerate(lines):
        said = sentences(strip_markdown(line).strip("*_ "))
        if any(_hands_over(sentence) and not _label(sentence, known) for sentence in said):
            return "\n".join(lines[: at + 1])
    return paragraph


def _hands_over(sentence: str) -> bool:
    """Return whether what follows a colon is not the sentence's own: "translate: …", but "for commits: …"."""
    return _COLON.search(_masked(sentence)) is not None and _FOR.match(sentence) is None


def _heading(line: str, raw: str, known: Marks) -> KeptKind | None:
    """Return the kind of a line that is only a label: a heading, or one that ends with a colon."""
    if not line.endswith((":", "：")) and not _HEADING.match(raw):
        return None
    return next((kind for kind in LABELLED if known.headings[kind].match(line)), None)


def _of_line(line: str, by_user: bool, known: Marks) -> Iterator[Marked]:
    for sentence in sentences(line):
        if label := _label(sentence, known):
            if one := _labelled(label[0], sentence[label[1] :], sentence, by_user, known):
                yield one
            continue
        if (said := said_kind(sentence, by_user=by_user, known=known)) is not None:
            scope = _scope(said, sentence, known)
            yield Marked(said, compress(sentence, TEXT_CHARS), by_user, sentence, scope)
        if by_user and _hands_over(sentence):
            return


def _label(sentence: str, known: Marks) -> tuple[KeptKind, int] | None:
    """Return the kind of a labelled sentence, and the start of its text."""
    masked = _masked(sentence)
    return next(((kind, label.end()) for kind in LABELLED if (label := known.labels[kind].match(masked))), None)


def _labelled(kind: KeptKind, text: str, sentence: str, by_user: bool, known: Marks) -> Marked | None:
    """Return the statement behind a label; None if there is none, or if only the user may make it."""
    text = text.strip(" *_–—-")
    if _QUESTION.search(text) and kind != "open":
        return None
    if not by_user and kind != "open":
        return None
    if len(text.split()) < _FEWEST_WORDS or known.nothing.match(text):
        return None
    return Marked(kind, compress(text, TEXT_CHARS), by_user, sentence, _scope(kind, sentence, known))


def mark_of(sentence: str, *, by_user: bool) -> FindingKind:
    """Return the kind of finding that one sentence marks by itself; empty if it marks none."""
    known = marks(language_of(sentence))
    masked = _masked(sentence)
    kind = next((kind for kind in LABELLED if known.labels[kind].match(masked)), None)
    if kind is not None and not by_user and kind != "open":
        return ""
    kind = kind or said_kind(sentence, by_user=by_user, known=known)
    return "" if kind is None else "preference" if kind == "wish" else kind


def said_kind(sentence: str, *, by_user: bool, known: Marks) -> KeptKind | None:
    """Return the kind that a sentence's own words show, without a label."""
    if _QUESTION.search(sentence) or sentence.startswith("`"):
        return None
    masked = _OPENER.sub("", _masked(sentence).strip())
    if len(sentence.split()) <= _FEWEST_WORDS:
        return None
    if by_user:
        masked = _COLON.split(masked, maxsplit=1)[0] if _hands_over(sentence) else masked
        if known.said["wish"].search(masked) and not known.doubt.search(_without_conditions(masked)):
            refers = _REFERRING.search(masked) and len(sentence.split()) < _FEWEST_WITH_REFERENCE
            return None if refers or _CHOSEN_NOW.search(masked) else "wish"
        if known.asking.search(masked):
            return None
        if known.said["decision"].search(masked) and not known.doubt.search(masked):
            return "decision"
        if known.said["fact"].search(masked) and len(sentence.split()) > _FEWEST_FACT_WORDS:
            return "fact"
    elif known.asking.search(masked) and masked.endswith(":"):
        return None
    if known.said["open"].search(masked) and not known.nothing.search(masked):
        return "open"
    return None


def _without_conditions(sentence: str) -> str:
    """Return a rule without its condition: "never push if we have not tested" is one."""
    return re.sub(r"\b(?:if|unless|when|whether|si|wenn|falls|se|als|если|jeśli)\b.*$", "", sentence, flags=re.I)


def _scope(kind: KeptKind, sentence: str, known: Marks) -> FindingScope:
    if known.only_here.search(sentence):
        return "conversation"
    return "user" if kind == "wish" and known.everywhere.search(sentence) else "folder"


def _masked(sentence: str) -> str:
    """Return a sentence with its quotations hidden, so that offsets stay."""
    return _QUOTED.sub(lambda match: _HIDDEN * len(match[0]), sentence)
