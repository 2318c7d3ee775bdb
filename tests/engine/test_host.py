"""The engine host: chats get engines that are as their own children would be, and its death costs them nothing."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import socket
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import msgspec
import psutil
import pytest

from ragforge_tui.engine.client import ChildEngine, RequestedEngine, request_engine
from ragforge_tui.engine.warm import client, identity, launch
from ragforge_tui.engine.warm.client import WarmEngine
from ragforge_tui.engine.warm.host import EngineHost
from ragforge_tui.engine.warm.imports import ImportedEnvironment
from ragforge_tui.engine.warm.messages import HostFiles
from ragforge_tui.graph import GraphTarget
from ragforge_tui.settings.schema import Loaded
from ragforge_tui.shared.daemon import daemon_environment
from ragforge_tui.shared.events import TurnEnd
from ragforge_tui.shared.requests.turns import CreateConversation, SendMessage
from ragforge_tui.shared.requests.work import RunShell
from ragforge_tui.shared.wire import Hello
from tests.conftest import EMBEDDED
from tests.support.agents import with_host, with_model
from tests.support.hosts import end_host, end_host_in, host_of
from tests.support.openai_server import OpenAIServer
from tests.support.waiting import PATIENCE, until

# The engine is another process, which no script of this one reaches.
pytestmark = pytest.mark.http


@pytest.fixture
def graph_target() -> GraphTarget:
    """No dialect is involved."""
    return EMBEDDED


@pytest.fixture
def hosted(loaded: Loaded) -> Iterator[Loaded]:
    """Settings with a host and the offline assistant, which needs no LiteLLM."""
    hosted = with_host(with_model(loaded, name="offline"))
    try:
        yield hosted
    finally:
        end_host(hosted)


@pytest.fixture(scope="module")
def lasting_state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A folder whose host runs as long as this module."""
    state = str(tmp_path_factory.mktemp("state"))
    yield state
    end_host_in(state)


@pytest.fixture
async def lasting(loaded: Loaded, lasting_state: str, engines: list[ChildEngine]) -> Loaded:
    """Settings with a host that runs already, for tests after which it is as before."""
    paths = msgspec.structs.replace(loaded.paths, state=lasting_state)
    lasting = with_host(with_model(msgspec.structs.replace(loaded, paths=paths), name="offline"))
    if host_of(lasting) is None:
        await started(lasting, engines)
    return lasting


@pytest.fixture
async def engines() -> AsyncIterator[list[ChildEngine]]:
    """Engines that are closed after the test."""
    opened: list[ChildEngine] = []
    yield opened
    for engine in opened:
        await engine.close()


async def started(loaded: Loaded, engines: list[ChildEngine], requested: RequestedEngine | None = None) -> ChildEngine:
    engine = await ChildEngine.start(loaded, requested=requested)
    engines.append(engine)
    assert (await engine.request(Hello())).pid == engine.pid
    return engine


def is_warm(engine: ChildEngine) -> bool:
    return isinstance(engine._process, WarmEngine)


async def gone(process: psutil.Process) -> None:
    await until(lambda: not process.is_running() or process.status() == psutil.STATUS_ZOMBIE)


async def test_one_host_forks_the_engines_of_all_chats(lasting: Loaded, engines: list[ChildEngine]) -> None:
    first, second = [await started(lasting, engines) for _ in range(2)]
    host = host_of(lasting)
    assert host is not None
    assert is_warm(first)
    assert {child.pid for child in host.children()} >= {first.pid, second.pid}
    assert os.getsid(first.pid) == first.pid
    await first.close()
    assert (await second.request(Hello())).pid == second.pid


async def test_an_engine_starts_as_soon_as_it_is_requested(hosted: Loaded, engines: list[ChildEngine]) -> None:
    assert request_engine(hosted) is None, "no host runs, and none is started"
    assert host_of(hosted) is None
    first = await started(hosted, engines)
    host = host_of(hosted)
    assert host is not None
    requested = request_engine(hosted)
    assert requested is not None
    forked = await until(lambda: {child.pid for child in host.children()} - {first.pid})
    second = await started(hosted, engines, requested)
    assert is_warm(second)
    assert forked == {second.pid}


@pytest.mark.slow
async def test_after_a_crash_the_next_engine_is_a_child_of_the_chat(hosted: Loaded, engines: list[ChildEngine]) -> None:
    """Whatever ended the engine may listen in the host's place, and would be sent the keys."""
    await started(hosted, engines)
    false_host = socket.socket(socket.AF_UNIX)
    path = HostFiles.of(hosted.paths).socket
    path.unlink()
    with false_host:
        false_host.bind(str(path))
        false_host.listen()
        false_host.setblocking(False)
        engine = await ChildEngine.start(hosted, from_host=False)
        engines.append(engine)
        assert not is_warm(engine)
        assert psutil.Process(engine.pid).ppid() == os.getpid()
        with pytest.raises(BlockingIOError):
            false_host.accept()


async def test_an_engine_that_was_ordered_but_never_used_ends(lasting: Loaded, engines: list[ChildEngine]) -> None:
    host = host_of(lasting)
    assert host is not None
    others = {child.pid for child in host.children()}
    requested = request_engine(lasting)
    assert requested is not None
    forked = await until(lambda: [child for child in host.children() if child.pid not in others])
    requested.connection.close()
    requested.close()  # as the end of the chat does
    await gone(forked[0])


async def test_settings_of_any_size_reach_an_engine_that_was_ordered(
    lasting: Loaded, engines: list[ChildEngine]
) -> None:
    long = with_model(lasting, name="offline", api_key="k" * 200_000)
    requested = request_engine(long)
    assert requested is not None
    assert requested.unsent, "more than a pipe holds"
    assert is_warm(await started(long, engines, requested))


@pytest.mark.slow
async def test_an_engine_that_a_host_refuses_after_the_request_is_started_otherwise(
    hosted: Loaded, engines: list[ChildEngine], monkeypatch: pytest.MonkeyPatch
) -> None:
    await started(hosted, engines)
    with monkeypatch.context() as changed:
        changed.setattr(client, "confinement", lambda: identity.confinement() | {"mnt": "mnt:[1]"})
        assert not is_warm(await started(hosted, engines, request_engine(hosted)))
    old = host_of(hosted)
    assert old is not None
    old.send_signal(signal.SIGSTOP)
    requested = request_engine(hosted)
    assert requested is not None
    old.send_signal(signal.SIGKILL)
    await gone(old)
    assert is_warm(await started(hosted, engines, requested)), "another host was started"


async def test_an_engine_has_folder_environment_umask_and_limits_of_its_chat(
    lasting: Loaded, engines: list[ChildEngine], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    monkeypatch.setenv("SHELL_OF_THE_CHAT", "second")
    before = os.umask(0o027)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft - 1, hard))
    try:
        second = await started(lasting, engines)
    finally:
        os.umask(before)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert await shell_says(second, lasting) == f"second {Path.cwd()} 0027 {soft - 1}"
    monkeypatch.delenv("SHELL_OF_THE_CHAT")
    third = await started(lasting, engines)
    assert await shell_says(third, lasting) == f" {Path.cwd()} {before:04o} {soft}"


async def shell_says(engine: ChildEngine, loaded: Loaded) -> str:
    """What a command of the user finds, with the folder of the engine itself."""
    view = await engine.request(CreateConversation())
    command = (
        f'echo "$SHELL_OF_THE_CHAT $(readlink /proc/{engine.pid}/cwd || pwd) $(umask) $(ulimit -n)" > {engine.pid}.txt'
    )
    await engine.request(RunShell(conversation_id=view.conversation.uuid, message_id=uuid.uuid4().hex, command=command))
    async with asyncio.timeout(PATIENCE):
        async for event in engine.events():
            if isinstance(event, TurnEnd):
                break
    return (Path(loaded.workspace) / f"{engine.pid}.txt").read_text("utf-8").removesuffix("\n")


@pytest.mark.slow
async def test_an_engine_answers_with_a_model_and_does_not_leave_its_key_in_the_host(
    loaded: Loaded, engines: list[ChildEngine], server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.script([{"text": "from a fork"}])
    monkeypatch.setenv("OPENAI_API_KEY", "a-key-of-this-shell")
    monkeypatch.setattr(client, "HOST_SECONDS", PATIENCE)  # LiteLLM is imported, on a machine that may be busy
    hosted = with_host(loaded)
    try:
        engine = await started(hosted, engines)
        assert is_warm(engine)
        view = await engine.request(CreateConversation())
        await engine.request(
            SendMessage(conversation_id=view.conversation.uuid, message_id=uuid.uuid4().hex, text="hello")
        )
        async with asyncio.timeout(PATIENCE):
            async for event in engine.events():
                if isinstance(event, TurnEnd):
                    break
        assert event.text == "from a fork"
        assert "a-key-of-this-shell" not in daemon_environment().values()
    finally:
        end_host(hosted)


@pytest.mark.slow
async def test_a_changed_program_replaces_the_host(
    hosted: Loaded, engines: list[ChildEngine], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    await started(hosted, engines)
    old = host_of(hosted)
    assert old is not None
    installed = tmp_path / "site-packages"
    installed.mkdir()
    monkeypatch.setenv("PYTHONPATH", str(installed), prepend=os.pathsep)
    monkeypatch.syspath_prepend(str(installed))
    second = await started(hosted, engines)
    await gone(old)
    new = host_of(hosted)
    assert new is not None
    assert is_warm(second)
    assert new.pid != old.pid
    assert (await engines[0].request(Hello())).pid == engines[0].pid, "the engines of the old program go on"


def test_a_changed_file_makes_another_program(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "part").mkdir()
    source = tmp_path / "part" / "module.py"
    source.write_text("one")
    monkeypatch.setattr(identity, "PACKAGE", tmp_path)
    before = identity.program_identity()
    assert identity.program_identity() == before
    source.write_text("three")
    assert identity.program_identity() != before


@pytest.mark.slow
async def test_a_chat_of_another_confinement_or_environment_starts_its_own_engine(
    hosted: Loaded, engines: list[ChildEngine], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert is_warm(await started(hosted, engines))
    with monkeypatch.context() as changed:
        changed.setattr(client, "confinement", lambda: identity.confinement() | {"mnt": "mnt:[1]"})
        assert not is_warm(await started(hosted, engines))
    with monkeypatch.context() as changed:
        changed.setenv("PYTHONNEO4JDEBUG", "")  # the driver reads it when it is imported
        assert not is_warm(await started(hosted, engines))
    assert is_warm(await started(hosted, engines))


async def test_a_killed_host_costs_its_engines_nothing_and_is_replaced(
    hosted: Loaded, engines: list[ChildEngine]
) -> None:
    first = await started(hosted, engines)
    host = host_of(hosted)
    assert host is not None
    host.send_signal(signal.SIGKILL)
    await gone(host)
    assert (await first.request(Hello())).pid == first.pid
    second = await started(hosted, engines)
    new = host_of(hosted)
    assert new is not None
    assert is_warm(second)
    assert new.pid != host.pid


@pytest.mark.slow
async def test_a_host_that_hangs_is_not_waited_for(
    hosted: Loaded, engines: list[ChildEngine], monkeypatch: pytest.MonkeyPatch
) -> None:
    await started(hosted, engines)
    host = host_of(hosted)
    assert host is not None
    monkeypatch.setattr(client, "HOST_SECONDS", 0.5)
    host.send_signal(signal.SIGSTOP)
    assert not is_warm(await started(hosted, engines))
    requested = request_engine(hosted)
    assert requested is not None
    assert not is_warm(await started(hosted, engines, requested))


@pytest.mark.slow
async def test_a_host_without_chats_ends_and_another_starts(hosted: Loaded, engines: list[ChildEngine]) -> None:
    brief = with_host(hosted, 0.01)
    first = await started(brief, engines)
    host = host_of(brief)
    assert host is not None
    await asyncio.sleep(1.0)  # longer than it would stay without the chat
    assert host.is_running(), "it has a chat"
    await first.close()
    await gone(host)
    assert not HostFiles.of(brief.paths).socket.exists()
    assert is_warm(await started(brief, engines))


async def test_no_host_runs_if_the_setting_says_so(hosted: Loaded, engines: list[ChildEngine]) -> None:
    without = with_host(hosted, 0)
    assert not is_warm(await started(without, engines))
    assert host_of(without) is None


@pytest.mark.slow
async def test_a_host_that_cannot_fork_becomes_the_engine(
    hosted: Loaded, engines: list[ChildEngine], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launch, "HOST", [*launch.HOST, "--no-fork"])
    first = await started(hosted, engines)
    second = await started(hosted, engines)
    assert is_warm(first)
    assert is_warm(second)
    await until(lambda: (successor := host_of(hosted)) and successor.pid not in (first.pid, second.pid))


async def test_malformed_requests_are_refused(lasting: Loaded, engines: list[ChildEngine]) -> None:
    for sent in (b"", b"GET /", b"\xff\n", b"{}\n"):
        with socket.socket(socket.AF_UNIX) as stranger:
            stranger.connect(str(HostFiles.of(lasting.paths).socket))
            stranger.sendall(sent)
            stranger.shutdown(socket.SHUT_WR)
            stranger.settimeout(PATIENCE)
            with suppress(ConnectionResetError):
                assert await asyncio.to_thread(stranger.recv, 100) == b""
    assert is_warm(await started(lasting, engines))


async def test_silent_connections_delay_no_chat(lasting: Loaded, engines: list[ChildEngine]) -> None:
    with ExitStack() as stack:
        silent = [stack.enter_context(socket.socket(socket.AF_UNIX)) for _ in range(30)]
        for number, connection in enumerate(silent):
            connection.connect(str(HostFiles.of(lasting.paths).socket))
            if number % 2:
                connection.sendall(b"{")
        assert is_warm(await started(lasting, engines)), "the host would not wait for a chat as long as for these"
        for connection in silent:
            connection.settimeout(PATIENCE)
            with suppress(ConnectionResetError):
                assert await asyncio.to_thread(connection.recv, 1) == b""


async def test_an_environment_of_any_size_arrives(
    lasting: Loaded, engines: list[ChildEngine], monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(8):
        monkeypatch.setenv(f"LARGE_{number}", "x" * 100_000)
    assert is_warm(await started(lasting, engines))


def test_the_host_loads_the_encoder_once_no_chat_has_its_own(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        host = EngineHost(HostFiles(tmp_path), listener, -1, forks=True, keep_seconds=60)
        assert not host._encoder_due(), "before the first chat"
        host._encoder_needed = True
        host._engines = {1}
        assert not host._encoder_due()
        host._engines = set()
        assert host._encoder_due()
        host._encoder_loaded = True
        assert not host._encoder_due()


def test_only_what_modules_read_must_be_equal(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "reads_at_import.py").write_text(
        "import os\n"
        "os.environ.get('READ_BY_A_MODULE'), os.environ.get('SET_BY_A_MODULE')\n"
        "os.environ['SET_BY_A_MODULE'] = 'x'\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("SET_BY_A_MODULE", "before")
    environment = ImportedEnvironment()
    with environment.recorded():
        import reads_at_import  # type: ignore[import-not-found]  # noqa: F401

        os.environ.get("READ_BY_A_FUNCTION")
    given = dict(os.environb) | {b"SET_BY_A_MODULE": b"another"}
    assert environment.differing(given) == []
    assert environment.differing(given | {b"READ_BY_A_FUNCTION": b"1"}) == []
    assert environment.differing(given | {b"READ_BY_A_MODULE": b"1"}) == ["READ_BY_A_MODULE"]
    assert environment.changes() == {b"SET_BY_A_MODULE": b"x"}
