"""Arguments of `ConversationAgent`, brought into one form.

Settings come as files and environment, a mapping or an object; a model as a name, an object or a function; a graph as a
URI or a driver. The agent itself sees the result only.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypedDict

import msgspec

from ragforge_tui.conversation.approvals.pending import Approve
from ragforge_tui.graph import AsyncDriver, driver_target
from ragforge_tui.llm import ChatModel
from ragforge_tui.llm.embeddings import Embedder
from ragforge_tui.llm.functions import ModelFunction, check_embedder, model_of
from ragforge_tui.settings.folders import find_paths
from ragforge_tui.settings.load import OF_PROGRAM, find_workspace, load
from ragforge_tui.settings.schema import Loaded, Settings
from ragforge_tui.tools.base import Tool
from ragforge_tui.tools.functions import tool_of

GivenSettings: TypeAlias = Loaded | Settings | Mapping[str, Any] | None
GivenModel: TypeAlias = str | ChatModel | ModelFunction | None
GivenTool: TypeAlias = Callable[..., Any] | type[Tool]


class AgentOptions(TypedDict, total=False):
    """Keyword arguments of `ConversationAgent`, which describes them."""

    model: GivenModel
    graph: str | AsyncDriver | None
    embedder: Embedder | None
    tools: Sequence[GivenTool]
    approve: Approve | Literal["all"] | None
    persona: str
    workspace: str | Path | None
    home: str | Path | None


@dataclass(frozen=True, kw_only=True)
class ResolvedOptions:
    """The settings, and what the program supplies in place of what they name."""

    loaded: Loaded
    model: ChatModel | None
    driver: AsyncDriver | None
    embedder: Embedder | None
    tools: list[type[Tool]]


def resolve_options(
    settings: GivenSettings,
    *,
    model: GivenModel = None,
    graph: str | AsyncDriver | None = None,
    embedder: Embedder | None = None,
    tools: Sequence[GivenTool] = (),
    persona: str = "",
    workspace: str | Path | None = None,
    home: str | Path | None = None,
) -> ResolvedOptions:
    """Return the arguments of an agent in one form.

    Raises:
        ConfigError: A setting is invalid, or the workspace does not exist.
        TypeError: A model, driver, embedder or tool is not one.
    """
    loaded = _loaded(settings, workspace, home)
    changes: dict[str, Any] = {}
    if isinstance(model, str):
        changes["model.name"] = model
    elif model is not None:
        changes["model.name"] = ""
    if isinstance(graph, str):
        changes["graph.uri"] = graph
    if persona:
        changes["personas.default"] = persona
    if embedder is not None:
        check_embedder(embedder)
        changes |= {
            "agent.memory.embeddings.enabled": True,
            "agent.memory.embeddings.model": embedder.name,
            "agent.memory.embeddings.dimension": embedder.dimension,
        }
    driver = None
    if graph is not None and not isinstance(graph, str):
        driver_target(graph, loaded.settings.graph)
        driver = graph
    return ResolvedOptions(
        loaded=msgspec.structs.replace(
            loaded,
            settings=_changed(loaded.settings, changes),
            origins={**loaded.origins, **dict.fromkeys(changes, OF_PROGRAM)},
        ),
        model=None if model is None or isinstance(model, str) else model_of(model),
        driver=driver,
        embedder=embedder,
        tools=[tool_of(each) for each in tools],
    )


def _loaded(settings: GivenSettings, workspace: str | Path | None, home: str | Path | None) -> Loaded:
    env = dict(os.environ)
    if home is not None:
        env["RAGFORGE_HOME"] = str(home)
    folder = None if workspace is None else str(workspace)
    if settings is None or isinstance(settings, Mapping):
        return load(values=settings, workspace=folder, env=env)
    if isinstance(settings, Settings):
        return Loaded(settings=settings, paths=find_paths(env), workspace=find_workspace(folder))
    if not isinstance(settings, Loaded):
        raise TypeError(f"settings must be Settings, a mapping or what load() returns, not {type(settings).__name__}.")
    if home is not None:
        settings = msgspec.structs.replace(settings, paths=find_paths(env))
    return settings if folder is None else msgspec.structs.replace(settings, workspace=find_workspace(folder))


def _changed(settings: Any, changes: Mapping[str, Any]) -> Any:
    """Return settings with changes by dotted key."""
    for key, value in changes.items():
        settings = _with(settings, key.split("."), value)
    return settings


def _with(section: Any, names: list[str], value: Any) -> Any:
    name, *below = names
    return msgspec.structs.replace(section, **{name: _with(getattr(section, name), below, value) if below else value})
