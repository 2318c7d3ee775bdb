"""Confinement: what lies outside stays out of reach, however the path is written or swapped."""

from __future__ import annotations

import errno
import json
import os
import unicodedata
from pathlib import Path

import pytest

from ragforge_tui.conversation.approvals.pending import ApprovalPolicy
from ragforge_tui.settings.schema import ToolSettings
from ragforge_tui.shared.errors import ToolError
from ragforge_tui.tools.registry import Toolbox
from ragforge_tui.tools.sensitive import is_secret
from ragforge_tui.tools.workspace import Workspace, read_bytes, write_bytes
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


def test_other_names_and_attributes_of_a_file_stay(folder: Path) -> None:
    one, other = folder / "one", folder / "other"
    one.write_text("old")
    os.link(one, other)
    write_bytes(Workspace(folder).locate("one"), b"new and longer")
    assert other.read_bytes() == b"new and longer"
    write_bytes(Workspace(folder).locate("other"), b"short")
    assert one.read_bytes() == b"short"
    other.unlink()
    if not hasattr(os, "setxattr"):
        return
    os.setxattr(one, "user.origin", b"here")
    write_bytes(Workspace(folder).locate("one"), b"again")
    assert (one.read_bytes(), os.getxattr(one, "user.origin")) == (b"again", b"here")


@pytest.mark.parametrize("error", [errno.EBUSY, errno.EACCES, errno.EXDEV])
def test_a_file_that_cannot_be_replaced_is_written_in_place(
    folder: Path, monkeypatch: pytest.MonkeyPatch, error: int
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(error, "mounted")

    (folder / "a.txt").write_text("a long old text")
    monkeypatch.setattr(os, "replace", refuse)
    write_bytes(Workspace(folder).locate("a.txt"), b"new")
    assert [(path.name, path.read_bytes()) for path in folder.iterdir()] == [("a.txt", b"new")]
    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(ToolError, match="mounted"):
        write_bytes(Workspace(folder).locate("new.txt"), b"new")


async def test_a_move_keeps_what_belongs_to_the_file_and_undo_its_mode(folder: Path, box: Toolbox, call: Call) -> None:
    (folder / "run.sh").write_text("#!/bin/sh\n")
    (folder / "run.sh").chmod(0o755)
    os.link(folder / "run.sh", folder / "same")
    await call("edit_file", path="run.sh", move_to="bin/run", old_string="sh", new_string="bash")
    assert (folder / "same").read_text() == (folder / "bin/run").read_text() == "#!/bin/bash\n"
    outcome = await call("edit_file", path="bin/run", delete=True)
    box.undo.restore(box.workspace, "bin/run", outcome.data["before"], outcome.data["after"])
    assert (folder / "bin/run").stat().st_mode & 0o100


@pytest.mark.parametrize(
    ("name", "given"),
    [
        (unicodedata.normalize("NFD", "café/menü.txt"), "café/menü.txt"),
        ("café/menü.txt", unicodedata.normalize("NFD", "café/menü.txt")),
        ("a\u00a0b/notes\u202fold.txt", "a b/notes old.txt"),
        ("l’été – “x”.txt", 'l\'e\u0301te\u0301 - "x".txt'),
    ],
)
async def test_a_name_that_looks_alike_is_found_where_only_one_can_be_meant(
    folder: Path, call: Call, name: str, given: str
) -> None:
    file = folder / name
    file.parent.mkdir(exist_ok=True)
    file.write_text("l’été\n")
    read = await call("read_file", path=given)
    assert "l’été" in read.text
    assert "looks like" in read.text
    written = await call("write_file", path=given, content="two\n")
    assert "looks like" in written.text
    assert [path.name for path in file.parent.iterdir()] == [file.name]
    assert name in (await call("glob_files", pattern=given.replace("/", "*/"))).text.replace("l*", "l")
    with pytest.raises(ToolError, match="exists"):
        await call("create_file", path=given)
    file.with_name(file.name.replace(".txt", "\u200b.txt")).write_text("three\n")
    assert "does not exist" in (await call("read_file", path=given)).text


@pytest.mark.parametrize(("encoding", "pattern"), [("cp932", "設定"), ("utf-8", "été"), ("utf-8", "l'")])
async def test_grep_reads_old_encodings_and_finds_look_alikes(
    folder: Path, call: Call, encoding: str, pattern: str
) -> None:
    text = "# 設定\n" if encoding == "cp932" else unicodedata.normalize("NFD", "l’été\n")
    (folder / "a.txt").write_bytes(text.encode(encoding))
    assert "a.txt:1:" in (await call("grep_files", pattern=pattern)).text


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


RUN_BY_THEMSELVES = (
    ".bashrc .profile .zshenv .gitconfig .config/git/config .config/autostart/a.desktop .config/systemd/user/a.service "
    ".local/bin/git .tmux.conf .vimrc usercustomize.py .ragforge/config.yaml AGENTS.md CLAUDE.md .husky/pre-commit "
    ".vscode/tasks.json .cursor/mcp.json .mcp.json .claude/settings.json .github/workflows/ci.yml .gitattributes "
    ".cargo/config.toml build.rs conftest.py tests/conftest.py mypy.ini pytest.ini noxfile.py package.json Makefile "
    "GNUmakefile bare/HEAD bare/config bare/hooks/post-checkout .git/config sub/.git/hooks/pre-commit .GIT/config "
    ".venv/bin/python node_modules/.bin/tsc .devcontainer.json .tool-versions .babelrc.json .storybook/main.js .pdbrc "
    ".config/zed/tasks.json .agents/skills/x/SKILL.md .github/copilot-instructions.md .kiro/a .anything docs/.odd/x "
    "Dockerfile compose.yaml docker-compose.dev.yml Cargo.toml mise.toml flake.nix deno.json manage.py opencode.json "
    "pyproject.toml setup.py tox.ini .pre-commit-config.yaml vite.config.ts site-packages/x.pth .zshrc sitecustomize.py"
)
ORDINARY = (
    "src/a.py README.md tests/test_a.py docs/make.md src/head.py notes/config src/package.json.md bin/tool "
    ".gitignore sub/.gitkeep .editorconfig .dockerignore a.b/c..d docs/compose.md"
)


def bare_repository(folder: Path) -> None:
    for name in ("bare/objects", "bare/refs", "notes/refs"):
        (folder / name).mkdir(parents=True)
    (folder / "bare/HEAD").write_text("ref: refs/heads/main\n")


@pytest.mark.parametrize("path", RUN_BY_THEMSELVES.split(" "))
async def test_a_file_that_runs_by_itself_is_asked_about_once(folder: Path, box: Toolbox, path: str) -> None:
    bare_repository(folder)
    need = (await box.prepare("write_file", json.dumps({"path": path, "content": "x"}))).approval
    assert need is not None
    assert ApprovalPolicy.decide(need, set(), "edits") == "ask"
    assert ApprovalPolicy.decide(need, {f"write_file:{folder}"}, "ask") == "ask"
    assert ApprovalPolicy.decide(need, {need.session_key}, "edits") == "run"
    assert "is run or obeyed by other programs" in need.why


@pytest.mark.parametrize("path", ORDINARY.split(" "))
async def test_accepted_edits_cover_an_ordinary_file(folder: Path, box: Toolbox, path: str) -> None:
    bare_repository(folder)
    need = (await box.prepare("write_file", json.dumps({"path": path, "content": "x"}))).approval
    assert need is not None and not need.why
    assert ApprovalPolicy.decide(need, set(), "edits") == "run"


async def test_the_file_that_completes_a_git_folder_is_asked_about(folder: Path, box: Toolbox) -> None:
    (folder / "x/refs").mkdir(parents=True)
    (folder / "x/HEAD").write_text("ref: refs/heads/main\n")
    need = (await box.prepare("write_file", json.dumps({"path": "x/objects/a", "content": "x"}))).approval
    assert need is not None and ApprovalPolicy.decide(need, set(), "edits") == "ask"


@pytest.mark.parametrize("path", ["config/config.yaml", "state/trust.json", "data/graph/password", "link/trust.json"])
async def test_no_mode_and_no_permission_covers_a_file_of_the_program(folder: Path, tmp_path: Path, path: str) -> None:
    (folder / "state").mkdir()
    (folder / "state/trust.json").write_text("secret word")
    (folder / "link").symlink_to("state")
    own = [str(folder / name) for name in ("config", "data", "state")]
    box = Toolbox(folder, ToolSettings(), undo_dir=tmp_path, state_dir=tmp_path, program_files=own)
    for name, arguments in (("write_file", {"path": path, "content": "x"}), ("read_file", {"path": path})):
        need = (await box.prepare(name, json.dumps(arguments))).approval
        assert need is not None and need.session_scope == ""
        for mode in ("ask", "edits", "yes"):
            assert ApprovalPolicy.decide(need, {f"{name}:{folder}", ""}, mode) == "ask"
    found = await (await box.prepare("grep_files", json.dumps({"pattern": "secret"}))).run()
    assert "secret word" not in found.text and "left out" in found.text
    await box.close()
