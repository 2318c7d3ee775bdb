"""Settings for tests that run a whole agent: on a given graph, against the scripted server, in a small workspace."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec

from ragforge_tui.graph import GraphTarget
from ragforge_tui.settings.schema import (
    AgentSettings,
    CodeSettings,
    EmbeddingSettings,
    EngineSettings,
    GraphSettings,
    Loaded,
    MemorySettings,
    ModelSettings,
    Paths,
    PersistenceSettings,
    Settings,
    ToolSettings,
    UserSettings,
)
from tests.support.sizes import CONTENTS, DIMENSION, HEAP_MB, LINGER


def settings_for(target: GraphTarget, *, api_base: str = "", model: str = "openai/scripted") -> Settings:
    """Settings that reach a test's graph and model; without vectors, whose model takes seconds to load, and code."""
    return Settings(
        model=ModelSettings(name=model, api_base=api_base, api_key="test", first_token_timeout=60.0, retries=1),
        graph=GraphSettings(
            uri=target.uri,
            username=target.username,
            password=target.password,
            adopt=target.adopt,
            heap_mb=HEAP_MB,
            linger_seconds=LINGER,
        ),
        # Tests of the engine host turn it on and end it.
        engine=EngineSettings(keep_warm_minutes=0),
        tools=ToolSettings(command_timeout=20.0),
        user=UserSettings(name="Ada"),
        agent=AgentSettings(
            # Tests of the index turn it on; it would run a process for each agent.
            code=CodeSettings(enabled=False),
            memory=MemorySettings(
                embeddings=EmbeddingSettings(enabled=False, dimension=DIMENSION),
                persistence=PersistenceSettings(type=CONTENTS),
            ),
        ),
    )


def loaded_for(settings: Settings, paths: Paths, workspace: Path) -> Loaded:
    """The settings with their folders; the workspace gets a file to work on."""
    workspace.mkdir(parents=True, exist_ok=True)
    (workspace / "greeting.py").write_text('def greet():\n    return "hello"\n', encoding="utf-8")
    return Loaded(settings=settings, paths=paths, workspace=str(workspace.resolve()))


def with_model(loaded: Loaded, **changes: object) -> Loaded:
    """The same with other model settings."""
    model = msgspec.structs.replace(loaded.settings.model, **changes)
    return msgspec.structs.replace(loaded, settings=msgspec.structs.replace(loaded.settings, model=model))


def with_tools(loaded: Loaded, **changes: object) -> Loaded:
    """The same with other settings of tools."""
    tools = msgspec.structs.replace(loaded.settings.tools, **changes)
    return msgspec.structs.replace(loaded, settings=msgspec.structs.replace(loaded.settings, tools=tools))


def with_memory(loaded: Loaded, **changes: object) -> Loaded:
    """The same with other memory settings."""
    memory = msgspec.structs.replace(loaded.settings.agent.memory, **changes)
    agent = msgspec.structs.replace(loaded.settings.agent, memory=memory)
    return msgspec.structs.replace(loaded, settings=msgspec.structs.replace(loaded.settings, agent=agent))


def with_host(loaded: Loaded, minutes: float = 30) -> Loaded:
    """The same with an engine host."""
    engine = EngineSettings(keep_warm_minutes=minutes)
    return msgspec.structs.replace(loaded, settings=msgspec.structs.replace(loaded.settings, engine=engine))


def with_code(loaded: Loaded) -> Loaded:
    """The same with an index of the workspace's code."""
    agent = msgspec.structs.replace(loaded.settings.agent, code=CodeSettings())
    return msgspec.structs.replace(loaded, settings=msgspec.structs.replace(loaded.settings, agent=agent))


def contents(request: dict[str, Any], *roles: str) -> list[str]:
    """The texts of a request's messages of these roles, without the state of the workspace before the first."""
    block = re.compile(r"\[The workspace at .*?\nworkspace [0-9a-f]{12}>>>\n\n", re.S)
    texts = [message["content"] for message in request["messages"] if message["role"] in roles]
    return [block.sub("", text, count=1) for text in texts]
