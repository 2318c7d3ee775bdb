"""Words of past questions as aliases of the code their turns read, changed or named.

Who asked "why are the amounts off by a cent" and was led to `parse` will ask so again. A question's words find the code
it was about with little weight; names and documentation count more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from ragforge_tui.code.query_words import is_plain, query_words
from ragforge_tui.graph import Store
from ragforge_tui.graph.store.scope_words import AskedScope
from ragforge_tui.memory.language import language_of
from ragforge_tui.memory.prose import user_prose
from ragforge_tui.memory.retrieval.terms import asked_words
from ragforge_tui.shared.code_words import code_words

MOST_WORDS = 24
MOST_SCOPES = 500
"""Scopes whose aliases are made at once."""


async def note_aliases(store: Store, uuids: Sequence[str]) -> None:
    """Make the aliases of scopes again from all questions about them."""
    for start in range(0, len(uuids), MOST_SCOPES):
        asked = await store.scope_words.asked(uuids[start : start + MOST_SCOPES])
        await store.scope_words.set_aliases({scope.uuid: aliases_of(scope) for scope in asked})


async def rebuild_aliases(store: Store, workspace: str) -> None:
    """Make the aliases that a workspace's scopes lack, as after a conversation that had asked was deleted."""
    before: list[str] = []
    while (due := await store.scope_words.without_aliases(workspace, MOST_SCOPES)) and due != before:
        await note_aliases(store, due)
        before = due


def aliases_of(scope: AskedScope) -> str:
    """Return the words asked most, the newest first among equals, without those of the scope's own name."""
    own = set(code_words(scope.name))
    counted: Counter[str] = Counter()
    for question in scope.questions:
        prose = user_prose(question)
        words = query_words(" ".join(asked_words(prose, language_of(prose))))
        counted.update(word for word in dict.fromkeys(words) if is_plain(word) and word not in own)
    return " ".join(word for word, _ in counted.most_common(MOST_WORDS))
