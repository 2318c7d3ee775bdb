"""JSON as models write it and as it was stored."""

from __future__ import annotations

import time

import pytest

from ragforge_tui.shared.json_text import find_object, json_object, parse_json, repaired_object


@pytest.mark.parametrize(
    "text",
    ['{"a": "x\ny"}', '```json\n{"a": "x\\ny"}\n```', '"{\\"a\\": \\"x\\\\ny\\"}"', ' {"a": "x\\ny"} '],
)
def test_slips_of_models_are_read(text: str) -> None:
    assert parse_json(text) == json_object(text) == {"a": "x\ny"}


@pytest.mark.parametrize("text", ["", "[1]", "7", '{"a": ', "[" * 100_000, '{"a":' * 200 + "1" + "}" * 200, "\ud800"])
def test_anything_else_is_an_empty_object(text: str) -> None:
    assert json_object(text) == {}


def test_a_value_that_is_no_json_is_an_error() -> None:
    for text in ("", "words", "[" * 100_000):
        with pytest.raises(ValueError, match=r".+"):
            parse_json(text)


def test_repair_ends_in_time_and_never_raises() -> None:
    assert repaired_object("{'a': 1,") == {"a": 1}
    started = time.process_time()
    for text in ("", "no object", "{" * 1_000, '{"a":' * 400, '{"' * 1_000, "{" + "\\" * 1_999, "\ud800{", "{" * 2_000):
        assert isinstance(repaired_object(text), dict)
    assert time.process_time() - started < 5


def test_the_object_with_the_key_is_found_in_prose() -> None:
    text = 'Sure: {"plan": 1} and {"answer": [1, 2,],}.'
    assert find_object(text, "answer") == {"answer": [1, 2]}
    assert find_object(text, "other") == {"plan": 1}
    assert find_object("none", "answer") is None
