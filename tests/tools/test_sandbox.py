"""The sandbox of the mode auto: what a command can do there, on each mechanism, and what asks."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shlex
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from ragforge_tui.conversation import ConversationAgent
from ragforge_tui.engine import connect_in_process
from ragforge_tui.settings.schema import Loaded, ToolSettings
from ragforge_tui.shared.events import ApprovalRequested, Notice, ToolCallFinished
from ragforge_tui.shared.records import call_end
from ragforge_tui.shared.requests.turns import CreateConversation
from ragforge_tui.shared.requests.work import SetMode
from ragforge_tui.shared.tool_calls import result_text
from ragforge_tui.tools.base import SandboxRefusal, Walls, sandboxed
from ragforge_tui.tools.registry import Toolbox
from ragforge_tui.tools.sensitive import Guard
from ragforge_tui.tools.shell import sandbox
from ragforge_tui.tools.shell.confinement import Confinement, Mechanism, Support
from ragforge_tui.tools.shell.protected import Protected
from ragforge_tui.tools.shell.sandbox import Sandbox
from ragforge_tui.tools.shell.survey import Survey, secrets_of_home
from tests.conftest import ONE_BACKEND
from tests.support.model_script import Script

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has the sandbox")

REFUSED = {
    "write outside": "echo x > {outside}/file",
    "write in the home": "echo x > {home}/file",
    "read a secret of the home": "grep canary {home}/.netrc",
    "read a secret folder": "cat {home}/.ssh/id",
    "read a nested secret": "grep canary {home}/.config/gh/hosts.yml",
    "read a deep secret": "grep canary {home}/.local/share/opencode/auth.json",
    "network": "{python} 'import socket; socket.create_connection((\"{address}\", {port}), 5)'",
    "socket of another program": "{python} 'import socket; s = socket.socket(socket.AF_UNIX); s.connect(\"{socket}\")'",
    "hooks of git": "echo x > .git/hooks/pre-commit",
    "settings of git": "git config core.pager evil",
    "another repository in its place": "mv .git g && cp -r g .git && echo x >> .git/config",
    "remount": "mount -o remount,rw / && echo x > {outside}/file",
    "remount in a namespace": "unshare -Urm sh -c 'mount -o remount,bind,rw / && echo x > {outside}/file'",
}
ALLOWED = {
    "write in the workspace": "mkdir -p a && echo x > a/b && cat a/b",
    "write temporary files": "f=$(mktemp) && echo x > $f && cat $f && rm $f",
    "read other files": "head -c 1 /etc/passwd > /dev/null && echo x",
    "commit": "git add -A && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x && echo x",
    "own server": '{python} \'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); s.listen(); '
    'socket.create_connection(s.getsockname(), 5); print("x")\'',
    "shared memory": "echo x > /dev/shm/ragforge-test && cat /dev/shm/ragforge-test && rm /dev/shm/ragforge-test",
}

PLANTS = {
    "settings of a work tree": "echo x > .git/config.worktree",
    "another common folder": "echo ../evil > .git/commondir",
    "what was to be moved away": "mkdir -p .git/commondir.from-sandbox/x .vscode.from-sandbox/x",
    "hooks of git": "echo x > .git/hooks/pre-commit",
    "hooks elsewhere": "mkdir -p tools/hooks; echo x > tools/hooks/pre-commit",
    "a nested repository": "echo x >> nested/.git/config",
    "hooks of a nested repository": "mkdir -p nested/.git/hooks; echo x > nested/.git/hooks/post-checkout",
    "a nested repository in its place": "mv nested/.git nested/g; mkdir nested/.git",
    "an editor": "mkdir -p .vscode; echo x > .vscode/tasks.json",
    "a link": "ln -s /tmp .idea",
    "servers of tools": "echo {} > .mcp.json",
    "an environment": "echo x > .envrc",
    "programs": "echo x > .venv/bin/pytest",
    "a program of node": "cp /bin/true node_modules/.bin/eslint",
}
"""Commands after which nothing is planted for programs outside."""
SECRETS = {
    "by a wildcard": "cat .e*",
    "by a search": "grep -rh . .",
    "by a program": '{python} \'print(open(".e" + "nv").read())\'',
    "deep in the workspace": "cat src/a/b/c/d/e/*",
    "by a link": "ln -sf .env plain; cat plain",
    "of another project": "cat {home}/src/other/.e*",
    "deep in the home": "cat {home}/Documents/a/b/c/d/*.kdbx",
    "beside many files": "cat {home}/.local/share/opencode/*.json",
    "unpacked": "tar cf - . | tar xO",
}
"""Commands that would print a canary."""


@pytest.fixture(params=["namespaces", "bwrap"])
def mechanism(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Mechanism:
    """Each mechanism that works here."""
    wanted: Mechanism = request.param
    if sys.platform != "linux" or sandbox._probe(wanted):
        pytest.skip(f"{wanted} makes no sandbox here")
    monkeypatch.setattr(sandbox, "_tried", lambda: Support(wanted))
    return wanted


@pytest.fixture(autouse=True)
def small_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A home in which secrets are found at once."""
    monkeypatch.setenv("HOME", str(tmp_path / "small"))
    (tmp_path / "small").mkdir()


class Place:
    """A workspace, a home with secrets, a folder outside, and servers of others."""

    def __init__(self, folder: Path) -> None:
        # Not below a temporary folder, which the sandbox may write to.
        self.workspace, self.home, self.outside = (folder / name for name in ("workspace", "home", "outside"))
        for one in (self.workspace / ".git" / "hooks", self.home / ".ssh", self.home / ".config" / "gh", self.outside):
            one.mkdir(parents=True)
        (self.home / ".local" / "share" / "opencode").mkdir(parents=True)
        (self.workspace / ".git" / "config").write_text("[core]\n", "ascii")
        for secret in (".netrc", ".ssh/id", ".config/gh/hosts.yml", ".local/share/opencode/auth.json"):
            (self.home / secret).write_text("canary", "ascii")
        self.inet = socket.create_server(("127.0.0.1", 0))
        self.unix = socket.socket(socket.AF_UNIX)
        self.path = f"/tmp/ragforge-test-{os.getpid()}-{id(self)}.sock"
        self.unix.bind(self.path)
        self.unix.listen()

    def command(self, template: str) -> str:
        address, port = self.inet.getsockname()
        names = {"outside": self.outside, "home": self.home, "address": address, "port": port, "socket": self.path}
        text = template.replace("{python}", f"{shlex.quote(sys.executable)} -I -S -c")
        for name, value in names.items():
            text = text.replace(f"{{{name}}}", str(value))
        return text

    def close(self) -> None:
        self.inet.close()
        self.unix.close()
        Path(self.path).unlink()


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    """The place; temporary folders are others than the one of the tests."""
    monkeypatch.setattr(sandbox, "_temporary", lambda: iter([Path("/dev/shm"), _temp(tmp_path)]))
    monkeypatch.setenv("TMPDIR", str(_temp(tmp_path)))
    made = Place(tmp_path)
    monkeypatch.setenv("HOME", str(made.home))
    yield made
    made.close()


def _temp(folder: Path) -> Path:
    temp = folder / "temp"
    temp.mkdir(exist_ok=True)
    return temp


async def run(place: Place, command: str, walls: Walls = "workspace") -> str:
    toolbox = Toolbox(
        place.workspace,
        ToolSettings(command_timeout=30),
        undo_dir=place.outside / "undo",
        state_dir=place.outside / "state",
    )
    toolbox.workspace.guard.home = str(place.home)
    try:
        prepared = await toolbox.prepare("run_command", json.dumps({"command": command}))
        token = sandboxed.set(walls)
        try:
            return (await prepared.run()).text
        finally:
            sandboxed.reset(token)
    finally:
        await toolbox.close()


def each(place: Place, templates: dict[str, str]) -> str:
    """Return a command that runs each of the templates, and prints the names of those that end well."""
    lines = [f"( {place.command(text)} ) > out 2>&1 && echo 'done: {name}'" for name, text in templates.items()]
    return "\n".join([*lines, "true"])


def ended_well(text: str) -> set[str]:
    return {line.removeprefix("done: ") for line in text.splitlines() if line.startswith("done: ")}


@linux_only
async def test_nothing_leaves_the_sandbox_and_what_work_needs_is_possible(place: Place, mechanism: Mechanism) -> None:
    await run(place, "rm -rf .git && git init -q . && mkdir -p .git/hooks", walls="")
    assert ended_well(await run(place, each(place, REFUSED | ALLOWED))) == set(ALLOWED)
    assert not (place.outside / "file").exists() and "evil" not in (place.workspace / ".git" / "config").read_text()


@linux_only
async def test_without_the_sandbox_all_succeeds_that_needs_no_rights(place: Place) -> None:
    templates = {name: text for name, text in (REFUSED | ALLOWED).items() if "remount" not in name}
    await run(place, "rm -rf .git && git init -q . && mkdir -p .git/hooks", walls="")
    assert ended_well(await run(place, each(place, templates), walls="")) == set(templates)


@linux_only
async def test_nothing_is_planted_for_programs_outside(place: Place, mechanism: Mechanism) -> None:
    prepare = "rm -rf .git; git init -q . && git init -q nested && git config core.hooksPath tools/hooks"
    await run(place, f"{prepare}; mkdir -p .venv/bin node_modules/.bin; touch .venv/bin/pytest", "")
    before = await run(place, "find . | sort | xargs ls -ld --time-style=+ 2>&1; git config -l", "")
    text = await run(place, each(place, PLANTS))
    assert ended_well(text) <= {"what was to be moved away"}
    await run(place, "rm -rf out .git/commondir.from-sandbox .vscode.from-sandbox", "")
    assert await run(place, "find . | sort | xargs ls -ld --time-style=+ 2>&1; git config -l", "") == before


@linux_only
@pytest.mark.parametrize("walls", ["workspace", "reading"])
async def test_no_command_prints_a_secret(place: Place, mechanism: Mechanism, walls: Walls) -> None:
    for secret in ("src/a/b/c/d/e/auth.json", ".env"):
        (place.workspace / secret).parent.mkdir(parents=True, exist_ok=True)
        (place.workspace / secret).write_text("canary", "ascii")
    for secret in ("src/other/.env", "Documents/a/b/c/d/my.kdbx"):
        (place.home / secret).parent.mkdir(parents=True, exist_ok=True)
        (place.home / secret).write_text("canary", "ascii")
    many = place.home / ".vscode"
    many.mkdir()
    for number in range(6_000):
        (many / str(number)).touch()
    lines = [place.command(command) for command in SECRETS.values()]
    assert "canary" not in await run(place, "\n".join([*lines, "true"]), walls)
    assert "canary" in await run(place, "\n".join(lines), "")


@linux_only
async def test_git_sees_no_change_in_a_hidden_file(place: Place, mechanism: Mechanism) -> None:
    if mechanism == "bwrap":
        pytest.skip("it cannot give a file another one's time")
    make = "rm -rf .git; git init -q . && echo canary > server.key && touch -d '1 minute ago' server.key"
    commit = "git -c user.name=a -c user.email=a@b commit -qm x"
    await run(place, f"{make} && git add . && {commit}", "")
    assert "server.key" not in await run(place, f"git status --short; echo y > y; git add -A; {commit} --stat")
    assert "canary" in await run(place, "git show HEAD:server.key", "")


READERS = {
    "writes here": "echo x > {proof}",
    "writes in the home": "echo x > {home}/proof",
    "writes temporary files": "echo x > /tmp/{name}; echo x > /var/tmp/{name}",
    "writes in git": "git config user.name x",
    "runs a target": "make version > {proof}",
    "runs a filter of the user's": "git status --short; git diff",
    "asks for a signature": "git log --show-signature --format=%G?",
    "runs a hook": "git describe --always --dirty",
    "network": "{python} 'import socket; socket.create_connection((\"{address}\", {port}), 5)' && echo x > {proof}",
    "socket": "{python} 'import socket; s = socket.socket(socket.AF_UNIX); s.connect(\"{socket}\")' && echo connected",
}


@linux_only
@pytest.mark.parametrize("kind", ["folder", "work tree"])
async def test_git_reads_a_repository_of_the_home_that_surrounds_the_workspace(
    place: Place, mechanism: Mechanism, kind: str
) -> None:
    main, tree = place.home / "main", place.home / "tree"
    main.mkdir()
    commit = "git -c user.name=a -c user.email=a@b commit -qm first"
    make = f"git init -q && mkdir sub && touch sub/a b && git add . && {commit} && git worktree add -q {tree}"
    await run(place, f"cd {main} && {make}", "")
    place.workspace = tree if kind == "work tree" else main / "sub"
    text = await run(
        place, f"git log --oneline && git status --short && echo clean; cat {place.home}/.netrc", "reading"
    )
    assert "first\nclean\n" in text and "canary" not in text


SIGNED = r"""rm -rf .git; git init -q .; echo a > a.txt; git add a.txt
printf 'tree %s\nauthor a <a@b> 1 +0000\ncommitter a <a@b> 1 +0000\ngpgsig -----BEGIN PGP SIGNATURE-----\n \n x
 -----END PGP SIGNATURE-----\n\nx\n' $(git write-tree) | git hash-object -t commit -w --stdin > id
git update-ref HEAD $(cat id); echo b >> a.txt"""
"""Repository with a signed commit and a change."""


@linux_only
async def test_a_command_that_only_reads_can_do_nothing_else(
    place: Place, mechanism: Mechanism, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"proof-{os.getpid()}"
    made = place.workspace / "made"
    await run(place, SIGNED, "")
    program = f"#!/bin/sh\necho ran >> {made}\necho ran\ncat\n"
    for path in ("node_modules/.bin/gpg", "node_modules/.bin/git-lfs", "bin/ls", ".git/hooks/post-index-change"):
        file = place.workspace / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(program, "ascii")
        file.chmod(0o755)
    (place.workspace / "Makefile").write_text("version:\n\techo ran\n", "ascii")
    (place.workspace / ".gitattributes").write_text("*.txt filter=lfs\n", "ascii")
    (place.home / ".gitconfig").write_text(
        f'[filter "lfs"]\nclean = git-lfs\n[diff]\nexternal = {place.workspace}/bin/ls\n[log]\nshowSignature = true\n',
        "ascii",
    )
    monkeypatch.setenv("PATH", f"bin{os.pathsep}{os.environ['PATH']}")
    names = {"proof": place.workspace / "proof", "name": name}
    commands = [place.command(template) for template in READERS.values()]
    lines = [command.replace("{proof}", str(names["proof"])).replace("{name}", name) for command in commands]
    text = await run(place, "\n".join([*(f"( {line} )" for line in lines), "ls", "true"]), "reading")
    assert "ran" not in text.replace("echo ran", "").split() and "connected" not in text
    assert "+b" in text and "M a.txt" in text, "git works all the same"
    left = [names["proof"], made, place.home / "proof", Path("/tmp", name), Path("/var/tmp", name)]
    assert not any(path.exists() for path in left), text


@linux_only
@pytest.mark.parametrize("walls", ["workspace", "reading"])
async def test_no_socket_of_another_program_is_reached(place: Place, mechanism: Mechanism, walls: Walls) -> None:
    """Wherever it is, and by whatever name it was bound."""
    connect = 'import socket, sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1]); print("connected")'
    paths, listeners = [], []
    for folder in (place.workspace, place.workspace / "deep" / "er", place.home, place.outside):
        folder.mkdir(parents=True, exist_ok=True)
        for name in (f"{folder}/absolute.sock", "relative.sock"):
            with contextlib.chdir(folder):
                listener = socket.socket(socket.AF_UNIX)
                listener.bind(name)
                listener.listen()
            listeners.append(listener)
            paths.append(str(folder / name))
    paths.remove(f"{place.outside}/relative.sock")
    lines = [place.command("{python} ") + f"{shlex.quote(connect)} {path}" for path in paths]
    assert "connected" not in await run(place, "\n".join([*lines, "true"]), walls)
    assert (await run(place, "\n".join(lines), "")).count("connected") == len(paths)
    for listener in listeners:
        listener.close()


@linux_only
@pytest.mark.parametrize(
    ("walls", "full"), [("workspace", "workspace"), ("workspace", "home"), ("reading", "workspace")]
)
async def test_more_files_than_are_searched_are_asked_about(
    place: Place, mechanism: Mechanism, monkeypatch: pytest.MonkeyPatch, walls: Walls, full: str
) -> None:
    for number in range(30):
        (place.workspace if full == "workspace" else place.home).joinpath(str(number)).touch()
    most = 20
    monkeypatch.setattr(sandbox, "Survey", lambda root: Survey(root, most if full == "workspace" else 1000))
    if full == "home":
        monkeypatch.setattr(sandbox, "secrets_of_home", lambda *given: secrets_of_home(*given, most))
    with pytest.raises(SandboxRefusal, match=full):
        await run(place, "ls", walls)


def test_a_survey_sees_what_changed_since(tmp_path: Path) -> None:
    survey = Survey(tmp_path)
    (tmp_path / "a" / "b").mkdir(parents=True)
    for folder in (tmp_path, tmp_path / "a", tmp_path / "a" / "b"):
        os.utime(folder, (1, 1))
    assert survey.look().hidden == []
    (tmp_path / "a" / "b" / ".env").touch()
    (tmp_path / "a" / "Makefile").write_text("x", "ascii")
    first = survey.look()
    assert first.hidden == ["a/b/.env"] and list(first.running) == ["a/Makefile"]
    (tmp_path / "a" / "Makefile").write_text("y", "ascii")
    (tmp_path / "a" / "b" / ".env").unlink()
    second = survey.look()
    assert second.hidden == [] and second.running != first.running


@pytest.mark.parametrize(
    ("text", "hidden"),
    [("-----BEGIN CERTIFICATE-----", False), ("-----BEGIN RSA PRIVATE KEY-----", True), ("secret", True)],
)
def test_a_certificate_is_no_secret(tmp_path: Path, text: str, hidden: bool) -> None:
    (tmp_path / "ca.pem").write_text(text, "ascii")
    assert Survey(tmp_path).look().hidden == ["ca.pem"] * hidden


@linux_only
async def test_placeholders_of_a_killed_program_are_removed(place: Place, mechanism: Mechanism) -> None:
    kept = Protected(place.workspace, place.outside / "state" / "sandbox")
    os.close(kept.hold())
    kept.paths(Survey(place.workspace).look(), "ls")
    (place.workspace / ".idea" / "mine").touch()
    assert (place.workspace / ".vscode").is_dir()
    await run(place, "true")
    assert {path.name for path in place.workspace.iterdir() if path.name[0] == "."} == {".git", ".idea"}


INSTALLS = {
    "pip install -e .": True,
    ".venv/bin/pip install x": True,
    "python3 -m venv .venv": True,
    "cd web && npm ci": True,
    "uv sync --offline": True,
    "npm test": False,
    "pytest -k install": False,
    "cp evil .venv/bin/pip": False,
    "echo pipinstall": False,
}


@pytest.mark.parametrize("command", INSTALLS)
def test_only_an_installer_writes_programs(command: str, tmp_path: Path) -> None:
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    kept = Protected(tmp_path, tmp_path / "state")
    assert (tmp_path / ".venv/bin" in kept.paths(Survey(tmp_path).look(), command)) is not INSTALLS[command]


@linux_only
@ONE_BACKEND
async def test_what_a_command_changed_that_runs_later_is_named_and_asked_about_outside(
    loaded: Loaded, server: Script
) -> None:
    if sandbox._tried().mechanism is None:
        pytest.skip("there is no sandbox here")
    rules = msgspec.structs.replace(loaded.settings.tools, rules=["allow touch *"])
    given = msgspec.structs.replace(loaded, settings=msgspec.structs.replace(loaded.settings, tools=rules))
    commands = ["echo x > Makefile", "touch first", "touch second"]
    calls = [{"name": "run_command", "arguments": {"command": command}} for command in commands]
    server.script([*({"tool_calls": [call]} for call in calls), {"text": "Done."}])
    asked, told = [], []
    async with ConversationAgent(given, interactive=True) as agent:
        conversation = await agent.create_conversation()
        conversation.mode = "auto"
        async for event in conversation.stream("do it"):
            if isinstance(event, ApprovalRequested):
                asked.append(event.question)
                agent.services.approvals.answer(event.approval_id, "once")
            if isinstance(event, Notice):
                told.append(event.text)
            if isinstance(event, ToolCallFinished) and event.call.ordinal == 0 and conversation.mode == "auto":
                conversation.mode = "ask"
    assert len(asked) == 1 and "A command in the sandbox changed Makefile" in asked[0]
    assert any("Makefile" in text for text in told)


def test_what_the_sandbox_is_not_enough_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    guard = Guard(tmp_path, home=tmp_path.parent)
    place = Sandbox(Confinement(tmp_path, []), tmp_path, guard, tmp_path, enabled=True)
    monkeypatch.setattr(sandbox, "_tried", lambda: Support("bwrap"))
    assert place.beyond("pytest -q && $(x) > out") == ""
    assert place.beyond("cat <.env | head") == "It names .env, which may hold keys or passwords"
    assert "no sandbox" in Sandbox(Confinement(tmp_path, []), tmp_path, guard, tmp_path, enabled=False).beyond("ls")


RUN = {"command": "touch made; echo ${HOME:+home}"}
MORE = {"command": "touch outside-made", "outside_sandbox": True, "reason": "it installs a package"}


@linux_only
@ONE_BACKEND
@pytest.mark.parametrize("available", [True, False])
async def test_auto_runs_commands_in_the_sandbox_and_asks_for_more(
    loaded: Loaded, server: Script, monkeypatch: pytest.MonkeyPatch, available: bool
) -> None:
    if available and sandbox._tried().mechanism is None:
        pytest.skip("there is no sandbox here")
    if not available:
        monkeypatch.setattr(sandbox, "_tried", lambda: Support(None, "bubblewrap is not installed"))
    write = {"name": "write_file", "arguments": {"path": "a.txt", "content": "x\n"}}
    calls = [write, *({"name": "run_command", "arguments": given} for given in (RUN, {"command": "false"}, MORE))]
    server.script([{"tool_calls": calls}, {"text": "Done."}])
    asked, ends = [], []
    async with ConversationAgent(loaded, interactive=True) as agent:
        conversation = await agent.create_conversation()
        conversation.mode = "auto"
        async for event in conversation.stream("do it"):
            if isinstance(event, ApprovalRequested):
                asked.append(event.question.partition("? ")[2].partition(". ")[2] or event.question)
                agent.services.approvals.answer(event.approval_id, "no")
            if isinstance(event, ToolCallFinished):
                ends.append(event.call)
    states = [call_end(call) for call in ends]
    made = await asyncio.to_thread((Path(loaded.workspace) / "made").exists)
    if available:
        assert states == ["ok", "ok", "failed", "refused"] and made
        assert asked == ["It asks to run outside the sandbox."]
        assert "outside_sandbox" in result_text(ends[2]) and '"sandboxed":true' in ends[1].result.result  # type: ignore[union-attr]
    else:
        assert states == ["ok", "refused", "refused", "refused"] and not made
        assert asked[0] == "There is no sandbox here: bubblewrap is not installed."
    assert "The mode is auto" in server.chats()[0]["messages"][-1]["content"]


@linux_only
@ONE_BACKEND
async def test_what_auto_let_through_stays_in_the_sandbox_when_the_mode_changes_again(
    loaded: Loaded, server: Script
) -> None:
    if sandbox._tried().mechanism is None:
        pytest.skip("there is no sandbox here")
    run = [{"name": "run_command", "arguments": {"command": f"touch {name}"}} for name in ("one", "two")]
    server.script([{"tool_calls": run}, {"text": "Done."}])
    asked, results = 0, []
    async with ConversationAgent(loaded, interactive=True) as agent:
        conversation = await agent.create_conversation()
        async for event in conversation.stream("do it"):
            if isinstance(event, ApprovalRequested):
                asked += 1
                if asked == 2:
                    conversation.mode = "auto"
                    conversation.mode = "ask"
            if isinstance(event, ToolCallFinished):
                results.append(event.call.result)
    assert asked == 2 and all('"sandboxed":true' in one.result for one in results)


@ONE_BACKEND
async def test_the_mode_says_that_there_is_no_sandbox(
    loaded: Loaded, server: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandbox, "_tried", lambda: Support(None, "bubblewrap is not installed"))
    engine = await connect_in_process(loaded)
    try:
        view = await engine.request(CreateConversation())
        await engine.request(SetMode(conversation_id=view.conversation.uuid, mode="auto"))
        async for event in engine.events():
            if isinstance(event, Notice) and "auto" in event.text:
                break
    finally:
        await engine.close()
    assert event.text == "Commands still ask in auto, because there is no sandbox here: bubblewrap is not installed."


@linux_only
def test_a_workspace_that_holds_the_home_is_asked_about(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "sandbox_support", lambda enabled: Support("bwrap"))
    guard = Guard(str(tmp_path), own=[], home=str(tmp_path / "me"))
    box = Sandbox(Confinement(tmp_path, []), tmp_path, guard, tmp_path, enabled=True)
    assert "your home folder" in box.beyond("echo x >> me/.bashrc")
