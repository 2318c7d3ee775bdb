"""Confinement: what lies outside stays out of reach, however the path is written or swapped."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from ragforge_tui.shared.errors import ToolError
from ragforge_tui.tools.registry import Toolbox
from ragforge_tui.tools.workspace import Workspace, is_secret, read_bytes, write_bytes
from tests.tools.conftest import Call


@pytest.mark.parametrize(
    "path", ["..", "../outside.txt", "a/../../outside.txt", "/etc/passwd", "out/outside.txt", "out", "~/x", "a\0b"]
)
def test_paths_that_lead_outside_are_refused(folder: Path, path: str) -> None:
    (folder.parent / "outside.txt").write_text("secret")
    (folder / "a").mkdir()
    (folder / "out").symlink_to(folder.parent)
    with pytest.raises(ToolError, match=r"outside the workspace|not a path"):
        Workspace(folder).locate(path)


@pytest.mark.parametrize("tool", ["read_file", "write_file", "create_file", "list_directory", "grep_files"])
async def test_every_file_tool_is_confined(folder: Path, box: Toolbox, tool: str) -> None:
    (folder / "link").symlink_to(folder.parent / "not-there-yet.txt")
    for path in ("../x", "link", "/etc"):
        with pytest.raises(ToolError, match="outside the workspace"):
            await box.prepare(tool, json.dumps({"path": path, "content": "x", "pattern": "x"}))


def test_paths_inside_are_found_however_they_are_written(folder: Path) -> None:
    (folder / "real").mkdir()
    (folder / "real" / "a.txt").write_text("x")
    (folder / "link").symlink_to("real")
    workspace = Workspace(folder)
    for path in ("real/a.txt", "./real/../real/a.txt", str(folder / "real/a.txt"), "link/a.txt"):
        assert workspace.locate(path).relative == "real/a.txt"
    assert workspace.locate("").relative == "."
    assert workspace.locate("new/deep/file.txt").relative == "new/deep/file.txt"


def test_workspace_given_by_a_symlink(folder: Path) -> None:
    alias = folder.parent / "alias"
    alias.symlink_to(folder)
    (folder / "a.txt").write_text("x")
    assert Workspace(alias).locate(str(alias / "a.txt")).relative == "a.txt"


def test_folder_swapped_for_a_symlink_after_the_check(folder: Path) -> None:
    outside = folder.parent / "outside"
    outside.mkdir()
    (outside / "a.txt").write_text("secret")
    (folder / "sub").mkdir()
    (folder / "sub" / "a.txt").write_text("mine")
    place = Workspace(folder).locate("sub/a.txt")
    (folder / "sub" / "a.txt").unlink()
    (folder / "sub").rmdir()
    (folder / "sub").symlink_to(outside)
    with pytest.raises(ToolError):
        read_bytes(place)
    with pytest.raises(ToolError):
        write_bytes(place, b"overwritten")
    assert (outside / "a.txt").read_text() == "secret"


async def test_file_swapped_for_a_symlink_between_approval_and_write(folder: Path, box: Toolbox) -> None:
    victim = folder.parent / "victim.txt"
    victim.write_text("untouched")
    prepared = await box.prepare("write_file", '{"path": "a.txt", "content": "evil"}')
    (folder / "a.txt").symlink_to(victim)
    outcome = await prepared.run()
    assert not outcome.success
    assert victim.read_text() == "untouched"


async def test_writing_through_an_inner_symlink_keeps_the_link(folder: Path, call: Call) -> None:
    (folder / "real.txt").write_text("old")
    (folder / "link.txt").symlink_to("real.txt")
    assert (await call("write_file", path="link.txt", content="new")).success
    assert (folder / "link.txt").is_symlink()
    assert (folder / "real.txt").read_text() == "new"


async def test_named_pipe_is_refused_without_waiting(folder: Path, call: Call) -> None:
    os.mkfifo(folder / "pipe")
    outcome = await call("read_file", path="pipe")
    assert "not a regular file" in outcome.text


def test_write_is_atomic_and_keeps_the_mode(folder: Path) -> None:
    script = folder / "run.sh"
    script.write_text("old")
    script.chmod(0o751)
    write_bytes(Workspace(folder).locate("run.sh"), b"new")
    assert script.read_bytes() == b"new"
    assert script.stat().st_mode & 0o777 == 0o751
    assert [path.name for path in folder.iterdir()] == ["run.sh"]


def test_symlink_loop(folder: Path) -> None:
    (folder / "loop").symlink_to("loop")
    with pytest.raises(ToolError):
        read_bytes(Workspace(folder).locate("loop"))


@pytest.mark.parametrize(
    "path",
    [
        ".env",
        "a/.env.local",
        "prod.env",
        "server.pem",
        "id_rsa",
        "keys/id_ed25519",
        ".ssh/config",
        "x/.aws/credentials",
        "credentials.json",
        "SECRETS.yaml",
        ".netrc",
        "ID_RSA.bak",
        "terraform.tfstate",
        "gcp-credentials.json",
    ],
)
def test_secret_names(path: str) -> None:
    assert is_secret(path)


@pytest.mark.parametrize("path", [".", "", ".env.example", "id_rsa.pub", "secrets.py", "credentials.py", "keyboard.py"])
def test_names_that_are_no_secret(path: str) -> None:
    assert not is_secret(path)


async def test_reading_a_secret_file_asks_also_through_a_link(folder: Path, box: Toolbox) -> None:
    (folder / ".env").write_text("A=1")
    (folder / "notes.txt").symlink_to(".env")
    for path in (".env", "notes.txt"):
        prepared = await box.prepare("read_file", json.dumps({"path": path}))
        assert prepared.approval is not None
        assert prepared.approval.kind == "secret"
        assert prepared.approval.detail == ".env"
