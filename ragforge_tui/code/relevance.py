"""Relevance floor of the code in a request's context: a message that needs no code gets none.

A scope matters if the message names it, or if most words of the message's subject occur in its name, documentation and
path, one of them in the name.
"""

from __future__ import annotations

from collections.abc import Sequence

from ragforge_tui.code.mentions import Name, fits, names_in
from ragforge_tui.code.query_words import query_words, stem_set
from ragforge_tui.memory.language import language_of
from ragforge_tui.memory.retrieval.recipes import CONTEXT
from ragforge_tui.memory.retrieval.terms import asked_words
from ragforge_tui.shared.code_records import Scope, ScopeHit

FEWEST_WORDS = 2
"""Words of the message that a scope which is not named must hold."""


def relevant(message: str, hits: Sequence[ScopeHit]) -> list[Scope]:
    """Return the scopes that matter for a message, in their order; those it names come first."""
    words = query_words(" ".join(asked_words(message, language_of(message))))
    asked = [stem_set(word) for word in words]
    names = names_in(message)
    named = [hit.scope for hit in hits if any(_is_named(name, hit.scope) for name in names)]
    told = [hit.scope for hit in hits if _is_told(asked, hit.scope)]
    found = {scope.uuid: scope for scope in [*named, *told]}
    return list(found.values())[: CONTEXT.scopes.limit]


def _is_named(name: Name, scope: Scope) -> bool:
    if scope.kind in ("module", "section"):
        return False
    return name.last == scope.name and (len(name.parts) == 1 or fits(name, scope))


def _is_told(asked: Sequence[set[str]], scope: Scope) -> bool:
    name = stem_set(scope.name if scope.kind == "module" else scope.qualified_name or scope.name)
    other = stem_set(f"{scope.doc} {scope.file}")
    in_name = sum(not word.isdisjoint(name) for word in asked)
    held = sum(not word.isdisjoint(name | other) for word in asked)
    return in_name > 0 and held >= max(FEWEST_WORDS, CONTEXT.scopes.share * len(asked))


def can_matter(message: str) -> bool:
    """Return whether a message may need code at all, before anything is searched."""
    return bool(names_in(message)) or len(asked_words(message, language_of(message))) >= FEWEST_WORDS
