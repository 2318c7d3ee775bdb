"""The languages that are parsed, by the ending of a file's name, and their parsers.

A parser belongs to one thread. Grammars are loaded when the first file of their language is parsed.
"""

from __future__ import annotations

import importlib
import threading
from functools import cache
from typing import Final, NamedTuple

from tree_sitter import Language, Parser, Tree

from ragforge_tui.code.walk import Grammar


class CodeLanguage(NamedTuple):
    """Language with a grammar.

    Attributes:
        package: Distribution of the grammar, imported as ``tree_sitter_<package>``.
        function: Name of the function in it that returns the grammar.
        walked_by: Module of `grammars` with the handlers.
    """

    name: str
    package: str
    function: str
    walked_by: str


_PYTHON = CodeLanguage("python", "python", "language", "python")
_JAVASCRIPT = CodeLanguage("javascript", "javascript", "language", "script")
_TYPESCRIPT = CodeLanguage("typescript", "typescript", "language_typescript", "script")
_TSX = CodeLanguage("tsx", "typescript", "language_tsx", "script")
_C = CodeLanguage("c", "c", "language", "c")
_CPP = CodeLanguage("cpp", "cpp", "language", "c")

BY_ENDING: Final[dict[str, CodeLanguage]] = {
    **dict.fromkeys((".py", ".pyi", ".pyw"), _PYTHON),
    **dict.fromkeys((".js", ".jsx", ".mjs", ".cjs"), _JAVASCRIPT),
    **dict.fromkeys((".ts", ".mts", ".cts"), _TYPESCRIPT),
    ".tsx": _TSX,
    ".go": CodeLanguage("go", "go", "language", "go"),
    ".rs": CodeLanguage("rust", "rust", "language", "rust"),
    ".java": CodeLanguage("java", "java", "language", "java"),
    ".c": _C,
    # C++ reads almost all C, and a header may belong to either.
    **dict.fromkeys((".h", ".cc", ".cpp", ".cxx", ".hh", ".hpp", ".hxx", ".inl", ".ipp", ".tpp"), _CPP),
}

# Files without a grammar, whose text is divided into sections. The language is the name shown for them.
TEXT_BY_ENDING: Final[dict[str, str]] = {
    **dict.fromkeys((".md", ".markdown", ".mdx"), "markdown"),
    ".rst": "rst",
    **dict.fromkeys((".txt", ".text", ".adoc", ".org"), "text"),
    ".toml": "toml",
    **dict.fromkeys((".yaml", ".yml"), "yaml"),
    **dict.fromkeys((".ini", ".cfg", ".conf", ".properties"), "ini"),
    ".json": "json",
    **dict.fromkeys((".html", ".htm", ".xml"), "html"),
    **dict.fromkeys((".css", ".scss", ".sass", ".less"), "css"),
    **dict.fromkeys((".sh", ".bash", ".zsh", ".fish"), "shell"),
    ".sql": "sql",
    ".rb": "ruby",
    ".php": "php",
    **dict.fromkeys((".kt", ".kts"), "kotlin"),
    ".swift": "swift",
    ".scala": "scala",
    ".cs": "csharp",
    ".lua": "lua",
    **dict.fromkeys((".ex", ".exs"), "elixir"),
    ".hs": "haskell",
    **dict.fromkeys((".ml", ".mli"), "ocaml"),
    ".proto": "protobuf",
    ".graphql": "graphql",
    **dict.fromkeys((".vue", ".svelte"), "html"),
    ".tf": "terraform",
    ".r": "r",
    ".jl": "julia",
    ".dart": "dart",
    ".zig": "zig",
    ".cmake": "cmake",
    ".mk": "make",
    ".mod": "go.mod",
}
TEXT_BY_NAME: Final[dict[str, str]] = {
    "dockerfile": "docker",
    "makefile": "make",
    "readme": "text",
    "license": "text",
    "changelog": "text",
    "cmakelists.txt": "cmake",
}

_parsers = threading.local()


def code_language(path: str) -> CodeLanguage | None:
    """Return the language of a file with a grammar, by its name."""
    return BY_ENDING.get(_ending(path))


def text_language(path: str) -> str:
    """Return the language of a text file without a grammar, empty if its name is not known."""
    name = path.rpartition("/")[2].lower()
    return TEXT_BY_NAME.get(name) or TEXT_BY_ENDING.get(_ending(path), "")


def is_known(path: str) -> bool:
    """Return whether `parse_file` reads files with this name."""
    return code_language(path) is not None or bool(text_language(path))


def _ending(path: str) -> str:
    name = path.rpartition("/")[2].lower()
    return name[name.rfind(".") :] if "." in name[1:] else ""


def grammar_of(language: CodeLanguage) -> Grammar:
    """Return the table of handlers of a language."""
    grammar: Grammar = importlib.import_module(f"ragforge_tui.code.grammars.{language.walked_by}").GRAMMAR
    return grammar


def syntax_tree(language: CodeLanguage, source: bytes) -> Tree:
    """Parse a source text; errors in it become nodes of the tree."""
    parsers: dict[str, Parser] = _parsers.__dict__.setdefault("by_language", {})
    parser = parsers.get(language.name)
    if parser is None:
        parser = parsers[language.name] = Parser(_loaded(language))
    return parser.parse(source)


@cache
def _loaded(language: CodeLanguage) -> Language:
    module = importlib.import_module(f"tree_sitter_{language.package}")
    return Language(getattr(module, language.function)())
