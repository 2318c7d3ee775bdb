"""The findings of a conversation in one list. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from ragforge_tui.shared.records import Finding, Summary


def gathered_findings(tree: Iterable[Summary]) -> list[Finding]:
    """Return the findings of a conversation, newest first and each once.

    A higher level repeats only the most important ones of its parts, so they come from the lowest level; except for
    open points, which its parts may have settled since.

    Args:
        tree: All summaries, marked with their parents.
    """
    found: dict[str, Finding] = {}
    for summary in sorted(tree, key=lambda one: (-one.end_turn_index, one.level)):
        for finding in summary.key_findings:
            wanted = not summary.parent if finding.kind == "open" else summary.level == 1
            if wanted:
                found.setdefault(finding.text.casefold(), finding)
    return sorted(found.values(), key=lambda finding: -max(finding.turns, default=0))
