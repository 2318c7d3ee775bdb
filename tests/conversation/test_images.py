"""Images that a message names: sent to models that take them, stored with the message, there again after resuming."""

from __future__ import annotations

import base64
import shutil
import struct
from pathlib import Path
from typing import Any

import pytest

from ragforge_tui.conversation import ConversationAgent
from ragforge_tui.conversation.turn.attached import attached_files
from ragforge_tui.conversation.turn.images import LOST, MOST_BYTES, MOST_IMAGES, UNSEEN
from ragforge_tui.engine.in_process import InProcessEngine
from ragforge_tui.export.markdown import to_markdown
from ragforge_tui.llm import LiteLLMModel, ModelChoice
from ragforge_tui.settings.schema import Loaded, ModelSettings, ToolSettings
from ragforge_tui.shared.events import Notice
from ragforge_tui.shared.images import IMAGE_TOKENS, image_lines
from ragforge_tui.shared.requests.memory import FetchSent
from ragforge_tui.shared.requests.sessions import ExportConversation
from ragforge_tui.tools.registry import Toolbox
from tests.conftest import ONE_BACKEND
from tests.support.agents import with_model
from tests.support.model_script import Script
from tests.support.openai_server import OpenAIServer

HEAD = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"
SCREEN = HEAD + struct.pack(">II", 1200, 800) + b"\x08\x06" + bytes(300)
OTHER = HEAD + struct.pack(">II", 10, 20) + b"\x08\x06" + bytes(300)
SHOWN = "[image screen.png, 1200x800, 326 B]"


def images_of(message: dict[str, Any]) -> list[bytes]:
    """The images of a message as a server gets them."""
    parts = message["content"] if isinstance(message["content"], list) else []
    urls = [part["image_url"]["url"] for part in parts if part["type"] == "image_url"]
    return [base64.b64decode(url.removeprefix("data:image/png;base64,")) for url in urls]


def text_of(message: dict[str, Any]) -> str:
    content = message["content"]
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


async def test_an_image_is_sent_resumed_and_exported(loaded: Loaded, server: Script) -> None:
    path = Path(loaded.workspace) / "screen.png"
    path.write_bytes(SCREEN)
    read = {"name": "read_file", "arguments": {"path": "greeting.py"}}
    async with ConversationAgent(loaded, approve_all=True) as agent:
        conversation = await agent.create_conversation()
        server.script([{"tool_calls": [read]}, {"text": "A screen."}])
        events = [event async for event in conversation.stream("What is on @screen.png?")]
        assert [event.text for event in events if isinstance(event, Notice)] == [
            "With the message: image screen.png, 1200x800, 326 B."
        ]
        first, second = (chat["messages"] for chat in server.chats())
        asked = first[-1]
        assert images_of(asked) == [SCREEN] and text_of(asked).endswith("What is on @screen.png?")
        assert SHOWN in text_of(asked) and "stored as" not in text_of(asked)
        assert [images_of(message) for message in second if message["role"] == "user"] == [[SCREEN]]
        (turn,) = await conversation.get_history()
        (line,) = image_lines(turn.messages[0].note)
        path.unlink()
    engine = InProcessEngine(loaded)
    try:
        conversation = await engine.agent.load_conversation(conversation.record.uuid)
        server.script([{"text": "Still."}, {"text": "Gone."}])
        await conversation.send_message("And now?")
        assert [images_of(m) for m in server.chats()[-1]["messages"] if m["role"] == "user"] == [[SCREEN], []]
        sent = await engine.request(FetchSent(conversation_id=conversation.record.uuid, turn_index=1))
        note = next(section for section in sent.record.sections if section.name == "note")
        assert sent.record.verified and note.tokens > IMAGE_TOKENS
        export = await engine.request(ExportConversation(ref=conversation.record.uuid))
        assert "*Image: screen.png, 1200x800, 326 B*" in to_markdown(export)
        assert line.digest in export.turns[0].messages[0].note
        shutil.rmtree(Path(loaded.paths.data) / "undo" / line.digest[:2])
        await conversation.send_message("And later?")
        later = [message for message in server.chats()[-1]["messages"] if message["role"] == "user"]
        assert not any(map(images_of, later)) and f"{SHOWN} {LOST}" in text_of(later[0])
    finally:
        await engine.close()


@ONE_BACKEND
async def test_a_model_that_sees_no_images_gets_words_and_the_user_is_told_once(loaded: Loaded, server: Script) -> None:
    (Path(loaded.workspace) / "screen.png").write_bytes(SCREEN)
    async with ConversationAgent(with_model(loaded, images="no"), approve_all=True) as agent:
        conversation = await agent.create_conversation()
        server.script([{"text": "No."}, {"text": "Neither."}])
        events = [event async for event in conversation.stream("What is on @screen.png?")]
        events += [event async for event in conversation.stream("And on @screen.png?")]
    asked = server.chats()[-1]["messages"]
    assert not any(map(images_of, asked)) and text_of(asked[-1]).count(f"{SHOWN} {UNSEEN}") == 1
    told = [event.text for event in events if isinstance(event, Notice) and event.level == "warning"]
    assert told == [
        "openai/scripted cannot see images: it is told their names only. If it can: /settings model.images yes"
    ]


@pytest.mark.http
@ONE_BACKEND
async def test_a_server_that_refuses_images_is_asked_without(loaded: Loaded, server: OpenAIServer) -> None:
    (Path(loaded.workspace) / "screen.png").write_bytes(SCREEN)
    words = "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj"
    async with ConversationAgent(loaded, approve_all=True) as agent:
        conversation = await agent.create_conversation()
        server.script([{"status": 400, "message": words}, {"text": "I see none."}, {"text": "Still none."}])
        events = [event async for event in conversation.stream("What is on @screen.png?")]
        events += [event async for event in conversation.stream("Look again.")]
    refused, again, later = (chat["messages"] for chat in server.chats())
    assert images_of(refused[-1]) == [SCREEN]
    assert not any(map(images_of, [*again, *later])) and "sent without them" in text_of(again[-1])
    told = [event.text for event in events if isinstance(event, Notice) and event.level == "warning"]
    assert told == ["The server of openai/scripted refuses the image screen.png: it was left out."]


@pytest.fixture
def box(tmp_path: Path) -> Toolbox:
    folder = tmp_path / "workspace"
    folder.mkdir()
    (folder / "screen.png").write_bytes(SCREEN)
    (folder / "big.png").write_bytes(SCREEN + bytes(MOST_BYTES))
    (folder / "text.png").write_text("no image\n")
    (tmp_path / "my shot.PNG").write_bytes(OTHER)
    return Toolbox(folder, ToolSettings(), undo_dir=tmp_path / "undo", state_dir=tmp_path / "state")


async def test_only_images_that_the_user_names_are_read(box: Toolbox, tmp_path: Path) -> None:
    other = "my shot.PNG, 10x20, 326 B"
    for message, images in [
        ("@screen.png, and @screen.png again", ("screen.png, 1200x800, 326 B",)),
        (f'@"{tmp_path}/my shot.PNG"', (other,)),
        (f"'{tmp_path}/my shot.PNG' what is it?", (other,)),
        (f"{tmp_path}/my\\ shot.PNG".replace("'", ""), (other,)),
        ("screen.png is a file, as is https://example.org/screen.png", ()),
        (f"{tmp_path}/workspace/text.png and @text.png", ()),
    ]:
        attached = await attached_files(box, message, 100_000)
        assert attached.images == images, message
        assert not attached.left_out
    helper = await attached_files(box, f'@"{tmp_path}/my shot.PNG" @screen.png', 100_000, anywhere=False)
    assert helper.images == ("screen.png, 1200x800, 326 B",)


@pytest.mark.parametrize("size", [999, 4_321, 54_321, 1_234_567])
async def test_an_image_of_any_size_is_one_in_the_text_of_the_message(box: Toolbox, size: int) -> None:
    (box.workspace.root / "screen.png").write_bytes(SCREEN + bytes(size - len(SCREEN)))
    attached = await attached_files(box, "@screen.png", 100_000)
    assert [line.shown for line in image_lines(attached.text)] == list(attached.images) != []


async def test_what_is_too_large_or_too_much_is_said(box: Toolbox) -> None:
    attached = await attached_files(box, "@big.png", 100_000)
    assert attached.left_out == ("big.png is an image of more than 5 MB",) and not attached.images
    for number in range(MOST_IMAGES + 1):
        (box.workspace.root / f"{number}.png").write_bytes(SCREEN + bytes([number]))
    attached = await attached_files(box, " ".join(f"@{n}.png" for n in range(MOST_IMAGES + 1)), 100_000)
    assert len(attached.images) == MOST_IMAGES
    assert attached.left_out == ("8.png is one image too many, at most 8 are sent",)


@pytest.mark.parametrize(
    ("name", "api_base", "images", "takes"),
    [
        ("openai/scripted", "http://127.0.0.1:8080/v1", "auto", True),
        ("openai/scripted", "http://127.0.0.1:8080/v1", "no", False),
        ("openai/gpt-4o", "", "auto", True),
        ("openai/gpt-3.5-turbo", "", "auto", False),
        ("openai/gpt-3.5-turbo", "", "yes", True),
        ("ollama/no-such-model", "", "auto", False),
    ],
)
def test_the_setting_the_table_and_the_address_tell_whether_a_model_sees(
    name: str, api_base: str, images: Any, takes: bool
) -> None:
    choice = ModelChoice(name=name, origin="test", destination="a server", api_base=api_base)
    assert LiteLLMModel(choice, ModelSettings(images=images)).takes_images is takes
