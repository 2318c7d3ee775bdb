"""Lookup of personas by name: user-defined ones take precedence over project-level ones, these over built-in ones.

Used by the conversation for its system prompt and by the command line for its listings. Files are read again each
time, so that an edit takes effect from the next message on. A file's text is never rewritten; only the placeholder
``{USER_NAME}`` is filled in when the text is sent.
"""

from __future__ import annotations

import functools
import hashlib
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from ragforge_tui.personas.fields import clean_name, fields_of, one_line
from ragforge_tui.personas.luciform import Diagnostic
from ragforge_tui.personas.reader import read
from ragforge_tui.shared import git
from ragforge_tui.shared.account import log_in_name
from ragforge_tui.shared.encoding import encoding_of
from ragforge_tui.shared.errors import NotFoundError, RagforgeError
from ragforge_tui.shared.files import read_regular
from ragforge_tui.shared.persona_records import PersonaFields, PersonaInfo, PersonaOrigin, PersonaRemark

SUFFIX = ".luciform"
PLACEHOLDER = "{USER_NAME}"
PROJECT_FOLDER = Path(".ragforge") / "personas"
MAX_BYTES = 1024 * 1024
"""Largest file accepted as a persona: a larger one fits no prompt, and would be sent with every message."""
MAX_FILES = 500
"""Most files read from one folder: a repository may hold any number, and all are read for each message."""
LISTED_REMARKS = 50

SHIPPED = (
    Path(__file__).parent / "shipped",  # in an installed wheel
    Path(__file__).parents[2] / "personas",  # in a checkout
)


class Persona(msgspec.Struct, frozen=True, kw_only=True):
    """Character that the agent takes on.

    Attributes:
        text: The file as written, without a byte order mark.
        digest: SHA-256 of the text in hex.
        fields: The file's metadata.
        unlisted: Number of diagnostics beyond those in `diagnostics`.
        shadows: Origins of other personas of the same name that this one hides.
        problem: The reason it cannot be used; empty if it can.
    """

    name: str
    origin: PersonaOrigin
    text: str
    digest: str
    path: str
    fields: PersonaFields
    diagnostics: tuple[Diagnostic, ...] = ()
    unlisted: int = 0
    shadows: tuple[PersonaOrigin, ...] = ()
    problem: str = ""

    def prompt(self, user: str) -> str:
        """Return the text as it reaches the model, with the user's name filled in."""
        return self.text.replace(PLACEHOLDER, user)

    @property
    def description(self) -> str:
        return self.fields.description

    def info(self, user: str) -> PersonaInfo:
        """Return the record for listings, with `user` filled in in the description and the greeting."""
        values = msgspec.structs.asdict(self.fields)
        for field in ("description", "greeting"):
            values[field] = one_line(values[field].replace(PLACEHOLDER, user))
        return PersonaInfo(
            **values,
            origin=self.origin,
            path=self.path,
            digest=self.digest,
            shadows=list(self.shadows),
            remarks=[
                PersonaRemark(line=d.line, column=d.column, message=one_line(d.message), severity=d.severity)
                for d in self.diagnostics[:LISTED_REMARKS]
            ],
            more_remarks=max(0, len(self.diagnostics) - LISTED_REMARKS) + self.unlisted,
            problem=self.problem,
        )


class PersonaLibrary:
    """Personas that a user can choose from.

    Args:
        own: Folder of the user-defined personas.
        workspace: The folder the agent works in; its `PROJECT_FOLDER` holds the project's personas. None: no project.
        shipped: Folders of the built-in personas.
    """

    def __init__(self, own: Path, workspace: Path | None = None, shipped: Sequence[Path] = SHIPPED) -> None:
        self.own = own
        self._workspace = workspace
        self._shipped = tuple(shipped)

    def all(self) -> list[Persona]:
        """Return all personas, hidden ones included: user-defined first, then project-level, then built-in."""
        personas = [_read(path, "own") for path in _files(self.own)]
        if self._workspace is not None:
            inside = self._workspace.resolve()
            folder = self._workspace / PROJECT_FOLDER
            # A link that points out of the project would show one of the user's files as the project's.
            personas += [_read(path, "project") for path in _files(folder) if path.resolve().is_relative_to(inside)]
        personas += [_read(path, "shipped") for folder in self._shipped for path in _files(folder)]
        return personas

    def found(self, origins: Iterable[PersonaOrigin] = ("own", "project", "shipped")) -> list[Persona]:
        """Return the effective persona of each name, in alphabetical order, with the origins it hides."""
        by_name: dict[str, list[Persona]] = {}
        for persona in self.all():
            if persona.origin in origins:
                by_name.setdefault(key_of(persona.name), []).append(persona)
        effective = [
            msgspec.structs.replace(first, shadows=tuple(other.origin for other in others))
            for first, *others in by_name.values()
        ]
        return sorted(effective, key=lambda persona: key_of(persona.name))

    def names(self) -> list[str]:
        """Return the names of the personas in `found`, in alphabetical order."""
        return [persona.name for persona in self.found()]

    def load(self, name: str, origins: Iterable[PersonaOrigin] = ("own", "project", "shipped")) -> Persona:
        """Return the persona of that name, else of that file name; case and, as a last resort, accents are ignored.

        Raises:
            NotFoundError: No persona matches; the message lists those there are.
        """
        personas = self.found(origins)
        wanted = clean_name(name)
        names = [persona.name for persona in personas]
        stems = [Path(persona.path).name.removesuffix(SUFFIX) for persona in personas]
        for known in (names, stems):
            for key in (key_of, _plain_key):
                for persona, candidate in zip(personas, known, strict=True):
                    if key(candidate) == key(wanted):
                        return persona
        raise NotFoundError(f"There is no persona named {wanted!r}.", todo=f"Choose one of: {', '.join(names)}.")

    def pick(self, name_or_number: str) -> Persona:
        """Return the persona of that name, else of that number in the list.

        Raises:
            NotFoundError: No persona matches.
        """
        try:
            return self.load(name_or_number)
        except NotFoundError:
            personas = self.found()
            if name_or_number.isascii() and name_or_number.isdecimal() and 0 < int(name_or_number[:9]) <= len(personas):
                return personas[int(name_or_number) - 1]
            raise


def user_name(configured: str) -> str:
    """Return how the agent may call the user: the setting, else git's global user.name, else the log-in name."""
    return configured or git.global_user_name() or log_in_name("friend")


def usable(persona: Persona) -> Persona:
    """Return the persona if it can be sent to a model.

    Raises:
        RagforgeError: It cannot; the message gives the reason.
    """
    if persona.problem:
        raise RagforgeError(f"The persona {persona.name} cannot be used: {persona.problem}.", kind="persona")
    return persona


def key_of(name: str) -> str:
    """Return the key of a name; names that differ only in case share one."""
    return unicodedata.normalize("NFC", clean_name(name)).casefold()


def _plain_key(name: str) -> str:
    """Return `key_of` without accents, so that Ragnarok finds Ragnarök."""
    return "".join(c for c in unicodedata.normalize("NFKD", key_of(name)) if not unicodedata.combining(c))


def _files(folder: Path) -> Iterator[Path]:
    try:
        paths = sorted(path for path in folder.iterdir() if path.name.endswith(SUFFIX) and path.name[0] != ".")
    except OSError:
        return
    yield from (path for path in paths[:MAX_FILES] if path.is_file())


def _read(path: Path, origin: PersonaOrigin) -> Persona:
    stem = path.name.removesuffix(SUFFIX)
    try:
        raw = read_regular(path, MAX_BYTES + 1, cut=True)
    except OSError as error:
        return _unusable(path, origin, f"its file cannot be read ({error.strerror})")
    if len(raw) > MAX_BYTES:
        return _unusable(path, origin, f"its file is larger than {MAX_BYTES // 1024} kB")
    return persona_of(raw, stem, origin, str(path))


def persona_of(raw: bytes, stem: str, origin: PersonaOrigin, path: str) -> Persona:
    """Return the persona in the bytes of a file."""
    text, lossless = decode(raw)
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    fields, diagnostics, unlisted = _parse(text, stem)
    if not lossless:
        invalid = Diagnostic(1, 1, "some bytes are not UTF-8; they reach the model as U+FFFD")
        diagnostics = (invalid, *diagnostics)
    return Persona(
        name=fields.name,
        origin=origin,
        text=text,
        digest=digest,
        path=path,
        fields=fields,
        diagnostics=diagnostics,
        unlisted=unlisted,
        problem="" if text.strip() else "its file is empty",
    )


def _unusable(path: Path, origin: PersonaOrigin, problem: str) -> Persona:
    name = clean_name(path.name.removesuffix(SUFFIX)) or "unnamed"
    return Persona(
        name=name, origin=origin, text="", digest="", path=str(path), fields=PersonaFields(name=name), problem=problem
    )


@functools.lru_cache(maxsize=64)
def _parse(text: str, stem: str) -> tuple[PersonaFields, tuple[Diagnostic, ...], int]:
    document = read(text)
    fields, invalid = fields_of(document, stem)
    return fields, tuple(sorted([*document.diagnostics, *invalid], key=lambda d: (d.line, d.column))), document.unlisted


def decode(raw: bytes) -> tuple[str, bool]:
    """Return the text of a file without a byte order mark, and whether every byte could be decoded."""
    encoding = encoding_of(raw)
    try:
        return encoding.decode(raw), True
    except UnicodeDecodeError:
        return encoding.decode(raw, "replace"), False
