"""Recipes: how each kind of question is answered, as values.

Every search takes the same way: the question is prepared (`question`), sources return candidates (`candidates`), these
are ranked (`ranking`), and what fits is packed (`packing`). A recipe says which sources are asked, how their candidates
are weighed, how relevant they must be and how many are wanted.

Views that a weight may name: `words`, the score of the full-text indexes; `cosine`; `share`, that of the question's
words, rare ones counting more; `relevance`, which is explained in `ranking`; and those that a source adds.
Measurements: benchmarks/RECALL.md and benchmarks/CODE_SEARCH.md.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

RELEVANT = 1.4
"""Relevance from which something is recalled: a rare word in common and some similarity, or words or meaning alone if
they match that much better."""

KNOWN_TURNS = 100
"""Turns of a graph from which the rarity of a word says how telling it is."""


class Pick(msgspec.Struct, frozen=True, kw_only=True):
    """Choice among the candidates of one source.

    Attributes:
        asked: Candidates requested from each index.
        keyless: Also search turns that have no keys yet, by their text.
        weights: Weight of each view in the score.
        scaled: Views are weighed in standard deviations from their mean, because their units differ.
        floor: Least relevance.
        small: Added to the floor in an empty graph, and less in each larger one up to `KNOWN_TURNS`: in a young graph
            every word is rare, so everything has a little to do with everything.
        gap: Share of the best relevance below which candidates are left out.
        share: Least share of the question's words.
        by_words: The vectors alone do not count: a word must be shared.
        one_is_enough: All candidates count as soon as one of them is relevant.
        tail: Share of the best score below which candidates are left out.
        distinct: Of candidates with the same text the best counts.
        limit: Most candidates to keep; 0 for no limit.
    """

    asked: int = 0
    keyless: bool = False
    weights: Mapping[str, float] = {}
    scaled: bool = False
    floor: float = 0.0
    small: float = 0.0
    gap: float = 0.0
    share: float = 0.0
    by_words: bool = False
    one_is_enough: bool = False
    tail: float = 0.0
    distinct: bool = False
    limit: int = 0


_UNUSED = Pick()


class Recipe(msgspec.Struct, frozen=True, kw_only=True):
    """Way to answer one kind of question; sources that are not named are not asked.

    Attributes:
        own: Turns of the conversation that asks.
        loading: Those of them that are not in memory yet, from the graph.
        turns: Turns of other conversations.
        summaries: Summaries of all these conversations.
        findings: Findings of these summaries.
        scopes: Code and text files.
        merged: Candidates of all sources in one list.
    """

    own: Pick = _UNUSED
    loading: Pick = _UNUSED
    turns: Pick = _UNUSED
    summaries: Pick = _UNUSED
    findings: Pick = _UNUSED
    scopes: Pick = _UNUSED
    merged: Pick = _UNUSED


_FOREIGN = {"words": 1.0, "cosine": 1.0}
_RELEVANCE = {"relevance": 1.0}
_OWN = {
    "turn": 0.5,
    "window": 1.0,
    "sitting": 0.75,
    "cosine": 0.5,
    "pooled": 0.75,
    "summaries": 0.2,
    "facts": 0.5,
}
"""Views of the index of an open conversation. How little the weights matter: benchmarks/RECALL.md."""

CONTEXT = Recipe(
    # One relevant turn makes the others worth their place. LoCoMo dev loses half a point with a tail of 0.2.
    own=Pick(asked=150, weights=_OWN, scaled=True, floor=RELEVANT, one_is_enough=True, tail=0.1),
    loading=Pick(asked=30, keyless=True, weights=_FOREIGN, scaled=True, floor=RELEVANT, limit=60),
    # Unlike turns of this conversation, those of others are no context by default: each must be relevant itself.
    # Two rare words in a young graph, and none that is less than half as relevant as the best.
    turns=Pick(asked=20, weights=_FOREIGN, scaled=True, floor=RELEVANT, small=1.0, gap=0.5, limit=60),
    # Their number is a setting, their scores also depend on level and age.
    summaries=Pick(asked=20, weights=_RELEVANCE, floor=RELEVANT),
    # A finding has no vector of its own.
    findings=Pick(weights=_RELEVANCE, floor=RELEVANT, by_words=True, distinct=True, limit=6),
    # Those that the message names, and those whose name, documentation and path have this share of its words.
    scopes=Pick(asked=20, share=0.5, limit=6),
)
"""What a message needs of earlier turns and of code, for its request."""
ASKED_PAST = 1.0
"""Relevance from which something is recalled if the user asks for the past: a rare word in common."""
OWN_PAST = msgspec.structs.replace(CONTEXT.own, floor=ASKED_PAST)
"""Turns of this conversation for a message that asks for the past."""
MOST_OTHER_TURNS, MOST_OTHER_TOKENS = 3, 1_500
"""Turns of other conversations in a request, and tokens of these and of their summaries, unless a message asks for the
past."""

_SPOKEN = Pick(asked=40, keyless=True, weights={"words": 1.0}, by_words=True)
HISTORY = Recipe(
    own=_SPOKEN,
    turns=_SPOKEN,
    summaries=Pick(asked=20),
    findings=Pick(weights={"share": 1.0}, share=0.5, by_words=True, distinct=True, limit=5),
)
"""The tool search_history, by words alone: findings, then turns of this conversation and others alternately."""

PAST = Recipe(
    turns=Pick(asked=50, weights=_FOREIGN, scaled=True, floor=ASKED_PAST, limit=60),
    summaries=Pick(asked=20),
    findings=Pick(weights=_RELEVANCE, floor=RELEVANT, by_words=True, distinct=True),
    # Of turns that are about as relevant, the one with the better sentences comes first.
    merged=Pick(weights={"relevance": 1.0, "sentences": 0.5}),
)
"""A question to all past conversations."""

CODE = Recipe(
    scopes=Pick(
        asked=100,
        weights={
            "words": 2.5,
            "meaning": 2.5,
            "name": 0.3,
            "named": 2.0,
            "everything": 0.5,
            "phrase": 0.5,
            "path": 0.2,
            "test": -0.6,
            "module": -0.4,
        },
    ),
)
"""Scopes of the workspace by name, words and meaning. All views are between 0 and 1."""

BRAIN = Recipe(
    own=Pick(asked=30),
    turns=Pick(asked=30),
    summaries=Pick(asked=10),
    scopes=msgspec.structs.replace(CODE.scopes, limit=30),
    # Scores of two searches cannot be compared, so all are merged by what every text has. `preferred` is the lead of
    # the kinds a question asks for; a turn has the words themselves, a summary and a topic only tell of it.
    merged=Pick(weights={"share": 1.0, "cosine": 1.0, "preferred": 0.5, "summary": -0.1, "topic": -0.2}),
)
"""The tool brain_search: code, text files, turns, summaries and topics in one list."""

DESCRIBED_FLOOR, NAMED_FLOOR = 2 / 3, 4 / 3
"""Least cosine of a topic with and without a description, as a multiple of `recall.min_score`. Measured with the local
model over 15 topics, 24 queries on them and 22 on nothing: with descriptions, queries scored up to 0.16 on nothing and
0.18 (99 %) on other topics; names alone 0.36 and 0.38, since a single word resembles many."""
