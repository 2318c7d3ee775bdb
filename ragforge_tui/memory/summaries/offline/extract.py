"""Summaries of turns without a model: selected and compressed sentences, tool calls in words, facts with their turns.

Deterministic: the same turns give the same summary. Nothing is invented: every statement is quoted from the turns or
derived from the stored tool calls.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

import msgspec

from ragforge_tui.graph.store.topic_names import ProposedTopic
from ragforge_tui.memory.findings.marked import marked_findings
from ragforge_tui.memory.keyterms import stem, topics_of, weights, words
from ragforge_tui.memory.language import language_of
from ragforge_tui.memory.prose import PASTED, answer_prose, compress, cut, sentences, user_prose
from ragforge_tui.memory.summaries.draft import (
    FINDING_CHARS,
    MAX_FILES,
    MAX_FINDINGS,
    PART_CHARS,
    Draft,
    limited,
)
from ragforge_tui.memory.summaries.offline.actions import actions, calls_of, narrative
from ragforge_tui.memory.summaries.offline.informativeness import (
    QUESTION_MARKS,
    Statement,
    announces,
    decides,
    distinct,
    score,
)
from ragforge_tui.memory.summaries.offline.phrases import Phrases, phrases
from ragforge_tui.memory.summaries.topics import DESCRIPTION_CHARS
from ragforge_tui.shared.finding_records import said_kind
from ragforge_tui.shared.formulas import is_mostly_formula
from ragforge_tui.shared.records import EXTRACTIVE, Finding, FindingKind, Turn

_MOST_SHOWN = 4
_EXCHANGE_CHARS = 150
"""An exchange of fewer characters would be cut to pieces."""
_MIN_FINDINGS = 3
_MOST_TOLD = 2
_UNREQUESTED = 0.4
"""Factor for a reply that quotes files although no one asked for it, relative to an answer."""
_ANNOUNCED = 0.4
"""Factor for a reply's sentence that only announces the next one."""
_RELATIVE_SCORE = 0.45
"""Least score of further findings, as a share of the best one's."""

ASKS = re.compile(
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
    r"(?<![\w/.:-])(?:[\w.-]+/)*[\w-]+(?:\.[A-Za-z][A-Za-z0-9]{0,7})+(?![\w/])|(?<![\w/.:-])(?:[\w.-]+/)+[\w.-]*\w"
)
_EXTENSIONS_TEXT = (
    "py pyi js ts tsx jsx mjs go rs java kt c h cc cpp hpp cs rb php sh bash zsh toml yaml yml json jsonl md rst "
    "txt cfg ini env lock html css scss sql xml csv tsv ipynb cypher luciform svg png "
)
_EXTENSIONS = frozenset(_EXTENSIONS_TEXT.split())


def extract(turns: Sequence[Turn], *, language: str = "", known_topics: Collection[str] = ()) -> Draft:
    """Return the summary of consecutive turns; a known topic is preferred to a new one."""
    messages = [message for turn in turns for message in _messages(turn)]
    texts = [text for _, text in messages]
    language = language or language_of_turns(turns)
    wording = phrases(language)
    weigh = weights(texts, language)
    statements = [_statements(turn, weigh, language) for turn in turns]
    done = actions(turns, wording)
    acted = narrative(done, wording, PART_CHARS)
    findings = _findings([statement for of_turn in statements for statement in of_turn], wording)
    # The user's texts count twice: a reply that quotes a file is full of other names.
    counted = [*texts, *(text for by_user, text in messages if by_user)]
    topics = topics_of(counted, language, known=known_topics)
    draft = Draft(
        conversation_summary=_conversation(statements, wording) or acted or wording.nothing,
        actions_summary=acted,
        key_findings=findings or [Finding(text=action.text, turns=[action.turn]) for action in done[:MAX_FINDINGS]],
        files_mentioned=files_of(turns),
        topics=_described(topics, [statement for of_turn in statements for statement in of_turn]),
        made_by=EXTRACTIVE,
    )
    return limited(draft)


def _described(topics: Sequence[ProposedTopic], statements: Sequence[Statement]) -> list[ProposedTopic]:
    """Return the topics, each with the most informative statement that names it, a question only if no other does."""
    described = []
    for topic in topics:
        stems = {stem(word) for word in words(topic.name)}
        naming = [s for s in statements if stems and stems <= {stem(word) for word in words(s.text)}]
        best = max(naming, key=lambda s: (not s.text.endswith(QUESTION_MARKS), s.score), default=None)
        text = compress(best.text, DESCRIPTION_CHARS) if best is not None else ""
        described.append(msgspec.structs.replace(topic, description=text))
    return described


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
    """Return the messages of a turn as prose: (whether by the user, text); not the commands of the user."""
    return [
        (True, user_prose(PASTED.sub("\n", message.content)))
        if message.role == "user"
        else (False, answer_prose(message.content))
        for message in turn.messages
        if message.role in ("user", "assistant") and message.content and not message.doing
        if message.state != "superseded"
    ]


def _statements(turn: Turn, weigh: Mapping[str, float], language: str) -> list[Statement]:
    marked = marked_findings(turn)
    split = [(by_user, _worded(sentences(text))) for by_user, text in _messages(turn)]
    asked = any(by_user and ASKS.search(sentence) for by_user, texts in split for sentence in texts)
    statements = []
    for by_user, texts in split:
        for place, sentence in enumerate(texts):
            value = score(sentence, place, weigh, language)
            if not by_user and not asked and _QUOTED.match(sentence):
                value *= _UNREQUESTED
            if not by_user and announces(sentence):
                value *= _ANNOUNCED
            known = (one for one in marked if one.by_user == by_user and one.sentence in sentence)
            kind: FindingKind = next((said_kind(one.kind) for one in known), "")
            statements.append(Statement(sentence, by_user, (turn.turn_index,), value, kind))
    return statements


def _worded(texts: list[str]) -> list[str]:
    """Return the sentences that are not mostly a formula, or all if there are no others."""
    return [text for text in texts if not is_mostly_formula(text)] or texts


def _conversation(statements: Sequence[list[Statement]], wording: Phrases) -> str:
    """Return the exchanges with the highest scores, in order: each a message of the user and the answer to it.

    Args:
        statements: Those of each turn.
    """
    scores = {i: max(statement.score for statement in of_turn) for i, of_turn in enumerate(statements) if of_turn}
    ranked = sorted(scores, key=lambda i: (-scores[i], i))
    newest = max(scores, default=0)
    if newest in ranked[1:] and scores[newest] > 0:
        # How it ended counts most for whoever goes on: only the best exchange comes before it.
        ranked.remove(newest)
        ranked.insert(1, newest)
    ranked = ranked[:_MOST_SHOWN]
    for count in range(len(ranked), 0, -1):
        chosen = sorted(ranked[:count])
        limit = PART_CHARS // count - 1
        text = " ".join(_exchange(statements[i], wording, first=i == chosen[0], limit=limit) for i in chosen)
        if len(text) <= PART_CHARS and PART_CHARS // count >= _EXCHANGE_CHARS:
            return text
    return cut(_exchange(statements[ranked[0]], wording, first=True, limit=PART_CHARS), PART_CHARS) if ranked else ""


def _exchange(statements: list[Statement], wording: Phrases, *, first: bool, limit: int) -> str:
    request = _request([statement for statement in statements if statement.by_user])
    if request is None:
        return with_full_stop(compress(max(statements, key=_score).text, limit))
    replies = [statement for statement in statements[statements.index(request) :] if not statement.by_user]
    asked = bool(ASKS.search(request.text))
    if first:
        opening = wording.asked if asked else wording.said
    else:
        opening = wording.then_asked if asked else wording.then_said
    limit -= len(opening) + len(wording.quote) + len(wording.answer) - 6
    start = _reply(replies, request, asked=asked)
    if start is None:
        text = opening.format(wording.quote.format(compress(request.text, limit)))
        return with_full_stop(text if replies else text + wording.no_answer)
    question = compress(request.text, max(limit * 2 // 5, limit - len(start.text)))
    limit -= len(question)
    answer = compress(start.text, limit)
    for reply in replies[replies.index(start) + 1 :]:
        if len(answer) + len(reply.text) + 1 > limit or reply.text.endswith(QUESTION_MARKS):
            break
        answer = f"{answer} {reply.text}"
    return with_full_stop(opening.format(wording.quote.format(question)) + wording.answer.format(answer))


def _request(own: list[Statement]) -> Statement | None:
    """Return the user's question or request with the highest score, else their sentence with the highest score."""
    best = max(own, key=_score, default=None)
    request = max((statement for statement in own if ASKS.search(statement.text)), key=_score, default=None)
    return request if request is not None and (best is None or request.score > 0 or best.score == 0) else best


def _reply(replies: list[Statement], request: Statement, *, asked: bool) -> Statement | None:
    """Return the first sentence of the answer: to a question the first real one, to a statement only a better one."""
    if asked:
        real = [reply for reply in replies if not reply.text.endswith(QUESTION_MARKS) and not _EMPTY.match(reply.text)]
        told = (reply for reply in real if reply.score > 0 and not announces(reply.text))
        return next(told, next(iter(real or replies), None))
    best = max(replies, key=_score, default=None)
    if best is None or best.score < request.score or best.text.endswith(QUESTION_MARKS) or _QUOTED.match(best.text):
        return None
    return best


def _score(statement: Statement) -> float:
    return statement.score


def _findings(statements: list[Statement], wording: Phrases) -> list[Finding]:
    """Return decisions, an open point and the statements with the highest scores, without duplicates, in text order."""
    ranked = sorted(statements, key=lambda s: (-s.score, s.turns, s.text))
    decisions = [statement for statement in ranked if statement.kind == "decision"]
    told = [statement for statement in ranked if statement.by_user and decides(statement.text)][:_MOST_TOLD]
    still_open = [statement for statement in ranked if statement.kind == "open"][:1]
    wanted = dict.fromkeys([*decisions, *told, *still_open, *ranked])
    chosen = distinct(statement for statement in wanted if _may_be_found(statement))
    least = max(map(_score, statements), default=0.0) * _RELATIVE_SCORE
    chosen = [s for place, s in enumerate(chosen) if place < _MIN_FINDINGS or s.score > least or s.kind == "decision"]
    findings = []
    for statement in sorted(chosen, key=statements.index):
        text = compress(statement.text, FINDING_CHARS - 30)
        if statement.by_user:
            text = wording.user.format(wording.quote.format(text))
        findings.append(Finding(text=text, turns=list(statement.turns), kind=statement.kind))
    return findings


def _may_be_found(statement: Statement) -> bool:
    """Return whether a statement has content: questions, requests and the mere start of a list do not."""
    text = statement.text
    return (
        statement.score > 0
        and not (text.endswith(", …") and not text.startswith("`"))
        and not text.endswith((*QUESTION_MARKS, ":"))
        and not (statement.by_user and ASKS.search(text))
    )


def with_full_stop(text: str) -> str:
    text = text.rstrip(" :")
    return text if not text or text.endswith((".", "!", "?", "…", "”", "»", "。", "！", "？")) else f"{text}."
