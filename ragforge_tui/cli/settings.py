"""`config`: what is set and by what, where the file is, a first file to edit."""

from __future__ import annotations

import os
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import msgspec
import typer

from ragforge_tui.cli.common import ConfigOption, JsonFlag, settings, shared
from ragforge_tui.cli.output import say, say_json
from ragforge_tui.config import Loaded
from ragforge_tui.config_files import find_paths, user_file
from ragforge_tui.config_keys import SECRET_KEYS, example_yaml, keys
from ragforge_tui.errors import ConfigError

MASK = "(set)"

config_app = typer.Typer(help="The settings: show them, find their file, write a first one.", no_args_is_help=True)


@config_app.command()
def show(ctx: typer.Context, config: ConfigOption = None, json: JsonFlag = False) -> None:
    """Print every setting as it is now, with what set it; secrets are not shown."""
    loaded = settings(ctx, config=config)
    values = effective(loaded)
    if json:
        paths = msgspec.to_builtins(loaded.paths)
        say_json({"settings": values, "origins": loaded.origins, "paths": paths, "workspace": loaded.workspace})
        return
    for path, value in values.items():
        said = msgspec.json.encode(value).decode()
        say(f"{path}: {said}  # {loaded.origins.get(path, 'default')}")


def effective(loaded: Loaded) -> dict[str, Any]:
    """Every setting by dotted path, without secrets."""
    values: dict[str, Any] = {}
    for path in keys():
        value: Any = loaded.settings
        for name in path.split("."):
            value = getattr(value, name)
        if path in SECRET_KEYS and value:
            value = MASK
        values[path] = without_credentials(value) if path in ("graph.uri", "model.api_base") else value
    return values


def without_credentials(uri: str) -> str:
    """A URI without the user name and password it may carry."""
    if "@" not in uri:
        return uri
    parts = urlsplit(uri)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


@config_app.command()
def path(ctx: typer.Context, config: ConfigOption = None) -> None:
    """Print the path of your settings file, whether it exists or not."""
    file, _ = user_file(config or shared(ctx).config, find_paths(os.environ), os.environ)
    say(str(file))


@config_app.command()
def init(ctx: typer.Context, config: ConfigOption = None) -> None:
    """Write a settings file that shows every setting with its default; one that exists is left alone."""
    file, _ = user_file(config or shared(ctx).config, find_paths(os.environ), os.environ)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("x", encoding="utf-8") as stream:
            file.chmod(0o600)  # keys may come to stand in it
            stream.write(example_yaml())
    except FileExistsError as error:
        raise ConfigError(f"{file} exists already and was left as it is.") from error
    except OSError as error:
        raise ConfigError(f"{file} cannot be written: {error.strerror}.") from error
    say(f"Wrote {file}.")
