"""The prompt before Textual, in a terminal of its own: no key is lost or doubled, and the terminal is restored."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ragforge_tui.tui import early_prompt
from ragforge_tui.tui.early_prompt import ALTERNATE_SCREEN, EarlyPrompt, clipped, is_usable, visible_text
from tests.support.pty_chat import LEAVE, TEXTUAL, Start, close

PLACEHOLDER = b"sk, type / for commands"
"""Without its first letter, which is under the cursor."""
AGAIN = b"again quits"


@pytest.fixture(scope="module")
def frames(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """What the first start in a terminal keeps for the next one."""
    home = tmp_path_factory.mktemp("first")
    started = Start(home)
    kept = home / "state" / "first_screens.json"
    started.wait_until(kept.exists)
    close(started)
    return kept.read_bytes()


@pytest.fixture
def later_home(home: Path, frames: bytes) -> Path:
    """The home of a chat that was started in such a terminal before."""
    (home / "state").mkdir(parents=True)
    (home / "state" / "first_screens.json").write_bytes(frames)
    return home


@pytest.fixture(params=["home", "later_home"])
def chat(request: pytest.FixtureRequest) -> Iterator[Start]:
    """A chat that is starting, without and with a frame to draw before Textual."""
    started = Start(request.getfixturevalue(request.param))
    yield started
    close(started)


@pytest.fixture
def later_chat(later_home: Path) -> Iterator[Start]:
    started = Start(later_home)
    yield started
    close(started)


def test_keys_of_the_whole_start_arrive_once_and_in_order(chat: Start) -> None:
    chat.wait_until(lambda: chat.raw)
    words: list[str] = []
    # Until well after Textual has the terminal, so that some keys fall into each moment of the change.
    while (
        chat.written.count(PLACEHOLDER) < 3 and len(words) < 400 and not (TEXTUAL in chat.written and len(words) > 60)
    ):
        words.append(f"é{len(words)}")
        chat.type(f"{words[-1]} ")
        chat.read(0.004)
    for number in range(40):
        words.append(f"ö{number}")
        chat.type(f"{words[-1]} ")
        chat.read(0.01)
    chat.type("end\r")
    chat.wait_until(chat.sent)
    assert chat.sent() == [" ".join([*words, "end"])]


def test_messages_are_sent_while_the_chat_starts(chat: Start) -> None:
    chat.wait_until(lambda: chat.raw)
    chat.type("first mesage\x7f\x7f\x7f\x7fssage\r")
    chat.type("\x1b[200~two\rlines\x1b[201~, pasted\r")
    chat.type("third\x1b[D\x1b[D-\r")
    chat.wait_until(lambda: len(chat.sent()) >= 3)
    assert chat.sent() == ["first message", "two\nlines, pasted", "thi-rd"]


def test_late_answers_of_the_terminal_are_no_keys(chat: Start) -> None:
    chat.wait_until(lambda: chat.raw)
    chat.type("one \x1b]11;rgb:1e1e/1e1e/1e1e\x07\x1b[?62;22c\x1bP>|xte")
    wait(chat, 0.05)
    chat.type("rm(370)\x1b\\two \x1b_sent\r\x1b\\three\r")
    chat.wait_until(chat.sent)
    assert chat.sent() == ["one two three"]


def test_the_prompt_is_drawn_before_textual_and_stays(later_chat: Start) -> None:
    later_chat.wait_for(PLACEHOLDER)
    assert TEXTUAL not in later_chat.written
    later_chat.type("early")
    later_chat.wait_for(b"early")
    early = later_chat.written.index(b"early")
    later_chat.wait_for(TEXTUAL)
    later_chat.wait_until(lambda: later_chat.written.count(b"early") > 1)
    assert PLACEHOLDER not in later_chat.written[early:]
    assert later_chat.written.count(ALTERNATE_SCREEN.encode()) == 1


def test_a_terminal_that_was_resized_gets_no_letters_in_wrong_places(later_chat: Start) -> None:
    later_chat.wait_for(PLACEHOLDER)
    later_chat.resize(20, 60)
    later_chat.type("after")
    later_chat.wait_for(TEXTUAL)
    assert b"after" not in later_chat.written[: later_chat.written.index(TEXTUAL)]
    later_chat.type(" it\r")
    later_chat.wait_until(later_chat.sent)
    assert later_chat.sent() == ["after it"]


@pytest.mark.parametrize("seconds", [0.0, 0.05, 0.15, 0.3])
def test_ctrl_c_ends_the_start_and_restores_the_terminal(chat: Start, seconds: float) -> None:
    chat.wait_until(lambda: chat.raw)
    wait(chat, seconds)
    chat.type("\x03")
    status = chat.ended_before(AGAIN)
    if status is None:
        chat.type("\x03")  # Textual took over before the key.
        assert os.WEXITSTATUS(chat.end()) == 0
    else:
        assert os.WEXITSTATUS(status) == 130
    chat.assert_restored()


@pytest.mark.parametrize("seconds", [0.0, 0.05, 0.15, 0.3, 2.0])
def test_a_terminated_chat_restores_the_terminal(chat: Start, seconds: float) -> None:
    chat.wait_until(lambda: chat.raw)
    chat.type("lost")
    wait(chat, seconds)
    os.kill(chat.pid, signal.SIGTERM)
    assert os.WTERMSIG(chat.end()) == signal.SIGTERM
    chat.assert_restored()


def test_an_error_in_the_settings_is_printed_on_the_screen_of_the_shell(later_home: Path) -> None:
    file = later_home / "config.yaml"
    file.write_text("tui: {theme: [}\n", encoding="utf-8")
    os.utime(file, ns=(0, 0))
    kept = later_home / "state" / "first_screens.json"
    # As if the frame were of these settings: only their content has become wrong.
    kept.write_text(re.sub(r'"", ""\]', '"0", ""]', kept.read_text("utf-8")), encoding="utf-8")
    started = Start(later_home)
    try:
        status = started.end()
        assert os.WEXITSTATUS(status) == 1
        started.assert_restored()
        assert PLACEHOLDER in started.written
        assert b"config.yaml" in started.written[started.written.rindex(LEAVE) :]
    finally:
        close(started)


def test_a_chat_that_is_left_restores_the_terminal(later_chat: Start) -> None:
    later_chat.wait_for(TEXTUAL)
    later_chat.type("\x11")
    assert os.WEXITSTATUS(later_chat.end()) == 0
    later_chat.assert_restored()


@pytest.mark.parametrize("term", ["dumb", "linux"])
def test_without_an_alternate_screen_nothing_is_drawn_early(later_home: Path, term: str) -> None:
    started = Start(later_home, term=term)
    try:
        started.wait_for(TEXTUAL)
        assert PLACEHOLDER not in started.written[: started.written.index(TEXTUAL)]
        started.type("typed\r")
        started.wait_until(started.sent)
        assert started.sent() == ["typed"]
    finally:
        close(started)


@pytest.mark.parametrize(
    ("typed", "text"),
    [
        ("abc\x7f\x7fd", "ad"),
        ("\x7fa", "a"),
        ("sent\rnext", "next"),
        ("\x1b[200~two\r\nlines\x1b[201~!", "two lines!"),
        ("\x1b[200~half of a past", "half of a past"),
        ("a\x1b[A\x1bOP\x1b[1;5C\x1bxb\x1b", "ab"),
        ("\x1b[200~\x1b]0;title\x07\x9b31m\x1b[201~", "31m"),
        ("né\u200b", "né"),
    ],
)
def test_the_text_shown_early_is_the_text_of_the_prompt(typed: str, text: str) -> None:
    assert visible_text(typed.encode()) == text


def test_many_letters_are_not_drawn_again_and_again(frames: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    (frame,) = json.loads(frames)
    monkeypatch.setattr(early_prompt, "_size", lambda: frame["key"][0])
    early = EarlyPrompt(Path("frames"), settings_files=[], look=[], header_key=[])
    early._frame = frame
    drawn: list[str] = []
    monkeypatch.setattr(early, "_write", drawn.append)
    for _ in range(1_000):
        early._typed += b"x" * 1_000
        early._draw()
    assert 0 < len(drawn) < 10


def test_half_a_letter_is_not_shown() -> None:
    assert visible_text("né".encode()[:-1]) == "n"


@pytest.mark.parametrize(
    ("text", "room", "expected"), [("abc", 2, "ab"), ("日本語", 5, "日本"), ("e\u0301a", 1, "e\u0301"), ("é", 5, "é")]
)
def test_a_long_text_is_cut_by_its_cells(text: str, room: int, expected: str) -> None:
    assert clipped(text, room) == expected


@pytest.mark.parametrize(
    "changes",
    [
        {"header": "\x1b]52;c;aGVsbG8=\x07"},
        {"lines": ["fine", "\x1b[6n"]},
        {"lines": ["\x9b6n"]},
        {"text": "\x1b[?1049l"},
        {"cursor": "\r\n"},
        {"row": "1;1H\x1b]0;x\x07\x1b[1"},
        {"room": 10**12},
        {"column": -1},
    ],
)
def test_a_frame_can_only_draw(changes: dict[str, object], tmp_path: Path, frames: bytes) -> None:
    (frame,) = json.loads(frames)
    file = tmp_path / "frames"
    file.write_text(json.dumps([frame, frame]))
    assert early_prompt._load(file) == [frame, frame]
    file.write_text(json.dumps([frame, frame | changes]))
    assert early_prompt._load(file) == [frame]


def test_a_file_of_frames_that_is_none_delays_nothing(home: Path) -> None:
    kept = home / "state" / "first_screens.json"
    kept.parent.mkdir(parents=True)
    os.mkfifo(kept)
    started = Start(home)
    try:
        started.wait_for(TEXTUAL)
    finally:
        close(started)


@pytest.mark.parametrize("content", ["", "[", "{}", "[3]", '[{"key": []}]', "3", "[" * 60_000, " " * 100_000 + "[]"])
def test_damaged_frames_are_ignored(content: str, tmp_path: Path) -> None:
    file = tmp_path / "frames"
    file.write_text(content)
    assert early_prompt._load(file) == []


def test_without_a_terminal_nothing_is_touched(tmp_path: Path) -> None:
    assert not is_usable({"TERM": "xterm"}), "the tests have no terminal"
    with EarlyPrompt(tmp_path / "frames", settings_files=[], look=[], header_key=[]) as early:
        assert early.attributes is None
        assert early.hand_over() == b""


def wait(chat: Start, seconds: float) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        chat.read(0.01)
