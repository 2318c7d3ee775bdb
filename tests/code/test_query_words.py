"""Words of questions about code."""

from __future__ import annotations

import pytest

from ragforge_tui.code.query_words import query_words, word_stems


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("Where is the function that validates the config?", ["validates", "config"]),
        ("où sont écrits les fichiers de cache ?", ["écrits", "fichiers", "cache"]),
        ("Wo wird die Adresse geprüft?", ["adresse", "geprüft"]),
        ("all URLs of HTTP2Server", ["urls", "http2server", "http", "server"]),
        ("parseURL", ["parseurl", "parse", "url"]),
        ("what is this", ["what", "is", "this"]),
        ("", []),
    ],
)
def test_words_that_tell_nothing_are_left_out(question: str, words: list[str]) -> None:
    assert query_words(question) == words


def test_words_of_a_name_and_of_prose_have_one_stem() -> None:
    assert set(word_stems("validates configurations")) <= set(word_stems("validateConfiguration"))
