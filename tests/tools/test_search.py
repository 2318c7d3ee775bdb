"""Listing, globbing, grepping and finding files by name."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from ragforge_tui.settings.schema import ToolSettings
from ragforge_tui.shared.errors import ToolError
from ragforge_tui.tools.registry import Toolbox
from ragforge_tui.tools.search.ignore import IgnoreRules
from ragforge_tui.tools.search.listing import expand_braces
from ragforge_tui.tools.search.matching import best_matches, list_files, match_files
from tests.support.waiting import until
from tests.tools.conftest import Call


def git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", "-C", str(folder), *arguments], check=True)


def make_bad_name(folder: Path) -> None:
    """A file whose name is no valid UTF-8."""
    os.close(os.open(os.fsencode(folder) + b"/bad\xff.txt", os.O_CREAT | os.O_WRONLY))


@pytest.fixture
def tree(folder: Path) -> Path:
    """A small project with ignored, binary, secret, hidden and odd files."""
    files = {
        ".gitignore": "*.log\n/build/\nnode_modules\n!keep.log\n",
        "src/app.py": "import os\n\ndef main():\n    return 'needle'\n",
        "src/.gitignore": "generated_*\n",
        "src/generated_x.py": "needle\n",
        "src/test_app.ts": "needle in ts\n",
        "docs/guide.md": "A Needle, and a needle.\r\nnext\r\n",
        "app.log": "needle\n",
        "keep.log": "needle kept\n",
        "build/out.txt": "needle\n",
        "src/build/inner.txt": "needle inner\n",
        "node_modules/lib/index.js": "needle\n",
        ".hidden/config": "needle hidden\n",
        ".env": "needle=secret\n",
    }
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content.encode())
    (folder / "data.bin").write_bytes(b"needle\n\x00\x01 needle\n")
    (folder / "wide.txt").write_bytes(b"\xff\xfe" + "needle wide\n".encode("utf-16-le"))
    (folder / "link.txt").symlink_to("docs/guide.md")
    return folder


@pytest.fixture(params=["rg", "own reader"])
def reader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """With ripgrep on PATH, and without."""
    if request.param == "rg" and shutil.which("rg") is None:
        pytest.skip("ripgrep is not installed")
    if request.param == "own reader":
        monkeypatch.setenv("PATH", str(tmp_path))
    return str(request.param)


@pytest.mark.usefixtures("reader", "tree")
async def test_grep_gives_the_same_lines_with_either_reader(call: Call) -> None:
    outcome = await call("grep_files", pattern="needle")
    assert outcome.text.splitlines() == [
        ".hidden/config:1: needle hidden",
        "docs/guide.md:1: A Needle, and a needle.",
        "keep.log:1: needle kept",
        "src/app.py:4:     return 'needle'",
        "src/build/inner.txt:1: needle inner",
        "src/test_app.ts:1: needle in ts",
        "wide.txt:1: needle wide",
        "[Files that may contain keys or passwords were left out.]",
    ]
    assert [access.path for access in outcome.files][:2] == [".hidden/config", "docs/guide.md"]
    assert {access.access for access in outcome.files} == {"search"}


@pytest.mark.usefixtures("reader", "tree")
@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"pattern": "^a needle", "ignore_case": True}, ["docs/guide.md:1: A Needle, and a needle."]),
        ({"pattern": "needle\\.$"}, ["docs/guide.md:1: A Needle, and a needle."]),
        ({"pattern": "needle", "include": "*.{py,ts}"}, ["src/app.py:4:     return 'needle'"]),
        ({"pattern": "needle", "path": "src/build"}, ["src/build/inner.txt:1: needle inner"]),
        ({"pattern": "needle", "path": "build"}, ["build/out.txt:1: needle"]),
        ({"pattern": "needle", "path": "node_modules"}, ["node_modules/lib/index.js:1: needle"]),
        ({"pattern": "needle", "path": "app.log"}, ["app.log:1: needle"]),
        ({"pattern": "main("}, ["src/app.py:3: def main():"]),
        ({"pattern": "(?<=return )'needle"}, ["src/app.py:4:     return 'needle'"]),
        ({"pattern": "no such thing"}, ["No line matches no such thing."]),
        ({"pattern": "needle", "path": ".env"}, ["No line matches needle."]),
        ({"pattern": "--files", "path": "docs"}, ["No line matches --files."]),
    ],
)
async def test_grep_options(call: Call, arguments: dict[str, object], expected: list[str]) -> None:
    lines = (await call("grep_files", **arguments)).text.splitlines()
    assert lines[: len(expected)] == expected


@pytest.mark.usefixtures("reader")
async def test_grep_caps_matches_and_lines(folder: Path, call: Call) -> None:
    (folder / "many.txt").write_text("needle\n" * 3_000)
    (folder / "minified.js").write_text("x" * 50_000 + "needle")
    outcome = await call("grep_files", pattern="needle")
    assert "3001 matches in 2 files; the first 250 are shown." in outcome.text
    assert len(outcome.text) < 10_000
    assert "[line cut]" in (await call("grep_files", pattern="needle", path="minified.js")).text


@pytest.mark.usefixtures("reader")
async def test_grep_leaves_out_the_users_patterns_and_shows_escapes(folder: Path, tmp_path: Path) -> None:
    settings = ToolSettings(ignore=["vendor/", "*.min.js"])
    box = Toolbox(folder, settings, undo_dir=tmp_path / "undo", state_dir=tmp_path / "state")
    for path in ("vendor/a.txt", "a.min.js", "a.txt"):
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_text("needle \x1b[31m\n")
    outcome = await (await box.prepare("grep_files", '{"pattern": "needle"}')).run()
    assert outcome.text == "a.txt:1: needle ␛[31m"


@pytest.mark.usefixtures("tree")
async def test_list_directory(call: Call) -> None:
    lines = (await call("list_directory")).text.splitlines()
    assert lines[:3] == [".hidden/", "build/ (ignored)", "docs/"]
    assert ".git/" not in lines
    assert "app.log (7 B) (ignored)" in lines
    assert "link.txt -> docs/guide.md" in lines
    deep = (await call("list_directory", path="src", depth=3)).text.splitlines()
    assert deep == [
        "build/",
        "  inner.txt (13 B)",
        ".gitignore (12 B)",
        "app.py (43 B)",
        "generated_x.py (7 B) (ignored)",
        "test_app.ts (13 B)",
    ]


async def test_list_directory_of_no_folder(folder: Path, box: Toolbox, call: Call) -> None:
    (folder / "a.txt").write_text("x")
    (folder / "empty").mkdir()
    for path in ("a.txt", "nope"):
        with pytest.raises(ToolError):
            await box.prepare("list_directory", json.dumps({"path": path}))
    assert (await call("list_directory", path="empty")).text == "empty is empty."


@pytest.mark.usefixtures("tree")
@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        ("*.py", "", ["src/app.py"]),
        ("**/*.{ts,md}", "", ["docs/guide.md", "src/test_app.ts"]),
        ("src/*.py", "", ["src/app.py"]),
        ("*.py", "src", ["src/app.py"]),
        ("./docs/**", "", ["docs/guide.md"]),
        ("*.nothing", "", ["No file matches *.nothing."]),
        ("!*.py", "", ["No file matches !*.py."]),
    ],
)
async def test_glob(call: Call, pattern: str, path: str, expected: list[str]) -> None:
    assert (await call("glob_files", pattern=pattern, path=path)).text.splitlines() == expected


def test_braces() -> None:
    assert expand_braces("a.{b,c}{d,e}") == ["a.bd", "a.be", "a.cd", "a.ce"]
    assert len(expand_braces("{a,b}" * 30)) <= 65


@pytest.mark.usefixtures("tree")
async def test_search_files_by_name(call: Call) -> None:
    assert (await call("search_files", query="app.py")).text.splitlines()[0] == "src/app.py"
    assert (await call("search_files", query="gdmd")).text == "docs/guide.md"
    assert "No file" in (await call("search_files", query="zzz")).text


def test_best_matches_come_first() -> None:
    paths = ["lib/my_app/x.py", "src/apple.py", "src/app.py", "a/p/p.py", "deep/er/app.py", "other.txt"]
    assert best_matches(paths, "app.py", 3) == ["src/app.py", "deep/er/app.py", "src/apple.py"]
    assert best_matches(paths, "", 2) == ["other.txt", "src/app.py"]


def test_names_that_are_no_text_do_no_harm(folder: Path) -> None:
    (folder / "good.txt").write_text("x")
    make_bad_name(folder)
    (folder / "evil\x1b[2J.txt").write_text("x")
    assert list_files(folder, []) == ["good.txt"]


async def test_odd_names_in_listings(folder: Path, call: Call) -> None:
    make_bad_name(folder)
    (folder / "evil\x1b[2J\n.txt").write_text("x")
    text = (await call("list_directory")).text
    assert "\x1b" not in text
    text.encode()
    (await call("glob_files", pattern="*")).text.encode()


async def test_folders_are_matched_too(tmp_path: Path) -> None:
    for path in ("src/app.py", "src/web/page.py", "src/web/deep/x.py", "docs/src.md", "a b/c.txt", "web.txt"):
        place = tmp_path / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text("x", encoding="utf-8")

    async def found(query: str) -> list[str]:
        return await match_files(tmp_path, query, [], 20, folders=True)

    assert (await found("src"))[:2] == ["src/", "docs/src.md"]
    assert (await found("web"))[:2] == ["src/web/", "web.txt"]
    assert (await found("src/"))[:3] == ["src/", "src/app.py", "src/web/"]
    assert (await found("src/w"))[:2] == ["src/web/", "src/web/page.py"]
    assert (await found("src/web/"))[:3] == ["src/web/", "src/web/page.py", "src/web/deep/"]
    assert (await found("page"))[0] == "src/web/page.py"
    everything = await found("")
    assert everything[0] == "web.txt" and "src/" in everything and len(everything) == len(set(everything))
    assert not [path for path in await match_files(tmp_path, "src", [], 20) if path.endswith("/")]


@pytest.mark.parametrize("repository", [True, False])
async def test_match_files(tree: Path, repository: bool) -> None:
    if repository:
        git(tree, "init", "-q")
        git(tree, "add", "src/app.py")
    found = await match_files(tree, "app", ["*.ts"], 10)
    assert found == ["src/app.py"]
    assert "keep.log" in await match_files(tree, "", [], 50)
    (tree / "src/app.py").unlink()
    assert await match_files(tree, "app", ["*.ts"], 10) == []


async def test_repository_settings_run_no_program(tree: Path) -> None:
    git(tree, "init", "-q")
    hook = tree / "hook.sh"
    hook.write_text(f"#!/bin/sh\ntouch {tree}/pwned\n")
    hook.chmod(0o755)
    git(tree, "config", "core.fsmonitor", str(hook))
    assert "src/app.py" in await match_files(tree, "app.py", [], 10)
    assert not (tree / "pwned").exists()


def test_rules_of_the_repository_above_count(folder: Path) -> None:
    (folder / ".git" / "info").mkdir(parents=True)
    (folder / ".git" / "info" / "exclude").write_text("excluded.txt\n")
    (folder / ".gitignore").write_text("sub/ignored.txt\n*.tmp\n")
    (folder / "sub").mkdir()
    for name in ("ignored.txt", "excluded.txt", "a.tmp", "seen.txt"):
        (folder / "sub" / name).write_text("x")
    assert [entry.path for entry in IgnoreRules(folder / "sub", []).walk()] == ["seen.txt"]


async def test_a_list_of_files_is_renewed_next_to_the_keys(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ragforge_tui.tools.search.matching._FRESH_SECONDS", 0.0)
    monkeypatch.setattr("ragforge_tui.tools.search.matching._SHARE", 0)
    (folder / "first.txt").write_text("")
    assert await match_files(folder, "", [], 0) == []
    (folder / "second.txt").write_text("")
    (folder / "first.txt").unlink()

    async def renewed() -> bool:
        return await match_files(folder, "txt", [], 5) == ["second.txt"]

    await until(renewed)


async def test_a_folder_that_begins_as_typed_comes_before_files_with_that_letter_somewhere(tmp_path: Path) -> None:
    for name in ("src/config.py", "src/engine.py", "src/graph/store.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    found = await match_files(tmp_path, "src/g", [], 20, folders=True)
    assert found[0] == "src/graph/"
    (tmp_path / "src/grep.py").write_text("x")
    assert (await match_files(tmp_path, "src/con", [], 20, folders=True))[0] == "src/config.py"
