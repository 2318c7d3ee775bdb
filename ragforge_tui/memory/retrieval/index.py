"""In-memory index of the open conversation: every turn's words and vector, scored in all views at once.

One object per open conversation, held by `Recall`: filled from the graph in the background, with a turn added when it
ends. The sums over neighbours and sittings are computed per query, so that adding a turn costs its own words only.
Calls lock; they take milliseconds at ten thousand turns and belong in a thread where that matters.
"""

from __future__ import annotations

import threading
from array import array
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime

import msgspec
import numpy as np
import numpy.typing as npt

from ragforge_tui.llm.tokens import count_tokens
from ragforge_tui.memory.language import date_words, language_of
from ragforge_tui.memory.retrieval import scoring, terms
from ragforge_tui.memory.retrieval.keys import shown
from ragforge_tui.memory.retrieval.recipes import CONTEXT
from ragforge_tui.memory.retrieval.scoring import Floats, View
from ragforge_tui.memory.retrieval.terms import TextStems
from ragforge_tui.shared.records import EXTRACTIVE, Summary

SITTING_GAP_SECONDS = 3_600
"""Silence after which the next turn starts another sitting."""
CONTEXT_WEIGHT = 0.5
"""Weight of the words in a question's context, relative to its own words."""
_FIRST_ROWS = 64
POOL_WEIGHT = 0.5
"""Weight of the neighbours' vectors in the pooled view; a turn's own weighs 1."""
TINY = 1e-6


class Ranked(msgspec.Struct, frozen=True):
    """Turn with its score, comparable within one query only."""

    turn_index: int
    score: float


class _Entry(msgspec.Struct):
    text: str
    timestamp: datetime
    language: str
    facts: tuple[str, ...] = ()
    tokens: int = -1


class _Word(msgspec.Struct, frozen=True):
    """Word of a question with its weight and its frequency in each turn."""

    weight: float
    body: Floats | None
    facts: Floats | None
    date: Floats | None


class ConversationIndex:
    """Turns of one conversation with all their keys; row n of every array is turn n."""

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
        self._summary_stems: dict[str, TextStems] = {}
        """Stems of summaries that a question was compared with by words."""

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
            earlier = self._entries.get(turn_index)
            if earlier is not None and (earlier.text, earlier.timestamp) == (text, timestamp):
                # Loaded again. Removing terms from long postings is slow, and nothing changed.
                self._ended[turn_index] = (ended or timestamp).timestamp()
                self._sittings = None
                if embedding is not None:
                    self._vectors.put(turn_index, embedding)
                return
            self._grow(turn_index)
            language = language_of(text)
            if language:
                self._languages[language] += 1
            if earlier is not None and (replaced := language_of(earlier.text)):
                self._languages[replaced] -= 1
            entry = _Entry(text, timestamp, language or self._main_language())
            if earlier is not None:
                entry.facts = earlier.facts
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
        """Set a turn's vector, of length one; a turn that is not in the index is ignored."""
        with self._lock:
            if turn_index in self._entries:
                self._vectors.put(turn_index, vector)

    def set_facts(self, facts: Mapping[int, Sequence[str]]) -> None:
        """Set the facts that summaries found in turns; turns not named keep theirs."""
        with self._lock:
            for turn_index, found in facts.items():
                entry = self._entries.get(turn_index)
                if entry is not None:
                    entry.facts = tuple(found)
                    self._put_facts(turn_index, entry)

    def set_summaries(self, summaries: Sequence[Summary], vectors: Mapping[str, npt.NDArray[np.float32]]) -> None:
        """Set the summaries, with the vectors of those that have one, by uuid."""
        with self._lock:
            known = {summary.uuid: summary for summary in self._summaries}
            self._summaries = list(summaries)
            self._summary_vectors = dict(vectors)
            same = {summary.uuid for summary in summaries if summary == known.get(summary.uuid)}
            self._summary_stems = {uuid: stems for uuid, stems in self._summary_stems.items() if uuid in same}
            self._noted[:] = False
            for summary in self._summaries:
                if summary.level == 1 and summary.made_by not in ("", EXTRACTIVE):
                    self._noted[summary.start_turn_index : summary.end_turn_index + 1] = True

    # --- asking ----------------------------------------------------------------------------------------------------

    @property
    def turns(self) -> int:
        return len(self._entries)

    @property
    def language(self) -> str:
        return self._main_language()

    def __contains__(self, turn_index: object) -> bool:
        return turn_index in self._entries

    def turn_text(self, turn_index: int) -> str:
        """Return a turn's key, empty for a turn that is not in the index."""
        entry = self._entries.get(turn_index)
        return entry.text if entry else ""

    def tokens(self, turn_index: int) -> int:
        """Return the tokens of what recall shows of a turn, counted once."""
        entry = self._entries.get(turn_index)
        if entry is None:
            return 0
        if entry.tokens < 0:
            entry.tokens = count_tokens(shown(entry.text))
        return entry.tokens

    def timestamp(self, turn_index: int) -> datetime | None:
        """Return the time a turn started, None for a turn that is not in the index."""
        entry = self._entries.get(turn_index)
        return entry.timestamp if entry else None

    def sitting(self, turn_index: int) -> int:
        """Return the sitting a turn belongs to, from 1 in order of time; 0 for a turn that is not in the index."""
        with self._lock:
            return int(self._sitting_rows()[turn_index]) + 1 if turn_index in self._entries else 0

    def sitting_turns(self, sitting: int) -> list[int]:
        """Return the turns of a sitting, in order."""
        with self._lock:
            rows = np.flatnonzero((self._sitting_rows() == sitting - 1) & self._present)
            return [int(row) for row in rows]

    def without_vector(self) -> list[int]:
        with self._lock:
            return [int(row) for row in np.flatnonzero(self._present & ~self._vectors.known)]

    def rank(
        self,
        query: str,
        vector: npt.NDArray[np.float32] | None = None,
        *,
        context: str = "",
        exclude: Collection[int] = (),
        limit: int | None = None,
        weights: Mapping[str, float] = CONTEXT.own.weights,
    ) -> list[Ranked]:
        """Return the best `limit` turns except the excluded, best first, by the weighted sum of the views' z-scores.

        Args:
            context: Text the question refers to; its words weigh half.
            vector: Vector of the question, of length one; without it, words decide alone.
        """
        with self._lock:
            eligible = self._eligible(exclude)
            if not eligible.any():
                return []
            views = self._views(query, context, vector).items()
            weighted = [(weight, view) for name, view in views if (weight := weights.get(name))]
            scores = scoring.fused(weighted, eligible)
            return [Ranked(row, float(scores[row])) for row in scoring.best(scores, eligible, limit)]

    def vector(self, turn_index: int) -> Floats | None:
        """Return a turn's vector, None if it has none."""
        with self._lock:
            return self._vectors.get(turn_index) if turn_index in self._entries else None

    def facts(self, turn_index: int) -> tuple[str, ...]:
        """Return the facts that summaries found in a turn."""
        entry = self._entries.get(turn_index)
        return entry.facts if entry else ()

    def ended(self, turn_index: int) -> datetime | None:
        """Return the time a turn ended, None for a turn that is not in the index."""
        with self._lock:
            if turn_index not in self._entries:
                return None
            return datetime.fromtimestamp(float(self._ended[turn_index]), UTC)

    @property
    def last(self) -> int:
        """Highest turn index, 0 if the index is empty."""
        return self._last

    def rarities(self, words: Iterable[str]) -> dict[str, float]:
        """Return the rarity of words in the texts and facts of all turns."""
        with self._lock:
            return {word: scoring.rarity(len(self._turns_with(word)), self.turns) for word in words}

    def matched(self, rarities: Mapping[str, float]) -> dict[int, float]:
        """Return for each turn that holds any of the words, in its text or facts, the sum of their rarities."""
        found: defaultdict[int, float] = defaultdict(float)
        with self._lock:
            for word, rarity in rarities.items():
                for turn in self._turns_with(word):
                    found[turn] += rarity
        return found

    def summary_vector(self, uuid: str) -> Floats | None:
        """Return a summary's vector, None if it has none."""
        return self._summary_vectors.get(uuid)

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
        """Return the words of a question, each with its frequency in every turn's text, facts and date."""
        languages = self._searched()
        weights = dict.fromkeys(self.question_words(context), CONTEXT_WEIGHT) if context else {}
        weights |= dict.fromkeys(self.question_words(query), 1.0)
        entries = []
        for word, weight in weights.items():
            stems = terms.variants(word, languages)
            parts = (postings.frequencies(stems, self._size) for postings in (self._body, self._facts, self._dates))
            entries.append(_Word(weight, *parts))
        return entries

    def _turns_with(self, word: str) -> set[int]:
        stems = terms.variants(word, self._searched())
        return {turn for stem in stems for postings in (self._body, self._facts) for turn in postings.rows_of(stem)}

    def _searched(self) -> list[str]:
        return [language for language, _ in self._languages.most_common(3)] or [terms.FALLBACK]

    def question_words(self, query: str) -> list[str]:
        """Return the content words of a question, each once; all its words if it has none."""
        return terms.content_words(query, language_of(query) or self._main_language()) or terms.words(query)

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
        """Score the facts a model found in turns; extracted facts are left out, since they only repeat the turn."""
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

        present = [word for word in words if word.body is not None or word.date is not None]
        summed = [(total(word.body, word.date), word.weight) for word in present]
        lengths = total(self._body_lengths, self._date_lengths)
        scores: Floats = scoring.bm25(summed, lengths, int(np.count_nonzero(turns)))[sittings]
        return scores

    def _summary_prior(self, query: str, vector: Floats | None) -> Floats | None:
        """Return for each turn the best score of the summaries of the first two levels that cover it."""
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
        language = self._main_language()
        asked = terms.stems(self.question_words(query), language)
        scores: dict[str, float] = {}
        for summary in self._summaries:
            own = self._summary_vectors.get(summary.uuid)
            if vector is not None and own is not None:
                scores[summary.uuid] = float(own @ vector)
            else:
                scores[summary.uuid] = terms.share_of_stems(asked, self._stems_of(summary, language))
        return scores

    def _stems_of(self, summary: Summary, language: str) -> frozenset[str]:
        """Return the stems of a summary, which are made again only if it or the conversation's language changes."""
        known = self._summary_stems.get(summary.uuid)
        if known is None or known.language != language:
            facts = (finding.text for finding in summary.key_findings)
            text = "\n".join((summary.conversation_summary, summary.actions_summary, *facts))
            known = self._summary_stems[summary.uuid] = TextStems(language, frozenset(terms.terms(text, language)))
        return known.stems

    def _eligible(self, exclude: Collection[int]) -> npt.NDArray[np.bool_]:
        eligible = self._present.copy()
        eligible[[row for row in exclude if 0 <= row < self._size]] = False
        return eligible

    def _sitting_rows(self) -> npt.NDArray[np.int64]:
        """Return the sitting of each row from 0; rows without a turn belong to the sitting before them."""
        if self._sittings is None:
            rows = np.flatnonzero(self._present)
            begins = np.zeros(self._size, np.int64)
            if len(rows) > 1:
                silence = self._started[rows[1:]] - self._ended[rows[:-1]]
                begins[rows[1:]] = silence >= SITTING_GAP_SECONDS
            self._sittings = np.cumsum(begins)
        return self._sittings

    def _put_facts(self, turn_index: int, entry: _Entry) -> None:
        fact_terms = [term for fact in entry.facts for term in terms.terms(fact, entry.language)]
        self._fact_lengths[turn_index] = self._facts.put(turn_index, fact_terms)

    def _grow(self, turn_index: int) -> None:
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


class Postings:
    """Term frequencies of rows, which are numbered from 0."""

    def __init__(self) -> None:
        self._rows: dict[str, array[int]] = {}
        self._counts: dict[str, array[int]] = {}
        self._terms: dict[int, Counter[str]] = {}

    def put(self, row: int, terms: Iterable[str]) -> int:
        """Set the terms of a row, replacing any earlier ones, and return how many there are."""
        counted = Counter(terms)
        if row in self._terms:
            self._remove(row)
        for term, count in counted.items():
            if term not in self._rows:
                self._rows[term], self._counts[term] = array("i"), array("i")
            self._rows[term].append(row)
            self._counts[term].append(count)
        self._terms[row] = counted
        return counted.total()

    def frequencies(self, terms: Iterable[str], size: int) -> Floats | None:
        """Return how often each row contains any of the terms; None if no row does."""
        frequencies: Floats | None = None
        for term in terms:
            rows = self._rows.get(term)
            if not rows:
                continue
            if frequencies is None:
                frequencies = np.zeros(size, np.float32)
            frequencies[np.array(rows)] += np.array(self._counts[term], dtype=np.float32)
        return frequencies

    def rows_of(self, term: str) -> Iterable[int]:
        return self._rows.get(term, ())

    def _remove(self, row: int) -> None:
        for term in self._terms.pop(row):
            rows, counts = self._rows[term], self._counts[term]
            place = rows.index(row)
            del rows[place], counts[place]
            if not rows:
                del self._rows[term], self._counts[term]


class TurnVectors:
    """Unit vectors by row; a row may have none."""

    def __init__(self, size: int) -> None:
        self._rows: Floats | None = None
        self._used = 0
        """Rows up to the last one that was set; the rest is spare capacity."""
        self.known = np.zeros(size, bool)
        self._norms: Floats | None = None

    def grow(self, size: int) -> None:
        """Enlarge the arrays to `size` rows."""
        more = size - len(self.known)
        self.known = np.pad(self.known, (0, more))
        if self._rows is not None:
            self._rows = np.pad(self._rows, ((0, more), (0, 0)))
        self._norms = None

    def put(self, row: int, vector: Floats | None) -> None:
        """Set a row's vector; None marks it as unknown."""
        if vector is not None:
            if self._rows is None:
                self._rows = np.zeros((len(self.known), len(vector)), np.float32)
            self._rows[row] = vector
        elif self._rows is not None:
            self._rows[row] = 0
        self._used = max(self._used, row + 1)
        self.known[row] = vector is not None
        self._update_norms(row)

    def get(self, row: int) -> Floats | None:
        """Return a row's vector, None if it is unknown."""
        return self._rows[row] if self._rows is not None and self.known[row] else None

    def views(self, question: Floats) -> dict[str, View]:
        """Return cosines of a question with each row, and with each row pooled with its neighbours; empty without rows.

        A row without a vector has no cosine; pooled, it has one as soon as a neighbour has a vector.
        """
        if self._rows is None:
            return {}
        # Not BLAS, whose threads wait for each other on a busy machine: this always takes 1 ms at 10 000 turns.
        products: Floats = np.zeros(len(self._rows), np.float32)
        np.einsum("ij,j->i", self._rows[: self._used], question.astype(np.float32), out=products[: self._used])
        norms = self._pooled_norms(self._rows)
        pooled = scoring.neighbours(products, POOL_WEIGHT) / norms
        return {"cosine": (products, self.known), "pooled": (pooled, norms > TINY)}

    def _pooled_norms(self, rows: Floats) -> Floats:
        if self._norms is None:
            pooled = rows.copy()
            pooled[1:] += POOL_WEIGHT * rows[:-1]
            pooled[:-1] += POOL_WEIGHT * rows[1:]
            self._norms = np.maximum(np.linalg.norm(pooled, axis=1), TINY).astype(np.float32)
        return self._norms

    def _update_norms(self, changed: int) -> None:
        if self._norms is None or self._rows is None:
            return
        for row in range(max(changed - 1, 0), min(changed + 2, len(self._rows))):
            pooled = self._rows[row].copy()
            if row > 0:
                pooled += POOL_WEIGHT * self._rows[row - 1]
            if row + 1 < len(self._rows):
                pooled += POOL_WEIGHT * self._rows[row + 1]
            self._norms[row] = max(float(np.linalg.norm(pooled)), TINY)
