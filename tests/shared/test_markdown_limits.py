"""Brackets that open no link, and signs that begin no formula, cost a bounded time."""

from __future__ import annotations

import pytest
from markdown_it import MarkdownIt

from ragforge_tui.shared import formulas as of_formulas
from ragforge_tui.shared.formulas import formulas
from ragforge_tui.shared.markdown_limits import MOST_FAILED, bound_links
from ragforge_tui.tui.transcript.markdown import words_of


def links_in(text: str) -> tuple[int, dict[str, int]]:
    env: dict[str, int] = {}
    parser = MarkdownIt("commonmark").use(bound_links)
    tokens = parser.parse(text, env)
    return sum(child.type in ("link_open", "image") for token in tokens for child in token.children or ()), env


@pytest.mark.parametrize("sign", ["[", "![", "[a](", "[[a](", "![["])
def test_the_search_for_links_ends(sign: str) -> None:
    _, env = links_in(sign * (10 * MOST_FAILED))
    assert max(value for value in env.values() if isinstance(value, int)) < MOST_FAILED + 100  # and those it is within


def test_real_links_are_all_found_and_brackets_stay_words() -> None:
    assert links_in("[one](https://a.example), ![two](b.png), [no]\n\n" * MOST_FAILED)[0] == 2 * MOST_FAILED
    assert words_of("[" * 3 * MOST_FAILED) == "[" * 3 * MOST_FAILED


def test_the_search_for_formulas_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[int] = []
    monkeypatch.setattr(of_formulas, "formula_at", lambda text, place, end: tried.append(place))
    assert not list(formulas("\\(" * 50_000)) and len(tried) == of_formulas._MOST_FAILED
