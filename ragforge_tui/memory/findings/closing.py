"""What a turn closes, replaces or gives up of findings: the user's word, an edit with its test, a correction.

Precision comes first: a point that stays open costs a line, one that is closed wrongly is forgotten. A word alone
("done") closes only what was talked about last, and only if that is one thing. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec

from ragforge_tui.memory.findings.likeness import Gist, gist, mentions
from ragforge_tui.memory.findings.marked import Marked, said_sentences
from ragforge_tui.memory.findings.marks import Marks, marks
from ragforge_tui.memory.language import language_of
from ragforge_tui.memory.prose import cut
from ragforge_tui.shared.finding_records import KeptFinding, KeptKind
from ragforge_tui.shared.json_text import json_object
from ragforge_tui.shared.records import ToolCall, Turn
from ragforge_tui.shared.suite_runs import runs_tests, suite_run
from ragforge_tui.shared.tool_calls import called_tool, main_argument, result_text

_LAST_TURNS = 3
"""Turns back that "that" and "done" may refer to."""
_NAMED_SHARE = 0.4
_PLAIN_SHARE = 0.6
_FEWEST_STEMS = 2
_WORDS_CHARS = 80
_NEW_CHARS = 300
_FEWEST_NEW_WORDS = 3
_DROPPED_WITHIN = 12
"""Characters of a sentence within which it gives something up: "drop the table" later on is something else."""
_ABOUT_TESTS = re.compile(r"\btests?\b", re.I)
_ABOUT_DOCS = re.compile(r"\b(?:docs?|documentation|readme|changelog|doku|documentación|documentazione)\b", re.I)
_DOCS_PATH = re.compile(r"\.(?:md|rst|txt|adoc)$|\bdocs?/", re.I)
_CLAUSE_END = re.compile(
    r"[,;:.!?()]|\s[–—-]\s|\b(?:because|since|as|and|car|parce|weil|und|porque|perché|omdat)\b", re.I
)
_FORBIDS = re.compile(r"\b(?:never|jamais|nie|niemals|nunca|mai|nooit|никогда|nigdy)\b", re.I)
"""A rule against something agrees with what is used instead of it."""
_PROPER = re.compile(r"(?:the |le |la |l['’]|den |die |das |el |il )?`?(?:[A-Z]\w*|\w*[a-z][A-Z]\w*|\w*[\d_]\w*)`?$")
_AFTER_COLON = re.compile(r"[:：]\s*(\S.*)$|[,;]\s*(\S.*)$|\s[–—-]\s*(\S.*)$")

How = Literal["done", "replaced", "forgotten"]


class Change(msgspec.Struct, frozen=True):
    """What a turn does to a finding.

    Attributes:
        words: What did it, for the reader.
        by: Id of the message or call that did it.
        new: The statement that takes its place, with its kind.
    """

    finding: KeptFinding
    how: How
    words: str
    by: str = ""
    new: tuple[KeptKind, str] | None = None


def changes_of(turn: Turn, marked: Sequence[Marked], current: Sequence[KeptFinding]) -> list[Change]:
    """Return what a turn changes of the current findings, each at most once.

    Args:
        marked: What the turn itself marks.
        current: Findings that hold, of the folder; those of the turn and of later ones are left alone.
    """
    asked = next((message for message in turn.messages if message.role == "user" and not message.doing), None)
    own = turn.messages[0].conversation_id if turn.messages else ""
    older = [one for one in current if one.conversation_id != own or one.turn_index < turn.turn_index]
    if not older or not turn.messages:
        return []
    found: dict[str, Change] = {}
    if asked is not None:
        last = _talked_of_last(turn, [one for one in older if one.conversation_id == own])
        for change in _by_word(turn, asked.typed, marked, older, last):
            found.setdefault(change.finding.uuid, msgspec.structs.replace(change, by=asked.uuid))
    for change in _by_work(turn, [one for one in older if one.kind == "open"]):
        found.setdefault(change.finding.uuid, change)
    return list(found.values())


def _talked_of_last(turn: Turn, own: Sequence[KeptFinding]) -> list[KeptFinding]:
    """Return the findings of the last turn that stated any, if that is recent."""
    near = [one for one in own if one.turn_index >= turn.turn_index - _LAST_TURNS]
    newest = max((one.turn_index for one in near), default=0)
    return [one for one in near if one.turn_index == newest]


def _by_word(
    turn: Turn, text: str, marked: Sequence[Marked], older: Sequence[KeptFinding], last: Sequence[KeptFinding]
) -> Iterator[Change]:
    known = marks(language_of(text))
    said = said_sentences(text)
    stating = {one.sentence for one in marked if one.by_user and one.kind != "open"}
    for place, (sentence, masked) in enumerate(said):
        if masked.rstrip().endswith(("?", "？")):
            continue
        words = f"t{turn.turn_index}: “{cut(sentence, _WORDS_CHARS)}”"
        if (match := known.that.search(masked)) is not None:
            if len(last) == 1:
                rest = _AFTER_COLON.match(sentence[match.end() :].strip())
                text_after = next(filter(None, rest.groups()), "") if rest else ""
                if not text_after and place + 1 < len(said):
                    text_after = next((one.text for one in marked if one.sentence == said[place + 1][0]), "")
                yield _given_up(last[0], words, text_after)
            continue
        if known.bare.match(masked.strip()):
            still_open = [one for one in last if one.kind == "open"]
            if len(still_open) == 1:
                yield Change(still_open[0], "done", words)
            continue
        yield from _by_sentence(sentence, masked, words, known, older)
        opening = known.correcting.match(masked)
        if opening is not None and not known.asking.search(masked) and sentence not in stating:
            # Without a mark it takes the kind of what it corrects.
            text = sentence[opening.end() :].lstrip(" ,:：–—-")
            for change in _corrected(Marked("fact", cut(text, _NEW_CHARS), True, sentence), words, known, older):
                yield msgspec.structs.replace(change, new=(change.finding.kind, cut(text, _NEW_CHARS)))
    for one in marked:
        if one.by_user and one.kind != "open":
            yield from _corrected(one, f"t{turn.turn_index}: “{cut(one.sentence, _WORDS_CHARS)}”", known, older)


def _given_up(finding: KeptFinding, words: str, instead: str) -> Change:
    if len(instead.split()) >= _FEWEST_NEW_WORDS:
        return Change(finding, "replaced", words, new=(finding.kind, cut(instead, _NEW_CHARS)))
    return Change(finding, "forgotten", words)


def _by_sentence(
    sentence: str, masked: str, words: str, known: Marks, older: Sequence[KeptFinding]
) -> Iterator[Change]:
    if known.closing.search(masked) and not known.doubt.search(masked) and not known.said["open"].search(masked):
        for one in older:
            if one.kind == "open" and is_plainly(one.text, known.closing.sub(" ", sentence)):
                yield Change(one, "done", words)
    if (match := known.dropping.search(masked)) is not None and (
        match.start() <= _DROPPED_WITHIN or masked.rstrip(" .!").endswith(match[0])
    ):
        rest = known.dropping.sub(" ", sentence)
        for one in older:
            if _is_named_by(rest, one.text):
                yield _given_up(one, words, "")
    if (match := known.against.search(masked)) is not None and not known.asking.search(masked):
        yield from _against(sentence, match.start(), match.end(), words, older)
    if known.ended.search(masked) and not known.asking.search(masked) and not known.doubt.search(masked):
        said = gist(known.ended.sub(" ", sentence))
        for one in older:
            old = gist(one.text)
            same = old.names <= said.names | said.stems and old.numbers == said.numbers
            if one.kind != "open" and same and len(old.stems) >= _FEWEST_STEMS and old.share_in(said) >= _PLAIN_SHARE:
                yield Change(one, "replaced", words, new=(one.kind, cut(sentence, _NEW_CHARS)))


def _against(sentence: str, start: int, end: int, words: str, older: Sequence[KeptFinding]) -> Iterator[Change]:
    """Yield what "X instead of Y" replaces: statements that are about Y, and share more than that with the sentence.

    A name is enough if only one statement has it.
    """
    object_ = _CLAUSE_END.split(sentence[end:].strip(), maxsplit=1)[0]
    given_up, rest = gist(object_), gist(sentence[:start])
    if not given_up.stems or not rest.stems:
        return
    about = [
        one
        for one in older
        if one.kind != "open" and given_up.stems <= gist(one.text).stems and not _FORBIDS.search(one.text)
    ]
    if not (len(about) == 1 and _PROPER.match(object_)):
        about = [
            one
            for one in about
            if (rest.stems & gist(one.text).stems) or 2 * len(given_up.stems) >= len(gist(one.text).stems)
        ]
    for one in about:
        if rest.stems - gist(one.text).stems:
            yield Change(one, "replaced", words, new=(one.kind, cut(sentence, _NEW_CHARS)))


def _corrected(new: Marked, words: str, known: Marks, older: Sequence[KeptFinding]) -> Iterator[Change]:
    """Yield the older statements that a marked one takes the place of: about the same, with another value or denied."""
    mine = gist(new.text)
    says_so = known.correcting.search(new.sentence) is not None
    for one in older:
        if one.kind != new.kind and "open" in (one.kind, new.kind):
            continue
        theirs = gist(one.text)
        if mine.is_same(theirs) or not theirs.names <= mine.names | theirs.stems:
            continue
        other_value = bool(theirs.numbers and mine.numbers and theirs.numbers != mine.numbers)
        other_value = other_value or mine.is_opposite(theirs)
        if (mine.is_alike(theirs) or theirs.share_in(mine) >= _PLAIN_SHARE) and (other_value or says_so):
            yield Change(one, "replaced", words, new=(new.kind, new.text))


def is_plainly(statement: str, sentence: str) -> bool:
    """Return whether a sentence is about a statement as a whole, not about a part of it."""
    about, said = gist(statement), gist(sentence)
    low = sentence.casefold()
    if not all(mentions(low, name) for name in about.names):
        return False
    shared = about.stems & said.stems
    if about.names:
        return about.share_in(said) >= _NAMED_SHARE
    if len(shared) >= _FEWEST_STEMS and about.share_in(said) >= _PLAIN_SHARE:
        return True
    return _is_named_by(sentence, statement)


def _is_named_by(sentence: str, statement: str) -> bool:
    """Return whether a short sentence names a statement: it has no other words."""
    said, about = gist(sentence), gist(statement)
    return len(said.stems) >= _FEWEST_STEMS and said.stems <= about.stems and about.names <= said.names | said.stems


def _by_work(turn: Turn, still_open: Sequence[KeptFinding]) -> Iterator[Change]:
    """Yield the open points that an edit of the turn settles, confirmed by a passed test or the answer."""
    messages = [message for message in turn.messages if message.state != "superseded"]
    calls = [call for message in messages for call in message.tool_calls]
    edits = [at for at, call in enumerate(calls) if called_tool(call).access == "write" and call.success]
    if not edits or not still_open:
        return
    passed = any(_passed(call) for call in calls[edits[-1] + 1 :])
    edited = [calls[at] for at in edits]
    paths = sorted({file.path for call in edited for file in call.files if file.access == "write"})
    written = "\n".join([*paths, *(call.arguments for call in edited)]).casefold()
    answers = "\n".join(message.content for message in messages if message.role == "assistant")
    told = gist("\n".join([answers, *(message.content for message in messages if message.role == "user"), written]))
    for one in still_open:
        about = gist(one.text)
        if not about.names or not all(mentions(written, name.rpartition("/")[2]) for name in about.names):
            continue
        if not _kind_of_file(one.text, paths):
            continue
        rest = Gist(about.stems - {part for name in about.names for part in (name, *name.split("."))}, *_EMPTY)
        if rest.stems and rest.share_in(told) < _NAMED_SHARE:
            continue
        if passed or _says_done(one.text, answers):
            last = edited[-1]
            how = f"t{turn.turn_index}: edited {main_argument(last) or ', '.join(paths)}"
            yield Change(one, "done", f"{how}; tests passed" if passed else how, by=last.uuid)


_EMPTY: tuple[frozenset[str], frozenset[str]] = (frozenset(), frozenset())


def _kind_of_file(statement: str, paths: Sequence[str]) -> bool:
    """Return whether files of the kind that a statement asks for were edited, if it asks for tests or docs."""
    if _ABOUT_TESTS.search(statement):
        return any("test" in path.casefold() for path in paths)
    if _ABOUT_DOCS.search(statement):
        return any(_DOCS_PATH.search(path) for path in paths)
    return True


def _passed(call: ToolCall) -> bool:
    """Return whether a call ran tests that passed."""
    if called_tool(call).outcome != "exit_status" or call.result is None or not call.result.success:
        return False
    run = suite_run(main_argument(call), result_text(call))
    return json_object(call.result.result).get("exit_status") == 0 and (
        run.passed if run is not None else runs_tests(main_argument(call))
    )


def _says_done(statement: str, answers: str) -> bool:
    """Return whether an answer reports a statement as settled."""
    known = marks(language_of(answers))
    return any(
        known.closing.search(masked)
        and not known.said["open"].search(masked)
        and not known.doubt.search(masked)
        and is_plainly(statement, sentence)
        for sentence, masked in said_sentences(answers)
    )
