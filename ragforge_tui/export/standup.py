"""Work of some days as Markdown that can be pasted into a chat or an issue."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, tzinfo

from ragforge_tui.export.markdown import readable_line
from ragforge_tui.shared.past_records import WorkDone
from ragforge_tui.shared.records import SHORT_ID, Finding
from ragforge_tui.shared.redaction import mask_secrets
from ragforge_tui.shared.sanitize import plain_text

_MOST_FILES = 12


def standup_markdown(work: Iterable[WorkDone], since: datetime, *, zone: tzinfo | None = None) -> str:
    """Return the work done, by folder and conversation; times are those of a zone, by default the machine's."""
    groups: dict[str, list[WorkDone]] = {}
    for one in work:
        groups.setdefault(one.workspace, []).append(one)
    start = since.astimezone(zone)
    clock = f" {start:%H:%M}" if (start.hour, start.minute) != (0, 0) else ""
    parts = [f"# Since {start:%A, %Y-%m-%d}{clock}"]
    if not groups:
        parts.append("Nothing was done in any conversation.")
    for workspace, done in groups.items():
        parts.append(f"## {readable_line(workspace) or 'No folder'}")
        parts += ["\n".join(_conversation(one, zone)) for one in done]
    return mask_secrets("\n\n".join(parts))


def _conversation(one: WorkDone, zone: tzinfo | None) -> Iterator[str]:
    title = readable_line(one.title) or "Untitled conversation"
    turns = f"t{one.first_turn}" if one.first_turn == one.last_turn else f"t{one.first_turn}–t{one.last_turn}"
    yield f"**{title}** · `{one.conversation_id[:SHORT_ID]}` {turns} · {_span(one, zone)}"
    yield ""
    if one.text:
        yield f"- {readable_line(one.text)}"
    if one.actions:
        yield f"- Done: {readable_line(one.actions)}"
    for finding in one.findings:
        yield f"- {finding.kind.capitalize() or 'Found'}: {_cited(finding)}"
    if one.files:
        named = ", ".join(_code(path) for path in one.files[:_MOST_FILES])
        more = len(one.files) - _MOST_FILES
        yield f"- Modified: {named}" + (f" and {more} more" if more > 0 else "")
    for commit in one.commits:
        yield f"- Commit: {readable_line(commit)}"
    for item in one.open_points:
        yield f"- [ ] {_cited(item)}"


def _code(path: str) -> str:
    return f"`{' '.join(plain_text(path).split()).replace('`', '')}`"


def _span(one: WorkDone, zone: tzinfo | None) -> str:
    started, ended = one.started.astimezone(zone), one.ended.astimezone(zone)
    if started.date() == ended.date():
        end = f"–{ended:%H:%M}" if f"{ended:%H:%M}" != f"{started:%H:%M}" else ""
        return f"{started:%a %Y-%m-%d %H:%M}{end}"
    return f"{started:%a %Y-%m-%d %H:%M} – {ended:%a %Y-%m-%d %H:%M}"


def _cited(finding: Finding) -> str:
    turns = f" ({', '.join(f't{turn}' for turn in finding.turns)})" if finding.turns else ""
    return f"{readable_line(finding.text)}{turns}"
