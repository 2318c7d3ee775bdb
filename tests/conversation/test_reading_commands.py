"""Commands that only read run without a question in every mode; whatever might do more is asked about."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from ragforge_tui.conversation import ConversationAgent
from ragforge_tui.conversation.approvals import pending
from ragforge_tui.conversation.approvals.reading_commands import only_reads
from ragforge_tui.settings.schema import Loaded
from ragforge_tui.shared.events import ApprovalRequested, ToolCallFinished
from ragforge_tui.shared.records import call_end
from ragforge_tui.tools.sensitive import Guard
from ragforge_tui.tools.shell.sandbox import sandbox_support
from tests.conftest import ONE_BACKEND
from tests.support.model_script import Script

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has the sandbox")


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A repository with a commit, source and a file with secrets beside it."""
    root = tmp_path.resolve() / "work"
    (root / "src").mkdir(parents=True)
    (root / "src" / "app.py").write_text("def main():\n    return 'TODO'\n")
    (root / ".env").write_text("KEY=1\n")
    (tmp_path / "outside.txt").write_text("elsewhere\n")
    git(root, "init", "-q")
    git(root, "add", "src")
    git(root, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "one")
    return root


def git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True)


def reads(command: str, root: Path) -> bool:
    return only_reads(command, Guard(root, own=[root.parent / "program"], home=root.parent / "home"))


@pytest.mark.parametrize(
    "command",
    [
        "ls -la src",
        "cat src/app.py | head -20",
        "cd src && cat app.py",
        "wc -l src/app.py; pwd",
        "grep -rn TODO src",
        "grep -n -A 3 TODO src/app.py",
        "md5sum src/app.py",
        "diff -u src/app.py src/app.py",
        "grep -rn 'def .*(' src --include='*.py'",
        'grep -n "main|TODO" src/app.py',
        "find . -name '*.py' -type f",
        "sed -n 1,40p src/app.py",
        "sort src/app.py | tail -3",
        "stat src/app.py && file src/app.py",
        "which python",
        "git status --short",
        "git log --oneline -5",
        "git diff HEAD -- src",
        "git show HEAD:src/app.py",
        "git blame src/app.py",
        "git branch -a",
        "git branch --list",
        "git stash list",
        "cat src/*.py",
        "wc -l src/*.py | sort -n | tail -3",
        "grep -rn TODO --include='*.py' src/a*",
        "cat src/ap?.py; ls *",
        "git --version && python3 --version",
    ],
)
def test_reading_commands_run_unasked(command: str, workspace: Path) -> None:
    assert reads(command, workspace)


@pytest.mark.parametrize(
    "command",
    [
        "",
        "rm src/app.py",
        "cat .env",
        "cat ../outside.txt",
        "cat /etc/passwd",
        "cd .. && cat outside.txt",
        "cd",
        "cd -",
        "cat src/app.py > copy",
        "cat .e*",
        "cat ../*",
        "cat src/../*",
        "cat src/nothing*",
        "cat 'src'/*.py",
        "cat src/*.py > copy",
        "cat /etc/*",
        "cd .. && cat *",
        "rm src/*.py",
        "cat $HOME/*",
        "cat {src}/*.py",
        "cat src/[a-z]*.py",
        "./python --version",
        "cat $HOME/x",
        'cat "$HOME"',
        'grep "`id`" src/app.py',
        "grep '\\'x' src/app.py",
        "cat 'src/app.py' '",
        "cat @src/app.py",
        "ls ../program",
        "grep -r KEY .",
        "grep -rn KEY",
        "grep -R KEY src",
        "grep -r -A 3 src",
        "grep -re src",
        "grep -d recurse KEY .",
        "grep --directories=recurse KEY .",
        "grep --recurs KEY .",
        "rg -r x src",
        "rg --follow x src",
        "diff -r . src",
        "sort --files0-from=src/app.py",
        "wc --files0=src/app.py",
        "md5sum -c src/app.py",
        "rg KEY",
        "rg --pre cat KEY src",
        "find . -delete",
        "find . -name x -exec rm {} +",
        "find / -name x",
        "find -L . -name x",
        "find . -fprint out",
        "sort -o out src/app.py",
        "sed -n 1,40w src/app.py",
        "sed -i s/a/b/ src/app.py",
        "sed -n 1,40p ../outside.txt",
        "tail -f src/app.py",
        "./ls",
        "/bin/ls",
        "tree -o out",
        "git -c core.pager=x log",
        "git log --output=out",
        "git diff --submodule=diff",
        "git grep -Ovi main",
        "git commit -m x",
        "git branch new",
        "git branch -d old",
        "git stash",
        "git checkout .",
        "git log && git push",
        "ls | xargs rm",
        "ls | sh",
        "python -c 1",
        "env",
        "make version",
        "node version",
        "python3 version",
        "ruby version",
        "go version",
        "cargo version",
        "git log --format='%h %G?'",
        "git log --pretty=format:%GS",
        "git grep --no-index KEY",
        "git grep --untracked KEY",
    ],
)
def test_other_commands_are_asked_about(command: str, workspace: Path) -> None:
    assert not reads(command, workspace)


@pytest.mark.parametrize(
    "setting",
    [
        "core.fsmonitor=./run",
        "diff.external=./run",
        "diff.x.textconv=./run",
        "filter.x.clean=./run",
        "core.hooksPath=.",
        "gpg.program=./run",
        "include.path=../more",
        "core.worktree=..",
        "extensions.worktreeConfig=true",
        "extensions.partialClone=origin",
    ],
)
def test_git_is_asked_about_where_the_repository_names_a_program(setting: str, workspace: Path) -> None:
    name, _, value = setting.partition("=")
    git(workspace, "config", name, value)
    assert not reads("git log", workspace)
    assert not reads("git status", workspace)


def test_names_that_wildcards_find_are_judged_one_by_one(workspace: Path) -> None:
    assert reads("cat src/*", workspace)
    assert reads(f"cd {workspace} && cat src/*", workspace)
    (workspace / "src" / ".env").write_text("KEY=1")
    assert reads("cat src/*", workspace), "the shell does not find names that begin with a dot"
    (workspace / "src" / "link.py").symlink_to("/etc/passwd")
    assert not reads("cat src/*", workspace)
    assert not reads("cat src/*.py", workspace)
    assert reads("cat src/a*", workspace)
    (workspace / "-delete").write_text("")
    assert not reads("ls *", workspace)


def test_git_is_asked_about_with_a_submodule(workspace: Path) -> None:
    assert reads("git status", workspace) and reads("git describe --dirty", workspace)
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=workspace, check=True, capture_output=True, text=True)
    git(workspace, "update-index", "--add", "--cacheinfo", f"160000,{head.stdout.strip()},sub")
    assert not reads("git status", workspace)
    assert not reads("git describe --dirty", workspace)
    assert not reads("cd src && git diff", workspace)


def test_git_outside_of_a_repository_is_asked_about(tmp_path: Path) -> None:
    assert not reads("git status", tmp_path.resolve())


def test_a_program_of_the_workspace_is_asked_about(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = workspace / "bin" / "wc"
    fake.parent.mkdir()
    fake.write_text("#!/bin/sh\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{fake.parent}{os.pathsep}{os.environ['PATH']}")
    assert not reads("wc -l src/app.py", workspace)
    assert reads("cat src/app.py", workspace)


def test_a_program_of_the_home_that_chooses_its_version_is_asked_about(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shim = workspace.parent / "home" / "shims" / "node"
    shim.parent.mkdir(parents=True)
    shim.write_text("#!/bin/sh\n")
    shim.chmod(0o755)
    assert reads("node --version", workspace)
    monkeypatch.setenv("PATH", f"{shim.parent}{os.pathsep}{os.environ['PATH']}")
    assert not reads("node --version", workspace)


@ONE_BACKEND
@pytest.mark.parametrize("mode", ["ask", "plan"])
async def test_they_run_in_every_mode(mode: str, loaded: Loaded, server: Script) -> None:
    folder = Path(loaded.workspace)
    await asyncio.to_thread((folder / "notes.txt").write_text, "a line\n")
    server.script(
        [
            {"tool_calls": [{"name": "run_command", "arguments": {"command": "cat notes.txt"}}]},
            {"tool_calls": [{"name": "run_command", "arguments": {"command": "touch made"}}]},
            {"text": "Done."},
        ]
    )
    asked, ends = [], []
    async with ConversationAgent(loaded, interactive=True) as agent:
        conversation = await agent.create_conversation()
        conversation.mode = mode  # type: ignore[assignment]
        async for event in conversation.stream("look"):
            if isinstance(event, ApprovalRequested):
                asked.append(event.detail)
                agent.services.approvals.answer(event.approval_id, "no")
            if isinstance(event, ToolCallFinished):
                ends.append(call_end(event.call))
    assert asked == ([] if mode == "plan" else ["touch made"])
    assert ends == ["ok", "refused"]
    assert not await asyncio.to_thread((folder / "made").exists)


@linux_only
@ONE_BACKEND
@pytest.mark.parametrize("mode", ["ask", "plan", "auto"])
async def test_what_was_taken_for_reading_and_writes_is_asked_about(
    mode: str, loaded: Loaded, server: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However wrong the judgement is, nothing happens unasked that could not be undone."""
    if sandbox_support(enabled=True).mechanism is None:
        pytest.skip("there is no sandbox here")
    monkeypatch.setattr(pending, "only_reads", lambda command, guard: True)
    monkeypatch.setenv("HOME", "/nonexistent")
    server.script(
        [{"tool_calls": [{"name": "run_command", "arguments": {"command": "touch made"}}]}, {"text": "Done."}]
    )
    asked, ends = [], []
    async with ConversationAgent(loaded, interactive=True) as agent:
        conversation = await agent.create_conversation()
        conversation.mode = mode  # type: ignore[assignment]
        async for event in conversation.stream("look"):
            if isinstance(event, ApprovalRequested):
                asked.append(event.question)
                agent.services.approvals.answer(event.approval_id, "once")
            if isinstance(event, ToolCallFinished):
                ends.append(event.call)
    made = await asyncio.to_thread((Path(loaded.workspace) / "made").exists)
    if mode == "ask":
        assert len(asked) == 1 and "It wanted more than to read" in asked[0] and "Read-only file system" in asked[0]
    else:
        assert not asked
    assert made is (mode != "plan") and call_end(ends[0]) == ("refused" if mode == "plan" else "ok")
    assert ('"sandboxed":true' in ends[0].result.result) is (mode == "auto")
