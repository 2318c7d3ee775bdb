"""Names that belong to a language itself, not to the workspace."""

from __future__ import annotations

import builtins
import io
import re
import tomllib
from importlib import resources
from typing import Final

_PYTHON_TYPES = (str, bytes, list, dict, set, tuple, int, float, io.TextIOWrapper, io.BytesIO, re.Pattern, re.Match)


def _read(table: str) -> dict[str, frozenset[str]]:
    text = resources.files(__package__).joinpath("known_names.toml").read_text(encoding="utf-8")
    return {language: frozenset(names.split()) for language, names in tomllib.loads(text)[table].items()}


COLLECTION_METHODS: Final[dict[str, frozenset[str]]] = {
    "python": frozenset(name for type_ in _PYTHON_TYPES for name in dir(type_)),
    **_read("methods"),
}
BUILTINS: Final[dict[str, frozenset[str]]] = {
    "python": frozenset(dir(builtins)) | {"__file__", "__name__", "__doc__"},
    **_read("builtins"),
}
