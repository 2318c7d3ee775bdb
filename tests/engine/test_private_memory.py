"""A process that holds keys cannot be read by other programs of the same user."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

# Root may read everything, so the child becomes nobody first, and readable again, which a change of user ends.
CHILD = """
import ctypes, os, subprocess, sys
from ragforge_tui.engine.process import close_to_others

if os.getuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
    ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)
look = ["/bin/cat", f"/proc/{os.getpid()}/environ"]
print(subprocess.run(look, cwd="/", capture_output=True).returncode)
close_to_others()
print(subprocess.run(look, cwd="/", capture_output=True).returncode)
print(subprocess.run(["/bin/cat", "/proc/self/environ"], cwd="/", capture_output=True).returncode)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux shows a process's environment to others")
def test_commands_cannot_read_the_environment_of_the_engine() -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path.cwd())}
    run = subprocess.run([sys.executable, "-c", CHILD], env=environment, capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["0", "1", "0"]
