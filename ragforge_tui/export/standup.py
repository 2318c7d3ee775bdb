"""Work of some days as Markdown that can be pasted into a chat or an issue."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, tzinfo

from ragforge_tui.export.markdown import readable_line
from ragforge_tui.shared.formatting import counted
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
        parts.append(f"## {readable_line(workspace) or 'No folder'}\n\n{_sums(done)}")
        parts += ["\n".join(_conversation(one, zone)) for one in done]
    return mask_secrets("\n\n".join(parts))


def _sums(done: Sequence[WorkDone]) -> str:
    """Return what was done in a folder as one sentence."""
    turns = sum(one.last_turn - one.first_turn + 1 for one in done)
    files = {path for one in done for path in one.files}
    sums = [
        (sum(len(one.commits) for one in done), "commit", "commits"),
        (len(files), "file changed", "files changed"),
        (sum(len(one.findings) for one in done), "decision", "decisions"),
        (sum(len(one.closed) for one in done), "point closed", "points closed"),
        (sum(len(one.failures) for one in done), "failure", "failures"),
        (sum(len(one.open_points) for one in done), "point open", "points open"),
    ]
    told = [f"{count} {one if count == 1 else many}" for count, one, many in sums if count]
    spent = f"{counted(turns, 'turn')} in {counted(len(done), 'conversation')}"
    return f"{spent}: {', '.join(told)}." if told else f"{spent}."


def _conversation(one: WorkDone, zone: tzinfo | None) -> Iterator[str]:
    title = readable_line(one.title) or "Untitled conversation"
    turns = f"t{one.first_turn}" if one.first_turn == one.last_turn else f"t{one.first_turn}–t{one.last_turn}"
    yield f"**{title}** · `{one.conversation_id[:SHORT_ID]}` {turns} · {_span(one, zone)}"
    yield ""
    if one.text:
        yield f"- {readable_line(one.text)}"
    for commit in one.commits:
        yield f"- Committed {readable_line(commit)}"
    if one.files:
        named = ", ".join(_code(path) for path in one.files[:_MOST_FILES])
        more = len(one.files) - _MOST_FILES
        yield f"- Changed {named}" + (f" and {more} more" if more > 0 else "")
    if one.actions:
        yield f"- {readable_line(one.actions)}"
    for finding in one.findings:
        yield f"- Decided: {_cited(finding)}"
    for finding in one.closed:
        yield f"- [x] {_cited(finding)}"
    for finding in one.failures:
        yield f"- Failed: {_cited(finding)}"
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
