"""Texts that would keep a careless pattern busy for minutes: each is read in a process with few seconds to compute."""

from __future__ import annotations

import subprocess
import sys

import pytest

_LENGTH = 60_000
_SECONDS = 5
"""Processor time that a process has, on a busy machine too; it needs a tenth."""
_HALF = _LENGTH // 2
_BLANKS = " " * _HALF
_NEWLINES = "\n" * _HALF
_READ = """
import importlib, resource, sys
module, name, length, seconds, *units = sys.argv[1:]
read = getattr(importlib.import_module(module), name)
resource.setrlimit(resource.RLIMIT_CPU, (int(seconds), int(seconds)))
for unit in units:
    read(unit * (int(length) // len(unit)) + " <b> z")
"""
_MARKS = ("[", "[a](", "`", "~~", "**a ", "/* ", " ", "# a  ", "-|", "e.g. ", "1. b ", "export\n")


@pytest.mark.parametrize(
    ("module", "name", "units"),
    [
        ("ragforge_tui.memory.prose", "answer_prose", _MARKS),
        ("ragforge_tui.memory.prose", "opening_sentence", _MARKS),
        ("ragforge_tui.shared.plans", "is_plan", (f"- b\n- c\n{'a' * _HALF}", f"- b\n- c\n{'a-' * (_HALF // 2)}")),
        ("ragforge_tui.shared.truncation", "fold_runs", (f"ok{_BLANKS}", f"...{_BLANKS}")),
        ("ragforge_tui.export.markdown", "escaped_block", (f"a{'`' * _HALF}", f"a{_NEWLINES}b")),
        ("ragforge_tui.code.walk", "plain_comment", ("\n", " ")),
        ("ragforge_tui.code.mentions", "names_in", ("`",)),
        ("ragforge_tui.memory.findings.likeness", "gist", ("a", "a.")),
        ("ragforge_tui.llm.offline.intents", "parse_intent", ("a", ".", "a/")),
        ("ragforge_tui.graph.store.summary_tree", "finding_from", (f"a{_BLANKS}b",)),
    ],
)
def test_a_long_text_of_marks_is_read_in_time(module: str, name: str, units: tuple[str, ...]) -> None:
    subprocess.run([sys.executable, "-c", _READ, module, name, str(_LENGTH), str(_SECONDS), *units], check=True)
