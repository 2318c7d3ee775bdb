"""Engine processes forked from one that has imported LiteLLM, which costs seconds of processor time per import.

A process started here is the engine's own `main` in a session of its own, with the pipes, the log, the working folder
and the environment it would get from `ChildEngine`. Tests of the start itself use the real command line.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any
from unittest import mock

from ragforge_tui.engine import child
from ragforge_tui.llm import litellm_loader

PRELOADED = ["litellm", "ragforge_tui.engine.server"]
_CONTEXT = get_context("forkserver")
_start_process = asyncio.create_subprocess_exec


@contextmanager
def warm_engines() -> Iterator[None]:
    """Let `ChildEngine.start` fork a warm process."""
    with mock.patch.object(asyncio, "create_subprocess_exec", _start):
        yield


def start_warm(target: Callable[..., object], *arguments: object) -> ForkServerProcess:
    """Start a function of a module in a process that has imported LiteLLM; the arguments are pickled."""
    _CONTEXT.set_forkserver_preload(PRELOADED)
    process = _CONTEXT.Process(target=target, args=arguments, daemon=False)
    # The fork server starts with the first process: LiteLLM reads these when it is imported.
    with mock.patch.dict(os.environ, litellm_loader._ENVIRONMENT):
        process.start()
    return process


class WarmProcess:
    """What `ChildEngine` uses of an `asyncio.subprocess.Process`."""

    def __init__(self, process: ForkServerProcess, stdin: asyncio.StreamWriter, stdout: asyncio.StreamReader) -> None:
        assert process.pid is not None
        self._process = process
        self._ended = asyncio.Event()
        self.pid = process.pid
        self.stdin = stdin
        self.stdout = stdout
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(process.sentinel, self._end)

    def _end(self) -> None:
        self._loop.remove_reader(self._process.sentinel)
        self._process.join()
        self._ended.set()

    @property
    def returncode(self) -> int | None:
        """The exit status once the end was noticed; negative for a signal."""
        return self._process.exitcode if self._ended.is_set() else None

    async def wait(self) -> int | None:
        """Wait for the end and return the exit status."""
        await self._ended.wait()
        return self._process.exitcode

    def kill(self) -> None:
        """kill -9."""
        self._process.kill()


async def _start(program: str, *arguments: str, stderr: int, limit: int, **options: Any) -> Any:
    if arguments != ("-P", "-m", child.__name__):
        return await _start_process(program, *arguments, stderr=stderr, limit=limit, **options)
    in_read, in_write = _CONTEXT.Pipe(duplex=False)
    out_read, out_write = _CONTEXT.Pipe(duplex=False)
    log = Connection(os.dup(stderr), readable=False)
    process = await asyncio.to_thread(start_warm, _run, in_read, out_write, log, str(Path.cwd()), dict(os.environ))
    for end in (in_read, out_write, log):
        end.close()
    return WarmProcess(process, await _writer(in_write), await _reader(out_read, limit))


async def _writer(pipe: Connection[Any, Any]) -> asyncio.StreamWriter:
    loop = asyncio.get_running_loop()
    transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, _file(pipe, "wb"))
    return asyncio.StreamWriter(transport, protocol, None, loop)


async def _reader(pipe: Connection[Any, Any], limit: int) -> asyncio.StreamReader:
    reader = asyncio.StreamReader(limit=limit)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), _file(pipe, "rb"))
    return reader


def _file(pipe: Connection[Any, Any], mode: str) -> Any:
    descriptor = os.dup(pipe.fileno())
    pipe.close()
    return os.fdopen(descriptor, mode, buffering=0)


def _run(
    stdin: Connection[Any, Any],
    stdout: Connection[Any, Any],
    stderr: Connection[Any, Any],
    folder: str,
    environment: dict[str, str],
) -> None:
    os.setsid()
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    for number, pipe in enumerate((stdin, stdout, stderr)):
        os.dup2(pipe.fileno(), number)
        pipe.close()
    sys.stdin, sys.stdout, sys.stderr = os.fdopen(0), os.fdopen(1, "w"), os.fdopen(2, "w")
    sys.exit(child.main())
