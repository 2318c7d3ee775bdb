"""The files that an import means, by the rules of each language's module system."""

from __future__ import annotations

import posixpath
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Final

from ragforge_tui.code.parsed import ParsedFile

SCRIPTS: Final = frozenset({"javascript", "typescript", "tsx"})
C_FAMILY: Final = frozenset({"c", "cpp"})
_SCRIPT_ENDINGS = (".ts", ".tsx", ".d.ts", ".js", ".jsx", ".mjs", ".cjs", ".mts", ".cts")
_EMITTED = {".js": (".ts", ".tsx"), ".jsx": (".tsx",), ".mjs": (".mts",), ".cjs": (".cts",)}
_CRATE_ROOTS = ("lib.rs", "main.rs")


def family_of(language: str) -> str:
    """Return the name shared by the languages that may refer to each other."""
    if language in SCRIPTS:
        return "script"
    return "c" if language in C_FAMILY else language


class Modules:
    """Index of a workspace's files by what an import calls them."""

    def __init__(self) -> None:
        self._files: dict[str, ParsedFile] = {}
        self._folders: dict[tuple[str, str], set[str]] = defaultdict(set)
        self._python: dict[str, set[str]] = defaultdict(set)
        self._packages: dict[tuple[str, str], set[str]] = defaultdict(set)
        self._by_name: dict[str, set[str]] = defaultdict(set)

    def update(self, changes: Mapping[str, ParsedFile | None]) -> None:
        """Replace or add files; remove those whose new value is None."""
        for path, parsed in changes.items():
            old = self._files.pop(path, None)
            if old is not None:
                for index, key in self._keys(old):
                    index[key].discard(path)
            if parsed is not None:
                self._files[path] = parsed
                for index, key in self._keys(parsed):
                    index[key].add(path)

    def _keys(self, parsed: ParsedFile) -> Iterable[tuple[dict[object, set[str]], object]]:
        folder, _, name = parsed.path.rpartition("/")
        family = family_of(parsed.language)
        entries: list[tuple[object, object]] = [(self._folders, (family, folder)), (self._by_name, name)]
        if parsed.package:
            entries.append((self._packages, (family, parsed.package)))
        if parsed.language == "python":
            entries.append((self._python, _python_stem(parsed.path).rpartition("/")[2]))
        return entries  # type: ignore[return-value]

    def siblings(self, parsed: ParsedFile) -> list[str]:
        """Return the other files whose names are visible without an import: those of the same package."""
        if parsed.language == "go":
            found = self._folders["go", posixpath.dirname(parsed.path)]
            return sorted(path for path in found if self._files[path].package == parsed.package and path != parsed.path)
        if parsed.language == "java":
            return sorted(self._packages["java", parsed.package] - {parsed.path}) if parsed.package else []
        return []

    def python(self, path: str, module: str) -> str:
        """Return the file of a Python module, empty if it is none of the workspace."""
        if module.startswith("."):
            dots = len(module) - len(module.lstrip("."))
            folder = posixpath.dirname(path)
            for _ in range(dots - 1):
                folder = posixpath.dirname(folder)
            rest = module[dots:].replace(".", "/")
            return self._python_at("/".join(part for part in (folder, rest) if part))
        if "__init__.py" in self._files and "." in module and not self._python_at(module.partition(".")[0]):
            # The workspace is a package itself, and the module's name begins with its name.
            found = self._python_at(module.partition(".")[2].replace(".", "/"))
            if found:
                return found
        wanted = module.replace(".", "/")
        candidates = [
            file
            for file in self._python.get(wanted.rpartition("/")[2], ())
            if _python_stem(file) == wanted or _python_stem(file).endswith("/" + wanted)
        ]
        candidates = [file for file in candidates if self._is_importable(file, wanted, path)]
        return min(
            candidates, key=lambda file: (-_shared(file, path), file.endswith(".pyi"), len(file), file), default=""
        )

    def _is_importable(self, file: str, wanted: str, importer: str) -> bool:
        stem = _python_stem(file)
        root = stem[: len(stem) - len(wanted)].rstrip("/")
        if root and f"{root}/__init__.py" in self._files:
            return False  # Its name begins with that of the package around it.
        if "/" in wanted or file.endswith("/__init__.py"):
            return True
        # A lone module is found from the scripts next to it and below; Python's own come first elsewhere.
        inside = not root or importer.startswith(root + "/")
        return inside and (wanted not in sys.stdlib_module_names or posixpath.dirname(importer) == root)

    def _python_at(self, stem: str) -> str:
        for candidate in (f"{stem}/__init__.py", f"{stem}.py", f"{stem}/__init__.pyi", f"{stem}.pyi"):
            if candidate.lstrip("/") in self._files:
                return candidate.lstrip("/")
        return ""

    def submodule(self, path: str, name: str) -> str:
        """Return the file of a module within a package or module, empty if there is none."""
        language = self._files[path].language
        if language == "python":
            folder, _, file = path.rpartition("/")
            if not file.startswith("__init__."):
                return ""
            return self._python_at(f"{folder}/{name}" if folder else name)
        if language == "rust":
            return self._first(f"{_rust_folder(path)}{name}.rs", f"{_rust_folder(path)}{name}/mod.rs")
        return ""

    def script(self, path: str, module: str) -> str:
        """Return the file of a JavaScript or TypeScript module, empty if it is none of the workspace."""
        if module.startswith("."):
            return self._script_at(posixpath.normpath(posixpath.join(posixpath.dirname(path), module)))
        folder = posixpath.dirname(path)
        while True:
            config = self._files.get(posixpath.join(folder, "tsconfig.json"))
            if config is not None and config.package:
                found = self._script_at(posixpath.normpath(posixpath.join(folder, config.package, module)))
                if found:
                    return found
            if not folder:
                return ""
            folder = posixpath.dirname(folder)

    def _script_at(self, stem: str) -> str:
        stem = "" if stem == "." else stem
        base, ending = posixpath.splitext(stem)
        emitted = [base + source for source in _EMITTED.get(ending, ())]
        index = [posixpath.join(stem, "index" + item) for item in _SCRIPT_ENDINGS]
        return self._first(*emitted, stem, *(stem + item for item in _SCRIPT_ENDINGS), *index)

    def go(self, module: str) -> list[str]:
        """Return the files of a Go package, without its tests; none if it is none of the workspace."""
        for config in self._by_name.get("go.mod", ()):
            root = self._files[config].package
            if root and (module == root or module.startswith(root + "/")):
                folder = posixpath.join(posixpath.dirname(config), module[len(root) + 1 :]).rstrip("/")
                found = sorted(file for file in self._folders.get(("go", folder), ()) if not file.endswith("_test.go"))
                if found:
                    return found
        return []

    def java(self, package: str) -> list[str]:
        return sorted(self._packages.get(("java", package), ()))

    def rust_root(self, path: str) -> str:
        """Return the root file of the crate that a Rust file belongs to, empty if there is none."""
        folder = posixpath.dirname(path)
        while True:
            root = self._first(*(posixpath.join(folder, name) for name in _CRATE_ROOTS))
            if root or not folder:
                return root
            folder = posixpath.dirname(folder)

    def rust_crate(self, name: str) -> str:
        """Return the root file of a crate of the workspace by its name."""
        for config in sorted(self._by_name.get("Cargo.toml", ())):
            if self._files[config].package.replace("-", "_") == name:
                folder = posixpath.dirname(config)
                return self._first(posixpath.join(folder, "src/lib.rs"), posixpath.join(folder, "lib.rs"))
        return ""

    def rust_parent(self, path: str) -> str:
        """Return the file of the module around a Rust file, empty for a crate's root."""
        folder, _, name = path.rpartition("/")
        if name in _CRATE_ROOTS:
            return ""
        if name == "mod.rs":
            folder = posixpath.dirname(folder)
        prefix = f"{folder}/" if folder else ""
        return self._first(prefix + "lib.rs", prefix + "main.rs", prefix + "mod.rs", f"{folder}.rs")

    def header(self, path: str, module: str) -> str:
        """Return the file that an include names: next to the including file, or by the end of its path."""
        near = posixpath.normpath(posixpath.join(posixpath.dirname(path), module))
        if near in self._files:
            return near
        ending = "/" + posixpath.normpath(module).lstrip("./")
        found = [
            file
            for file in self._by_name.get(module.rpartition("/")[2], ())
            if family_of(self._files[file].language) == "c" and ("/" + file).endswith(ending)
        ]
        return min(found, key=lambda file: (-_shared(file, path), len(file), file), default="")

    def _first(self, *paths: str) -> str:
        return next((path for path in paths if path in self._files), "")


def _python_stem(path: str) -> str:
    stem = path[: path.rfind(".")]
    return stem.removesuffix("/__init__")


def _rust_folder(path: str) -> str:
    folder, _, name = path.rpartition("/")
    folder = folder if name in (*_CRATE_ROOTS, "mod.rs") else path.removesuffix(".rs")
    return f"{folder}/" if folder else ""


def _shared(first: str, second: str) -> int:
    """Return the number of folders that two paths share."""
    count = 0
    for one, other in zip(first.split("/")[:-1], second.split("/")[:-1], strict=False):
        if one != other:
            break
        count += 1
    return count
