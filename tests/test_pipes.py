"""Named pipes in a workspace or in the state, as archives can hold them, neither delay a start nor an end."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from ragforge_tui.conversation.model_windows import ModelWindows
from ragforge_tui.conversation.trust.instructions import MAX_BYTES, TrustBook, WorkspaceInstructions, find_instructions
from ragforge_tui.engine.warm.launch import open_log
from ragforge_tui.engine.warm.messages import HostFiles
from ragforge_tui.graph.backup.backup_file import is_backup
from ragforge_tui.graph.content_files import FILE, ContentFiles, Text
from ragforge_tui.graph.embedded.files import ServerFiles
from ragforge_tui.graph.journal_files import JournalFolders
from ragforge_tui.settings.load import load
from ragforge_tui.shared.errors import ConfigError
from ragforge_tui.shared.git import current_branch
from ragforge_tui.shared.prompt_files import HISTORY
from ragforge_tui.tools.search.ignore import _read_spec
from ragforge_tui.tools.shell.process import end_leftovers
from ragforge_tui.tui import features
from ragforge_tui.tui.prompt.draft import Draft, workspace_key
from ragforge_tui.tui.prompt.history import Entry, History
from ragforge_tui.tui.sidebar.sidebar import FILE_NAME, Layout, load_layout
from tests.support.pty_chat import TEXTUAL, Start, close

INSTRUCTIONS = WorkspaceInstructions(root="/w", files=[], digest="d")


def _history(folder: Path) -> bool:
    prompts = History(folder, "/w")
    prompts.add(Entry("kept in this chat"))
    return prompts.older(Entry("")) == Entry("kept in this chat")


READS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "branch": (".git/HEAD", lambda folder: current_branch(folder) == ""),
    "instructions": ("AGENTS.md", lambda folder: find_instructions(folder) is None),
    "ignored files": (".gitignore", lambda folder: _read_spec(folder / ".gitignore") is None),
    "trust": ("trust.json", lambda folder: TrustBook(folder / "trust.json").answer(INSTRUCTIONS) is None),
    "windows": ("windows.json", lambda folder: ModelWindows(folder / "windows.json")),
    "features": (features.FILE_NAME, lambda folder: not features.Features(folder).used),
    "layout": (FILE_NAME, lambda folder: load_layout(folder) == Layout()),
    "draft": (f"drafts/{workspace_key('/w')}-999999999.json", lambda folder: Draft(folder, "/w").restore() is None),
    "commands": ("commands/1.json", lambda folder: end_leftovers(folder) == 0),
    "server": ("graph/server.json", lambda folder: ServerFiles(folder / "graph", folder).read_address() is None),
    "journal": ("journal/at-x/1.jsonl", lambda folder: JournalFolders(folder / "journal").waiting() == []),
    "note of a journal": ("journal/x/graph.json", lambda folder: JournalFolders(folder / "journal").waiting() == []),
    "history": (HISTORY, _history),
    "log": ("logs/engine-stderr.log", lambda folder: open_log(HostFiles(folder)) > 2),
    "backup": ("file.backup", lambda folder: not is_backup(folder / "file.backup")),
}


@pytest.mark.parametrize(("name", "read"), READS.values(), ids=READS.keys())
def test_a_pipe_is_read_as_a_missing_file(name: str, read: Callable[[Path], object], tmp_path: Path) -> None:
    pipe = tmp_path / name
    pipe.parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(pipe)
    assert read(tmp_path)


def test_settings_in_a_pipe_are_reported(tmp_path: Path) -> None:
    project = tmp_path / ".ragforge" / "config.yaml"
    project.parent.mkdir()
    os.mkfifo(project)
    with pytest.raises(ConfigError, match=r"config\.yaml: cannot be read: not a regular file"):
        load(workspace=str(tmp_path))


def test_instructions_are_read_up_to_their_limit(tmp_path: Path) -> None:
    with (tmp_path / "AGENTS.md").open("wb") as file:
        file.truncate(1 << 40)
    found = find_instructions(tmp_path)
    assert found is not None
    assert len(found.files[0][1]) <= MAX_BYTES


@pytest.mark.parametrize("kind", ["pipe", "endless", "huge"])
async def test_texts_that_are_no_file_are_lost_or_fail(kind: str, tmp_path: Path) -> None:
    files = ContentFiles(tmp_path / "contents", writes=True)
    (reference,) = await files.append("one", [Text("owner", "content", "a text")])
    path = tmp_path / "contents" / "one" / FILE
    path.unlink()
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "endless":
        path.symlink_to("/dev/zero")
    else:
        with path.open("wb") as file:
            file.truncate(1 << 40)
    try:
        assert list(await files.lost([reference.encode()])) == [reference.encode()]
        assert await files.holding("one", ["text"]) == set()
        if kind != "huge":
            with pytest.raises(OSError, match="not a regular file"):
                await files.append("one", [Text("owner", "content", "another")])
    finally:
        files.close()


def test_a_chat_in_a_folder_with_a_pipe_for_its_branch_ends(tmp_path: Path, home: Path) -> None:
    (tmp_path / ".git").mkdir()
    os.mkfifo(tmp_path / ".git" / "HEAD")
    chat = Start(home, "--workspace", str(tmp_path))
    try:
        chat.wait_for(TEXTUAL)
        chat.wait_for(b"sk, type")
        chat.type("\x11")
        assert os.WEXITSTATUS(chat.end()) == 0
    finally:
        close(chat)
