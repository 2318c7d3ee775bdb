"""Property tests: the same examples in `make test`, new ones where they are asked for."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.support.property_tests import PIN_IT

NAMES = ("passing", "failing")
PROPERTIES = """
from hypothesis import given, strategies as st

@given(st.integers())
def test_passing(number):
    with open("passing.txt", "a") as file:
        file.write(f"{number} ")

@given(st.integers())
def test_failing(number):
    with open("failing.txt", "a") as file:
        file.write(f"{number} ")
    assert number < 1_000
"""


def run(folder: Path, profile: str | None) -> tuple[str, dict[str, str]]:
    """Run a property test that passes and one that fails in another process.

    Returns:
        What pytest printed, and the examples that each test drew, by its name.
    """
    for name in NAMES:
        (folder / f"{name}.txt").write_text("")
    environment = {name: value for name, value in os.environ.items() if name not in ("RAGFORGE_HYPOTHESIS", "CI")}
    environment["PYTHONPATH"] = str(Path(__file__).resolve().parents[1])
    if profile:
        environment |= {"RAGFORGE_HYPOTHESIS": profile, "CI": "true"}
    plugins = ["-p", "tests.support.property_tests", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:asyncio"]
    command = [sys.executable, "-m", "pytest", "-q", *plugins, "test_drawn.py"]
    (folder / "test_drawn.py").write_text(PROPERTIES)
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "1 failed, 1 passed" in done.stdout, done.stdout + done.stderr
    return done.stdout, {name: (folder / f"{name}.txt").read_text() for name in NAMES}


def test_examples_are_the_same_each_time(tmp_path: Path) -> None:
    (printed, first), (_, second) = run(tmp_path, None), run(tmp_path, None)
    assert first["passing"] == second["passing"]
    assert PIN_IT not in printed


def test_new_examples_are_drawn_if_asked_for_and_one_that_fails_is_to_be_pinned(tmp_path: Path) -> None:
    (printed, first), (_, second) = run(tmp_path, "random"), run(tmp_path, "random")
    assert first["passing"] != second["passing"]
    assert PIN_IT in printed
    # A second attempt runs the same example again.
    assert second["failing"].startswith("1000 ")
