"""Changes of files by one call: prepared, shown as a diff for approval, and made all or none.

Base of the tools that write files. The content that a change replaces is stored before, so that /undo brings it back. A
file that changed since its diff was shown is left alone, and so are all others of the call.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from ragforge_tui.shared.encoding import decode
from ragforge_tui.shared.errors import ToolError
from ragforge_tui.shared.records import FileAccess
from ragforge_tui.shared.redaction import MASK, adds_mask
from ragforge_tui.shared.truncation import marks_in
from ragforge_tui.tools.base import ApprovalNeed, Plan, Tool, ToolOutcome, finished_in_thread
from ragforge_tui.tools.diff import STORED_DIFF, counts, unified_diff
from ragforge_tui.tools.line_changes import line_changes
from ragforge_tui.tools.sensitive import BECAUSE
from ragforge_tui.tools.snapshots import digest_of
from ragforge_tui.tools.workspace import (
    Place,
    Workspace,
    foreseen,
    move_file,
    read_bytes,
    remove_file,
    runs,
    write_bytes,
)

_log = logging.getLogger(__name__)

MOST_CHANGED = 100
"""Files that one call may change; more can hardly be judged in one question."""


class Effect(NamedTuple):
    """What a change does to one path; None is a missing file."""

    place: Place
    before: bytes | None
    after: bytes | None


class Change(msgspec.Struct, kw_only=True):
    """Prepared change of a file that has not been made.

    Attributes:
        before: Content now; None for a file that is created.
        after: Content then; None for one that is deleted.
        target: Where the file moves to.
        note: Remark for the user and the model.
        shown: Lines that the answer shows, because the model gave only parts of them.
    """

    place: Place
    before: bytes | None
    after: bytes | None
    diff: str
    target: Place | None = None
    note: str = ""
    shown: str = ""

    @property
    def places(self) -> list[Place]:
        return [self.place, *([self.target] if self.target is not None else [])]

    @property
    def secret(self) -> bool:
        """Whether a file with keys or passwords is part of it."""
        return any(place.secret for place in self.places)

    def effects(self) -> list[Effect]:
        """Return what it does, path by path; a move writes first."""
        if self.target is None:
            return [Effect(self.place, self.before, self.after)]
        return [Effect(self.target, None, self.after), Effect(self.place, self.before, None)]


class WriteTool(Tool):
    """Base of the writing tools: prepare changes, request approval with their diff, make them if nothing changed."""

    async def prepare(self, arguments: Any) -> Plan:
        changes = await asyncio.to_thread(self.changes, arguments)
        if len(changes) > MOST_CHANGED:
            raise ToolError(f"One call changes at most {MOST_CHANGED} files.", todo="Make several calls.")

        async def run() -> ToolOutcome:
            return await finished_in_thread(lambda: self._run(changes))

        return Plan(
            run=run,
            approval=_write_need(self.context.workspace, changes, self.name),
            contents={effect.place.absolute: effect.after for change in changes for effect in change.effects()},
        )

    def changes(self, arguments: Any) -> list[Change]:
        """Return the changes that a call makes; blocks."""
        raise NotImplementedError

    def _run(self, changes: list[Change]) -> ToolOutcome:
        effects = [self._again(effect) for change in changes for effect in change.effects()]
        lines = [line for effect in effects for line in line_changes(*effect)]
        moved = {change.target.absolute: change.place for change in changes if change.target is not None}
        done: list[Effect] = []
        try:
            for effect in effects:
                if effect.before is not None:
                    self.context.undo.keep(effect.before, secret=effect.place.secret, runs=runs(effect.place))
                _make(effect, moved.get(effect.place.absolute))
                done.append(effect)
        except (ToolError, OSError):
            _take_back(done)
            raise
        for effect in effects:
            self.context.seen[effect.place.relative] = digest_of(effect.after)
        written = [
            {"path": each.place.shown, "before": digest_of(each.before), "after": digest_of(each.after)}
            for each in effects
        ]
        return ToolOutcome(
            text="\n".join(map(_written, changes)),
            data={
                **(written[0] if len(written) == 1 else {"changes": written}),
                "diff": _stored_diff(changes),
            },
            files=[FileAccess(path=effect.place.shown, access="write") for effect in effects],
            changes=lines,
        )

    def _again(self, effect: Effect) -> Effect:
        """Return an effect with its place found again.

        Raises:
            ToolError: The file is not the one that was shown.
        """
        place = self.context.workspace.locate_again(effect.place, effect.place.relative)
        if read_bytes(place) != effect.before:
            raise ToolError(
                f"{place.shown} changed while this call was waiting; nothing was written.",
                todo="Read it again and repeat the change.",
                kind="changed",
            )
        return effect._replace(place=place)

    def earlier(self, place: Place) -> bytes | None:
        """Return the current content of a file, None if it does not exist.

        Raises:
            ToolError: The content is not the one that the model last saw.
        """
        content = read_bytes(place)
        seen = self.context.seen.get(place.relative)
        known = seen is None or seen == digest_of(content) or place.absolute in foreseen.get()
        if content is not None and not known:
            raise ToolError(
                f"{place.shown} changed since it was read.", todo="Read it again before changing it.", kind="changed"
            )
        return content


def _make(effect: Effect, source: Place | None = None) -> None:
    if source is not None:
        move_file(source, effect.place)
        try:
            if read_bytes(effect.place) != effect.after:
                write_bytes(effect.place, effect.after or b"")
        except (ToolError, OSError):
            move_file(effect.place, source)
            raise
    elif effect.after is not None:
        write_bytes(effect.place, effect.after, must_be_new=effect.before is None)
    elif read_bytes(effect.place) is not None:
        remove_file(effect.place)


def _take_back(done: Sequence[Effect]) -> None:
    """Restore the files of a call that failed half-way; what cannot be restored stays in the store for undo."""
    for effect in reversed(done):
        try:
            with contextlib.suppress(FileNotFoundError):
                _make(effect._replace(before=effect.after, after=effect.before))
        except (ToolError, OSError) as error:
            _log.warning("%s not taken back: %s", effect.place.shown, error)


def changed_diff(before: str | None, after: str, place: Place, target: Place | None = None) -> str:
    """Return the diff of a file's texts, with both names if it moves."""
    diff = unified_diff(before, after, place.shown)
    if target is None:
        return diff
    if not diff:
        return f"rename from {place.shown}\nrename to {target.shown}\n"
    return diff.replace(f"+++ b/{place.shown}\n", f"+++ b/{target.shown}\n", 1)


def refuse_masks(before: str, after: str, place: Place) -> None:
    """Reject a text that would overwrite a secret with its mask.

    Raises:
        ToolError: The text contains more masks than the text it replaces.
    """
    if adds_mask(before, after):
        raise ToolError(
            f"The new text for {place.shown} contains {MASK!r}, which replaces a secret that is hidden from you. "
            "Writing it would destroy the secret. Nothing was written.",
            todo="Use edit_file on the lines around the secret, or ask the user to enter it.",
            kind="masked",
        )


def refuse_marks(new: str, old: str, path: str) -> None:
    """Reject a text with a truncation mark that a model copied from its own past; a mark in the old text may stay.

    Raises:
        ToolError: The new text contains a mark that the old one does not.
    """
    copied = sorted(marks_in(new) - marks_in(old))
    if copied:
        raise ToolError(
            f"Nothing was written: the text for {path} contains {copied[0]!r}, which only marks a cut in this "
            "conversation.",
            todo="Read the file and give the new text in full. If the file must contain exactly these words, "
            "write them with run_command.",
            kind="left_out",
        )


def text_of(content: bytes) -> str:
    """Return a content as text, whatever it is."""
    decoded = decode(content)
    return decoded[0] if decoded else content.decode("utf-8", "replace")


_SCOPES = {"write_file": "writing any file", "create_file": "creating files"}
"""Permission for the rest of the session that a question about each tool offers; of the others editing any file."""


def _write_need(workspace: Workspace, changes: list[Change], name: str) -> ApprovalNeed:
    places = [place for change in changes for place in change.places]
    special = next((place for place in places if place.reason), None)
    details = [f"{change.note}\n{change.diff}" if change.note else change.diff for change in changes]
    detail = "".join(details) or f"{changes[0].place.shown}: no change."
    scope, key = f"{_SCOPES.get(name, 'editing any file')} in this workspace", f"{name}:{workspace.root}"
    if any(change.after is None or change.target is not None for change in changes):
        scope, key = "moving and deleting files in this workspace", f"remove:{workspace.root}"
    if special is not None and special.reason == "runs" and len(places) == 1:
        # Asked about once: such a file is often edited several times in a row.
        scope, key = f"writing {special.shown}", f"write:{workspace.root}:{special.relative}"
    elif special is not None and (len(places) > 1 or special.secret):
        scope = key = ""
    return ApprovalNeed(
        kind="write",
        question=_question(changes, name),
        detail=detail,
        why=_why(special, len(places)) if special is not None and special.reason else "",
        session_scope=scope,
        session_key=key,
        in_every_mode=any(place.reason == "own" for place in places),
    )


def _why(place: Place, places: int) -> str:
    subject = "it" if places == 1 else place.shown
    return f"Accepted edits do not cover it: {subject} {BECAUSE[place.reason]}"


def _question(changes: list[Change], name: str) -> str:
    if len(changes) > 1:
        return f"Change {len(changes)} files?"
    (change,) = changes
    shown = change.place.shown
    if change.target is not None:
        return f"Move {shown} to {change.target.shown}?"
    if change.after is None:
        return f"Delete {shown}?"
    verb = "Create" if change.before is None else "Overwrite" if name == "write_file" else "Edit"
    return f"{verb} {shown}?"


def _written(change: Change) -> str:
    shown = change.place.shown
    added, removed = counts(change.diff)
    what = f"+{added} -{removed} lines" if change.diff else "no change"
    if change.after is None:
        said = f"Deleted {shown}."
    elif change.target is not None:
        said = f"Moved {shown} to {change.target.shown}" + (f" ({what})." if added or removed else ".")
    else:
        said = f"{'Created' if change.before is None else 'Wrote'} {shown} ({what})."
    said = " ".join(part for part in (said, change.place.note, change.note) if part)
    return f"{said} It now reads:\n{change.shown}" if change.shown else said


def _stored_diff(changes: list[Change]) -> str:
    """Return the diff to store with the record, without files with secrets."""
    diff = "".join(change.diff for change in changes if not change.secret)
    if len(diff) <= STORED_DIFF:
        return diff
    return diff[:STORED_DIFF] + f"\n[diff cut, {len(diff)} characters]\n"
