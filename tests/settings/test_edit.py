"""Editing one setting in a file: everything else stays to the character."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import pytest
import yaml

from ragforge_tui.settings.edit import remove_value, set_value
from ragforge_tui.settings.keys import example_yaml, keys
from ragforge_tui.settings.load import load
from ragforge_tui.settings.schema import Settings
from ragforge_tui.shared.errors import ConfigError

OWN = """\
# mine
model:
  name: "ollama/qwen3"   # local
  temperature: 0.2

tools:
  ignore:
    # big
    - "*.bin"
    - 'dist/'  # built
    - node_modules

# looks
tui: {theme: nord, show_reasoning: true}
"""


def edit(folder: Path, before: str, key: str, value: object) -> str:
    """The text after one edit."""
    path = folder / "config.yaml"
    path.write_bytes(before.encode())
    set_value(path, key, value)
    return path.read_bytes().decode()


def at(text: str, key: str) -> Any:
    """The value of a key."""
    data = yaml.safe_load(text)
    for part in key.split("."):
        data = data[part]
    return data


def test_replaces_a_value_and_keeps_its_comment(tmp_path: Path) -> None:
    after = edit(tmp_path, OWN, "model.name", "offline")
    assert after == OWN.replace('"ollama/qwen3"   # local', '"offline"        # local')  # the comment keeps its column


def test_adds_to_a_section_behind_its_last_setting(tmp_path: Path) -> None:
    after = edit(tmp_path, OWN, "model.retries", 2)
    assert after == OWN.replace("temperature: 0.2\n", "temperature: 0.2\n  retries: 2\n")


def test_adds_sections_that_are_missing(tmp_path: Path) -> None:
    after = edit(tmp_path, OWN, "agent.memory.recall.scope", "all")
    assert after == OWN + 'agent:\n  memory:\n    recall:\n      scope: "all"\n'


def test_edits_a_section_written_on_one_line(tmp_path: Path) -> None:
    after = edit(tmp_path, OWN, "tui.theme", "auto")
    assert after == OWN.replace("{theme: nord, show_reasoning: true}", '{theme: "auto", show_reasoning: true}')


def test_items_come_and_go_without_touching_their_neighbours(tmp_path: Path) -> None:
    after = edit(tmp_path, OWN, "tools.ignore", ["*.bin", "node_modules", "*.log"])
    assert after == OWN.replace("    - 'dist/'  # built\n", "").replace(
        "    - node_modules\n", '    - node_modules\n    - "*.log"\n'
    )


def test_other_lists_are_written_again(tmp_path: Path) -> None:
    after = edit(tmp_path, OWN, "tools.ignore", ["a", "b"])
    assert at(after, "tools.ignore") == ["a", "b"]
    assert "# looks" in after and "# mine" in after


def test_makes_the_file_for_the_user_alone(tmp_path: Path) -> None:
    path = tmp_path / "new" / "config.yaml"
    set_value(path, "tui.theme", "nord")
    assert path.read_text() == 'tui:\n  theme: "nord"\n'
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_follows_a_link_and_keeps_the_mode(tmp_path: Path) -> None:
    real = tmp_path / "dotfiles.yaml"
    real.write_text("tui:\n  theme: nord\n")
    real.chmod(0o640)
    link = tmp_path / "config.yaml"
    link.symlink_to(real)
    set_value(link, "tui.theme", "auto")
    assert link.is_symlink() and real.read_text() == 'tui:\n  theme: "auto"\n'
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["config.yaml", "dotfiles.yaml"]


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_line_ends_and_a_missing_last_one(tmp_path: Path, newline: str) -> None:
    before = f"model:{newline}  name: x"
    after = edit(tmp_path, before, "model.retries", 1)
    assert after == f"model:{newline}  name: x{newline}  retries: 1{newline}"


def test_a_value_is_under_its_commented_default(tmp_path: Path) -> None:
    after = edit(tmp_path, example_yaml(), "tui.theme", "nord")
    assert after == example_yaml().replace('  # theme: "auto"\n', '  # theme: "auto"\n  theme: "nord"\n')
    again = edit(tmp_path, after, "tui.show_reasoning", True)
    line = "  # show_reasoning: false\n"
    assert again == after.replace(line, f"{line}  show_reasoning: true\n")


def kind(key: str) -> tuple[str, int]:
    """Return what an edit of a key depends on: the type of its value, and how deep it is."""
    return type(keys()[key].default).__name__, key.count(".")


ONE_OF_A_KIND = {kind(key): key for key in keys()}.values()


@pytest.mark.parametrize(
    "key", [key if key in ONE_OF_A_KIND else pytest.param(key, marks=pytest.mark.slow) for key in keys()]
)
def test_every_setting_in_the_example_file_and_back(tmp_path: Path, key: str) -> None:
    """Twice set, read back by the program itself, and taken out again: the example is as it was."""
    path = tmp_path / "config.yaml"
    path.write_text(example_yaml())
    default = keys()[key].default
    for value in (default, default):
        set_value(path, key, value)
    assert all(line in path.read_text().splitlines() for line in example_yaml().splitlines())
    loaded = load(config_file=str(path), workspace=str(tmp_path), env={"RAGFORGE_HOME": str(tmp_path)})
    assert loaded.settings == Settings()
    assert loaded.origins == {key: str(path)}
    remove_value(path, key)
    assert path.read_text() == example_yaml()


def test_removing_keeps_the_rest(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(OWN)
    remove_value(path, "tools.ignore")
    remove_value(path, "tui.theme")
    remove_value(path, "tui.keymap")
    remove_value(path, "agent.memory.enabled")
    text = path.read_text()
    assert "ignore" not in text and "- node_modules" not in text
    assert text.startswith(OWN.partition("tools:")[0])
    assert text.endswith("# looks\ntui: {show_reasoning: true}\n")


def test_a_list_written_over_lines_is_removed_whole(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("tools:\n  ignore:\n  - a\n  - b\n  # after\n  command_timeout: 5\n")
    remove_value(path, "tools.ignore")
    assert path.read_text() == "tools:\n  # after\n  command_timeout: 5\n"


@pytest.mark.parametrize(
    ("key", "value"),
    [("tui.theme", 3), ("model.retries", -1), ("agent.memory.recall.scope", "here"), ("tui.colour", "x"), ("tui", {})],
)
def test_a_wrong_value_changes_nothing(tmp_path: Path, key: str, value: object) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(OWN)
    with pytest.raises(ConfigError):
        set_value(path, key, value)
    assert path.read_text() == OWN


@pytest.mark.parametrize(
    "before",
    [
        "model: &m {name: x}\ntui: 5\n",
        "tui:\n  theme: [\n",
        "- a\n",
    ],
)
def test_unsafe_edits_are_refused(tmp_path: Path, before: str) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(before)
    with pytest.raises(ConfigError):
        set_value(path, "tui.theme", "nord")
    assert path.read_text() == before


def test_an_alias_is_replaced_by_the_value(tmp_path: Path) -> None:
    before = "personas: {default: &t Ada}\ntui:\n  theme: *t\n"
    assert edit(tmp_path, before, "tui.theme", "nord") == before.replace("*t", '"nord"')


FOUR_SPACES = """\
# mine
tools:
    # patterns
    ignore:
    - a   # first

    # last
    - b
tui:

    theme: nord
"""


def test_other_indentation_stays(tmp_path: Path) -> None:
    after = edit(tmp_path, FOUR_SPACES, "tools.command_timeout", 5.0)
    assert after == FOUR_SPACES.replace("    - b\n", "    - b\n    command_timeout: 5.0\n")
    after = edit(tmp_path, FOUR_SPACES, "tools.ignore", ["b", "c"])
    assert after == FOUR_SPACES.replace("    - a   # first\n", "").replace("    - b\n", '    - b\n    - "c"\n')
    assert edit(tmp_path, FOUR_SPACES, "tui.theme", "auto") == FOUR_SPACES.replace("nord", '"auto"')


def test_values_over_several_lines(tmp_path: Path) -> None:
    flow = "tools:\n  ignore: [\n    a,\n    b\n  ]\n# looks\ntui:\n  theme: nord  # dark\n"
    after = edit(tmp_path, flow, "tui.plain", True)
    assert at(after, "tools.ignore") == ["a", "b"]
    assert after.endswith("# looks\ntui:\n  theme: nord  # dark\n  plain: true\n")
    literal = "user:\n  name: |\n    Ada\n    # Lovelace\ntui:\n  theme: nord\n"
    assert edit(tmp_path, literal, "tui.theme", "auto") == literal.replace("nord", '"auto"')


def test_texts_that_need_quotes(tmp_path: Path) -> None:
    for text in ("yes", "a: b", "#x", 'say "x"', "été 日本", "- x", "null", "1", "two\nlines", "{x}"):
        assert at(edit(tmp_path, OWN, "user.name", text), "user.name") == text
    assert at(edit(tmp_path, OWN, "model.temperature", 1e-05), "model.temperature") == 1e-05


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(OWN)
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(ConfigError, match="cannot be written"):
            set_value(path, "tui.theme", "nord")
    finally:
        tmp_path.chmod(0o700)
    assert path.read_text() == OWN
