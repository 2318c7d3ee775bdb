"""The agent in a script without async: ``python -m examples.plain_script``. Ctrl-C stops the running turn."""

from __future__ import annotations

from ragforge_tui import SyncConversationAgent
from ragforge_tui.shared.events import TextDelta, ToolCallFinished


def main() -> None:
    with SyncConversationAgent(model="offline") as agent:
        planning = agent.create_conversation("Refactor UserService")
        for event in planning.stream("Which files are here?"):
            if isinstance(event, TextDelta):
                print(event.text, end="")
            elif isinstance(event, ToolCallFinished):
                print(f"[{event.call.tool_name}]")
        print()
        planning.send_message("What are the main issues?")
        print("Summary:", planning.summarize())


if __name__ == "__main__":
    main()
