"""Commits of a repository: those that are new, those of a file, and the one of a line."""

from __future__ import annotations

from pathlib import Path

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
    tip = run_git(folder, "rev-parse", "HEAD")
    assert git.files_of_commit(folder / "sub", tip, timeout=TIMEOUT) == ["a b.txt"]
    run_git(folder, "checkout", "-q", "main")
    (commit,) = git.commits_since(folder, before, most=9, timeout=TIMEOUT)
    assert (commit.subject, commit.author, commit.trailer) == ("One", "Ada", "1234abcd t7")
    assert git.files_of_commit(folder, commit.hash, timeout=TIMEOUT) == ["sub/a b.txt"]
    clone = tmp_path / "clone"
    run_git(tmp_path, "clone", "-q", str(folder), str(clone))
    tips = git.branch_tips(clone, timeout=TIMEOUT)
    (folder / "b.txt").write_text("b\n")
    run_git(folder, "add", ".")
    run_git(folder, "commit", "-qm", "Elsewhere")
    run_git(clone, "pull", "-q")
    assert tips is not None and git.commits_since(clone, tips, most=9, timeout=TIMEOUT) == [], "pulled, not made"
    assert git.branch_tips(tmp_path, timeout=TIMEOUT) is None


def test_the_first_commit_of_a_repository_and_the_commit_of_a_line(tmp_path: Path) -> None:
    run_git(tmp_path, "init", "-q")
    empty = git.branch_tips(tmp_path, timeout=TIMEOUT)
    assert empty == frozenset()
    folder = repository(tmp_path)
    (commit,) = git.commits_since(folder, empty, most=9, timeout=TIMEOUT)
    assert git.commit_of_line(folder, "start.txt", 1, timeout=TIMEOUT) == (commit, "start")
    (folder / "start.txt").write_text("start\nmore\n")
    assert git.commit_of_line(folder, "start.txt", 2, timeout=TIMEOUT) == (None, "more")
    assert git.commit_of_line(folder, "start.txt", 3, timeout=TIMEOUT) is None
    assert git.commits_of_file(folder, "start.txt", most=9, timeout=TIMEOUT) == [commit]
    assert git.commits_of_file(folder, "none.txt", most=9, timeout=TIMEOUT) == []
