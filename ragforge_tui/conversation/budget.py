"""Cost limits: before a request would exceed a limit, the turn pauses and the user is asked.

The cost of a request is unknown beforehand, so the last one of the same turn or session serves as the estimate. A
session is one run of the engine with all its conversations, as in the status line. Used by the turn loop.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from ragforge_tui.conversation.approvals.pending import Approvals
from ragforge_tui.shared.errors import RagforgeError
from ragforge_tui.shared.events import CostLimitReached, CostScope, Event, Notice
from ragforge_tui.shared.formatting import dollars
from ragforge_tui.shared.records import Turn, Usage

Emit = Callable[[Event], None]

SETTINGS: dict[CostScope, str] = {"turn": "model.max_cost", "session": "model.max_session_cost"}


class CostStopped(RagforgeError):
    """The next request would have exceeded a limit, and no user was available to ask."""


class CostDeclined(Exception):
    """The user declined the request: they stopped the turn, nothing failed."""


class Limit:
    """A cost limit and the amount spent under it.

    Args:
        dollars: The limit, None for no limit.
    """

    def __init__(self, dollars: float | None) -> None:
        self.step = dollars
        self.dollars = dollars
        self.spent = 0.0
        self.last = 0.0

    @property
    def reached(self) -> bool:
        """Return whether another request like the last one would exceed the limit."""
        return self.dollars is not None and self.spent + self.last > self.dollars

    @property
    def raised(self) -> float:
        """Return the next limit: the multiple of the first one that covers the amount spent and one more request."""
        step = self.step or 0.0
        return max(self.dollars or 0.0, math.ceil((self.spent + self.last) / step) * step) if step else 0.0

    def raise_(self) -> None:
        self.dollars = self.raised

    def note(self, cost: float) -> None:
        """Add the cost of a request."""
        self.spent += cost
        self.last = cost


class SessionBudget:
    """Cost limits of an engine: for all turns together and for each one."""

    def __init__(self, turn: float | None, session: float | None) -> None:
        self.turn_limit = turn
        self.session = Limit(session)
        self.unpriced = False

    @property
    def limited(self) -> bool:
        return self.turn_limit is not None or self.session.dollars is not None


class TurnBudget:
    """Cost check of one turn."""

    def __init__(self, budget: SessionBudget, approvals: Approvals, emit: Emit, turn: Turn) -> None:
        self._budget = budget
        self._approvals = approvals
        self._emit = emit
        self._conversation_id = turn.messages[0].conversation_id
        self._of = turn
        self._turn = Limit(budget.turn_limit)

    async def before_request(self) -> None:
        """Ask the user if the next request would exceed a limit.

        Raises:
            CostDeclined: The user declined.
            CostStopped: No user is available to ask.
        """
        limits: tuple[tuple[CostScope, Limit], ...] = (("turn", self._turn), ("session", self._budget.session))
        for scope, limit in limits:
            if limit.reached:
                await self._ask(scope, limit)

    async def _ask(self, scope: CostScope, limit: Limit) -> None:
        def question(approval_id: str) -> CostLimitReached:
            return CostLimitReached(
                conversation_id=self._conversation_id,
                turn_index=self._of.turn_index,
                approval_id=approval_id,
                scope=scope,
                limit=limit.dollars or 0.0,
                spent=limit.spent,
                raised=limit.raised,
            )

        decision = await self._approvals.ask_cost(question, self._emit)
        if decision == "session":
            if scope == "turn":
                # Later turns get the higher limit too: the user raised it for the session.
                self._budget.turn_limit = limit.raised
            limit.raise_()
        elif decision != "once":
            if self._approvals.attended:
                raise CostDeclined
            what = "this turn" if scope == "turn" else "this session"
            raise CostStopped(
                f"Stopped: the next request would exceed {SETTINGS[scope]} ({dollars(limit.dollars or 0.0)}); "
                f"{what} has cost {dollars(limit.spent)}.",
                kept="The partial answer is stored.",
                todo=f"Use /retry to ask again; a higher {SETTINGS[scope]} lets it continue.",
                kind="max_cost",
            )

    def note_helper(self, usage: Usage) -> bool:
        """Add the cost of a helper's request to the turn; its own budget adds it to the session.

        Returns:
            Whether another request like it would exceed the turn's limit.
        """
        self._turn.note(usage.cost_usd or 0.0)
        return self._turn.reached

    def note(self, usage: Usage | None, model: str) -> None:
        """Add the cost of a request that was made."""
        if usage is None:
            return
        if usage.cost_usd is None:
            self._warn_unpriced(usage, model)
            return
        self._turn.note(usage.cost_usd)
        self._budget.session.note(usage.cost_usd)

    def _warn_unpriced(self, usage: Usage, model: str) -> None:
        if self._budget.limited and not self._budget.unpriced and usage.input_tokens + usage.output_tokens:
            self._budget.unpriced = True
            text = f"The price of {model} is unknown, so model.max_cost and model.max_session_cost have no effect."
            self._emit(Notice(text=text, level="warning", conversation_id=self._conversation_id))
