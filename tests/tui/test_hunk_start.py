"""Colors of hunks that begin in the middle of a string or a comment, or only look as if they did."""

from __future__ import annotations

import pytest

from ragforge_tui.tui.drawing.code import hunk_runs
from ragforge_tui.tui.drawing.palette import palette_of

PALETTE = palette_of({}, dark=True, ansi=False)

HUNKS = [
    ("python", '        timeout: Seconds.\n    """\n    count = 0\n    for line in lines:\n', "qqcc"),
    ("python", "    Returns the sum of both.\n    '''\n    return a + b\n", "qqc"),
    ("python", '    """Return the sum of both."""\n    return a + b\n', "qc"),
    ("python", '    """\n    Return the sum of both values.\n    """\n    return a + b\n', "qqqc"),
    ("python", '    return total\n\n\ndef names(self):\n    """Return the names of all that is\n', "c--cq"),
    ("python", "import os\nimport sys\n\nVERSION = 3\n", "cc-c"),
    ("python", "    # It divides by the number of columns.\n    return 1 / columns\n", "qc"),
    ("python", '"""\n\nfrom __future__ import annotations\n\nimport re\n', "q-c-c"),
    ("python", '    text = "it\'s " + name\n    return text\n', "cc"),
    (
        "java",
        "     * Returns the sum of both values.\n     */\n    public int sum() {\n        return a + b;\n",
        "qqcc",
    ),
    ("java", "    public int sum() {\n        return a * b;\n    }\n", "ccc"),
    ("javascript", " * Licensed under the License of all.\n */\nconst names = [];\n", "qqc"),
    ("typescript", "   * The names of all the callers.\n   */\n  readonly names: string[];\n", "qqc"),
    ("typescript", "export function sum(a: number): number {\n  return a + 1;\n}\n", "ccc"),
    ("rust", "    let total = a + b;\n    total\n", "cc"),
    ("rust", " * The parser of all lines.\n */\nfn parse(line: &str) -> u32 {\n", "qqc"),
    ("c", " * Counts the lines of one file.\n */\nint count(char *line)\n{\n", "qqcc"),
    ("c", "int *a = b;\n*a = 3;\n", "cc"),
    ("go", "// Sum adds both values.\nfunc Sum(a, b int) int {\n", "qc"),
    ("css", "   The colors of all dialogs.\n*/\n.dialog { color: red; }\n", "qqc"),
]


@pytest.mark.parametrize(("language", "text", "expected"), HUNKS)
def test_each_line_is_painted_as_what_it_is(language: str, text: str, expected: str) -> None:
    """Painted as a comment or a string throughout (q), or as code (c); blank lines do not count (-)."""
    lines = text.removesuffix("\n").split("\n")
    painted, _ = hunk_runs(lines, language, PALETTE)
    assert ["".join(part for part, _ in line) for line in painted] == lines
    quoted = (PALETTE.comment, PALETTE.string)
    kinds = [
        "-" if not line.strip() else "q" if all(style in quoted for part, style in runs if part.strip()) else "c"
        for line, runs in zip(lines, painted, strict=True)
    ]
    assert "".join(kinds) == expected


def test_what_follows_goes_on_in_the_same_state() -> None:
    _, code = hunk_runs(["    Returns the sum", "    of both"], "python", PALETTE)
    assert all(style in (PALETTE.comment, PALETTE.string) for part, style in code.add("    a word\n") if part.strip())
