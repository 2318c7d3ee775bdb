"""Finding personas by name: the person's own before the project's, these before the shipped ones.

Used by the conversation for its system prompt and by the command line for its listings. Files are read anew each
time, so that an edit holds from the next message on. The text of a file is never rewritten; only the placeholder
``{USER_NAME}`` is filled in when it is sent.
"""

from __future__ import annotations

import functools
import hashlib
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from ragforge_tui.errors import NotFoundError, RagforgeError
from ragforge_tui.persona_records import PersonaInfo, PersonaOrigin, PersonaRemark
from ragforge_tui.personas.fields import Fields, fields_of
from ragforge_tui.personas.luciform import Diagnostic
from ragforge_tui.personas.reader import read
from ragforge_tui.personas.signs import clean_name, one_line
from ragforge_tui.text_encoding import encoding_of

SUFFIX = ".luciform"
PLACEHOLDER = "{USER_NAME}"
PROJECT_FOLDER = Path(".ragforge") / "personas"
MAX_BYTES = 1024 * 1024
"""Of a file that is used as a persona: what is larger fits no prompt, and would be sent with every message."""
MAX_FILES = 500
"""Of one folder: a repository could hold any number, and all of them are looked at for each message."""
LISTED_REMARKS = 50

SHIPPED = (
    Path(__file__).parent / "shipped",  # in an installed wheel
    Path(__file__).parents[2] / "personas",  # in a checkout
)


class Persona(msgspec.Struct, frozen=True, kw_only=True):
    """A character.

    Attributes:
        text: The file as written, less a byte order mark.
        digest: SHA-256 of the text in hex.
        fields: What the file says of itself.
        unlisted: How many more diagnostics there were.
        shadows: Origins of others of the same name that this one hides.
        problem: Why it cannot be used, empty when it can.
    """

    name: str
    origin: PersonaOrigin
    text: str
    digest: str
    path: str
    fields: Fields
    diagnostics: tuple[Diagnostic, ...] = ()
    unlisted: int = 0
    shadows: tuple[PersonaOrigin, ...] = ()
    problem: str = ""

    def prompt(self, user: str) -> str:
        """The text as it reaches the model, with the person's name filled in."""
        return self.text.replace(PLACEHOLDER, user)

    @property
    def description(self) -> str:
        """One line for listings."""
        return self.fields.description

    def info(self, user: str) -> PersonaInfo:
        """As it is listed; `user` is filled into description and greeting."""
        fields = self.fields
        return PersonaInfo(
            name=self.name,
            origin=self.origin,
            path=self.path,
            digest=self.digest,
            description=one_line(fields.description.replace(PLACEHOLDER, user)),
            color=fields.color,
            glyph=fields.glyph,
            greeting=one_line(fields.greeting.replace(PLACEHOLDER, user)),
            language=fields.language,
            model=fields.model,
            temperature=fields.temperature,
            tools=None if fields.tools is None else list(fields.tools),
            shadows=list(self.shadows),
            remarks=[
                PersonaRemark(line=d.line, column=d.column, message=one_line(d.message), severity=d.severity)
                for d in self.diagnostics[:LISTED_REMARKS]
            ],
            more_remarks=max(0, len(self.diagnostics) - LISTED_REMARKS) + self.unlisted,
            problem=self.problem,
        )


class PersonaLibrary:
    """The personas a person can choose from.

    Args:
        own: Folder of the person's own ones.
        workspace: The folder the agent works in, whose `PROJECT_FOLDER` is looked into; None: no project.
        shipped: Folders of those that come with the program.
    """

    def __init__(self, own: Path, workspace: Path | None = None, shipped: Sequence[Path] = SHIPPED) -> None:
        self.own = own
        self._workspace = workspace
        self._shipped = tuple(shipped)

    def all(self) -> list[Persona]:
        """Everything there is, own ones first, then the project's, then shipped ones; hidden ones too."""
        found = [_read(path, "own") for path in _files(self.own)]
        if self._workspace is not None:
            inside = self._workspace.resolve()
            folder = self._workspace / PROJECT_FOLDER
            # A link that leads out of the project would show a file of the person's as the project's.
            found += [_read(path, "project") for path in _files(folder) if path.resolve().is_relative_to(inside)]
        found += [_read(path, "shipped") for folder in self._shipped for path in _files(folder)]
        return found

    def found(self, origins: Iterable[PersonaOrigin] = ("own", "project", "shipped")) -> list[Persona]:
        """One persona a name, the one that is used, in alphabetical order; each says which ones it hides."""
        by_name: dict[str, list[Persona]] = {}
        for persona in self.all():
            if persona.origin in origins:
                by_name.setdefault(key_of(persona.name), []).append(persona)
        shown = [
            msgspec.structs.replace(first, shadows=tuple(other.origin for other in others))
            for first, *others in by_name.values()
        ]
        return sorted(shown, key=lambda persona: key_of(persona.name))

    def names(self) -> list[str]:
        """All names, in alphabetical order."""
        return [persona.name for persona in self.found()]

    def load(self, name: str, origins: Iterable[PersonaOrigin] = ("own", "project", "shipped")) -> Persona:
        """The persona of that name, or else of that file name; case and, if need be, accents alike.

        Raises:
            NotFoundError: When there is none; names the ones there are.
        """
        found = self.found(origins)
        for names in (_shown_name, _file_name):
            for alike in (key_of, _plain_key):
                for persona in found:
                    if alike(names(persona)) == alike(clean_name(name)):
                        return persona
        known = ", ".join(persona.name for persona in found)
        raise NotFoundError(f"There is no persona named {clean_name(name)!r}.", todo=f"Choose one of: {known}.")

    def pick(self, wanted: str) -> Persona:
        """The persona of that name, or of that number in the list.

        Raises:
            NotFoundError: There is none.
        """
        try:
            return self.load(wanted)
        except NotFoundError:
            found = self.found()
            if wanted.isascii() and wanted.isdecimal() and 0 < int(wanted[:9]) <= len(found):
                return found[int(wanted) - 1]
            raise


def usable(persona: Persona) -> Persona:
    """The persona, when it can be sent to a model.

    Raises:
        RagforgeError: Why not.
    """
    if persona.problem:
        raise RagforgeError(f"The persona {persona.name} cannot be used: {persona.problem}.", kind="persona")
    return persona


def key_of(name: str) -> str:
    """Names that are the same but for case have the same key."""
    return unicodedata.normalize("NFC", clean_name(name)).casefold()


def _plain_key(name: str) -> str:
    """`key_of` without accents: Ragnarok finds Ragnarök."""
    return "".join(c for c in unicodedata.normalize("NFKD", key_of(name)) if not unicodedata.combining(c))


def _shown_name(persona: Persona) -> str:
    return persona.name


def _file_name(persona: Persona) -> str:
    return Path(persona.path).name.removesuffix(SUFFIX)


def _files(folder: Path) -> Iterator[Path]:
    try:
        paths = sorted(path for path in folder.iterdir() if path.name.endswith(SUFFIX) and path.name[0] != ".")
    except OSError:
        return
    yield from (path for path in paths[:MAX_FILES] if path.is_file())


def _read(path: Path, origin: PersonaOrigin) -> Persona:
    stem = path.name.removesuffix(SUFFIX)
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except OSError as error:
        return _unusable(path, origin, f"its file cannot be read ({error.strerror})")
    if len(raw) > MAX_BYTES:
        return _unusable(path, origin, f"its file is larger than {MAX_BYTES // 1024} kB")
    return persona_of(raw, stem, origin, str(path))


def persona_of(raw: bytes, stem: str, origin: PersonaOrigin, path: str) -> Persona:
    """A persona from the bytes of its file."""
    text, whole = decode(raw)
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    fields, diagnostics, unlisted = _understood(text, stem)
    if not whole:
        odd = Diagnostic(1, 1, "some bytes are not UTF-8; they reach the model as U+FFFD")
        diagnostics = (odd, *diagnostics)
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
        name=name, origin=origin, text="", digest="", path=str(path), fields=Fields(name=name), problem=problem
    )


@functools.lru_cache(maxsize=64)
def _understood(text: str, stem: str) -> tuple[Fields, tuple[Diagnostic, ...], int]:
    document = read(text)
    fields, wrong = fields_of(document, stem)
    return fields, tuple(sorted([*document.diagnostics, *wrong], key=lambda d: (d.line, d.column))), document.unlisted


def decode(raw: bytes) -> tuple[str, bool]:
    """The text of a file, less a byte order mark, and whether every byte of it could be understood."""
    encoding = encoding_of(raw)
    try:
        return encoding.decode(raw), True
    except UnicodeDecodeError:
        return encoding.decode(raw, "replace"), False
