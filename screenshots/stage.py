"""Stage of the film: a terminal window with the program in it, keys that are pressed, frames that are kept."""

from __future__ import annotations

import asyncio
import os
import re
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from screenshots.film import Frame, Piece
from screenshots.terminal import BACKGROUND, COLUMNS, QUIET_SECONDS, ROWS, Terminal

SAMPLE_SECONDS = 0.06
SHORTEST, LONGEST = 0.05, 0.4
"""Limits of the seconds that a frame stays, before its scene gets its length: waiting for the model is cut."""
TYPED_AT_ONCE, TYPING_SECONDS = 2, 0.06
CAPTION_GROUND, CAPTION_NUMBER, CAPTION_COLOR = "#21262d", "#56d4bc", "#e6edf3"
CLOSED: Frame = (
    *[()] * (ROWS // 2),
    (Piece(COLUMNS // 2 - 12, "the terminal was closed", "#9198a1", BACKGROUND, "i"),),
)
"""A stage direction: there is no window."""
MODEL = "openai/qwen3-coder-30b"
SETTINGS = f"""\
model: {{name: {MODEL}, context_window: 65536}}
user: {{name: Ada}}
tui: {{theme: ragforge-dark, reduced_motion: true}}
engine: {{keep_warm_minutes: 0.2}}
graph: {{linger_seconds: 2}}
agent:
  memory:
    embeddings: {{enabled: false}}
    summarization: {{every_turns: 2, keep_recent_turns: 0, level_chars: 300}}
"""
"""Summaries are due early. Recall searches by words alone: a film does not wait for vectors."""
PATIENT = """\
import sys

if any("ragforge_tui.engine" in argument for argument in sys.orig_argv):
    from ragforge_tui.conversation.limits import CONVERSATION
    from ragforge_tui.shared.limits import LIMITS

    LIMITS.load = LIMITS.past = LIMITS.recall = LIMITS.code_vectors = 30.0
    CONVERSATION.idle = 0.1
    CONVERSATION.first_patience = 0.0
"""
"""Run by each Python that starts. A request waits 0.3 s for its memory, which is too short on a busy machine; a film
does not wait until the user rests."""
EXTRACTED = "; it began with “"
"""Part of the extracted text on a conversation, which the model replaces a moment later."""
UP, DOWN, ENTER, ESCAPE, HOME, F3, CTRL_Q = "\x1b[A", "\x1b[B", "\r", "\x1b", "\x1b[H", "\x1bOR", "\x11"
_MOST_LINES = 30
PROMPT = r"\[\e[36m\]\w\[\e[0m\] $ "


def environment(home: Path, base_url: str) -> dict[str, str]:
    """Return the environment of a user whose home is this folder, and write the settings."""
    own = home / ".ragforge"
    own.mkdir(parents=True, exist_ok=True)
    (own / "config.yaml").write_text(SETTINGS, encoding="utf-8")
    (own / "python").mkdir()
    (own / "python" / "sitecustomize.py").write_text(PATIENT, encoding="utf-8")
    return {
        "HOME": str(home),
        "LANG": "C.UTF-8",
        # The commands of this environment, not of another one that is installed.
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(own / "python"),
        "PS1": PROMPT,
        "TERM": "xterm-256color",
        "COLORTERM": "truecolor",
        "RAGFORGE_HOME": str(own),
        "RAGFORGE_API_BASE": base_url,
        "OPENAI_API_KEY": "none",
        "PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
    }


@dataclass
class Scene:
    """A captioned part of a film.

    Attributes:
        seconds: Its length.
        frames: Each with the time it was drawn at.
        held: Seconds that a frame stays, by its number.
    """

    caption: str
    seconds: float
    frames: list[tuple[float, Frame]] = field(default_factory=list)
    held: dict[int, float] = field(default_factory=dict)

    @property
    def lengths(self) -> list[float]:
        """Return the seconds of each frame; their sum is the length of the scene."""
        times = [at for at, _ in self.frames]
        free = [
            0.0 if n in self.held else min(max(after - at, SHORTEST), LONGEST)
            for n, (at, after) in enumerate(zip(times, [*times[1:], times[-1]], strict=True))
        ]
        factor = (self.seconds - sum(self.held.values())) / (sum(free) or 1.0)
        if factor <= 0:
            raise ValueError(f"what is held of “{self.caption}” is longer than the scene")
        return [self.held.get(n, length * factor) for n, length in enumerate(free)]


class Stage:
    """A window and its film.

    Args:
        filming: Whether to film what is shown and to type slowly; pictures are taken anyway.
        patience: Seconds to wait for anything.

    Attributes:
        pictures: Frames by name.
        marks: Times in the film at which a picture was taken, by its name.
    """

    def __init__(self, folder: Path, env: dict[str, str], *, filming: bool, patience: float) -> None:
        self._folder, self._env = folder, env
        self._filming, self._patience = filming, patience
        self._window: Terminal | None = None
        self._rolling = False
        self.scenes: list[Scene] = []
        self.pictures: dict[str, Frame] = {}
        self._marks: list[tuple[str, int, int]] = []

    @property
    def window(self) -> Terminal:
        assert self._window is not None
        return self._window

    def open(self) -> None:
        """Open a new window with a shell."""
        self._window = Terminal(self._folder, self._env, patience=self._patience)

    async def close(self) -> None:
        """Close the window, if there is one, as with its button."""
        window, self._window = self._window, None
        if window is not None:
            window.close()
            await window.ended()

    def scene(self, caption: str, seconds: float) -> None:
        """Begin a scene."""
        self.scenes.append(Scene(caption, seconds))
        self._rolling = True

    def cut(self) -> None:
        """Film nothing until the next scene, or until `roll`."""
        self._rolling = False

    def roll(self) -> None:
        """Film again."""
        self._rolling = True

    async def film(self) -> None:
        """Sample the window until cancelled."""
        while True:
            if self._rolling and self._window is not None and self._window.quiet >= QUIET_SECONDS / 2:
                self.sample()
            await asyncio.sleep(SAMPLE_SECONDS)

    def sample(self) -> None:
        """Add the screen to the scene if it has changed."""
        if self._window is not None and EXTRACTED in self._window.text.replace("\n", " "):
            return
        frames = self.scenes[-1].frames
        frame = self._captioned(self._window.frame() if self._window else CLOSED)
        if not frames or frames[-1][1] != frame:
            frames.append((time.monotonic(), frame))

    def hold(self, seconds: float) -> None:
        """Keep the newest frame for some seconds, so that it can be read."""
        self.sample()
        self.scenes[-1].held[len(self.scenes[-1].frames) - 1] = seconds

    def _captioned(self, frame: Frame) -> Frame:
        number = f" {len(self.scenes)}  "
        caption = self.scenes[-1].caption.ljust(COLUMNS - len(number))
        head = (
            Piece(0, number, CAPTION_NUMBER, CAPTION_GROUND, "b"),
            Piece(len(number), caption, CAPTION_COLOR, CAPTION_GROUND, "b"),
        )
        return (head, (), *frame)

    def take(self, name: str, *, hold: float = 0.0) -> None:
        """Take a picture, and show it for some seconds in the film."""
        self.pictures[name] = self.window.frame()
        if hold:
            self.hold(hold)
            self._marks.append((name, len(self.scenes) - 1, len(self.scenes[-1].frames) - 1))

    @property
    def marks(self) -> dict[str, float]:
        lengths = [scene.lengths for scene in self.scenes]
        return {
            name: sum(map(sum, lengths[:scene])) + sum(lengths[scene][:frame]) + lengths[scene][frame] / 2
            for name, scene, frame in self._marks
        }

    async def type(self, text: str) -> None:
        """Type a line and press Enter."""
        step = TYPED_AT_ONCE if self._filming and self._rolling else len(text)
        for start in range(0, len(text), step):
            self.window.press(text[start : start + step])
            await asyncio.sleep(TYPING_SECONDS)
        await self.shows(text.split()[-1])
        self.window.press(ENTER)

    async def press(self, *keys: str) -> None:
        """Press keys, one after the other."""
        for key in keys:
            self.window.press(key)
            await asyncio.sleep(0.3 if self._filming else 0.1)

    async def shows(self, *texts: str, without: str = "") -> None:
        """Wait until the screen shows texts, all of them, and not another one."""
        await self.window.wait_until(
            lambda shown: all(text in shown for text in texts) and not (without and without in shown), " + ".join(texts)
        )

    async def shell(self) -> None:
        """Wait until the shell waits for a command."""
        await self.window.wait_until(lambda shown: shown.rstrip().endswith("$"), "the prompt of the shell")

    async def choose(self, text: str) -> None:
        """Move down a list to the line with a text, and press Enter.

        Raises:
            LookupError: It is not among the first lines.
        """
        chosen = re.compile(rf"(?:│ ?|^)▸ .*{re.escape(text)}", re.M)
        for _ in range(_MOST_LINES):
            if chosen.search(self.window.text):
                await self.press(ENTER)
                return
            before = self.window.text
            self.window.press(DOWN)
            await self.window.wait_until(before.__ne__, "the next line")
        raise LookupError(text)
