"""Questions prepared for search: their words, which of these are rare in the graph, and their vector.

Every search prepares its question here, once.

A full-text index reads every occurrence of a word, however little the word means: the common words of
a question take nearly all of its time and hardly change which turns rank first. So other conversations are searched for
the rarer words, by frequencies estimated from a sample of the graph's turns.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from ragforge_tui.graph import Store
from ragforge_tui.llm.embeddings import Embedder
from ragforge_tui.memory.language import STOP_WORDS, language_of
from ragforge_tui.memory.retrieval.index_sync import VectorModel
from ragforge_tui.memory.retrieval.scoring import rarity
from ragforge_tui.memory.retrieval.terms import FALLBACK, asked_words, content_words, terms, variants
from ragforge_tui.memory.retrieval.terms import words as words_of
from ragforge_tui.settings.schema import RecallSettings
from ragforge_tui.shared.limits import LIMITS

log = logging.getLogger(__name__)

FEWEST_WORDS = 2
"""Content words below which a message cannot be understood without the one before it."""
PREVIOUS_CHARS = 500

Vector = npt.NDArray[np.float32]
Vectors = npt.NDArray[np.float32]

_REFERRING = re.compile(
    r"^\W*(?:(?:and|but|so|then|et|mais|alors|und|y|e)\b\W*)?"
    r"(?:it|its|he|she|they|them|that|this|these|those|his|her|their|"
    r"il|elle|ils|elles|ça|cela|ce|celui|celle|ceux|son|sa|ses|leur|"
    r"er|sie|es|das|dies|diese|dieser|ello|eso|esto|ese|esa)\b",
    re.IGNORECASE,
)
_PAST_PHRASES = re.compile(
    r"\b(?:did|have|had|were) (?:we|i|you)\b|\bwe (?:said|agreed|had|did|talked|decided|discussed)\b"
    r"|\b(?:which|what|in a|our) (?:conversation|discussion|session|chat)s?\b|\blast (?:week|time|month|year)\b"
    r"|\b(?:avons|avions|ai|as|avez)-(?:nous|je|tu|vous)\b|\bnous (?:avons|avions)\b|\bon a (?:dit|parlé|décidé)\b"
    r"|\b(?:haben|hatten) wir\b|\bwir (?:haben|hatten)\b|\bhabe ich\b|\bhast du\b"
    r"|\b(?:abbiamo|hemos|hebben we|hadden we|temos)\b",
    re.IGNORECASE,
)
PAST_WORDS = frozenset(
    word
    for words in (
        "discuss discussed discussion decide decided decision agree agreed agreement talk talked mentioned said "
        "earlier yesterday previously remember concluded conclusion",
        "discuté décidé décision convenu parlé mentionné hier rappelle",
        "besprochen diskutiert entschieden entscheidung beschlossen vereinbart gesprochen erwähnt gesagt gestern",
        "hablamos discutimos decidimos dijimos ayer discusso deciso detto ieri parlato",
        "besproken besloten gezegd gisteren falamos ontem обсуждали решили говорили вчера",
    )
    for word in words.split()
)
_LEFT_OPEN = re.compile(
    r"\b(?:left|still|remains?|what(?: i|')s) (?:open|undone|to do)\b|\blast time\b"
    r"|\bopen (?:points?|questions?|ends?)\b"
    r"|\b(?:told|gave|asked) you\b|\bon (?:mon|tues|wednes|thurs|fri|satur|sun)day\b"
    r"|\b(?:noch|blieb|ist) offen\b|\boffene[nr]? punkte?\b|\bletztes mal\b|\bà faire\b"
    r"|\ben suspens\b|\bla dernière fois\b",
    re.IGNORECASE,
)
_STOP_WORDS = frozenset().union(*STOP_WORDS.values())
"""For a question whose language does not show."""
_WORD = re.compile(r"[^\W_]+")
SAMPLE = 400
"""Turns in the sample: enough to distinguish a word in a tenth of all turns from one in a twentieth."""
FEWEST_TURNS = 20
"""In smaller graphs every word counts as rare."""
WINDOW = 3
"""Turns in a window key, of which the sample consists: a word of one turn is in three of them."""
GROWTH = 1.5
"""Growth since the last sample, as a factor, after which a new one is taken."""
PLACES = 10_000
"""Most occurrences of one question's words together: an index reads them in some ten milliseconds."""
FEWEST_SEARCHED = 2
"""Words that are searched for however common they are."""


class Question(msgspec.Struct, frozen=True):
    """Question, prepared for search.

    Attributes:
        context: Text the question refers to.
        rarities: Words of the question alone that name its subject, with their rarity in the graph; without any,
            nothing is recalled.
        words: Content words of question and context.
        vector: Vector of question and context.
        model: Model that made the vector.
        turns: Turns of the graph when its words were last counted.
        rarest: The words for which the whole graph can be searched in little time.
        parts: What it asks, each as a question of its own, if it asks several things.
    """

    text: str
    context: str
    rarities: dict[str, float]
    words: tuple[str, ...]
    vector: Vector | None = None
    model: str = ""
    rarest: tuple[str, ...] = ()
    turns: int = 0
    parts: tuple[Question, ...] = ()


def asks_for_past(query: str) -> bool:
    """Return whether a question is about past conversations rather than about code."""
    spoken = {word.casefold() for word in _WORD.findall(query)}
    return bool(_PAST_PHRASES.search(query)) or len(spoken & PAST_WORDS) > 0


def asks_for_history(message: str) -> bool:
    """Return whether a message asks for what was said, decided or left open before."""
    return asks_for_past(message) or bool(_LEFT_OPEN.search(message))


def patience(message: str, *, first: bool = False, names_code: bool = False) -> float:
    """Return the seconds a request waits for a search; longer if only that can answer its message."""
    least = LIMITS.first_recall if first else LIMITS.recall
    return max(least, LIMITS.asked) if names_code or asks_for_history(message) else least


def context_of(question: str, previous_turn: str) -> str:
    """Return the user's previous message if the question is too short or refers back, else an empty string."""
    return user_message_in(previous_turn)[:PREVIOUS_CHARS] if _is_incomplete(question) else ""


def _is_incomplete(question: str) -> bool:
    """Return whether a question is too short to be understood alone, or refers back."""
    language = language_of(question)
    words = content_words(question, language)
    if not language:
        words = [word for word in words if word.casefold() not in _STOP_WORDS]
    return len(words) < FEWEST_WORDS or bool(_REFERRING.match(question))


def user_message_in(turn_text: str) -> str:
    """Return the user's message from a turn's text, where it is quoted with ``>``."""
    lines: list[str] = []
    for line in turn_text.splitlines():
        if not line.startswith(">"):
            break
        lines.append(line[1:].strip())
    return "\n".join(lines)


class Questions:
    """Preparation of the questions to one graph, the same for all searches of an agent.

    Args:
        store: Returns the store, waiting while the graph starts.
        embedder: None to search by words only.
        workspace: Folder of the conversations in the scope ``workspace``.
    """

    def __init__(
        self,
        store: Callable[[], Awaitable[Store]],
        embedder: Embedder | None,
        settings: RecallSettings,
        workspace: str,
    ) -> None:
        self.store = store
        self.settings = settings
        self.workspace = workspace
        self.model = VectorModel(embedder)
        self.frequencies = WordFrequencies()

    @property
    def scope(self) -> str | None:
        """Workspace that other conversations must belong to, None for any."""
        return self.workspace if self.settings.scope == "workspace" else None

    async def claimed_store(self) -> Store:
        """Return the store, once it is known whether its vectors are of this model."""
        store = await self.store()
        await self.model.claim(store)
        return store

    async def vectors(self, texts: Sequence[str], seconds: float | None = None) -> Vectors | None:
        """Return the vectors of texts; None without a usable model or time, and if it fails or takes longer."""
        if not self.model.name or seconds == 0:
            return None
        try:
            async with asyncio.timeout(seconds):
                return await self.model.embed(texts)
        except TimeoutError:
            log.warning("a question had no vector after %s s; only its words are searched", seconds)
            return None

    async def ask(
        self,
        text: str,
        seconds: float | None = None,
        *,
        context: str = "",
        language: str = "",
        ignored: re.Pattern[str] | None = None,
        parts: Sequence[str] = (),
    ) -> Question:
        """Return a question, prepared for search.

        Args:
            seconds: Most seconds to wait for the vectors; 0 for words alone, None for as long as it takes.
            context: Text the question refers to.
            language: Language of a question that does not show its own.
            ignored: Words that are no part of the subject, unless there are no others.
            parts: What it asks, if it asks several things; one that refers back has the part before as its context.
        """
        asked = [(text, context), *zip(parts, ("", *parts), strict=False)]
        asked[1:] = [(part, before if _is_incomplete(part) else "") for part, before in asked[1:]]
        wholes = [f"{one}\n{around}" if around else one for one, around in asked]
        vectors = await self.vectors(wholes, seconds)
        own = language_of(text) or language
        whole, *each = [
            self._prepared(one, around, own, None if vectors is None else vectors[place], ignored)
            for place, (one, around) in enumerate(asked)
        ]
        return msgspec.structs.replace(whole, parts=tuple(each)) if each else whole

    def _prepared(
        self, text: str, context: str, language: str, vector: Vector | None, ignored: re.Pattern[str] | None
    ) -> Question:
        """Return a question or a part of one, whose vector is known.

        Args:
            language: Of the whole question.
        """

        def kept(words: list[str]) -> list[str]:
            return [word for word in words if ignored is None or not ignored.fullmatch(word)] or words

        whole = f"{text}\n{context}" if context else text
        words = kept(content_words(whole, language_of(whole) or language) or words_of(whole))
        subject = kept(asked_words(text, language) or content_words(text, language) or words_of(text))
        return Question(
            text=text,
            context=context,
            rarities=self.frequencies.rarities(subject),
            words=tuple(words),
            vector=vector if vector is not None and vector.any() else None,
            model=self.model.name,
            rarest=tuple(self.frequencies.rarest(words)),
            turns=self.frequencies.turns,
        )


class WordFrequencies:
    """Share of the graph's turns that contain each word."""

    def __init__(self) -> None:
        self.turns = 0
        """Turns of the graph when they were counted; 0 if they never were."""
        self._shares: dict[str, float] = {}
        self._languages: set[str] = set()

    async def learn(self, store: Store) -> None:
        """Sample some turns of the graph, if it is much larger than at the last sample."""
        spans = await store.recall.sample_spans()
        turns = sum(span.last - span.first + 1 for span in spans)
        if turns < max(FEWEST_TURNS, self.turns * GROWTH):
            return
        keys = await store.recall.sample_keys(spans, SAMPLE)
        if keys:
            await asyncio.to_thread(self._count, keys, turns)

    def rarities(self, words: Sequence[str]) -> dict[str, float]:
        """Return the rarity of words among the turns of the graph; words outside the sample count as rarest."""
        if not self.turns:
            return dict.fromkeys(words, 1.0)
        return {word: rarity(self._share(word) * self.turns / WINDOW, self.turns) for word in words}

    def rarest(self, words: Sequence[str]) -> list[str]:
        """Return the words to search for, in their order: the rarest, as many as the graph reads in little time."""
        shares = {word: self._share(word) for word in words}
        chosen: set[str] = set()
        places = 0.0
        for word in sorted(shares, key=lambda word: shares[word]):
            places += shares[word] * self.turns
            if places > PLACES and len(chosen) >= FEWEST_SEARCHED:
                break
            chosen.add(word)
        return [word for word in words if word in chosen]

    def _count(self, keys: Sequence[str], turns: int) -> None:
        counted: Counter[str] = Counter()
        languages = set()
        for key in keys:
            language = language_of(key) or FALLBACK
            languages.add(language)
            counted.update(set(terms(key, language)))
        # A single turn of the sample says nothing about the graph.
        self._shares = {term: count / len(keys) for term, count in counted.items() if count > 1}
        self._languages, self.turns = languages, turns

    def _share(self, word: str) -> float:
        return max((self._shares.get(term, 0.0) for term in variants(word, self._languages)), default=0.0)
