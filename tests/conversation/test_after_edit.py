"""Commands after an edit: run once a reply, told to the model and the user, and part of the edit for undo and blame."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from ragforge_tui.conversation import ConversationAgent
from ragforge_tui.conversation.blame import blame
from ragforge_tui.settings.load import load
from ragforge_tui.settings.schema import Loaded, ToolSettings
from ragforge_tui.shared.errors import ConfigError
from ragforge_tui.shared.events import Event, Notice, ToolCallStarted, TurnCancelled, TurnCompleted
from ragforge_tui.tools.after_edit import command_with, commands_for
from tests.conftest import ONE_BACKEND
from tests.support.agents import with_tools
from tests.support.model_script import Call, Script, Step
from tests.support.waiting import until

SHOUT = "sed -i s/hello/HELLO/ {*.py}"


def notices(seen: list[Event]) -> list[tuple[str, str]]:
    return [(event.text, event.level) for event in seen if isinstance(event, Notice)]


def write(path: str, content: str) -> Call:
    return Call(name="write_file", arguments={"path": path, "content": content})


def results(server: Script) -> list[str]:
    return [message["content"] for message in server.chats()[-1]["messages"] if message["role"] == "tool"]


async def test_a_formatter_runs_once_a_reply_and_its_changes_belong_to_the_turn(loaded: Loaded, server: Script) -> None:
    root = Path(loaded.workspace)
    await asyncio.to_thread(subprocess.run, ["git", "init", "-q"], cwd=root, check=True)
    again = Call(name="edit_file", arguments={"path": "a.py", "old_string": "HELLO", "new_string": "BYE"})
    server.script(
        [
            Step(tool_calls=[write("a.py", "hello a\n"), write("n.txt", "hello n\n"), write("b.py", "x\nhello b\n")]),
            Step(tool_calls=[again]),
            Step(text="Done."),
        ]
    )
    settings = with_tools(loaded, after_edit=[SHOUT, "echo run >> ran; false"])
    async with ConversationAgent(settings, approve="all") as agent:
        conversation = await agent.create_conversation()
        seen = [event async for event in conversation.stream("write them")]
        assert isinstance(seen[-1], TurnCompleted) and seen[-1].text == "Done."
        assert (root / "a.py").read_text() == "BYE a\n", "the formatted content counts as seen"
        assert (root / "b.py").read_text() == "x\nHELLO b\n" and (root / "n.txt").read_text() == "hello n\n"
        assert (root / "ran").read_text() == "run\nrun\n", "once a reply"
        told = f"After the edit: {SHOUT}: ok · echo run >> ran; false: Exit status 1"
        assert notices(seen) == [(told, "warning")] * 2
        first, second, third, fourth = results(server)
        assert "After the edit" not in first + second
        assert "$ sed -i s/hello/HELLO/ a.py b.py\n[Exit status 0.]" in third and "[Exit status 1.]" in third
        assert "They changed a.py:" in third and "+HELLO a" in third
        assert "They changed" not in fourth
        assert all(call.success for call in await conversation.get_tool_calls()), "the edit itself succeeded"
        store = await agent.store()
        lines = (await blame(store, root, "b.py", 0)).lines
        assert [line.turn.turn_index for line in lines if line.turn] == [1]
        await conversation.undo(1)
        await conversation.wait_idle()
        assert not (root / "a.py").exists() and not (root / "b.py").exists()


@ONE_BACKEND
async def test_nothing_runs_without_an_edit_or_for_other_files(loaded: Loaded, server: Script) -> None:
    root = Path(loaded.workspace)
    missing = Call(name="edit_file", arguments={"path": "none.py", "old_string": "a", "new_string": "b"})
    server.script([Step(tool_calls=[missing]), Step(tool_calls=[write("n.txt", "n\n")]), Step(text="Done.")])
    settings = with_tools(loaded, after_edit=["echo {*.py} >> ran"])
    async with ConversationAgent(settings, approve="all") as agent:
        conversation = await agent.create_conversation()
        seen = [event async for event in conversation.stream("try")]
    assert notices(seen) == [] and not (root / "ran").exists()


@ONE_BACKEND
async def test_stopping_a_check_keeps_the_edit(loaded: Loaded, server: Script) -> None:
    server.script([Step(tool_calls=[write("a.py", "a\n")]), Step(text="never")])
    settings = with_tools(loaded, after_edit=["touch began; sleep 600"], command_timeout=900.0)
    async with ConversationAgent(settings, approve="all") as agent:
        conversation = await agent.create_conversation()
        seen: list[Event] = []
        async for event in conversation.stream("write it"):
            seen.append(event)
            if isinstance(event, ToolCallStarted):
                stopping = asyncio.create_task(_stop_once(Path(loaded.workspace, "began"), conversation.cancel))
        await stopping
        (call,) = await conversation.get_tool_calls()
    assert isinstance(seen[-1], TurnCancelled) and call.success is True


async def _stop_once(mark: Path, stop: Callable[[], None]) -> None:
    await until(mark.exists, "the check began")
    stop()


def test_the_nearest_folder_names_the_commands(tmp_path: Path) -> None:
    inner = tmp_path / "work" / "app"
    inner.mkdir(parents=True)
    settings = ToolSettings(
        after_edit=["all"], after_edit_in={str(tmp_path / "work"): ["work"], str(inner): ["app"], "~": ["home"]}
    )
    assert commands_for(settings, inner) == ["app"]
    assert commands_for(settings, tmp_path / "work" / "other") == ["work"]
    assert commands_for(settings, Path("/")) == ["all"]


def test_files_are_quoted_and_chosen_by_name() -> None:
    files = ["src/a b.py", "-x.py", "doc.md", "$(rm).py"]
    assert command_with("fmt {*.py}", files) == "fmt 'src/a b.py' ./-x.py '$(rm).py'"
    assert command_with("lint {files}", ["doc.md"]) == "lint doc.md"
    assert command_with("fmt {*.rs}", files) == ""
    assert command_with("echo {a,b} ${HOME}", ["x"]) == "echo {a,b} ${HOME}"
    assert command_with("pytest", []) == ""


def test_a_project_cannot_name_commands(tmp_path: Path) -> None:
    folder = tmp_path / ".ragforge"
    folder.mkdir()
    for line in ("after_edit: [evil]", "after_edit_in: {/: [evil]}"):
        (folder / "config.yaml").write_text(f"tools:\n  {line}\n")
        with pytest.raises(ConfigError, match="cannot be set here"):
            load(workspace=str(tmp_path))
