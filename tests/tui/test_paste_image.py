"""The clipboard's image as a file that the message names."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from textual import events

from ragforge_tui.shared.errors import RagforgeError
from ragforge_tui.tui.prompt.clipboard import reader
from tests.support.fake_engine import FakeEngine
from tests.tui.conftest import ChatRunner

PNG = b"\x89PNG\r\n\x1a\nrest"


@pytest.fixture
def clipboard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that xclip takes for the clipboard."""
    content, programs = tmp_path / "clipboard", tmp_path / "bin"
    programs.mkdir()
    (programs / "xclip").write_text(f"#!/bin/sh\nexec cat '{content}'\n")
    (programs / "xclip").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setenv("DISPLAY", ":9")
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    monkeypatch.setattr("sys.platform", "linux")
    return content


async def test_the_image_is_saved_and_named_where_the_cursor_is(run_chat: ChatRunner, clipboard: Path) -> None:
    clipboard.write_bytes(PNG)  # noqa: ASYNC240 - a tiny file
    async with run_chat(FakeEngine()) as chat:
        await chat.ready()
        prompt = chat.app.chat.prompt
        prompt.insert("Look at ")
        chat.app.post_message(events.Key("alt+v", "v"))  # as terminals send it, with the letter
        await chat.until(lambda: "@" in prompt.text)
        (saved,) = (chat.app.chat.options.state_dir / "pasted").iterdir()
        assert saved.read_bytes() == PNG and prompt.text == f"Look at @{saved} "
        prompt.clear()
        clipboard.write_bytes(b"words")  # noqa: ASYNC240
        await chat.type("/paste")
        await chat.until(lambda: chat.noticed("The clipboard holds no image."))


def test_the_program_that_is_there_reads_it_or_the_missing_one_is_named() -> None:
    def nothing(_: str) -> None:
        return None

    assert reader({"WAYLAND_DISPLAY": "w", "DISPLAY": ":0"}, "linux", str)[0] == "wl-paste"
    assert reader({}, "darwin", str)[0] == "pngpaste"
    assert reader({}, "darwin", nothing)[0] == "osascript"
    with pytest.raises(RagforgeError, match="xclip") as missing:
        reader({"DISPLAY": ":0"}, "linux", nothing)
    assert missing.value.info.todo == "Install xclip."
    with pytest.raises(RagforgeError, match="no clipboard"):
        reader({}, "linux", str)
