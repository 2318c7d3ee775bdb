"""The blocks of a transcript: messages, replies, notices, and how each is drawn.

No widgets, and no Markdown until there is a text to draw, so that an empty chat starts fast. A block returns lines
for a width and a palette, caches the last ones, and knows what copying and folding mean for it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import msgspec
from rich.cells import cell_len
from rich.style import Style

from ragforge_tui.shared.formatting import counted
from ragforge_tui.shared.records import RecalledPlace
from ragforge_tui.shared.truncation import cut_middle
from ragforge_tui.tui.drawing.lines import (
    BLANK,
    LONG,
    Line,
    LongText,
    Run,
    WrappedLines,
    clean,
    clip,
    line_of,
    on_band,
    one_line,
    stack,
    wrap,
)
from ragforge_tui.tui.drawing.palette import Palette
from ragforge_tui.tui.transcript.links import linked_runs

if TYPE_CHECKING:
    from ragforge_tui.tui.transcript.stream import StreamedText

Kind = Literal["user", "head", "text", "tool", "notice", "state", "retry", "switch", "commit", "tests", "recall", "gap"]
Action = Literal["fold", "copy"]
Level = Literal["info", "warning", "error"]
NoteKind = Literal["notice", "state", "retry", "switch", "commit", "tests"]

GO_BACK_META = "goes_back"
"""Key in the meta of a style; its value is the turn that a click goes back to."""
BOLD = Style(bold=True)
MEASURE = 110
"""Maximum cells of a line of text; wider lines are hard to read."""
FOLDED_WORDS = 40
"""Words from which reasoning is folded; less is shown."""
_FOLDED_USER_CHARS = 6_000
MOST_NOTE_CHARS = 8_000
"""An error message of a provider or a command may be a page of any size; copying gives all of it."""
_FOLDED_USER_LINES = 60
_MAX_MARKDOWN = 300_000


class Block(ABC):
    """One block of the transcript.

    Attributes:
        gap: Blank lines before it.
        serial: Its place among all blocks, ascending; assigned by the document.
        folded: Whether its body is hidden; None if it has none.
    """

    kind: Kind
    measure = MEASURE
    """Most cells of its lines."""
    _fold_on_top = True

    def __init__(self, turn_index: int, message_id: str = "", *, gap: int = 1) -> None:
        self.turn_index = turn_index
        self.message_id = message_id
        self.gap = gap
        self.serial = 0
        self.folded: bool | None = None
        self.version = 0
        self._key: tuple[int, int, Palette] | None = None
        self._lines: Sequence[Line] = []

    @property
    def record_id(self) -> str:
        """Id of its record; a block of the same kind and id is a newer version of this one."""
        return self.message_id

    @property
    def source(self) -> str:
        """The text as it was written, which copying the block gives."""
        return ""

    @property
    def actions(self) -> tuple[Action, ...]:
        """Actions that the user can take on the block."""
        return ("copy",) if self.folded is None else ("fold", "copy")

    @property
    def height(self) -> int:
        """Lines of the last drawing, 0 if it was never drawn."""
        return len(self._lines)

    def drawn_for(self, width: int, palette: Palette) -> bool:
        return self._key is not None and self._key[:2] == (self.version, width) and self._key[2] is palette

    def folds_at(self, line: int, height: int) -> bool:
        """Return whether a click on a line folds or unfolds the block."""
        return self.folded is not None and line == (self.gap if self._fold_on_top else height - 1)

    def touch(self) -> None:
        self.version += 1

    def toggle(self) -> None:
        if self.folded is not None:
            self.folded = not self.folded
            self.touch()

    def lines(self, width: int, palette: Palette) -> Sequence[Line]:
        """Return the lines for a width, with the blank ones before the block."""
        if not self.drawn_for(width, palette):
            self._lines = stack([BLANK] * self.gap, self.draw(max(1, min(width, self.measure)), palette))
            self._key = (self.version, width, palette)
        return self._lines

    def arrow(self, palette: Palette) -> Run:
        """Return the sign for folding or unfolding."""
        if palette.plain:
            return (" (folded)" if self.folded else " (unfolded)"), palette.muted
        return (" ▸" if self.folded else " ▾"), palette.arrow

    @abstractmethod
    def draw(self, width: int, palette: Palette) -> Sequence[Line]:
        """Render the block."""

    def estimate(self, width: int) -> int:
        """Return a cheap estimate of the number of lines."""
        return self.gap + 1


def _estimated_lines(text: str, width: int) -> int:
    """Estimate the lines of a text from its length and, if it is short, its line breaks."""
    width = max(1, min(width, MEASURE))
    ends = text.count("\n") if len(text) < 100_000 else len(text) // 60
    return 1 + max(ends, len(text) // width + ends // 2)


class UserBlock(Block):
    """A message of the user, as it was typed; a long paste is folded.

    Attributes:
        offer: What a click at the right end of its first line does; empty for nothing.
    """

    kind = "user"
    _fold_on_top = False

    def __init__(self, turn_index: int, message_id: str, text: str, *, name: str, when: str) -> None:
        super().__init__(turn_index, message_id)
        self.text = text
        self.name = name
        self.when = when
        self.offer = ""
        if len(text) > _FOLDED_USER_CHARS or text.count("\n", 0, _FOLDED_USER_CHARS) > _FOLDED_USER_LINES:
            self.folded = True

    @property
    def source(self) -> str:
        return self.text

    def _shown(self) -> str:
        if not self.folded:
            return self.text
        return "\n".join(self.text[:_FOLDED_USER_CHARS].split("\n")[: _FOLDED_USER_LINES // 4])[:1_500]

    def make_offer(self, text: str) -> None:
        if text != self.offer:
            self.offer = text
            self.touch()

    def _offered(self, name: str, label: str, width: int, palette: Palette) -> list[Run]:
        """Return the offer at the right end of the line, if there is room."""
        gap = width - cell_len(name) - 2 - cell_len(label) - cell_len(self.offer)
        if not self.offer or gap < 2:
            return []
        return [(" " * gap, palette.muted), (self.offer, palette.accent + Style(meta={GO_BACK_META: self.turn_index}))]

    def draw(self, width: int, palette: Palette) -> Sequence[Line]:
        label = f"{self.turn_index} · {self.when}" if self.turn_index else self.when
        name = f"{one_line(self.name)}{':' if palette.plain else ''}"
        runs = [(name, palette.you), (f"  {label}", palette.muted), *self._offered(name, label, width, palette)]
        head = [line_of(runs, width, filler=sum(len(part) for part, _ in runs[2:]))]
        text = clean(self._shown())
        if len(text) > LONG:
            body: Sequence[Line] = LongText(text, width, palette.text)
        else:
            body = wrap(linked_runs(text, palette.text, palette.link), width)
        more: list[Line] = []
        if self.folded is not None:
            hidden = len(self.text) - len(self._shown())
            what = f"{counted(hidden)} more characters" if self.folded else "fold"
            more = [line_of([(what, palette.muted), self.arrow(palette)], width)]
        return on_band(stack(head, body, more), palette.band)

    def estimate(self, width: int) -> int:
        return self.gap + 1 + (self.folded is not None) + _estimated_lines(self._shown(), width)


class HeadBlock(Block):
    """Head of a reply: the persona and its reasoning, folded."""

    kind = "head"

    def __init__(
        self, turn_index: int, message_id: str, *, name: str, glyph: str, color: str = "", unfolded: bool = False
    ) -> None:
        super().__init__(turn_index, message_id)
        self.name = name
        self.glyph = glyph
        self.color = color
        self.thinking = False
        self._unfolded = unfolded
        self._pieces: list[str] = []
        self._wrapped = WrappedLines()

    @property
    def source(self) -> str:
        if len(self._pieces) > 1:
            self._pieces = ["".join(self._pieces)]
        return self._pieces[0] if self._pieces else ""

    def think(self, text: str) -> None:
        if text:
            self._pieces.append(text)
            if self.folded is None:
                self.folded = not self._unfolded
            self.touch()

    def thought(self, text: str) -> None:
        """Set the complete reasoning."""
        self._pieces = []
        self.think(text)
        self.pause()

    def pause(self) -> None:
        """Note that the model reasons no more, for now; little reasoning needs no fold."""
        self.thinking = False
        if len(self.source.split()) < FOLDED_WORDS:
            self.folded = None
        self.touch()

    def _fold_label(self) -> str:
        if self.folded is None:
            return ""
        return "thinking …" if self.thinking else f"thought, {len(self.source.split())} words"

    def draw(self, width: int, palette: Palette) -> Sequence[Line]:
        runs: list[Run] = []
        if self.name:
            glyph = one_line(self.glyph)
            style = palette.speaker(self.color)
            runs += [(f"{glyph} ", style)] if glyph and not palette.plain else []
            runs.append((f"{one_line(self.name)}{':' if palette.plain else ''}", style + BOLD))
        label = self._fold_label()
        if label:
            runs += [(f"  {label}" if runs else label, palette.muted), self.arrow(palette)]
        head = [line_of(runs, width)] if runs else []
        if self.folded or not self.source.strip():
            return head
        text, bar = clean(self.source.strip("\n")), ("▎ ", palette.faint)
        if len(text) > LONG and not self.thinking:
            body: Sequence[Line] = LongText(text, width, palette.muted, bar=bar)
        else:
            body = self._wrapped.lines(text, width, bar=bar, style=palette.muted)
        return stack(head, body, [BLANK])

    def estimate(self, width: int) -> int:
        return self.gap + 1 + (0 if self.folded or not self.source else 1 + _estimated_lines(self.source, width))


class TextBlock(Block):
    """Text of a reply in Markdown, also while it is streaming."""

    kind = "text"
    _fold_on_top = False

    def __init__(self, turn_index: int, message_id: str, *, gap: int) -> None:
        super().__init__(turn_index, message_id, gap=gap)
        self._pieces: list[str] = []
        self.stream: StreamedText | None = None
        self.finished = False

    @property
    def source(self) -> str:
        if len(self._pieces) > 1:
            self._pieces = ["".join(self._pieces)]
        return self._pieces[0] if self._pieces else ""

    def append(self, text: str) -> None:
        """Append a piece of streaming text."""
        self._pieces.append(text)
        if self.stream is not None:
            self.stream.add(text)

    def finish(self, text: str) -> None:
        """Set the stored text; the stream is kept only if it had the same text."""
        if self.stream is not None and text != self.source:
            self.stream = None
        self._pieces = [text]
        self.finished = True
        if len(text) > _MAX_MARKDOWN:
            self.folded = True
            if (before := self.stream) is not None:
                self.begin_stream(before.width, before.palette).lines = before.lines
        self.touch()

    @property
    def unended(self) -> StreamedText | None:
        """The stream, if its text is complete and drawing that takes long enough for a thread."""
        stream = self.stream
        return stream if self.finished and stream is not None and not stream.ends_light else None

    def begin_stream(self, width: int, palette: Palette) -> StreamedText:
        """Start a stream for this width with the text so far."""
        from ragforge_tui.tui.transcript.stream import StreamedText

        self.stream = StreamedText(min(width, MEASURE), palette)
        self.stream.add(self.source[:_MAX_MARKDOWN] if self.finished else self.source)
        return self.stream

    def streams_at(self, width: int, palette: Palette) -> bool:
        """Return whether the stream draws for this width and palette."""
        stream = self.stream
        return stream is not None and stream.width == min(width, MEASURE) and stream.palette is palette

    def draw(self, width: int, palette: Palette) -> Sequence[Line]:
        fits = self.streams_at(width, palette)
        if not self.finished:
            if not fits:
                self.begin_stream(width, palette).advance()
            return self.stream.lines if self.stream is not None else []
        stream = self.stream
        if stream is None or not fits:
            from ragforge_tui.tui.transcript.markdown import render

            self.stream = None
            return self._with_rest(render(self.source[:_MAX_MARKDOWN], width, palette), width, palette)
        if not stream.complete and stream.ends_light:
            stream.finish()
        if stream.complete:
            self.stream = None
        return self._with_rest(stream.lines, width, palette)

    def _with_rest(self, lines: list[Line], width: int, palette: Palette) -> Sequence[Line]:
        """Return the lines of the part that is drawn as Markdown, and below them those of the rest, or its size."""
        if self.folded is None:
            return lines
        text = self.source
        if self.folded:
            label = f"{counted(len(text) - _MAX_MARKDOWN)} more characters"
            return [*lines, line_of([(label, palette.muted), self.arrow(palette)], width)]
        rest = LongText(clean(text[_MAX_MARKDOWN:]), width, palette.text)
        return stack(lines, rest, [line_of([("fold", palette.muted), self.arrow(palette)], width)])

    def estimate(self, width: int) -> int:
        return self.gap + (_estimated_lines(self.source, width) if self.source else 0)


PLACE = "place"
"""Key in the meta of a style; its value is the conversation and the turn that a click opens."""
_MOST_PLACES = 3
_TITLE_CELLS = 40


class NoteBlock(Block):
    """A sentence of the program: a notice, how a reply ended, a retried request, another persona."""

    def __init__(self, kind: NoteKind, turn_index: int, text: str, level: Level) -> None:
        super().__init__(turn_index)
        self.kind = kind
        self.text = text
        self.level: Level = level

    @property
    def source(self) -> str:
        return self.text

    def draw(self, width: int, palette: Palette) -> list[Line]:
        glyph, style = {
            "info": ("·", palette.muted),
            "warning": ("!", palette.running),
            "error": ("✗", palette.failed),
        }[self.level]
        if self.kind == "retry":
            glyph, style = "↻", palette.running
        elif self.kind == "switch":
            glyph, style = "⇄", palette.faint
        elif self.kind == "commit":
            glyph = "◦"
        if palette.plain:
            glyph = "again:" if self.kind == "retry" else "note:" if self.level == "info" else f"{self.level}:"
        first = [(f"{glyph} ", style)]
        text = clean(cut_middle(self.text, MOST_NOTE_CHARS))
        body = palette.text if self.level == "error" else palette.muted
        return wrap([(text, body)], width, first=first, rest=[("  ", palette.text)])

    def estimate(self, width: int) -> int:
        return self.gap + _estimated_lines(self.text, width)


class RecalledText(msgspec.Struct, frozen=True):
    """A recalled turn, summary or finding in one line, and where it is from."""

    text: str
    conversation_id: str = ""
    turn_index: int = 0


class RecallBlock(Block):
    """Amount of memory recalled for a turn, by conversation; unfolded, the recalled texts.

    Attributes:
        texts: The recalled texts; None until they are asked for.
    """

    kind = "recall"

    def __init__(self, turn_index: int, message_id: str, places: Sequence[RecalledPlace]) -> None:
        super().__init__(turn_index, message_id)
        self.places = [place for place in places if place.conversation_id]
        self.texts: Sequence[RecalledText] | None = None
        self.folded = True
        self._own = next((place for place in places if not place.conversation_id), RecalledPlace())

    @property
    def source(self) -> str:
        return "".join(text for text, *_ in self._pieces())

    def folds_at(self, line: int, height: int) -> bool:
        """Return whether a line is one of the amounts; they may take more than one."""
        texts = 0 if self.folded else max(len(self.texts or ()), 1)
        return self.gap <= line < height - texts

    def show_texts(self, texts: Sequence[RecalledText]) -> None:
        self.texts = texts
        self.touch()

    def _pieces(self) -> list[tuple[str, bool, RecalledPlace | None]]:
        """Return the words, whether they are an amount, and the place of a title."""
        pieces: list[tuple[str, bool, RecalledPlace | None]] = [("recalled ", False, None)]
        if own := _amount(self._own):
            pieces += [(own, True, None), (f" of this conversation{', ' if self.places else ''}", False, None)]
        for at, place in enumerate(self.places[:_MOST_PLACES]):
            title = one_line(place.title) or f"untitled {place.conversation_id[:8]}"
            pieces += [(", ", False, None)] if at else []
            pieces += [(_amount(place), True, None), (" from ", False, None)]
            pieces.append((f"“{clip(title, _TITLE_CELLS)}”", False, place))
        more = len(self.places) - _MOST_PLACES
        return [*pieces, (f", and from {more} more", False, None)] if more > 0 else pieces

    def draw(self, width: int, palette: Palette) -> list[Line]:
        glyph = "memory:" if palette.plain else "↺"
        runs: list[Run] = []
        for text, amount, place in self._pieces():
            style = palette.accent + BOLD if amount else palette.muted
            if place is not None:
                style += palette.link + _to(place.conversation_id, place.turn_index)
            runs.append((text, style))
        runs.append(self.arrow(palette))
        lines = wrap(runs, width, first=[(f"{glyph} ", palette.accent)], rest=[("  ", palette.text)])
        return lines if self.folded else [*lines, *self._recalled(width, palette)]

    def _recalled(self, width: int, palette: Palette) -> list[Line]:
        """Return the recalled texts, each in one line that leads to its turn."""
        bar = ("▎ ", palette.faint)
        if self.texts is None:
            return [line_of([bar, ("loading …", palette.muted)], width)]
        lines = []
        for one in self.texts:
            where = f"turn {one.turn_index} " if one.turn_index else ""
            text = clip(one_line(one.text), max(width - cell_len(where) - 2, 1))
            to = _to(one.conversation_id, one.turn_index) if one.conversation_id else Style()
            lines.append(line_of([bar, (where, palette.accent + to), (text, palette.muted + to)], width))
        return lines or [line_of([bar, ("what was sent is no longer stored", palette.muted)], width)]

    def estimate(self, width: int) -> int:
        return self.gap + 1 + (0 if self.folded else len(self.texts or ()))


def _to(conversation_id: str, turn_index: int) -> Style:
    return Style.from_meta({PLACE: f"{conversation_id} {turn_index}"})


def _amount(place: RecalledPlace) -> str:
    """Return how much was recalled from a conversation; empty for nothing."""
    turns = counted(place.turns, "turn") if place.turns else ""
    notes = f"{place.notes} summar{'y' if place.notes == 1 else 'ies'}" if place.notes else ""
    return " and ".join(filter(None, (turns, notes)))
