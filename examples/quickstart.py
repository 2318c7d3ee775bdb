"""A conversation whose agent remembers: ``python -m examples.quickstart``."""

from __future__ import annotations

import asyncio

from ragforge_tui import ConversationAgent


async def main() -> None:
    async with ConversationAgent(model="offline") as agent:
        conversation = await agent.create_conversation("Debug authentication", tags=["debugging", "auth"])

        answer = await conversation.send_message("Where is `greet` defined?")
        print(answer.content)
        print("Reasoning:", answer.reasoning or "none: the offline assistant does not reason")
        for call in answer.tool_calls:
            print("Called", call.tool_name, call.arguments)
        if answer.context_used is not None:
            for section in answer.context_used.sections:
                print("Sent", section.title, section.tokens, "tokens")
        print("Tokens:", answer.usage.input_tokens, "+", answer.usage.output_tokens)

        # The agent knows which function "its" means, because the earlier turns are sent along or recalled.
        await conversation.send_message("Show me its implementation")

    # Later, in another process: the conversation is found by its tags and continued.
    async with ConversationAgent(model="offline") as agent:
        newest, *_ = await agent.list_conversations(tags=["auth"], order="updated", limit=5)
        resumed = await agent.load_conversation(newest.uuid)
        answer = await resumed.send_message("Where were we?")
        print(f"Turn {answer.turn_index} of {resumed.title!r}")


if __name__ == "__main__":
    asyncio.run(main())
