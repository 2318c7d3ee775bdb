"""What answers may cost: before a request would go beyond a limit, the turn stops and the person is asked.

What a request will cost is not known before it; the last one of the same turn, or of the session, is taken for it.
The session is this run of the engine, all its conversations together: what the status line counts. Used by the turn
loop.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from ragforge_tui.conversation.approvals import Approvals
from ragforge_tui.errors import RagforgeError
from ragforge_tui.events import CostLimitReached, CostScope, Event, Notice
from ragforge_tui.models import Usage
from ragforge_tui.text import dollars

Emit = Callable[[Event], None]

SETTINGS: dict[CostScope, str] = {"turn": "model.max_cost", "session": "model.max_session_cost"}


class CostStopped(RagforgeError):
    """The turn was stopped because its next request would have gone beyond a limit, and nobody was there to ask."""


class CostDeclined(Exception):
    """The person was asked and does not want the request: they stopped the turn, nothing failed."""


class Limit:
    """A limit and what was spent under it.

    Args:
        dollars: None: there is none.
    """

    def __init__(self, dollars: float | None) -> None:
        self.step = dollars
        self.dollars = dollars
        self.spent = 0.0
        self.last = 0.0

    @property
    def reached(self) -> bool:
        """Whether one more request like the last one would go beyond it."""
        return self.dollars is not None and self.spent + self.last > self.dollars

    @property
    def raised(self) -> float:
        """The next higher limit: as many steps of the first one as hold what is spent and one more request."""
        step = self.step or 0.0
        return max(self.dollars or 0.0, math.ceil((self.spent + self.last) / step) * step) if step else 0.0

    def raise_(self) -> None:
        """Let the next higher limit hold."""
        self.dollars = self.raised

    def note(self, cost: float) -> None:
        """A request was paid for."""
        self.spent += cost
        self.last = cost


class SessionBudget:
    """What all turns of an engine may cost, and what each may."""

    def __init__(self, turn: float | None, session: float | None) -> None:
        self.turn_limit = turn
        self.session = Limit(session)
        self.unpriced = False

    @property
    def limited(self) -> bool:
        """Whether there is any limit."""
        return self.turn_limit is not None or self.session.dollars is not None


class TurnBudget:
    """Watches over one turn."""

    def __init__(
        self, budget: SessionBudget, approvals: Approvals, emit: Emit, *, conversation_id: str, turn_index: int
    ) -> None:
        self._budget = budget
        self._approvals = approvals
        self._emit = emit
        self._conversation_id = conversation_id
        self._turn_index = turn_index
        self._turn = Limit(budget.turn_limit)

    async def before_request(self) -> None:
        """Ask the person when the next request would go beyond a limit.

        Raises:
            CostDeclined: They do not want it.
            CostStopped: Nobody is there to be asked.
        """
        limits: tuple[tuple[CostScope, Limit], ...] = (("turn", self._turn), ("session", self._budget.session))
        for scope, limit in limits:
            if limit.reached:
                await self._ask(scope, limit)

    async def _ask(self, scope: CostScope, limit: Limit) -> None:
        def question(approval_id: str) -> CostLimitReached:
            return CostLimitReached(
                conversation_id=self._conversation_id,
                turn_index=self._turn_index,
                approval_id=approval_id,
                scope=scope,
                limit=limit.dollars or 0.0,
                spent=limit.spent,
                raised=limit.raised,
            )

        decision = await self._approvals.ask_cost(question, self._emit)
        if decision == "session":
            if scope == "turn":
                # Turns to come get it too: it was asked for the session, not for this turn.
                self._budget.turn_limit = limit.raised
            limit.raise_()
        elif decision != "once":
            if self._approvals.attended:
                raise CostDeclined
            what = "this turn" if scope == "turn" else "this session"
            raise CostStopped(
                f"Stopped before a request that would go beyond {SETTINGS[scope]} ({dollars(limit.dollars or 0.0)}): "
                f"{dollars(limit.spent)} was spent in {what}.",
                kept="What had come is stored.",
                todo=f"/retry asks again; a higher {SETTINGS[scope]} lets it go on.",
                kind="max_cost",
            )

    def note(self, usage: Usage | None, model: str) -> None:
        """Count a request that was made."""
        if usage is None:
            return
        if usage.cost_usd is None:
            self._say_unpriced(usage, model)
            return
        self._turn.note(usage.cost_usd)
        self._budget.session.note(usage.cost_usd)

    def _say_unpriced(self, usage: Usage, model: str) -> None:
        if self._budget.limited and not self._budget.unpriced and usage.input_tokens + usage.output_tokens:
            self._budget.unpriced = True
            text = f"What {model} costs is not known, so model.max_cost and model.max_session_cost cannot be kept."
            self._emit(Notice(text=text, level="warning", conversation_id=self._conversation_id))
