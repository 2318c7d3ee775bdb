"""Search for scopes by name, by words and by meaning.

The graph supplies candidates from its full-text and vector indexes and by exact name; `rank` orders them by features of
each scope alone, so that it can be tested and tuned without a graph. Measurements: benchmarks/CODE_SEARCH.md.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from ragforge_tui.code.query_words import is_plain, query_words, stem_set, word_stems
from ragforge_tui.graph import Store
from ragforge_tui.memory.retrieval.ranking import fused_rankings, scores, wordings
from ragforge_tui.memory.retrieval.recipes import CODE
from ragforge_tui.shared.code_records import Scope, ScopeHit, ScopeKind
from ragforge_tui.shared.code_words import identifier_words, is_test_file

Vectors = npt.NDArray[np.float32]
Embed = Callable[[Sequence[str]], Awaitable[Vectors | None]]
"""Returns the vectors of texts, None if there is no embedding model."""

SIMILAR_WORDS = 10
"""Most words of the code that a word of a question is taken for."""
UNLIKE = 0.5
"""Cosine up to which two words have nothing in common; a similar one counts as much as its cosine is above."""
LONGEST_RUN = 16
"""Words of a question that are compared as a phrase."""
SHORTEST_PHRASE = 3
"""Words in a row from which they count as a phrase: an error message, a line of code."""
MOST_NAMES = 4
"""Names in a query that are looked up by themselves."""

_NAME = re.compile(r"[^\W\d]\w*(?:(?:\.|::|#)[^\W\d]\w*)*")
_WORD = re.compile(r"[^\W_]+")
_SEPARATORS = re.compile(r"\.|::|#")
_TEST_STEMS = frozenset(["test", "spec", "fixtur"])


class Query(msgspec.Struct, frozen=True):
    """Question in the forms that candidates are compared with.

    Attributes:
        words: Words that count, as the full-text index is asked for them.
        stems: Stems of the words that count, without identifiers as a whole.
        run: All words in their order.
        names: Words that are spelled like identifiers, or the whole question if it is a single word.
        tests: The question asks for tests.
    """

    words: list[str]
    stems: list[str]
    run: list[str]
    names: list[str]
    tests: bool


def parse(text: str) -> Query:
    """Return a question's words and names."""
    found = list(dict.fromkeys(_NAME.findall(text)))
    names = [name for name in found if _is_identifier(name)] if len(text.split()) > 1 else found
    words = query_words(text)
    stems = list(dict.fromkeys(stem for word in words if len(identifier_words(word)) == 1 for stem in word_stems(word)))
    tests = not _TEST_STEMS.isdisjoint(stems)
    kept = [stem for stem in stems if stem not in _TEST_STEMS] if tests else stems
    return Query(words, kept or stems, _WORD.findall(text.casefold())[:LONGEST_RUN], names[:MOST_NAMES], tests)


async def search(
    store: Store,
    workspace: str,
    query: str,
    embed: Embed,
    *,
    also: Sequence[str] = (),
    kinds: Collection[ScopeKind] = (),
    limit: int = 10,
) -> list[ScopeHit]:
    """Return the scopes that match a question best, best first.

    Args:
        also: Other wordings of the question.
        kinds: Only these; empty for all.
    """
    asked = wordings(query, also)
    rankings = await asyncio.gather(*(_search(store, workspace, one, embed, kinds) for one in asked))
    return fused_rankings(rankings, lambda hit: hit.scope.uuid)[:limit]


async def _search(
    store: Store, workspace: str, query: str, embed: Embed, kinds: Collection[ScopeKind]
) -> list[ScopeHit]:
    """Return the scopes that match one wording, best first."""
    asked = parse(query)
    plain = [word for word in asked.words if is_plain(word) and len(identifier_words(word)) == 1]
    vectors = await embed([query, *plain])
    near: list[list[tuple[str, float]]] = []
    if vectors is not None and plain:
        near = await store.code.search.vectors.similar_words(workspace, vectors[1:], limit=4 * SIMILAR_WORDS)
    hits, named = await asyncio.gather(
        store.code.candidates(
            workspace,
            asked.words,
            None if vectors is None else vectors[0].tolist(),
            similar=similar_words(asked.words, near),
            kinds=tuple(kinds),
            limit=CODE.scopes.asked,
        ),
        asyncio.gather(*(store.code.by_name(workspace, _SEPARATORS.split(name)[-1]) for name in asked.names)),
    )
    known = {hit.scope.uuid for hit in hits}
    for scopes in named:
        for scope in scopes:
            if scope.uuid not in known and (not kinds or scope.kind in kinds):
                known.add(scope.uuid)
                hits.append(ScopeHit(scope=scope))
    return await asyncio.to_thread(rank, asked, hits)


def similar_words(words: Sequence[str], near: Sequence[Sequence[tuple[str, float]]]) -> dict[str, float]:
    """Return words of the code that mean about the same as some of a question, with the weight of each.

    Args:
        near: For each word of the question words with their cosines, nearest first.
    """
    asked = {stem for word in words for stem in word_stems(word)}
    weights: defaultdict[str, float] = defaultdict(float)
    for found in near:
        kept: dict[str, tuple[str, float]] = {}
        for word, cosine in found:
            if cosine > UNLIKE and len(kept) < SIMILAR_WORDS and asked.isdisjoint(stems := word_stems(word)):
                kept.setdefault(stems[0], (word, cosine))
        for word, cosine in kept.values():
            weights[word] += cosine - UNLIKE
    return dict(weights)


def rank(query: Query, hits: Sequence[ScopeHit]) -> list[ScopeHit]:
    """Return candidates with their scores, best first."""
    found = scores(features(query, hits), CODE.scopes.weights)
    scored = [msgspec.structs.replace(hit, score=score) for hit, score in zip(hits, found, strict=True)]
    return sorted(scored, key=lambda hit: (-hit.score, hit.scope.file, hit.scope.start_line))


def features(query: Query, hits: Sequence[ScopeHit]) -> list[dict[str, float | None]]:
    """Return the features of each candidate by name."""
    views = [_View(hit.scope) for hit in hits]
    rarities = rarities_among(query.stems, [view.everything for view in views])
    covered = [_share(view.everything, rarities) for view in views]
    return [
        {
            "words": words,
            "meaning": meaning,
            "name": _name_match(view.name, rarities),
            "named": max((_spelled(name, view.scope) for name in query.names), default=0.0),
            "everything": share,
            "phrase": _phrase(query.run, view.text),
            "path": _share(view.path, rarities),
            "test": float(query.tests != is_test(view.scope)),
            "module": float(view.scope.kind == "module"),
        }
        for view, share, (words, meaning) in zip(views, covered, _relative(hits), strict=True)
    ]


class _View:
    """Words and stems of a candidate."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.name = list(dict.fromkeys(word_stems(scope.name)))
        self.path = stem_set(f"{scope.qualified_name} {scope.file}").difference(self.name)
        self.text = f" {' '.join(_WORD.findall(scope.text.casefold()))} "
        self.everything = {*self.name, *self.path, *stem_set(f"{scope.signature} {scope.doc} {scope.text}")}


def _relative(hits: Sequence[ScopeHit]) -> list[tuple[float, float]]:
    """Return each candidate's score of words as a share of the best, and its cosine; 0 if the index did not find it."""
    most = max((hit.words or 0.0 for hit in hits), default=0.0) or 1.0
    return [((hit.words or 0.0) / most, max(hit.meaning or 0.0, 0.0)) for hit in hits]


def rarities_among(words: Sequence[str], texts: Sequence[set[str]]) -> dict[str, float]:
    """Return each word's share of the question's weight: a word that fewer candidates have weighs more."""
    having = Counter(word for stems in texts for word in stems.intersection(words))
    weights = {word: math.log(1 + (len(texts) + 1) / (having[word] + 1)) for word in words}
    total = sum(weights.values()) or 1.0
    return {word: weight / total for word, weight in weights.items()}


def _share(stems: Collection[str], rarities: Mapping[str, float]) -> float:
    return sum(rarity for word, rarity in rarities.items() if word in stems)


def _phrase(run: Sequence[str], text: str) -> float:
    """Return the longest part of the question that the text has word by word, as a share of the question."""
    found = 0
    for start in range(len(run) - SHORTEST_PHRASE + 1):
        length = max(found + 1, SHORTEST_PHRASE)
        while start + length <= len(run) and f" {' '.join(run[start : start + length])} " in text:
            found, length = length, length + 1
    return found / len(run) if found else 0.0


def _name_match(name: Sequence[str], rarities: Mapping[str, float]) -> float:
    """Return how well a name fits: the words of the question it has, and how many of its own the question has."""
    if not name:
        return 0.0
    asked = _share(name, rarities)
    own = sum(word in rarities for word in name) / len(name)
    return math.sqrt(asked * own)


def _spelled(name: str, scope: Scope) -> float:
    """Return 1 if the scope has exactly this name, less for a different case, a prefix, or a typing error."""
    parts = _SEPARATORS.split(name)
    own = _SEPARATORS.split(scope.qualified_name or scope.name)
    if len(parts) > 1 and own[-len(parts) :] == parts:
        return 1.0
    last = parts[-1]
    if len(parts) == 1 and last == scope.name:
        return 1.0
    if identifier_words(last) == identifier_words(scope.name):
        return 0.9 if len(parts) == 1 else 0.4
    if len(last) > 3 and scope.name.casefold().startswith(last.casefold()):
        return 0.5
    return 0.6 if len(last) > 4 and one_typo(last.casefold(), scope.name.casefold()) else 0.0


def one_typo(first: str, second: str) -> bool:
    """Return whether one letter added, removed, replaced or swapped with the next turns one text into the other."""
    if abs(len(first) - len(second)) > 1:
        return False
    short, long = sorted((first, second), key=len)
    start = next((n for n, letter in enumerate(short) if letter != long[n]), len(short))
    if len(short) < len(long):
        return short[start:] == long[start + 1 :]
    swapped = short[:start] + short[start : start + 2][::-1] + short[start + 2 :]
    return short[start + 1 :] == long[start + 1 :] or swapped == long


def is_test(scope: Scope) -> bool:
    """Return whether a scope belongs to tests, by its file or its name."""
    return is_test_file(scope.file) or scope.name.startswith(("test_", "Test"))


def _is_identifier(word: str) -> bool:
    """Return whether a word is spelled like an identifier rather than like a word of prose."""
    return bool(_SEPARATORS.search(word)) or "_" in word or any(letter.isupper() for letter in word[1:])
