"""The sandbox of the mode auto: what a command can do there, on each mechanism, and what asks."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import socket
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragforge_tui.conversation import ConversationAgent
from ragforge_tui.engine import connect_in_process
from ragforge_tui.settings.schema import Loaded, ToolSettings
from ragforge_tui.shared.events import ApprovalRequested, Notice, ToolCallFinished
from ragforge_tui.shared.records import call_end
from ragforge_tui.shared.requests.turns import CreateConversation
from ragforge_tui.shared.requests.work import SetMode
from ragforge_tui.shared.tool_calls import result_text
from ragforge_tui.tools.base import sandboxed
from ragforge_tui.tools.registry import Toolbox
from ragforge_tui.tools.sensitive import Guard
from ragforge_tui.tools.shell import sandbox
from ragforge_tui.tools.shell.confinement import Confinement, Mechanism, Support
from ragforge_tui.tools.shell.sandbox import Sandbox
from tests.conftest import ONE_BACKEND
from tests.support.openai_server import OpenAIServer

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


@pytest.fixture(params=["namespaces", "bwrap"])
def mechanism(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Mechanism:
    """Each mechanism that works here."""
    wanted: Mechanism = request.param
    if sys.platform != "linux" or sandbox._probe(wanted):
        pytest.skip(f"{wanted} makes no sandbox here")
    monkeypatch.setattr(sandbox, "_tried", lambda: Support(wanted))
    return wanted


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


async def run(place: Place, command: str, *, inside: bool = True) -> str:
    toolbox = Toolbox(
        place.workspace,
        ToolSettings(command_timeout=30),
        undo_dir=place.outside / "undo",
        state_dir=place.outside / "state",
    )
    toolbox.workspace.guard.home = str(place.home)
    try:
        prepared = await toolbox.prepare("run_command", json.dumps({"command": command}))
        token = sandboxed.set(inside)
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
    await run(place, "rm -rf .git && git init -q . && mkdir -p .git/hooks", inside=False)
    assert ended_well(await run(place, each(place, REFUSED | ALLOWED))) == set(ALLOWED)
    assert not (place.outside / "file").exists() and "evil" not in (place.workspace / ".git" / "config").read_text()


@linux_only
async def test_without_the_sandbox_all_succeeds_that_needs_no_rights(place: Place) -> None:
    templates = {name: text for name, text in (REFUSED | ALLOWED).items() if "remount" not in name}
    await run(place, "rm -rf .git && git init -q . && mkdir -p .git/hooks", inside=False)
    assert ended_well(await run(place, each(place, templates), inside=False)) == set(templates)


NAMES = [".ssh", ".aws", "src", ".config/gh", ".env", "a b", ".git/hooks", ".vscode"]


@hypothesis.settings(max_examples=20)
@given(st.lists(st.sampled_from(NAMES), unique=True), st.booleans())
def test_arguments_name_each_place_once_and_never_open_the_home(names: list[str], in_home: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder).resolve() / "home"
        workspace = home / ".config" / "project" if in_home else Path(folder).resolve() / "project"
        for one in (home, workspace):
            one.mkdir(parents=True, exist_ok=True)
            for name in names:
                (one / name).mkdir(parents=True, exist_ok=True)
        marked = sandbox.paths(workspace, home)
        assert len(marked) == len(set(marked)) and all(one[0] in "*r-" and one[1:].startswith("/") for one in marked)
        writable = [Path(one[1:]) for one in marked if one[0] == "*"]
        assert workspace in writable and not any(home == one or home.is_relative_to(one) for one in writable[:1])
        hidden = {Path(one[1:]) for one in marked if one[0] == "-"}
        assert all(home / name in hidden for name in (".ssh", ".aws", ".env") if name in names)
        assert not any(workspace.is_relative_to(one) for one in hidden)
        kept = {Path(one[1:]) for one in marked if one[0] == "r"}
        assert all(workspace / name in kept for name in (".git/hooks", ".vscode") if name in names)


def test_what_the_sandbox_is_not_enough_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    guard = Guard(tmp_path)
    place = Sandbox(Confinement(tmp_path, []), tmp_path, guard, enabled=True)
    monkeypatch.setattr(sandbox, "_tried", lambda: Support("bwrap"))
    assert place.beyond("pytest -q && $(x) > out") == ""
    assert place.beyond("cat <.env | head") == "It names .env, which may hold keys or passwords"
    assert "no sandbox" in Sandbox(Confinement(tmp_path, []), tmp_path, guard, enabled=False).beyond("ls")


RUN = {"command": "touch made; echo ${HOME:+home}"}
MORE = {"command": "touch outside-made", "outside_sandbox": True, "reason": "it installs a package"}


@linux_only
@ONE_BACKEND
@pytest.mark.parametrize("available", [True, False])
async def test_auto_runs_commands_in_the_sandbox_and_asks_for_more(
    loaded: Loaded, server: OpenAIServer, monkeypatch: pytest.MonkeyPatch, available: bool
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
    loaded: Loaded, server: OpenAIServer
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
    loaded: Loaded, server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
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


def test_what_a_command_plants_for_others_is_moved_away(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".claude").mkdir()
    free = sandbox.free_places(tmp_path)
    assert tmp_path / ".claude" not in free and tmp_path / ".git/commondir" in free
    (tmp_path / ".git/commondir").write_text("../evil")
    (tmp_path / ".vscode").symlink_to("/nowhere")
    (tmp_path / "notes.txt").write_text("x")
    assert sorted(sandbox.unplanted(tmp_path, free)) == [".git/commondir", ".vscode"]
    assert sorted(path.name for path in tmp_path.iterdir()) == [".claude", ".git", ".vscode.from-sandbox", "notes.txt"]


@linux_only
def test_a_workspace_that_holds_the_home_is_asked_about(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "sandbox_support", lambda enabled: Support("bwrap"))
    guard = Guard(str(tmp_path), own=[], home=str(tmp_path / "me"))
    box = Sandbox(Confinement(tmp_path, [], file=None, enabled=True, kept_variables=()), tmp_path, guard, enabled=True)
    assert "your home folder" in box.beyond("echo x >> me/.bashrc")
