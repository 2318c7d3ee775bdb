"""Rows below the code of a scope: what refers to it, what it refers to, and the turns about it.

Pure, except for `ScopeRows`, which draws them.
"""

from __future__ import annotations

import msgspec
from rich.cells import cell_len

from ragforge_tui.shared.code_records import Scope, ScopeTalk
from ragforge_tui.shared.code_views import ScopeCode, ScopeLink, ScopeView, scope_name, scope_place
from ragforge_tui.shared.formatting import counted
from ragforge_tui.shared.records import SHORT_ID
from ragforge_tui.tui.dialogs.detail import Section
from ragforge_tui.tui.drawing.code import language_of
from ragforge_tui.tui.drawing.lines import Run, clip, one_line, with_path
from ragforge_tui.tui.drawing.palette import Palette
from ragforge_tui.tui.widgets.virtual_list import VirtualList

MOST_UNRESOLVED = 12


class ScopeLine(msgspec.Struct, frozen=True):
    """A row: a heading or note without key, a link to another scope, or a turn.

    Attributes:
        lead: Muted text before the main one.
        detail: Muted text on the right.
        path: A path after the detail, shortened before the main text is.
    """

    key: str = ""
    lead: str = ""
    text: str = ""
    detail: str = ""
    scope: str = ""
    path: str = ""
    talk: ScopeTalk | None = None


def lines_of(view: ScopeView) -> list[ScopeLine]:
    """Return the rows of a scope."""
    lines = [
        *_links("Called by", view.callers, view.scope),
        *_links("Calls", view.callees, view.scope),
    ]
    if view.unresolved:
        names = list(dict.fromkeys(one.name for one in view.unresolved))
        more = f" and {len(names) - MOST_UNRESOLVED} more" if len(names) > MOST_UNRESOLVED else ""
        lines.append(ScopeLine(lead="outside the workspace: ", text=", ".join(names[:MOST_UNRESOLVED]) + more))
    if view.members:
        lines.append(ScopeLine(text=f"Contains {len(view.members)}"))
        lines += [
            ScopeLine(f"m{n}", f"{one.kind} ", scope_name(one), f"{one.start_line}-{one.end_line}", one.uuid)
            for n, one in enumerate(view.members)
        ]
    lines += _talks(view.talks)
    return lines


def _links(title: str, links: list[ScopeLink], own: Scope) -> list[ScopeLine]:
    if not links:
        return []
    lines = [ScopeLine(text=f"{title} {len(links)}")]
    for n, link in enumerate(links):
        scope = link.scope
        file = scope.file if title == "Called by" else own.file
        sure = "" if link.confidence >= 1 else f"{link.confidence:.0%} sure"
        where = f"{file}:{link.line}" if link.line else f"{scope.file}:{scope.start_line}"
        lines.append(ScopeLine(f"{title}{n}", f"{link.kind} ", scope_name(scope), sure, scope.uuid, where))
    return lines


def _talks(talks: list[ScopeTalk]) -> list[ScopeLine]:
    if not talks:
        return [ScopeLine(text="No turn is about it yet")]
    turns = counted(len(talks), "turn")
    lines = [ScopeLine(text=f"Talked about in {turns}")]
    for talk in talks:
        title = talk.title or f"untitled {talk.conversation_id[:SHORT_ID]}"
        detail = f"{title}  {talk.timestamp.astimezone():%Y-%m-%d}"
        key = f"t{talk.conversation_id}/{talk.turn_index}"
        lines.append(ScopeLine(key, f"turn {talk.turn_index} ", talk.text, detail, talk=talk))
    return lines


def code_section(scope: Scope, code: ScopeCode) -> list[Section]:
    """Return the sections with the text of a scope, its lines numbered."""
    sections = [Section(title="Note", text=code.stale, kind="prose")] if code.stale else []
    text = code.text.rstrip("\n")
    if code.first_line:
        text = "\n".join(f"{n:>6}\t{line}" for n, line in enumerate(text.split("\n"), code.first_line))
    title = f"{scope_place(scope)}  {scope.kind}"
    language = language_of(scope.file)
    return [*sections, Section(title=title, text=text, language=language, numbered=bool(code.first_line))]


class ScopeRows(VirtualList[ScopeLine]):
    """The list of references and turns."""

    def key_of(self, line: ScopeLine) -> str:
        return line.key

    def draw(self, line: ScopeLine, width: int, palette: Palette) -> list[Run]:
        """Draw a heading, or a row with its place on the right."""
        if not line.key:
            lead, text = one_line(line.lead), one_line(line.text)
            style = palette.muted if line.lead else palette.strong_heading
            return [(clip(f"{lead} {text}".strip(), width), style)]
        lead = f"  {one_line(line.lead)} "
        detail = clip(one_line(line.detail), max(8, width // 2))
        detail = with_path(detail, line.path, width - cell_len(lead) - cell_len(one_line(line.text)) - 1)
        text = clip(one_line(line.text), max(4, width - cell_len(lead) - cell_len(detail) - 1))
        gap = max(1, width - cell_len(lead) - cell_len(text) - cell_len(detail))
        style = palette.text if line.talk is not None else palette.link
        return [(lead, palette.muted), (text, style), (" " * gap, palette.text), (detail, palette.muted)]
