"""User-defined persona files: saving, deleting and restoring.

Names become file names here, and no file name can point out of the folder. Used by the conversation (for the screen)
and the command line.
"""

from __future__ import annotations

import itertools
import re
import time
from pathlib import Path

from ragforge_tui.personas.fields import clean_name
from ragforge_tui.personas.library import MAX_BYTES, SUFFIX, Persona, PersonaLibrary, key_of, persona_of, usable
from ragforge_tui.shared.encoding import UTF8, Encoding, encoding_of
from ragforge_tui.shared.errors import NotFoundError, RagforgeError
from ragforge_tui.shared.files import atomic_write, make_private, read_regular

DELETED = "deleted"
_MAX_FILE_NAME_BYTES = 200
_MARK_BYTES = 4
_UNFIT = re.compile(r"[./\\]*[/\\\x00-\x1f\x7f][./\\]*")
"""Characters that no file name may contain, together with adjacent dots."""


def file_name(name: str) -> str:
    """Return the file name for a persona: its name without characters that a file name cannot contain.

    Raises:
        RagforgeError: The name has no visible characters.
    """
    cleaned = clean_name(name)
    if not cleaned:
        raise RagforgeError("A persona needs a name with visible characters.", kind="bad_name")
    stem = _UNFIT.sub("-", cleaned).lstrip(".- ") or "persona"
    return stem.encode()[:_MAX_FILE_NAME_BYTES].decode(errors="ignore") + SUFFIX


class UserPersonas:
    """Changes to the user-defined files of a library."""

    def __init__(self, library: PersonaLibrary) -> None:
        self._library = library
        self._folder = library.own

    def save(self, text: str, name: str, *, instead_of: str = "") -> Persona:
        """Write a persona's text, in the encoding of the file it was edited from.

        Args:
            name: The persona's name if the text sets none.
            instead_of: Name of the persona that was edited. A user-defined one keeps its file; any other gets a
                user-defined copy.

        Raises:
            RagforgeError: The name is taken or invalid, or the text is unusable.
        """
        encoding = self._encoding(instead_of) if instead_of else UTF8
        return self._write(encoding.encode_detectable(text), name, self._of_name(instead_of))

    def add(self, path: Path, *, replace: bool = False) -> Persona:
        """Copy a file into the folder, byte for byte.

        Args:
            replace: Overwrite a user-defined persona of the same name.

        Raises:
            RagforgeError: As for `save`, or the file cannot be read.
        """
        try:
            raw = read_regular(path, MAX_BYTES)
        except OSError as error:
            raise RagforgeError(f"{path} cannot be read: {error.strerror}.", kind="not_found") from error
        return self._write(raw, path.name.removesuffix(SUFFIX), None, replace=replace)

    def _encoding(self, name: str) -> Encoding:
        """Return the encoding of that persona's file, UTF-8 if there is none."""
        try:
            return encoding_of(read_regular(Path(self._library.load(name).path), _MARK_BYTES, cut=True))
        except (NotFoundError, OSError):
            return UTF8

    def _write(self, raw: bytes, name: str, edited: Persona | None, *, replace: bool = False) -> Persona:
        default_path = self._folder / file_name(name)
        previous = edited or self._of_name(_read(raw, default_path).name)
        path = Path(previous.path) if previous is not None else self._free_path(_read(raw, default_path).name)
        persona = usable(_read(raw, path))
        taken = self._of_name(persona.name)
        if taken is not None and not replace and (edited is None or taken.path != edited.path):
            raise RagforgeError(
                f"You already have a persona named {taken.name}.", todo="Choose another name.", kind="taken"
            )
        atomic_write(path, raw)
        return self._library.load(persona.name, ("own",))

    def _free_path(self, name: str) -> Path:
        """Return an unused path for a persona of this name.

        Names that differ only in characters a file name cannot contain share a file name; a number is appended then.
        """
        path = self._folder / file_name(name)
        stem = path.name.removesuffix(SUFFIX)
        numbers = itertools.count(2)
        while path.exists():
            path = self._folder / f"{stem} {next(numbers)}{SUFFIX}"
        return path

    def delete(self, name: str) -> Persona:
        """Move a user-defined persona aside; `restore` moves it back.

        Raises:
            NotFoundError: No persona has that name.
            RagforgeError: The persona is not user-defined.
        """
        persona = self._library.load(name)
        if persona.origin != "own":
            whose = "comes with the program" if persona.origin == "shipped" else "belongs to the project"
            raise RagforgeError(f"{persona.name} {whose}; only your own personas can be deleted.", kind="not_own")
        source = Path(persona.path)
        aside = self._folder / DELETED
        make_private(aside)
        source.replace(aside / f"{time.time_ns():020d} {source.name}")
        return persona

    def restore(self, name: str = "") -> Persona:
        """Restore the persona that was deleted last, or last under that name.

        Raises:
            NotFoundError: No such deleted persona is left.
            RagforgeError: Another persona has that name now.
        """
        aside = self._folder / DELETED
        deleted = sorted(aside.glob(f"*{SUFFIX}"), reverse=True) if aside.is_dir() else []
        for path in deleted:
            original = path.name.partition(" ")[2]
            persona = persona_of(read_regular(path, MAX_BYTES), original.removesuffix(SUFFIX), "own", str(path))
            if name and key_of(name) not in (key_of(persona.name), key_of(original.removesuffix(SUFFIX))):
                continue
            if self._of_name(persona.name) is not None:
                raise RagforgeError(f"Another persona is now named {persona.name}.", kind="taken")
            target = self._folder / original
            target = self._free_path(persona.name) if target.exists() else target
            path.replace(target)
            return self._library.load(_read(read_regular(target, MAX_BYTES), target).name, ("own",))
        raise NotFoundError("No deleted persona is left to restore.")

    def _of_name(self, name: str) -> Persona | None:
        if not name:
            return None
        return next((own for own in self._library.found(("own",)) if key_of(own.name) == key_of(name)), None)


def _read(raw: bytes, path: Path) -> Persona:
    return persona_of(raw, path.name.removesuffix(SUFFIX), "own", str(path))
