"""The settings as users see and change them: value, source, accepted input.

Pure except for reading the user's file. Everything is derived from the definition of the settings: a new setting
appears by itself.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec
import yaml
from msgspec import inspect

from ragforge_tui.settings.check import checked
from ragforge_tui.settings.keys import SECRET_KEYS, Key, expected, flow_yaml, keys, sections
from ragforge_tui.settings.parse import parse_yaml
from ragforge_tui.settings.schema import Settings, live_part
from ragforge_tui.shared.errors import ConfigError, RagforgeError
from ragforge_tui.shared.events import ModelChanged
from ragforge_tui.shared.files import STATE_BYTES, read_regular
from ragforge_tui.shared.formatting import counted
from ragforge_tui.tui import fuzzy

MOST_SHOWN = 36
MODEL = "model.name"
UNITS = {"mb": "MB", "minutes": "min", "seconds": "s", "timeout": "s"}
"""Units of numbers by the last word of a setting's name, where that is not the unit itself."""
_MEANING = r"\b{}: ((?:[^.;,]|\.(?=\w))+)"
_NULL_WORD, _EMPTY_WORD = (re.compile(_MEANING.format(word)) for word in ("null", "empty"))
Kind = Literal["switch", "choice", "number", "text", "other"]


class Setting(msgspec.Struct, frozen=True):
    """One setting.

    Attributes:
        value: The value in effect, or after the next start.
        own: The value in the user's file; `is_own`: whether there is one.
        origin: The source of the value, in words.
        wins: The flag, variable or file that overrides the user's file, empty for none.
        choices: The valid values of a choice.
        live: The part of the running chat that a change applies to; empty: it is read at the start.
    """

    key: str
    section: str
    description: str
    expected: str
    kind: Kind
    default: Any
    value: Any
    origin: str
    wins: str = ""
    own: Any = None
    is_own: bool = False
    choices: tuple[Any, ...] = ()
    nullable: bool = False
    live: str = ""

    @property
    def null_word(self) -> str:
        """The meaning of null, from the description after ``null:``; ``none`` by default."""
        found = _NULL_WORD.search(self.description)
        return found.group(1) if found else "none"

    @property
    def secret(self) -> bool:
        return self.key in SECRET_KEYS

    @property
    def since(self) -> str:
        """Time at which a change takes effect."""
        if not self.live:
            return "from the next start on"
        return "from the next request on" if self.live == "request" else "at once"

    @property
    def shown(self) -> str:
        return shown(self, self.value)

    @property
    def typed(self) -> str:
        """The initial text for editing: the value in the user's file, or the one in effect."""
        value = self.own if self.is_own else self.value
        if self.secret or value is None:
            return ""
        return value if isinstance(value, str) else flow_yaml(value)


def shown(setting: Setting, value: Any) -> str:
    """Return a value of a setting on one short line."""
    text = _shown(setting, value)
    return text if len(text) <= MOST_SHOWN else f"{text[: MOST_SHOWN - 1]}…"


def _shown(setting: Setting, value: Any) -> str:
    if setting.secret:
        return "••••••" if value else "not set"
    if value is None:
        return setting.null_word
    if isinstance(value, bool):
        return "on" if value else "off"
    if value == "":
        found = _EMPTY_WORD.search(setting.description)
        return found.group(1) if found else "not set"
    if value in ([], {}):
        return "none"
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return ", ".join(value)
    if isinstance(value, int | float):
        unit = UNITS.get(re.split(r"[._]", setting.key)[-1], "")
        return f"{counted(value) if isinstance(value, int) else f'{value:g}'} {unit}".rstrip()
    return value if isinstance(value, str) else flow_yaml(value)


def read_settings(
    settings: Settings,
    origins: Mapping[str, str],
    file: Path,
    known: Mapping[str, Sequence[str]] | None = None,
    model: ModelChanged | None = None,
) -> list[Setting]:
    """Return all settings, in the order of the definition.

    Args:
        settings: The settings when the chat started.
        origins: The source of each at that time, by dotted key.
        file: The user's settings file, which may have changed since, or may not exist.
        known: Valid values of settings that are a text by definition, as far as this chat knows.
        model: The model in use, which is shown with its source where the settings name none.

    Raises:
        RagforgeError: The file cannot be read.
    """
    own = _flat(_read(file))
    found = [_setting(key, settings, origins.get(key.path, ""), own, str(file)) for key in keys().values()]
    known = {key: tuple(choices) for key, choices in (known or {}).items() if choices}
    rows = {
        one.key: msgspec.structs.replace(one, kind="choice", choices=known[one.key]) if one.key in known else one
        for one in found
    }
    named = rows[MODEL]
    if model is not None and model.origin and not named.value:
        rows[MODEL] = msgspec.structs.replace(named, value=model.name, origin=model.origin)
    return list(rows.values())


def _setting(key: Key, settings: Settings, origin: str, own: Mapping[str, Any], file: str) -> Setting:
    wins = origin if origin and origin != file else ""
    is_own = key.path in own
    value: Any = settings
    for name in key.path.split("."):
        value = getattr(value, name)
    if not wins:
        value = own[key.path] if is_own else key.default
    source = wins or ("your file" if is_own else "default")
    if "/" in wins or "\\" in wins:
        source = "the project's file"
    kind, choices, nullable = _kind(key.type)
    return Setting(
        key=key.path,
        section=key.path.rpartition(".")[0],
        description=key.description,
        expected=expected(key.type),
        kind=kind,
        default=key.default,
        value=value,
        origin=source,
        wins=source if wins else "",
        own=own.get(key.path),
        is_own=is_own,
        choices=choices,
        nullable=nullable,
        live=live_part(key.type),
    )


def _read(file: Path) -> Any:
    try:
        text = read_regular(file, STATE_BYTES).decode("utf-8-sig")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise RagforgeError(f"{file} cannot be read: {error}.", kind="config") from error
    return parse_yaml(file, text)


def _flat(data: Any, path: str = "") -> dict[str, Any]:
    """Yield values by dotted key; unknown keys are omitted, since the start complains about them."""
    if not isinstance(data, dict):
        return {}
    found: dict[str, Any] = {}
    for name, value in data.items():
        key = f"{path}.{name}" if path else str(name)
        if key in keys():
            found[key] = value
        elif key in sections():
            found |= _flat(value, key)
    return found


def _kind(annotated: Any) -> tuple[Kind, tuple[Any, ...], bool]:
    info = inspect.type_info(annotated)
    nullable = False
    while isinstance(info, inspect.Metadata | inspect.UnionType):
        if isinstance(info, inspect.Metadata):
            info = info.type
        else:
            nullable = nullable or info.includes_none
            info = next(member for member in info.types if not isinstance(member, inspect.NoneType))
    match info:
        case inspect.BoolType():
            return "switch", (False, True), nullable
        case inspect.LiteralType():
            return "choice", tuple(info.values), nullable
        case inspect.IntType() | inspect.FloatType():
            return "number", (), nullable
        case inspect.StrType():
            return "text", (), nullable
        case _:
            return "other", (), nullable


def following(setting: Setting) -> Any:
    """Return the next value of a switch or a choice."""
    now = setting.own if setting.is_own else setting.value
    choices = setting.choices
    return choices[(choices.index(now) + 1) % len(choices)] if now in choices else choices[0]


def parse(setting: Setting, text: str) -> Any:
    """Parse typed text as a value.

    Raises:
        ConfigError: The text is invalid.
    """
    text = text.strip()
    value: Any
    if setting.nullable and text.casefold() in ("", "null", "none", setting.null_word.casefold()):
        value = None
    elif setting.kind == "text":
        value = text
    else:
        try:
            value = yaml.safe_load(text)
        except yaml.YAMLError as error:
            raise ConfigError(f"{setting.key}: expected {setting.expected}; this cannot be read.") from error
    return checked(setting.key, value, "", where=setting.key)


def matching(settings: list[Setting], query: str) -> list[Setting]:
    """Return the settings that match a search in name, section or description, the best first."""
    words = query.casefold().split()
    if not words:
        return settings
    whole = [one for one in settings if all(word in f"{one.key} {one.description}".casefold() for word in words)]
    named = fuzzy.best(query, whole or settings, lambda setting: setting.key)
    return [*named, *(one for one in whole if one not in named)]


def section_title(path: str) -> str:
    section = sections().get(path)
    name = path.removeprefix("agent.")
    return f"{name}: {section.description}" if section and section.description else name
