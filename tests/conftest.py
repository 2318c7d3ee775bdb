"""What many tests need: an own home for the program, and both graph backends, one server each per worker."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from itertools import count
from pathlib import Path
from typing import Literal

import msgspec
import pytest

from ragforge_tui.conversation import ConversationAgent, current_model
from ragforge_tui.conversation.limits import CONVERSATION
from ragforge_tui.graph import Graph, GraphTarget, stop_server
from ragforge_tui.graph.embedded.attach import ServerHold
from ragforge_tui.llm import ModelChoice
from ragforge_tui.settings.schema import Loaded, Paths
from ragforge_tui.shared import tool_calls
from ragforge_tui.shared.limits import LIMITS
from tests.support import costs, property_tests
from tests.support.agents import loaded_for, settings_for
from tests.support.model_script import Script
from tests.support.neo4j_server import Neo4jMissingError, Neo4jServer
from tests.support.openai_server import OpenAIServer
from tests.support.scripted_model import make_scripted
from tests.support.sizes import CONTENTS, DIMENSION, HEAP_MB, LINGER, paths_under

UPDATE = "--update-pictures"
BACKENDS = ["embedded", pytest.param("neo4j", marks=pytest.mark.neo4j)]
EMBEDDED = GraphTarget(embedded=True, chosen_by="default")
ONE_BACKEND = pytest.mark.parametrize("graph_target", ["embedded"], indirect=True)
"""For tests in which no dialect is involved: what they store is tested on both backends in `tests/graph`."""
FOREIGN_VARIABLES = (
    "RAGFORGE_",
    "NEO4J_",
    "OPENAI_",
    "ANTHROPIC_",
    "GEMINI_",
    "MISTRAL_",
    "GROQ_",
    "OPENROUTER_",
    "XAI_",
    "DEEPSEEK_",
    "GOOGLE_API_",
    "OLLAMA_",
)
_numbers = count()
KEPT_VARIABLES = ("RAGFORGE_TEST_", "RAGFORGE_REQUIRE_")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let `--update-pictures` write the pictures of the screen instead of comparing them."""
    parser.addoption(UPDATE, action="store_true", help="write the pictures of the screen again")


def pytest_configure(config: pytest.Config) -> None:
    """Name the most expensive tests after each run, and help with examples that were drawn at random."""
    config.pluginmanager.register(property_tests)
    config.pluginmanager.register(costs)
    config.pluginmanager.register(costs.Costs())


@pytest.fixture
def update_pictures(request: pytest.FixtureRequest) -> bool:
    """Whether pictures are written instead of compared."""
    return bool(request.config.getoption(UPDATE))


@pytest.fixture(scope="session", autouse=True)
def _nothing_of_the_developer() -> Iterator[None]:
    """Hide the developer's own keys, graphs and keyring."""
    with pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            if name.startswith(FOREIGN_VARIABLES) and not name.startswith(KEPT_VARIABLES):
                patch.delenv(name)
        patch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.fail.Keyring")
        # A host would outlive its test; the tests of hosts turn it on and end it.
        patch.setenv("RAGFORGE_KEEP_WARM_MINUTES", "0")
        yield


@pytest.fixture(autouse=True)
def home_path(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An own RAGFORGE_HOME for each test, which the program makes when it needs it."""
    path = tmp_path_factory.getbasetemp() / f"home-{next(_numbers)}"
    monkeypatch.setenv("RAGFORGE_HOME", str(path))
    return path


@pytest.fixture
def home(home_path: Path) -> Path:
    """The folder of RAGFORGE_HOME."""
    home_path.mkdir(exist_ok=True)
    return home_path


@pytest.fixture(autouse=True)
def known_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget the tools that a test describes."""
    monkeypatch.setattr(tool_calls, "_tools", dict(tool_calls._tools))


@pytest.fixture(scope="session")
def embedded_paths(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Paths]:
    """Folders of an embedded server that runs as long as this worker."""
    paths = paths_under(tmp_path_factory.mktemp("embedded"))
    hold = ServerHold(paths, heap_mb=HEAP_MB, linger_seconds=LINGER)
    try:
        asyncio.run(hold.ensure_server())
        yield paths
    finally:
        hold.release()
        stop_server(paths)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what uses a Neo4j server directly like the Neo4j half of the tests on both backends; put long tests first.

    Another worker can take over what waits behind a long test, but not the rest of one that started last.
    """
    for item in items:
        if "neo4j_server" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.neo4j)
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


@pytest.fixture(scope="session")
def neo4j_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Neo4jServer]:
    """A real Neo4j that runs as long as this worker; skipped where there is none, unless it is required."""
    server = Neo4jServer(tmp_path_factory.mktemp("neo4j"))
    try:
        server.start()
    except Neo4jMissingError as error:
        if os.environ.get("RAGFORGE_REQUIRE_NEO4J") == "1":
            pytest.fail(f"RAGFORGE_REQUIRE_NEO4J=1, but {error}")
        pytest.skip(f"no Neo4j: {error}")
    try:
        yield server
    finally:
        server.stop()


@pytest.fixture(params=BACKENDS)
def graph_target(request: pytest.FixtureRequest) -> GraphTarget:
    """Each backend in turn, as the settings would name it."""
    return target_of(request)


def target_of(request: pytest.FixtureRequest) -> GraphTarget:
    """The target of the backend a fixture is parametrised with."""
    if request.param == "embedded":
        request.getfixturevalue("embedded_paths")
        return EMBEDDED
    server: Neo4jServer = request.getfixturevalue("neo4j_server")
    return GraphTarget(uri=server.uri, username=server.username, password=server.password, adopt=True, chosen_by="test")


@pytest.fixture
def graph_paths(graph_target: GraphTarget, home: Path, request: pytest.FixtureRequest) -> Paths:
    """The folders to open `graph_target` with."""
    if graph_target.embedded:
        paths: Paths = request.getfixturevalue("embedded_paths")
        return paths
    return paths_under(home)


@pytest.fixture
async def graph(graph_target: GraphTarget, graph_paths: Paths) -> AsyncIterator[Graph]:
    """An open, empty graph on each backend."""
    opened = await open_graph(graph_target, graph_paths)
    try:
        await empty(opened)
        yield opened
    finally:
        await opened.close()


@pytest.fixture
async def server(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Script]:
    """A scripted model; every request a test sends it must be one that chat templates take.

    It plays in this process, without LiteLLM; tests marked `http` get an `OpenAIServer`.
    """
    if request.node.get_closest_marker("http"):
        async with OpenAIServer() as running:
            yield running
        assert running.refused == []
        return
    script = Script()
    monkeypatch.setattr(current_model, "make_model", make_scripted(script))
    monkeypatch.setattr(current_model, "check_provider", _known)
    yield script
    assert script.refused == []


async def _known(choice: ModelChoice) -> None:
    """Accept every provider, which LiteLLM would have to be loaded for."""


@pytest.fixture
def loaded(
    graph: Graph,
    graph_target: GraphTarget,
    graph_paths: Paths,
    tmp_path: Path,
    server: Script,
    monkeypatch: pytest.MonkeyPatch,
) -> Loaded:
    """Settings of an agent on an empty graph of each backend, talking to the scripted server."""
    # What is found or written within such a limit says something of the machine; tests of that limit set it themselves.
    for limit in ("load", "past", "summary", "recall", "first_recall", "wishes", "code_vectors"):
        monkeypatch.setattr(LIMITS, limit, 30.0)
    # Background work that waits for a rest between turns has it at once; tests of that rest set it themselves.
    for limit in ("idle", "first_patience"):
        monkeypatch.setattr(CONVERSATION, limit, 0.0)
    # Neither may closing an agent leave on a busy machine what it would have stored.
    assert ConversationAgent.close.__kwdefaults__ is not None
    monkeypatch.setitem(ConversationAgent.close.__kwdefaults__, "settle_seconds", 60.0)
    settings = settings_for(graph_target, api_base=getattr(server, "base_url", ""))
    # A journal that one test leaves must not be written into another's graph.
    paths = msgspec.structs.replace(graph_paths, state=str(tmp_path / "state"))
    return loaded_for(settings, paths, tmp_path / "workspace")


async def open_graph(target: GraphTarget, paths: Paths, *, contents: Literal["graph", "hybrid"] = CONTENTS) -> Graph:
    """Open a graph as the tests do: small vectors, short lingering."""
    return await Graph.open(
        target, paths, heap_mb=HEAP_MB, linger_seconds=LINGER, embedding_dimension=DIMENSION, contents=contents
    )


async def empty(graph: Graph) -> None:
    """Delete everything but the schema's own nodes."""

    async def work(tx) -> int:  # type: ignore[no-untyped-def]  # tests need not import the driver
        result = await tx.run(
            "MATCH (n) WHERE NOT n:RagforgeSchema AND NOT n:RagforgeMigration WITH n LIMIT 500 "
            "DETACH DELETE n RETURN count(*) AS deleted"
        )
        return int((await result.single())["deleted"])

    while await graph.write(work):
        pass
