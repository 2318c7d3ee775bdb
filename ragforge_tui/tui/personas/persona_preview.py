"""Preview of a persona: a sentence of it, facts, errors, and its file with the errors marked, with hanging indents.

Continuation lines are indented below the text, not below a number or sign: Textual wraps a text as a whole, which would
put the rest of a line below its number. Loaded with the first persona picker or review.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Sequence

import msgspec
from textual.content import Content
from textual.widgets import Static

from ragforge_tui.shared.formatting import counted
from ragforge_tui.shared.persona_records import FIELDS, PersonaInfo, PersonaRemark
from ragforge_tui.shared.sanitize import plain_text
from ragforge_tui.tui.drawing.lines import one_line
from ragforge_tui.tui.drawing.palette import DEFAULT_GLYPH, persona_color
from ragforge_tui.tui.widgets.new_size import on_new_size

NARROWEST = 12
"""If a head leaves fewer cells than this, its line is wrapped below it."""


class HangingLine(msgspec.Struct, frozen=True):
    """A line: `head` precedes its first row only, `body` takes as many rows as it needs."""

    head: Content
    body: Content


def indented(head: Content, body: Content) -> HangingLine:
    """Return a line with the hanging indent of its own leading spaces."""
    spaces = len(body.plain) - len(body.plain.lstrip(" "))
    return HangingLine(Content.assemble(head, " " * spaces), body[spaces:])


def wrap_hanging(lines: Iterable[HangingLine], width: int) -> Content:
    """Return the lines wrapped to a width; a width of 0 wraps nothing."""
    rows: list[Content] = []
    for line in lines:
        whole = Content.assemble(line.head, line.body)
        room = width - line.head.cell_length
        if not width or whole.cell_length <= width or room < NARROWEST:
            rows.append(whole)
            continue
        first, *others = line.body.wrap(room)
        rows.append(Content.assemble(line.head, first))
        rows += [row.pad_left(line.head.cell_length) for row in others]
    return Content("\n").join(rows)


class HangingText(Static):
    """Shows such lines, wrapped again when its width changes."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id, markup=False)
        self._lines: Sequence[HangingLine] = ()
        self._width = 0

    def show(self, lines: Sequence[HangingLine]) -> None:
        self._lines = lines
        self.update(wrap_hanging(lines, self._width))

    def on_mount(self) -> None:
        on_new_size(self, self._wrap)

    def _wrap(self) -> None:
        if self.outer_size.width != self._width:
            self._width = self.outer_size.width
            self.update(wrap_hanging(self._lines, self._width))


MAX_LINES = 600
MAX_COLUMNS = 500
ORIGINS = {"own": "yours", "project": "from this folder", "shipped": "shipped"}
_MARKUP = re.compile(r"<!--.*?-->|<[^<>]*+>")


def name_style(color: str, *, dark: bool) -> str:
    """Return the style of a persona's name outside the transcript."""
    found = persona_color(color, dark=dark)
    return f"bold {found.hex}" if found is not None else "bold $secondary"


def signature(info: PersonaInfo) -> str:
    return f"{one_line(info.glyph) or DEFAULT_GLYPH} {one_line(info.name)}"


def faults(info: PersonaInfo) -> list[PersonaRemark]:
    return [remark for remark in info.remarks if remark.severity == "warning"]


def facts(info: PersonaInfo) -> Iterator[tuple[str, str]]:
    """Return the known facts about a persona, as (label, text)."""
    hidden = " and the one ".join("that is yours" if one == "own" else ORIGINS[one] for one in info.shadows)
    yield "from", ORIGINS[info.origin] + (f", hides the one {hidden}" if hidden else "")
    if info.origin == "project":
        answer = {None: "you are asked before it speaks", True: "you allowed this text", False: "you did not allow it"}
        yield "trust", answer[info.allowed]
    for name, field in FIELDS.items():
        if field.label:
            yield field.label, field.text(name, info)


def preview(info: PersonaInfo, text: str, *, dark: bool, source: bool = True) -> list[HangingLine]:
    """Return the whole preview: name, how it sounds, facts, errors, file.

    Args:
        source: Whether its file is shown, with the errors at their lines; without it, the errors are listed.
    """
    lines = [_line(signature(info), name_style(info.color, dark=dark))]
    if info.description:
        lines.append(_line(one_line(info.description)))
    voice = (("sounds", info.others.get("sample", "")), ("greets", info.greeting))
    spoken = [HangingLine(_label(how), Content.styled(one_line(words), "italic")) for how, words in voice if words]
    lines += [_line(""), *spoken, _line("")] if spoken else []
    for label, fact in facts(info):
        if fact:
            lines.append(HangingLine(_label(label), Content(one_line(fact))))
    if info.problem:
        lines.append(_line(f"✗ cannot be used: {one_line(info.problem)}", "$error"))
    if wrong := faults(info):
        more = f" (and {info.more_remarks} more)" if info.more_remarks else ""
        things = f"! {counted(len(wrong), 'problem')}{', marked below' if source else ''}"
        lines.append(_line(things + more, "$warning"))
        if not source:
            lines += [
                HangingLine(Content.styled(f"  line {one.line}: ", "dim"), Content(one_line(one.message)))
                for one in wrong
            ]
    return [*lines, _line(""), *source_lines(text, info.remarks)] if source else lines


def _line(text: str, style: str = "") -> HangingLine:
    return HangingLine(Content(), Content.styled(text, style))


def _label(label: str) -> Content:
    return Content.styled(f"{label:<9}", "dim")


def source_lines(text: str, remarks: list[PersonaRemark]) -> list[HangingLine]:
    """Return the file with line numbers, and errors below their lines."""
    by_line: dict[int, list[PersonaRemark]] = {}
    for remark in remarks:
        by_line.setdefault(remark.line, []).append(remark)
    # A reader counts line feeds only, so the lines are cut there before anything is cleaned.
    raw = text.split("\n")
    width = len(str(min(len(raw), MAX_LINES)))
    shown: list[HangingLine] = []
    for number, line in enumerate(raw[:MAX_LINES], 1):
        here = by_line.get(number, [])
        fault = any(remark.severity == "warning" for remark in here)
        gutter = f"{number:>{width}} {'!' if fault else '·' if here else ' '} "
        clean = plain_text(line.rstrip("\r")).replace("\n", " ").expandtabs(4)[:MAX_COLUMNS]
        shown.append(
            indented(Content.styled(gutter, "$warning" if fault else "dim"), Content.assemble(*_marked(clean)))
        )
        for remark in here:
            style = "$warning" if remark.severity == "warning" else "dim"
            head = Content.styled(f"{'':>{width}}   ^ {remark.column}: ", style)
            shown.append(HangingLine(head, Content.styled(one_line(remark.message), style)))
    if len(raw) > MAX_LINES:
        shown.append(_line(f"… {len(raw) - MAX_LINES} more lines", "dim"))
    return shown


def _marked(line: str) -> Iterator[tuple[str, str]]:
    end = 0
    for match in _MARKUP.finditer(line):
        yield line[end : match.start()], ""
        yield match[0], "dim italic" if match[0].startswith("<!--") else "$primary"
        end = match.end()
    yield line[end:], ""


def changes(name: str, before: str, after: str) -> str:
    """Return the changes of a proposal as a unified diff."""
    old, new = (text.replace("\r", "").split("\n") for text in (before, after))
    return "\n".join(difflib.unified_diff(old, new, f"a/{name}", f"b/{name}", lineterm="", n=2))
