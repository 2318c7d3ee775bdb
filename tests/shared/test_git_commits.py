"""Commits of a repository: those that are new, those of a file, and the one of a line."""

from __future__ import annotations

from datetime import timedelta, timezone
from pathlib import Path

import pytest

from ragforge_tui.shared import git
from tests.support.repositories import git as run_git
from tests.support.repositories import repository

TIMEOUT = 10.0


def test_commits_since_some_tips(tmp_path: Path) -> None:
    folder = repository(tmp_path / "work")
    before = git.branch_tips(folder, timeout=TIMEOUT)
    assert before is not None and git.commits_since(folder, before, most=9, timeout=TIMEOUT) == []
    run_git(folder, "checkout", "-qb", "side")
    (folder / "sub").mkdir()
    (folder / "sub" / "a b.txt").write_text("one\n")
    run_git(folder, "add", ".")
    run_git(folder, "commit", "-qm", "One\n\nRagforge-Conversation: 1234abcd t7")
    run_git(folder, "checkout", "-q", "main")
    (commit,) = git.commits_since(folder, before, most=9, timeout=TIMEOUT)
    assert (commit.subject, commit.author, commit.trailer) == ("One", "Ada", "1234abcd t7")
    clone = tmp_path / "clone"
    run_git(tmp_path, "clone", "-q", str(folder), str(clone))
    tips = git.branch_tips(clone, timeout=TIMEOUT)
    (folder / "b.txt").write_text("b\n")
    run_git(folder, "add", ".")
    run_git(folder, "commit", "-qm", "Elsewhere")
    run_git(clone, "pull", "-q")
    assert tips is not None and git.commits_since(clone, tips, most=9, timeout=TIMEOUT) == [], "pulled, not made"
    assert git.branch_tips(tmp_path, timeout=TIMEOUT) is None


def test_the_commits_of_lines(tmp_path: Path) -> None:
    run_git(tmp_path, "init", "-q")
    empty = git.branch_tips(tmp_path, timeout=TIMEOUT)
    assert empty == frozenset()
    assert git.blame(tmp_path, "start.txt", timeout=TIMEOUT) == git.FileBlame()
    folder = repository(tmp_path)
    (commit,) = git.commits_since(folder, empty, most=9, timeout=TIMEOUT)
    assert git.blame(folder, "start.txt", timeout=TIMEOUT) == git.FileBlame([commit.hash], ["start.txt"])
    (folder / "start.txt").write_text("  start\nmore\n")
    changed = git.blame(folder, "start.txt", timeout=TIMEOUT)
    assert changed is not None and changed.commits == [commit.hash, ""], "white space is not a change"
    (folder / "new.txt").write_text("new\n")
    assert git.blame(folder, "new.txt", timeout=TIMEOUT) == git.FileBlame()
    assert git.blame(folder, "start.txt", timeout=-1.0) is None, "git took longer"
    assert git.commits_by_hash(folder, [commit.hash], timeout=TIMEOUT) == {commit.hash: commit}
    assert git.commits_by_hash(folder, [], timeout=TIMEOUT) == {}
    assert git.commits_by_hash(folder, ["--output=made"], timeout=TIMEOUT) == {}
    assert not (folder / "made").exists()


def test_the_names_that_a_file_had(tmp_path: Path) -> None:
    folder = repository(tmp_path)
    (folder / "sub").mkdir()
    (folder / "sub" / "grün.txt").write_text("one\ntwo\nthree\n")
    run_git(folder, "add", ".")
    run_git(folder, "commit", "-qm", "Made")
    run_git(folder, "mv", "sub/grün.txt", "sub/blau.txt")
    staged = git.blame(folder, "sub/blau.txt", timeout=TIMEOUT)
    assert staged is not None and len({*staged.commits}) == 1 and "sub/grün.txt" in staged.names
    run_git(folder, "commit", "-qm", "Renamed")
    found = git.blame(folder / "sub", "blau.txt", timeout=TIMEOUT)
    assert found is not None and found.commits == staged.commits and found.names == ["grün.txt"]


@pytest.mark.parametrize("moment", ["@99999999999999 +0000", "@1700000000 +9999", "@0 -9999", "@253402300799 +1400"])
def test_odd_dates_and_encodings(tmp_path: Path, moment: str) -> None:
    folder = repository(tmp_path)
    before = git.branch_tips(folder, timeout=TIMEOUT)
    run_git(folder, "config", "i18n.logOutputEncoding", "UTF-16")
    tree = run_git(folder, "rev-parse", "HEAD^{tree}")
    who = f"Bea <bea@example.org> {moment.removeprefix('@')}"
    text = f"tree {tree}\nparent {run_git(folder, 'rev-parse', 'HEAD')}\nauthor {who}\ncommitter {who}\n\nGrün\n"
    (folder / "commit").write_text(text)
    run_git(folder, "reset", "-q", run_git(folder, "hash-object", "-t", "commit", "-w", "--literally", "commit"))
    assert before is not None
    (commit,) = git.commits_since(folder, before, most=9, timeout=TIMEOUT)
    assert (commit.subject, commit.author) == ("Grün", "Bea")
    assert 1970 <= commit.committed_at.year <= 9999
    assert commit.committed_at.astimezone(timezone(timedelta(hours=14))).year <= 9999


@pytest.mark.parametrize("printed", ["", "x", "1" * 5000])
def test_a_time_that_git_cannot_print(printed: str) -> None:
    assert git._time_of(printed).year == 1970
