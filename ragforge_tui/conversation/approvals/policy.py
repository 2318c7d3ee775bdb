"""Approval policy: a pure decision table on whether a call may run or the user is asked first.

Used by the agent loop, which holds the session's grants and asks the user. It has no other responsibility, so that the
whole policy can be read and tested as one table.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import Literal

from ragforge_tui.conversation.approvals.allowed_commands import covers
from ragforge_tui.tools.base import ApprovalNeed

ApprovalMode = Literal["ask", "edits", "yes"]
Verdict = Literal["run", "ask"]


class ApprovalPolicy:
    """Decision from the need, the session's grants and the mode alone.

    | need                              | mode  | granted    | verdict |
    |-----------------------------------|-------|------------|---------|
    | a command the user always allows  | any   | any        | run     |
    | none                              | any   | any        | run     |
    | any                               | yes   | any        | run     |
    | a write, offered for the session  | edits | any        | run     |
    | offered for the session           | other | its key    | run     |
    | offered for the session           | other | other keys | ask     |
    | not offered for the session       | other | any        | ask     |

    A write is not offered for the session if it goes to a file with secrets, or to one that git runs by itself.
    """

    @staticmethod
    def decide(
        need: ApprovalNeed | None, granted: AbstractSet[str], mode: ApprovalMode, always: Sequence[str] = ()
    ) -> Verdict:
        """Decide on one call; `always` holds the user's patterns of commands."""
        if need is None or mode == "yes":
            return "run"
        if need.kind == "command" and need.command and covers(always, need.command):
            return "run"
        offered = bool(need.session_scope and need.session_key)
        if offered and need.kind == "write" and mode == "edits":
            return "run"
        return "run" if offered and need.session_key in granted else "ask"
