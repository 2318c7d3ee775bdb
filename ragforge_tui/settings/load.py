"""Loading and merging of the settings: flag, environment, project file, user file, default.

Used by the command line and the Python API, once per process; the result is passed to the engine unchanged. An invalid
setting prevents the start with the file, the key path, the expected and the actual value: nothing runs
half-configured. Separate from `schema.py`, which only defines the settings.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from ragforge_tui.settings.check import checked, found, unknown
from ragforge_tui.settings.folders import find_paths, user_file
from ragforge_tui.settings.keys import example_yaml, sections
from ragforge_tui.settings.schema import Loaded, Settings
from ragforge_tui.settings.specification import understood, value_of
from ragforge_tui.shared.errors import ConfigError
from ragforge_tui.shared.files import read_regular

ENVIRONMENT = {
    "RAGFORGE_MODEL": "model.name",
    "RAGFORGE_API_BASE": "model.api_base",
    "RAGFORGE_API_KEY": "model.api_key",
    "NEO4J_URI": "graph.uri",
    "NEO4J_USERNAME": "graph.username",
    "NEO4J_PASSWORD": "graph.password",
    "NEO4J_DATABASE": "graph.database",
    "RAGFORGE_KEEP_WARM_MINUTES": "engine.keep_warm_minutes",
}
FLAGS = {
    "model.name": "--model",
    "graph.uri": "--graph",
    "personas.default": "--persona",
    "tui.plain": "--plain",
}

OF_PROGRAM = "settings of the program"
"""Origin of settings that a program passes to the Python API."""

_PROJECT_MAY_SET = ("personas.default", "tui.", "tools.ignore", "agent.memory.summarization.")
_PROJECT_MAY_NOT = ("agent.memory.summarization.model", "tui.notify")
_PROJECT_MAY_NOT_BIND = "mode"
"""Command that a project may not bind: on a frequently used key it would let the agent edit files without approval."""
_PROJECT_WHY = (
    "a project's file comes with the project, so it may only set personas.default, tui (without notify and a key for "
    "mode), tools.ignore and agent.memory.summarization (without model)"
)
_MAX_BYTES = 1024 * 1024

Layer = dict[str, Any]
"""Dotted key to value, checked."""


def load(
    *,
    config_file: str | None = None,
    workspace: str | None = None,
    flags: Mapping[str, Any] | None = None,
    env: Mapping[str, str] | None = None,
    values: Mapping[str, Any] | None = None,
) -> Loaded:
    """Read all layers and merge them.

    Args:
        config_file: Explicit path of the user's file (``--config``), which must exist. None: RAGFORGE_CONFIG, else
            config.yaml in the config folder if it exists.
        workspace: The folder the agent works in; None: the current one.
        flags: Dotted key to value; None values count as not given.
        env: The environment; None: the process's own.
        values: Settings of a program in the form of config.yaml; they take precedence over the environment.

    Raises:
        ConfigError: A setting is invalid; the message states where, and the expected and actual value.
    """
    env = os.environ if env is None else env
    paths = find_paths(env)
    folder = find_workspace(workspace)
    layers: list[tuple[Layer, dict[str, str]]] = []
    file, explicit = user_file(config_file, paths, env)
    _add_file(layers, file, required=explicit)
    # In the home folder the project's file can be the user's own file under another path, without its restrictions.
    project = Path(folder, ".ragforge", "config.yaml")
    if not _same_file(project, file):
        _add_file(layers, project, project=True)
    from_env = {name: key for name, key in ENVIRONMENT.items() if env.get(name)}
    layers.append(
        (
            {key: _checked(key, env[name], name) for name, key in from_env.items()},
            {key: name for name, key in from_env.items()},
        )
    )
    program: Layer = {}
    _check_section("", None if values is None else dict(values), OF_PROGRAM, program)
    layers.append((program, dict.fromkeys(program, OF_PROGRAM)))
    given = {key: value for key, value in (flags or {}).items() if value is not None}
    names = {key: FLAGS.get(key, key) for key in given}
    layers.append(({key: _checked(key, value, names[key]) for key, value in given.items()}, names))
    merged: Layer = {}
    origins: dict[str, str] = {}
    for values, sources in layers:
        merged.update(values)
        origins.update(sources)
    return Loaded(settings=_assemble(merged), paths=paths, workspace=folder, origins=origins, config_file=str(file))


def find_workspace(workspace: str | None) -> str:
    """Return the workspace as an absolute path without symlinks.

    Raises:
        ConfigError: The folder does not exist or cannot be used.
    """
    try:
        folder = Path(workspace).expanduser() if workspace is not None else Path.cwd()
        resolved = folder.resolve(strict=True)
    except (OSError, RuntimeError, ValueError) as error:
        what = (
            f"The workspace {workspace} cannot be used"
            if workspace is not None
            else "The current folder no longer exists"
        )
        raise ConfigError(f"{what}: {_reason(error)}.", todo="Name a folder with --workspace.") from error
    if not resolved.is_dir():
        raise ConfigError(f"The workspace {folder} is not a folder.", todo="Name a folder with --workspace.")
    return str(resolved)


def _same_file(first: Path, second: Path) -> bool:
    try:
        return first.samefile(second)
    except OSError:
        return False


def _project_may_set(key: str, value: Any) -> bool:
    if key == "tui.keymap" and any(name.strip("/ ").lower() == _PROJECT_MAY_NOT_BIND for name in value):
        return False
    return key.startswith(_PROJECT_MAY_SET) and key not in _PROJECT_MAY_NOT


def _add_file(
    layers: list[tuple[Layer, dict[str, str]]], file: Path, *, required: bool = False, project: bool = False
) -> None:
    data = _read_yaml(file, required=required)
    layer: Layer = {}
    _check_section("", data, str(file), layer)
    if project:
        for key, value in layer.items():
            if not _project_may_set(key, value):
                raise ConfigError(
                    f"{file}: {key} cannot be set here: {_PROJECT_WHY}.", todo="Set it in your own config.yaml."
                )
    layers.append((layer, dict.fromkeys(layer, str(file))))


def _read_yaml(file: Path, *, required: bool) -> Any:
    try:
        if not file.is_file() and not required and not file.exists():
            return None
        raw = read_regular(file, _MAX_BYTES + 1, cut=True)
        if len(raw) > _MAX_BYTES:
            raise ConfigError(f"{file}: larger than 1 MiB, the limit for a settings file.")
        text = raw.decode("utf-8-sig")
    except FileNotFoundError as error:
        raise ConfigError(
            f"The settings file {file} does not exist.", todo="Create one with `ragforge-chat config init`."
        ) from error
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read: {_reason(error)}.") from error
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise ConfigError(f"{file}, line {line}: not UTF-8 text.") from error
    from ragforge_tui.settings.parse import parse_yaml  # imported late: many users have no file

    return parse_yaml(file, text)


def _check_section(path: str, data: Any, file: str, layer: Layer) -> None:
    """Add the checked settings of one section to `layer`; an empty section is valid."""
    if data is None:
        return
    section = sections()[path]
    where = f"{file}: {path}" if path else file
    if not isinstance(data, dict):
        raise ConfigError(f"{where}: expected a mapping with {', '.join(section.names)}; found {found(path, data)}.")
    for name, value in data.items():
        below = f"{path}.{name}" if path else str(name)
        meant = {below: value} if name in section.names else understood(below, value, file)
        if meant is None:
            raise unknown(below, section, file)
        for key, each in meant.items():
            if key in sections():
                _check_section(key, each, file, layer)
            elif key in layer:
                raise ConfigError(f"{file}: {key} is set twice, once as {below}.", todo="Remove one of them.")
            else:
                layer[key] = _checked(key, value_of(key, each), file)


def _checked(key: str, value: Any, origin: str) -> Any:
    """Return a value converted to its setting's type; errors name a variable or a flag without the key."""
    where = origin if origin in (*ENVIRONMENT, *FLAGS.values(), key) else ""
    return checked(key, value, origin, where=where, strict=origin not in ENVIRONMENT)


def _reason(error: BaseException) -> str:
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)


def _assemble(layer: Layer) -> Settings:
    tree: dict[str, Any] = {}
    for key, value in layer.items():
        *parents, name = key.split(".")
        node = tree
        for parent in parents:
            node = node.setdefault(parent, {})
        node[name] = value
    return msgspec.convert(tree, Settings)


if __name__ == "__main__":
    if sys.argv[1:] != ["--example"]:
        sys.exit("usage: python -m ragforge_tui.settings.load --example > config.example.yaml")
    sys.stdout.write(example_yaml())
