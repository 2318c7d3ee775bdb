"""The open conversation in memory: every turn's words and vector, scored in all views at once.

One object an open conversation, kept by `Recall`: filled from the graph in the background, a turn added as it ends.
What a view needs of neighbours and sittings is summed when a question is asked, so that adding a turn costs its own
words only. Calls lock; they take milliseconds at ten thousand turns and belong in a thread where that matters.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime

import msgspec
import numpy as np
import numpy.typing as npt

from ragforge_tui.llm.tokens import count_tokens
from ragforge_tui.memory.language import date_words, language_of
from ragforge_tui.memory.recall import scoring, terms
from ragforge_tui.memory.recall.keys import summary_key
from ragforge_tui.memory.recall.postings import Postings
from ragforge_tui.memory.recall.scoring import WEIGHTS, Floats, View
from ragforge_tui.memory.recall.vectors import TurnVectors
from ragforge_tui.models import EXTRACTIVE, Summary

SITTING_GAP_SECONDS = 3_600
"""Silence after which the next turn begins another sitting."""
CONTEXT_WEIGHT = 0.5
"""Of the words of what a question refers to, beside its own."""
_FIRST_ROWS = 64


class Ranked(msgspec.Struct, frozen=True):
    """A turn and its score: comparable within one question only."""

    turn_index: int
    score: float


class _Entry(msgspec.Struct):
    text: str
    timestamp: datetime
    language: str
    facts: tuple[str, ...] = ()
    tokens: int = -1


class _Word(msgspec.Struct, frozen=True):
    """A word of a question: how much it weighs, and how often each turn has it."""

    weight: float
    body: Floats | None
    facts: Floats | None
    date: Floats | None


class ConversationIndex:
    """Turns of one conversation by all they can be found by; row n of every array is turn n."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: dict[int, _Entry] = {}
        self._last = 0
        self._languages: Counter[str] = Counter()
        self._body, self._facts, self._dates = Postings(), Postings(), Postings()
        self._size = _FIRST_ROWS
        self._present = np.zeros(self._size, bool)
        self._started = np.zeros(self._size)
        self._ended = np.zeros(self._size)
        self._body_lengths = np.zeros(self._size, np.float32)
        self._fact_lengths = np.zeros(self._size, np.float32)
        self._date_lengths = np.zeros(self._size, np.float32)
        self._vectors = TurnVectors(self._size)
        self._sittings: npt.NDArray[np.int64] | None = None
        self._noted = np.zeros(self._size, bool)
        self._summaries: list[Summary] = []
        self._summary_vectors: dict[str, Floats] = {}

    # --- filling ---------------------------------------------------------------------------------------------------

    def put(
        self,
        turn_index: int,
        *,
        text: str,
        timestamp: datetime,
        ended: datetime | None = None,
        embedding: npt.NDArray[np.float32] | None = None,
    ) -> None:
        """Add a turn or replace it; a text without `embedding` has no vector until `set_embedding`."""
        with self._lock:
            known = self._entries.get(turn_index)
            if known is not None and (known.text, known.timestamp) == (text, timestamp):
                # Loaded again. Taking terms out of long postings is slow, and there is nothing to change.
                self._ended[turn_index] = (ended or timestamp).timestamp()
                self._sittings = None
                if embedding is not None:
                    self._vectors.put(turn_index, embedding)
                return
            self._make_room(turn_index)
            language = language_of(text)
            if language:
                self._languages[language] += 1
            entry = _Entry(text, timestamp, language or self._main_language())
            if known is not None:
                entry.facts = known.facts
            self._entries[turn_index] = entry
            self._last = max(self._last, turn_index)
            self._present[turn_index] = True
            self._started[turn_index] = timestamp.timestamp()
            self._ended[turn_index] = (ended or timestamp).timestamp()
            self._body_lengths[turn_index] = self._body.put(turn_index, terms.terms(text, entry.language))
            date = terms.stems(terms.words(date_words(timestamp, entry.language)), entry.language)
            self._date_lengths[turn_index] = self._dates.put(turn_index, date)
            self._put_facts(turn_index, entry)
            self._sittings = None
            self._vectors.put(turn_index, embedding)

    def set_embedding(self, turn_index: int, vector: npt.NDArray[np.float32]) -> None:
        """Set a turn's vector, of length one; nothing happens for a turn that is not here."""
        with self._lock:
            if turn_index in self._entries:
                self._vectors.put(turn_index, vector)

    def set_facts(self, facts: Mapping[int, Sequence[str]]) -> None:
        """Set what summaries found in turns; turns not named keep theirs."""
        with self._lock:
            for turn_index, found in facts.items():
                entry = self._entries.get(turn_index)
                if entry is not None:
                    entry.facts = tuple(found)
                    self._put_facts(turn_index, entry)

    def set_summaries(self, summaries: Sequence[Summary], vectors: Mapping[str, npt.NDArray[np.float32]]) -> None:
        """Set the summaries there are, with the vectors of those that have one by their uuid."""
        with self._lock:
            self._summaries = list(summaries)
            self._summary_vectors = dict(vectors)
            self._noted[:] = False
            for summary in self._summaries:
                if summary.level == 1 and summary.made_by not in ("", EXTRACTIVE):
                    self._noted[summary.start_turn_index : summary.end_turn_index + 1] = True

    # --- asking ----------------------------------------------------------------------------------------------------

    @property
    def turns(self) -> int:
        """How many turns there are."""
        return len(self._entries)

    @property
    def language(self) -> str:
        """The language most turns are in."""
        return self._main_language()

    def __contains__(self, turn_index: object) -> bool:
        return turn_index in self._entries

    def turn_text(self, turn_index: int) -> str:
        """A turn's text, empty when it is not here."""
        entry = self._entries.get(turn_index)
        return entry.text if entry else ""

    def tokens(self, turn_index: int) -> int:
        """Tokens of a turn's text; counted once."""
        entry = self._entries.get(turn_index)
        if entry is None:
            return 0
        if entry.tokens < 0:
            entry.tokens = count_tokens(entry.text)
        return entry.tokens

    def timestamp(self, turn_index: int) -> datetime | None:
        """When a turn began."""
        entry = self._entries.get(turn_index)
        return entry.timestamp if entry else None

    def sitting(self, turn_index: int) -> int:
        """The sitting a turn belongs to, from 1 in order of time; 0 when it is not here."""
        with self._lock:
            return int(self._sitting_rows()[turn_index]) + 1 if turn_index in self._entries else 0

    def sitting_began(self, turn_index: int) -> datetime | None:
        """When the sitting of a turn began, None for a turn that is not here."""
        with self._lock:
            if turn_index not in self._entries:
                return None
            first = int(np.searchsorted(self._sitting_rows(), self._sitting_rows()[turn_index]))
            present = np.flatnonzero(self._present[first : turn_index + 1])
            return self._entries[first + int(present[0])].timestamp

    def sitting_turns(self, sitting: int) -> list[int]:
        """The turns of a sitting, in order."""
        with self._lock:
            rows = np.flatnonzero((self._sitting_rows() == sitting - 1) & self._present)
            return [int(row) for row in rows]

    def without_vector(self) -> list[int]:
        """Turns whose vector is unknown."""
        with self._lock:
            return [int(row) for row in np.flatnonzero(self._present & ~self._vectors.known)]

    def rank(
        self,
        query: str,
        vector: npt.NDArray[np.float32] | None = None,
        *,
        context: str = "",
        exclude: Collection[int] = (),
        only: Collection[int] | None = None,
        limit: int | None = None,
        weights: Mapping[str, float] = WEIGHTS,
    ) -> list[Ranked]:
        """The best `limit` turns but the excluded, best first: the weighted sum of every view's z-score.

        Args:
            context: What the question refers to; its words weigh half.
            vector: The question's, of length one; without it, words decide alone.
            only: Rank these turns only.
        """
        with self._lock:
            wanted = self._wanted(exclude, only)
            if not wanted.any():
                return []
            scores = np.zeros(self._size, np.float32)
            for name, view in self._views(query, context, vector).items():
                if weight := weights.get(name):
                    scores += weight * scoring.known_zscores(view, wanted)
            return [Ranked(row, float(scores[row])) for row in scoring.best(scores, wanted, limit)]

    def vector(self, turn_index: int) -> Floats | None:
        """A turn's vector, None when it is unknown."""
        with self._lock:
            return self._vectors.get(turn_index) if turn_index in self._entries else None

    def facts(self, turn_index: int) -> tuple[str, ...]:
        """What summaries found in a turn."""
        entry = self._entries.get(turn_index)
        return entry.facts if entry else ()

    def ended(self, turn_index: int) -> datetime | None:
        """When a turn ended."""
        with self._lock:
            if turn_index not in self._entries:
                return None
            return datetime.fromtimestamp(float(self._ended[turn_index]), UTC)

    @property
    def last(self) -> int:
        """The highest turn index there is, 0 when there is none."""
        return self._last

    def share(self, turn_index: int, words: Iterable[str]) -> float:
        """The share of a question's words that a turn's text has."""
        with self._lock:
            languages = self._searched()
            wanted = [terms.variants(word, languages) for word in words]
            there = self._body.terms_of(turn_index)
            return sum(any(term in there for term in word) for word in wanted) / len(wanted) if wanted else 0.0

    def summary_scores(self, query: str, vector: npt.NDArray[np.float32] | None) -> dict[str, float]:
        """How similar each summary is to a question: the cosine, or the share of its words it has."""
        with self._lock:
            return self._summary_scores(query, vector)

    # --- inside (the lock is held) ---------------------------------------------------------------------------------

    def _views(self, query: str, context: str, vector: Floats | None) -> dict[str, View]:
        words = self._words(query, context)
        sittings = self._sitting_rows()
        own = [(word.body, word.weight) for word in words if word.body is not None]
        views = {
            "turn": (scoring.bm25(own, self._body_lengths, self.turns), self._present),
            "window": (self._window_view(words), self._present),
            "sitting": (self._sitting_view(words, sittings), self._present),
        }
        if vector is not None:
            views |= self._vectors.views(vector)
        prior = self._summary_prior(query, vector)
        if prior is not None:
            views["summaries"] = prior, self._present
        if self._noted.any():
            views["facts"] = self._facts_view(words), self._noted
        return views

    def _words(self, query: str, context: str) -> list[_Word]:
        """The words of a question, each with how often every turn has it: in its text, its facts, its date."""
        languages = self._searched()
        weights = dict.fromkeys(self.question_words(context), CONTEXT_WEIGHT) if context else {}
        weights |= dict.fromkeys(self.question_words(query), 1.0)
        found = []
        for word, weight in weights.items():
            stems = terms.variants(word, languages)
            parts = (postings.frequencies(stems, self._size) for postings in (self._body, self._facts, self._dates))
            found.append(_Word(weight, *parts))
        return found

    def _searched(self) -> list[str]:
        """The languages whose stems are looked for."""
        return [language for language, _ in self._languages.most_common(3)] or [terms.FALLBACK]

    def question_words(self, query: str) -> list[str]:
        """The words of a question that say something, each once; all its words when it has no others."""
        return terms.telling_words(query, language_of(query) or self._main_language()) or terms.words(query)

    def _window_view(self, words: Sequence[_Word]) -> Floats:
        summed = []
        for word in words:
            body = None if word.body is None else scoring.neighbours(word.body)
            parts = [part for part in (body, word.facts, word.date) if part is not None]
            if parts:
                summed.append((np.sum(parts, axis=0) * self._present, word.weight))
        lengths = (scoring.neighbours(self._body_lengths) + self._fact_lengths + self._date_lengths) * self._present
        return scoring.bm25(summed, lengths, self.turns)

    def _facts_view(self, words: Sequence[_Word]) -> Floats:
        """What a model noted of turns; extracted facts are left out, since they only repeat words of the turn."""
        noted = [(word.facts * self._noted, word.weight) for word in words if word.facts is not None]
        lengths = self._fact_lengths * self._noted
        return scoring.bm25(noted, lengths, int(np.count_nonzero(lengths)))

    def _sitting_view(self, words: Sequence[_Word], sittings: npt.NDArray[np.int64]) -> Floats:
        count = int(sittings.max()) + 1
        turns = np.bincount(sittings[self._present], minlength=count)
        shares = np.maximum(turns, 1)

        def total(text: Floats | None, date: Floats | None) -> Floats:
            summed = np.zeros(count) if text is None else np.bincount(sittings, text, count)
            if date is not None:
                # The date counts once for a sitting, however many turns it has.
                summed = summed + np.bincount(sittings, date, count) / shares
            return summed.astype(np.float32)

        said = [word for word in words if word.body is not None or word.date is not None]
        summed = [(total(word.body, word.date), word.weight) for word in said]
        lengths = total(self._body_lengths, self._date_lengths)
        scores: Floats = scoring.bm25(summed, lengths, int(np.count_nonzero(turns)))[sittings]
        return scores

    def _summary_prior(self, query: str, vector: Floats | None) -> Floats | None:
        """For each turn the best score of the summaries of the first two levels that cover it."""
        covering = [summary for summary in self._summaries if summary.level <= 2]
        if not covering:
            return None
        scores = self._summary_scores(query, vector)
        prior = np.full(self._size, -1.0, np.float32)
        for summary in covering:
            rows = slice(summary.start_turn_index, summary.end_turn_index + 1)
            prior[rows] = np.maximum(prior[rows], scores[summary.uuid])
        return prior

    def _summary_scores(self, query: str, vector: Floats | None) -> dict[str, float]:
        asked = self.question_words(query)
        scores: dict[str, float] = {}
        for summary in self._summaries:
            known = self._summary_vectors.get(summary.uuid)
            if vector is not None and known is not None:
                scores[summary.uuid] = float(known @ vector)
            else:
                scores[summary.uuid] = terms.share(asked, summary_key(summary), self._main_language())
        return scores

    def _wanted(self, exclude: Collection[int], only: Collection[int] | None) -> npt.NDArray[np.bool_]:
        wanted = self._present.copy()
        if only is not None:
            chosen = np.zeros(self._size, bool)
            chosen[[row for row in only if 0 <= row < self._size]] = True
            wanted &= chosen
        wanted[[row for row in exclude if 0 <= row < self._size]] = False
        return wanted

    def _sitting_rows(self) -> npt.NDArray[np.int64]:
        """The sitting of each row from 0; rows without a turn belong to the sitting before them."""
        if self._sittings is None:
            rows = np.flatnonzero(self._present)
            begins = np.zeros(self._size, np.int64)
            if len(rows) > 1:
                silence = self._started[rows[1:]] - self._ended[rows[:-1]]
                begins[rows[1:]] = silence >= SITTING_GAP_SECONDS
            self._sittings = np.cumsum(begins)
        return self._sittings

    def _put_facts(self, turn_index: int, entry: _Entry) -> None:
        found = [term for fact in entry.facts for term in terms.terms(fact, entry.language)]
        self._fact_lengths[turn_index] = self._facts.put(turn_index, found)

    def _make_room(self, turn_index: int) -> None:
        if turn_index < self._size:
            return
        more = max(self._size * 2, turn_index + 1) - self._size
        self._size += more
        lengths = ("_body_lengths", "_fact_lengths", "_date_lengths")
        for name in ("_present", "_started", "_ended", "_noted", *lengths):
            setattr(self, name, np.pad(getattr(self, name), (0, more)))
        self._vectors.grow(self._size)
        self._sittings = None

    def _main_language(self) -> str:
        return self._languages.most_common(1)[0][0] if self._languages else ""
