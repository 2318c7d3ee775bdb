"""Summaries without a model: selected and compressed sentences, tool calls in words, facts with their turns.

Used if there is no model, or if its answers are unusable. Deterministic: the same turns give the same summary. Nothing
is invented: every statement is quoted from the turns or derived from the stored tool calls.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

import msgspec

from ragforge_tui.memory.keyterms import topics_of, weights
from ragforge_tui.memory.language import language_of
from ragforge_tui.memory.prose import answer_prose, compress, cut, sentences, user_prose
from ragforge_tui.memory.summaries.draft import (
    FINDING_CHARS,
    MAX_FILES,
    MAX_FINDINGS,
    PART_CHARS,
    Draft,
    limited,
)
from ragforge_tui.memory.summaries.offline.actions import actions, calls_of, narrative
from ragforge_tui.memory.summaries.offline.informativeness import alike, decides, score
from ragforge_tui.memory.summaries.offline.phrase_tables import phrases
from ragforge_tui.memory.summaries.offline.phrases import Phrases
from ragforge_tui.shared.records import EXTRACTIVE, Finding, Turn

_MOST_SHOWN = 4
_EXCHANGE_CHARS = 150
"""An exchange of fewer characters would be cut to pieces."""
_MIN_FINDINGS = 3
_MOST_DECISIONS = 2
_UNREQUESTED = 0.4
"""Factor for a reply that quotes files although no one asked for it, relative to an answer."""
_RELATIVE_SCORE = 0.45
"""Least score of further findings, as a share of the best one's."""

_ASKS = re.compile(
    r"[?？]\s*[\"'”’»)]*$|^(?:please|can you|could you|show|find|list|run|read|open|explain|what|where|when|who|which|"
    r"why|how|write|create|add|fix|refactor|implement|move|test|build|install|debug|review|compare|translate|"
    r"summari[sz]e|describe|draft|design|commit|change|replace|make|remove|rename|update|tell me|give me|help|search|"
    r"look|check|use|"
    r"montre|trouve|liste|lance|lis|ouvre|explique|écris|crée|ajoute|corrige|change|remplace|fais|supprime|renomme|"
    r"dis|donne|aide|cherche|regarde|vérifie|utilise|que |qu['’]|quoi|où|quand|qui|quel|pourquoi|comment|peux-tu|"
    r"pouvez)\b",
    re.I,
)
_EMPTY = re.compile(
    r"^(?:sure|of course|certainly|great question|good question|okay|ok|thanks|thank you|hi|hello|hey|wow|awesome|"
    r"bien sûr|d['’]accord|merci|bonjour|salut|voici)\b[^.!?]{0,40}[.!:]?$",
    re.I,
)
_QUOTED = re.compile(r"`[^`]+:\d+")
"""Start of a sentence that quotes a place in a file."""
_PATH = re.compile(
    r"(?<![\w/.:])(?:[\w.-]+/)*[\w-]+(?:\.[A-Za-z][A-Za-z0-9]{0,7})+(?![\w/])|(?<![\w/.:])(?:[\w.-]+/)+[\w.-]*\w"
)
_EXTENSIONS_TEXT = (
    "py pyi js ts tsx jsx mjs go rs java kt c h cc cpp hpp cs rb php sh bash zsh toml yaml yml json jsonl md rst "
    "txt cfg ini env lock html css scss sql xml csv tsv ipynb cypher luciform svg png "
)
_EXTENSIONS = frozenset(_EXTENSIONS_TEXT.split())


class _Sentence(msgspec.Struct, frozen=True):
    """Sentence with its turn, its author and its score."""

    turn: int
    by_user: bool
    text: str
    score: float


def extract(turns: Sequence[Turn], *, language: str = "", known_topics: Collection[str] = ()) -> Draft:
    """Return the summary of consecutive turns; a known topic is preferred to a new one."""
    messages = [message for turn in turns for message in _messages(turn)]
    texts = [text for _, text in messages]
    language = language or language_of_turns(turns)
    wording = phrases(language)
    weigh = weights(texts, language)
    spoken = [_sentences(turn, weigh, language) for turn in turns]
    done = actions(turns, wording)
    findings = _findings([sentence for per_turn in spoken for sentence in per_turn], wording)
    if not findings:
        findings = [Finding(text=action.text, turns=[action.turn]) for action in done[:MAX_FINDINGS]]
    draft = Draft(
        conversation_summary=_conversation(turns, spoken, wording)
        or narrative(done, wording, PART_CHARS)
        or wording.nothing,
        actions_summary=narrative(done, wording, PART_CHARS),
        key_findings=findings,
        files_mentioned=files_of(turns),
        # The user's texts count twice: a reply that quotes a file is full of other names.
        topics=topics_of([*texts, *(text for by_user, text in messages if by_user)], language, known=known_topics),
        made_by=EXTRACTIVE,
    )
    return limited(draft)


def language_of_turns(turns: Sequence[Turn]) -> str:
    """Return the user's language; if their texts are too short, that of all texts."""
    messages = [message for turn in turns for message in _messages(turn)]
    asked = "\n".join(text for by_user, text in messages if by_user)
    return language_of(asked) or language_of("\n".join(text for _, text in messages))


def files_of(turns: Sequence[Turn]) -> list[str]:
    """Return the files of the turns: changed ones first, then read ones, then those only mentioned."""
    accessed = [access for _, call in calls_of(turns) for access in call.files]
    paths = [access.path for kind in ("write", "read") for access in accessed if access.access == kind]
    for turn in turns:
        for _, text in _messages(turn):
            paths += [match for match in _PATH.findall(text) if _is_file(match)]
    unique = list(dict.fromkeys(paths))
    # A bare name is the same file as a path that ends in it.
    return [path for path in unique if not any(other.endswith(f"/{path}") for other in unique)][:MAX_FILES]


def _is_file(path: str) -> bool:
    return path.rpartition(".")[2].lower() in _EXTENSIONS and not path.startswith("www.")


def _messages(turn: Turn) -> list[tuple[bool, str]]:
    """Return the messages of a turn as prose: (whether by the user, text)."""
    return [
        (True, user_prose(message.content)) if message.role == "user" else (False, answer_prose(message.content))
        for message in turn.messages
        if message.role in ("user", "assistant") and message.content and message.state != "superseded"
    ]


def _sentences(turn: Turn, weigh: dict[str, float], language: str) -> list[_Sentence]:
    messages = _messages(turn)
    asked = any(by_user and _ASKS.search(sentence) for by_user, text in messages for sentence in sentences(text))
    scored = []
    for by_user, text in messages:
        for place, sentence in enumerate(sentences(text)):
            value = score(sentence, place, weigh, language)
            if not by_user and not asked and _QUOTED.match(sentence):
                value *= _UNREQUESTED
            scored.append(_Sentence(turn.turn_index, by_user, sentence, value))
    return scored


def _conversation(turns: Sequence[Turn], spoken: Sequence[list[_Sentence]], wording: Phrases) -> str:
    """Return the exchanges with the highest scores, in order: each a message of the user and the answer to it."""
    scores = {i: max((sentence.score for sentence in spoken[i]), default=0.0) for i in range(len(turns)) if spoken[i]}
    ranked = sorted(scores, key=lambda i: (-scores[i], i))[:_MOST_SHOWN]
    for count in range(len(ranked), 0, -1):
        chosen = sorted(ranked[:count])
        limit = PART_CHARS // count - 1
        text = " ".join(_exchange(spoken[i], wording, first=i == chosen[0], limit=limit) for i in chosen)
        if len(text) <= PART_CHARS and PART_CHARS // count >= _EXCHANGE_CHARS:
            return text
    return cut(_exchange(spoken[ranked[0]], wording, first=True, limit=PART_CHARS), PART_CHARS) if ranked else ""


def _exchange(spoken: list[_Sentence], wording: Phrases, *, first: bool, limit: int) -> str:
    request = _request([sentence for sentence in spoken if sentence.by_user])
    replies = [sentence for sentence in spoken[spoken.index(request) if request else 0 :] if not sentence.by_user]
    if request is None:
        return ended(_from_best(replies, limit))
    asked = bool(_ASKS.search(request.text))
    if first:
        opening = wording.asked if asked else wording.said
    else:
        opening = wording.then_asked if asked else wording.then_said
    limit -= len(opening) + len(wording.quote) + len(wording.answer) - 6
    start = _reply(replies, request, asked=asked)
    if start is None:
        text = opening.format(wording.quote.format(compress(request.text, limit)))
        return ended(text if replies else text + wording.no_answer)
    question = compress(request.text, max(limit * 2 // 5, limit - len(start.text)))
    return ended(
        opening.format(wording.quote.format(question))
        + wording.answer.format(_continued(replies, start, limit - len(question)))
    )


def _request(own: list[_Sentence]) -> _Sentence | None:
    """Return the user's question or request with the highest score, else their sentence with the highest score."""
    best = max(own, key=lambda sentence: sentence.score, default=None)
    requests = (sentence for sentence in own if _ASKS.search(sentence.text))
    request = max(requests, key=lambda sentence: sentence.score, default=None)
    return request if request is not None and (best is None or request.score > 0 or best.score == 0) else best


def _reply(replies: list[_Sentence], request: _Sentence, *, asked: bool) -> _Sentence | None:
    """Return the first sentence of the answer: to a question the first real one, to a statement only a better one."""
    if asked:
        plain = [reply for reply in replies if not reply.text.endswith(("?", "？")) and not _EMPTY.match(reply.text)]
        return next(iter(plain or replies), None)
    best = max(replies, key=lambda reply: reply.score, default=None)
    if best is None or best.score < request.score or best.text.endswith(("?", "？")) or _QUOTED.match(best.text):
        return None
    return best


def _continued(replies: list[_Sentence], start: _Sentence, limit: int) -> str:
    """Return a sentence and as many of the following ones as fit."""
    text = compress(start.text, limit)
    for reply in replies[replies.index(start) + 1 :]:
        if len(text) + len(reply.text) + 1 > limit or reply.text.endswith(("?", "？")):
            break
        text = f"{text} {reply.text}"
    return text


def _from_best(replies: list[_Sentence], limit: int) -> str:
    best = max(replies, key=lambda reply: reply.score, default=None)
    return compress(best.text, limit) if best else ""


def _findings(spoken: list[_Sentence], wording: Phrases) -> list[Finding]:
    """Return the user's decisions, then the sentences with the highest scores, without duplicates, in text order."""
    chosen: list[_Sentence] = []
    least = max((sentence.score for sentence in spoken), default=0.0) * _RELATIVE_SCORE
    ranked = sorted(spoken, key=lambda s: (-s.score, s.turn, s.text))
    decisions = [sentence for sentence in ranked if sentence.by_user and decides(sentence.text)][:_MOST_DECISIONS]
    for sentence in [*decisions, *(other for other in ranked if other not in decisions)]:
        if (
            sentence.score <= (least if len(chosen) >= _MIN_FINDINGS else 0)
            or _is_list(sentence.text)
            or sentence.text.endswith(("?", "？"))
            or (sentence.by_user and _ASKS.search(sentence.text))
            or any(alike(sentence.text, other.text) for other in chosen)
        ):
            continue
        chosen.append(sentence)
        if len(chosen) == MAX_FINDINGS:
            break
    chosen.sort(key=lambda s: spoken.index(s))
    return [
        Finding(text=_attributed(compress(s.text, FINDING_CHARS - 30), wording, by_user=s.by_user), turns=[s.turn])
        for s in chosen
    ]


def _is_list(text: str) -> bool:
    """Return whether a text is only the start of a list."""
    return text.endswith(", …") and not text.startswith("`")


def _attributed(text: str, wording: Phrases, *, by_user: bool) -> str:
    return wording.person.format(wording.quote.format(text)) if by_user else text


def ended(text: str) -> str:
    return text if not text or text.endswith((".", "!", "?", "…", "”", "»", "。", "！", "？")) else f"{text}."
