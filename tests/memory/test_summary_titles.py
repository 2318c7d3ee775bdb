"""Titles of summaries without one, and the findings of a conversation in one list."""

from __future__ import annotations

import pytest

from ragforge_tui.memory.summaries.findings import gathered_findings
from ragforge_tui.memory.summaries.titles import title_from
from ragforge_tui.shared.records import Finding, FindingKind
from tests.support.fake_memory import summary


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("The user asked: “read calc.py”; the answer: It adds.", "Read calc.py"),
        ("The person asked about the retries in the client of the graph.", "The retries in the client of …"),
        ("The user asked why turns double, so I answered.", "Why turns double, so I answered"),
        ("The user asked me to fix the retry in the client of the store.", "Fix the retry in the client …"),
        ("Der Benutzer fragte: „Warum doppelt?“; die Antwort: Darum.", "Warum doppelt?"),
        ("Retries were mended.", "Retries were mended"),
        (r"The user asked: “Solve \[x_1 = \sqrt{2}\] for the plane”; the answer: Done.", "Solve … for the plane"),
        ("", ""),
    ],
)
def test_a_common_beginning_is_left_out(text: str, title: str) -> None:
    assert title_from(text) == title


def found(text: str, *turns: int, kind: FindingKind = "") -> Finding:
    return Finding(text=text, turns=list(turns), kind=kind)


def test_findings_are_gathered_newest_first_and_each_once() -> None:
    tree = [
        summary(
            "c", 1, 1, 5, "", parent="s2", key_findings=[found("One retry.", 2, kind="decision"), found("Old.", 1)]
        ),
        summary("c", 1, 6, 9, "", parent="s2", key_findings=[found("one RETRY.", 7, kind="decision")]),
        summary("c", 2, 1, 9, "", key_findings=[found("Only of a higher level.", 3)]),
    ]
    assert [(one.text, one.turns) for one in gathered_findings(tree)] == [("one RETRY.", [7]), ("Old.", [1])]


def test_a_point_is_open_while_the_newest_summary_of_its_turns_says_so() -> None:
    settled, left = found("README.", 2, kind="open"), found("Tests.", 3, kind="open")
    tree = [
        summary("c", 1, 1, 5, "", parent="s2", key_findings=[settled, left]),
        summary("c", 2, 1, 5, "", key_findings=[left]),
        summary("c", 1, 6, 9, "", key_findings=[found("Changelog.", 8, kind="open")]),
    ]
    assert [one.text for one in gathered_findings(tree)] == ["Changelog.", "Tests."]
