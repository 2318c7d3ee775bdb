"""The embedded server's login for the driver, given to that server alone.

The driver opens connections whenever it needs another, long after the first, when the server may have ended and another
process may have its port. It asks for the login after it connected and before it sends it.
"""

from __future__ import annotations

import asyncio

from neo4j import Auth, basic_auth
from neo4j.auth_management import AsyncAuthManager
from neo4j.exceptions import Neo4jError, ServiceUnavailable

from ragforge_tui.graph.embedded.ports import ServerPorts


class ServerLogin(AsyncAuthManager):
    """Gives user name and password to connections that end at the server's own port."""

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
