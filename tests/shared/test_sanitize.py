"""Foreign text at the two doors: storable and plain."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragforge_tui.shared.sanitize import plain_text, plain_value, revealed, storable, storable_value
from ragforge_tui.shared.truncation import cut_middle

ANY_TEXT = st.text(st.characters(exclude_categories=()))


@given(ANY_TEXT)
def test_storable_text_encodes_and_is_stable(text: str) -> None:
    once = storable(text)
    assert once.encode("utf-8").decode("utf-8") == once
    assert "\x00" not in once
    assert storable(once) == once


@given(st.text(st.characters(codec="utf-8", exclude_characters="\x00")))
def test_storable_leaves_good_text_alone(text: str) -> None:
    assert storable(text) == text


def test_a_surrogate_pair_becomes_its_character() -> None:
    assert storable("\ud83d\ude00 \ud800") == "😀 \ufffd"


def test_values_become_encodable() -> None:
    value = {"a\x00": [2**70, -(2**63), True, {"b": "\udc80"}]}
    clean = storable_value(value)
    assert clean == {"a\u2400": [str(2**70), -(2**63), True, {"b": "\ufffd"}]}
    assert msgspec.json.decode(msgspec.json.encode(clean)) == clean


@given(ANY_TEXT)
def test_plain_text_holds_no_controls(text: str) -> None:
    for character in plain_text(text):
        assert character in "\n\t" or (character >= " " and not "\x7f" <= character <= "\x9f")


@pytest.mark.parametrize(
    ("foreign", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07after", "after"),
        ("\x1b]52;c;aGVsbG8=\x1b\\after", "after"),
        ("\x9b2Jgone", "gone"),
        ("a\x1b]unfinished\nnext", "a\nnext"),
        ("one\r\ntwo\rthree", "one\ntwo\nthree"),
        ("tab\tstays\n", "tab\tstays\n"),
        ("evil\u202etxt.exe", "eviltxt.exe"),
        ("[/x] [bold]list[0][/bold]", "[/x] [bold]list[0][/bold]"),
    ],
)
def test_plain_text_removes_escapes(foreign: str, shown: str) -> None:
    assert plain_text(foreign) == shown


def test_cut_middle_keeps_both_ends() -> None:
    cut = cut_middle("a" * 100 + "z" * 100, 60)
    assert cut.startswith("a" * 40)
    assert cut.endswith("z" * 20)
    assert "140 characters left out" in cut
    assert cut_middle("short", 60) == "short"


def test_plain_values_are_plain_all_through() -> None:
    value = {"a\x1b[31m": ["x\x1b]0;t\x07y", {"b": "\u202e"}, 7, None, True]}
    assert plain_value(value) == {"a": ["xy", {"b": ""}, 7, None, True]}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("rm\u200b -rf", "rm<U+200B> -rf"),
        ("a\u00adb", "a<U+00AD>b"),
        ("tag\U000e0041\U000e007f", "tag<U+E0041><U+E007F>"),
        ("x\u3164y", "x<U+3164>y"),
        ("x\ufe0fy\ufe00", "x<U+FE0F>y<U+FE00>"),
        ("x\U000e0100", "x<U+E0100>"),
        ("a\u200db", "a<U+200D>b"),
        ("\ufeffls", "<U+FEFF>ls"),
        ("\u0441url", "\u0441<U+0441>url"),
        ("g\u0456t push", "g\u0456<U+0456>t push"),
        ("\uff52m -rf", "\uff52<U+FF52>m -rf"),
        ("pyth\u03bfn", "pyth\u03bf<U+03BF>n"),
    ],
)
def test_invisible_characters_are_revealed(text: str, shown: str) -> None:
    assert revealed(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "plain words",
        "caf\u00e9 na\u00efve",
        "\u043f\u0440\u0438\u0432\u0435\u0442 world",
        "test_\u043f\u0440\u0438\u0432\u0435\u0442",
        "\u2764\ufe0f and \U0001f469\u200d\U0001f4bb",
        "\u06a9\u062a\u0627\u0628\u200c\u0647\u0627",
        "Python\u8a9e",
        "\u0394t in \u03bcs",
        "10\u202f% \u2026",
    ],
)
def test_ordinary_text_of_any_script_stays_as_it_is(text: str) -> None:
    assert revealed(text) == text
