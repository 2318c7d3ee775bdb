"""Files that a message names with an @: sent with it, stored with the turn, counted as read."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragforge_tui.conversation import ConversationAgent
from ragforge_tui.conversation.turn.attached import TITLE, attached_files
from ragforge_tui.engine.in_process import InProcessEngine
from ragforge_tui.export.context import context_text
from ragforge_tui.settings.schema import Loaded, ToolSettings
from ragforge_tui.shared.events import Notice
from ragforge_tui.shared.requests.memory import FetchSent
from ragforge_tui.tools.registry import Toolbox
from tests.support.model_script import Script

CODE = "".join(f"value_{number} = {number}\n" for number in range(1, 41))


@pytest.fixture
def box(tmp_path: Path) -> Toolbox:
    folder = tmp_path / "workspace"
    (folder / "src" / "a folder").mkdir(parents=True)
    (folder / "src" / "app.py").write_text(CODE)
    (folder / "src" / "a folder" / "b c.py").write_text("x = 1\n")
    (folder / "big.txt").write_text("line\n" * 5_000)
    (folder / "logo.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0")
    (folder / ".env").write_text("PASSWORD=tulip\n")
    return Toolbox(folder, ToolSettings(), undo_dir=tmp_path / "undo", state_dir=tmp_path / "state")


@pytest.mark.parametrize(
    ("message", "sent", "not_sent"),
    [
        ("Look at @src/app.py.", ["src/app.py:\n     1\tvalue_1 = 1\n", "    40\tvalue_40 = 40\n"], []),
        ("@src/app.py:10-12, why?", ["    10\tvalue_10", "    12\tvalue_12", "[Lines 10 to 12 of 40.]"], ["value_13"]),
        ("@src/app.py:7", ["     7\tvalue_7 = 7"], ["value_8"]),
        ('and @"src/a folder/b c.py":1-1', ["src/a folder/b c.py:\n     1\tx = 1"], []),
        ("what is in @src/ ?", ["src/, a folder:\na folder/\napp.py ("], ["value_1"]),
        ("@big.txt", ["big.txt has 5 000 lines (25 kB); read it in parts, or search it."], ["line\n"]),
        ("@big.txt:4999-5000", ["  4999\tline\n  5000\tline"], ["  4998"]),
        ("@logo.png", ["logo.png is binary (image/png, 11 B); it cannot be read as text."], []),
        ("@.env", [".env may hold keys or passwords; read_file asks the user for it."], ["tulip"]),
    ],
)
async def test_what_is_named_is_sent_as_what_it_is(
    box: Toolbox, message: str, sent: list[str], not_sent: list[str]
) -> None:
    text = (await attached_files(box, message, 100_000)).text
    assert text.startswith(TITLE)
    assert all(each in text for each in sent), text
    assert not any(each in text for each in not_sent), text


async def test_what_names_no_file_or_has_no_room_is_not_sent(box: Toolbox) -> None:
    for message in ("mail ada@src/app.py", "@nobody", "@ ,", "@../outside", "a decorator @cached"):
        assert (await attached_files(box, message, 100_000)).text == ""
    small = await attached_files(box, "@src/app.py @src/app.py:1-3", 300)
    assert "no room for it here" in small.text and "     3\tvalue_3" in small.text
    assert small.left_out == ("src/app.py has 40 lines (542 B)",)


async def test_files_are_sent_once_kept_with_the_turn_and_known_as_read(loaded: Loaded, server: Script) -> None:
    path = Path(loaded.workspace) / "app.py"
    path.write_text(CODE)
    (path.parent / "big.txt").write_text("line\n" * 5_000)
    read = {"name": "read_file", "arguments": {"path": "app.py"}}
    async with ConversationAgent(loaded, approve_all=True) as agent:
        conversation = await agent.create_conversation()
        server.script([{"tool_calls": [read]}, {"text": "Forty."}])
        events = [event async for event in conversation.stream("How many values has @app.py, and @big.txt?")]
        assert [event.text for event in events if isinstance(event, Notice)] == [
            "Not sent with the message: big.txt has 5 000 lines (25 kB)."
        ]
        first, second = server.chats()
        asked = first["messages"][-1]["content"]
        assert "    40\tvalue_40 = 40" in asked and asked.endswith("How many values has @app.py, and @big.txt?")
        assert second["messages"][-1]["content"].startswith("Unchanged since the message that names it")
        (turn,) = await conversation.get_history()
        assert turn.messages[0].content == "How many values has @app.py, and @big.txt?"
        assert "value_40" in turn.messages[0].note
        path.write_text(CODE.replace("value_7 = 7", "value_7 = 8"))
    engine = InProcessEngine(loaded)
    try:
        conversation = await engine.agent.load_conversation(conversation.record.uuid)
        server.script([{"tool_calls": [read]}, {"text": "Yes."}])
        await conversation.send_message("And now?")
        resumed = server.chats()[-1]["messages"]
        assert sum("    40\tvalue_40 = 40" in (m["content"] or "") for m in resumed if m["role"] == "user") == 1
        assert "value_7 = 8" in resumed[-1]["content"], "what changed since is sent again"
        sent = await engine.request(FetchSent(conversation_id=conversation.record.uuid, turn_index=1))
        assert sent.record.verified and "    40\tvalue_40 = 40" in context_text(sent.record)
    finally:
        await engine.close()
