"""Resolution of the names in parsed files to scopes of the workspace.

A path is followed from left to right: its first name through the enclosing scopes, the file, its imports and its
package; each further name among the members of what the ones before it resolve to, with the types of variables,
attributes and return values as far as they are written down, and the classes that a class extends. The confidence is

- 1.0 where enclosing scopes, imports or the receiver (`self`, `this`) determine the target,
- 0.9 where the declared or assigned type of a variable, attribute or result does,
- 0.7 for each of several overloads,
- 0.6 or 0.5 where only the method's name fits, and exactly one method of the file and the files it imports, or of the
  workspace, has it; divided by their number for up to four.

A method's name that more than four methods have, or that the language's own collections and strings have (`get`,
`append`), is not a clue: it stays unresolved unless a type is known.

What changes when files change: `Resolver.update` compares what the old and new versions offer to other files, which
are their definitions, base classes, types and imports, and collects the names of what differs. A name that depends on
such a name is added: a class that extends it, an attribute or result of that type, an import under another name. The
files that mention one of the names, and the changed files, are those to resolve again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import msgspec

from ragforge_tui.code.known_names import BUILTINS, COLLECTION_METHODS
from ragforge_tui.code.modules import Modules, family_of
from ragforge_tui.code.offered import Fact, facts_of, mentioned_words
from ragforge_tui.code.parsed import CLASS, SELF, UNKNOWN, Import, Mention, ParsedFile, ParsedScope, scope_uuid
from ragforge_tui.shared.code_records import Reference, ReferenceKind, UnresolvedName

_TYPE_KINDS = frozenset({"class", "interface", "struct", "enum", "trait", "type"})
_MOST_CANDIDATES = 4
_BY_TYPE = 0.9
_OVERLOAD = 0.7
_NEAR_NAME = 0.6
_NAME_ONLY = 0.5
# Bounds for files that were made to keep the resolver busy; of 4 400 real ones the largest took 20 000 steps.
MOST_STARS = 300
"""Files and types from which one scope takes all names, the nearest first."""
MOST_STEPS = 50_000
"""Steps from name to name for the references of one file; what they do not reach is unresolved."""
STARS_A_STEP = 10
"""Files looked at for a name in the time of one step."""
MOST_ACTIVE = 50
"""Imports and names that lead to each other, one after another."""
# Chains of aliases, re-exports and base classes longer than this are cycles or generated.
_DEEPEST = 25

Symbol = tuple[str, int]
"""File and index of a scope in it."""


class Resolution(msgspec.Struct):
    """References found, and the names without a target."""

    references: list[Reference] = []
    unresolved: list[UnresolvedName] = []


class _Value(NamedTuple):
    """Target of a path: a scope, an instance of one, the files of a module, or a library."""

    kind: str
    symbol: Symbol = ("", 0)
    files: tuple[str, ...] = ()
    name: str = ""
    confidence: float = 1.0


class Resolver:
    """Files of one workspace, and the references between their scopes."""

    def __init__(self, workspace: str, files: Mapping[str, ParsedFile] | None = None) -> None:
        self._workspace = workspace
        self._files: dict[str, ParsedFile] = {}
        self._modules = Modules()
        self._members: dict[str, list[dict[str, list[int]]]] = {}
        self._imports: dict[str, dict[tuple[int, str], list[Import]]] = {}
        self._methods: dict[tuple[str, str], set[Symbol]] = defaultdict(set)
        self._words: dict[str, str] = {}
        self._attached: dict[Symbol, dict[str, list[Symbol]]] | None = None
        self._memo: dict[tuple[str, str], _Value | None] = {}
        self._stars: dict[tuple[str, int], list[str | _Value]] = {}
        self._direct: dict[tuple[str, int, bool], tuple[str | _Value, ...]] = {}
        self._found: dict[tuple[str, str], tuple[str, ...]] = {}
        self._near: dict[str, set[str]] = {}
        # Imports, names and stars being determined: a cycle among them ends there, and what was cut so is not kept.
        self._active: list[object] = []
        self._cuts = 0
        # Taken since the current file began: names that lead in many circles could be followed for ever.
        self._steps = 0
        self._functions: dict[str, set[Symbol]] = defaultdict(set)
        self._namespaces: set[str] = set()
        if files:
            self.update(files)

    # Changes

    def update(self, changes: Mapping[str, ParsedFile | None]) -> set[str]:
        """Replace, add or (with None) remove files.

        Returns:
            The files whose references have to be resolved again: those that changed and still exist, and those that
            mention a name that changed.
        """
        before: set[Fact] = set()
        after: set[Fact] = set()
        for path, parsed in changes.items():
            old = self._files.get(path)
            before |= facts_of(old) if old is not None else set()
            after |= facts_of(parsed) if parsed is not None else set()
            self._remove(path)
        self._modules.update(changes)
        for parsed in changes.values():
            if parsed is not None:
                self._add(parsed)
        self._memo.clear()
        self._stars.clear()
        self._direct.clear()
        self._found.clear()
        self._near.clear()
        self._namespaces = {
            name
            for item in self._files.values()
            if item.package and family_of(item.language) == "c"
            for name in item.package.split()
        }
        self._attached = None
        changed = before ^ after
        affected = {path for path in changes if path in self._files}
        if changed and len(affected) < len(self._files):
            affected |= self._that_mention(changed)
        return affected

    def _add(self, parsed: ParsedFile) -> None:
        path, family = parsed.path, family_of(parsed.language)
        members: list[dict[str, list[int]]] = [{} for _ in parsed.scopes]
        for index, scope in enumerate(parsed.scopes):
            if scope.parent >= 0 and not scope.owner:
                members[scope.parent].setdefault(scope.name, []).append(index)
            if scope.kind == "method":
                self._methods[family, scope.name].add((path, index))
            elif scope.kind == "function" and family == "c" and not scope.declared:
                self._functions[scope.name].add((path, index))
        imports: dict[tuple[int, str], list[Import]] = {}
        for item in parsed.imports:
            imports.setdefault((item.scope, "*" if item.name == "*" else item.alias), []).append(item)
        self._files[path], self._members[path], self._imports[path] = parsed, members, imports
        self._words[path] = mentioned_words(parsed)

    def _remove(self, path: str) -> None:
        parsed = self._files.pop(path, None)
        if parsed is None:
            return
        for index, scope in enumerate(parsed.scopes):
            if scope.kind == "method":
                self._methods[family_of(parsed.language), scope.name].discard((path, index))
            self._functions[scope.name].discard((path, index)) if scope.kind == "function" else None
        del self._members[path], self._imports[path], self._words[path]

    def _that_mention(self, changed: set[Fact]) -> set[str]:
        if any(fact.kind == "package" for fact in changed):
            return set(self._files)
        names = {fact.name for fact in changed}
        facts = [fact for parsed in self._files.values() for fact in facts_of(parsed) if fact.depends_on]
        new = names
        while new:
            new = {fact.name for fact in facts if fact.name not in names and not new.isdisjoint(fact.depends_on)}
            names |= new
        marks = [f"\n{name}\n" for name in names if name]
        found = {path for path, words in self._words.items() if any(mark in words for mark in marks)}
        if any(fact.kind == "star" for fact in changed):
            found |= self._that_import({fact.file for fact in changed if fact.kind == "star"})
        return found

    def _that_import(self, files: set[str]) -> set[str]:
        """Return the files that import some files with all their names, directly or through others."""
        importers: dict[str, set[str]] = defaultdict(set)
        for path, parsed in self._files.items():
            self._steps = 0
            for item in parsed.imports:
                value = self._imported(path, item, whole=True)
                for target in (*value.files, value.symbol[0]) if value is not None else ():
                    importers[target].add(path)
        found: set[str] = set()
        new = set(files)
        while new:
            new = {importer for file in new for importer in importers.get(file, ())} - found
            found |= new
        return found

    # References

    def resolve(self, paths: Iterable[str] | None = None) -> Resolution:
        """Return the references from some files, from all of them without an argument."""
        result = Resolution([], [])
        for path in sorted(self._files if paths is None else paths):
            parsed = self._files.get(path)
            if parsed is not None and parsed.scopes and parsed.scopes[0].kind != "section":
                self._resolve_file(parsed, result)
        return result

    def _resolve_file(self, parsed: ParsedFile, result: Resolution) -> None:
        self._steps = 0
        edges: dict[tuple[int, Symbol, ReferenceKind], tuple[float, int]] = {}
        missing: dict[tuple[int, str, ReferenceKind], int] = {}

        def link(source: int, target: Symbol, kind: ReferenceKind, line: int, confidence: float) -> None:
            if target != (parsed.path, source) or kind == "calls":
                known = edges.get((source, target, kind))
                edges[source, target, kind] = (
                    (confidence, line) if known is None else (max(known[0], confidence), min(known[1], line))
                )

        for item in parsed.imports:
            targets, name = self._import_targets(parsed, item)
            for symbol, confidence in targets:
                link(item.scope, symbol, "imports", item.line, confidence)
            if name:
                missing.setdefault((item.scope, name, "imports"), item.line)
        for index, scope in enumerate(parsed.scopes):
            for mention in scope.mentions:
                targets, name = self._mention_targets(parsed, index, mention)
                for symbol, confidence in targets:
                    called = mention.kind == "calls" and self._scope(symbol).kind not in ("constant", "module")
                    kind: ReferenceKind = "uses" if mention.kind == "calls" and not called else mention.kind
                    link(index, symbol, kind, mention.line, confidence)
                if name:
                    missing.setdefault((index, name, mention.kind), mention.line)
        uuids = [scope_uuid(self._workspace, parsed.path, scope) for scope in parsed.scopes]
        for edge, (confidence, line) in edges.items():
            target = scope_uuid(self._workspace, edge[1][0], self._scope(edge[1]))
            result.references.append(
                Reference(
                    source=uuids[edge[0]], target=target, kind=edge[2], line=line, confidence=round(confidence, 3)
                )
            )
        for (source, name, kind), line in missing.items():
            result.unresolved.append(UnresolvedName(source=uuids[source], name=name, kind=kind, line=line))

    def _import_targets(self, parsed: ParsedFile, item: Import) -> tuple[list[tuple[Symbol, float]], str]:
        if not item.module:
            return [], ""
        value = self._imported(parsed.path, item, whole=True)
        if value is None or value.kind == "external":
            return [], ".".join(part for part in (item.module, item.name.replace("*", "")) if part)
        if value.kind == "module":
            # A package of several files is shown by one of them.
            return [((file, 0), value.confidence) for file in value.files[:1]], ""
        return [(value.symbol, value.confidence)], ""

    def _mention_targets(
        self, parsed: ParsedFile, index: int, mention: Mention
    ) -> tuple[list[tuple[Symbol, float]], str]:
        """Return the targets of a mentioned path, or the name to report as unresolved."""
        path, kind = mention.path, mention.kind
        passed: list[_Value] = []
        # The types that a class extends are named outside of it, where its own members are not visible.
        around = max(parsed.scopes[index].parent, 0) if kind == "inherits" else index
        value = self._follow(parsed, around, path, passed, 0)
        if value is not None and value.kind == "instance" and kind == "calls":
            value = self._member(value, "__call__", 0)
        if value is not None and value.kind in ("scope", "instance") and value.symbol[0]:
            scope = self._scope(value.symbol)
            if value.kind == "scope" and (kind != "inherits" or scope.kind in _TYPE_KINDS):
                return self._overloads(self._defined(value)), ""
            return [], ""
        if value is not None and value.kind == "module":
            return [((value.files[0], 0), value.confidence)] if kind == "uses" else [], ""
        held = [(item.symbol, item.confidence) for item in passed[-1:] if item.kind == "scope"]
        if value is not None:
            return held, value.name if kind != "uses" or not held else ""
        names = path.replace("()", "").split(".")
        if held:
            return held, path if kind != "uses" else ""
        if kind == "calls" and len(names) > 1:
            found = self._by_name(parsed, *path.split(".")[-2:])
            return found, "" if found else path
        if kind == "calls" and family_of(parsed.language) == "c" and path not in BUILTINS["c"]:
            functions = sorted(self._functions.get(path, ()))
            if 0 < len(functions) <= _MOST_CANDIDATES:
                return [(symbol, _NEAR_NAME / len(functions)) for symbol in functions], ""
            return [], path
        local = self._is_local(parsed, index, names[0])
        if kind == "uses" and (local or names[0] in ("self", "this", "cls")):
            return [], ""
        builtin = names[0] in BUILTINS.get(family_of(parsed.language), ())
        return [], "" if builtin or (local and kind == "uses") else path

    def _defined(self, value: _Value) -> _Value:
        """Return the definition of a declaration: of a method outside of its type, of a function in another file.

        Of several functions it is that of the file with the header's name, or the only one.
        """
        path, scope = value.symbol[0], self._scope(value.symbol)
        if not scope.declared or scope.parent < 0:
            return value
        if scope.kind == "method":
            outside = self._attachments().get((path, scope.parent), {}).get(scope.name)
            return value._replace(symbol=outside[0]) if outside else value
        found = sorted(self._functions.get(scope.name, ()))
        stem = path.rpartition("/")[2].rpartition(".")[0]
        same = [item for item in found if item[0].rpartition("/")[2].rpartition(".")[0] == stem]
        if same or len(found) == 1:
            return value._replace(symbol=(same or found)[0])
        return value

    def _overloads(self, value: _Value) -> list[tuple[Symbol, float]]:
        path, index = value.symbol
        parsed = self._files[path]
        scope = parsed.scopes[index]
        if family_of(parsed.language) not in ("java", "c") or scope.kind not in ("function", "method"):
            return [(value.symbol, value.confidence)]
        same = [item for item in self._members[path][max(scope.parent, 0)].get(scope.name, []) if not scope.owner]
        if len(same) < 2 or len(same) > _MOST_CANDIDATES:
            return [(value.symbol, value.confidence)]
        return [((path, item), min(value.confidence, _OVERLOAD)) for item in same]

    def _by_name(self, parsed: ParsedFile, holder: str, name: str) -> list[tuple[Symbol, float]]:
        name, family = name.removesuffix("()"), family_of(parsed.language)
        if name in COLLECTION_METHODS.get(family, ()):
            return []
        found = sorted(self._methods.get((family, name), ()))
        if holder[:1].isupper() and holder.isidentifier():
            # The name of a type that is not known here: only a type of that name elsewhere has the method.
            found = [symbol for symbol in found if holder in self._scope(symbol).qualified_name.split(".")]
        confidence = _NAME_ONLY
        if len(found) > 1:
            near = self._near_files(parsed)
            nearby = [symbol for symbol in found if symbol[0] in near]
            found, confidence = (nearby, _NEAR_NAME) if nearby else (found, _NAME_ONLY)
        if not found or len(found) > _MOST_CANDIDATES:
            return []
        return [(symbol, confidence / len(found)) for symbol in found]

    def _near_files(self, parsed: ParsedFile) -> set[str]:
        """Return a file and those that it imports."""
        if parsed.path not in self._near:
            imported = (target for item in parsed.imports for target in self._targets(parsed.path, item.module))
            self._near[parsed.path] = {parsed.path, *imported}
        return self._near[parsed.path]

    # Following a path

    def _scope(self, symbol: Symbol) -> ParsedScope:
        return self._files[symbol[0]].scopes[symbol[1]]

    def _follow(
        self, parsed: ParsedFile, index: int, path: str, passed: list[_Value] | None, depth: int
    ) -> _Value | None:
        """Return where a path leads that is written in a scope, None if that is not known."""
        self._steps += 1
        if depth > _DEEPEST or self._tired:
            return None
        value: _Value | None = None
        in_namespace = False
        for position, part in enumerate(path.split(".")):
            name = part.removesuffix("()")
            if position == 0 or (value is None and in_namespace):
                value = self._first(parsed, index, name, depth)
                in_namespace = value is None and name in self._namespaces and family_of(parsed.language) == "c"
                if in_namespace:
                    continue
            elif value is not None:
                value = self._member(value, name, depth)
            if value is None:
                return None
            if (
                passed is not None
                and value.kind == "scope"
                and self._scope(value.symbol).kind
                in (
                    *_TYPE_KINDS,
                    "constant",
                )
            ):
                passed.append(value)
            if part.endswith("()"):
                value = self._result(value, depth)
            if value is None:
                return None
        return value

    def _first(self, parsed: ParsedFile, index: int, name: str, depth: int) -> _Value | None:
        """Return what the first name of a path means in a scope."""
        path, scopes = parsed.path, parsed.scopes
        if name == UNKNOWN:
            return None
        if name in ("this", "self", "Self", "super", SELF, CLASS) and (
            name in (SELF, CLASS) or parsed.language != "python" or name == "super"
        ):
            found = self._receiver(parsed, index, name, depth)
            if found is not None or name in (SELF, CLASS) or parsed.language != "rust":
                return found
        if name == "crate" and parsed.language == "rust":
            root = self._modules.rust_root(path)
            return _Value("module", files=(root,)) if root else None
        members, imports = self._members[path], self._imports[path]
        around = family_of(parsed.language) in ("java", "c")
        current = index
        while current > 0:
            scope = scopes[current]
            if around and scope.name == name and scope.kind in _TYPE_KINDS:
                return _Value("scope", (path, current))  # Not its constructor, which has the same name.
            if scope.kind in ("function", "method", "module"):
                if name in members[current]:
                    return _Value("scope", (path, members[current][name][0]))
                for item in imports.get((current, name), ()):
                    return self._imported(path, item)
                if name in scope.types:
                    return self._typed(parsed, current, scope.types[name], depth)
            elif (current == index and scope.kind in _TYPE_KINDS) or around:
                if name in members[current]:
                    return _Value("scope", (path, members[current][name][0]))
                if name in scope.types:
                    return self._typed(parsed, current, scope.types[name], depth)
            if around and (scope.owner or scope.kind in _TYPE_KINDS):
                inherited = self._class_member(parsed, current, name, depth)
                if inherited is not None:
                    return inherited
            if scope.kind == "module" and (found := self._star(path, current, name)) is not None:
                return found
            current = scope.parent
        found = self._module_member(path, name)
        if found is not None:
            return found
        for sibling in self._modules.siblings(parsed):
            if name in self._members[sibling][0]:
                return _Value("scope", (sibling, self._members[sibling][0][name][0]))
        return self._elsewhere(parsed, name)

    def _class_member(self, parsed: ParsedFile, index: int, name: str, depth: int) -> _Value | None:
        scope = parsed.scopes[index]
        owner = self._follow(parsed, 0, scope.owner, None, depth + 1) if scope.owner else None
        value = owner if owner is not None else _Value("scope", (parsed.path, index))
        if value.kind != "scope" or self._scope(value.symbol).kind not in _TYPE_KINDS:
            return None
        if self._scope(value.symbol).name == name:
            return value
        found = self._member(value, name, depth + 1)
        return found if found is None or found.kind != "external" else None

    def _elsewhere(self, parsed: ParsedFile, name: str) -> _Value | None:
        """Return what a name means that neither the file nor its imports define."""
        if parsed.language == "rust":
            crate = self._modules.rust_crate(name)
            return _Value("module", files=(crate,)) if crate else None
        return None

    def _receiver(self, parsed: ParsedFile, index: int, name: str, depth: int) -> _Value | None:
        current = index
        while current > 0:
            scope = parsed.scopes[current]
            if scope.kind == "module" and parsed.language == "rust" and name in ("self", "super"):
                if name == "self":
                    return _Value("scope", (parsed.path, current))
                around = scope.parent
                return _Value("scope", (parsed.path, around)) if around else _Value("module", files=(parsed.path,))
            if scope.owner:
                owner = self._follow(parsed, 0, scope.owner, None, depth + 1)
                if owner is None or owner.kind != "scope":
                    return None
                return owner if name in (CLASS, "Self") else owner._replace(kind="instance")
            if scope.kind in _TYPE_KINDS and scope.kind != "type":
                if name == "super":
                    return _Value("super", (parsed.path, current))
                return _Value("scope" if name in (CLASS, "Self") else "instance", (parsed.path, current))
            current = scope.parent
        if parsed.language == "rust" and name in ("self", "super"):
            if name == "self":
                return _Value("module", files=(parsed.path,))
            parent = self._modules.rust_parent(parsed.path)
            return _Value("module", files=(parent,)) if parent else None
        return None

    def _typed(self, parsed: ParsedFile, index: int, path: str, depth: int) -> _Value | None:
        """Return the value of a variable or attribute whose type is written as a path in a scope."""
        if not path or path == UNKNOWN or depth > _DEEPEST:
            return None
        scope = parsed.scopes[index]
        # The variable itself may appear in its value, where it means what it meant before.
        name = path.partition(".")[0].removesuffix("()")
        outer = (
            scope.parent if scope.types.get(name) == path and name not in self._members[parsed.path][index] else index
        )
        entry = (parsed.path, index, path)
        if self._is_active(entry):
            return None
        self._active.append(entry)
        value = self._follow(parsed, max(outer, 0), path, None, depth + 1)
        self._active.pop()
        if value is None or path in (SELF, CLASS):
            return value
        return value._replace(confidence=min(value.confidence, _BY_TYPE)) if value.kind != "scope" else value

    def _result(self, value: _Value, depth: int) -> _Value | None:
        """Return what calling a value returns."""
        if value.kind == "external":
            return value._replace(name=value.name + "()")
        if value.kind == "super":
            return value
        if value.kind == "module":
            value = self._member(value, "default", depth) or value
        if value.kind != "scope":
            return None
        parsed, index = self._files[value.symbol[0]], value.symbol[1]
        scope = parsed.scopes[index]
        if scope.kind in _TYPE_KINDS:
            return value._replace(kind="instance")
        if not scope.returns or depth > _DEEPEST:
            return None
        around = scope.parent if not scope.owner else index
        found = self._follow(parsed, max(around, 0), scope.returns, None, depth + 1)
        return found._replace(confidence=min(value.confidence, found.confidence, _BY_TYPE)) if found else None

    def _member(self, value: _Value, name: str, depth: int) -> _Value | None:
        """Return the member of a value, None if that is not known."""
        if value.kind == "external":
            return value._replace(name=f"{value.name}.{name}")
        if depth > _DEEPEST or name == UNKNOWN:
            return None
        if value.kind == "module":
            if name == "super" and self._files[value.files[0]].language == "rust":
                parent = self._modules.rust_parent(value.files[0])
                return value._replace(files=(parent,)) if parent else None
            for file in value.files:
                found = self._module_member(file, name)
                if found is not None:
                    return found._replace(confidence=min(found.confidence, value.confidence))
            return None
        scope = self._scope(value.symbol)
        if value.kind == "scope" and scope.kind == "constant":
            if held := self._members[value.symbol[0]][value.symbol[1]].get(name):
                return _Value("scope", (value.symbol[0], held[0]))
            parsed = self._files[value.symbol[0]]
            typed = self._typed(parsed, 0, scope.returns, depth + 1)
            return self._member(typed, name, depth + 1) if typed is not None else None
        if value.kind == "scope" and scope.kind == "module":
            index = self._members[value.symbol[0]][value.symbol[1]].get(name)
            if index:
                return _Value("scope", (value.symbol[0], index[0]))
            for item in self._imports[value.symbol[0]].get((value.symbol[1], name), ()):
                return self._imported(value.symbol[0], item)
            return self._star(value.symbol[0], value.symbol[1], name)
        if scope.kind == "type" and scope.returns:
            aliased = self._follow(self._files[value.symbol[0]], 0, scope.returns, None, depth + 1)
            if aliased is not None:
                return self._member(aliased, name, depth + 1)
        if value.kind == "scope" and scope.kind not in _TYPE_KINDS:
            return None
        return self._inherited(value, name, depth)

    def _inherited(self, value: _Value, name: str, depth: int) -> _Value | None:
        """Return a member of a class or of the classes it extends, nearest first."""
        external = ""
        waiting = [value.symbol]
        seen: set[Symbol] = set()
        while waiting:
            symbol = waiting.pop(0)
            if symbol in seen:
                continue
            seen.add(symbol)
            self._steps += 1 + len(waiting) // STARS_A_STEP
            parsed, scope = self._files[symbol[0]], self._scope(symbol)
            if value.kind != "super" or symbol != value.symbol:
                found = self._own_member(symbol, name, value.confidence, depth)
                if found is not None:
                    return found
                if name in scope.types:
                    return None  # Its own, of a type that is written nowhere: no library's.
            bases: list[Symbol] = []
            for base in scope.bases:
                extended = self._follow(parsed, max(scope.parent, 0), base, None, depth + 1)
                if extended is not None and extended.kind == "scope":
                    bases.append(extended.symbol)
                elif extended is not None and extended.kind == "external":
                    external = external or extended.name
            waiting = bases + waiting
        return _Value("external", name=f"{external}.{name}") if external else None

    def _own_member(self, symbol: Symbol, name: str, confidence: float, depth: int) -> _Value | None:
        parsed, scope = self._files[symbol[0]], self._scope(symbol)
        indexes = self._members[symbol[0]][symbol[1]].get(name)
        outside = self._attachments().get(symbol, {}).get(name)
        if outside and (not indexes or parsed.scopes[indexes[0]].declared):
            return _Value("scope", outside[0], confidence=confidence)
        if indexes:
            return _Value("scope", (symbol[0], indexes[0]), confidence=confidence)
        if name in scope.types:
            typed = self._typed(parsed, symbol[1], scope.types[name], depth + 1)
            return typed._replace(confidence=min(typed.confidence, confidence, _BY_TYPE)) if typed else None
        return None

    def _attachments(self) -> dict[Symbol, dict[str, list[Symbol]]]:
        """Return the methods of each type that are written outside of it."""
        if self._attached is None:
            self._attached = {}
            found: dict[Symbol, dict[str, list[Symbol]]] = {}
            for path in sorted(self._files):
                parsed = self._files[path]
                for index, scope in enumerate(parsed.scopes):
                    if scope.owner:
                        owner = self._follow(parsed, 0, scope.owner, None, 0)
                        if owner is not None and owner.kind == "scope":
                            found.setdefault(owner.symbol, {}).setdefault(scope.name, []).append((path, index))
            self._attached = found
        return self._attached

    # Modules

    def _targets(self, path: str, module: str) -> tuple[str, ...]:
        """Return the files of an imported module."""
        key = (path, module)
        if key not in self._found:
            self._found[key] = tuple(file for file in self._module_files(path, module) if self._files[file].scopes)
        return self._found[key]

    def _module_files(self, path: str, module: str) -> Iterable[str]:
        family, found = family_of(self._files[path].language), ""
        if family == "python":
            found = self._modules.python(path, module)
        elif family == "script":
            found = self._modules.script(path, module)
        elif family == "c":
            found = self._modules.header(path, module)
        elif family == "go":
            return self._modules.go(module)
        elif family == "java":
            return self._modules.java(module)
        return (found,) if found else ()

    def _imported(self, path: str, item: Import, *, whole: bool = False) -> _Value | None:
        """Return what an import resolves to.

        Args:
            whole: The module that the import names, and not the package that it binds: Python's ``import a.b``.
        """
        entry = (path, item)
        self._steps += 1
        if self._tired or self._is_active(entry):
            return None
        self._active.append(entry)
        try:
            return self._followed_import(path, item, whole)
        finally:
            self._active.pop()

    @property
    def _tired(self) -> bool:
        """Whether the file took its steps, or names lead through too many others; what is cut so is not kept."""
        if self._steps > MOST_STEPS or len(self._active) > MOST_ACTIVE:
            self._cuts += 1
            return True
        return False

    def _is_active(self, entry: object) -> bool:
        if entry in self._active:
            self._cuts += 1
            return True
        return False

    def _followed_import(self, path: str, item: Import, whole: bool) -> _Value | None:
        parsed = self._files[path]
        dotted = ".".join(part for part in (item.module, item.name.replace("*", "")) if part)
        if parsed.language == "rust":
            value = self._follow(parsed, item.scope, item.module, None, 1) if item.module else None
            if value is not None and item.name not in ("", "*"):
                value = self._member(value, item.name, 1)
            return value or _Value("external", name=dotted)
        if not item.module:
            return self._module_member(path, item.name) if item.name != item.alias else None
        module = item.module
        if parsed.language == "python" and not item.name and not whole and item.alias == module.partition(".")[0]:
            module = item.alias
        files = self._targets(path, module)
        if not files and parsed.language == "java":
            # A static import names a class, whose package is the rest.
            package, _, holder = module.rpartition(".")
            owner = self._module_of(self._modules.java(package), holder)
            if owner is not None:
                found = self._member(owner, item.name, 1) if item.name not in ("", "*") else owner
                return found or owner
        if not files:
            return _Value("external", name=dotted if module == item.module else module)
        if item.name in ("", "*"):
            return _Value("module", files=files)
        found = self._module_of(files, item.name)
        if found is None and family_of(parsed.language) == "script" and item.name == "default":
            return _Value("module", files=files)
        if whole and (found is None or found.kind == "external"):
            # The module is known, and the name is one that it computes or hands on from a library.
            return _Value("module", files=files, confidence=_OVERLOAD)
        return found

    def _module_of(self, files: Iterable[str], name: str) -> _Value | None:
        for file in files:
            found = self._module_member(file, name)
            if found is not None:
                return found
        return None

    def _module_member(self, path: str, name: str) -> _Value | None:
        """Return a name of a file: its own, one taken with all others of a module, assigned, or a submodule."""
        value = self._named(path, name)
        if value is None:
            value = self._star(path, 0, name)
        parsed = self._files[path]
        if value is None and parsed.scopes and name in parsed.scopes[0].types:
            value = self._typed(parsed, 0, parsed.scopes[0].types[name], 1)
        if value is None and (submodule := self._modules.submodule(path, name)):
            value = _Value("module", files=(submodule,)) if self._files[submodule].scopes else None
        return value

    def _named(self, path: str, name: str) -> _Value | None:
        """Return a name that a file defines or imports."""
        key = (path, name)
        if key in self._memo:
            return self._memo[key]
        cuts = self._cuts
        parsed = self._files[path]
        value: _Value | None = None
        indexes = self._members[path][0].get(name) if parsed.scopes else None
        if indexes:
            functions = parsed.language == "python" and parsed.scopes[indexes[-1]].kind == "function"
            value = _Value("scope", (path, indexes[-1] if functions else indexes[0]))
        else:
            for item in self._imports[path].get((0, name), ()):
                value = self._imported(path, item)
                if value is not None and value.kind != "external":
                    break
        if cuts == self._cuts:
            self._memo[key] = value
        return value

    def _star(self, path: str, scope: int, name: str) -> _Value | None:
        """Return a name that a scope takes from modules and types with all others."""
        sources = self._star_sources(path, scope)
        self._steps += len(sources) // STARS_A_STEP
        for source in sources:
            if not isinstance(source, str):
                found = self._member(source, name, 1)
            elif name in self._members[source][0] or (0, name) in self._imports[source]:
                found = self._named(source, name)
            else:
                continue
            if found is not None and found.kind != "external":
                return found
        return None

    def _star_sources(self, path: str, scope: int) -> list[str | _Value]:
        """Return the files and types whose names a scope takes, those that hand on others included, nearest first."""
        key = (path, scope)
        if key in self._stars:
            return self._stars[key]
        if self._is_active(("*", *key)):
            return []
        self._active.append(("*", *key))
        cuts = self._cuts
        found = list(self._direct_stars(path, scope, exported=False))
        seen: set[str | _Value] = {path, *found} if not scope else set(found)
        for source in found:  # Grows meanwhile.
            if isinstance(source, str) and len(found) < MOST_STARS:
                further = [item for item in self._direct_stars(source, 0, exported=True) if item not in seen]
                found += further
                seen.update(further)
        del found[MOST_STARS:]
        self._active.pop()
        if cuts == self._cuts:
            self._stars[key] = found
        return found

    def _direct_stars(self, path: str, scope: int, *, exported: bool) -> tuple[str | _Value, ...]:
        """Return the files and types whose names a scope takes itself, each once."""
        key = (path, scope, exported)
        if key in self._direct:
            return self._direct[key]
        cuts = self._cuts
        found: dict[str | _Value, None] = {}
        modules: set[str] = set()
        for item in self._imports[path].get((scope, "*"), ()):
            if item.module in modules or (exported and not item.exported) or len(found) >= MOST_STARS:
                continue
            modules.add(item.module)
            source = self._imported(path, item)
            if source is not None and source.kind == "module":
                found.update(dict.fromkeys(file for file in source.files if file != path or scope))
            elif source is not None and source.kind != "external":
                found[source] = None
        if cuts == self._cuts:
            self._direct[key] = tuple(found)
        return tuple(found)

    def _is_local(self, parsed: ParsedFile, index: int, name: str) -> bool:
        while index > 0:
            if name in parsed.scopes[index].types:
                return True
            index = parsed.scopes[index].parent
        return False


def resolve(files: Mapping[str, ParsedFile], workspace: str, only: Iterable[str] | None = None) -> Resolution:
    """Return the references from some files of a workspace, from all of them without `only`."""
    return Resolver(workspace, files).resolve(only)
