"""A paste is one plain text to Textual's parser, whatever it contains and wherever a read cuts it."""

from __future__ import annotations

import pytest
from textual import events
from textual._xterm_parser import XTermParser
from textual.drivers._input_reader import InputReader
from textual.message import Message

from ragforge_tui.tui.safe_pastes import SafePastes
from ragforge_tui.tui.served_driver import SafePackets
from ragforge_tui.tui.terminal_answers import without_answers

PASTES = {
    "letters": ("é, 日本", "é, 日本"),
    "line ends": ("a\rb\r\nc\n\td", "a\nb\nc\n\td"),
    "colour": ("a\x1b[31mred\x1b[0m", "ared"),
    "unknown sequence": ("hello \x1b[9\r!touch x\r", "hello \n!touch x\n"),
    "escape and carriage return": ("hello\x1b\r\x1b\x1b\r!touch x\r", "hello\n\n!touch x\n"),
    "keys": ("a\x1b[A\x1b[13;5u\x03\x04\x7fb", "ab"),
    "key in C1": ("a\x9b13ub\x9b\r", "ab\n"),
    "start mark": ("a\x1b[200~b\r", "ab\n"),
    "beginning of an end mark": ("a\x1b[201\rb\x1b[20", "a\nb"),
    "end mark around an answer": ("a\x1b[20\x1b]x\x071~\r!touch x\rb", "a1~\n!touch x\nb"),
    "nothing": ("", ""),
}
SIZES = [1, 2, 3, 5, 7, 50]


def read(typed: bytes, size: int) -> list[Message]:
    """Return what the parser makes of input that is read in pieces."""
    pastes, parser = SafePastes(), XTermParser()
    messages: list[Message] = []
    for start in range(0, len(typed), size):
        if safe := without_answers(pastes.feed(typed[start : start + size])):
            messages += parser.feed(safe.decode())
    return [*messages, *parser.feed(pastes.feed(b"").decode())]


def told(messages: list[Message]) -> list[str]:
    return [f"<{one.text}>" if isinstance(one, events.Paste) else getattr(one, "key", str(one)) for one in messages]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(("pasted", "text"), PASTES.values(), ids=PASTES.keys())
def test_a_paste_is_one_plain_text(pasted: str, text: str, size: int) -> None:
    typed = f"x\x1b[200~{pasted}\x1b[201~\x1b[Ay\x1b[200~z\x1b[201~\r".encode()
    assert told(read(typed, size)) == ["x", f"<{text}>", "up", "y", "<z>", "enter"]


@pytest.mark.parametrize("size", SIZES)
def test_bytes_that_are_no_utf_8_are_no_keys(size: int) -> None:
    typed = b"\x1b[200~a\x9b13u\x8d\r\xc3\x1b[201~\r"
    assert told(read(typed, size)) == ["<a\ufffd13u\ufffd\n\ufffd>", "enter"]


def test_a_second_end_mark_is_no_key() -> None:
    assert told(read(b"\x1b[200~a\x1b[201~\x1b[201~b", 50)) == ["<a>", "b"]


BURSTS = {
    "lines": ("one\rtwo\r\nthree", ["<one\ntwo\nthree>"]),
    "lines and an end": ("yes please do\rand then stop\r", ["<yes please do\nand then stop>"]),
    "lines with empty ones": ("a\r\r\tb\r", ["<a\n\n\tb>"]),
    "two answers": ("y\ry\r", ["<y\ny>"]),
    "other letters": ("é, 日本\r日本", ["<é, 日本\n日本>"]),
    "one line": ("yes\r", ["y", "e", "s", "enter"]),
    "a key and Enter": ("y\r", ["y", "enter"]),
    "Enter held down": ("\r\r\r", ["enter"] * 3),
    "keys": ("\x1b[A\x1b[B\r", ["up", "down", "enter"]),
    "commands": ("abc\x03\r", ["a", "b", "c", "ctrl+c", "enter"]),
}


@pytest.mark.parametrize("size", [1, 5, 7, 4096])
@pytest.mark.parametrize(("typed", "expected"), BURSTS.values(), ids=BURSTS.keys())
def test_lines_faster_than_a_person_types_are_one_draft(typed: str, expected: list[str], size: int) -> None:
    raw, pastes, parser = typed.encode(), SafePastes(lambda: 0.0), XTermParser()
    given = [pastes.feed(raw[at : at + size]) for at in range(0, len(raw), size)] + [pastes.feed(b"")]
    messages = told(list(parser.feed(b"".join(given).decode())))
    if any(one.startswith("<") for one in expected):
        assert "enter" not in messages
        named = {"comma": ",", "space": " "}
        assert "".join(named.get(one, one.strip("<>")) for one in messages) == "".join(
            one.strip("<>") for one in expected
        )
    elif size > len(raw):
        assert messages == expected


def test_lines_that_a_person_types_are_keys() -> None:
    hours = iter(range(100))
    pastes = SafePastes(lambda: float(next(hours)))
    typed = b"first line\rsecond line\r"
    assert b"".join(pastes.feed(typed[at : at + 1]) for at in range(len(typed))) == typed


@pytest.mark.parametrize("keys", ["abc", "é", "\x1b", "\x1b[A", "\x1b[20", "\x1b\x1b[3~", "\x1b[2~\x1b[201~"])
def test_keys_pass_at_once(keys: str) -> None:
    pastes = SafePastes()
    assert b"".join(pastes.feed(keys[at : at + 1].encode()) or b"!" for at in range(len(keys))) == keys.encode()


def test_a_start_mark_whose_escape_came_long_before_leaves_only_text() -> None:
    pastes, parser = SafePastes(), XTermParser()
    assert pastes.feed(b"\x1b") == b"\x1b"  # The parser has made it the key Escape meanwhile.
    messages = list(parser.feed(pastes.feed(b"[200~a\rb\x1b[\r\x1b[201~").decode()))
    assert "enter" not in told(messages)


def packet(kind: bytes, payload: bytes) -> bytes:
    return kind + len(payload).to_bytes(4, "big") + payload


@pytest.mark.parametrize("size", SIZES)
def test_a_paste_in_a_browser_is_one_plain_text(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    resized = packet(b"M", b'{"type": "resize", "width": 80, "height": 24}')
    sent = b"".join(
        [
            packet(b"D", b"x\x1b[200~a\x1b["),
            resized,
            packet(b"D", b"\r!touch x"),
            packet(b"D", b"\r\x1b[201~\r"),
        ]
    )
    pieces = [sent[start : start + size] for start in range(0, len(sent), size)]
    # Textual's reader yields an empty piece after each select.
    monkeypatch.setattr(InputReader, "__init__", lambda _: None)
    monkeypatch.setattr(InputReader, "__iter__", lambda _: iter([part for piece in pieces for part in (piece, b"")]))
    given = b"".join(SafePackets())
    assert given == packet(b"D", b"x\x1b[200~") + resized + packet(b"D", b"a\n!touch x\n\x1b[201~\r")
