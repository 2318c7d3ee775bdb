"""Storing of findings: those that turns mark, those of summaries and insights, and what later turns make of them.

A statement that is there already is not stored again, in whatever words. A conversation notes how far its turns were
read, so that imported ones and those of a time without the graph are read later. A private conversation knows and
changes only its own findings, so that nothing of it shows elsewhere.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime

import msgspec

from ragforge_tui.graph import Store
from ragforge_tui.graph.store.findings import new_finding
from ragforge_tui.memory.findings.acts import replace
from ragforge_tui.memory.findings.closing import Change, changes_of
from ragforge_tui.memory.findings.likeness import files_named, gist
from ragforge_tui.memory.findings.marked import Marked, marked_findings
from ragforge_tui.memory.prose import cut
from ragforge_tui.shared.finding_records import KeptFinding, KeptKind, kept_kind
from ragforge_tui.shared.records import EXTRACTIVE, Conversation, Finding, Message, Turn
from ragforge_tui.shared.redaction import mask_secrets

_AT_ONCE = 50
_WORDS_CHARS = 80
_MOST_SCOPES = 4
MOST_KNOWN = 12
_RELEVANT = 0.4
_OWN_POINT = 0.4
"""What an open point of the same conversation is worth beyond the words it shares."""


class ModelChange(msgspec.Struct, frozen=True):
    """Change that a model reports of a finding that it was shown.

    Attributes:
        finding: Its id.
        by_turn: The turn that closed it; 0 if it named none.
        new: The finding that takes its place; None if it is closed.
    """

    finding: str
    by_turn: int = 0
    new: Finding | None = None


class UnkeptFindings(msgspec.Struct, frozen=True):
    """Findings of a summary that is stored, until they are stored too; kept with it in case the program ends between.

    Attributes:
        summary: Its id.
        changes: What its model reports of earlier findings.
    """

    summary: str
    changes: list[ModelChange] = []


class FindingKeeper:
    """Keeper of the findings of one conversation.

    Args:
        wishes: Whether wishes that turns mark are kept; see `agent.memory.remember`.
    """

    def __init__(self, store: Store, conversation: Conversation, *, wishes: bool = True) -> None:
        self._store = store
        self._wishes = wishes
        self._conversation = conversation

    async def current(self) -> list[KeptFinding]:
        """Return the findings that hold here: of the folder, or of a private conversation itself."""
        return self._seen(await self._store.findings.of_folder(self._conversation.workspace, asking=self._id))

    async def said(self, message: Message) -> list[tuple[KeptFinding, KeptFinding | None]]:
        """Store at once what a message of the user wishes or has remembered; return each with what it replaces."""
        turn = Turn(turn_index=message.turn_index, messages=[message])
        marked = [one for one in await asyncio.to_thread(marked_findings, turn) if one.kind in ("wish", "fact")]
        if not marked:
            return []
        known = await self.current()
        changes = await asyncio.to_thread(changes_of, turn, marked, known)
        replaced = {change.new: change.finding for change in changes if change.new is not None}
        stored: list[tuple[KeptFinding, KeptFinding | None]] = []
        for one in marked:
            if self._conversation.private:
                one = msgspec.structs.replace(one, scope="conversation")
            old = replaced.get((one.kind, one.text))
            own = await self._of_conversation()
            # Whoever read the turn first has stored it; it is new to the user all the same.
            same = (known for known in own if known.turn_index == message.turn_index and _is_known(one, [known]))
            if (already := next(same, None)) is not None:
                stored.append((already, None))
            elif old is not None:
                stored.append((await replace(self._store, old, await self._new(turn, one)), old))
            elif not _is_known(one, [*known, *own]):
                stored += [(added, None) for added in await self._store.findings.add([await self._new(turn, one)])]
        return stored

    async def read_turns(self, ended: Sequence[Turn]) -> bool:
        """Store what turns that were not read yet mark and close; return whether anything changed.

        Args:
            ended: Turns that ended just now: one that was read before, as after a retry, is read again.
        """
        read = await self._store.findings.read_until(self._id)
        changed = await self._read([turn for turn in ended if turn.turn_index <= read])
        first, last = await self._store.turns.range(self._id)
        start = max(read + 1, (self._conversation.branch_turn or 0) + 1, first)
        for at in range(start, last + 1, _AT_ONCE):
            end = min(at + _AT_ONCE, last + 1)
            changed |= await self._read(await self._store.turns.between(self._id, start=at, end=end))
            await self._store.findings.set_read_until(self._id, end - 1)
        return changed

    async def _read(self, turns: Sequence[Turn]) -> bool:
        if self._conversation.helper_of or not turns:
            return False
        known, own = await self.current(), await self._of_conversation()
        changed = False
        for turn in turns:
            marked = await asyncio.to_thread(marked_findings, turn)
            marked = [one for one in marked if self._wishes or one.kind != "wish"]
            changes = await asyncio.to_thread(changes_of, turn, marked, known)
            await self._apply(turn, changes)
            replacing = {change.new for change in changes}
            fresh = [
                one for one in marked if (one.kind, one.text) not in replacing and not _is_known(one, [*known, *own])
            ]
            added = await self._store.findings.add([await self._new(turn, one) for one in fresh])
            if changes or added:
                changed = True
                known, own = await self.current(), await self._of_conversation()
        return changed

    async def noted(
        self, findings: Sequence[Finding], made_by: str, last_turn: int, changes: Sequence[ModelChange] = ()
    ) -> bool:
        """Store the findings of a summary or insight, and the changes of older ones that its model reports.

        Without a model only those of a marked kind are kept: the others are sentences that were merely telling.

        Args:
            last_turn: Turn of findings that name none.
        """
        wanted = [one for one in findings if one.kind in ("decision", "preference", "open") or made_by != EXTRACTIVE]
        existing = await self._of_conversation()
        moments = await self._moments({min(one.turns, default=last_turn) for one in wanted})
        fresh: list[KeptFinding] = []
        for one in wanted:
            turn, kind = min(one.turns, default=last_turn), kept_kind(one.kind)
            if kind != "fact" and not await self._is_spoken(turn):
                kind = "fact"
            if turn in moments and not any(_restates(one.text, kind, turn, known) for known in [*existing, *fresh]):
                fresh.append(await self._made(turn, kind, mask_secrets(one.text), moments[turn], made_by))
        stored = await self._store.findings.add(fresh)
        shown = await self._store.findings.by_id([change.finding for change in changes], asking=self._id)
        by_id = {one.uuid: one for one in shown}
        for change in changes:
            if change.finding in by_id:
                await self._apply_models(by_id[change.finding], change, made_by, last_turn)
        for finding in stored:
            await self._replay(finding)
        return bool(stored or changes)

    async def _is_spoken(self, turn: int) -> bool:
        """Return whether the user typed anything in a turn, so that what it settles may be the user's word."""
        turns = await self._store.turns.between(self._id, start=turn, end=turn + 1)
        return any(message.role == "user" and message.typed.strip() for one in turns for message in one.messages)

    async def _replay(self, finding: KeptFinding) -> None:
        """Apply the turns after its own to a finding that a late summary added."""
        if finding.kind == "fact" or not finding.is_current:
            return
        _, last = await self._store.turns.range(self._id)
        start = finding.turn_index + 1
        for turn in await self._store.turns.between(self._id, start=start, end=min(last, start + _AT_ONCE) + 1):
            marked = await asyncio.to_thread(marked_findings, turn)
            if changes := await asyncio.to_thread(changes_of, turn, marked, [finding]):
                await self._apply(turn, changes)
                break

    async def _apply(self, turn: Turn, changes: Sequence[Change]) -> bool:
        at = turn.messages[0].timestamp
        for change in changes:
            old = change.finding
            if change.new is not None:
                kind, text = change.new
                new = await self._made(turn.turn_index, kind, mask_secrets(text), at, "user", scope=old.scope)
                await self._store.findings.replace(old.uuid, new)
            elif change.how == "done":
                closed_by = self._placed(old, mask_secrets(change.words))
                await self._store.findings.close(old.uuid, until=at, closed_by=closed_by, message_or_call=change.by)
            else:
                await self._store.findings.set_state(old.uuid, "forgotten", at, current=True)
        return bool(changes)

    async def _apply_models(self, old: KeptFinding, change: ModelChange, made_by: str, last_turn: int) -> None:
        turn = change.by_turn or last_turn
        moments = await self._moments({turn})
        if turn not in moments or (old.conversation_id == self._id and turn <= old.turn_index):
            return
        if change.new is not None:
            kind = kept_kind(change.new.kind) if change.new.kind else old.kind
            new = await self._made(turn, kind, mask_secrets(change.new.text), moments[turn], made_by, scope=old.scope)
            await self._store.findings.replace(old.uuid, new)
        elif old.kind == "open":
            [closing] = await self._store.turns.between(self._id, start=turn, end=turn + 1)
            asked = closing.messages[0]
            words = self._placed(old, f"t{turn}: “{cut(asked.content, _WORDS_CHARS)}”")
            await self._store.findings.close(old.uuid, until=moments[turn], closed_by=words, message_or_call=asked.uuid)
        else:
            await self._store.findings.set_state(old.uuid, "forgotten", moments[turn], current=True)

    def _placed(self, old: KeptFinding, words: str) -> str:
        """Return what closed a finding, with the conversation's title if that is not the finding's own."""
        if old.conversation_id == self._id:
            return words
        return f"“{self._conversation.title or 'untitled'}”, {words}"

    async def _new(self, turn: Turn, one: Marked) -> KeptFinding:
        at = turn.messages[0].timestamp
        return await self._made(turn.turn_index, one.kind, mask_secrets(one.text), at, "rule", scope=one.scope)

    async def _made(
        self, turn: int, kind: KeptKind, text: str, since: datetime, made_by: str, **fields: str
    ) -> KeptFinding:
        workspace = self._conversation.workspace
        scopes = [
            scope.uuid
            for name in sorted(gist(text).names)[:_MOST_SCOPES]
            for scope in (await self._store.code.by_name(workspace, name.rpartition(".")[2]))[:1]
        ]
        return new_finding(
            self._id,
            workspace,
            turn,
            kind,
            text,
            since=since,
            made_by=made_by,
            files=files_named(text),
            scopes=scopes,
            **fields,
        )

    async def _moments(self, turns: set[int]) -> dict[int, datetime]:
        """Return when turns began; those that do not exist are left out."""
        if not turns:
            return {}
        lines = await self._store.turns.lines(self._id, min(turns), max(turns))
        return {line.turn_index: line.timestamp for line in lines if line.turn_index in turns}

    async def _of_conversation(self) -> list[KeptFinding]:
        return await self._store.findings.of_conversation(self._id)

    def _seen(self, found: Sequence[KeptFinding]) -> list[KeptFinding]:
        if not self._conversation.private:
            return list(found)
        return [one for one in found if one.conversation_id == self._id]

    @property
    def _id(self) -> str:
        return self._conversation.uuid


def _is_known(one: Marked, existing: Sequence[KeptFinding]) -> bool:
    """Return whether a marked statement is kept already; what the user states again holds again."""
    mine = gist(one.text)
    return any(
        other.kind == one.kind and (other.is_current or not one.by_user) and mine.is_same(gist(other.text))
        for other in existing
    )


def _restates(text: str, kind: KeptKind, turn: int, known: KeptFinding) -> bool:
    """Return whether a summary's finding repeats a kept one, in whatever words."""
    mine, theirs = gist(text), gist(known.text)
    if mine.is_same(theirs):
        return known.kind == kind or known.turn_index == turn
    near = known.turn_index == turn and known.kind == kind
    return near and (theirs.share_in(mine) >= 0.7 or mine.share_in(theirs) >= 0.7 or mine.is_alike(theirs))


def relevant_findings(current: Sequence[KeptFinding], text: str, conversation_id: str) -> list[KeptFinding]:
    """Return the findings that a text may close or replace: those it shares most with, open points first."""
    told = gist(text)

    def rate(one: KeptFinding) -> float:
        own = one.kind == "open" and one.conversation_id == conversation_id
        return gist(one.text).share_in(told) + (_OWN_POINT if own else 0.0)

    rated = [(rate(one), one) for one in current]
    ranked = sorted(rated, key=lambda pair: (-pair[0], -pair[1].since.timestamp()))
    return [one for share, one in ranked if share >= _RELEVANT][:MOST_KNOWN]


def known_line(finding: KeptFinding, conversation_id: str) -> str:
    """Return a finding as a summariser is shown it."""
    place = f"t{finding.turn_index}" if finding.conversation_id == conversation_id else f"{finding.since:%Y-%m-%d}"
    return f"{'open point' if finding.kind == 'open' else finding.kind} ({place}): {finding.text}"
