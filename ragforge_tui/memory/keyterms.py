"""The words that tell what a text is about, without a model: names, identifiers and what is spoken of repeatedly.

Used by the extractive summaries to weigh sentences and to propose topics. Pure and deterministic.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence

from ragforge_tui.memory.language import DAYS, MONTHS, STOP_WORDS

_WORD = re.compile(r"[^\W_](?:[\w.+#/’'-]*[\w+#])?|_\w+")
_ELISION = re.compile(r"^(?:[cdjlmnst]|qu|jusqu|lorsqu|puisqu)['’](?=\w)", re.I)
_POSSESSIVE = re.compile(r"['’]s$", re.I)
_CONTRACTION = re.compile(r"^\w+(?:n['’]t|['’](?:m|re|ve|ll|d|s))$", re.I)
_IDENTIFIER = re.compile(r"\w[./_]\w|[a-z][A-Z]|\w\(\)|_")
_FEW_LETTERS = 3

# Words of conversation, not of its subject.
_CHATTER_TEXT = (
    "ok okay yes yeah yep nope please thanks thank hello hi hey bye wow oh ah hmm well really actually maybe sure "
    "great good nice cool awesome amazing wonderful fun glad happy sorry love like want need know think thought "
    "feel feeling felt look looking looks looked make makes made making take takes took taking give gives gave tell "
    "told say says said see saw seen go going goes went gone come comes came coming put let lets thing things stuff "
    "something anything nothing everything someone anyone everyone way ways kind sort lot lots bit time times day "
    "days week weeks month months year years today yesterday tomorrow now recently soon always never still also "
    "even ever already again back much many first last next new old big little small long right wrong best better "
    "person people guy guys one two three keep keeps kept try trying tried help helps helped ask asked answer "
    "question definitely totally super pretty quite lately sounds sound hope hear heard don doesn didn isn wasn "
    "aren weren won wouldn couldn shouldn can't use using used find found show shows showed start started work "
    "works working file files line lines default bonjour salut merci oui non si accord bien bon bonne très trop peu "
    "beaucoup chose choses faire fais font veux veut peux peut pouvez voudrais aimerais dire dit voir vois aller va "
    "vais vas aussi encore toujours jamais déjà maintenant hier demain aujourd hui jour jours semaine mois année "
    "fois quelque quelques tout toute tous toutes génial besoin temps gens fichier fichiers ligne lignes montre "
    "trouve cherche "
)
_CHATTER = frozenset(_CHATTER_TEXT.split())
_DATES = frozenset(
    name.casefold()
    for table in (MONTHS, DAYS)
    for names in table.values()
    for name in names
    if name.casefold() != "may"
)


def words(text: str, language: str = "") -> list[str]:
    """The words of a text that carry meaning, as they are written."""
    stop = STOP_WORDS.get(language) or _ANY_STOP
    found = []
    for match in _WORD.finditer(text):
        word = _POSSESSIVE.sub("", _ELISION.sub("", match[0]))
        low = word.casefold()
        if len(low) < 2 or low in stop or low in _CHATTER or _CONTRACTION.match(word) or low.isdigit():
            continue
        found.append(word)
    return found


_ANY_STOP = STOP_WORDS["en"] | STOP_WORDS["fr"]


def stem(word: str) -> str:
    """A word without its plural ending, case folded; enough to count forms together."""
    low = word.casefold()
    if len(low) > _FEW_LETTERS + 1 and low.isalpha():
        for ending, instead in (
            ("ies", "y"),
            ("sses", "ss"),
            ("xes", "x"),
            ("ches", "ch"),
            ("shes", "sh"),
            ("eaux", "eau"),
            ("aux", "al"),
        ):
            if low.endswith(ending):
                return low[: -len(ending)] + instead
        if low.endswith("s") and not low.endswith(("ss", "us", "is")):
            return low[:-1]
    return low


def weights(texts: Sequence[str], language: str = "") -> dict[str, float]:
    """How much each word (by its stem) says about these texts: the oftener, and in the more of them, the more."""
    counted: Counter[str] = Counter()
    spread: Counter[str] = Counter()
    for text in texts:
        stems = [stem(word) for word in words(text, language)]
        counted.update(stems)
        spread.update(set(stems))
    return {word: (1 + math.log(count)) * (1 + math.log(spread[word])) for word, count in counted.items()}


def key_terms(texts: Sequence[str], language: str = "", limit: int = 4) -> list[str]:
    """Up to `limit` names of what the texts are about: phrases that come back, names, identifiers."""
    scores: dict[str, float] = {}
    forms: dict[str, Counter[str]] = {}
    for weight, name in _candidates(texts, language):
        key = " ".join(stem(part) for part in name.split())
        scores[key] = scores.get(key, 0.0) + weight
        forms.setdefault(key, Counter())[name] += 1
    ranked = sorted(scores, key=lambda key: (-_rank(scores[key], key), key))
    chosen: list[str] = []
    for key in ranked:
        parts = set(key.split())
        if any(parts & set(other.split()) for other in chosen):
            continue
        chosen.append(key)
        if len(chosen) == limit:
            break
    return [max(forms[key], key=lambda form: (forms[key][form], form.islower(), form)) for key in chosen]


def _rank(score: float, key: str) -> float:
    """A phrase of two words counts more than each alone, when it comes back."""
    return score * (1.7 if " " in key else 1.0)


def _candidates(texts: Sequence[str], language: str) -> list[tuple[float, str]]:
    found: list[tuple[float, str]] = []
    for text in texts:
        seen: Counter[str] = Counter()
        for sentence in re.split(r"[.!?…;:,()\[\]{}«»“”\"\n]+(?=\s|$)|\n", text):
            for phrase, weight in _phrases(sentence, language):
                seen[phrase.casefold()] += 1
                # What one text repeats counts less than what several texts say.
                found.append((weight / seen[phrase.casefold()], phrase))
    return found


def _phrases(sentence: str, language: str) -> list[tuple[str, float]]:
    """Single words and neighbouring pairs of words of a sentence."""
    found: list[tuple[str, float]] = []
    kept = set(words(sentence, language))
    previous, end = "", -2
    for number, match in enumerate(_WORD.finditer(sentence)):
        word = _POSSESSIVE.sub("", _ELISION.sub("", match[0])).rstrip("-'’")
        if (
            word not in kept
            or word.casefold() in _DATES
            or (any(c.isdigit() for c in word) and not _IDENTIFIER.search(word))
        ):
            previous = ""
            continue
        named = number > 0 and word[0].isupper() and not word.isupper()
        weight = 2.0 if _IDENTIFIER.search(word) else 1.5 if named else 1.0
        if len(word) > 2:
            found.append((word, weight))
        if previous and match.start() - end == 1 and not _IDENTIFIER.search(previous + word):
            found.append((f"{previous} {word}", weight))
        previous, end = word, match.end()
    return found
