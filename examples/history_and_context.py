"""What is stored of a conversation, and what a request holds of it: ``python -m examples.history_and_context``."""

from __future__ import annotations

import asyncio

from ragforge_tui import ConversationAgent


async def main() -> None:
    async with ConversationAgent(model="offline") as agent:
        conversation = await agent.create_conversation("Refactoring authentication module", tags=["refactoring"])
        for text in ("Where is `greet` defined?", "Read greeting.py", "Which files are here?"):
            await conversation.send_message(text)

        history = await conversation.get_history(limit=50, include_tool_calls=True, include_reasoning=True)
        print(len(history), "turns, the first asks:", history[0].messages[0].content)

        for hit in await conversation.search_history("greet", limit=10):
            print("Found turn", hit.turn.turn_index, round(hit.score, 2))

        for call in await conversation.get_tool_calls("read_file", success=True, limit=5):
            print("Read", call.arguments)

        for file in await conversation.get_recent_files(limit=10):
            print(file.group, file.path, "in turn", file.turn_index)

        print("Summary:", await conversation.summarize())

        context = await conversation.build_context(
            "What did we read?", strategy="hybrid", recent_messages=5, relevant_messages=10, include_summary=True
        )
        for section in context.sections:
            print(f"{section.title}: {len(section.items)} items, {section.tokens} tokens")


if __name__ == "__main__":
    asyncio.run(main())
