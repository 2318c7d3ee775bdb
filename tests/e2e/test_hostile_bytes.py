"""What a terminal is really sent when everything an engine says means harm: a tour of the screens, byte by byte."""

from __future__ import annotations

import asyncio
import os
import re
from pathlib import Path

from tests.support.terminal import Terminal

ROOT = Path(__file__).resolve().parents[2]
TOUR = (
    "\x1bOR",
    "\x1bOS",
    "\x1b[15~",
    "\r",
    "\x1b",
    "\x1b",
    "\x0f",
    "\x1b",
    "\x14retr",
    "\x1b",
    "\x1bOQ",
    "\x1b",
    "/context 7\r",
)
"""F3, F4, F5, what is chosen there, sessions, search, personas, and what was sent."""
SEQUENCE = re.compile(
    rb"\x1b(?:\[(?P<csi>[0-?]*[ -/]*[@-~])|\](?P<osc>[^\x07\x1b]*)(?:\x07|\x1b\\\\)|(?P<other>[PX^_]|[ -/]*[0-~]))"
)
CSI = re.compile(
    rb"[\d;]*m|\d+;\d+H|\d*[HCLM]|K|(\d+;\d+)?r|\?[\d;]+[hl]|\?[\d;]+\$p|[<=>][\d;]*u|\?u|[\d;]*t|6n|c|>c|>q|\d? ?q"
)
"""Colours, places, lines and modes, as the framework and the comparison with what is shown set them."""
HARM = re.compile("[\x00-\x06\x08\x0b\x0c\x0e-\x1a\x1c-\x1f\x7f-\x9f\u200b\u202a-\u202e\u2060-\u2069]")


async def test_no_byte_of_it_does_anything(tmp_path: Path) -> None:
    env = {**os.environ, "PYTHONPATH": str(ROOT), "SCENE_STATE": str(tmp_path)}
    terminal = Terminal([], cwd=ROOT, env=env, module="tests.support.hostile")
    try:
        await terminal.wait_for("Question 12")
        for keys in TOUR:
            terminal.type(keys)
            await asyncio.sleep(0.5)
        await terminal.wait_for("recalled turn")
    finally:
        terminal.close()
    written = bytes(terminal.written)
    for found in SEQUENCE.finditer(written):
        assert found["other"] is None or found["other"] in (b"7", b"8", b"=", b">", b"(B"), found[0]
        assert found["osc"] is None or found["osc"].split(b";")[0] in (b"2", b"8", b"22"), found[0]
        assert not HARM.search((found["osc"] or b"").decode()), found[0]
        assert found["csi"] is None or CSI.fullmatch(found["csi"]), found[0]
    text = SEQUENCE.sub(b"", written).decode()
    assert "[red]x[/]" in text
    assert not HARM.search(text), HARM.search(text)
    assert b"owned" not in written and b"b3duZWQ" not in written and b"evil" not in written
