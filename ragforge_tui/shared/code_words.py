"""Words of code: identifiers as they are written, and the words they are made of (`getUserName`: get, user, name).

Used to fill and to ask the full-text index of scopes, so that both sides split alike.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from ragforge_tui.shared.code_records import Scope
from ragforge_tui.shared.redaction import mask_secrets
from ragforge_tui.shared.sanitize import storable

_IDENTIFIER = re.compile(r"[^\W\d]\w*")
_PIECE = re.compile(r"[A-Z]{2,}s(?![a-z])|[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_FOREIGN_PIECE = re.compile(r"[^\W\d_]+|\d+")
_SENTENCE_END = re.compile(r"[.!?](?=\s|$)")
_LONGEST = 40
"""Characters of a word; longer ones are encoded data, not names."""
_BODY_WORDS = 200
"""Different words of a scope's text that are indexed; each costs an entry of the index."""
_TEST_FOLDERS = frozenset(["test", "tests", "spec", "specs", "__tests__", "testing", "testdata", "fixtures"])


def identifier_words(identifier: str) -> list[str]:
    """Return the words of an identifier in lower case: at capitals, underscores, digits and punctuation.

    One with letters beyond ASCII, mostly a word of prose, is not split at capitals.
    """
    pieces = _PIECE if identifier.isascii() else _FOREIGN_PIECE
    return [piece.lower() for piece in pieces.findall(identifier)]


def code_words(text: str) -> Iterator[str]:
    """Yield the words of a text in lower case: each identifier whole, then its words if it has several."""
    for identifier in _IDENTIFIER.findall(text):
        if len(identifier) > _LONGEST:
            continue
        whole = identifier.lower().strip("_")
        pieces = identifier_words(identifier)
        if len(whole) > 1:
            yield whole
        if len(pieces) > 1:
            yield from (piece for piece in pieces if len(piece) > 1 and piece != whole)


def is_test_file(path: str) -> bool:
    """Return whether a file belongs to tests, by a folder of its path or by its name."""
    *folders, file = path.split("/")
    words = identifier_words(file)
    return (
        not _TEST_FOLDERS.isdisjoint(folders)
        or "test" in words[:1]
        or bool({"test", "spec"}.intersection(words[-2:-1]))
    )


def first_sentence(doc: str) -> str:
    """Return the first sentence of a documentation, on one line, without comment marks and lines starting with @."""
    lines = (line.strip().lstrip("*").strip() for line in doc.splitlines())
    text = " ".join(" ".join(line for line in lines if not line.startswith("@")).split())
    end = _SENTENCE_END.search(text)
    return text[: end.start()] if end else text


def masked(scope: Scope) -> Scope:
    """Return a scope as it may be stored: its texts without secrets and without what a graph refuses."""
    texts = {name: storable(mask_secrets(getattr(scope, name))) for name in ("signature", "doc", "text")}
    names = {name: storable(getattr(scope, name)) for name in ("name", "qualified_name", "file")}
    return msgspec.structs.replace(scope, **names, **texts)


def search_text(scope: Scope, about: str = "") -> str:
    """Return the text by which the full-text index finds a scope.

    Name and signature count more than the body, whose words are listed once each.

    Args:
        about: What the scope's file is about.
    """
    names = [scope.name, scope.qualified_name, *code_words(f"{scope.name} {scope.qualified_name}")]
    path = [scope.file, *code_words(scope.file)]
    declared = [*code_words(scope.signature), *code_words(scope.doc)]
    declared += dict.fromkeys(word for word in code_words(about) if word not in declared)
    known = {*names, *declared}
    body: dict[str, None] = {}
    for word in code_words(scope.text):
        if word not in known:
            body[word] = None
            if len(body) >= _BODY_WORDS:
                break
    return " ".join([*names, *path, *declared, *body])
