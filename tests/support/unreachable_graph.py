"""A graph that is away and comes back where it was, on each backend."""

from __future__ import annotations

from pathlib import Path

import msgspec

from ragforge_tui.settings.schema import Loaded
from tests.support.closable_proxy import Door


def with_graph(loaded: Loaded, uri: str) -> Loaded:
    """The same settings with the graph at another address, empty for the embedded one."""
    graph = msgspec.structs.replace(loaded.settings.graph, uri=uri)
    return msgspec.structs.replace(loaded, settings=msgspec.structs.replace(loaded.settings, graph=graph))


class Away:
    """A graph that can be away and come back where it was, on each backend."""

    def __init__(self, loaded: Loaded, folder: Path) -> None:
        self._loaded = loaded
        self._blocked = folder / "blocked"
        self._door = Door()

    @property
    def embedded(self) -> bool:
        return not self._loaded.settings.graph.uri

    @property
    def gone(self) -> Loaded:
        """Settings of the graph while it is away."""
        if not self.embedded:
            return with_graph(self._loaded, self._door.uri)
        # Its data cannot be reached: a file is where the folder of the server should be.
        self._blocked.mkdir(exist_ok=True)
        (self._blocked / "graph").touch()
        paths = msgspec.structs.replace(self._loaded.paths, data=str(self._blocked))
        return msgspec.structs.replace(self._loaded, paths=paths)

    @property
    def back(self) -> Loaded:
        """Settings of the graph once `open` was called."""
        return self._loaded if self.embedded else self.gone

    async def open(self) -> None:
        if not self.embedded:
            await self._door.open(int(self._loaded.settings.graph.uri.rpartition(":")[2]))

    async def shut(self) -> None:
        await self._door.shut()
