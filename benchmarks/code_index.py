"""How a repository is parsed and its references are resolved: time, counts, and Python's scopes against `ast`.

`python -m benchmarks.code_index --repo PATH` reads every file below a folder whose language is known, prints figures by
language, and checks each function and class of the Python files, with its lines, against Python's own parser. Then it
resolves the references, and those of one changed file again. `--edges NAME` checks the hand-picked references of
`data/code_edges.toml`. The last line holds the figures for scripts.
"""

from __future__ import annotations

import argparse
import ast
import time
import tomllib
import warnings
from collections import Counter, defaultdict
from pathlib import Path

from ragforge_tui.code.languages import code_language, is_known
from ragforge_tui.code.parsed import ParsedFile, scope_uuid
from ragforge_tui.code.parser import parse_file
from ragforge_tui.code.resolver import Resolution, Resolver
from ragforge_tui.shared.encoding import decode


def python_definitions(content: bytes) -> Counter[tuple[str, int, int]] | None:
    """Return name, first and last line of each function and class as `ast` reads them; None for other than Python 3."""
    decoded = decode(content)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(decoded[0] if decoded is not None else "")
    except (SyntaxError, ValueError):
        return None
    found: Counter[tuple[str, int, int]] = Counter()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            found[node.name, first, node.end_lineno or first] += 1
    return found


def scopes_as_definitions(parsed: ParsedFile) -> Counter[tuple[str, int, int]]:
    """Return name, first and last line of the functions, methods and classes of a parsed file."""
    return Counter(
        (scope.name, scope.start_line, scope.end_line)
        for scope in parsed.scopes
        if scope.kind in ("function", "method", "class")
    )


def print_references(resolution: Resolution) -> None:
    """Print how many references were resolved, by kind and confidence."""
    for kind in ("calls", "imports", "inherits", "uses"):
        of_kind = [item for item in resolution.references if item.kind == kind]
        levels = Counter(
            "1.0" if item.confidence == 1 else "0.9 to 0.7" if item.confidence >= 0.7 else "by name" for item in of_kind
        )
        missing = sum(item.kind == kind for item in resolution.unresolved)
        print(f"{kind:9} {len(of_kind):7} resolved {dict(sorted(levels.items()))}, {missing} unresolved")


def check_edges(name: str, parsed: dict[str, ParsedFile], resolution: Resolution) -> tuple[int, int]:
    """Print each hand-picked reference with what was found; return how many there are and how many are wrong."""
    path = Path(__file__).parent / "data" / "code_edges.toml"
    cases = tomllib.loads(path.read_text(encoding="utf-8"))[name]["cases"]
    # A name may have several definitions, one for each platform; any of them counts.
    uuids: dict[str, set[str]] = defaultdict(set)
    for file in parsed.values():
        for scope in file.scopes:
            uuids[f"{file.path}:{scope.qualified_name}"].add(scope_uuid("benchmark", file.path, scope))
    found: dict[tuple[str, str], tuple[float, str]] = {}
    for item in resolution.references:
        found[item.source, item.target] = max(
            found.get((item.source, item.target), (0.0, "")), (item.confidence, item.kind)
        )
    wrong = 0
    for case in cases:
        ends = ((source, target) for source in uuids[case["from"]] for target in uuids[case["to"]])
        edge = max((found[pair] for pair in ends if pair in found), default=None)
        right = (edge is None) == (case["kind"] == "absent") and uuids[case["from"]] and uuids[case["to"]]
        wrong += not right
        result = f"{edge[1]} {edge[0]}" if edge is not None else "none"
        print(f"| {case['kind']} | {case['from']} | {case['to']} | {result} | {'right' if right else 'WRONG'} |")
    return len(cases), wrong


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repo", type=Path, required=True, help="folder with the sources")
    parser.add_argument("--edges", help="table of data/code_edges.toml with references to check")
    options = parser.parse_args()
    repo: Path = options.repo
    contents = {
        path.relative_to(repo).as_posix(): path.read_bytes()
        for path in sorted(repo.rglob("*"))
        if path.is_file() and is_known(path.name)
    }
    parsed: dict[str, ParsedFile] = {}
    seconds: dict[str, list[float]] = defaultdict(list)
    for path, content in contents.items():
        start = time.process_time()
        result = parse_file(path, content)
        if result is not None:
            seconds[result.language].append(time.process_time() - start)
            parsed[path] = result
    for language, times in sorted(seconds.items(), key=lambda item: -len(item[1])):
        files = [item for item in parsed.values() if item.language == language]
        size = sum(len(contents[item.path]) for item in files)
        left_out = Counter(item.left_out for item in files if item.left_out)
        scopes, median = sum(len(item.scopes) for item in files), sorted(times)[len(times) // 2]
        print(
            f"{language:12} {len(files):5} files {size / 1e6:7.1f} MB {scopes:6} scopes {sum(times):6.2f} s,"
            f" median {median * 1e3:5.1f} ms, most {max(times) * 1e3:6.0f} ms"
            + (f", left out: {dict(left_out)}" if left_out else "")
        )
    compared = missing = extra = unreadable = 0
    for path, item in parsed.items():
        language_of_file = code_language(path)
        if language_of_file is None or language_of_file.name != "python" or item.left_out:
            continue
        expected = python_definitions(contents[path])
        if expected is None:
            unreadable += 1
            continue
        actual = scopes_as_definitions(item)
        compared += expected.total()
        if expected != actual:
            missing += (expected - actual).total()
            extra += (actual - expected).total()
            print(f"  {path}: missing {list(expected - actual)[:3]}, extra {list(actual - expected)[:3]}")
    print(f"ast: {compared} definitions, {missing} missing, {extra} extra, {unreadable} files that ast rejects")
    start = time.process_time()
    resolver = Resolver("benchmark", parsed)
    indexed = time.process_time()
    resolution = resolver.resolve()
    resolved = time.process_time()
    busiest = max(parsed.values(), key=lambda item: len(item.scopes) if not item.path.endswith(".txt") else 0)
    again = resolver.update({busiest.path: busiest})
    resolver.resolve(again)
    changed = time.process_time() - resolved
    print_references(resolution)
    print(f"index of names {indexed - start:.2f} s, all references {resolved - indexed:.2f} s,")
    print(f"one file of {len(busiest.scopes)} scopes, saved without a change for others, {changed:.2f} s")
    checked, wrong = check_edges(options.edges, parsed, resolution) if options.edges else (0, 0)
    print(
        f"code_index files={len(parsed)} scopes={sum(len(item.scopes) for item in parsed.values())}"
        f" parse_s={sum(sum(times) for times in seconds.values()):.1f} resolve_s={resolved - start:.1f}"
        f" references={len(resolution.references)} unresolved={len(resolution.unresolved)}"
        f" ast={compared} missing={missing} extra={extra} edges={checked} wrong={wrong}"
    )


if __name__ == "__main__":
    main()
