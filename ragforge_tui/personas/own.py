"""The person's own persona files: saved, deleted and brought back.

Names become file names here, so here is checked that none leads out of the folder. Used by the conversation (for
the screen) and the command line.
"""

from __future__ import annotations

import os
import re
import tempfile
import time
from pathlib import Path

from ragforge_tui.errors import NotFoundError, RagforgeError
from ragforge_tui.personas.library import SUFFIX, Persona, PersonaLibrary, key_of, persona_of, usable
from ragforge_tui.personas.signs import clean_name

DELETED = "deleted"
_MAX_FILE_NAME_BYTES = 200
_RESERVED = re.compile(r'[/\\:*?"<>|\x00-\x1f\x7f]')


def file_name(name: str) -> str:
    """The file a persona of this name is kept in.

    Raises:
        RagforgeError: No file may be called so.
    """
    if _RESERVED.search(name) or name.startswith(".") or ".." in name:
        raise RagforgeError(
            f"{clean_name(name)!r} cannot be a persona's name.",
            todo="Leave out slashes, leading dots and the like.",
            kind="bad_name",
        )
    cleaned = clean_name(name)
    if not cleaned or len(cleaned.encode()) > _MAX_FILE_NAME_BYTES:
        raise RagforgeError("A persona needs a name that can be shown, of 60 characters at most.", kind="bad_name")
    return cleaned + SUFFIX


class OwnPersonas:
    """What may be changed in a library: the files of its own folder."""

    def __init__(self, library: PersonaLibrary) -> None:
        self._library = library
        self._folder = library.own

    def save(self, text: str, name: str, *, instead_of: str = "") -> Persona:
        """Write a persona's text.

        Args:
            name: Its name where the text says none.
            instead_of: Name of the one that was edited: an own one keeps its file, another gets an own copy.

        Raises:
            RagforgeError: The name is taken or cannot be one, or nobody could use the text.
        """
        return self._write(text.encode("utf-8", "surrogatepass"), name, self._of_name(instead_of))

    def add(self, path: Path, *, replace: bool = False) -> Persona:
        """Take in a file, byte for byte.

        Args:
            replace: Overwrite an own one of the same name.

        Raises:
            RagforgeError: As for `save`, or the file cannot be read.
        """
        try:
            raw = path.read_bytes()
        except OSError as error:
            raise RagforgeError(f"{path} cannot be read: {error.strerror}.", kind="not_found") from error
        return self._write(raw, path.name.removesuffix(SUFFIX), None, replace=replace)

    def _write(self, raw: bytes, name: str, edited: Persona | None, *, replace: bool = False) -> Persona:
        wanted = self._folder / file_name(name)
        persona = usable(persona_of(raw, wanted.name.removesuffix(SUFFIX), "own", str(wanted)))
        taken = self._of_name(persona.name)
        replace = replace or (taken is not None and edited is not None and taken.path == edited.path)
        if taken is not None and not replace:
            raise RagforgeError(
                f"You have a persona named {taken.name} already.", todo="Choose another name.", kind="taken"
            )
        before = edited or taken
        path = Path(before.path) if before is not None else self._folder / file_name(persona.name)
        _put(path, raw)
        return self._library.load(persona.name, ("own",))

    def delete(self, name: str) -> Persona:
        """Put an own persona aside, from where `restore` brings it back.

        Raises:
            NotFoundError: There is none of that name.
            RagforgeError: It is not the person's own.
        """
        persona = self._library.load(name)
        if persona.origin != "own":
            whose = "comes with the program" if persona.origin == "shipped" else "belongs to the project"
            raise RagforgeError(f"{persona.name} {whose}; only your own personas can be deleted.", kind="not_own")
        source = Path(persona.path)
        aside = self._folder / DELETED
        aside.mkdir(parents=True, exist_ok=True)
        source.replace(aside / f"{time.time_ns():020d} {source.name}")
        return persona

    def restore(self, name: str = "") -> Persona:
        """Bring back what was deleted last, or last under that name.

        Raises:
            NotFoundError: Nothing of it is left.
            RagforgeError: There is another one of that name by now.
        """
        aside = self._folder / DELETED
        kept = sorted(aside.glob(f"*{SUFFIX}"), reverse=True) if aside.is_dir() else []
        for path in kept:
            original = path.name.partition(" ")[2]
            persona = persona_of(path.read_bytes(), original.removesuffix(SUFFIX), "own", str(path))
            if name and key_of(name) not in (key_of(persona.name), key_of(original.removesuffix(SUFFIX))):
                continue
            if self._of_name(persona.name) is not None or (self._folder / original).exists():
                raise RagforgeError(f"There is another persona named {persona.name} by now.", kind="taken")
            path.replace(self._folder / original)
            return self._library.load(persona.name, ("own",))
        raise NotFoundError("No deleted persona is left to bring back.")

    def _of_name(self, name: str) -> Persona | None:
        if not name:
            return None
        return next((own for own in self._library.found(("own",)) if key_of(own.name) == key_of(name)), None)


def _put(path: Path, raw: bytes) -> None:
    """Write a file whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    handle, new = tempfile.mkstemp(dir=path.parent, prefix=".new-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(raw)
            file.flush()
            os.fsync(file.fileno())
        Path(new).replace(path)
    except OSError:
        Path(new).unlink(missing_ok=True)
        raise
