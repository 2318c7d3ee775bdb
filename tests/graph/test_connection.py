"""Opening a graph and what goes wrong with it, on both backends."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from datetime import UTC, datetime
from typing import Any

import pytest
from neo4j import AsyncManagedTransaction
from neo4j.exceptions import ConstraintError

from ragforge_tui.graph import Graph, GraphTarget, resolve_target
from ragforge_tui.graph.errors import too_old
from ragforge_tui.settings.schema import GraphSettings, Paths
from ragforge_tui.shared.errors import ForeignGraphError, GraphError, GraphUnavailableError
from tests.conftest import empty, open_graph, paths_under
from tests.support.neo4j_server import Neo4jServer


async def run(graph: Graph, statement: str, **parameters: Any) -> list[dict[str, Any]]:
    """Write, and what came back."""

    async def work(tx: AsyncManagedTransaction) -> list[dict[str, Any]]:
        return await (await tx.run(statement, parameters)).data()

    return await graph.write(work)


class TestTarget:
    def test_no_uri_is_the_embedded_graph(self) -> None:
        target = resolve_target(GraphSettings(), {})
        assert (target.embedded, target.name, target.chosen_by) == (True, "embedded", "default")

    def test_the_origin_of_the_graph_setting_is_known(self) -> None:
        target = resolve_target(GraphSettings(uri="neo4j://db:7687", database="x"), {"graph.uri": "NEO4J_URI"})
        assert (target.embedded, target.name, target.chosen_by) == (False, "neo4j://db:7687", "NEO4J_URI")

    def test_credentials_in_the_uri_are_used_and_never_shown(self) -> None:
        target = resolve_target(GraphSettings(uri="bolt+s://anna:s3cret@db:7687"), {})
        assert (target.username, target.password) == ("anna", "s3cret")
        assert "s3cret" not in target.name


class TestTransactions:
    async def test_a_write_is_read_back(self, graph: Graph) -> None:
        await run(graph, "CREATE (:Conversation {uuid: 'a', title: 'é'})")
        assert await graph.query_readonly("MATCH (c:Conversation) RETURN c.title AS title") == [{"title": "é"}]

    async def test_a_reading_query_may_not_write(self, graph: Graph) -> None:
        with pytest.raises(GraphError):
            await graph.query_readonly("CREATE (c:Conversation {uuid: 'b'}) RETURN c")
        assert await graph.query_readonly("MATCH (c:Conversation) RETURN c") == []

    async def test_rows_are_plain_data_and_equal_on_both_backends(self, graph: Graph) -> None:
        await run(
            graph, "CREATE (:Topic {uuid: 't', name: 'n', aliases: ['x']})-[:RELATED_TO {confidence: 0.5}]->(:Topic)"
        )
        rows = await graph.query_readonly(
            "MATCH (t:Topic {uuid: 't'})-[r]->() RETURN t, r, datetime('2026-01-02T03:04:05Z') AS at, [1, null] AS list"
        )
        assert rows == [
            {
                "t": {"labels": ["Topic"], "properties": {"aliases": ["x"], "name": "n", "uuid": "t"}},
                "r": {"type": "RELATED_TO", "properties": {"confidence": 0.5}},
                "at": "2026-01-02T03:04:05+00:00",
                "list": [1, None],
            }
        ]

    async def test_moments_are_reported_in_utc_on_both_backends(self, graph: Graph) -> None:
        moment = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)
        await run(graph, "CREATE (:Conversation {uuid: 'm', created_at: $at, noted: $at})", at=moment)
        rows = await graph.query_readonly(
            "MATCH (c:Conversation {uuid: 'm'}) RETURN c, c.created_at AS at, collect(c.noted) AS list, "
            "datetime('2026-01-02T05:04:05+02:00') AS elsewhere, date('2026-01-02') AS day"
        )
        said = "2026-01-02T03:04:05.678901+00:00"
        assert rows == [
            {
                "c": {"labels": ["Conversation"], "properties": {"created_at": said, "noted": said, "uuid": "m"}},
                "at": said,
                "list": [said],
                "elsewhere": "2026-01-02T03:04:05+00:00",
                "day": "2026-01-02",
            }
        ]

    async def test_a_constraint_violation_is_tried_again(self, graph: Graph) -> None:
        tries = []

        async def work(tx: AsyncManagedTransaction) -> str:
            tries.append(1)
            if len(tries) < 3:
                raise ConstraintError("another writer took the index")
            return "written"

        assert await graph.write(work) == "written"
        assert len(tries) == 3

    async def test_a_lasting_constraint_violation_is_an_error(self, graph: Graph) -> None:
        await run(graph, "CREATE (:Conversation {uuid: 'same'})")
        with pytest.raises(GraphError) as caught:
            await run(graph, "CREATE (:Conversation {uuid: 'same'})")
        assert caught.value.info.kind == "graph_conflict"

    async def test_a_wrong_statement_is_an_error_at_once(self, graph: Graph) -> None:
        with pytest.raises(GraphError) as caught:
            await run(graph, "THIS IS NOT CYPHER")
        assert caught.value.info.kind == "graph_statement"

    async def test_a_deadline_ends_a_transaction(self, graph: Graph) -> None:
        async def work(tx: AsyncManagedTransaction) -> None:
            await asyncio.sleep(60)

        with pytest.raises(GraphUnavailableError) as caught:
            await graph.read(work, deadline=0.2)
        assert caught.value.info.kind == "graph_timeout"
        # The next one finds the graph there.
        assert await graph.query_readonly("RETURN 1 AS one") == [{"one": 1}]

    async def test_concurrent_writers_count_without_gaps(self, graph: Graph) -> None:
        await run(graph, "CREATE (:Conversation {uuid: 'c', next_turn: 1})")

        async def work(tx: AsyncManagedTransaction) -> None:
            await tx.run(
                "MATCH (c:Conversation {uuid: 'c'}) SET c.next_turn = c.next_turn + 1 "
                "CREATE (:Message {uuid: randomUUID(), conversation_id: 'c', turn_index: c.next_turn - 1, position: 0})"
            )

        await asyncio.gather(*(graph.write(work) for _ in range(8)))
        rows = await graph.query_readonly("MATCH (m:Message) RETURN m.turn_index AS n ORDER BY n")
        assert [row["n"] for row in rows] == list(range(1, 9))

    async def test_info_names_server_and_nodes_but_no_password(self, graph: Graph) -> None:
        await run(graph, "CREATE (:Conversation {uuid: 'c'})")
        info = await graph.info()
        assert info["nodes"]["Conversation"] == 1
        assert info["uri"].startswith("bolt://")
        assert Neo4jServer.password not in str(info)


class TestRefusals:
    async def refusal(self, target: GraphTarget, paths: Paths) -> GraphError:
        phases: list[str] = []
        with pytest.raises(GraphError) as caught:
            await Graph.open(target, paths, on_phase=lambda phase, error: phases.append(phase))
        self.phases = phases
        assert caught.value.info.what
        assert caught.value.info.todo
        return caught.value

    async def test_wrong_password(self, neo4j_server: Neo4jServer, home: Any) -> None:
        error = await self.refusal(GraphTarget(uri=neo4j_server.uri, password="wrong"), paths_under(home))
        assert error.info.kind == "graph_auth"
        assert "NEO4J_PASSWORD" in error.info.todo
        assert self.phases == ["starting", "refused"]

    async def test_unknown_database(self, neo4j_server: Neo4jServer, home: Any) -> None:
        target = GraphTarget(uri=neo4j_server.uri, password=neo4j_server.password, database="elsewhere")
        error = await self.refusal(target, paths_under(home))
        assert error.info.kind == "graph_database"
        assert "elsewhere" in error.info.what

    async def test_tls_with_a_server_that_has_none(self, neo4j_server: Neo4jServer, home: Any) -> None:
        target = GraphTarget(uri=neo4j_server.uri.replace("bolt:", "bolt+s:"), password=neo4j_server.password)
        assert (await self.refusal(target, paths_under(home))).info.kind == "graph_tls"

    async def test_foreign_data_is_refused_until_adopted(self, neo4j_server: Neo4jServer, home: Any) -> None:
        target = GraphTarget(uri=neo4j_server.uri, password=neo4j_server.password, adopt=True)
        opened = await open_graph(target, paths_under(home))
        await empty(opened)
        await run(opened, "MATCH (n) DETACH DELETE n")
        await run(opened, "CREATE (:Customer {name: 'somebody else'})")
        await opened.close()
        with pytest.raises(ForeignGraphError):
            await open_graph(GraphTarget(uri=target.uri, password=target.password), paths_under(home))
        again = await open_graph(target, paths_under(home))
        await empty(again)
        await again.close()

    @pytest.mark.parametrize("scheme", ["bolt", "neo4j"])
    async def test_no_one_at_the_port(self, scheme: str, home: Any) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        error = await self.refusal(GraphTarget(uri=f"{scheme}://127.0.0.1:{port}"), paths_under(home))
        assert error.info.kind == "graph_unreachable"
        assert self.phases == ["starting", "unreachable"]

    @pytest.mark.parametrize("uri", ["nonsense", "ftp://host", "bolt+x://host"])
    async def test_a_uri_that_is_none(self, uri: str, home: Any) -> None:
        assert (await self.refusal(GraphTarget(uri=uri), paths_under(home))).info.kind == "graph_uri"

    async def test_an_unknown_host(self, home: Any) -> None:
        error = await self.refusal(GraphTarget(uri="bolt://no-such-host.invalid"), paths_under(home))
        assert "cannot be found" in error.info.what

    async def test_an_http_server(self, home: Any) -> None:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.read(20)
            writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            await writer.drain()
            writer.close()

        async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            error = await self.refusal(GraphTarget(uri=f"bolt://127.0.0.1:{port}"), paths_under(home))
        assert "HTTP" in error.info.what

    async def test_a_server_that_never_answers(self, home: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("ragforge_tui.graph.connection.CONNECT_TIMEOUT", 0.2)
        done = asyncio.Event()

        async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await done.wait()
            writer.close()

        async with await asyncio.start_server(silent, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            error = await self.refusal(GraphTarget(uri=f"bolt://127.0.0.1:{port}"), paths_under(home))
            done.set()
        assert error.info.kind in ("graph_timeout", "graph_unreachable")

    @pytest.mark.parametrize(
        ("agent", "accepted"),
        [
            ("Neo4j/5.26.30", True),
            ("Neo4j/5.23.0", True),
            ("Neo4j/2025.06.1", True),
            ("Neo4j/5.27-aura", True),
            ("Neo4j/5.22.0", False),
            ("Neo4j/4.4.40", False),
            ("Neo4j/v5.11.0 compatible graph database server - Memgraph", False),
            ("", False),
        ],
    )
    def test_versions(self, agent: str, accepted: bool) -> None:
        error = too_old(agent, "bolt://db")
        assert (error is None) is accepted
        if error:
            assert "5.23" in error.info.what


class Route:
    """The way to a server, which a test can close and open again."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._writers: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None
        self.port = 0

    async def open(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    def close(self) -> None:
        assert self._server
        self._server.close()
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", self._target)
        self._writers |= {writer, back}
        await asyncio.gather(self._copy(reader, back), self._copy(there, writer))

    async def _copy(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            while data := await source.read(65536):
                target.write(data)
        target.close()


async def test_a_graph_that_went_away_is_found_again(home: Any, neo4j_server: Neo4jServer) -> None:
    route = Route(neo4j_server.port)
    await route.open()
    phases: list[str] = []
    back = asyncio.Event()

    def on_phase(phase: str, error: object) -> None:
        phases.append(phase)
        if phases.count("ready") == 2:
            back.set()

    target = GraphTarget(uri=f"bolt://127.0.0.1:{route.port}", password=neo4j_server.password, adopt=True)
    graph = await Graph.open(target, paths_under(home), embedding_dimension=16, on_phase=on_phase)
    await empty(graph)
    route.close()
    with pytest.raises(GraphUnavailableError):
        await run(graph, "CREATE (:Conversation {uuid: 'lost'})")
    await route.open()
    async with asyncio.timeout(60):
        await back.wait()
    await run(graph, "CREATE (:Conversation {uuid: 'kept'})")
    assert await graph.query_readonly("MATCH (c:Conversation) RETURN c.uuid AS id") == [{"id": "kept"}]
    await graph.close()
    route.close()
    assert phases == ["starting", "ready", "unreachable", "ready"]
