"""Summaries without a model: real sentences picked and compressed, what was done in words, facts with their turns.

Stands in for a model that is not there, or whose answers cannot be used. Deterministic: the same turns give the same
summary. Nothing is invented: every statement is quoted from the turns or told from the stored tool calls.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from ragforge_tui.graph.topic_links import ProposedTopic, topic_key
from ragforge_tui.memory.keyterms import stem, weights, words
from ragforge_tui.memory.language import language_of
from ragforge_tui.memory.summaries.actions import actions, calls_of, narrative
from ragforge_tui.memory.summaries.draft import (
    FINDING_CHARS,
    MAX_FILES,
    MAX_FINDINGS,
    MAX_TOPICS,
    PART_CHARS,
    Draft,
    limited,
)
from ragforge_tui.memory.summaries.phrases import Phrases, phrases
from ragforge_tui.memory.summaries.sentences import cut, plain, sentences
from ragforge_tui.memory.topics import EXTRACTED_CONFIDENCE, topics_of
from ragforge_tui.models import Finding, Summary, Turn

EXTRACTIVE = "extractive"

_QUESTION_CHARS = (60, 160)
_ANSWER_CHARS = (70, 220)
_MOST_SHOWN = 4
_FEWEST_WORDS = 3
_ALIKE = 0.6

_ASKS = re.compile(
    r"\?\s*[\"'”’»)]*$|^(?:please |can you|could you|show|find|list|run|read|open|explain|what|where|when|who|which|"
    r"why|how|write|create|add|fix|change|replace|make|remove|rename|update|tell me|give me|help|search|look|check|use|"
    r"montre|trouve|liste|lance|lis|ouvre|explique|écris|crée|ajoute|corrige|change|remplace|fais|supprime|renomme|"
    r"dis|donne|aide|cherche|regarde|vérifie|utilise|que |qu['’]|quoi|où|quand|qui|quel|pourquoi|comment|peux-tu|"
    r"pouvez)",
    re.I,
)
_SPECIFIC = re.compile(r"\d|`|\w/\w|\w_\w|[a-z][A-Z]|\w\(\)|\.\w{2,4}\b")
_NAME = re.compile(r"(?<=[\w,;:]\s)[^\W\d_a-zà-ÿ][\w'’-]+")
_FILLER = re.compile(
    r"^(?:sure|of course|certainly|great|okay|ok|yes|no|thanks|thank you|you['’]re welcome|hi|hello|hey|wow|awesome|"
    r"glad|sorry|let me|i['’]ll|here (?:is|are)|i am the offline assistant|i['’]m the offline|"
    r"bien sûr|d'accord|merci|bonjour|salut|voici|je vais|je suis l['’]assistant)\b",
    re.I,
)
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


def extract(turns: Sequence[Turn], *, language: str = "") -> Draft:
    """The summary of a run of turns."""
    texts = [text for turn in turns for _, text in _spoken(turn)]
    language = language or language_of("\n".join(texts))
    said = phrases(language)
    weigh = weights([plain(text) for text in texts], language)
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
        topics=topics_of([plain(text) for text in texts], language),
        made_by=EXTRACTIVE,
    )
    return limited(draft)


def files_of(turns: Sequence[Turn]) -> list[str]:
    """Files the turns touched, those changed first, then those only spoken of."""
    accessed = [access for _, call in calls_of(turns) for access in call.files]
    paths = [access.path for kind in ("write", "read") for access in accessed if access.access == kind]
    for turn in turns:
        for _, text in _spoken(turn):
            paths += [match for match in _PATH.findall(text) if _is_file(match)]
    return list(dict.fromkeys(paths))[:MAX_FILES]


def _is_file(path: str) -> bool:
    return path.rpartition(".")[2].lower() in _EXTENSIONS and not path.startswith("www.")


def _spoken(turn: Turn) -> list[tuple[bool, str]]:
    """What was said in a turn: (by the person, text)."""
    return [
        (message.role == "user", message.content)
        for message in turn.messages
        if message.role in ("user", "assistant") and message.content and message.state != "superseded"
    ]


def _sentences(turn: Turn, weigh: dict[str, float], language: str) -> list[_Said]:
    found = []
    for person, text in _spoken(turn):
        for place, sentence in enumerate(sentences(plain(text))):
            found.append(_Said(turn.turn_index, person, sentence, _score(sentence, place, weigh, language)))
    return found


def _score(sentence: str, place: int, weigh: dict[str, float], language: str) -> float:
    """How much a sentence tells: the weight of its words, more for names and numbers, little for filler."""
    stems = {stem(word) for word in words(sentence, language)}
    if len(sentence.split()) < _FEWEST_WORDS or not stems:
        return 0.0
    value: float = sum(weigh.get(one, 0.0) for one in stems) / (len(stems) + 4) ** 0.5
    value *= 1.0 + 0.15 * min(3, len(_SPECIFIC.findall(sentence))) + 0.1 * min(3, len(_NAME.findall(sentence)))
    if place == 0:
        value *= 1.15
    if _FILLER.match(sentence):
        value *= 0.4
    if sentence.endswith("?"):
        value *= 0.5
    if len(sentence) > FINDING_CHARS:
        value *= 0.6
    return value


def _conversation(turns: Sequence[Turn], spoken: Sequence[list[_Said]], said: Phrases) -> str:
    """The exchanges that tell most, in order: what was asked or said, and the answer's best sentence."""
    told = {i: max((one.score for one in spoken[i]), default=0.0) for i in range(len(turns)) if spoken[i]}
    if not told:
        return ""
    shown = sorted(sorted(told, key=lambda i: (-told[i], i))[:_MOST_SHOWN])
    for count in range(len(shown), 0, -1):
        kept = sorted(sorted(shown, key=lambda i: (-told[i], i))[:count])
        room = PART_CHARS // count
        text = " ".join(_exchange(spoken[i], said, first=i == kept[0], room=room) for i in kept)
        if len(text) <= PART_CHARS:
            return text
    return cut(text, PART_CHARS)


def _exchange(spoken: list[_Said], said: Phrases, *, first: bool, room: int) -> str:
    room -= 45
    question = _question([one for one in spoken if one.person])
    replies = [one for one in spoken if not one.person]
    asked = bool(_ASKS.search(question))
    answer = _answer(replies, min(max(room * 3 // 5, _ANSWER_CHARS[0]), _ANSWER_CHARS[1]))
    question = cut(question, min(max(room - len(answer), _QUESTION_CHARS[0]), _QUESTION_CHARS[1]))
    if not question:
        return _ended(answer)
    opening = (said.asked if asked else said.said) if first else said.then_asked if asked else said.then_said
    text = opening.format(said.quote.format(question))
    return _ended(text + (said.answer.format(answer) if answer else said.no_answer))


def _ended(text: str) -> str:
    return text if text.endswith((".", "!", "?", "…", "”", "»")) else f"{text}."


def _question(own: list[_Said]) -> str:
    """What the person wanted: the question or wish, else what they said that tells most."""
    wishes = [one for one in own if _ASKS.search(one.text) and len(one.text.split()) > 1]
    best = max(wishes or own, key=lambda one: one.score, default=None)
    return best.text if best else ""


def _answer(replies: list[_Said], limit: int) -> str:
    best = max(replies, key=lambda one: one.score, default=None)
    return cut(best.text, limit) if best else ""


def _findings(spoken: list[_Said], said: Phrases) -> list[Finding]:
    """The sentences that tell most, none like another, in the order they were said."""
    chosen: list[_Said] = []
    for one in sorted(spoken, key=lambda s: (-s.score, s.turn, s.text)):
        if one.score <= 0 or one.text.endswith("?") or any(_alike(one.text, other.text) for other in chosen):
            continue
        chosen.append(one)
        if len(chosen) == MAX_FINDINGS:
            break
    chosen.sort(key=lambda s: spoken.index(s))
    return [
        Finding(text=said.person.format(said.quote.format(one.text)) if one.person else one.text, turns=[one.turn])
        for one in chosen
    ]


def _alike(a: str, b: str) -> bool:
    first, second = ({stem(word) for word in words(text)} for text in (a, b))
    return bool(first and second) and len(first & second) / min(len(first), len(second)) >= _ALIKE


def extract_over(children: Sequence[Summary], *, language: str = "") -> Draft:
    """The summary of consecutive summaries."""
    texts = [f"{child.conversation_summary} {' '.join(f.text for f in child.key_findings)}" for child in children]
    language = language or language_of("\n".join(texts))
    said = phrases(language)
    findings = [finding for child in children for finding in child.key_findings]
    weigh = weights([finding.text for finding in findings] or texts, language)
    ranked = sorted(findings, key=lambda f: (-_score(f.text, 1, weigh, language), f.turns))
    chosen: list[Finding] = []
    for finding in ranked:
        if not any(_alike(finding.text, other.text) for other in chosen):
            chosen.append(finding)
        if len(chosen) == MAX_FINDINGS:
            break
    draft = Draft(
        conversation_summary=_course([child.conversation_summary for child in children], said),
        actions_summary=_course([child.actions_summary for child in children if child.actions_summary], said),
        key_findings=sorted(chosen, key=lambda f: f.turns),
        files_mentioned=joined_files(children),
        topics=_joined_topics(children) or topics_of(texts, language),
        made_by=EXTRACTIVE,
    )
    return limited(draft)


def _joined_topics(children: Sequence[Summary]) -> list[ProposedTopic]:
    """The topics most of several summaries share, the later ones first among equals."""
    counted: dict[str, tuple[int, int, str]] = {}
    for place, child in enumerate(children):
        for name in child.topics:
            count = counted.get(topic_key(name), (0, 0, ""))[0]
            counted[topic_key(name)] = (count + 1, place, name)
    ranked = sorted(counted.values(), key=lambda item: (-item[0], -item[1], item[2]))
    return [ProposedTopic(name=name, confidence=EXTRACTED_CONFIDENCE) for _, _, name in ranked[:MAX_TOPICS]]


def joined_files(children: Sequence[Summary]) -> list[str]:
    """The files of several summaries, those of most of them first."""
    counted: dict[str, int] = {}
    for child in children:
        for path in child.files_mentioned:
            counted[path] = counted.get(path, 0) + 1
    return sorted(counted, key=lambda path: -counted[path])[:MAX_FILES]


def _course(texts: Sequence[str], said: Phrases) -> str:
    """Beginning, middle and end of a course of things."""
    if len(texts) < 2:
        return texts[0] if texts else ""
    picked = [(said.first, texts[0]), (said.last, texts[-1])]
    if len(texts) > 2:
        picked.insert(1, (said.later, texts[len(texts) // 2]))
    room = PART_CHARS // len(picked) - 14
    return " ".join(_ended(opening.format(cut(text, room))) for opening, text in picked)


def extract_conversation(frontier: Sequence[Summary], recent: Sequence[Turn], *, language: str = "") -> str:
    """Two or three sentences on a whole conversation: what it is about, what was done, what was found."""
    drafts = [extract_over(frontier, language=language)] if frontier else []
    if recent:
        drafts.append(extract(recent, language=language))
    if not drafts:
        return ""
    language = language or language_of(" ".join(draft.conversation_summary for draft in drafts))
    said = phrases(language)
    names = list(dict.fromkeys(topic.name for draft in drafts for topic in draft.topics))[:4]
    room = PART_CHARS // 3
    parts = []
    if names:
        listed = ", ".join(names[:-1]) + f" {said.conjunction} {names[-1]}" if len(names) > 1 else names[0]
        parts.append(cut(said.about.format(listed), room))
    else:
        parts.append(cut(drafts[0].conversation_summary, room))
    if done := next((draft.actions_summary for draft in reversed(drafts) if draft.actions_summary), ""):
        parts.append(_ended(said.done.format(cut(done, room))))
    if found := next((draft.key_findings for draft in drafts if draft.key_findings), []):
        parts.append(_ended(said.found.format(cut(found[0].text, room))))
    return cut(" ".join(parts), PART_CHARS)
