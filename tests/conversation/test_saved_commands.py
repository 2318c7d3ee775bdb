"""Commands allowed for good: offered with the question, written to the person's own file, in effect at once."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
import pytest

from ragforge_tui.conversation.approvals.allowed_commands import AllowedCommands
from ragforge_tui.conversation.approvals.pending import Approvals
from ragforge_tui.graph import GraphTarget
from ragforge_tui.settings.load import load
from ragforge_tui.settings.schema import Paths
from ragforge_tui.shared.errors import ConfigError
from ragforge_tui.shared.events import ApprovalDecision, ApprovalRequested, Event, Notice
from ragforge_tui.shared.records import ToolCall, now
from ragforge_tui.tools.base import ApprovalNeed
from ragforge_tui.tools.sensitive import Guard
from tests.conftest import EMBEDDED


@pytest.fixture
def graph_target(embedded_paths: Paths) -> GraphTarget:
    """The embedded graph alone: no dialect can change what is allowed."""
    return EMBEDDED


GUARD = Guard(Path("/workspace"), home=Path("/nobody"))
CALL = ToolCall(uuid="c", message_id="m", tool_name="run_command", arguments="{}", timestamp=now())


def need(command: str) -> ApprovalNeed:
    return ApprovalNeed(
        kind="command", question="?", detail=command, session_scope="this", session_key=command, command=command
    )


class Asked:
    """Approvals with somebody who answers each question alike."""

    def __init__(self, allowed: AllowedCommands, decision: ApprovalDecision) -> None:
        self.approvals = Approvals(allowed=allowed)
        self.decision = decision
        self.events: list[Event] = []

    async def __call__(self, command: str) -> bool:
        asked = asyncio.create_task(self.approvals.ask([(need(command), CALL)], "x", 1, self.events.append, mode="ask"))
        seen = len(self.events)
        while not asked.done() and len(self.events) == seen:
            await asyncio.sleep(0.001)
        if isinstance(event := self.events[-1] if self.events else None, ApprovalRequested):
            self.approvals.answer(event.approval_id, self.decision)
        return (await asked)[0][0]

    def requests(self) -> list[ApprovalRequested]:
        return [event for event in self.events if isinstance(event, ApprovalRequested)]


async def test_always_is_written_and_holds_at_once(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text("# mine\ntools:\n  ignore: [dist]  # built\n", encoding="utf-8")
    asked = Asked(AllowedCommands(GUARD, (), str(file)), "always")
    assert await asked("pytest -q tests")
    assert await asked("pytest -x")
    assert await asked("git status && pytest | wc -l"), "asked about: only a part of it is allowed"
    assert await asked("pytest && git status")
    assert [event.always for event in asked.requests()] == [["pytest *"], ["git status", "pytest", "wc *"]]
    notices = [event.text for event in asked.events if isinstance(event, Notice)]
    assert len(notices) == 2 and str(file) in notices[0]
    assert notices[1].startswith("`git status`, `pytest` and `wc *` run without asking from now on")
    text = file.read_text(encoding="utf-8")
    assert "# mine" in text and "# built" in text
    loaded = load(workspace=str(tmp_path), config_file=str(file), env={"RAGFORGE_HOME": str(tmp_path / "home")})
    assert loaded.settings.tools.allow_commands == ["pytest *", "git status", "pytest", "wc *"]
    assert loaded.config_file == str(file)


async def test_a_question_says_why_no_pattern_covers_it_and_hides_nothing(tmp_path: Path) -> None:
    asked = Asked(AllowedCommands(GUARD, ["cat *"]), "no")
    assert not await asked("cat .env")
    assert not await asked("\u0441url x\u200b")
    first, second = asked.requests()
    assert first.question == "? `cat *` does not cover .env, which may hold keys or passwords."
    assert first.always == []
    assert second.detail == "\u0441<U+0441>url x<U+200B>"
    assert second.always == []


async def test_a_file_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text("tools: [", encoding="utf-8")
    asked = Asked(AllowedCommands(GUARD, (), str(file)), "always")
    assert await asked("make")
    assert await asked("make")
    assert len(asked.requests()) == 1
    assert any(isinstance(event, Notice) and event.level == "warning" for event in asked.events)
    assert file.read_text(encoding="utf-8") == "tools: ["


async def test_saved_commands_run_unasked_and_bad_patterns_are_named() -> None:
    allowed = AllowedCommands(GUARD, ["git status", "*"])
    asked = Asked(allowed, "no")
    assert await asked("git status")
    assert not await asked("git push")
    assert ["'*'" in sentence for sentence in allowed.problems()] == [True]


def test_a_projects_file_can_allow_nothing(tmp_path: Path) -> None:
    (tmp_path / ".ragforge").mkdir()
    (tmp_path / ".ragforge" / "config.yaml").write_text("tools:\n  allow_commands: ['rm *']\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="allow_commands"):
        load(workspace=str(tmp_path), env={"RAGFORGE_HOME": str(tmp_path / "home")})


def test_the_question_goes_over_the_pipe() -> None:
    event = ApprovalRequested(
        conversation_id="x", turn_index=1, approval_id="a", call=CALL, kind="command", question="?", always=["pytest *"]
    )
    assert msgspec.json.decode(msgspec.json.encode(event), type=ApprovalRequested).always == ["pytest *"]
