"""Key terms of a text without a model (names, identifiers, repeated phrases), and the topics made of them.

Used by the extractive summaries to weigh sentences and to propose topics; a model proposes topics itself. Pure and
deterministic.
"""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import msgspec

from ragforge_tui.graph.store.topic_names import ProposedTopic, TopicLink, topic_key
from ragforge_tui.memory.language import DAYS, MONTHS, STOP_WORDS
from ragforge_tui.shared.formulas import replace_formulas

_WORD = re.compile(r"[^\W_](?:[\w.+#/’'-]*[\w+#])?|_\w+")
_ELISION = re.compile(r"^(?:[cdjlmnst]|qu|jusqu|lorsqu|puisqu)['’](?=\w)", re.I)
_ELIDED_ARTICLE = re.compile(r"^[dl]['’](?=\w)", re.I)
_POSSESSIVE = re.compile(r"['’]s$", re.I)
_CONTRACTION = re.compile(r"^\w+(?:n['’]t|['’](?:m|re|ve|ll|d|s)|-(?:je|tu|ils?|elles?|on|nous|vous|ce|t-\w+))$", re.I)
_PLACE = re.compile(r"/|\.[A-Za-z]\w{0,7}$|^[KMGT]i?B$")
"""Paths are listed separately."""
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
"""Scripts without spaces between words; their terms are runs of one kind of character."""
_TERM = re.compile(r"[\u3400-\u9fff]{2,4}|[\u30a1-\u30ff]{2,12}|[\uac00-\ud7af]{2,8}")
_LETTER = re.compile(r"[^\W\d_]")
_IDENTIFIER = re.compile(r"\w[./_]\w|[a-z][A-Z]|\w\(\)|_")
_CLAUSE = re.compile(
    r"(?<![.!?…;:,()\[\]{}«»“”\"\n])[.!?…;:,()\[\]{}«»“”\"\n]+(?=\s|$)"
    r"|\s[–—-]\s|\n|(?<=\s)[(«“\"]"
)
_CALLED = re.compile(
    r"(?:\b(?i:hey|hi|hello|dear|thanks|thank you|bye|wow|yeah|bonjour|salut|merci|coucou),?\s|,\s)"
    r"[^\W\d_a-zà-ÿ][\w'’-]+(?=\s*[,.!?…]|$)"
)
"""A person addressed by name: the listener, not the subject."""
_BEFORE_NOUNS_TEXT = (
    "a an the my your his her its our their this these those some any each every no of in on at for with about from "
    "into by les le la l un une des du de d mon ma mes ton ta tes son sa ses notre nos votre vos leur leurs ce cet "
    "cette ces au aux dans sur pour avec par en chaque el los las una unos del al mi tu su il lo gli i uno nel nella "
    "della di o os as um uma do da dos das no na het een"
)
_BEFORE_NOUNS = frozenset(_BEFORE_NOUNS_TEXT.split())
"""Articles, possessives and prepositions."""
_WITH_ARTICLES = frozenset({"en", "fr", "es", "it", "pt", "nl"})
"""Languages in which an article before a word shows a noun."""
_ADVERB = re.compile(r"(?<!mb|mi|pp|ma|ep|on|ta)ly$", re.I)
_SHOWN_SHARE = 0.3
"""Least share of a word's places that show a noun: "match" is seen once as "the match" and ten times as a verb."""
_FEW_LETTERS = 3

# Words of conversation, not of its subject.
_CHATTER_TEXT = (
    "ok okay yes yeah yep nope please thanks thank hello hi hey bye wow oh ah hmm well really actually maybe sure "
    "great good nice cool awesome amazing wonderful fun glad happy sorry love like want need know think thought "
    "feel feeling felt look looking looks looked make makes made making take takes took taking give gives gave tell "
    "told say says said see saw seen go going goes went gone come comes came coming put let lets thing things stuff "
    "something anything nothing wait waits waiting everything someone anyone everyone way ways kind sort lot lots "
    "bit time times day days week weeks month months year years today yesterday tomorrow now recently soon always "
    "never still also even ever already again back much many first last next new old big little small long right "
    "wrong best better person people guy guys one two three keep keeps kept try trying tried help helps helped ask "
    "asked answer question definitely totally super pretty quite lately sounds sound hope hear heard don doesn didn "
    "isn wasn aren weren won wouldn couldn shouldn can't use using used find found show shows showed start started "
    "work works working file files line lines default bonjour salut merci oui non si accord bien bon bonne très "
    "trop peu beaucoup chose choses faire fais font veux veut peux peut pouvez voudrais aimerais dire dit voir vois "
    "aller va vais vas aussi encore toujours jamais déjà maintenant hier demain aujourd hui jour jours semaine mois "
    "parce puisque lorsque donc car ajouté année fois quelque quelques tout toute tous toutes génial besoin temps "
    "gens fichier fichiers ligne lignes montre trouve cherche others together lucky excited proud thankful grateful "
    "words part parts second seconds minute minutes hour hours ago moment moments asks happening happened around "
    "forward life world idea ideas place example reason point être away once half done loading shape mark another "
    "worth write writes written wrote created create creates set sets run runs running ran exit status end ends "
    "rest side number numbers word lance affiche autre autres myself yourself himself herself itself ourselves "
    "themselves pic pics photo picture "
)
_CHATTER = frozenset(_CHATTER_TEXT.split())

# Words that name something only together with another: "error" does not, "login error" does.
_VAGUE_TEXT = (
    "issue issues problem problems error errors bug bugs change changes modification modifications edit edits "
    "update updates fix fixes code function functions method methods class classes module modules variable "
    "variables value values name names type types field fields option options setting settings parameter parameters "
    "argument arguments step steps command commands output result results request requests response responses "
    "message messages text texts content contents data item items entry entries list lists object objects element "
    "elements block blocks section sections page pages folder folders directory path paths key keys test tests case "
    "cases check checks approach approaches solution solutions suggestion suggestions proposal instruction "
    "instructions requirement requirements task tasks job detail details note notes comment comments version "
    "versions original copy oldest newest latest current previous following rule rules reason end start stop begin "
    "default user users project projects app application system program script scripts setup configuration config "
    "implementation logic feature features import imports export log logs info warning warnings report reports each "
    "other both such add none null true false summary answers answer constant tool tools eight minimal real vers "
    "same different own whole entire above below nouveau nouvelle nouveaux nouvelles nouvel existant existante "
    "exemple exemples erreur erreurs problème problèmes changement changements valeur valeurs texte textes liste "
    "listes élément éléments contenu style styles étape étapes commande commandes résultat résultats réponse "
    "réponses demande demandes ligne projet fonction fonctions méthode sortie complète suite ensemble manière façon "
    "cas début fin fehler änderung änderungen wert werte seite seiten listen inhalt schritt schritte befehl befehle "
    "ergebnis ergebnisse antwort antworten frage nachricht zeile zeilen projekt funktion funktionen methode ausgabe "
    "beispiel beispiele fall ende anfang deutsch englisch"
)
_VAGUE = frozenset(_VAGUE_TEXT.split())
_DATES = frozenset(
    name.casefold()
    for table in (MONTHS, DAYS)
    for names in table.values()
    for name in names
    if name.casefold() != "may"
)

EXTRACTED_CONFIDENCE = 0.5
"""Confidence of a topic proposed from words alone."""


def words(text: str, language: str = "") -> list[str]:
    """Return the words of a text that carry meaning, as written."""
    stop = STOP_WORDS.get(language) or _ANY_STOP
    meaningful = []
    for match in _WORD.finditer(text):
        if _UNSPACED.search(match[0]):
            meaningful += _TERM.findall(match[0])
            continue
        word = _POSSESSIVE.sub("", _ELISION.sub("", match[0]))
        low = word.casefold()
        if len(low) < 2 or low in stop or low in _CHATTER or _CONTRACTION.match(word) or low.isdigit():
            continue
        meaningful.append(word)
    return meaningful


_ANY_STOP = STOP_WORDS["en"] | STOP_WORDS["fr"]


def stem(word: str) -> str:
    """Return a word case-folded and without its plural ending; enough to count its forms together."""
    low = word.casefold()
    if len(low) > _FEW_LETTERS + 1 and low.isalpha():
        for ending, singular in (
            ("ies", "y"),
            ("sses", "ss"),
            ("xes", "x"),
            ("ches", "ch"),
            ("shes", "sh"),
            ("eaux", "eau"),
            ("aux", "al"),
        ):
            if low.endswith(ending):
                return low[: -len(ending)] + singular
        if low.endswith("s") and not low.endswith(("ss", "us", "is")):
            return low[:-1]
    return low


def weights(texts: Sequence[str], language: str = "") -> dict[str, float]:
    """Return the weight of each word, by its stem: it grows with its count and the number of texts that contain it."""
    counted: Counter[str] = Counter()
    spread: Counter[str] = Counter()
    for text in texts:
        stems = [stem(word) for word in words(_without_formulas(text), language)]
        counted.update(stems)
        spread.update(set(stems))
    return {word: (1 + math.log(count)) * (1 + math.log(spread[word])) for word, count in counted.items()}


def _without_formulas(text: str) -> str:
    return replace_formulas(text, lambda _: ", ")


def key_terms(texts: Sequence[str], language: str = "", limit: int = 4, preferred: Collection[str] = ()) -> list[str]:
    """Return up to `limit` subjects of the texts: repeated phrases, names, identifiers.

    Args:
        preferred: Names, by the stems of their words, that count double where they occur.
    """
    scores: dict[str, float] = {}
    forms: dict[str, Counter[str]] = {}
    for weight, name in _candidates(texts, language):
        key = " ".join(stem(part) for part in name.split())
        scores[key] = scores.get(key, 0.0) + weight
        forms.setdefault(key, Counter())[name] += 1

    def rank(key: str) -> tuple[float, str]:
        # A phrase of two words is more specific than each of them.
        return -scores[key] * (1.6 if " " in key else 1.0) * (2 if key in preferred else 1), key

    ranked = sorted(scores, key=rank)
    chosen: list[str] = []
    for key in ranked:
        parts = set(key.split())
        if any(parts & set(other.split()) for other in chosen):
            continue
        chosen.append(key)
        if len(chosen) == limit:
            break
    return [max(forms[key], key=lambda form: (forms[key][form], form.islower(), form)) for key in chosen]


def _candidates(texts: Sequence[str], language: str) -> list[tuple[float, str]]:
    """Return the possible subjects of the texts, each with a weight for its likelihood; repeated ones repeatedly."""
    runs = {
        text: [
            run for part in _CLAUSE.split(_CALLED.sub(", ", _without_formulas(text))) for run in _runs(part, language)
        ]
        for text in dict.fromkeys(texts)
    }
    repeated = Counter(pair for of_text in runs.values() for run in of_text for pair in _pairs(run))
    nouns = _nouns([run for of_text in runs.values() for run in of_text], repeated, language)
    candidates: list[tuple[float, str]] = []
    for text in texts:
        seen: Counter[str] = Counter()
        for run in runs[text]:
            for phrase, weight in _named(run, nouns, repeated, language):
                seen[phrase.casefold()] += 1
                # A repetition within one text counts less than a phrase that several texts share.
                candidates.append((weight / seen[phrase.casefold()], phrase))
    return candidates


class _Run(msgspec.Struct, frozen=True):
    """Adjacent words of a clause that may name something.

    Attributes:
        determined: An article, a possessive or the like directly precedes the first word.
        opens: The first word is the clause's first.
    """

    words: tuple[str, ...]
    determined: bool
    opens: bool


def _runs(clause: str, language: str) -> Iterator[_Run]:
    meaningful = set(words(clause, language))
    run: list[str] = []
    determined = opens = False
    first = True
    end = 0
    before = ""
    for match in _WORD.finditer(clause):
        if _UNSPACED.search(match[0]):
            yield from (_Run((term,), True, False) for term in _TERM.findall(match[0]))
            continue
        elided = _ELISION.match(match[0]) is not None
        word = _POSSESSIVE.sub("", _ELISION.sub("", match[0])).rstrip("-'’")
        fits = word in meaningful and _may_name(word)
        if run and not (fits and match.start() - end == 1 and not elided):
            yield _Run(tuple(run), determined, opens)
            run = []
        if fits:
            if not run:
                determined = before in _BEFORE_NOUNS or _ELIDED_ARTICLE.match(match[0]) is not None
                opens = first
            run.append(word)
        first = False
        before = match[0].casefold()
        end = match.end()
    if run:
        yield _Run(tuple(run), determined, opens)


def _nouns(runs: Sequence[_Run], repeated: Mapping[str, int], language: str) -> set[str]:
    """Return the stems of the words that position or spelling shows to be nouns."""
    if language and language not in _WITH_ARTICLES and language != "de":
        return {stem(word) for run in runs for word in run.words}
    shown: Counter[str] = Counter()
    counted: Counter[str] = Counter()
    for run in runs:
        counted.update(stem(word) for word in run.words)
        shown.update(
            stem(word) for place, word in enumerate(run.words) if word[0].isupper() and (place or not run.opens)
        )
        head = _determined_head(run, repeated)
        if language != "de" and head.islower():
            shown[stem(head)] += 1
    return {word for word, count in shown.items() if count >= counted[word] * _SHOWN_SHARE}


def _determined_head(run: _Run, repeated: Mapping[str, int]) -> str:
    """Return the noun that an article before a run belongs to, empty if it is not sure.

    Of several words the last one may be a verb ("the office insists"), so only those that occur together repeatedly
    are taken for one name.
    """
    if not run.determined:
        return ""
    place = 0
    for pair in _pairs(run):
        if repeated[pair] < 2:
            break
        place += 1
    return run.words[place] if place or len(run.words) == 1 else ""


def _pairs(run: _Run) -> Iterator[str]:
    return (_form(f"{a} {b}") for a, b in itertools.pairwise(run.words))


def _named(
    run: _Run, nouns: Collection[str], repeated: Mapping[str, int], language: str
) -> Iterator[tuple[str, float]]:
    """Yield the names that a run may hold: identifiers, nouns, and nouns with the word before them."""
    for place, word in enumerate(run.words):
        if _IDENTIFIER.search(word):
            yield word, 1.2
            continue
        if stem(word) not in nouns:
            continue
        determined = run.determined or place > 0
        weight = 1.0 if determined else 0.8 if word[0].isupper() and not run.opens else 0.5
        if word.casefold() not in _VAGUE:
            yield word, weight
        before = run.words[place - 1] if place else ""
        if not before or _IDENTIFIER.search(before) or before.casefold() in _VAGUE:
            continue
        # Two words that meet once are often a subject and its verb, or two parts of the sentence.
        if language == "de" and not before[0].isupper():
            continue
        if repeated[_form(f"{before} {word}")] > 1:
            yield f"{before} {word}", weight


def unspaced(text: str) -> bool:
    """Return whether a text is in a script without spaces between words."""
    return _UNSPACED.search(text) is not None


def _may_name(word: str) -> bool:
    return (
        len(word) > 2
        and word.casefold() not in _DATES
        and not _PLACE.search(word)
        and not _ADVERB.search(word)
        and not word.startswith("_")
        and not word.endswith("_")
        and len(_LETTER.findall(word)) > 2
        and (bool(_IDENTIFIER.search(word)) or not any(char.isdigit() for char in word))
    )


def topics_of(
    texts: Sequence[str], language: str = "", limit: int = 4, known: Collection[str] = ()
) -> list[ProposedTopic]:
    """Return up to `limit` topics of the texts, as far as they have key terms; a known topic keeps its name."""
    names = {_form(name): name for name in reversed(list(known))}
    terms = key_terms(texts, language, limit, preferred=frozenset(names))
    return [ProposedTopic(name=names.get(_form(term), term), confidence=EXTRACTED_CONFIDENCE) for term in terms]


def same_forms(names: Iterable[str]) -> list[TopicLink]:
    """Return links between names that differ only in plural endings."""
    first: dict[str, str] = {}
    links = []
    for name in names:
        earlier = first.setdefault(_form(name), name)
        if topic_key(earlier) != topic_key(name):
            links.append(TopicLink(a=earlier, b=name, confidence=1.0, reason="singular and plural"))
    return links


def _form(name: str) -> str:
    return " ".join(stem(word) for word in topic_key(name).split())
