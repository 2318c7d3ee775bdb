"""Property tests: the same examples in `make test`, new ones where they are asked for."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.support.property_tests import PIN_IT

PROPERTY = """
from hypothesis import given, strategies as st

@given(st.integers())
def test_numbers(number):
    with open("drawn.txt", "a") as file:
        file.write(f"{number} ")
    assert PASSES or number < 1_000
"""


def run(folder: Path, profile: str | None, *, passes: bool) -> tuple[str, str]:
    """Run a property test in another process; return what pytest printed and the examples that were drawn."""
    (folder / "drawn.txt").write_text("")
    (folder / "test_drawn.py").write_text(PROPERTY.replace("PASSES", str(passes)))
    environment = {name: value for name, value in os.environ.items() if name not in ("RAGFORGE_HYPOTHESIS", "CI")}
    environment["PYTHONPATH"] = str(Path(__file__).resolve().parents[1])
    if profile:
        environment |= {"RAGFORGE_HYPOTHESIS": profile, "CI": "true"}
    plugins = ["-p", "tests.support.property_tests", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:asyncio"]
    command = [sys.executable, "-m", "pytest", "-q", *plugins, "test_drawn.py"]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == (0 if passes else 1), done.stdout + done.stderr
    return done.stdout, (folder / "drawn.txt").read_text()


def test_examples_are_the_same_each_time_unless_new_ones_are_asked_for(tmp_path: Path) -> None:
    assert run(tmp_path, None, passes=True)[1] == run(tmp_path, None, passes=True)[1]
    assert run(tmp_path, "random", passes=True)[1] != run(tmp_path, "random", passes=True)[1]


def test_a_new_example_that_fails_is_to_be_pinned(tmp_path: Path) -> None:
    assert PIN_IT not in run(tmp_path, None, passes=False)[0]
    assert PIN_IT in run(tmp_path, "random", passes=False)[0]
    # A second attempt runs the same example again, as `.ci/run` does with what failed.
    assert run(tmp_path, "random", passes=False)[1].startswith("1000 ")
