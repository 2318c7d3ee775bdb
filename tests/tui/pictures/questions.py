"""States of the questions above the prompt."""

from __future__ import annotations

from typing import Any

import msgspec

from ragforge_tui.shared.events import ApprovalRequested, CostLimitReached, MessageStarted, TrustRequested, TurnStarted
from tests.support.chat_scene import approval
from tests.support.fake_engine import message
from tests.tui.pictures.stage import Stage, State


def wanted(stage: Stage, number: int, **changes: Any) -> ApprovalRequested:
    """An approval that waits for the person."""
    return msgspec.structs.replace(approval(stage.owner, 2), approval_id=f"a{number}", **changes)


def command(stage: Stage, number: int = 2) -> ApprovalRequested:
    """For a command."""
    line = "pytest tests/graph -k retry --maxfail=1 -q && git add -A && git commit -m 'One uuid for all tries'"
    return wanted(
        stage,
        number,
        kind="command",
        question="Run this command?",
        detail=line,
        session_scope="pytest …",
        always=["pytest *"],
    )


def secret(stage: Stage, number: int = 3) -> ApprovalRequested:
    """For a file that may hold secrets."""
    return wanted(
        stage, number, kind="secret", question="Read a file that may hold secrets?", detail=".env", session_scope=""
    )


async def asked(stage: Stage, *events: Any) -> None:
    """The questions are there, the first has the focus."""
    where: dict[str, Any] = {"conversation_id": stage.owner.uuid, "turn_index": 2}
    stage.tell(
        TurnStarted(message=message(stage.owner, 2, "user", "Take the first way, then."), **where),
        MessageStarted(message_id="m-9", persona="Ragnarök", **where),
        *events,
    )
    await stage.until(lambda: stage.app.chat.questions.has_focus, "the question")
    await stage.until(lambda: len(stage.app.chat.questions.waiting) == len(events))


async def diff(stage: Stage) -> None:
    """May a file be changed."""
    await asked(stage, wanted(stage, 1))


async def one_command(stage: Stage) -> None:
    """May a command run."""
    await asked(stage, command(stage))


async def long_command(stage: Stage) -> None:
    """May a command run that has no room, with a comment that is wrapped."""
    comment = "# checks each module by itself, because the whole suite does not fit into memory here"
    lines = [comment, "", "", *(f"pytest tests/part{number:02} -q" for number in range(1, 60)), "git push --force"]
    await asked(stage, msgspec.structs.replace(command(stage), detail="\n".join(lines)))


async def always(stage: Stage) -> None:
    """The pattern is shown before it is saved."""
    await asked(stage, command(stage))
    await stage.press("a")


async def one_secret(stage: Stage) -> None:
    """May a secret be read."""
    await asked(stage, secret(stage))


async def several(stage: Stage) -> None:
    """Three wait; the prompt was gone back to for a moment."""
    await asked(stage, wanted(stage, 1), command(stage), secret(stage))
    await stage.press("tab", *"a draft")


async def no_because(stage: Stage) -> None:
    """No, and why."""
    await asked(stage, command(stage))
    await stage.press("w", *"not before the tests pass")
    await stage.shows("waits for you")


async def cost(stage: Stage) -> None:
    """The next request would go beyond the limit."""
    event = CostLimitReached(
        conversation_id=stage.owner.uuid,
        turn_index=2,
        approval_id="c1",
        scope="session",
        limit=1.0,
        spent=0.98,
        raised=2.0,
    )
    await asked(stage, event)


async def trust(stage: Stage) -> None:
    """Instructions came with the folder."""
    await asked(stage, TrustRequested(root="/w", files=["AGENTS.md"], text="# Rules\n\nAlways use [tabs].\n" * 8))


async def trust_persona(stage: Stage) -> None:
    """A persona came with the folder."""
    text = "<luciform name='Vega' glyph='☾'>\n  Far better ✶\n</luciform>\n"
    await asked(stage, TrustRequested(root="/w", files=["personas/vega.luciform"], text=text, persona="Vega"))


QUESTIONS = (
    State("approval-diff", diff),
    State("approval-command", one_command),
    State("approval-command-long", long_command),
    State("approval-always", always),
    State("approval-secret", one_secret),
    State("approval-several", several),
    State("approval-no-because", no_because),
    State("cost", cost),
    State("trust", trust),
    State("trust-persona", trust_persona),
)
