"""Connecting a provider through the engine: what is checked, stored and used, and where no key is ever found."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from ragforge_tui.engine.in_process import InProcessEngine
from ragforge_tui.llm import Connections
from ragforge_tui.settings.schema import Loaded, ModelSettings
from ragforge_tui.shared.errors import RagforgeError
from ragforge_tui.shared.events import TurnEnd
from ragforge_tui.shared.requests.models import CancelConnect, ConnectProvider, DisconnectProvider, ListProviders
from ragforge_tui.shared.requests.turns import CreateConversation, SendMessage
from ragforge_tui.shared.requests.work import ListModels, SetModel
from tests.conftest import ONE_BACKEND
from tests.support.openai_server import OpenAIServer
from tests.support.waiting import until

SECRET = "hunter2-of-no-known-shape"


@pytest.fixture
def unconfigured(loaded: Loaded) -> Iterator[Loaded]:
    """Settings without a model; what is stored goes with the test."""
    settings = msgspec.structs.replace(loaded.settings, model=ModelSettings(retries=0))
    yield msgspec.structs.replace(loaded, settings=settings)
    Connections(loaded.paths).file.unlink(missing_ok=True)


async def answer(engine: InProcessEngine, text: str) -> str:
    """What the model answers to a message in a new conversation."""
    view = await engine.request(CreateConversation())
    uuid = view.conversation.uuid
    await engine.request(SendMessage(conversation_id=uuid, message_id=uuid, text=text))
    async for event in engine.events():
        if isinstance(event, TurnEnd) and event.conversation_id == uuid:
            return event.text
    raise AssertionError("the engine ended")


@pytest.mark.http
@ONE_BACKEND
async def test_a_server_is_connected_used_at_once_and_after_a_restart(
    unconfigured: Loaded, server: OpenAIServer, caplog: pytest.LogCaptureFixture
) -> None:
    server.key = SECRET
    caplog.set_level("DEBUG")
    engine = InProcessEngine(unconfigured, interactive=True)
    try:
        for key, kind in (("wrong", "bad_key"), ("", "bad_key")):
            with pytest.raises(RagforgeError, match="Nothing was stored") as caught:
                await engine.request(ConnectProvider(provider="custom", url=server.base_url, key=key))
            assert caught.value.info.kind == kind
        with pytest.raises(RagforgeError, match="needs a key"):
            await engine.request(ConnectProvider(provider="openai"))
        assert Connections(unconfigured.paths).all() == []
        # Without /v1, as it is often written.
        connected = await engine.request(
            ConnectProvider(provider="custom", url=server.base_url.removesuffix("/v1"), key=f" {SECRET}\n")
        )
        assert (connected.url, connected.models) == (server.base_url, ["openai/scripted"])
        assert "readable by you alone. No system keyring works here." in connected.kept
        changed = await engine.request(SetModel(name="openai/scripted", provider="custom", url=connected.url))
        assert (changed.phase, changed.destination) == ("ready", "this machine")
        assert (await answer(engine, "echo this")).endswith("echo this")
        with pytest.raises(RagforgeError, match=r"There is no API key for xAI.*The model is still openai/scripted"):
            await engine.request(SetModel(name="xai/grok-4.3"))
    finally:
        await engine.close()
    again = InProcessEngine(unconfigured, interactive=True)
    try:
        assert (await answer(again, "and again")).endswith("and again")
        assert again.agent.model_state.origin == "chosen last with /connect or /model"
        assert await again.request(ListModels()) == ["openai/scripted", "offline"]
        infos = {one.url: one for one in await again.request(ListProviders()) if one.stored}
        assert list(infos) == [server.base_url] and "readable by you alone" in infos[server.base_url].key_from
        told = await again.request(DisconnectProvider(provider="custom", url=server.base_url))
        assert told.startswith("The key of http://127.0.0.1") and Connections(unconfigured.paths).all() == []
    finally:
        await again.close()
    assert SECRET not in caplog.text
    assert files_with_secret(Path(unconfigured.paths.state)) == []


def files_with_secret(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and SECRET.encode() in path.read_bytes()]


@pytest.mark.http
@ONE_BACKEND
async def test_a_check_is_cancelled(unconfigured: Loaded, server: OpenAIServer) -> None:
    server.silent = True
    engine = InProcessEngine(unconfigured, interactive=True)
    try:
        checking = asyncio.create_task(engine.request(ConnectProvider(provider="custom", url=server.base_url)))
        await until(lambda: server.questions, "the request arrived")
        await engine.request(CancelConnect())
        with pytest.raises(RagforgeError) as caught:
            await checking
        assert caught.value.info.kind == "cancelled" and Connections(unconfigured.paths).all() == []
    finally:
        await engine.close()
