"""Order of scopes for a question: names, words, phrases, tests, typing errors."""

from __future__ import annotations

import pytest

from ragforge_tui.code.search import is_test, one_typo, parse, rank, similar_words
from ragforge_tui.shared.code_records import Scope, ScopeHit, ScopeKind


def scope(name: str, file: str = "src/app.py", kind: ScopeKind = "function", **fields: str) -> Scope:
    """Return a scope; its qualified name is its name."""
    values = {"qualified_name": name, **fields}
    last = name.rpartition(".")[2]
    return Scope(uuid=f"{file}:{name}", name=last, kind=kind, file=file, start_line=1, end_line=9, **values)


def ranked(question: str, *scopes: Scope, words: float = 1.0) -> list[str]:
    """Return the qualified names of candidates that the indexes rate alike, best first."""
    return [hit.scope.qualified_name for hit in rank(parse(question), [ScopeHit(scope=s, words=words) for s in scopes])]


@pytest.mark.parametrize(
    "question",
    ["parse_url", "where is parse_url defined", "parseURL", "ParseUrl", "parse url", "parse_ulr"],
)
def test_a_name_comes_first_however_it_is_spelled(question: str) -> None:
    others = [scope("parse"), scope("parse_url_query"), scope("url_parser"), scope("run", doc="Calls parse_url.")]
    assert ranked(question, *others, scope("parse_url"))[0] == "parse_url"


def test_a_qualified_name_decides_between_methods_of_one_name() -> None:
    found = ranked("Session.send", scope("Mailer.send"), scope("Session.send"), scope("Session"))
    assert found[0] == "Session.send"


def test_documentation_answers_a_question_in_other_words() -> None:
    found = ranked(
        "wait before asking a busy server again",
        scope("limit_rate", doc="Wait before the server is asked again."),
        scope("serve", doc="Answer requests."),
    )
    assert found[0] == "limit_rate"


def test_a_message_is_found_where_it_stands_word_by_word() -> None:
    found = ranked(
        "end port must not be less than start port",
        scope("start_port", doc="The start port and the end port of a port range."),
        scope("parse", text='raise ValueError("end port must not be less than start port")'),
    )
    assert found[0] == "parse"


def test_tests_come_last_unless_the_question_asks_for_them() -> None:
    code, test = scope("merge_trees"), scope("test_merge_trees", file="tests/test_trees.py")
    assert ranked("merge trees", test, code) == ["merge_trees", "test_merge_trees"]
    assert ranked("tests of merge trees", code, test) == ["test_merge_trees", "merge_trees"]


def test_similarity_decides_between_scopes_without_common_words() -> None:
    near, far = scope("near"), scope("far")
    hits = [ScopeHit(scope=far, meaning=0.1), ScopeHit(scope=near, meaning=0.6), ScopeHit(scope=scope("unknown"))]
    assert rank(parse("something else entirely"), hits)[0].scope is near


def test_ranking_nothing_gives_nothing() -> None:
    assert rank(parse("anything"), []) == []


def test_a_question_is_split_into_words_and_names() -> None:
    asked = parse("Where is the BuildEnvironment.relfn2path function of http_server tested?")
    assert asked.names == ["BuildEnvironment.relfn2path", "http_server"]
    assert asked.tests and "test" not in asked.stems
    assert "environ" in asked.stems and "function" not in asked.stems
    assert parse("send").names == ["send"]
    assert parse("Where is it?").words


@pytest.mark.parametrize(
    ("first", "second", "alike"),
    [
        ("stable", "stbale", True),
        ("stable", "stale", True),
        ("stable", "stables", True),
        ("stable", "staple", True),
        ("stable", "stable", True),
        ("stable", "tables", False),
        ("stable", "stapel", False),
        ("", "a", True),
        ("ab", "ba", True),
        ("abc", "cba", False),
    ],
)
def test_one_typing_error(first: str, second: str, alike: bool) -> None:
    assert one_typo(first, second) is alike
    assert one_typo(second, first) is alike


@pytest.mark.parametrize(
    ("file", "name", "expected"),
    [
        ("tests/app.py", "run", True),
        ("pkg/server_test.go", "run", True),
        ("lib/reply.test.js", "run", True),
        ("src/test_app.py", "helper", True),
        ("src/app.py", "test_run", True),
        ("src/testing_room.py", "run", False),
        ("src/latest.py", "attest", False),
        ("src/protest.go", "Run", False),
    ],
)
def test_tests_are_known_by_folder_file_or_name(file: str, name: str, expected: bool) -> None:
    assert is_test(scope(name, file)) is expected


def test_a_word_counts_as_similar_once_a_stem_and_by_its_cosine() -> None:
    near = [
        [("freeze", 0.9), ("freezes", 0.8), ("immutably", 0.8), ("value", 0.5)],
        [("freeze", 0.7), ("item", 0.6)],
    ]
    weights = similar_words(["immutable", "object"], near)
    assert weights == pytest.approx({"freeze": 0.6, "item": 0.1})
    assert similar_words(["immutable"], []) == {}
