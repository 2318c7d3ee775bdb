"""Facts that a file offers to others, which can be compared, and the words that it mentions itself.

Two versions of a file with the same facts lead every other file to the same targets.
"""

from __future__ import annotations

from typing import NamedTuple

from ragforge_tui.code.parsed import ParsedFile, words_of


class Fact(NamedTuple):
    """Fact about a name that a file offers.

    Attributes:
        name: The name by which other files mention it.
        text: All that other files may see of it.
        depends_on: Names whose change may change what this one resolves to.
    """

    kind: str
    file: str
    name: str
    text: str = ""
    depends_on: frozenset[str] = frozenset()


def facts_of(parsed: ParsedFile) -> set[Fact]:
    """Return the facts that a file offers to other files."""
    path = parsed.path
    stem = path.rpartition("/")[2].partition(".")[0]
    facts = {Fact("file", path, stem), Fact("file", path, path.rpartition("/")[0].rpartition("/")[2])}
    if parsed.package:
        facts.add(Fact("package", path, "", parsed.package))
    for scope in parsed.scopes if parsed.scopes and parsed.scopes[0].kind != "section" else []:
        if scope.parent >= 0:
            text = f"{scope.qualified_name} {scope.kind} {scope.ordinal} {scope.owner} {scope.bases} {scope.returns}"
            needed = frozenset(words_of([*scope.bases, scope.returns, scope.owner]))
            facts.add(Fact("scope", path, scope.name, text, needed))
            if scope.owner:
                # The type gains or loses a method, and those that extend it with it.
                facts.add(Fact("method", path, scope.name, text))
        if scope.kind not in ("function", "method"):
            for name, value in scope.types.items():
                facts.add(Fact("type", path, name, f"{scope.qualified_name} {value}", frozenset(words_of([value]))))
    for item in parsed.imports:
        if item.scope == 0 and item.name == "*":
            if item.exported:
                facts.add(Fact("star", path, "", item.module))
        elif item.scope == 0:
            words = words_of([item.name, item.module.replace("/", ".")])
            facts.add(Fact("import", path, item.alias, f"{item.module} {item.name}", frozenset(words)))
    return facts


def mentioned_words(parsed: ParsedFile) -> str:
    """Return the names that a file mentions, each between two line ends."""
    words: set[str] = set()
    for scope in parsed.scopes:
        words |= words_of(mention.path for mention in scope.mentions)
        words |= words_of((*scope.bases, *scope.types.values(), scope.returns, scope.owner))
    for item in parsed.imports:
        words |= words_of((item.module.replace("/", "."), item.name, item.alias))
    return "\n" + "\n".join(words) + "\n"
