"""A lock on nodes for the length of a transaction.

Neither backend keeps two transactions from relating the same nodes twice, because relationships have no key. The lock
makes it safe to look at relationships and then create some where several processes may do the same work at once, and
where MERGE would walk all relationships of a node that has many.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from neo4j import AsyncManagedTransaction


async def hold(tx: AsyncManagedTransaction, label: str, uuids: Iterable[str]) -> None:
    """Let no other holder of these nodes pass until the transaction ends.

    Neo4j locks a node whose property is set, so the second holder waits and then sees what the first has made. The
    embedded server refuses the second one's commit, and it is run again; for that the node must really change,
    so each holder leaves a mark of its own. Always in the same order, so that two do not cross.
    """
    result = await tx.run(
        f"UNWIND $ids AS id MATCH (n:{label} {{uuid: id}}) SET n.held = $mark",
        ids=sorted(set(uuids)),
        mark=secrets.token_hex(4),
    )
    await result.consume()
