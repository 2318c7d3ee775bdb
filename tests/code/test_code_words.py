"""What scopes are found by: words of the index, texts of vectors."""

from __future__ import annotations

import pytest

from ragforge_tui.code.indexer import embedded_text, vocabulary
from ragforge_tui.shared.code_records import Scope
from ragforge_tui.shared.code_words import first_sentence, search_text


def scope(**fields: str) -> Scope:
    values = {"name": "freezeAll", "qualified_name": "Store.freezeAll", "file": "a.js", **fields}
    return Scope(uuid="u", kind="section" if "text" in fields else "function", start_line=1, end_line=2, **values)


@pytest.mark.parametrize(
    ("doc", "expected"),
    [
        ("Freeze v1.2 objects. Slowly.", "Freeze v1.2 objects"),
        ("* Freeze\n * all of them\n * @param {object} x", "Freeze all of them"),
        ("@returns nothing", ""),
        ("", ""),
    ],
)
def test_the_first_sentence_of_documentation(doc: str, expected: str) -> None:
    assert first_sentence(doc) == expected


def test_a_vector_is_made_of_name_and_first_sentence() -> None:
    assert embedded_text(scope(doc="Make it immutable. More.", signature="freezeAll(x)")) == (
        "store freeze all. Make it immutable"
    )
    assert embedded_text(scope()) == "store freeze all"
    assert embedded_text(scope(text="Some  text")) == "store freeze all: Some text"


def test_a_scope_is_found_by_what_its_file_is_about_with_each_word_once() -> None:
    words = search_text(scope(doc="Make immutable."), "immutable things of things").split()
    assert words.count("things") == words.count("immutable") == 1
    assert "things" not in search_text(scope(doc="Make immutable."))


def test_the_vocabulary_is_words_of_prose() -> None:
    found = vocabulary(scope(doc="Make x2 an immutable id."))
    assert {"freeze", "all", "make", "immutable"} <= found
    assert found.isdisjoint({"x2", "id"})
