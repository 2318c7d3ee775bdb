"""The connection to a graph: the driver, and transactions that survive failures of a server.

Schema, repositories and command line run their Cypher through `Graph`. It has no knowledge of conversations; it gives
an answer within a deadline, or an error that the user can act on.
"""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Literal, TypeVar

from neo4j import (
    READ_ACCESS,
    WRITE_ACCESS,
    AsyncDriver,
    AsyncGraphDatabase,
    AsyncManagedTransaction,
    AsyncSession,
    Auth,
    Query,
    basic_auth,
    unit_of_work,
)
from neo4j.auth_management import AsyncAuthManager
from neo4j.exceptions import DriverError, Neo4jError, ServiceUnavailable

from ragforge_tui.graph.content_files import ContentFiles
from ragforge_tui.graph.dialect import ArcadeDialect, Dialect, Neo4jDialect
from ragforge_tui.graph.embedded import http
from ragforge_tui.graph.embedded.attach import ServerHold
from ragforge_tui.graph.embedded.files import DATABASE, ServerAddress
from ragforge_tui.graph.embedded.ports import ServerPorts, connected_to
from ragforge_tui.graph.errors import Retries, explain, lost, refused, timed_out, too_old
from ragforge_tui.graph.schema.migrate import ensure_identity, migrate, read_identity, recorded_folders
from ragforge_tui.graph.target import GraphTarget
from ragforge_tui.graph.values import plain
from ragforge_tui.settings.schema import Paths
from ragforge_tui.shared.errors import ErrorInfo, GraphError, GraphUnavailableError
from ragforge_tui.shared.events import GraphPhase

log = logging.getLogger(__name__)

T = TypeVar("T")
Transaction = AsyncManagedTransaction
Work = Callable[[Transaction], Awaitable[T]]
Attempt = Callable[[AsyncSession], Awaitable[T]]
OnPhase = Callable[[GraphPhase, ErrorInfo | None], None]

USER_AGENT = "ragforge-chat"
OWN_AGENT = f"{USER_AGENT} {uuid.uuid4().hex[:12]}"
"""Name of this process at a server, so that its connections can be distinguished from those of other chats."""
CONNECT_TIMEOUT = 5.0
WATCH_SECONDS = 1.0
ATTACH_SECONDS = 60.0
"""Seconds that a server that reports ready may leave connections unanswered before the chat reports it."""
REACHABLE_WAIT_SECONDS = 2.5
"""Seconds a statement waits for a graph known to be unreachable: one check, including its duration."""
READ_SECONDS = 30.0
"""Deadline of one statement that reads."""
SCHEMA_TIMEOUT = 300.0
"""Seconds one schema statement may take: creating an index over existing data takes time."""


class Graph:
    """An open graph: managed transactions with access modes and bookmarks, each with its own deadline.

    Attributes:
        name: "embedded", or the URI without credentials.
        dialect: What this backend does its own way.
        embedding_dimension: Dimension the vector indexes are made with.
        identity: The uuid of the graph itself, which stays when it moves to another address.
        contents: The folder on this machine with the texts that are stored in files.
    """

    def __init__(
        self,
        target: GraphTarget,
        server: ServerHold | None,
        dimension: int,
        on_phase: OnPhase,
        contents: ContentFiles,
        own_driver: AsyncDriver | None = None,
    ) -> None:
        self.target = target
        self._own_driver = own_driver
        self.name = target.name
        self.identity = ""
        self.contents = contents
        self.embedded = target.embedded
        self.embedding_dimension = dimension
        self.dialect: Dialect = ArcadeDialect(self.server_sql) if server else Neo4jDialect(self.run_schema)
        self._server = server
        self._address: ServerAddress | None = None
        self._ports = ServerPorts(0, 0)
        self._restarted = False
        self._driver: AsyncDriver | None = None
        self._agent = ""
        self._on_phase = on_phase
        self._phase: tuple[GraphPhase, ErrorInfo | None] = ("starting", None)
        self._reachable = asyncio.Event()
        self._connecting = asyncio.Lock()
        self._watcher: asyncio.Task[None] | None = None

    @classmethod
    async def open(
        cls,
        target: GraphTarget,
        paths: Paths,
        *,
        heap_mb: int = 512,
        linger_seconds: float = 20,
        embedding_dimension: int = 512,
        contents: Literal["graph", "hybrid"] = "graph",
        on_phase: OnPhase | None = None,
        driver: AsyncDriver | None = None,
        restoring: bool = False,
    ) -> Graph:
        """Connect, starting the embedded server if need be, check the version and bring the schema up to date.

        Args:
            contents: Where new texts are stored: in the graph, or in files of this machine. Both are read.
            driver: Driver of the caller to reach the target with, which is left open.
            restoring: Open a graph whose restore was interrupted too, to repeat it.

        Raises:
            GraphUnavailableError: It cannot be reached or used; raised within seconds.
            ForeignGraphError: It holds data that is not ours and was not adopted.
        """
        server = ServerHold(paths, heap_mb=heap_mb, linger_seconds=linger_seconds) if target.embedded else None
        files = ContentFiles(Path(paths.data, "contents"), writes=contents == "hybrid")
        graph = cls(target, server, embedding_dimension, on_phase or (lambda phase, error: None), files, driver)
        try:
            await graph._open(restoring=restoring)
        except BaseException as error:
            if isinstance(error, GraphError):
                graph._set_unavailable(error)
            await graph.close()
            raise
        return graph

    async def read(self, work: Work[T], *, deadline: float = 30.0) -> T:
        """Run `work` in a read transaction; on a cluster it may go to a follower and still sees own writes.

        Raises:
            GraphUnavailableError: No response within `deadline` seconds, or the graph is unreachable.
            GraphError: The graph rejected the statement.
        """
        bounded = unit_of_work(timeout=deadline)(work)
        return await self._run(READ_ACCESS, lambda session: session.execute_read(bounded), deadline)

    async def write(self, work: Work[T], *, deadline: float = 30.0) -> T:
        """Run `work` in a write transaction, which must be idempotent: it is run again when its commit's fate is
        unknown, on a transient error, and on a constraint violation (two writers took the same index).

        Raises:
            GraphUnavailableError: No response within `deadline` seconds, or the graph is unreachable.
            GraphError: The graph rejected the statement.
        """
        bounded = unit_of_work(timeout=deadline)(work)
        return await self._run(WRITE_ACCESS, lambda session: session.execute_write(bounded), deadline)

    async def rows(self, statement: str, /, **parameters: Any) -> list[dict[str, Any]]:
        """Return the rows of one statement that reads, as their columns by name.

        The statement is its own transaction, which the server ends: one round trip instead of two.

        Raises:
            GraphUnavailableError: No response within 30 seconds, or the graph is unreachable.
            GraphError: The graph rejected the statement.
        """

        async def attempt(session: AsyncSession) -> list[dict[str, Any]]:
            result = await session.run(Query(statement, timeout=READ_SECONDS), parameters)
            return [dict(record) async for record in result]

        return await self._run(READ_ACCESS, attempt, READ_SECONDS)

    async def one(self, statement: str, /, **parameters: Any) -> dict[str, Any] | None:
        """Return the first row of one statement that reads, None when there is none; fails as `rows` does."""
        return next(iter(await self.rows(statement, **parameters)), None)

    async def write_rows(self, statement: str, /, **parameters: Any) -> list[dict[str, Any]]:
        """Return the rows of one statement that writes, which must be idempotent; fails as `write` does."""
        return await self.write(_all_rows(statement, parameters))

    async def write_one(self, statement: str, /, **parameters: Any) -> dict[str, Any] | None:
        """Return the first row of one statement that writes, None when there is none; see `write_rows`."""
        return next(iter(await self.write_rows(statement, **parameters)), None)

    async def run(self, statement: str, /, **parameters: Any) -> None:
        """Run one statement that writes, which must be idempotent, and leave its rows; fails as `write` does."""

        async def work(tx: Transaction) -> None:
            await (await tx.run(statement, parameters)).consume()

        await self.write(work)

    async def query_readonly(self, cypher: str, *, deadline: float = 30.0) -> list[dict[str, Any]]:
        """Return the rows of a user's own Cypher as plain data; a statement that writes is refused.

        Raises:
            GraphError: It is wrong, or it writes.
        """
        if self.embedded:
            # Bolt lets a write through here, HTTP does not; the values come over Bolt, so that both backends agree.
            await self._server_request("query", "opencypher", cypher, limit=1, timeout=deadline)

        async def work(tx: Transaction) -> list[dict[str, Any]]:
            result = await tx.run(cypher)
            keys = result.keys()
            return [{key: plain(record[key]) for key in keys} async for record in result]

        return await self.read(work, deadline=deadline)

    async def run_schema(self, statement: str) -> None:
        """Run one schema statement in a transaction of its own."""

        async def work(tx: Transaction) -> None:
            await (await tx.run(statement)).consume()

        await self.write(work, deadline=SCHEMA_TIMEOUT)

    async def server_sql(self, command: str) -> Any:
        """Run one SQL command on the embedded server, for the indexes Cypher cannot make."""
        return await self._server_request("command", "sql", command, timeout=SCHEMA_TIMEOUT)

    async def info(self) -> dict[str, Any]:
        """Return the facts that doctor and status show: server, version, address, sizes, nodes by label."""
        found: dict[str, Any] = {
            "name": self.name,
            "identity": self.identity,
            "chosen_by": self.target.chosen_by,
            "server": self._agent,
        }
        if self._server and self._address:
            files = self._server.files
            found |= {
                "uri": f"bolt://127.0.0.1:{self._address.bolt_port}",
                "http": f"http://127.0.0.1:{self._address.http_port}",
                "username": self._address.username,
                "password_file": str(files.password),
                "database": DATABASE,
                "version": self._address.version,
                "pid": self._address.pid,
                "data": str(files.root),
                "log": str(files.log),
                "size_bytes": await asyncio.to_thread(files.size),
            }
        else:
            found |= {"uri": self.target.uri, "username": self.target.username, "database": self._database or "default"}
        counted = await self.query_readonly("MATCH (n) UNWIND labels(n) AS label RETURN label, count(*) AS nodes")
        found["nodes"] = {row["label"]: row["nodes"] for row in sorted(counted, key=lambda row: str(row["label"]))}
        return found

    async def being_restored(self) -> str:
        """Return the name of the backup that is restored into the graph, or was until the restore was interrupted."""
        row = await self.one("MATCH (v:RagforgeSchema {name: 'schema'}) RETURN coalesce(v.restoring, '') AS backup")
        return str(row["backup"]) if row else ""

    async def used_by_others(self) -> bool:
        """Return whether other processes are connected; a Neo4j that does not report it counts as unused."""
        if self._address:
            return await asyncio.to_thread(connected_to, self._address.pid, self._address.bolt_port)
        try:
            rows = await self.rows("CALL dbms.listConnections() YIELD userAgent RETURN userAgent AS agent")
        except GraphError as error:
            log.info("connections of the graph are not listed: %s", error)
            return False
        # A connection that is just being made has no name yet.
        agents = [str(row["agent"] or "") for row in rows]
        return any(agent.startswith(f"{USER_AGENT} ") and agent != OWN_AGENT for agent in agents)

    async def identify(self) -> str:
        """Read the graph's identity again: the server at its address may have been replaced.

        Raises:
            GraphUnavailableError: It is unreachable.
        """
        await self._set_identity(await read_identity(self))
        return self.identity

    async def prepare_contents(self) -> None:
        """Create this machine's contents folder if it is missing, and record it for other machines.

        Raises:
            OSError: It cannot be written.
        """
        folder = await self.contents.prepare()
        self.contents.places = await recorded_folders(self, {folder: self.contents.place})

    async def close(self) -> None:
        """Close connections and release the embedded server."""
        if self._watcher:
            self._watcher.cancel()
            await asyncio.gather(self._watcher, return_exceptions=True)
        if self._driver:
            await self._close_driver(self._driver)
        if self._server:
            self._server.release()
        self.contents.close()

    @property
    def _database(self) -> str | None:
        return DATABASE if self.embedded else self.target.database or None

    async def _open(self, *, restoring: bool) -> None:
        self._on_phase("starting", None)
        await self._connect(None)
        await migrate(self, adopt=self.target.adopt, embedding_dimension=self.embedding_dimension)
        if not restoring and (backup := await self.being_restored()):
            raise GraphUnavailableError(
                f"The graph at {self.name} is being restored from {backup}.",
                kept="New turns go to the journal.",
                todo="Wait until that has ended; if it was interrupted, run it again.",
                kind="graph_restoring",
            )
        await self._set_identity(await ensure_identity(self))
        self._set_phase("ready")
        self._watcher = asyncio.create_task(self._watch())

    async def _set_identity(self, identity: str) -> None:
        """Use the contents folder of this graph; record the folder in the graph if texts are written there."""
        if identity == self.identity:
            return
        self.identity = identity
        self.contents = self.contents.of_graph(identity)
        self.contents.places = await recorded_folders(self)
        if self.contents.writes:
            try:
                await self.prepare_contents()
            except OSError as error:
                log.warning("contents: %s cannot be written: %s", self.contents.root, error)

    async def _connect(self, broken: AsyncDriver | None) -> None:
        """Replace a broken driver, unless another task has done so already."""
        async with self._connecting:
            if self._driver is not broken:
                return
            if self._server:
                await self._attach()
            else:
                auth = (self.target.username, self.target.password)
                await self._try_driver(self.target.uri, auth)

    async def _attach(self) -> None:
        """Connect to the embedded server, which may be starting, ending or new.

        Raises:
            GraphUnavailableError: It cannot be started, or does not answer for `ATTACH_SECONDS`.
        """
        assert self._server
        end = time.monotonic() + ATTACH_SECONDS
        while True:
            address = await self._server.ensure_server(on_wait=lambda: self._set_phase("starting"))
            self._use(address)
            try:
                login = ServerLogin(
                    self._ports, address.bolt_port, address.username, self._server.files.read_password()
                )
                await self._try_driver(f"bolt://127.0.0.1:{address.bolt_port}", login)
                self._restarted = False
                return
            except GraphUnavailableError as error:
                if error.info.kind == "graph_auth" and not self._restarted:
                    self._restarted = True
                    await self._server.stop_server(address)
                    continue
                if refused(error.info) or time.monotonic() > end:
                    raise
                log.info("embedded server %s does not answer yet: %s", address.pid, error)
                await asyncio.sleep(0.1)

    def _use(self, address: ServerAddress) -> None:
        if (self._ports.pid, self._ports.started) != (address.pid, address.started):
            self._ports = ServerPorts(address.pid, address.started)
        self._address = address

    async def _try_driver(self, uri: str, auth: tuple[str, str] | ServerLogin) -> None:
        driver = self._own_driver
        try:
            driver = driver or AsyncGraphDatabase.driver(
                uri,
                auth=auth,
                connection_timeout=CONNECT_TIMEOUT,
                connection_acquisition_timeout=2 * CONNECT_TIMEOUT,
                # Retries are made here: immediately, on constraint errors too, and at another port if necessary.
                max_transaction_retry_time=0,
                keep_alive=True,
                telemetry_disabled=True,
                notifications_min_severity="OFF",
                user_agent=OWN_AGENT,
            )
            async with asyncio.timeout(CONNECT_TIMEOUT + 2):
                agent = (await driver.get_server_info()).agent
                if not self.embedded and (old := too_old(agent, self.name)):
                    raise old
                async with driver.session(database=self._database) as session:
                    await (await session.run("RETURN 1")).consume()
        except BaseException as error:
            if driver:
                await self._close_driver(driver)
            if isinstance(error, TimeoutError):
                raise timed_out(self.name, CONNECT_TIMEOUT + 2) from error
            if isinstance(error, DriverError | Neo4jError | OSError | ValueError):
                raise self._explained(error) from error
            raise
        old_driver, self._driver, self._agent = self._driver, driver, agent
        self._bookmarks = AsyncGraphDatabase.bookmark_manager()
        if old_driver:
            await self._close_driver(old_driver)

    async def _close_driver(self, driver: AsyncDriver) -> None:
        if driver is not self._own_driver:
            await driver.close()

    async def _run(self, access: str, attempt: Attempt[T], deadline: float) -> T:
        last: BaseException | None = None
        try:
            async with asyncio.timeout(deadline):
                await self._wait_until_reachable()
                retries = Retries()
                while True:
                    driver = self._driver
                    assert driver
                    try:
                        result = await self._attempt(driver, access, attempt)
                    except (DriverError, Neo4jError, OSError) as error:
                        last = error
                        replaced = self._driver is not driver  # by a concurrent statement
                        if not replaced and not retries.should_retry(error, restarts=self.embedded):
                            raise self._explained(error) from error
                        if lost(error) and self.embedded:
                            await self._connect(driver)
                        await retries.wait()
                    else:
                        self._set_phase("ready")
                        return result
        except TimeoutError as error:
            failure = timed_out(self.name, deadline)
            self._set_unavailable(failure)
            raise failure from last or error
        except GraphUnavailableError as error:
            self._set_unavailable(error)
            raise

    async def _attempt(self, driver: AsyncDriver, access: str, attempt: Attempt[T]) -> T:
        async with driver.session(
            database=self._database, default_access_mode=access, bookmark_manager=self._bookmarks
        ) as session:
            return await attempt(session)

    async def _wait_until_reachable(self) -> None:
        """Fail early while the graph is known to be unreachable; `_watch` notices when it is reachable again."""
        phase, error = self._phase
        if phase in ("unreachable", "refused") and error:
            try:
                async with asyncio.timeout(REACHABLE_WAIT_SECONDS):
                    await self._reachable.wait()
            except TimeoutError:
                raise GraphUnavailableError(error.what, todo=error.todo, kept=error.kept, kind=error.kind) from None

    async def _watch(self) -> None:
        """Check whether an unreachable graph is reachable again."""
        while True:
            await asyncio.sleep(WATCH_SECONDS)
            try:
                if self._phase[0] in ("unreachable", "refused"):
                    await self._connect(self._driver)
                    self._set_phase("ready")
            except GraphError as error:
                self._set_unavailable(error)
            except OSError as error:
                log.warning("could not look after the embedded server: %s", error)

    async def _server_request(self, kind: str, language: str, command: str, *, limit: int = 1, timeout: float) -> Any:
        assert self._server
        for attempt in range(3):
            address = await self._server.ensure_server()
            self._use(address)
            login = http.Login(self._ports, address.http_port, address.username, self._server.files.read_password())
            payload = {"language": language, "command": command, "limit": limit}
            try:
                return await asyncio.to_thread(http.request, login, f"{kind}/{DATABASE}", payload, timeout=timeout)
            except http.HttpError as error:
                if "NotIdempotent" in error.exception:
                    todo = "Only read-only statements are allowed here."
                    raise GraphError(
                        "The statement would change the graph.", todo=todo, kind="graph_statement"
                    ) from error
                raise self._concealed() from error
            except TimeoutError as error:
                raise timed_out(self.name, timeout) from error
            except OSError as error:
                log.info("embedded server's HTTP endpoint did not answer (%s): %s", attempt, error)
                await asyncio.sleep(0.5)
        raise timed_out(self.name, timeout)

    def _explained(self, error: BaseException) -> GraphError:
        explained = explain(error, self.name, self.target.username, self.target.database)
        if self._server and explained.info.kind == "graph_statement":
            return self._concealed()
        if self._server and explained.info.kind == "graph_auth":
            return GraphUnavailableError(
                f"The embedded graph rejects the password in {self._server.files.password}.",
                todo="Run `ragforge-chat graph stop`; the next start sets that password again.",
                kind="graph_auth",
            )
        return explained

    def _concealed(self) -> GraphError:
        # In production mode, which durability needs, the embedded server writes reasons only to its log.
        assert self._server
        todo = f"The reason is at the end of {self._server.files.log}."
        return GraphError("The graph rejected a statement.", todo=todo, kind="graph_statement")

    def _set_unavailable(self, error: GraphError) -> None:
        self._set_phase("refused" if refused(error.info) else "unreachable", error.info)

    def _set_phase(self, phase: GraphPhase, error: ErrorInfo | None = None) -> None:
        if phase == "ready":
            self._reachable.set()
        else:
            self._reachable.clear()
        if self._phase != (phase, error):
            self._phase = (phase, error)
            self._on_phase(phase, error)


def _all_rows(statement: str, parameters: dict[str, Any]) -> Work[list[dict[str, Any]]]:
    async def work(tx: Transaction) -> list[dict[str, Any]]:
        return [dict(record) async for record in await tx.run(statement, parameters)]

    return work


class ServerLogin(AsyncAuthManager):
    """Login of the embedded server for the driver, given only to connections to that server's own port.

    The driver opens connections long after the first one, when the server may have ended and another process may have
    its port. It requests the login after it connected and before it sends it.
    """

    def __init__(self, ports: ServerPorts, port: int, username: str, password: str) -> None:
        self._ports = ports
        self._port = port
        self._auth = basic_auth(username, password)

    async def get_auth(self) -> Auth:
        """Return the login.

        Raises:
            ServiceUnavailable: Another process has the port; the driver drops the connection.
        """
        if not self._ports.still_holds(self._port) and not await asyncio.to_thread(self._ports.holds, self._port):
            raise ServiceUnavailable(f"Port {self._port} is not the embedded server's.")
        return self._auth

    async def handle_security_exception(self, auth: tuple[str, str] | Auth | None, error: Neo4jError) -> bool:
        """Let the error through: there is no other login."""
        return False
