"""AGENTS.md is found from the repository's root down and used only when it was allowed."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from ragforge_tui.conversation.trust.instructions import InstructionTrust, TrustBook, find_instructions
from ragforge_tui.graph import GraphTarget
from ragforge_tui.settings.schema import Paths
from ragforge_tui.shared.events import Event, Notice, TrustRequested
from tests.conftest import EMBEDDED
from tests.support.waiting import until


@pytest.fixture
def graph_target(embedded_paths: Paths) -> GraphTarget:
    """The embedded graph alone: no dialect can change what is trusted."""
    return EMBEDDED


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "repo"
    (root / ".git").mkdir(parents=True)
    (root / "pkg" / "deep").mkdir(parents=True)
    (root / "AGENTS.md").write_text("root rules", encoding="utf-8")
    (root / "CLAUDE.md").write_text("not read: AGENTS.md is there", encoding="utf-8")
    (root / "pkg" / "CLAUDE.md").write_text("package rules", encoding="utf-8")
    return root


def test_files_come_from_the_root_down(repository: Path) -> None:
    found = find_instructions(repository / "pkg" / "deep")
    assert found is not None
    assert found.root == str(repository)
    assert found.files == [("AGENTS.md", "root rules"), ("pkg/CLAUDE.md", "package rules")]


def test_nothing_is_found_where_nothing_is(tmp_path: Path) -> None:
    assert find_instructions(tmp_path) is None


def test_a_link_out_of_the_repository_is_not_followed(repository: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere.md").write_text("foreign", encoding="utf-8")
    (repository / "AGENTS.md").unlink()
    (repository / "AGENTS.md").symlink_to(tmp_path / "elsewhere.md")
    found = find_instructions(repository)
    assert found is None


def test_an_answer_holds_until_the_files_change(repository: Path, tmp_path: Path) -> None:
    book = TrustBook(tmp_path / "state" / "trust.json")
    found = find_instructions(repository)
    assert found is not None
    assert book.answer(found) is None
    book.remember(found, True)
    assert TrustBook(tmp_path / "state" / "trust.json").answer(found) is True
    (repository / "AGENTS.md").write_text("new rules", encoding="utf-8")
    changed = find_instructions(repository)
    assert changed is not None
    assert book.answer(changed) is None


async def test_the_turn_waits_for_the_answer_and_is_not_asked_twice(repository: Path, tmp_path: Path) -> None:
    events: list[Event] = []
    trust = InstructionTrust(repository, tmp_path / "trust.json", events.append, interactive=True)
    waiting = asyncio.create_task(trust.instructions())
    await until(lambda: events)
    question = events[0]
    assert isinstance(question, TrustRequested)
    assert question.files == ["AGENTS.md"]
    trust.answer(question.root, True)
    assert await waiting == [("AGENTS.md", "root rules")]
    assert await trust.instructions() == [("AGENTS.md", "root rules")]
    assert len(events) == 1


async def test_without_a_person_they_stay_unused(repository: Path, tmp_path: Path) -> None:
    events: list[Event] = []
    trust = InstructionTrust(repository, tmp_path / "trust.json", events.append, interactive=False)
    assert await trust.instructions() == []
    assert await trust.instructions() == []
    assert [type(event) for event in events] == [Notice]
