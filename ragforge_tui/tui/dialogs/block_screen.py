"""Screens for a whole block of the chat: a tool call with all arguments and results, or a long text.

A tool call looks the same whether it is opened here or in the trace.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from ragforge_tui.shared.events import Event, ToolCallFinished, ToolCallStarted
from ragforge_tui.shared.records import ToolCall
from ragforge_tui.tui.dialogs.detail import Section, call_sections, call_title
from ragforge_tui.tui.host import Host
from ragforge_tui.tui.transcript.model.blocks import Block, HeadBlock, NoteBlock, UserBlock
from ragforge_tui.tui.transcript.model.tool_block import ToolBlock
from ragforge_tui.tui.transcript.render.tool_text import CallState

if TYPE_CHECKING:
    from ragforge_tui.tui.dialogs.text_viewer import DetailScreen


def call_screen(
    host: Host,
    call_id: str,
    name: str,
    turn: int,
    *,
    whole: Callable[[], Awaitable[ToolCall]],
    state: Callable[[], CallState],
) -> DetailScreen:
    """Return a screen for a call, updated while it runs.

    Args:
        whole: Returns the call with its result.
        state: Returns the state of the call while it has no result.
    """
    from ragforge_tui.tui.dialogs.text_viewer import DetailScreen

    def title_of(call: ToolCall) -> str:
        return call_title(call, turn, state(), host.now())

    async def load() -> tuple[str, list[Section]]:
        call = await whole()
        return title_of(call), call_sections(call)

    def concerns(event: Event) -> bool:
        return isinstance(event, ToolCallStarted | ToolCallFinished) and event.call.uuid == call_id

    def title_now() -> str:
        block = block_of_call(host, call_id)
        return title_of(block.call) if block is not None and block.call.result is None else ""

    return DetailScreen(
        f"{name} · turn {turn}",
        load,
        actions={"g": ("turn", "go to its turn")},
        concerns=concerns,
        title_now=title_now,
    )


def block_of_call(host: Host, call_id: str) -> ToolBlock | None:
    """Return the block of a call in the chat, if there is one."""
    blocks = reversed(host.transcript.document.blocks)
    return next((block for block in blocks if isinstance(block, ToolBlock) and block.call.uuid == call_id), None)


def block_screen(host: Host, block: Block) -> DetailScreen:
    """Return a screen for a block of the chat."""
    from ragforge_tui.tui.dialogs.text_viewer import DetailScreen

    if isinstance(block, ToolBlock):
        call = block.call

        def shown() -> ToolBlock:
            # If its turn was rendered again meanwhile, the new block has the current state.
            return block_of_call(host, call.uuid) or block

        async def whole() -> ToolCall:
            return shown().call

        return call_screen(host, call.uuid, call.tool_name, block.turn_index, whole=whole, state=lambda: shown().state)
    title = f"{_name_of(block)} · turn {block.turn_index}" if block.turn_index else _name_of(block)

    async def load() -> tuple[str, list[Section]]:
        return title, [
            Section(title=f"{len(block.source):,} characters".replace(",", " "), text=block.source, look="prose")
        ]

    return DetailScreen(title, load, actions={})


def _name_of(block: Block) -> str:
    if isinstance(block, UserBlock):
        return block.name
    if isinstance(block, HeadBlock):
        return "Reasoning"
    return "Notice" if isinstance(block, NoteBlock) else "Answer"
