"""An own Neo4j driver: ``NEO4J_URI=bolt://… NEO4J_PASSWORD=… python -m examples.own_driver``.

The agent uses the driver and leaves it open. With ``adopt``, it adds its own nodes next to those of your application.
"""

from __future__ import annotations

import asyncio
import os

from neo4j import AsyncGraphDatabase

from ragforge_tui import ConversationAgent


async def main() -> None:
    user, password = os.environ.get("NEO4J_USERNAME", "neo4j"), os.environ["NEO4J_PASSWORD"]
    async with AsyncGraphDatabase.driver(os.environ["NEO4J_URI"], auth=(user, password)) as driver:
        async with ConversationAgent({"graph": {"adopt": True}}, graph=driver, model="offline") as agent:
            conversation = await agent.create_conversation("Own driver")
            answer = await conversation.send_message("Which files are here?")
            print(answer.content)
        found = await driver.execute_query(
            "MATCH (c:Conversation {uuid: $uuid})-[:HAS_MESSAGE]->(m:Message) RETURN count(m) AS messages",
            uuid=conversation.id,
        )
        print("Messages in the graph:", found.records[0]["messages"])


if __name__ == "__main__":
    asyncio.run(main())
