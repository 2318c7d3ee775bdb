"""The graph that the settings mean: the embedded one or a Neo4j, and the setting that chose it.

Apart from the driver, because the command line names the graph before it connects.
"""

from __future__ import annotations

from urllib.parse import unquote, urlsplit, urlunsplit

import msgspec

from ragforge_tui.settings.schema import GraphSettings


class GraphTarget(msgspec.Struct, kw_only=True, frozen=True):
    """A graph and the setting that chose it. `uri` is empty for the embedded one."""

    uri: str = ""
    username: str = "neo4j"
    password: str = ""
    database: str = ""
    adopt: bool = False
    chosen_by: str = ""
    embedded: bool = False

    @property
    def name(self) -> str:
        """Return the graph's name for display: never with credentials."""
        return "embedded" if self.embedded else self.uri

    @property
    def address(self) -> str:
        """Return where the graph is, as a journal notes it: with the database, never with credentials."""
        return f"{self.name} {self.database}" if self.database and not self.embedded else self.name


def resolve_target(settings: GraphSettings, origins: dict[str, str]) -> GraphTarget:
    """Return the graph that the settings name; an empty URI is the embedded one. The URI may contain credentials."""
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
