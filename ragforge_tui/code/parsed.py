"""Records of one parsed file: its scopes, its imports, and the names that each scope mentions.

They hold everything that resolving references needs, so that an unchanged file is never parsed again: `encode` leaves
out the texts, which the graph stores with the scopes.

A *path* is a chain of names joined by dots, whatever the language writes: ``a.b``, ``a::b`` and ``a->b`` are all
``a.b``. A name that is called ends with ``()``, and what has no name is ``?``: ``open(x).read()`` mentions the path
``open().read``, and ``"".join`` the path ``?.join``. ``@self`` is an instance of the enclosing class and ``@class`` the
class itself.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterable

import msgspec

from ragforge_tui.shared.code_records import ReferenceKind, Scope, ScopeKind

UNKNOWN = "?"
SELF = "@self"
CLASS = "@class"

_SCOPES = uuid.UUID("6f0f2c0e-6f3f-5a0c-9f0b-3c1d5b0e7a11")


class Import(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Name that a file takes from another module.

    Attributes:
        module: The module as the language writes it: ``..views``, ``./button``, ``crate.shapes``, ``app/store.h``.
        name: Name taken from the module; empty for the module itself, ``*`` for all of its names.
        alias: Name that it has in this file.
        scope: Index of the scope with the import, 0 for the whole file.
        exported: The file hands the name on to those that import the file.
    """

    module: str
    name: str = ""
    alias: str = ""
    line: int = 0
    scope: int = 0
    exported: bool = True


class Mention(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Path that a scope mentions, with the line of its first mention."""

    kind: ReferenceKind
    path: str
    line: int


class ParsedScope(msgspec.Struct, array_like=True):
    """Named piece of a file.

    Attributes:
        parent: Index of the enclosing scope in the file's list; the scope of the file itself is 0 and has -1.
        ordinal: Number of scopes with the same qualified name before this one.
        owner: Path of the type whose method this is, where the method is written outside of the type.
        bases: Paths of the types that this one extends or implements.
        declared: Without a body, which another scope may have: a prototype, or a method of an interface.
        returns: Path whose value a call returns: ``Store()`` for an instance of `Store`.
        types: Value of each variable, parameter and attribute as a path; ``?`` where it is not known.
        mentions: The paths mentioned, each once.
    """

    name: str
    qualified_name: str
    kind: ScopeKind
    start_line: int
    end_line: int
    parent: int = -1
    ordinal: int = 0
    owner: str = ""
    declared: bool = False
    bases: list[str] = []
    returns: str = ""
    types: dict[str, str] = {}
    mentions: list[Mention] = []
    signature: str = ""
    doc: str = ""
    text: str = ""


class ParsedFile(msgspec.Struct, array_like=True):
    """Result of parsing one file.

    Attributes:
        path: Relative to the workspace, with forward slashes.
        scopes: In the order of the file; empty if the file is left out.
        package: Package or namespace that the file names as its own.
        left_out: Reason why the file has no scopes: ``generated``, ``minified`` or ``data``.
    """

    path: str
    language: str
    scopes: list[ParsedScope] = []
    imports: list[Import] = []
    package: str = ""
    left_out: str = ""


def scope_uuid(workspace: str, file: str, scope: ParsedScope) -> str:
    """Return the uuid of a scope: the same as long as its file, qualified name and order among equal names are."""
    kind = scope.kind if scope.kind in ("module", "section") else ""
    return str(uuid.uuid5(_SCOPES, "\0".join((workspace, file, kind, scope.qualified_name, str(scope.ordinal)))))


def scopes_of(parsed: ParsedFile, workspace: str) -> list[Scope]:
    """Return the scopes of a file as they are stored. Their texts are foreign: neither sanitized nor masked."""
    return [
        Scope(
            uuid=scope_uuid(workspace, parsed.path, scope),
            name=scope.name,
            qualified_name=scope.qualified_name,
            kind=scope.kind,
            language=parsed.language,
            file=parsed.path,
            start_line=scope.start_line,
            end_line=scope.end_line,
            workspace=workspace,
            signature=scope.signature,
            doc=scope.doc,
            text=scope.text,
            digest=hashlib.sha256(scope.text.encode("utf-8", "replace")).hexdigest(),
        )
        for scope in parsed.scopes
    ]


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(ParsedFile)


def without_texts(parsed: ParsedFile) -> ParsedFile:
    """Return a copy with what resolving references needs, without texts, documentation and signatures."""
    scopes = [msgspec.structs.replace(scope, signature="", doc="", text="") for scope in parsed.scopes]
    return msgspec.structs.replace(parsed, scopes=scopes)


def encode(parsed: ParsedFile) -> bytes:
    """Encode what resolving references needs of a file, without texts."""
    return _ENCODER.encode(without_texts(parsed))


def decode(data: bytes) -> ParsedFile:
    """Decode what `encode` returned.

    Raises:
        msgspec.DecodeError: The bytes come from another version of the program; parse the file again.
    """
    return _DECODER.decode(data)


def words_of(paths: Iterable[str]) -> set[str]:
    return {name.removesuffix("()") for path in paths for name in path.split(".")} - {"", UNKNOWN, SELF, CLASS}
