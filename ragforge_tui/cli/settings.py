"""Command `config`: show the settings and their origins, find the settings file, or write a first one."""

from __future__ import annotations

import os
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import msgspec
import typer

from ragforge_tui.cli.common import ConfigOption, JsonFlag, settings, shared
from ragforge_tui.cli.output import print_json, print_text
from ragforge_tui.settings.folders import find_paths, user_file
from ragforge_tui.settings.keys import SECRET_KEYS, example_yaml, keys
from ragforge_tui.settings.schema import Loaded
from ragforge_tui.shared.errors import ConfigError

MASK = "(set)"

config_app = typer.Typer(help="Show the settings, find their file, or write a first one.", no_args_is_help=True)


@config_app.command()
def show(ctx: typer.Context, config: ConfigOption = None, json: JsonFlag = False) -> None:
    """Print every setting with its current value and origin; secrets are hidden."""
    loaded = settings(ctx, config=config)
    values = effective(loaded)
    if json:
        paths = msgspec.to_builtins(loaded.paths)
        print_json({"settings": values, "origins": loaded.origins, "paths": paths, "workspace": loaded.workspace})
        return
    for path, value in values.items():
        encoded = msgspec.json.encode(value).decode()
        print_text(f"{path}: {encoded}  # {loaded.origins.get(path, 'default')}")


def effective(loaded: Loaded) -> dict[str, Any]:
    """Return every setting by dotted path, without secrets."""
    values: dict[str, Any] = {}
    for path in keys():
        value: Any = loaded.settings
        for name in path.split("."):
            value = getattr(value, name)
        if path in SECRET_KEYS and value:
            value = MASK
        if path == "mcp.servers":
            value = {name: _shown_server(msgspec.to_builtins(server)) for name, server in value.items()}
        values[path] = without_credentials(value) if path in ("graph.uri", "model.api_base") else value
    return values


def _shown_server(server: dict[str, Any]) -> dict[str, Any]:
    """Return an MCP server without values that may be secrets: those that do not refer to a variable."""
    hidden = {
        field: {key: each if "${" in each else MASK for key, each in server[field].items()}
        for field in ("env", "headers")
    }
    return {**server, **hidden, "url": without_credentials(server["url"])}


def without_credentials(uri: str) -> str:
    """Return a URI without user name and password."""
    if "@" not in uri:
        return uri
    parts = urlsplit(uri)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


@config_app.command()
def path(ctx: typer.Context, config: ConfigOption = None) -> None:
    """Print the path of your settings file, even if it does not exist."""
    file, _ = user_file(config or shared(ctx).config, find_paths(os.environ), os.environ)
    print_text(str(file))


@config_app.command()
def init(ctx: typer.Context, config: ConfigOption = None) -> None:
    """Write a settings file with all defaults; an existing file stays unchanged."""
    file, _ = user_file(config or shared(ctx).config, find_paths(os.environ), os.environ)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("x", encoding="utf-8") as stream:
            file.chmod(0o600)  # users may store keys in it
            stream.write(example_yaml())
    except FileExistsError as error:
        raise ConfigError(f"{file} already exists and was not changed.") from error
    except OSError as error:
        raise ConfigError(f"{file} cannot be written: {error.strerror}.") from error
    print_text(f"Wrote {file}.")
