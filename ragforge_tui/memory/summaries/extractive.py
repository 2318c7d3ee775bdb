"""Summaries without a model: real sentences picked and compressed, what was done in words, facts with their turns.

Stands in for a model that is not there, or whose answers cannot be used. Deterministic: the same turns give the same
summary. Nothing is invented: every statement is quoted from the turns or told from the stored tool calls.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

import msgspec

from ragforge_tui.memory.keyterms import weights
from ragforge_tui.memory.language import language_of
from ragforge_tui.memory.summaries.actions import actions, calls_of, narrative
from ragforge_tui.memory.summaries.draft import (
    FINDING_CHARS,
    MAX_FILES,
    MAX_FINDINGS,
    PART_CHARS,
    Draft,
    limited,
)
from ragforge_tui.memory.summaries.phrase_tables import phrases
from ragforge_tui.memory.summaries.phrases import Phrases
from ragforge_tui.memory.summaries.sentences import compress, cut, prose, sentences
from ragforge_tui.memory.summaries.statements import statements
from ragforge_tui.memory.summaries.telling import alike, decides, score
from ragforge_tui.memory.topics import topics_of
from ragforge_tui.models import EXTRACTIVE, Finding, Turn

_MOST_SHOWN = 4
_EXCHANGE_CHARS = 150
"""An exchange told in fewer characters is cut to pieces."""
_MIN_FINDINGS = 3
_MOST_DECISIONS = 2
_UNASKED = 0.4
"""What a reply tells that nobody asked for, beside what it would tell as an answer."""
_TELLING = 0.45
"""Further findings tell at least this share of what the best one does."""

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
"""A sentence that quotes a place in a file begins so."""
_PATH = re.compile(
    r"(?<![\w/.:])(?:[\w.-]+/)*[\w-]+(?:\.[A-Za-z][A-Za-z0-9]{0,7})+(?![\w/])|(?<![\w/.:])(?:[\w.-]+/)+[\w.-]*\w"
)
_EXTENSIONS_TEXT = (
    "py pyi js ts tsx jsx mjs go rs java kt c h cc cpp hpp cs rb php sh bash zsh toml yaml yml json jsonl md rst "
    "txt cfg ini env lock html css scss sql xml csv tsv ipynb cypher luciform svg png "
)
_EXTENSIONS = frozenset(_EXTENSIONS_TEXT.split())


class _Said(msgspec.Struct, frozen=True):
    """A sentence, who said it in which turn, and how much it tells."""

    turn: int
    person: bool
    text: str
    score: float


def extract(turns: Sequence[Turn], *, language: str = "", known_topics: Collection[str] = ()) -> Draft:
    """The summary of a run of turns; a topic known already is preferred to a new one."""
    spoken_texts = [said for turn in turns for said in _spoken(turn)]
    texts = [text for _, text in spoken_texts]
    language = language or language_of_turns(turns)
    said = phrases(language)
    weigh = weights(texts, language)
    spoken = [_sentences(turn, weigh, language) for turn in turns]
    done = actions(turns, said)
    findings = _findings([one for per_turn in spoken for one in per_turn], said)
    if not findings:
        findings = [Finding(text=action.text, turns=[action.turn]) for action in done[:MAX_FINDINGS]]
    draft = Draft(
        conversation_summary=_conversation(turns, spoken, said) or narrative(done, said, PART_CHARS) or said.nothing,
        actions_summary=narrative(done, said, PART_CHARS),
        key_findings=findings,
        files_mentioned=files_of(turns),
        # What the person speaks of counts twice: a reply that quotes a file is full of other names.
        topics=topics_of([*texts, *(text for person, text in spoken_texts if person)], language, known=known_topics),
        made_by=EXTRACTIVE,
    )
    return limited(draft)


def language_of_turns(turns: Sequence[Turn]) -> str:
    """The language of the person; where they say too little, of all that was said."""
    spoken = [said for turn in turns for said in _spoken(turn)]
    asked = "\n".join(text for person, text in spoken if person)
    return language_of(asked) or language_of("\n".join(text for _, text in spoken))


def files_of(turns: Sequence[Turn]) -> list[str]:
    """Files the turns touched, those changed first, then those only spoken of."""
    accessed = [access for _, call in calls_of(turns) for access in call.files]
    paths = [access.path for kind in ("write", "read") for access in accessed if access.access == kind]
    for turn in turns:
        for _, text in _spoken(turn):
            paths += [match for match in _PATH.findall(text) if _is_file(match)]
    found = list(dict.fromkeys(paths))
    # A bare name beside a path that ends in it is the same file.
    return [path for path in found if not any(other.endswith(f"/{path}") for other in found)][:MAX_FILES]


def _is_file(path: str) -> bool:
    return path.rpartition(".")[2].lower() in _EXTENSIONS and not path.startswith("www.")


def _spoken(turn: Turn) -> list[tuple[bool, str]]:
    """What was said in a turn, as prose: (by the person, text)."""
    return [
        (True, prose(message.content)) if message.role == "user" else (False, statements(message.content))
        for message in turn.messages
        if message.role in ("user", "assistant") and message.content and message.state != "superseded"
    ]


def _sentences(turn: Turn, weigh: dict[str, float], language: str) -> list[_Said]:
    spoken = _spoken(turn)
    asked = any(person and _ASKS.search(sentence) for person, text in spoken for sentence in sentences(text))
    found = []
    for person, text in spoken:
        for place, sentence in enumerate(sentences(text)):
            value = score(sentence, place, weigh, language)
            if not person and not asked and _QUOTED.match(sentence):
                value *= _UNASKED
            found.append(_Said(turn.turn_index, person, sentence, value))
    return found


def _conversation(turns: Sequence[Turn], spoken: Sequence[list[_Said]], said: Phrases) -> str:
    """The exchanges that tell most, in order: what was asked or said, and what came back."""
    told = {i: max((one.score for one in spoken[i]), default=0.0) for i in range(len(turns)) if spoken[i]}
    ranked = sorted(told, key=lambda i: (-told[i], i))[:_MOST_SHOWN]
    for count in range(len(ranked), 0, -1):
        kept = sorted(ranked[:count])
        text = " ".join(_exchange(spoken[i], said, first=i == kept[0], room=PART_CHARS // count - 1) for i in kept)
        if len(text) <= PART_CHARS and PART_CHARS // count >= _EXCHANGE_CHARS:
            return text
    return cut(_exchange(spoken[ranked[0]], said, first=True, room=PART_CHARS), PART_CHARS) if ranked else ""


def _exchange(spoken: list[_Said], said: Phrases, *, first: bool, room: int) -> str:
    wish = _wish([one for one in spoken if one.person])
    replies = [one for one in spoken[spoken.index(wish) if wish else 0 :] if not one.person]
    if wish is None:
        return ended(_from_best(replies, room))
    asked = bool(_ASKS.search(wish.text))
    opening = (said.asked if asked else said.said) if first else said.then_asked if asked else said.then_said
    room -= len(opening) + len(said.quote) + len(said.answer) - 6
    start = _reply(replies, wish, asked=asked)
    if start is None:
        text = opening.format(said.quote.format(compress(wish.text, room)))
        return ended(text if replies else text + said.no_answer)
    question = compress(wish.text, max(room * 2 // 5, room - len(start.text)))
    return ended(
        opening.format(said.quote.format(question))
        + said.answer.format(_going_on(replies, start, room - len(question)))
    )


def _wish(own: list[_Said]) -> _Said | None:
    """What the person wanted: the question or wish that tells most, else what they said that does."""
    best = max(own, key=lambda one: one.score, default=None)
    wish = max((one for one in own if _ASKS.search(one.text)), key=lambda one: one.score, default=None)
    return wish if wish is not None and (best is None or wish.score > 0 or best.score == 0) else best


def _reply(replies: list[_Said], wish: _Said, *, asked: bool) -> _Said | None:
    """Where the answer begins: at its first sentence that is one; on a statement, only a reply that tells as much."""
    if asked:
        plainly = [one for one in replies if not one.text.endswith(("?", "？")) and not _EMPTY.match(one.text)]
        return next(iter(plainly or replies), None)
    best = max(replies, key=lambda one: one.score, default=None)
    if best is None or best.score < wish.score or best.text.endswith(("?", "？")) or _QUOTED.match(best.text):
        return None
    return best


def _going_on(replies: list[_Said], start: _Said, room: int) -> str:
    """From a sentence on as many as there is room for."""
    text = compress(start.text, room)
    for one in replies[replies.index(start) + 1 :]:
        if len(text) + len(one.text) + 1 > room or one.text.endswith(("?", "？")):
            break
        text = f"{text} {one.text}"
    return text


def _from_best(replies: list[_Said], room: int) -> str:
    best = max(replies, key=lambda one: one.score, default=None)
    return compress(best.text, room) if best else ""


def _findings(spoken: list[_Said], said: Phrases) -> list[Finding]:
    """What the person decided, then the sentences that tell most, none like another, in the order they were said."""
    chosen: list[_Said] = []
    least = max((one.score for one in spoken), default=0.0) * _TELLING
    ranked = sorted(spoken, key=lambda s: (-s.score, s.turn, s.text))
    decisions = [one for one in ranked if one.person and decides(one.text)][:_MOST_DECISIONS]
    for one in [*decisions, *(one for one in ranked if one not in decisions)]:
        if (
            one.score <= (least if len(chosen) >= _MIN_FINDINGS else 0)
            or _is_list(one.text)
            or one.text.endswith(("?", "？"))
            or (one.person and _ASKS.search(one.text))
            or any(alike(one.text, other.text) for other in chosen)
        ):
            continue
        chosen.append(one)
        if len(chosen) == MAX_FINDINGS:
            break
    chosen.sort(key=lambda s: spoken.index(s))
    return [
        Finding(text=_attributed(compress(one.text, FINDING_CHARS - 30), said, person=one.person), turns=[one.turn])
        for one in chosen
    ]


def _is_list(text: str) -> bool:
    """Whether a text only begins to list things."""
    return text.endswith(", …") and not text.startswith("`")


def _attributed(text: str, said: Phrases, *, person: bool) -> str:
    return said.person.format(said.quote.format(text)) if person else text


def ended(text: str) -> str:
    return text if not text or text.endswith((".", "!", "?", "…", "”", "»", "。", "！", "？")) else f"{text}."
