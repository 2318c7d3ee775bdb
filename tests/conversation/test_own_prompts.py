"""Skills and own commands: named in the system message, read when needed, and the project's only after consent."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from ragforge_tui.conversation import ConversationAgent
from ragforge_tui.conversation.own_prompts import OwnPrompts
from ragforge_tui.settings.schema import Loaded
from ragforge_tui.shared.events import Event, Notice, OwnPromptsFound, TrustRequested
from ragforge_tui.shared.prompts import OwnPrompt, message_of
from ragforge_tui.tools.skills import LISTED_CHARS, Found, find_commands, find_skills, listed
from tests.support.model_script import Script

SKILL = """\
---
name: translate
description: How texts of this shop are translated.
allowed-tools: Read
---
# Translate
Say "Moin" for hello. See reference/words.md.
"""


@pytest.fixture
def own(loaded: Loaded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Loaded:
    """Settings with a skill in the home folder and a command in the config folder, and a project's skill."""
    home, config = tmp_path / "home", tmp_path / "config"
    monkeypatch.setenv("HOME", str(home))
    write(home / ".agents/skills/translate/SKILL.md", SKILL)
    write(home / ".agents/skills/translate/reference/words.md", "hello = Moin")
    write(home / ".agents/skills/nameless/SKILL.md", "no description")
    write(config / "commands/review.md", "---\ndescription: Review a file\n---\nReview $1 as $2.")
    write(project_skill(loaded), "---\nname: release\ndescription: How a release is made.\n---\nTag it.")
    write(Path(loaded.workspace, ".agents/commands/ship.md"), "Ship it.")
    return msgspec.structs.replace(loaded, paths=msgspec.structs.replace(loaded.paths, config=str(config)))


def write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


def project_skill(loaded: Loaded) -> Path:
    return Path(loaded.workspace, ".agents/skills/release/SKILL.md")


def answering(agent: ConversationAgent, *, trust: bool) -> list[Event]:
    seen: list[Event] = []

    def on_event(event: Event) -> None:
        seen.append(event)
        if isinstance(event, TrustRequested):
            asyncio.get_running_loop().call_soon(agent.services.project.answer, event.root, trust)

    agent.services.events.listen(on_event)
    return seen


async def test_a_conversation_reads_a_skill_and_is_resumed(own: Loaded, server: Script) -> None:
    server.script(
        [
            {"tool_calls": [{"name": "read_skill", "arguments": {"name": "translate"}}]},
            {"tool_calls": [{"name": "read_skill", "arguments": {"name": "translate", "file": "reference/words.md"}}]},
            {"tool_calls": [{"name": "read_skill", "arguments": {"name": "translate", "file": "../../../x"}}]},
            {"text": "Moin"},
            {"text": "Tschüss"},
        ]
    )
    async with ConversationAgent(own) as agent:
        seen = answering(agent, trust=True)
        conversation = await agent.create_conversation()
        assert (await conversation.send_message("Translate hello.")).content == "Moin"
        await conversation.memory.settle()
    system = server.chats()[0]["messages"][0]["content"]
    assert "- translate: How texts of this shop are translated." in system and "Moin" not in system
    assert "release" not in system, "no one was there to allow the project's"
    notices = " ".join(event.text for event in seen if isinstance(event, Notice))
    assert "nameless is not used: its SKILL.md has no description" in notices
    assert ".agents/skills/release/SKILL.md" in notices
    results = [one["content"] for one in server.chats()[3]["messages"] if one["role"] == "tool"]
    assert results[0].startswith("# Translate") and "reference/words.md" in results[0]
    assert results[1] == "hello = Moin" and "not in the skill's folder" in results[2]
    async with ConversationAgent(own) as agent:
        resumed = await agent.load_conversation(conversation.record.uuid)
        assert (await resumed.send_message("And goodbye?")).content == "Tschüss"
    assert server.chats()[-1]["messages"][0]["content"] == system


async def test_a_projects_are_asked_about_once_for_each_text(own: Loaded, server: Script) -> None:
    server.script([{"text": str(number)} for number in range(3)])

    async def session(*, trust: bool) -> tuple[str, list[Event]]:
        async with ConversationAgent(own, interactive=True) as agent:
            seen = answering(agent, trust=trust)
            await (await agent.create_conversation()).send_message("Hello.")
        return server.chats()[-1]["messages"][0]["content"], seen

    system, seen = await session(trust=True)
    assert "- release: How a release is made." in system
    (question,) = [event for event in seen if isinstance(event, TrustRequested)]
    assert "Tag it." in question.text and ".agents/commands/ship.md" in question.files
    last = [event for event in seen if isinstance(event, OwnPromptsFound)][-1]
    assert {one.name for one in last.prompts} == {"translate", "release", "review", "ship"}
    system, seen = await session(trust=False)
    assert "- release" in system and not any(isinstance(event, TrustRequested) for event in seen)
    write(project_skill(own), "---\nname: release\ndescription: Other words.\n---\nPush it.")
    system, seen = await session(trust=False)
    assert any(isinstance(event, TrustRequested) for event in seen) and "Other words" not in system


def test_what_a_command_sends() -> None:
    def sent(text: str, arguments: str) -> str:
        command = OwnPrompt(kind="command", name="x", description="", origin="own", text=text)
        return message_of(command, arguments)

    assert sent("Review $1 as $2.", '"a b.py" editor') == "Review a b.py as editor."
    assert sent("All: $ARGUMENTS; $3", "x $1 'y") == "All: x $1 'y; 'y"
    assert sent("Costs $12.", "now") == "Costs $12.\n\nnow"
    skill = OwnPrompt(kind="skill", name="translate", description="", origin="own")
    assert "skill translate" in message_of(skill, "hello") and message_of(skill, "hello").endswith("\n\nhello")


def test_files_that_are_no_skills_are_told_and_the_list_is_bounded(tmp_path: Path) -> None:
    write(tmp_path / "s/bad/SKILL.md", "---\ndescription:\n---\n")
    write(tmp_path / "s/evil/SKILL.md", "---\nname: a/b\ndescription: x\n---\n")
    write(tmp_path / "outside.md", "---\ndescription: x\n---\nsecret")
    (tmp_path / "c").mkdir()
    (tmp_path / "c/link.md").symlink_to(tmp_path / "outside.md")
    problems: list[str] = []
    assert find_skills(tmp_path / "s", project=True, problems=problems) == []
    assert find_commands(tmp_path / "c", project=True, problems=problems) == []
    assert [sentence.split()[1:3] for sentence in problems] == [
        ["skill", "bad"],
        ["skill", "evil"],
        ["command", "link"],
    ]
    many = [
        Found(
            prompt=OwnPrompt(kind="skill", name=f"s{number}", description="d" * 1000, origin="own"),
            file=tmp_path,
            whole="",
            body="",
            hidden=number == 0,
        )
        for number in range(20)
    ]
    text = listed(many)
    assert len(text) < LISTED_CHARS + 200 and "more" in text and "- s0:" not in text


@pytest.mark.parametrize(("target", "used"), [("../.claude/skills", True), ("../../elsewhere", False)])
def test_a_projects_folder_of_skills_may_be_a_link_within_it(tmp_path: Path, target: str, used: bool) -> None:
    workspace = tmp_path / "project"
    for folder in (workspace / ".claude/skills", tmp_path / "elsewhere"):
        write(folder / "translate" / "SKILL.md", SKILL)
    (workspace / ".agents").mkdir()
    (workspace / ".agents/skills").symlink_to(target)
    prompts = OwnPrompts(workspace, tmp_path, cast(Any, None), cast(Any, None), lambda _: None)
    _, project, problems = prompts._find()
    assert [one.file.relative_to(workspace).as_posix() for one in project] == (
        [".claude/skills/translate/SKILL.md"] if used else []
    )
    assert problems == ([] if used else [".agents/skills is not used: it is a link out of the project."])
