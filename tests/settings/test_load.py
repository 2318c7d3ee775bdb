"""Settings: what wins, what a project may set, and what a person reads when something is wrong."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ragforge_tui.settings import load as config_files
from ragforge_tui.settings.keys import example_yaml, keys
from ragforge_tui.settings.schema import Loaded, Settings
from ragforge_tui.shared.errors import ConfigError

ROOT = Path(__file__).parents[2]


class Desk:
    """A home and a workspace to put settings files into."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        self.workspace = folder / "work"
        self.home.mkdir()
        (self.workspace / ".ragforge").mkdir(parents=True)
        self.user = self.home / "config.yaml"
        self.project = self.workspace / ".ragforge" / "config.yaml"
        self.env = {"RAGFORGE_HOME": str(self.home)}

    def load(self, **arguments: Any) -> Loaded:
        return config_files.load(workspace=str(self.workspace), env=self.env, **arguments)

    def error(self, **arguments: Any) -> str:
        with pytest.raises(ConfigError) as caught:
            self.load(**arguments)
        return str(caught.value)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_nothing_configured_gives_the_defaults(desk: Desk) -> None:
    loaded = desk.load()
    assert loaded.settings == Settings()
    assert loaded.origins == {}
    assert loaded.workspace == str(desk.workspace.resolve())


def test_each_layer_wins_over_the_one_below_and_is_named(desk: Desk) -> None:
    desk.user.write_text("model: {name: from-user, retries: 1}\ngraph: {uri: 'bolt://user:7687'}\ntui: {theme: nord}\n")
    desk.project.write_text("tui: {theme: gruvbox}\npersonas: {default: Ada}\n")
    desk.env |= {"RAGFORGE_MODEL": "from-env", "NEO4J_URI": "neo4j://env", "NEO4J_DATABASE": "notes"}
    loaded = desk.load(flags={"model.name": "from-flag", "graph.uri": None, "personas.default": None})
    assert loaded.settings.model.name == "from-flag"
    assert loaded.settings.model.retries == 1
    assert loaded.settings.graph.uri == "neo4j://env"
    assert loaded.settings.graph.database == "notes"
    assert loaded.settings.tui.theme == "gruvbox"
    assert loaded.settings.personas.default == "Ada"
    assert loaded.origins == {
        "model.name": "--model",
        "model.retries": str(desk.user),
        "graph.uri": "NEO4J_URI",
        "graph.database": "NEO4J_DATABASE",
        "tui.theme": str(desk.project),
        "personas.default": str(desk.project),
    }


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("RAGFORGE_MODEL", "model.name"),
        ("RAGFORGE_API_KEY", "model.api_key"),
        ("NEO4J_USERNAME", "graph.username"),
        ("NEO4J_PASSWORD", "graph.password"),
        ("NEO4J_DATABASE", "graph.database"),
    ],
)
def test_environment_variables(desk: Desk, name: str, key: str) -> None:
    desk.env[name] = "value"
    loaded = desk.load()
    section, field = key.split(".")
    assert getattr(getattr(loaded.settings, section), field) == "value"
    assert loaded.origins == {key: name}


def test_an_empty_variable_counts_as_not_set(desk: Desk) -> None:
    desk.env |= {"NEO4J_URI": "", "RAGFORGE_MODEL": "", "RAGFORGE_CONFIG": ""}
    assert desk.load().origins == {}


def test_embedded_takes_a_uri_of_a_lower_layer_back(desk: Desk) -> None:
    desk.env["NEO4J_URI"] = "bolt://elsewhere"
    loaded = desk.load(flags={"graph.uri": "embedded"})
    assert loaded.settings.graph.uri == ""
    assert loaded.origins["graph.uri"] == "--graph"


def test_sections_may_be_empty_and_the_example_sets_nothing(desk: Desk) -> None:
    desk.user.write_text("model:\nagent:\n  memory:\n")
    assert desk.load().settings == Settings()
    desk.user.write_text(example_yaml())
    loaded = desk.load()
    assert loaded.settings == Settings()
    assert loaded.origins == {}


def test_config_named_by_flag_or_variable(desk: Desk, tmp_path: Path) -> None:
    flag, variable = tmp_path / "flag.yaml", tmp_path / "variable.yaml"
    flag.write_text("user: {name: F}\n")
    variable.write_text("user: {name: V}\n")
    desk.user.write_text("user: {name: U}\n")
    assert desk.load().settings.user.name == "U"
    desk.env["RAGFORGE_CONFIG"] = str(variable)
    assert desk.load().settings.user.name == "V"
    assert desk.load(config_file=str(flag)).settings.user.name == "F"
    assert "does not exist" in desk.error(config_file=str(tmp_path / "none.yaml"))
    desk.env["RAGFORGE_CONFIG"] = str(tmp_path / "none.yaml")
    assert "does not exist" in desk.error()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("model: {nmae: x}", ["model.nmae is not a setting", "Did you mean model.name?"]),
        ("modle: {name: x}", ["modle is not a setting", "Did you mean model?"]),
        ("theme: nord", ["theme is not a setting", "Did you mean tui.theme?"]),
        ("model: {zzz: 1}", ["model.zzz is not a setting", "Possible here: name"]),
        ("model: {retries: many}", ["model.retries", "a whole number, at least 0", "the string 'many'"]),
        ("model: {retries: -1}", ["model.retries", "at least 0", "the whole number -1"]),
        ("model: {retries: true}", ["model.retries", "a whole number", "found true"]),
        ("model: {token_timeout: 0}", ["model.token_timeout", "more than 0"]),
        ("model: {token_timeout: .inf}", ["model.token_timeout", "a number"]),
        ("model: {name: 5}", ["model.name", "a string", "the whole number 5"]),
        ("model: {name: null}", ["model.name", "a string", "null"]),
        ("model: {api_base: localhost}", ["model.api_base", "http://"]),
        ("graph: {uri: 'http://x'}", ["graph.uri", "bolt"]),
        ("graph: {adopt: 'yes please'}", ["graph.adopt", "true or false"]),
        ("tui: {keymap: [a]}", ["tui.keymap", "a mapping from a string to a string", "a list"]),
        ("tui: [a]", ["tui: expected a mapping with theme", "a list"]),
        ("agent: {memory: {recall: {scope: moon}}}", ["agent.memory.recall.scope", "one of all, none, workspace"]),
        ("agent: {memory: {recall: {recency_boost: 2}}}", ["agent.memory.recall.recency_boost", "at most 1"]),
        ("just a text", ["expected a mapping", "the string"]),
        ("model:\n  name: a\n  name: b\n", ["line 3", "'name' appears twice"]),
        ("model: {name: 'x\n", ["line 2", "not valid YAML"]),
        ("model:\n\tname: x\n", ["line 2", "not valid YAML"]),
        ("!!python/object/apply:os.system ['true']", ["line 1", "not valid YAML"]),
        ("[" * 5000, ["not valid YAML"]),
    ],
)
def test_mistakes_are_named(desk: Desk, text: str, said: list[str]) -> None:
    desk.user.write_text(text)
    message = desk.error()
    assert str(desk.user) in message
    for part in said:
        assert part in message


def test_a_wrong_variable_and_a_wrong_flag_are_named(desk: Desk) -> None:
    assert desk.error(flags={"graph.uri": "ftp://x"}).startswith("--graph: expected 'embedded' or a URI")
    assert "model.nam is not a setting" in desk.error(flags={"model.nam": "x"})
    desk.env["NEO4J_URI"] = "localhost:7687"
    assert desk.error().startswith("NEO4J_URI: expected")


def test_secrets_are_not_repeated_in_errors(desk: Desk) -> None:
    desk.user.write_text("graph: {password: 123454321}\n")
    assert "123454321" not in desk.error()
    desk.user.write_text("graph: {uri: 'htp://neo:hunter2@host'}\n")
    assert "hunter2" not in desk.error()


@pytest.mark.parametrize(
    "text",
    [
        "model: {name: x}",
        "model: {api_base: 'https://evil.example'}",
        "graph: {uri: 'bolt://evil.example'}",
        "graph: {adopt: true}",
        "tools: {command_timeout: 9}",
        "tools: {agents_md: true}",
        "tools: {allow_commands: ['git *']}",
        "model: {max_cost: 9}",
        "model: {max_session_cost: 9}",
        "tui: {notify: 'off'}",
        "tui: {keymap: {mode: up}}",
        "agent: {memory: {summarization: {model: x}}}",
        "agent: {memory: {embeddings: {model: x}}}",
        "agent: {memory: {export: {enabled: true}}}",
        "user: {name: x}",
    ],
)
def test_a_project_may_not_set(desk: Desk, text: str) -> None:
    desk.project.write_text(text)
    message = desk.error()
    assert str(desk.project) in message
    assert "cannot be set here" in message
    desk.user.write_text(text)
    desk.project.unlink()
    desk.load()


def test_a_project_may_set(desk: Desk) -> None:
    desk.project.write_text(
        "personas: {default: Ada}\ntui: {theme: nord, keymap: {stop: f2}}\ntools: {ignore: [build/]}\n"
        "agent: {memory: {summarization: {every_turns: 3}}}\n"
    )
    settings = desk.load().settings
    assert settings.personas.default == "Ada"
    assert settings.tui.keymap == {"stop": "f2"}
    assert settings.tools.ignore == ["build/"]
    assert settings.agent.memory.summarization.every_turns == 3


def test_files_that_cannot_be_read(desk: Desk) -> None:
    desk.user.mkdir()
    assert "cannot be read" in desk.error()
    desk.user.rmdir()
    desk.user.write_bytes(b"model:\n  name: \xff\n")
    assert "line 2: not UTF-8" in desk.error()
    desk.user.write_bytes(b"#" * (1024 * 1024 + 1))
    assert "larger than" in desk.error()


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_a_file_without_permission(desk: Desk) -> None:
    desk.user.write_text("user: {name: x}")
    desk.user.chmod(0)
    assert "cannot be read: Permission denied" in desk.error()


def test_workspace_must_be_a_folder(desk: Desk, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be used"):
        config_files.load(workspace=str(tmp_path / "none"), env=desk.env)
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(ConfigError, match="is not a folder"):
        config_files.load(workspace=str(file), env=desk.env)


def test_workspace_has_no_symlinks(desk: Desk, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(desk.workspace)
    loaded = config_files.load(workspace=str(link), env=desk.env)
    assert loaded.workspace == str(desk.workspace.resolve())


def test_one_folder_for_everything(desk: Desk) -> None:
    paths = desk.load().paths
    assert paths.config == str(desk.home)
    for folder in (paths.data, paths.state):
        assert Path(folder).parent == desk.home


def test_platform_folders_otherwise(tmp_path: Path) -> None:
    paths = config_files.find_paths({})
    assert len({paths.config, paths.data, paths.state}) >= 2
    assert all("ragforge" in folder for folder in (paths.config, paths.data, paths.state))


def test_the_example_file_is_the_definition() -> None:
    assert (ROOT / "config.example.yaml").read_text(encoding="utf-8") == example_yaml()


def test_the_example_file_is_generated_by_the_module() -> None:
    run = subprocess.run(
        [sys.executable, "-m", "ragforge_tui.settings.load", "--example"], cwd=ROOT, capture_output=True, check=True
    )
    assert run.stdout.decode() == example_yaml()


def test_every_setting_shows_what_it_does() -> None:
    assert [key.path for key in keys().values() if not key.description] == []
    text = example_yaml()
    for key in keys().values():
        assert f"# {key.path.rpartition('.')[2]}:" in text
