"""Locations of the program's folders and of the user's settings file.

Separate from `schema.py` and `load.py`, which take longer to import.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from ragforge_tui.shared.errors import ConfigError

APP = "ragforge"


class Paths(msgspec.Struct, kw_only=True, frozen=True):
    """Folders of the program: below RAGFORGE_HOME if it is set, else as platformdirs decides.

    Attributes:
        config: The user's config.yaml.
        data: The embedded graph (``graph/``), texts of hybrid persistence (``contents/``), personas, exports, file
            contents stored for undo (``undo/``).
        state: Logs, journal (``journal/``), locks, prompt history, the user's decisions (approvals, trust).
    """

    config: str
    data: str
    state: str


def find_paths(env: Mapping[str, str]) -> Paths:
    """Return the program's folders without creating them.

    Raises:
        ConfigError: Nothing names the user's home folder.
    """
    try:
        if home := env.get("RAGFORGE_HOME"):
            root = Path(home).expanduser().absolute()
            return Paths(config=str(root), data=str(root / "data"), state=str(root / "state"))
        import platformdirs

        dirs = platformdirs.PlatformDirs(APP, appauthor=False)
        return Paths(config=dirs.user_config_dir, data=dirs.user_data_dir, state=dirs.user_state_dir)
    except RuntimeError as error:
        raise ConfigError(
            "Your home folder is unknown: HOME is not set, and the system does not list you.",
            todo="Set HOME, or set RAGFORGE_HOME to a folder for the program's files.",
        ) from error


def program_files(paths: Paths, config_file: str) -> list[str]:
    """Return the folders and files that belong to the program, which no permission of the agent covers.

    Args:
        config_file: The user's settings file, empty if there is none.
    """
    import platformdirs

    # RAGFORGE_HOME may also hold what is not the program's, even the workspace.
    shared = Path(paths.data).parent == Path(paths.config)
    config = str(Path(paths.config, "config.yaml")) if shared else paths.config
    cache = ""
    with suppress(RuntimeError):  # nothing names a home folder, so there is none of ours in it
        cache = platformdirs.user_cache_dir(APP, appauthor=False)
    return [config, paths.data, paths.state, *filter(None, [cache, config_file])]


def user_file(config_file: str | None, paths: Paths, env: Mapping[str, str]) -> tuple[Path, bool]:
    """Return the path of the user's settings file, and whether it was given explicitly."""
    explicit = config_file if config_file is not None else env.get("RAGFORGE_CONFIG") or None
    if explicit is not None:
        return Path(explicit).expanduser().absolute(), True
    return Path(paths.config, "config.yaml"), False
