"""Words of questions about code, and stems by which they are compared with scopes.

The full-text index holds the words of `shared/code_words.py` and stems them itself. The ranking compares stems made
here, for questions and scopes alike.
"""

from __future__ import annotations

import re
from functools import lru_cache

from ragforge_tui.memory.language import STOP_WORDS, language_of
from ragforge_tui.memory.retrieval.terms import FALLBACK, stems
from ragforge_tui.shared.code_words import code_words

SHORTEST_PLAIN = 3
LONGEST_PLAIN = 19
_RUN = re.compile(r"\w+")
_ASKING = frozenset(
    word
    for words in (
        "class code defined definition file files find function functions implemented locate located method methods "
        "module place show source",
        "classe cherche code cherchez définie défini fichier fonction ligne méthode trouve trouver trouvé",
        "datei finde funktion funktionen klasse methode quellcode stelle zeige zeile",
    )
    for word in words.split()
)
"""Words that ask for code without telling which."""


def query_words(query: str) -> list[str]:
    """Return the words to search for, each once: without the stop words of the query's language.

    A query of such words alone keeps them.
    """
    stop = STOP_WORDS[FALLBACK] | STOP_WORDS.get(language_of(query), frozenset()) | _ASKING
    words = list(dict.fromkeys(code_words(query)))
    return [word for word in words if word not in stop] or words


def is_plain(word: str) -> bool:
    """Return whether a word is one of prose, not a name, an abbreviation or data."""
    return word.isalpha() and SHORTEST_PLAIN <= len(word) <= LONGEST_PLAIN


def word_stems(text: str) -> list[str]:
    """Return the stems of a text's words, in order: identifiers whole and by their words."""
    return [stem for run in _RUN.findall(text) for stem in _stems_of(run)]


def stem_set(text: str) -> set[str]:
    """Return the different stems of a text's words."""
    return {stem for run in set(_RUN.findall(text)) for stem in _stems_of(run)}


@lru_cache(maxsize=20_000)
def _stems_of(run: str) -> tuple[str, ...]:
    """Return the stems of one identifier; ranking meets the same ones in most candidates of most questions."""
    return tuple(stems(code_words(run), FALLBACK))
