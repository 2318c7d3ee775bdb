"""Patterns of .gitignore: they match what git matches, and no pattern holds up the program."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ragforge_tui.shared.errors import ToolError
from ragforge_tui.tools.search import ignore
from ragforge_tui.tools.search.gitignore import Patterns
from ragforge_tui.tools.search.ignore import IgnoreRules
from ragforge_tui.tools.search.matching import list_files
from tests.tools.conftest import Call

EXPLODING = "*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b"
"""As a plain regular expression it needs longer than anybody waits for a name of 200 a."""
PATTERNS = [
    *("*", "**", "*/", "**/", "/*", "/**", "/", "//", "!", "a//", "***"),
    *(
        "a",
        "/a",
        "a/",
        "/a/",
        "a/b",
        "/a/b",
        "a/b/",
        "a/*",
        "a/**",
        "a/**/b",
        "**/a",
        "**/a/b",
        "**/a/**/b",
        "a/**/**/b",
    ),
    *("*/b", "*/*", "**/*", "a*/b", "a**/b", "a**", "a/b**", "a/b**/c", "*a*", "*a*b*", "?", "??", "a?", "a/?/b"),
    *("[ab]", "[a-b]", "[!a]", "[^a]", "[]a]", "[!]a]", "[a", "a]", "[a-]", "[-a]", "[b-a]", "[!b-a]", "[a\\]]*"),
    *("[[:alpha:]]", "[[:digit:]b]", "[![:alpha:]]*", "[[:wrong:]]", "[[:]", "[[:alpha]", "a[/]b", "[--c]*"),
    *("\\a", "\\*", "\\?", "\\#a", "#a", "\\!a", "a\\", "a/\\", "a\\ ", "a ", " a", "a\r", "*é", "?é", "caf?", "[é]*"),
    *(
        "a/*\n!a/b",
        "*\n!a\n!*/",
        "a/\n!a/b",
        "!a\na",
        "a\n!a",
        "*.c\n!b.c",
        "/*\n!/a\n/a/*\n!/a/b",
        "#\n\na",
        "**\n!**/",
    ),
]


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with a few hundred files and folders of short names."""
    root = tmp_path_factory.mktemp("repository")
    subprocess.run(["git", "init", "--quiet", str(root)], check=True)
    chosen = random.Random(11)
    fixed = [
        "a/b/c",
        "b/a/b",
        "ab/cb",
        "a b",
        "a ",
        " a",
        "#a",
        "!a",
        "a*/b",
        "b.c",
        "é",
        "é/aé",
        "café",
        "]",
        "a]/a",
        "-",
    ]
    drawn = ["/".join("".join(chosen.choices("abc", k=chosen.randint(1, 3))) for _ in range(4)) for _ in range(120)]
    for path in (*fixed, *drawn):
        place = root / "/".join(path.split("/")[: chosen.randint(1, 4)] if path in drawn else path.split("/"))
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.touch()
        except OSError:
            continue  # a file of that name is where a folder would be
    return root


def paths_below(root: Path) -> dict[str, bool]:
    """Every path below a folder and whether it is a folder; git's own are left out."""
    below = [
        path for path in root.rglob("*") if ".git" not in path.relative_to(root).parts and path.name != ".gitignore"
    ]
    return {path.relative_to(root).as_posix(): path.is_dir() for path in below}


def ignored_by_git(root: Path, rules: str, paths: list[str]) -> set[str]:
    (root / ".gitignore").write_bytes(rules.encode())
    given_to_git = "\0".join(paths).encode()
    command = ["git", "-C", str(root), "check-ignore", "--no-index", "-z", "--stdin"]
    done = subprocess.run(command, input=given_to_git, capture_output=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    return set(done.stdout.decode().split("\0")) - {""}


def assert_agrees(root: Path, rules: str) -> None:
    paths = paths_below(root)
    patterns = Patterns(rules.split("\n"))
    ours = {path for path, is_folder in paths.items() if patterns.covers(path, is_folder=is_folder)}
    assert ours == ignored_by_git(root, rules, list(paths))


@pytest.mark.parametrize("rules", PATTERNS)
def test_a_pattern_matches_what_it_matches_in_git(repository: Path, rules: str) -> None:
    assert_agrees(repository, rules)


_PIECES = st.sampled_from(
    [
        "a",
        "b",
        "c",
        "ab",
        "é",
        "*",
        "**",
        "?",
        "[ab]",
        "[!a]",
        "[^b]",
        "[a-c]",
        "[]a]",
        "[[:alpha:]]",
        "[b-a]",
        "[",
        "\\a",
    ]
)
_NAMES = st.lists(_PIECES, min_size=1, max_size=4).map("".join) | st.just("**")
_LINES = st.tuples(
    st.sampled_from(["", "", "/", "!", "!/"]),
    st.lists(_NAMES, min_size=1, max_size=4).map("/".join),
    st.sampled_from(["", "", "/", " ", "\\ "]),
).map("".join)


@given(lines=st.lists(_LINES, min_size=1, max_size=4))
@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
def test_any_patterns_match_what_they_match_in_git(repository: Path, lines: list[str]) -> None:
    assert_agrees(repository, "\n".join(lines))


def test_rules_of_sub_folders_and_links_agree_with_git(repository: Path) -> None:
    """The walk, which reads rules folder by folder, finds the files git would list."""
    nested = repository / "a" / ".gitignore"
    nested.write_text("*\n!b/\n!b/c\n")
    (repository / ".gitignore").write_text("/b\n[!a]a*\n**/cc\n!.gitignore\n")
    try:
        command = ["git", "-C", str(repository), "ls-files", "-z", "--others", "--exclude-standard"]
        listed = subprocess.run(command, capture_output=True, check=True).stdout.decode().split("\0")
        walked = [entry.path for entry in IgnoreRules(repository, []).walk() if not entry.is_folder]
        assert sorted(walked) == sorted(path for path in listed if path)
    finally:
        nested.unlink()


def in_bounded_time(code: str, *arguments: str) -> str:
    """Run Python in another process, which can be ended where a frozen thread of this one could not."""
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        (EXPLODING, "a" * 200),
        (EXPLODING + "/c", "a" * 200 + "/c"),
        ("*" + "[ab]*" * 40 + "c", "ab" * 100),
        ("**/" + "a/**/" * 30 + "b", "a/" * 100 + "c"),
        ("**/*a*/**/*a*/**/*a*/**/*a*/**/b", "aaaa/" * 60 + "c"),
        ("**" * 40 + "/**/" * 20 + "x", "a/" * 100 + "y"),
    ],
    ids=["name", "folder", "brackets", "stars between slashes", "folders", "many stars"],
)
def test_no_pattern_backtracks_for_ever(pattern: str, path: str) -> None:
    code = "import sys; from ragforge_tui.tools.search.gitignore import Patterns; "
    code += "print(Patterns([sys.argv[1]]).covers(sys.argv[2]))"
    assert in_bounded_time(code, pattern, path) == "False\n"


def test_a_hostile_gitignore_does_not_hold_up_the_list_of_files(folder: Path) -> None:
    (folder / ".gitignore").write_text(EXPLODING + "\n")
    (folder / ("a" * 200)).touch()
    code = "import sys; from pathlib import Path; from ragforge_tui.tools.search.matching import list_files; "
    code += "print(len(list_files(Path(sys.argv[1]), [])))"
    assert in_bounded_time(code, str(folder)) == "2\n"


def test_a_pattern_of_the_user_covers_what_is_below_a_folder(folder: Path) -> None:
    (folder / "vendor" / "lib").mkdir(parents=True)
    (folder / "vendor" / "lib" / "x.py").touch()
    (folder / "x.py").touch()
    subprocess.run(["git", "init", "--quiet", str(folder)], check=True)
    assert list_files(folder, ["vendor/"]) == ["x.py"]
    assert list_files(folder, ["/x.py", "lib"]) == []


async def test_a_hostile_glob_is_answered(call: Call, folder: Path) -> None:
    (folder / ("a" * 200)).touch()
    assert (await call("glob_files", pattern="{" + EXPLODING + ",x}")).text.startswith("No file matches")
    for pattern in ("[a", "a\\", "x" * 5_000):
        with pytest.raises(ToolError, match="Give a pattern such as"):
            await call("glob_files", pattern=pattern)


def test_braces_without_an_end_are_read_once() -> None:
    code = "from ragforge_tui.tools.search.listing import expand_braces; print(len(expand_braces('{' + ',' * 400_000)))"
    assert in_bounded_time(code) == "1\n"


async def test_a_question_mark_of_a_glob_is_one_character(call: Call, folder: Path) -> None:
    (folder / "café.txt").touch()
    assert (await call("glob_files", pattern="caf?.txt")).text == "café.txt"


async def test_a_search_that_runs_out_of_time_reports_it(
    call: Call, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "found.txt").write_text("needle\n")
    monkeypatch.setattr(ignore, "WALK_SECONDS", -1.0)
    assert "Stopped after" in (await call("glob_files", pattern="*.txt")).text
    assert "Stopped after" in (await call("search_files", query="found")).text


def test_a_very_deep_path_is_only_a_path() -> None:
    assert Patterns(["b"]).covers("a/" * 2_000 + "b")
    assert not Patterns(["b"]).covers("a/" * 200_000 + "b")


def test_names_that_are_no_text_are_matched_byte_by_byte(folder: Path) -> None:
    (folder / ".gitignore").write_bytes(b"\xff*\n")
    os.close(os.open(os.fsencode(folder) + b"/\xffx", os.O_CREAT | os.O_WRONLY))
    (folder / "seen").touch()
    names = [entry.path for entry in IgnoreRules(folder, []).walk()]
    assert names == [".gitignore", "seen"]
