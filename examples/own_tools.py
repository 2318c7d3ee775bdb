"""Functions as tools of the agent: ``python -m examples.own_tools``.

The model is a function too, so that the example decides which tools are called.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from ragforge_tui import ApprovalRequested, ConversationAgent, tool

STOCK = {"bolt": 12, "nut": 0}


@dataclass
class Line:
    """Line of an order."""

    item: str
    count: int = 1


def stock(item: Annotated[str, "Name of the item, in the singular"]) -> dict[str, int]:
    """Return how many pieces of an item are left."""
    return {item: STOCK[item]}


@tool(access="write")
async def order(lines: list[Line], speed: Literal["normal", "express"] = "normal") -> str:
    """Order items for the customer.

    Args:
        lines: What to order.
        speed: How fast it is sent.
    """
    await asyncio.sleep(0)  # where a real one would call a service
    for line in lines:
        STOCK[line.item] -= line.count
    return f"Ordered {sum(line.count for line in lines)} pieces, {speed}."


def model(messages: list[dict[str, Any]], tools: list[dict[str, Any]] | None) -> dict[str, Any] | str:
    """Look at the stock, order, then report: what a real model would decide by itself."""
    results = [message["content"] for message in messages if message["role"] == "tool"]
    if tools is None or len(results) == 3:
        return "Done: " + " / ".join(results)
    calls: list[tuple[str, dict[str, Any]]] = [
        ("stock", {"item": "bolt"}),
        ("stock", {"item": "screw"}),  # unknown: the error is reported to the model
        ("order", {"lines": [{"item": "bolt", "count": 2}], "speed": "express"}),
    ]
    name, arguments = calls[len(results)]
    return {"tool_calls": [{"function": {"name": name, "arguments": arguments}}]}


async def approve(question: ApprovalRequested) -> bool | str:
    """Answer for the user: allow orders, refuse the rest with a reason for the model."""
    return True if question.call.tool_name == "order" else "Only orders are allowed here."


async def main() -> None:
    async with ConversationAgent(model=model, tools=[stock, order], approve=approve) as agent:
        conversation = await agent.create_conversation("Orders")
        answer = await conversation.send_message("Order two bolts, please.")
        print(answer.content)
        for call in answer.tool_calls:
            print(call.tool_name, "succeeded" if call.success else "failed", call.result and call.result.error)


if __name__ == "__main__":
    asyncio.run(main())
