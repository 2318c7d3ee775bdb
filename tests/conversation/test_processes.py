"""Background processes in held conversations: stored calls, the words on their end, and resuming."""

from __future__ import annotations

from ragforge_tui.conversation import ConversationAgent
from ragforge_tui.settings.schema import Loaded
from ragforge_tui.shared.events import Notice, ProcessesChanged
from tests.support.model_script import Script
from tests.support.waiting import until

COMMAND = "echo started; until [ -e go ]; do sleep 0.05; done; exit 5"


async def test_a_process_goes_on_between_turns_and_its_end_is_told_once(loaded: Loaded, server: Script) -> None:
    start = {"name": "run_command", "arguments": {"command": COMMAND, "background": True}}
    server.script(
        [{"tool_calls": [start]}, {"text": "It runs."}, {"text": "I saw that it ended."}, {"text": "Nothing new."}]
    )
    async with ConversationAgent(loaded, approve="all") as agent:
        conversation = await agent.create_conversation()
        with agent.subscribe() as events:
            answer = await conversation.send_message("Start the server.")
            assert "[Process 1 runs" in str(answer.tool_calls[0].result)
            processes = agent.services.toolbox.processes
            assert processes.running == 1
            (agent.services.workspace / "go").touch()
            await until(lambda: not processes.running)
            await conversation.send_message("And now?")
            await conversation.send_message("And now?")
            seen = [events.get_nowait() for _ in range(events.qsize())]
        assert [event.running for event in seen if isinstance(event, ProcessesChanged)] == [1, 0]
        (notice,) = [e for e in seen if isinstance(e, Notice) and "Process 1" in e.text]
        assert notice.level == "warning" and notice.text.endswith("Exit status 5.")
        uuid = conversation.record.uuid
    told = [str(request["messages"][-1]["content"]) for request in server.chats()]
    assert ["has ended. Exit status 5." in text for text in told] == [False, False, True, False]
    async with ConversationAgent(loaded, approve="all") as agent:
        resumed = await agent.load_conversation(uuid)
        first, second, third = await resumed.get_history()
        assert first.messages[1].tool_calls[0].success
        assert "Process 1" in second.messages[0].note and "Process 1" not in third.messages[0].note
        assert agent.services.toolbox.processes.entries() == [], "none outlives its engine"
