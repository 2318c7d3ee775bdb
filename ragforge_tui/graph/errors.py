"""Messages for the driver's errors: what happened and what to do about it."""

from __future__ import annotations

import asyncio
import random
import re
import ssl
from collections.abc import Iterator

from neo4j.exceptions import (
    AuthError,
    ConfigurationError,
    ConstraintError,
    DriverError,
    Neo4jError,
    ServiceUnavailable,
    SessionExpired,
)

from ragforge_tui.shared.errors import ErrorInfo, GraphError, GraphUnavailableError

MINIMUM = (5, 23)
REFUSALS = frozenset({"graph_auth", "graph_version", "graph_database", "graph_tls", "graph_uri", "graph_foreign"})
"""Kinds of error where the server answered, or never will as configured: waiting does not help."""
LOST_RETRY_SECONDS = 3.0
"""Seconds for which a broken connection to a Neo4j server is retried before it counts as unreachable."""
CONSTRAINT_ATTEMPTS = 25


def refused(error: ErrorInfo) -> bool:
    """Return whether only the user can fix it."""
    return error.kind in REFUSALS or error.kind in {"graph_newer", "graph_not_embedded"}


def lost(error: BaseException) -> bool:
    """Return whether the connection broke, as opposed to the server rejecting a statement."""
    if isinstance(error, DriverError):
        return isinstance(error, ServiceUnavailable | SessionExpired) or "Connection" in type(error).__name__
    return isinstance(error, OSError)


def explain(error: BaseException, name: str, username: str, database: str) -> GraphError:
    """Return the error to show to the user for one that the driver raised.

    Args:
        error: The driver's exception.
        name: The graph as it is called on the screen.
        username: The user it was tried with.
        database: The database asked for, empty for the default one.
    """
    said = _first_line(error)
    if isinstance(error, ConfigurationError | ValueError):
        return _unavailable(
            "graph_uri", f"The graph's URI {name} cannot be used: {said}", "Write it as bolt://host:7687 or neo4j://…"
        )
    if isinstance(error, AuthError):
        return _rejected(error, name, username)
    if isinstance(error, Neo4jError):
        return _server_error(error, name, database, said)
    if trouble := _tls(error):
        return _unavailable(
            "graph_tls",
            f"No encrypted connection to the graph at {name}: {trouble}.",
            "Use bolt:// or neo4j:// for a server without TLS, +ssc for a self-signed certificate.",
        )
    return _unreachable(error, name)


def too_old(agent: str, name: str) -> GraphUnavailableError | None:
    """Return an error if the server's name is not that of a recent enough Neo4j."""
    match = re.match(r"Neo4j/v?(\d+)\.(\d+)", agent)
    if match and "compatible" not in agent and (int(match[1]), int(match[2])) >= MINIMUM:
        return None
    needed = ".".join(map(str, MINIMUM))
    return _unavailable(
        "graph_version",
        f"The server at {name} is {agent or 'of an unknown kind'}; Neo4j {needed} or newer is required.",
        "Upgrade it (5.26 LTS is tested), or leave the URI out to use the embedded graph.",
    )


def timed_out(name: str, seconds: float) -> GraphUnavailableError:
    """Return the error of a statement or connection that got no response in time."""
    return _unavailable(
        "graph_timeout", f"The graph at {name} did not answer within {seconds:.0f} s.", "Check that it is running."
    )


class Retries:
    """The decision whether a failed transaction is worth another attempt, and the wait before it."""

    def __init__(self) -> None:
        self._conflicts = 0
        self._tries = 0
        self._lost_since: float | None = None

    def should_retry(self, error: BaseException, *, restarts: bool) -> bool:
        """Return whether to retry; `restarts` if this program restarts a lost server."""
        if isinstance(error, ConstraintError) or _vanished(error):
            self._conflicts += 1
            return self._conflicts < CONSTRAINT_ATTEMPTS
        if lost(error):
            clock = asyncio.get_running_loop().time()
            self._lost_since = self._lost_since or clock
            return restarts or clock - self._lost_since < LOST_RETRY_SECONDS
        return isinstance(error, DriverError | Neo4jError) and error.is_retryable()

    async def wait(self) -> None:
        """Wait a little longer each time, never in step with other writers."""
        self._tries += 1
        longest = 0.5 if self._lost_since else 0.1
        await asyncio.sleep(min(0.01 * 2**self._tries, longest) * random.uniform(0.3, 1.0))


def _vanished(error: BaseException) -> bool:
    """Return whether a node was deleted between the index that named it and the read of it: nothing locks it."""
    return isinstance(error, Neo4jError) and (error.code or "").endswith("EntityNotFound")


def _rejected(error: AuthError, name: str, username: str) -> GraphUnavailableError:
    if "RateLimit" in (error.code or ""):
        return _unavailable(
            "graph_auth", f"The graph at {name} rejects logins after too many failed ones.", "Wait a few seconds."
        )
    return _unavailable(
        "graph_auth",
        f"The graph at {name} rejected the password of user {username!r}.",
        "Check NEO4J_USERNAME and NEO4J_PASSWORD, or graph.username and graph.password.",
    )


def _server_error(error: Neo4jError, name: str, database: str, said: str) -> GraphError:
    code = error.code or ""
    if code.endswith("DatabaseNotFound"):
        return _unavailable(
            "graph_database", f"The graph at {name} has no database {database!r}.", "Check NEO4J_DATABASE."
        )
    if "CredentialsExpired" in code:
        return _unavailable(
            "graph_auth", f"The password for {name} must be changed first.", "Log in once with another Neo4j tool."
        )
    if "DatabaseUnavailable" in code or code.endswith("General.DatabaseUnavailable"):
        return _unavailable("graph_unreachable", f"The graph at {name} is not available: {said}", "Try again shortly.")
    if isinstance(error, ConstraintError):
        return GraphError(f"The graph rejected a value that is already taken: {said}", kind="graph_conflict")
    return GraphError(f"The graph rejected a statement: {said}", kind="graph_statement")


def _unreachable(error: BaseException, name: str) -> GraphUnavailableError:
    text = " ".join(str(cause) for cause in _causes(error))
    if "looks like HTTP" in text:
        return _unavailable(
            "graph_unreachable",
            f"The server at {name} speaks HTTP, not Bolt.",
            "Use the Bolt port, usually 7687.",
        )
    if "DNS resolve" in text:
        return _unavailable(
            "graph_unreachable", f"The host of {name} cannot be found.", "Check the URI, or the network."
        )
    if "handshake" in text:
        return _unavailable(
            "graph_unreachable",
            f"The server at {name} does not speak Bolt, or only with TLS.",
            "Check the port; try bolt+s:// or neo4j+s://.",
        )
    return _unavailable(
        "graph_unreachable", f"No graph answers at {name}.", "Start it, or check graph.uri (NEO4J_URI) and the network."
    )


def _unavailable(kind: str, what: str, todo: str) -> GraphUnavailableError:
    return GraphUnavailableError(what, todo=todo, kind=kind)


def _tls(error: BaseException) -> str:
    causes = list(_causes(error))
    text = " ".join(map(str, causes))
    if "SSLCertVerificationError" in text or any(isinstance(cause, ssl.SSLCertVerificationError) for cause in causes):
        return "the server's certificate is not trusted"
    if "[SSLError]" in text or any(isinstance(cause, ssl.SSLError) for cause in causes):
        return "the server does not answer with TLS"
    if any(type(cause).__name__ == "BoltSecurityError" for cause in causes):
        return "the handshake failed"
    return ""


def _causes(error: BaseException) -> Iterator[BaseException]:
    seen: list[BaseException] = [error]
    while seen:
        current = seen.pop(0)
        yield current
        if isinstance(current, BaseExceptionGroup):
            seen.extend(current.exceptions)
        if current.__cause__ is not None:
            seen.append(current.__cause__)


def _first_line(error: BaseException) -> str:
    text = (error.message or "") if isinstance(error, Neo4jError) else str(error)
    return text.strip().partition("\n")[0][:300] or type(error).__name__
