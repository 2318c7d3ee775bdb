"""Which graph is meant: the embedded one or a Neo4j, and what chose it.

Used by whoever opens a graph and by the command line, which names the graph before it reaches it: so it stands apart
from the driver.
"""

from __future__ import annotations

from urllib.parse import unquote, urlsplit, urlunsplit

import msgspec

from ragforge_tui.config import GraphSettings


class GraphTarget(msgspec.Struct, kw_only=True, frozen=True):
    """Which graph, and what chose it. `uri` is empty for the embedded one."""

    uri: str = ""
    username: str = "neo4j"
    password: str = ""
    database: str = ""
    adopt: bool = False
    chosen_by: str = ""
    embedded: bool = False

    @property
    def name(self) -> str:
        """The graph as it is called on the screen: never with credentials."""
        return "embedded" if self.embedded else self.uri

    @property
    def address(self) -> str:
        """Return where the graph is, as a journal notes it: with the database, never with credentials."""
        return f"{self.name} {self.database}" if self.database and not self.embedded else self.name


def resolve_target(settings: GraphSettings, origins: dict[str, str]) -> GraphTarget:
    """The graph the settings ask for; an empty URI is the embedded one. Credentials may stand in the URI."""
    chosen_by = origins.get("graph.uri", "default")
    if not settings.uri:
        return GraphTarget(embedded=True, adopt=settings.adopt, chosen_by=chosen_by)
    parts = urlsplit(settings.uri)
    credentials, _, host = parts.netloc.rpartition("@")
    username, _, password = credentials.partition(":")
    return GraphTarget(
        uri=urlunsplit(parts._replace(netloc=host)),
        username=unquote(username) or settings.username,
        password=unquote(password) or settings.password,
        database=settings.database,
        adopt=settings.adopt,
        chosen_by=chosen_by,
    )
