"""Attempts of a command to reach the program: files, sockets, graph, processes, terminal, and tricks around mounts.

Each prints ``ESCAPED`` when it succeeds. All succeed without confinement, which shows that they are real ones.
"""

from __future__ import annotations

import json
import os
import shlex
import socket
import subprocess
import sys
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path

import msgspec
import psutil
import pytest

from ragforge_tui.conversation import ConversationAgent
from ragforge_tui.graph import GraphTarget
from ragforge_tui.graph.embedded.files import ServerFiles
from ragforge_tui.settings.schema import Loaded, ToolSettings
from ragforge_tui.tools.base import ToolOutcome
from ragforge_tui.tools.registry import Toolbox
from ragforge_tui.tools.shell import confinement
from ragforge_tui.tools.shell.confinement import MECHANISMS, Support
from ragforge_tui.tools.shell.process import MARK
from tests.conftest import EMBEDDED

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="only Linux confines commands")

PYTHON = f"{shlex.quote(sys.executable)} -I -S -c"
"""Python in the commands: ``{python}``."""
CONNECT = """{python} 'import socket; socket.socket(socket.AF_UNIX).connect("{socket}"); print("ESCAPED")'"""
MEMORY = """{python} '
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
print("ESCAPED" if {call} >= 0 else "refused")'"""
ESCAPES = {
    "password": "cat {data}/graph/password && echo ESCAPED",
    "address of the server": "cat {data}/graph/server.json && echo ESCAPED",
    "decisions on trust": "cat {state}/trust.json && echo ESCAPED",
    "settings": "cat {config}/config.yaml && echo ESCAPED",
    "settings elsewhere": "grep api_key {settings_file} && echo ESCAPED",
    "symlink": "ln -sf {data}/graph/password link && cat link && echo ESCAPED",
    "hardlink": "rm -f hard; ln {data}/graph/password hard && cat hard && echo ESCAPED",
    "own root": "cat /proc/self/root{data}/graph/password && echo ESCAPED",
    "root of another process": "cat /proc/{victim}/root{data}/graph/password && echo ESCAPED",
    "folder of another process": "cat /proc/{victim}/cwd/graph/password && echo ESCAPED",
    "file of another process": "cat /proc/{victim}/fd/0 && echo ESCAPED",
    "environment of another process": "grep -a CANARY /proc/{victim}/environ && echo ESCAPED",
    "memory of another process": "head -c 1 /proc/{victim}/mem 2>&1 | grep -q Input/output && echo ESCAPED",
    "tracing another process": MEMORY.replace("{call}", "libc.ptrace(16, {victim}, 0, 0)"),
    "reading another process": """{python} '
import ctypes, struct
libc = ctypes.CDLL(None, use_errno=True)
place = ctypes.create_string_buffer(1)
here, there = struct.pack("PN", ctypes.addressof(place), 1), struct.pack("PN", 8, 1)
libc.process_vm_readv({victim}, here, 1, there, 1, 0)
print("ESCAPED" if ctypes.get_errno() == 14 else "refused")'""",
    "signals to another process": "kill -CONT {victim} && echo ESCAPED",
    "namespaces of another process": "nsenter -t {victim} -m -- cat {data}/graph/password && echo ESCAPED",
    "new settings": "echo '# x' >> {config}/config.yaml && echo ESCAPED",
    "new decisions on trust": "echo x >> {state}/trust.json && echo ESCAPED",
    "unmount": "umount {data} {config} {state}; cat {data}/graph/password && echo ESCAPED",
    "unmount in a namespace": "unshare -Urm sh -c 'umount {data}; cat {data}/graph/password' && echo ESCAPED",
    "bind mount": "mkdir -p m; unshare -Urm sh -c 'mount --bind / m; cat m{data}/graph/password' && echo ESCAPED",
    "overlay": "mkdir -p m; unshare -Urm sh -c "
    "'mount -t overlay -o lowerdir={above_data}:/etc x m; cat m/{data_name}/graph/password' && echo ESCAPED",
    "statement with the password": "{python} '"
    'import http.client, json; from base64 import b64encode; at = "{data}/graph/";'
    'a = json.load(open(at + "server.json"));'
    'login = open(at + "username").read() + ":" + open(at + "password").read();'
    'c = http.client.HTTPConnection("127.0.0.1", a["http_port"]);'
    'c.request("GET", "/api/v1/databases", headers=dict(Authorization="Basic " + b64encode(login.encode()).decode()));'
    'print("ESCAPED" if c.getresponse().status == 200 else "refused")\'',
    "socket of the host": CONNECT.replace("{socket}", "{host}"),
    "socket of a multiplexer": CONNECT.replace("{socket}", "{multiplexer}"),
    "default socket of tmux": CONNECT.replace("{socket}", "{tmux}"),
    "abstract socket": """{python} 'import socket; socket.socket(socket.AF_UNIX).connect("\\0{abstract}"); """
    """print("ESCAPED")'""",
    "variable with a socket": 'test -n "$TMUX" && echo ESCAPED',
    # The command ends only when its child has left the group and the mark behind: killed before, it shows nothing.
    "outliving the command": "rm -f away; env -u {mark} setsid {python} "
    "'import time; print(1, flush=True); time.sleep(600)' {abstract} > away & "
    "until test -s away; do sleep 0.01; done; echo started",
}
AS_ROOT = {
    "disk": "for disk in /dev/vda /dev/sda /dev/nvme0n1; do head -c 1 $disk > x; test -s x && echo ESCAPED; done",
    "program that the kernel runs": 'p=/proc/sys/kernel/core_pattern; v=$(cat $p); echo "$v" > $p && echo ESCAPED',
}
BY_LANDLOCK = {
    "program that the kernel runs",
    "socket of the host",
    "socket of a multiplexer",
    "default socket of tmux",
    "outliving the command",
}
"""What only namespaces prevent."""
NEEDS_MOUNTS = {"unmount in a namespace", "bind mount", "overlay", "namespaces of another process"}
"""What cannot be done everywhere even without confinement."""


class Machine:
    """What the attempts aim at: the program's folders and sockets, and a process of the user's."""

    def __init__(self, loaded: Loaded, folder: Path) -> None:
        self.data, self.state, self.config = (
            Path(path) for path in (loaded.paths.data, loaded.paths.state, loaded.paths.config)
        )
        self.abstract = f"test-{uuid.uuid4().hex}"
        self.settings_file = folder / "mine.yaml"
        self.settings_file.write_text("model: {api_key: canary}\n", "utf-8")
        for file in (self.state / "trust.json", self.config / "config.yaml"):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("# mine\n", "utf-8")
        tmux = Path("/tmp", f"tmux-{os.getuid()}")
        tmux.mkdir(mode=0o700, exist_ok=True)
        self.sockets = {
            "host": str(self.state / "engine" / "host.sock"),
            "multiplexer": str(folder / "mux.sock"),
            "tmux": str(tmux / self.abstract),
        }
        (self.state / "engine").mkdir(exist_ok=True)
        self._listeners = [self._listen(path) for path in (*self.sockets.values(), f"\0{self.abstract}")]
        self.victim = subprocess.Popen(
            ["/bin/sleep", "600"],
            cwd=self.data,
            stdin=(self.data / "graph" / "password").open("rb"),
            env={"CANARY": "x"},
            start_new_session=True,
        )

    @staticmethod
    def _listen(path: str) -> socket.socket:
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(path)
        listener.listen(64)
        return listener

    def command(self, template: str) -> str:
        """Return the command of an attempt."""
        names = {
            "python": PYTHON,
            "data": self.data.resolve(),
            "above_data": self.data.resolve().parent,
            "data_name": self.data.name,
            "state": self.state,
            "config": self.config,
            "settings_file": self.settings_file,
            "victim": self.victim.pid,
            "abstract": self.abstract,
            "mark": MARK,
            **self.sockets,
        }
        for name, value in names.items():
            template = template.replace("{" + name + "}", str(value))
        return template

    def outliving(self) -> list[psutil.Process]:
        """Return the processes that were to outlive their command."""
        found = []
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                if self.abstract in process.cmdline():
                    found.append(process)
        return found

    def close(self) -> None:
        for listener in self._listeners:
            listener.close()
        Path(self.sockets["tmux"]).unlink()
        self.victim.kill()
        self.victim.wait()
        for process in self.outliving():
            process.kill()


@pytest.fixture
def graph_target() -> GraphTarget:
    """The embedded graph, whose password is a file."""
    return EMBEDDED


@pytest.fixture
def machine(loaded: Loaded, tmp_path: Path) -> Iterator[Machine]:
    machine = Machine(loaded, tmp_path)
    yield machine
    machine.close()


@pytest.fixture(params=[None, *MECHANISMS])
def mechanism(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> confinement.Mechanism | None:
    """Each mechanism that works here, and none."""
    chosen: confinement.Mechanism | None = request.param
    if chosen is not None and (reason := confinement.probe(chosen)):
        pytest.skip(reason)
    monkeypatch.setattr(confinement, "supported", lambda: Support(chosen))
    return chosen


@pytest.fixture
async def agent(loaded: Loaded, machine: Machine, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ConversationAgent]:
    monkeypatch.setenv("TMUX", f"{machine.sockets['multiplexer']},1,0")
    given = msgspec.structs.replace(loaded, config_file=str(machine.settings_file))
    async with ConversationAgent(given, approve="all") as agent:
        yield agent


async def run(agent: ConversationAgent, command: str) -> ToolOutcome:
    """Run a command with the agent's own tool, as if it had been approved."""
    return await (await agent.services.toolbox.prepare("run_command", json.dumps({"command": command}))).run()


@linux_only
async def test_no_command_reaches_the_program(
    agent: ConversationAgent, machine: Machine, mechanism: confinement.Mechanism | None
) -> None:
    escaped = set()
    attempts = ESCAPES | (AS_ROOT if os.getuid() == 0 else {})
    for name, template in attempts.items():
        outcome = await run(agent, machine.command(template))
        if "ESCAPED" in outcome.text:
            escaped.add(name)
        if name == "outliving the command" and machine.outliving():
            escaped.add(name)
    if mechanism is None:
        # Variables of the session are dropped in any case; not every machine has a disk or lets one unmount.
        assert attempts.keys() - escaped <= {"variable with a socket", "disk", *NEEDS_MOUNTS}
    else:
        assert escaped <= (BY_LANDLOCK if mechanism == "landlock" else set())
    assert (machine.config / "config.yaml").read_text("utf-8").startswith("# mine\n")
    assert ServerFiles(machine.data.resolve() / "graph", machine.state).read_password()


@pytest.fixture
def roomy(tmp_path: Path) -> Toolbox:
    """Tools of a workspace within the folder of the settings, as with RAGFORGE_HOME in front of it."""
    home = tmp_path / "home"
    workspace = home / "workspace"
    workspace.mkdir(parents=True)
    (home / "config.yaml").write_text("# mine\n", "utf-8")
    return Toolbox(
        workspace,
        ToolSettings(),
        undo_dir=home / "data" / "undo",
        state_dir=home / "state",
        folders=[home, home / "data"],
    )


async def shell(box: Toolbox, command: str) -> ToolOutcome:
    return await (await box.prepare("run_command", json.dumps({"command": command}))).run()


@linux_only
async def test_a_workspace_within_the_programs_folder_stays(
    roomy: Toolbox, mechanism: confinement.Mechanism | None
) -> None:
    if mechanism is None:
        pytest.skip("nothing is hidden")
    outcome = await shell(
        roomy, "echo made > file && cat file; cat ../config.yaml; ls ../state/commands; ls ../data/undo"
    )
    assert "made" in outcome.text
    assert "mine" not in outcome.text
    if mechanism != "landlock":  # With which names can be listed, but nothing opened.
        assert ".json" not in outcome.text
    assert (roomy.workspace.root / "file").read_text("utf-8") == "made\n"


@linux_only
async def test_a_folder_that_was_moved_is_noticed(tmp_path: Path) -> None:
    """A command may rename a folder above the program's own, which the next command would find at its new place."""
    workspace, above = tmp_path / "workspace", tmp_path / "share"
    workspace.mkdir()
    data = above / "data"
    box = Toolbox(workspace, ToolSettings(), undo_dir=data / "undo", state_dir=tmp_path / "state", folders=[data])
    assert (await shell(box, f"mv {above} {tmp_path}/other; mkdir -p {data}")).success
    outcome = await shell(box, f"ls {tmp_path}/other/data && echo ESCAPED")
    assert not outcome.success
    assert "no longer where it was" in outcome.text


@linux_only
async def test_a_command_that_cannot_be_confined_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confinement, "supported", lambda: Support("bwrap"))
    monkeypatch.setenv("PATH", str(tmp_path))
    state = tmp_path / "state"
    box = Toolbox(tmp_path, ToolSettings(), undo_dir=state, state_dir=state)
    outcome = await shell(box, "echo ran")
    assert "could not be confined" in outcome.text
    assert "ran" not in outcome.text.replace("run", "")


async def test_a_users_command_has_the_users_session_and_an_agents_has_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in SESSION:
        monkeypatch.setenv(name, "address")
    settings = ToolSettings(keep_variables=["SSH_AUTH_SOCK"])
    state = tmp_path / "state"
    box = Toolbox(tmp_path, settings, undo_dir=state, state_dir=state)
    own = await (await box.prepare_for_user("run_command", json.dumps({"command": "env; ls state"}))).run()
    assert all(f"{name}=address" in own.text for name in SESSION)
    assert "commands" in own.text, "it runs where the program is"
    agents = await shell(box, "env")
    assert [name for name in SESSION if f"{name}=address" in agents.text] == ["SSH_AUTH_SOCK"]


SESSION = [
    "TMUX",
    "TMUX_PANE",
    "STY",
    "KITTY_LISTEN_ON",
    "WEZTERM_UNIX_SOCKET",
    "ZELLIJ",
    "NVIM",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
    "DBUS_SESSION_BUS_ADDRESS",
    "SSH_AUTH_SOCK",
    "SSH_AGENT_PID",
    "VSCODE_IPC_HOOK_CLI",
]


@pytest.mark.parametrize(
    ("support", "question", "line"),
    [
        (Support("namespaces"), "cannot reach", "confined by namespaces"),
        (Support("bwrap", "namespaces: no"), "cannot reach", "confined by bubblewrap"),
        (Support("landlock", "namespaces: no"), "cannot reach", "confined in part"),
        (Support(None, "not confined: landlock: no"), "not confined here", "not confined: landlock"),
    ],
)
def test_question_and_doctor_tell_whether_commands_are_confined(support: Support, question: str, line: str) -> None:
    assert question in support.question
    assert support.description.startswith(line)


async def test_switched_off(tmp_path: Path) -> None:
    state = tmp_path / "state"
    box = Toolbox(tmp_path, ToolSettings(confine_commands=False), undo_dir=state, state_dir=state)
    prepared = await box.prepare("run_command", '{"command": "ls state"}')
    assert prepared.approval is not None
    assert "not confined" in prepared.approval.question
    assert "commands" in (await prepared.run()).text
