"""Stored keys and addresses: where they are kept, which of them is used, and that none is ever shown."""

from __future__ import annotations

import logging
from pathlib import Path

import keyring
import pytest
from keyring.backend import KeyringBackend
from keyring.errors import KeyringLocked

from ragforge_tui.llm import Connections, choose_model, list_models
from ragforge_tui.llm.check import check_model
from ragforge_tui.llm.embeddings import make_embedder
from ragforge_tui.llm.providers import LocalServer
from ragforge_tui.settings.schema import EmbeddingSettings, ModelSettings
from ragforge_tui.shared.errors import ModelError, RagforgeError
from tests.support.openai_server import OpenAIServer
from tests.support.sizes import paths_under

NOBODY = (LocalServer("Nobody", "http://127.0.0.1:9", id="nobody"),)
SECRET = "hunter2-of-no-known-shape"


class Memory(KeyringBackend):
    """A keyring that works, or that is locked."""

    priority = 5  # type: ignore[assignment]

    def __init__(self) -> None:
        super().__init__()
        self.stored: dict[tuple[str, str], str] = {}
        self.locked = False

    def get_password(self, service: str, username: str) -> str | None:
        if self.locked:
            raise KeyringLocked
        return self.stored.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        if self.locked:
            raise KeyringLocked
        self.stored[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        if self.locked:
            raise KeyringLocked
        del self.stored[service, username]


@pytest.fixture
def ring(monkeypatch: pytest.MonkeyPatch) -> Memory:
    backend = Memory()
    monkeypatch.setattr(keyring, "get_keyring", lambda: backend)
    for name in ("get_password", "set_password", "delete_password"):
        monkeypatch.setattr(keyring, name, getattr(backend, name))
    return backend


@pytest.fixture
def connections(home: Path) -> Connections:
    return Connections(paths_under(home))


async def test_a_key_is_kept_in_the_keyring_and_nowhere_else(ring: Memory, connections: Connections) -> None:
    stored = await connections.save("openai", "", SECRET)
    assert stored.kept_in == "keyring" and list(ring.stored.values()) == [SECRET]
    assert SECRET not in connections.file.read_text() and SECRET not in repr(stored)
    assert connections.place(stored) == "the system keyring"
    choice = await choose_model(ModelSettings(name="openai/gpt-5.2"), {}, connections=connections)
    assert choice.api_key == SECRET and SECRET not in choice.origin + repr(choice)
    await connections.remove(stored)
    assert not ring.stored and connections.all() == []


@pytest.mark.parametrize("ring_state", ["none", "locked"])
async def test_without_a_keyring_the_key_is_in_a_file_of_its_owner(
    ring_state: str, ring: Memory, connections: Connections, monkeypatch: pytest.MonkeyPatch
) -> None:
    ring.locked = ring_state == "locked"
    if ring_state == "none":
        monkeypatch.setattr(Memory, "priority", 0)
    stored = await connections.save("openai", "", SECRET)
    assert stored.kept_in == "file" and connections.file.stat().st_mode & 0o777 == 0o600
    assert "readable by you alone" in connections.place(stored) and SECRET not in repr(stored)
    assert await connections.key(stored) == SECRET
    await connections.remove(stored)
    assert SECRET not in connections.file.read_text()


async def test_a_locked_keyring_is_reported_and_loses_nothing(ring: Memory, connections: Connections) -> None:
    stored = await connections.save("openai", "", SECRET)
    ring.locked = True
    with pytest.raises(ModelError, match="did not return the key"):
        await choose_model(ModelSettings(name="openai/gpt-5.2"), {}, connections=connections)
    with pytest.raises(RagforgeError, match="did not remove the key"):
        await connections.remove(stored)
    assert connections.get("openai", "") == stored


async def test_the_environment_and_the_settings_precede_a_stored_key(ring: Memory, connections: Connections) -> None:
    await connections.save("openai", "", SECRET)
    ring.locked = True  # so that reading it would fail
    settings = ModelSettings(name="openai/gpt-5.2")
    choice = await choose_model(settings, {"OPENAI_API_KEY": "k"}, connections=connections)
    assert choice.api_key == ""
    choice = await choose_model(ModelSettings(name="openai/x", api_key="own"), {}, connections=connections)
    assert choice.api_key == "own"
    choice = await choose_model(ModelSettings(name="anthropic/x"), {}, connections=connections)
    assert choice.api_key == "", "the key of another provider"


async def test_a_server_is_found_by_the_model_chosen_from_it(ring: Memory, connections: Connections) -> None:
    async with OpenAIServer(models=["qwen3", "other"]) as server:
        server.key = SECRET
        await connections.save("custom", server.base_url, SECRET)
        listed = await list_models(ModelSettings(), {}, connections=connections, local_servers=NOBODY)
        assert [(one.name, one.url) for one in listed[:-1]] == [
            ("openai/qwen3", server.base_url),
            ("openai/other", server.base_url),
        ]
        connections.choose("custom", server.base_url, "openai/qwen3")
        for settings in (ModelSettings(), ModelSettings(name="openai/qwen3")):
            choice = await choose_model(settings, {}, connections=connections, local_servers=NOBODY)
            assert (choice.name, choice.api_base, choice.api_key) == ("openai/qwen3", server.base_url, SECRET)
        choice = await choose_model(
            ModelSettings(name="openai/qwen3"), {"OPENAI_API_KEY": "k"}, connections=connections
        )
        assert (choice.api_base, choice.api_key) == ("", ""), "a key of OpenAI reaches no other server"


def test_a_broken_file_is_none(connections: Connections, caplog: pytest.LogCaptureFixture) -> None:
    connections.file.parent.mkdir(parents=True)
    connections.file.write_text(f'{{"connections": [{{"provider": 3, "key": "{SECRET}"}}]}}')
    with caplog.at_level(logging.DEBUG):
        assert connections.all() == []
    assert "cannot be used" in caplog.text and SECRET not in caplog.text


async def checked(name: str, base: str = "", key: str = "", env: dict[str, str] | None = None) -> str:
    """What a check of a model says: the kind of its error, empty if it works."""
    settings = ModelSettings(name=name, api_base=base, api_key=key)
    try:
        await check_model(await choose_model(settings, env or {}), settings, env or {})
    except ModelError as error:
        assert SECRET not in str(error)
        return error.info.kind
    return ""


async def test_a_model_is_checked_before_it_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    assert await checked("anthropic/claude-sonnet-5") == "not_configured"
    assert await checked("nobody/x") == "unknown_model"
    assert await checked("offline") == ""
    assert await checked("openai/x", "http://127.0.0.1:9/v1") == "unreachable"
    async with OpenAIServer(models=["listed"], ollama_models=["qwen3:latest"]) as server:
        assert await checked("openai/listed", server.base_url) == ""
        assert not server.chats(), "a listed model needs no question"
        assert await checked("ollama/qwen3", f"http://127.0.0.1:{server.port}") == ""
        assert await checked("ollama/llama9", f"http://127.0.0.1:{server.port}") == "unknown_model"
        server.key = SECRET
        assert await checked("openai/listed", server.base_url, "wrong") == "bad_key"
        assert await checked("openai/listed", server.base_url, SECRET) == ""
        monkeypatch.setenv("OPENAI_API_KEY", SECRET)
        env = {"OPENAI_API_KEY": SECRET, "OPENAI_BASE_URL": server.base_url}
        assert await checked("openai/listed", env=env) == ""


async def test_a_name_that_is_not_listed_is_asked_a_question() -> None:
    async with OpenAIServer(models=["listed"], turns_only=False) as server:
        assert await checked("openai/alias", server.base_url) == ""
        assert server.chats()[0]["model"] == "alias"
        for status, message, kind in (
            (404, "The model `gone` does not exist", "unknown_model"),
            (429, "slow down", ""),
        ):
            server.script([{"status": status, "message": message}])
            assert await checked("openai/gone", server.base_url) == kind


async def test_a_stored_key_serves_embeddings_of_its_provider(
    ring: Memory, connections: Connections, monkeypatch: pytest.MonkeyPatch
) -> None:
    await connections.save("openai", "", SECRET)
    settings = EmbeddingSettings(model="openai/some-embedding", dimension=2)
    async with OpenAIServer() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        monkeypatch.setenv("OPENAI_API_BASE", server.base_url)
        for env, key in ((None, SECRET), ("own", "own")):
            if env:
                monkeypatch.setenv("OPENAI_API_KEY", env)
            embedder = make_embedder(settings, ModelSettings(name="openai/x"), connections)
            assert embedder is not None
            with pytest.raises(ModelError):  # this server makes no vectors
                await embedder.embed(["a"])
            assert server.requests[-1].headers["authorization"] == f"Bearer {key}"
