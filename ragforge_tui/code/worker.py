"""Process that looks for files, parses them, resolves references and makes vectors, for `worker_client.py`.

It is separate because this is CPU work in Python: in the engine's process it would delay a running turn. It has the
lowest priority, no access to the graph, and ends when its input does, so also when the engine is killed. The system
ends it where files make it take too much memory or time. Both pipes carry lines of JSON.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import resource
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ragforge_tui.code.files import FileLimits, find_files, look_at, read_file
from ragforge_tui.shared.code_records import IndexedFile, Reference, UnresolvedName
from ragforge_tui.shared.code_words import masked, search_text

if TYPE_CHECKING:
    from ragforge_tui.llm.embeddings import LocalEmbedder

NICENESS = 15
MOST_MEMORY_BYTES = 2 * 1024**3
"""Of addresses. 1 500 files of /usr/include take 0.2 GB with their references, the local model 0.3 GB."""
ANSWER_CPU_SECONDS = 120
"""Longest processor time for one answer, also when nobody waits for it any more."""
NOT_TEXT = "not text"
ABOUT_CHARS = 1_000
"""Of a file's documentation, whose words find each of its scopes."""


class Look(msgspec.Struct, tag=True):
    """Request for the files of the workspace; with `paths`, for these only. The answer is `Found`."""

    root: str
    limits: FileLimits
    paths: list[str] | None = None


class Parse(msgspec.Struct, tag=True):
    """Request to read and parse files; `Link` takes them over. The answer is `Parsed`."""

    root: str
    workspace: str
    paths: list[str]
    max_file_bytes: int


class Parsed(msgspec.Struct):
    """Parsed files; those that are gone are missing."""

    files: list[IndexedFile]


class Remember(msgspec.Struct, tag=True):
    """Request to remember files as they were when they were stored; the answer lists those that cannot be decoded."""

    parsed: dict[str, bytes]


class Link(msgspec.Struct, tag=True):
    """Request to take over the files parsed since the last one, and to forget some that are gone.

    The answer lists the files whose references may have changed.
    """

    workspace: str
    forget: list[str]


class Resolve(msgspec.Struct, tag=True):
    """Request for the references of files among all that are linked; the answer is `Resolved`."""

    paths: list[str]


class FileNames(msgspec.Struct):
    """References that the scopes of a file make, and the names that could not be resolved; `digest` is of both."""

    references: list[Reference]
    unresolved: list[UnresolvedName]
    digest: str = ""


class Resolved(msgspec.Struct):
    """References by file."""

    files: dict[str, FileNames]


class Embed(msgspec.Struct, tag=True):
    """Request for the vectors of texts by the local model; the answer has them as 32-bit numbers, row by row."""

    texts: list[str]


Request = Look | Parse | Remember | Link | Resolve | Embed


def main() -> None:
    """Answer requests until the input ends."""
    os.nice(NICENESS)
    _limit(resource.RLIMIT_AS, MOST_MEMORY_BYTES)
    source, target = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    # What a library prints must not get between the answers.
    os.dup2(2, 1)
    files = _Files()
    decoder = msgspec.json.Decoder(Request)
    with contextlib.suppress(BrokenPipeError):
        for line in source:
            used = resource.getrusage(resource.RUSAGE_SELF)
            _limit(resource.RLIMIT_CPU, int(used.ru_utime + used.ru_stime) + ANSWER_CPU_SECONDS)
            target.write(msgspec.json.encode(files.answer(decoder.decode(line))) + b"\n")
            target.flush()


def _limit(kind: int, most: int) -> None:
    """Lower a limit of this process; macOS has none for memory."""
    _, highest = resource.getrlimit(kind)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(kind, (most if highest == resource.RLIM_INFINITY else min(most, highest), highest))


class _Files:
    """The parsed files of one workspace, without their texts."""

    def __init__(self) -> None:
        # Imported by the process only: the grammars are libraries of several MB.
        from ragforge_tui.code import languages, parsed, parser, resolver

        self._languages = languages
        self._parsed = parsed
        self._parser = parser
        self._make_resolver = resolver.Resolver
        self._resolver: resolver.Resolver | None = None
        self._embedder: LocalEmbedder | None = None
        self._stored: dict[str, parsed.ParsedFile] = {}
        self._new: dict[str, parsed.ParsedFile | None] = {}

    def answer(self, request: Request) -> object:
        match request:
            case Look(paths=None):
                return find_files(Path(request.root), request.limits, self._is_known)
            case Look():
                return look_at(Path(request.root), request.paths or [], request.limits, self._is_known)
            case Parse():
                return Parsed([file for path in request.paths if (file := self._parse(request, path)) is not None])
            case Remember():
                return self._remember(request)
            case Link():
                return self._link(request)
            case Resolve():
                return Resolved({path: self._names(path) for path in request.paths})
            case Embed():
                return self._embed(request.texts)

    def _is_known(self, path: str) -> bool:
        return self._languages.code_language(path) is not None or bool(self._languages.text_language(path))

    def _parse(self, request: Parse, path: str) -> IndexedFile | None:
        try:
            content, size, mtime = read_file(Path(request.root), path, request.max_file_bytes)
        except OSError:
            return None
        found = IndexedFile(
            path=path, digest=hashlib.sha256(content).hexdigest(), size=size, mtime=mtime, left_out=NOT_TEXT
        )
        parsed = self._parser.parse_file(path, content)
        self._new[path] = None if parsed is None else self._parsed.without_texts(parsed)
        if parsed is not None:
            found.language, found.left_out = parsed.language, parsed.left_out
            found.parsed = self._parsed.encode(parsed)
            found.scopes = [masked(scope) for scope in self._parsed.scopes_of(parsed, request.workspace)]
            about = next((scope.doc for scope in found.scopes if scope.kind == "module"), "")[:ABOUT_CHARS]
            found.search_texts = [search_text(scope, about) for scope in found.scopes]
        return found

    def _remember(self, request: Remember) -> list[str]:
        failed: list[str] = []
        for path, data in request.parsed.items():
            try:
                self._stored[path] = self._parsed.decode(data)
            except msgspec.DecodeError:
                failed.append(path)
        return failed

    def _link(self, request: Link) -> list[str]:
        if self._resolver is None:
            self._resolver = self._make_resolver(request.workspace)
        self._resolver.update(self._stored)
        affected = self._resolver.update(self._new | dict.fromkeys(request.forget))
        self._stored, self._new = {}, {}
        return sorted(affected)

    def _embed(self, texts: list[str]) -> bytes:
        if self._embedder is None:
            from ragforge_tui.llm.embeddings import LocalEmbedder

            self._embedder = LocalEmbedder()
        return self._embedder.encode(texts).tobytes()

    def _names(self, path: str) -> FileNames:
        assert self._resolver is not None
        found = self._resolver.resolve([path])
        names = FileNames(found.references, found.unresolved)
        names.digest = hashlib.sha256(msgspec.msgpack.encode(names)).hexdigest()[:32]
        return names


if __name__ == "__main__":
    main()
