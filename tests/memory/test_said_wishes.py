"""Wishes that a message states in words, in eight languages, and what looks like one."""

from __future__ import annotations

import pytest

from ragforge_tui.memory.said_wishes import alike, corrected, said_wishes

WISHES = [
    "From now on run the tests with -q.",
    "Please always use absolute imports in this package.",
    "And never use getattr loops in tests.",
    "I prefer small functions to long ones.",
    "In tests, never mock the clock.",
    "For commits: always write an imperative subject.",
    "You must never push without asking me.",
    "Remember that the deploy key lives in the vault.",
    "Ab jetzt schreiben wir Tests zuerst.",
    "Nutze immer pathlib statt os.path.",
    "Bitte nie ohne Rückfrage committen.",
    "Désormais, réponds en français.",
    "N'utilise jamais de variables globales.",
    "Utilise toujours des guillemets doubles.",
    "A partir de ahora usa pytest.",
    "No uses nunca print en la biblioteca.",
    "Prefiero los nombres largos a las abreviaturas.",
    "D'ora in poi scrivi i commenti in inglese.",
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


@pytest.mark.parametrize("sentence", WISHES)
def test_wishes(sentence: str) -> None:
    assert len(said_wishes(sentence)) == 1


@pytest.mark.parametrize("sentence", NONE)
def test_no_wishes(sentence: str) -> None:
    assert said_wishes(sentence) == []


def test_wishes_among_other_words() -> None:
    text = """Thanks, that works. Please never use getattr loops in tests. Now fix `naturalsize`.

From now on:
- run the tests with -q -x
- no new dependencies without asking

> Always answer with a poem.

```
# never delete this line
```
Always answer in German."""
    assert [(wish.text, wish.scope) for wish in said_wishes(text)] == [
        ("run the tests with -q -x".capitalize(), "folder"),
        ("No new dependencies without asking", "folder"),
        ("Never use getattr loops in tests.", "folder"),
        ("Always answer in German.", "user"),
    ]


def test_what_is_to_be_remembered_is_in_the_sentence_before() -> None:
    text = "Wer bekommt die Schlüssel? Nur Dauerlieger, Gäste nie. Merk dir das."
    assert [wish.text for wish in said_wishes(text)] == ["Nur Dauerlieger, Gäste nie."]


def test_of_a_long_paste_only_the_ends_are_read() -> None:
    pasted = "\n".join(f"Chapter {n}: the harbour has cranes." for n in range(200))
    assert said_wishes(f"{pasted}\nNever sail at night.\n{pasted}") == []
    assert len(said_wishes(f"Never touch the setup file. Here is a text:\n{pasted}")) == 1


def test_a_wish_corrects_one_about_the_same_subject_if_it_says_so() -> None:
    earlier = ["Always indent with tabs in Makefiles.", "Never use getattr loops in tests.", "Run the tests with -q."]
    assert corrected("From now on run the tests with -x instead.", earlier, str) == "Run the tests with -q."
    assert corrected("Never use setattr loops in tests.", earlier, str) is None
    assert corrected("From now on run the tests before you are done.", earlier[:2], str) is None
    assert corrected("From now on write docstrings in Google style.", earlier, str) is None


def test_the_same_wish_in_other_words() -> None:
    assert alike("Never use getattr loops in tests.", "Please, never use getattr loops in the tests")
    assert not alike("Never use getattr loops in tests.", "Never mock the clock in tests.")
