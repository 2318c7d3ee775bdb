"""The tree of a conversation's summaries without the graph: ids, ranges, parents, and findings as text.

Pure: `summaries` stores the tree; the memory package plans and reads it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, get_args

import msgspec

from ragforge_tui.graph.store.records import derived
from ragforge_tui.shared.records import Finding, FindingKind, Summary
from ragforge_tui.shared.sanitize import storable

_CITED = re.compile(r"(?<!\s)\s*\[(t\d+(?:,\s*t\d+)*)\]\s*$")
_PATH_SEPARATORS = re.compile(r"[/._-]")
_KINDS = tuple(kind for kind in get_args(FindingKind) if kind)


class TurnSize(msgspec.Struct, frozen=True):
    """The size of a turn's texts.

    Attributes:
        chars: Length of the user's and the assistant's texts, without tool results and superseded answers.
        finished: No more text will be added to it.
        own: The user acted without the model: a command, an undo.
        pasted: How many of the characters nobody typed or answered, such as a pasted log.
    """

    turn_index: int
    chars: int
    finished: bool = True
    own: bool = False
    pasted: int = 0

    @property
    def said(self) -> int:
        """Return the characters that were typed or answered."""
        return self.chars - self.pasted


def summary_uuid(conversation_id: str, level: int, start: int, end: int) -> str:
    """Return the id of the summary of these turns on this level; it is the same whoever writes it."""
    return derived("summary", conversation_id, level, start, end)


def finding_text(finding: Finding) -> str:
    """Return a finding as stored: ``decision: text [t3, t4]``."""
    text = f"{finding.kind}: {finding.text}" if finding.kind else finding.text
    return f"{text} [{', '.join(f't{turn}' for turn in finding.turns)}]" if finding.turns else text


def findings_from(stored: Any) -> list[Finding]:
    """Return stored findings; none of a property that another program wrote."""
    return [finding_from(text) for text in stored if isinstance(text, str)] if isinstance(stored, list) else []


def finding_properties(summary: Summary) -> dict[str, Any]:
    """Return the findings of a summary as stored, and the text by which they and its files are searched."""
    findings = [storable(finding_text(finding)) for finding in summary.key_findings]
    return {
        "key_findings": findings,
        "findings_text": "".join(f"{line}\n" for line in [*findings, *map(_path_words, summary.files_mentioned)]),
    }


def _path_words(path: str) -> str:
    # An index would keep a file's name as one word.
    return _PATH_SEPARATORS.sub(" ", storable(path))


def finding_from(text: str) -> Finding:
    """Parse a finding as stored, or as a model wrote it; without a kind or turns too."""
    kind: FindingKind = next((kind for kind in _KINDS if text.startswith(f"{kind}: ")), "")
    text = text.removeprefix(f"{kind}:") if kind else text
    cited = _CITED.search(text)
    if cited is None:
        return Finding(text=text.strip(), kind=kind)
    turns = [int(turn) for turn in re.findall(r"\d+", cited[1])]
    return Finding(text=text[: cited.start()].strip(), turns=turns, kind=kind)


def text_size(summary: Summary) -> int:
    """Return the number of characters of a summary's texts: both parts and the findings."""
    return (
        len(summary.conversation_summary)
        + len(summary.actions_summary)
        + sum(len(finding.text) for finding in summary.key_findings)
    )


def merged_chain(found: Sequence[Summary], lineage: Sequence[str]) -> list[Summary]:
    """Return those summaries of a branch and its ancestors that form one tree.

    Args:
        found: Of the whole lineage, ancestors' only within the shared turns.
        lineage: Ids, the conversation itself first, then its parent, and so on.
    """
    chosen: list[Summary] = []
    ids: set[str] = set()
    for level in range(1, max((summary.level for summary in found), default=0) + 1):
        chain: list[Summary] = []
        for owner in lineage:
            first = chain[0].start_turn_index if chain else None
            own = sorted(
                (s for s in found if s.level == level and s.conversation_id == owner), key=lambda s: s.start_turn_index
            )
            # One over summaries the branch has replaced by its own does not fit on top of them.
            older = [
                s
                for s in own
                if (first is None or s.end_turn_index < first)
                and ids.issuperset(s.parent_summaries)
                and (level == 1 or s.parent_summaries)
            ]
            chain = [*older, *chain]
        for summary in chain:
            if summary.start_turn_index != (chosen_end(chosen, level) + 1):
                break
            chosen.append(summary)
            ids.add(summary.uuid)
    return chosen


def chosen_end(summaries: Iterable[Summary], level: int) -> int:
    """Return the watermark of a level: the last turn it covers, 0 if it covers none."""
    return max((s.end_turn_index for s in summaries if s.level == level), default=0)


def frontier_marked(summaries: list[Summary]) -> list[Summary]:
    """Set the parent of each summary."""
    parents = {child: summary.uuid for summary in summaries for child in summary.parent_summaries}
    for summary in summaries:
        summary.parent = parents.get(summary.uuid, "")
    return summaries
