"""Branches, exports in real time, export and import: ``python -m examples.branches_and_exports``."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from ragforge_tui import ConversationAgent


def suffixes(folder: Path) -> list[str]:
    """Return the suffixes of the files in a folder."""
    return sorted(path.suffix for path in folder.iterdir())


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        exporting = {"agent": {"memory": {"export": {"enabled": True, "path": folder, "format": "both"}}}}
        async with ConversationAgent(exporting, model="offline") as agent:
            conversation = await agent.create_conversation("Two ways")
            await conversation.send_message("Where is `greet` defined?")
            (turn,) = await conversation.get_history()

            branch = await conversation.branch(from_message=turn.messages[0].uuid, title="Alternative approach")
            await branch.send_message("Read greeting.py")
            print(branch.title, "has", len(await branch.get_history()), "turns")

            exported = await conversation.export()
            await conversation.export(Path(folder, "two-ways.md"), format="markdown")
            imported = await agent.import_conversation(exported)
            print("Imported again:", imported.created, imported.adds.text())
            await conversation.archive()
        # Written as the conversations grew, complete when the agent is closed.
        print("Files:", await asyncio.to_thread(suffixes, Path(folder)))


if __name__ == "__main__":
    asyncio.run(main())
