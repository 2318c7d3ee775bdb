"""Rules of the resolver that hold for all languages, and resolving only what a change affects."""

# ruff: noqa: E501 (sources are easier to read in lines of their own)

from __future__ import annotations

import random
import sys
from types import FrameType

import pytest

from ragforge_tui.code import resolver as resolver_module
from ragforge_tui.code.parsed import ParsedFile
from ragforge_tui.code.resolver import Resolver
from tests.support.code_index import Sources, as_texts, parsed


def test_a_name_that_a_library_owns_is_not_looked_for_in_the_workspace() -> None:
    sources = Sources(
        **{
            "a.py": "import json\nfrom unittest import TestCase\n\nclass T(TestCase):\n    def test(self):\n"
            "        self.check()\n        json.loads('1')\n",
            "b.py": "class Other:\n    def check(self): ...\n    def loads(self): ...\n",
        }
    )
    assert sources.edges("calls") == set()
    assert sources.unresolved("calls") == {"unittest.TestCase.check", "json.loads"}


def test_an_own_attribute_is_not_that_of_a_library_that_the_class_extends() -> None:
    sources = Sources(
        **{
            "a.py": "from collections.abc import Sequence\n\nclass Page(Sequence):\n    def __init__(self, book):\n"
            "        self.book = book\n\n    def next(self):\n        return self.book.leaf(), self.shelf.leaf()\n",
            "b.py": "class Book:\n    def leaf(self): ...\n",
        }
    )
    assert sources.edges("calls") == {"a.py:Page.next -> b.py:Book.leaf"}
    assert sources.unresolved("calls") == {"collections.abc.Sequence.shelf.leaf"}


def test_a_name_only_match_is_less_certain_the_more_methods_have_the_name() -> None:
    def classes(count: int) -> str:
        return "".join(f"class C{number}:\n    def paint(self): ...\n" for number in range(count))

    use = "def f(x):\n    x.paint()\n    x.get(1)\n"
    one = Sources(**{"use.py": use, "lib.py": classes(1)})
    assert one.confidence("use.py:f -> lib.py:C0.paint") == 0.5
    two = Sources(**{"use.py": use, "lib.py": classes(2)})
    assert two.confidence("use.py:f -> lib.py:C1.paint") == 0.25
    near = Sources(**{"use.py": "import lib\n" + use, "lib.py": classes(1), "far.py": classes(1)})
    assert near.confidence("use.py:f -> lib.py:C0.paint") == 0.6
    many = Sources(**{"use.py": use, "lib.py": classes(5)})
    assert many.edges("calls") == set()
    assert many.unresolved("calls") == {"x.paint", "x.get"}


def test_a_method_of_collections_is_no_clue() -> None:
    sources = Sources(
        **{"a.py": "class Cache:\n    def get(self, k): ...\n\ndef f(x):\n    x.get(1)\n    Cache().get(2)\n"}
    )
    assert sources.edges("calls") == {"a.py:f -> a.py:Cache", "a.py:f -> a.py:Cache.get"}
    assert sources.confidence("a.py:f -> a.py:Cache.get") == 1.0


def test_a_local_variable_hides_an_import() -> None:
    sources = Sources(
        **{
            "a.py": "from b import store\n\ndef f(store):\n    store()\n\ndef g():\n    store()\n",
            "b.py": "def store(): ...\n",
        }
    )
    assert sources.edges("calls") == {"a.py:g -> b.py:store"}


def test_cycles_of_imports_and_bases_end() -> None:
    sources = Sources(
        **{
            "p/__init__.py": "from .a import *\nfrom .b import x\n",
            "p/a.py": "from p import *\nfrom p import x as y\n\nclass A(B): ...\nclass B(A): ...\n\ndef f():\n    y()\n    A().gone()\n",
            "p/b.py": "from p.a import x\nfrom p import *\nx = x\n",
        }
    )
    assert "p/a.py:f -> p/a.py:A" in sources.edges("calls")


def test_the_same_file_name_in_two_packages() -> None:
    sources = Sources(
        **{
            "a/__init__.py": "",
            "a/util.py": "def f(): ...\n",
            "a/use.py": "from .util import f\nf()\n",
            "b/__init__.py": "",
            "b/util.py": "def f(): ...\n",
            "b/use.py": "from b.util import f\nf()\n",
            "src/c/__init__.py": "",
            "src/c/one.py": "from c.two import g\ng()\n",
            "src/c/two.py": "def g(): ...\n",
        }
    )
    assert sources.edges("calls") == {
        "a/use.py -> a/util.py:f",
        "b/use.py -> b/util.py:f",
        "src/c/one.py -> src/c/two.py:g",
    }


def test_an_unrelated_change_affects_no_other_file() -> None:
    files = {
        "a.py": parsed("a.py", "def f():\n    return 1\n"),
        "b.py": parsed("b.py", "from a import f\n\ndef g():\n    return f()\n"),
        "c.py": parsed("c.py", "def h():\n    return 2\n"),
    }
    resolver = Resolver("w", files)
    assert resolver.update({"a.py": parsed("a.py", "def f():\n    x = 2\n    return x\n")}) == {"a.py"}
    assert resolver.update({"a.py": parsed("a.py", "def f2():\n    return 1\n")}) == {"a.py", "b.py"}
    assert resolver.update({"a.py": None}) == {"b.py"}


_PIECES = {
    "a.py": [
        "class A:\n    def go(self): ...\n",
        "class A:\n    def run(self): ...\n",
        "from d import A\n",
        "A = 1\n",
        "",
    ],
    "b.py": [
        "from a import A as B\n",
        "from a import *\n",
        "from p import A as B\n",
        "class B:\n    def go(self): ...\n",
    ],
    "c.py": [
        "from b import B\nclass C(B):\n    x = B()\n",
        "class C:\n    def go(self): ...\n",
        "from b import *\nC = A\n",
    ],
    "d.py": [
        "class A:\n    def go(self): ...\n    def walk(self): ...\n",
        "def make() -> 'C': ...\nfrom c import C\n",
        "",
    ],
    "p/__init__.py": ["from .q import A\n", "from .q import *\n", ""],
    "p/q.py": ["from a import A\n", "class A:\n    def run(self): ...\n", "from d import A\n"],
    "use.py": [
        "import p\nfrom c import C\nfrom d import make\n\ndef f(y: C):\n    C().go()\n    y.x.run()\n    make().walk()\n    p.A().run()\n",
        "from b import B\n\ndef f():\n    B().go()\n    B.run()\n",
    ],
}


@pytest.mark.parametrize("seed", range(12))
def test_resolving_only_what_a_change_affects_gives_what_resolving_all_gives(seed: int) -> None:
    choose = random.Random(seed)
    files: dict[str, ParsedFile] = {path: parsed(path, pieces[0]) for path, pieces in _PIECES.items()}
    resolver = Resolver("w", files)
    stored = {path: resolver.resolve([path]) for path in files}
    for _ in range(12):
        path = choose.choice(sorted(_PIECES))
        changed = None if choose.random() < 0.15 else parsed(path, choose.choice(_PIECES[path]))
        if changed is None:
            files.pop(path, None)
            stored.pop(path, None)
        else:
            files[path] = changed
        for affected in resolver.update({path: changed}):
            stored[affected] = resolver.resolve([affected])
        kept: set[str] = set()
        for result in stored.values():
            kept |= as_texts(files, result)
        assert kept == as_texts(files, Resolver("w", files).resolve())


def _stars(count: int) -> dict[str, str]:
    names = [f"m{number}" for number in range(count)]
    return {
        f"{name}.py": "\n".join(f"from {other} import *" for other in names if other != name)
        + f"\n\ndef own_{name}():\n    own_{names[position - 1]}()\n    missing()\n"
        for position, name in enumerate(names)
    }


def test_star_imports_of_all_files_by_all_take_steps_for_each_file_alone() -> None:
    few, many = Sources(**_stars(10)), Sources(**_stars(40))
    assert "m5.py:own_m5 -> m4.py:own_m4" in many.edges("calls")
    assert "missing" in many.unresolved()
    # The sixteenfold number of imports and four times the files; beyond n³ it was more than a hundredfold.
    assert _work(many) < 30 * _work(few)


def _work(sources: Sources) -> int:
    """Return the calls of functions of the resolver for the references of all files."""
    calls = 0

    def count(frame: FrameType, event: str, _: object) -> None:
        nonlocal calls
        calls += event == "call" and frame.f_code.co_filename.endswith("resolver.py")

    resolver = Resolver("w", sources.files)
    sys.setprofile(count)
    try:
        resolver.resolve()
    finally:
        sys.setprofile(None)
    return calls


def test_names_that_lead_in_circles_end_after_their_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resolver_module, "MOST_STEPS", 2_000)
    names = [f"m{number}" for number in range(14)]
    circles = {
        f"{name}.py": "\n".join(f"from {other} import x" for other in names if other != name)
        + "\n\ndef own():\n    x()\n"
        for name in names
    }
    # All ways through fourteen files, 14! of them, were followed.
    sources = Sources(**circles)
    assert "x" in sources.unresolved()


def test_a_long_chain_of_imports_does_not_exhaust_the_stack() -> None:
    chain = {f"m{n}.py": f"from m{n + 1} import x\n\ndef own():\n    x()\n" for n in range(400)}
    sources = Sources(**chain, **{"m400.py": "def x():\n    pass\n"})
    assert "m399.py:own -> m400.py:x" in sources.edges("calls")
