"""What is remembered over all conversations, and what the user does with it. Part of the public Python API.

An act reaches the conversations that are open in this process with their next request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from ragforge_tui.graph import Store
from ragforge_tui.memory.findings import acts
from ragforge_tui.shared.finding_records import KeptFinding, KeptKind
from ragforge_tui.shared.memory_acts import ActKind, MemoryAct


class _Graph(Protocol):
    async def store(self) -> Store: ...


class _Memory(Protocol):
    async def findings_changed(self, changed: KeptFinding | None = None) -> None: ...


class Remembered:
    """Decisions, wishes, open points and facts of all conversations that are not private.

    Args:
        memories: Returns the memories of the open conversations.

    Examples:
        ```python
        for wish in await agent.remembered.findings(kinds=["wish"]):
            print(wish.text, wish.scope, wish.conversation_id, wish.turn_index)
        await agent.remembered.act(wish.uuid, "forget")
        await agent.remembered.undo()
        ```
    """

    def __init__(self, graph: _Graph, memories: Callable[[], Iterable[_Memory]]) -> None:
        self._graph = graph
        self._memories = memories

    async def findings(
        self,
        workspace: str | None = None,
        *,
        kinds: list[KeptKind] | None = None,
        current: bool = True,
        asking: str = "",
    ) -> list[KeptFinding]:
        """Return what is remembered, the newest first.

        Args:
            workspace: Only what holds in this folder; None for all folders.
            kinds: Only these.
            current: Only what holds or is still open.
            asking: A conversation whose own findings are returned even if it is private.
        """
        store = await self._graph.store()
        return await store.memory_acts.findings(workspace, kinds, current=current, asking=asking)

    async def act(self, ref: str, act: ActKind, text: str = "", *, asking: str = "") -> KeptFinding:
        """Pin, edit, forget or confirm a finding, and return it as it is now.

        Args:
            ref: Its id or a unique prefix.
            text: The new text of an edit.

        Raises:
            NotFoundError: There is no such finding.
            RagforgeError: The act makes no sense for it.
        """
        store = await self._graph.store()
        changed = await acts.act_on(store, await store.memory_acts.find(ref, asking=asking), act, text)
        await self._changed(changed)
        return changed

    async def undo(self, *, asking: str = "") -> MemoryAct:
        """Take the newest act back, and return it.

        Raises:
            RagforgeError: There is none.
        """
        undone = await acts.undo(await self._graph.store(), asking=asking)
        await self._changed()
        return undone

    async def acts(self, *, asking: str = "") -> list[MemoryAct]:
        """Return the newest acts, also those taken back."""
        return await (await self._graph.store()).memory_acts.newest(asking=asking)

    async def _changed(self, changed: KeptFinding | None = None) -> None:
        for memory in self._memories():
            await memory.findings_changed(changed)
