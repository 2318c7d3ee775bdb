"""Acts of the user on what is remembered: pin, edit, forget, confirm, and taking each back.

Forgetting removes a finding from recall, from what is sent, and from the findings of summaries and insights, with its
sentence where their texts quote it. The turn's own words stay in the conversation. `graph compact` removes what was
forgotten from the graph; until then it can be taken back.
"""

from __future__ import annotations

import uuid

import msgspec

from ragforge_tui.graph import Store
from ragforge_tui.graph.store.findings import new_finding
from ragforge_tui.graph.store.summary_tree import finding_text
from ragforge_tui.memory.findings.likeness import gist
from ragforge_tui.shared.context_choices import finding_key
from ragforge_tui.shared.errors import RagforgeError
from ragforge_tui.shared.finding_records import FORGOTTEN_BY_USER, FORGOTTEN_SENTENCE, KeptFinding
from ragforge_tui.shared.memory_acts import ActKind, ChangedText, MemoryAct
from ragforge_tui.shared.records import Finding, now
from ragforge_tui.shared.redaction import mask_secrets
from ragforge_tui.shared.sanitize import storable

CONFIRMED = "confirmed by the user"

_SETTLED = "This no longer holds: only what holds can be pinned or edited."


async def act_on(store: Store, finding: KeptFinding, act: ActKind, text: str = "") -> KeptFinding:
    """Carry out an act, log it, and return the finding as it is now; after an edit, the new one.

    Args:
        text: The new text of an edit.

    Raises:
        RagforgeError: The act makes no sense for this finding.
    """
    text = mask_secrets(storable(" ".join(text.split())))
    _check(finding, act, text)
    logged = _logged(finding, act)
    findings = store.findings
    changed: KeptFinding | None
    if act == "edit":
        new = new_finding(
            finding.conversation_id,
            finding.workspace,
            finding.turn_index,
            finding.kind,
            text,
            scope=finding.scope,
            pinned=finding.pinned,
            made_by="user",
            files=finding.files,
            scopes=finding.scopes,
        )
        changed = await replace(store, finding, new)
    elif act == "forget":
        texts = await _mentions(store, finding)
        await store.memory_acts.note(msgspec.structs.replace(logged, changed=texts))
        await store.memory_acts.change_texts(texts)
        await store.memory_acts.set_closed_by(finding.uuid, FORGOTTEN_BY_USER)
        changed = await findings.set_state(finding.uuid, "forgotten", logged.at)
    elif act == "confirm":
        await store.memory_acts.note(logged)
        changed = await findings.close(finding.uuid, until=logged.at, closed_by=CONFIRMED)
    else:
        await store.memory_acts.note(logged)
        changed = await findings.pin(finding.uuid, act == "pin")
    return changed or finding


async def replace(store: Store, finding: KeptFinding, new: KeptFinding) -> KeptFinding:
    """Store a finding in place of another one, and return it; logged as an edit, so that it can be taken back.

    Raises:
        RagforgeError: It no longer holds.
    """
    act = msgspec.structs.replace(_logged(finding, "edit"), new_text=new.text, replaced_by=new.uuid)
    await store.memory_acts.note(act)
    stored = await store.findings.replace(finding.uuid, new)
    if stored is None:
        await store.memory_acts.note(msgspec.structs.replace(act, undone=True))
        raise RagforgeError(_SETTLED, kind="invalid")
    if not stored.is_current:  # It was undone, or forgotten, before.
        stored = await store.findings.set_state(stored.uuid, finding.state, None) or stored
    return stored


def _logged(finding: KeptFinding, act: ActKind) -> MemoryAct:
    return MemoryAct(
        uuid=uuid.uuid4().hex,
        act=act,
        at=now(),
        finding=finding.uuid,
        text=finding.text,
        state=finding.state,
        until=finding.until,
        closed_by=finding.closed_by,
        pinned=finding.pinned,
    )


def _check(finding: KeptFinding, act: ActKind, text: str) -> None:
    if act == "edit" and (not text or text == finding.text):
        raise RagforgeError("The text is unchanged.", kind="invalid")
    if finding.state == "forgotten":
        raise RagforgeError(
            "This is forgotten already.", todo="`u` in /memory takes the last act back.", kind="invalid"
        )
    if act == "confirm" and (finding.kind != "open" or finding.state != "open"):
        raise RagforgeError("Only an open point can be confirmed as done.", kind="invalid")
    if act in ("edit", "pin") and not finding.is_current:
        raise RagforgeError(_SETTLED, kind="invalid")


async def undo(store: Store, *, asking: str = "") -> MemoryAct:
    """Take the newest act back that was not, and return it.

    Raises:
        RagforgeError: There is none.
    """
    acts = await store.memory_acts.newest(asking=asking)
    act = next((one for one in acts if not one.undone), None)
    if act is None:
        raise RagforgeError("There is no act on the memory to take back.", kind="invalid")
    if act.act in ("pin", "unpin"):
        await store.findings.pin(act.finding, act.pinned)
    else:
        if act.replaced_by:
            await store.findings.set_state(act.replaced_by, "forgotten", now())
            await store.memory_acts.set_closed_by(act.replaced_by, FORGOTTEN_BY_USER)
        await store.memory_acts.change_texts(act.changed, back=True)
        await store.findings.set_state(act.finding, act.state, act.until)
        await store.memory_acts.set_closed_by(act.finding, act.closed_by)
    undone = msgspec.structs.replace(act, undone=True)
    await store.memory_acts.note(undone)
    return undone


async def _mentions(store: Store, finding: KeptFinding) -> list[ChangedText]:
    """Return how summaries and insights of the finding's conversation, and of its branches, change without it."""
    changes = []
    family = await store.memory_acts.family(finding.conversation_id)
    seen: set[str] = set()
    for conversation_id in family:
        for summary in await store.summaries.of(conversation_id):
            if summary.uuid not in seen and summary.start_turn_index <= finding.turn_index <= summary.end_turn_index:
                seen.add(summary.uuid)
                texts = {
                    "conversation_summary": summary.conversation_summary,
                    "actions_summary": summary.actions_summary,
                }
                changes += _without(finding, "Summary", summary.uuid, texts, {"key_findings": summary.key_findings})
    for insight in (await store.insights.of(family)).values():
        lists = {"key_findings": insight.key_findings, "action_items": insight.action_items}
        changes += _without(finding, "Insight", insight.uuid, {}, lists)
    return changes


def _without(
    finding: KeptFinding, label: str, node: str, texts: dict[str, str], lists: dict[str, list[Finding]]
) -> list[ChangedText]:
    """Return the change of one node; none if it does not mention the finding."""
    before: dict[str, str | list[str]] = {}
    after: dict[str, str | list[str]] = {}
    for name, listed in lists.items():
        kept = [one for one in listed if not _says(one, finding)]
        if len(kept) < len(listed):
            before[name] = [storable(finding_text(one)) for one in listed]
            after[name] = [storable(finding_text(one)) for one in kept]
    for name, text in texts.items():
        if finding.text in text:
            before[name], after[name] = text, text.replace(finding.text, FORGOTTEN_SENTENCE)
    if not before:
        return []
    return [msgspec.convert({"label": label, "uuid": node, "before": before, "after": after}, ChangedText)]


def _says(said: Finding, finding: KeptFinding) -> bool:
    if said.turns and finding.turn_index not in said.turns:
        return False
    return finding_key(said.text) == finding_key(finding.text) or gist(said.text).is_same(gist(finding.text))
