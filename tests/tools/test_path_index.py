"""Fuzzy search over many paths: what comes first, and that nothing that matches is missed."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragforge_tui.tools.search.matching import PathIndex

PATHS = [
    "lib/my_app/x.py",
    "src/apple.py",
    "src/app.py",
    "a/p/p.py",
    "deep/er/app.py",
    "other.txt",
    "src/wrap.py",
    "Docs/Été café.md",
    "odd\nname.txt",
]


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("app.py", ["src/app.py", "deep/er/app.py"]),
        ("src/app.py", ["src/app.py"]),
        ("app", ["src/app.py", "src/apple.py", "deep/er/app.py"]),
        ("APPL", ["src/apple.py"]),
        ("été", ["Docs/Été café.md"]),
        ("my app", ["lib/my_app/x.py"]),
        ("dap", ["deep/er/app.py"]),
        ("src/wp", ["src/wrap.py"]),
        ("odd", ["odd\nname.txt"]),
        ("", ["odd\nname.txt", "other.txt"]),
        ("zq", []),
        ("[", []),
    ],
)
def test_order_of_matches(query: str, first: list[str]) -> None:
    assert PathIndex(PATHS).best(query, 20)[: len(first) or 20] == first


def test_the_limit_and_nothing_at_all() -> None:
    assert PathIndex(PATHS).best("a", 2) == ["src/app.py", "src/apple.py"]
    assert PathIndex([]).best("a", 5) == [] == PathIndex([]).best("", 5)
    assert len(PathIndex(PATHS)) == len(PATHS)


def fits(path: str, query: str) -> bool:
    """Every letter in order."""
    letters = iter(path.lower())
    return all(letter in letters for letter in query.lower())


@given(
    st.lists(st.text("abÀ/._-日 ", min_size=1, max_size=12), unique=True, max_size=30),
    st.text("abà/._日", min_size=1, max_size=4),
)
def test_finds_exactly_what_fits(paths: list[str], query: str) -> None:
    found = PathIndex(paths).best(query, 100)
    assert sorted(found) == sorted(path for path in paths if fits(path, query))


def test_whole_pieces_of_names_before_anything_else_in_a_large_tree() -> None:
    words = ["view", "model", "store", "index", "token", "graph"]
    paths = [f"{a}{i}/{b}_{c}.py" for i in range(40) for a, b, c in itertools.permutations(words, 3)]
    index = PathIndex(paths)
    assert all(path.rpartition("/")[2].startswith("model") for path in index.best("model", 50))
    assert all("/token_model" in path for path in index.best("tokmod", 50))
    assert (
        index.best("graph39", 5) == sorted((p for p in paths if p.startswith("graph39")), key=lambda p: (len(p), p))[:5]
    )
