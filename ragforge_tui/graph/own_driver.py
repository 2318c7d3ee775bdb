"""The graph behind a driver that a program passes in, named so that nothing of another graph is mixed with it."""

from __future__ import annotations

from typing import Any

from neo4j import AsyncDriver

from ragforge_tui.graph.target import GraphTarget
from ragforge_tui.settings.schema import GraphSettings


def driver_target(driver: Any, settings: GraphSettings) -> GraphTarget:
    """Return the target that a driver reaches; `database` and `adopt` come from the settings.

    Raises:
        TypeError: It is not an async driver of neo4j.
    """
    if not isinstance(driver, AsyncDriver):
        raise TypeError(f"graph must be a URI or a neo4j.AsyncDriver, not {type(driver).__name__}.")
    # The journal tells graphs apart by their addresses: an unknown one is like no other.
    direct = getattr(driver, "address", None)
    addresses = [direct] if direct else list(getattr(driver, "initial_addresses", None) or [f"driver-{id(driver):x}"])
    return GraphTarget(
        uri=f"{'bolt' if direct else 'neo4j'}://{addresses[0]}",
        username="",
        database=settings.database,
        adopt=settings.adopt,
        chosen_by="the program",
    )
