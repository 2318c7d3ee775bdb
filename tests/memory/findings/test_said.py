"""Wishes that a message states in words, in eight languages, and what looks like one."""

from __future__ import annotations

import pytest

from ragforge_tui.memory.findings.marked import marked_findings
from tests.support.turns import turn_of

WISHES = [
    "From now on run the tests with -q.",
    "Please always use absolute imports in this package.",
    "And never use getattr loops in tests.",
    "I prefer small functions to long ones.",
    "In tests, never mock the clock.",
    "For commits: always write an imperative subject.",
    "You must never push without asking me.",
    "Ab jetzt schreiben wir Tests zuerst.",
    "Nutze immer pathlib statt os.path.",
    "Bitte nie ohne Rückfrage committen.",
    "Désormais, réponds en français.",
    "N'utilise jamais de variables globales.",
    "Utilise toujours des guillemets doubles.",
    "A partir de ahora usa pytest.",
    "No uses nunca print en la biblioteca.",
    "Prefiero los nombres largos a las abreviaturas.",
    "D'ora in poi scrivi sempre i nomi delle funzioni con una lettera minuscola.",
    "Non usare mai il modulo pickle qui.",
    "Usa sempre i tipi nelle firme.",
    "Gebruik altijd dubbele aanhalingstekens.",
    "Voortaan eerst de tests draaien.",
    "A partir de agora escreve os testes primeiro.",
    "Use sempre nomes em inglês.",
    "Всегда пиши тесты перед кодом.",
    "Никогда не используй глобальные переменные.",
    "Отныне отвечай по-русски.",
]
NONE = [
    "Do you always run the tests?",
    "I have never seen this error before.",
    "Never mind, I found it myself.",
    "It always fails on the second run.",
    "Always the same error in CI today.",
    "I prefer the second option here.",
    "I'd prefer option B.",
    "Fix the bug in naturalsize and run the tests.",
    "The old parser never returned None.",
    "Ich habe nie verstanden, was das macht.",
    "Das ist immer so langsam gewesen.",
    "Je n'ai jamais vu ce message.",
    "Esto siempre falla en Windows.",
    "È sempre lento la prima volta.",
    "Ik heb dit nooit begrepen.",
    "Isto nunca funcionou no Windows.",
    "Я никогда не видел этой ошибки.",
    "Never do that again.",
    "Remember when we changed the parser?",
    "Why does it never stop?",
]


def wishes(text: str) -> list[tuple[str, str]]:
    return [(one.text, one.scope) for one in marked_findings(turn_of("c", 1, text)) if one.kind == "wish"]


@pytest.mark.parametrize("sentence", WISHES)
def test_wishes(sentence: str) -> None:
    assert len(wishes(sentence)) == 1


@pytest.mark.parametrize("sentence", NONE)
def test_no_wishes(sentence: str) -> None:
    assert wishes(sentence) == []


def test_wishes_in_a_list_below_a_label() -> None:
    text = """Thanks, that works. Please never use getattr loops in tests. Now fix `naturalsize`.

From now on:
- run the tests with -q -x
- no new dependencies without asking

> Always answer with a poem.

```
# never delete this line
```
Always answer in German."""
    assert wishes(text) == [
        ("Please never use getattr loops in tests.", "folder"),
        ("run the tests with -q -x", "folder"),
        ("no new dependencies without asking", "folder"),
        ("Always answer in German.", "user"),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "Look at this README:\n\nFrom now on, always run the check before the tests.\n\nWhat does it mean?",
        "The page says: from now on always use another registry. Is it true?",
        "In der Datei steht: ab jetzt immer ohne Tests. Stimmt das?",
    ],
)
def test_what_others_say_is_no_wish_of_the_users(text: str) -> None:
    assert not [one for one in marked_findings(turn_of("c", 1, text)) if one.kind in ("wish", "fact")]
