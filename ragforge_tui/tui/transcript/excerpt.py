"""Some messages with their speakers, drawn as in the chat, for the previews of lists.

Loaded with the first of them, since it renders Markdown.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from rich.style import Style
from textual.geometry import Size
from textual.strip import Strip
from textual.widget import Widget

from ragforge_tui.shared.records import Turn
from ragforge_tui.shared.truncation import cut_middle
from ragforge_tui.tui.drawing.code import COPY
from ragforge_tui.tui.drawing.lines import BLANK, Line, Run, clean, line_of, one_line, wrap
from ragforge_tui.tui.drawing.palette import DEFAULT_GLYPH, Palette, palette_for
from ragforge_tui.tui.transcript.blocks import BOLD
from ragforge_tui.tui.transcript.markdown import render

_MOST_CHARS = 6_000
"""Maximum characters of a message: an imported one may be of any size."""


class Said(msgspec.Struct, frozen=True):
    """A message and its speaker.

    Attributes:
        persona: The persona that answered; empty for a message of the user.
        most: Maximum lines of its text; 0 for all.
    """

    text: str
    persona: str = ""
    glyph: str = ""
    color: str = ""
    most: int = 0

    def lines(self, width: int, palette: Palette) -> list[Line]:
        """Draw the speaker, and the text below; what the user wrote is no Markdown."""
        text = cut_middle(self.text.strip(), _MOST_CHARS)
        if self.persona:
            style = palette.speaker(self.color)
            glyph = "" if palette.plain else f"{one_line(self.glyph) or DEFAULT_GLYPH} "
            head: list[Run] = [(glyph, style), (one_line(self.persona), style + BOLD)]
            body = [_without_copy(line) for line in render(text, width, palette)]
        else:
            head = [("you", palette.you)]
            body = wrap([(clean(text), palette.text)], width)
        if palette.plain:
            head.append((":", Style()))
        if self.most and len(body) > self.most:
            body = [*body[: self.most], line_of([("…", palette.muted)], width)]
        return [line_of(head, width), *body]


def _without_copy(line: Line) -> Line:
    """Return the line without the word that copies code: nothing can be clicked here."""
    segments = list(line.strip)
    if not segments or segments[-1].style is None or not segments[-1].style.meta.get(COPY):
        return line
    return line._replace(strip=Strip(segments[: -2 if segments[-2].text == " · " else -1]))


def said_in(turn: Turn, role: str, *, aside: int = 3) -> list[Said]:
    """Return the messages of a turn, replies of one persona as one; a question is short if its answer is wanted."""
    said: list[Said] = []
    for message in turn.messages:
        if message.state == "superseded" or not message.content.strip():
            continue
        if message.role == "user":
            said.append(Said(message.content, most=0 if role == "user" else aside))
            continue
        reply = Said(message.content, message.persona or "Assistant", message.persona_glyph, message.persona_color)
        if said and said[-1].persona == reply.persona:
            text = f"{said.pop().text.rstrip()}\n\n{reply.text}"
            reply = msgspec.structs.replace(reply, text=text)
        said.append(reply)
    return said


class Excerpt(Widget):
    """Messages below each other, as tall as they are."""

    DEFAULT_CSS = "Excerpt { height: auto; width: 1fr; }"
    ALLOW_SELECT = False

    def __init__(self) -> None:
        super().__init__()
        self._messages: Sequence[Said] = ()
        self._note = ""
        self._lines: list[Line] = []
        self._drawn_for: tuple[int, Palette] | None = None

    def show(self, messages: Sequence[Said], note: str = "") -> None:
        """Replace the messages; without any, the note is shown."""
        self._messages, self._note = messages, note
        self._drawn_for = None
        self.refresh(layout=True)

    @property
    def text(self) -> str:
        """What is drawn, for tests and for readers of the screen."""
        return "\n".join(line.strip.text.rstrip() for line in self._draw(self.size.width))

    def _draw(self, width: int) -> list[Line]:
        key = (width, palette_for(self.app))
        if self._drawn_for is None or self._drawn_for[0] != width or self._drawn_for[1] is not key[1]:
            self._drawn_for = key
            self._lines = []
            for message in self._messages:
                self._lines += [*([BLANK] if self._lines else []), *message.lines(max(1, width), key[1])]
            if not self._messages and self._note:
                self._lines = wrap([(clean(self._note), key[1].muted)], max(1, width))
        return self._lines

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return len(self._draw(width))

    def render_line(self, y: int) -> Strip:
        """Draw one row."""
        lines, width = self._draw(self.size.width), self.size.width
        strip = lines[y].strip if y < len(lines) else Strip.blank(width)
        return strip.crop_extend(0, width, None).apply_style(self.rich_style)
