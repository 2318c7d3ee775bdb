"""What turns mark: precision and recall over twelve labelled talks, and what is no mark at all. Pure."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from ragforge_tui.memory.findings.marked import Marked, mark_of, marked_findings
from tests.support.turns import turn_of

TALKS = tomllib.loads(Path(__file__).with_name("transcripts.toml").read_text("utf-8"))["talk"]


def said(asked: str, answer: str = "") -> list[tuple[str, str]]:
    return [(one.kind, one.text) for one in marked_findings(turn_of("c", 1, asked, answer))]


def _fits(one: Marked, label: str) -> bool:
    kind, _, words = label.partition(": ")
    return one.kind == kind and words.casefold() in one.text.casefold()


def test_precision_and_recall_over_labelled_talks() -> None:
    right = found = labelled = 0
    wrong: list[str] = []
    for talk in TALKS:
        for index, (asked, answer, labels) in enumerate(talk["turns"], 1):
            made = marked_findings(turn_of("c", index, asked, answer))
            invented = [one for one in made if not any(_fits(one, label) for label in labels)]
            missed = [label for label in labels if not any(_fits(one, label) for one in made)]
            found, labelled, right = found + len(made), labelled + len(labels), right + len(made) - len(invented)
            wrong += [f"{talk['name']} t{index}: {one}" for one in (*invented, *missed)]
    assert len(TALKS) == 12
    assert right / found >= 0.9, wrong
    assert right / labelled >= 0.7, wrong


@pytest.mark.parametrize(
    ("asked", "answer", "expected"),
    [
        ("Entscheidung: Wir nehmen Postgres.", "", [("decision", "Wir nehmen Postgres.")]),
        ("fine", "## Open points\n\n- [x] the index\n- the docs of `wrap`", [("open", "the docs of `wrap`")]),
        ("ok", "Still open: `wrap` loses blanks.", [("open", "`wrap` loses blanks.")]),
        ("résume ce qui reste à faire", "Reste à faire : la page d'aide.", []),
        ("Never mind, it works now.", "", []),
        ("If we decided to use Redis, who would run it?", "", []),
        ("He wrote “we decided to drop it”.", "> Decision: drop it", []),
        ("ok", "From now on I never forget. We decided that in t3.", []),
        ("/x", "```python\n# TODO: nothing here\n```", []),
    ],
)
def test_what_marks_and_what_does_not(asked: str, answer: str, expected: list[tuple[str, str]]) -> None:
    assert said(asked, answer) == expected


def test_where_a_wish_holds() -> None:
    [everywhere] = marked_findings(turn_of("c", 1, "From now on answer in French in all projects."))
    [here] = marked_findings(turn_of("c", 1, "From now on use tabs in this session."))
    assert (everywhere.scope, here.scope) == ("user", "conversation")


@pytest.mark.parametrize(
    ("sentence", "kind"),
    [
        ("Decision: in production we log a warning.", "decision"),
        ("Open question for later: who may sign?", "open"),
        ("Désormais, écris les commentaires en anglais.", "preference"),
        ("What is still open?", ""),
        ("We call the branch for releases slug_of, remember that.", "fact"),
        ("On appelle toujours le module slug_of, retiens ça.", "fact"),
        ("Der Testserver lauscht auf Port 8443, merk dir das.", "fact"),
        ("Why does it fail there, do you remember that?", ""),
    ],
)
def test_the_kind_of_a_sentence(sentence: str, kind: str) -> None:
    assert mark_of(sentence, by_user=True) == kind
