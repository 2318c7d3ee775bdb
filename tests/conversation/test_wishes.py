"""Wishes of the user: stored when they are said or accepted, and sent with the first message of every session."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ragforge_tui.conversation import Conversation, ConversationAgent
from ragforge_tui.engine.in_process import InProcessEngine
from ragforge_tui.graph.store.findings import new_finding
from ragforge_tui.memory.context.sections import WISHES_OPENING
from ragforge_tui.memory.context.wishes import WISHES_TOKENS, told_again, wishes_section
from ragforge_tui.settings.schema import Loaded
from ragforge_tui.shared.events import Event, Notice, QuestionAsked
from ragforge_tui.shared.finding_records import KeptFinding
from ragforge_tui.shared.requests.memory import ChooseContext, FetchSent
from ragforge_tui.shared.tool_calls import main_argument
from ragforge_tui.tui.transcript.tool_block import arguments_of
from tests.conftest import ONE_BACKEND
from tests.conversation.test_steering import READ, steered
from tests.support.agents import with_memory
from tests.support.model_script import Script

GETATTR = "Never use getattr loops in tests."
QUESTION = "When is the release, what has to be in it, and which wishes about tests have I told you?"


def before_first_turn(server: Script, request: int = -1) -> str:
    """What the first message of a request holds of wishes, up to the first turn; empty without any."""
    text: str = server.chats()[request]["messages"][1]["content"]
    _, opening, rest = text.partition(WISHES_OPENING)
    return opening + rest.partition(">>>")[0] if opening else ""


async def kept(agent: ConversationAgent, conversation: Conversation, *, current: bool = True) -> list[KeptFinding]:
    store = await agent.store()
    uuid = conversation.record.uuid
    return await store.findings.of_folder(conversation.record.workspace, current=current, asking=uuid)


async def test_what_is_said_in_one_session_is_in_the_first_message_of_the_next(loaded: Loaded, server: Script) -> None:
    server.script([{"text": "Noted."}] * 8)
    events: list[Event] = []
    async with ConversationAgent(loaded) as agent:
        agent.services.events.listen(events.append)
        first = await agent.create_conversation()
        await first.send_message(f"Please fix the parser. {GETATTR} From now on run the tests with -q.")
        await first.memory.settle()
        told = [event.text for event in events if isinstance(event, Notice) and "Remembered" in event.text]
        assert [text.partition(":")[0] for text in told] == ["Remembered for this folder"] * 2
        assert {(one.text, one.turn_index, one.made_by) for one in await kept(agent, first)} == {
            (GETATTR, 1, "rule"),
            ("From now on run the tests with -q.", 1, "rule"),
        }
        # It was said in this session: its requests do not change.
        await first.send_message("Thanks!")
        assert before_first_turn(server) == ""
        await first.send_message("From now on run the tests with -x instead.")
        await first.memory.settle()
    uuid = first.record.uuid
    engine = InProcessEngine(loaded)
    try:
        second = await engine.agent.create_conversation()
        await second.send_message(QUESTION)
        sent = before_first_turn(server)
        assert f"- {GETATTR}" in sent
        assert "- From now on run the tests with -x instead." in sent
        assert "-q" not in sent, "corrected"
        await second.send_message("Never mock the clock in tests.")
        await second.memory.settle()
        await second.send_message("And what else?")
        assert before_first_turn(server) == sent, "the beginning of requests stays the same"
        shown = await engine.request(FetchSent(conversation_id=second.record.uuid))
        assert shown.record.verified
        section = next(section for section in shown.record.sections if section.name == "wishes")
        assert section.title == "Your wishes"
        assert [(item.conversation_id, item.turn_index) for item in section.items if item.kind == "finding"] == [
            (uuid, 3),
            (uuid, 1),
        ]
        # A pinned one is sent once, where it was: requests keep their beginning.
        wish = next(item for item in section.items if GETATTR in item.text)
        await engine.request(ChooseContext(conversation_id=second.record.uuid, item=wish, choice="pin"))
        await second.send_message("Thanks.")
        assert before_first_turn(server) == sent
        assert str(server.chats()[-1]["messages"]).count(GETATTR) == 1
        # What is left out is not sent; the other ones stay.
        await engine.request(ChooseContext(conversation_id=second.record.uuid, item=wish, choice="exclude"))
        await second.send_message("And?")
        assert GETATTR not in before_first_turn(server) and "with -x instead" in before_first_turn(server)
        # A session that goes on with a conversation has those of its own earlier turns too.
        resumed = await engine.agent.load_conversation(uuid)
        await resumed.send_message("Go on.")
        assert "Never mock the clock" in before_first_turn(server) and GETATTR in before_first_turn(server)
    finally:
        await engine.close()


def test_a_wish_that_is_sent_is_not_recalled_in_other_words() -> None:
    kept = new_finding("c", "/w", 1, "wish", GETATTR)
    section = wishes_section([kept], "c")
    again = "preference: In tests, never use getattr loops"
    assert told_again([again, "Always use getattr loops in the plugins.", "Use getattr loops in tests."], section) == {
        again
    }


async def test_a_wish_said_while_the_agent_works_is_remembered_too(loaded: Loaded, server: Script) -> None:
    server.script([READ, {"text": "Done."}])
    async with ConversationAgent(loaded, approve_all=True) as agent:
        conversation = await agent.create_conversation()
        await steered(conversation, server, GETATTR, GETATTR)
        await conversation.memory.settle()
        assert [(one.text, one.turn_index) for one in await kept(agent, conversation)] == [(GETATTR, 1)]


async def test_wishes_have_room_for_the_pinned_and_the_newest(loaded: Loaded, server: Script) -> None:
    server.script([{"text": "Noted."}] * 3)
    async with ConversationAgent(loaded) as agent:
        first = await agent.create_conversation()
        rules = [f"Always put crate{n} on pier{n} with label{n}, seal{n} and stamp{n}." for n in range(30)]
        await first.send_message(" ".join(rules[:15]))
        await first.send_message(" ".join(rules[15:]))
        await first.memory.settle()
        oldest = next(one for one in await kept(agent, first) if "crate0 " in one.text)
        await (await agent.store()).findings.pin(oldest.uuid, True)
        second = await agent.create_conversation()
        context = await second.build_context("Hello")
    section = next(section for section in context.sections if section.name == "wishes")
    assert "crate0 " in section.items[0].text
    assert section.left_out > 0
    assert 100 < section.tokens <= WISHES_TOKENS


@ONE_BACKEND
async def test_wishes_that_change_while_they_are_read_are_sent(
    loaded: Loaded, server: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, reading, read = new_finding("c", "/w", 1, "wish", GETATTR), asyncio.Event(), asyncio.Event()

    async def slowly() -> list[KeptFinding]:
        reading.set()
        await read.wait()
        return [kept]

    async with ConversationAgent(loaded) as agent:
        wishes = (await agent.create_conversation()).memory.wishes
        monkeypatch.setattr(wishes, "_current", slowly)
        asked = asyncio.create_task(wishes.section(frozenset()))
        await reading.wait()
        wishes.changed()
        read.set()
        section = await asked
    assert section is not None and [item.text for item in section.items] == [f"- {GETATTR}"]


async def test_a_private_conversation_keeps_its_wishes_to_itself(loaded: Loaded, server: Script) -> None:
    server.script([{"text": "Noted."}] * 3)
    async with ConversationAgent(loaded) as agent:
        hidden = await agent.create_conversation()
        store = await agent.store()
        await store.conversations.update(hidden.record.uuid, private=True)
        hidden.record.private = True
        await hidden.send_message(GETATTR)
        await hidden.memory.settle()
        assert [one.scope for one in await kept(agent, hidden)] == ["conversation"]
        other = await agent.create_conversation()
        await other.send_message("Hello")
        assert before_first_turn(server) == ""


def asked_to_remember(**arguments: Any) -> dict[str, Any]:
    return {"tool_calls": [{"name": "remember", "arguments": {"text": GETATTR, **arguments}}]}


@pytest.mark.parametrize(
    ("answer", "text", "made_by"),
    [
        ("remember it", GETATTR, "tool"),
        ("Never use getattr in tests.", "Never use getattr in tests.", "user"),
        ("no", "", ""),
    ],
)
async def test_the_tool_asks_for_the_exact_text(
    loaded: Loaded, server: Script, answer: str, text: str, made_by: str
) -> None:
    server.script([asked_to_remember(scope="user"), {"text": "Done."}])
    async with ConversationAgent(loaded, interactive=True) as agent:
        conversation = await agent.create_conversation()
        asked = None
        async for event in conversation.stream("Mind what I said about tests."):
            if isinstance(event, QuestionAsked):
                asked = event
                agent.services.approvals.answer(event.approval_id, "once", answer)
        found = await kept(agent, conversation)
        [turn] = await (await agent.store()).turns.between(conversation.record.uuid, start=1, end=2)
    assert asked is not None and asked.question == f"Remember this wish everywhere?\n\n{GETATTR}"
    assert asked.draft == GETATTR
    assert [(one.text, one.scope, one.made_by, one.turn_index) for one in found] == (
        [(text, "user", made_by, 1)] if text else []
    )
    result = server.chats()[-1]["messages"][-1]["content"]
    assert result == (f"Remembered: “{text}”." if text else "The user does not want this remembered.")
    [call] = [call for message in turn.messages for call in message.tool_calls]
    shown = text or GETATTR
    assert main_argument(call) == shown and [one.text for one in arguments_of(call)] == [shown]


async def test_what_is_remembered_already_is_named_as_the_user_said_it(loaded: Loaded, server: Script) -> None:
    server.script([{"text": "Noted."}, asked_to_remember(text="In tests, never use getattr loops"), {"text": "Done."}])
    async with ConversationAgent(with_memory(loaded, remember="note")) as agent:
        conversation = await agent.create_conversation()
        await conversation.send_message(GETATTR)
        await conversation.memory.settle()
        await conversation.send_message("Mind it.")
        assert [one.text for one in await kept(agent, conversation)] == [GETATTR]
    assert server.chats()[-1]["messages"][-1]["content"] == f"It is remembered already: “{GETATTR}”."


async def test_a_statement_takes_the_place_of_another(loaded: Loaded, server: Script) -> None:
    new = "The release is on 11 December."
    server.script(
        [
            asked_to_remember(text="The release is on 4 December.", kind="fact"),
            {"text": "Noted."},
            asked_to_remember(text=new, kind="fact", replaces="The release is on 4 December"),
            asked_to_remember(text=new, kind="fact", replaces="Tabs in Makefiles"),
            {"text": "Noted."},
        ]
    )
    noted = with_memory(loaded, remember="note")
    events: list[Event] = []
    async with ConversationAgent(noted) as agent:
        agent.services.events.listen(events.append)
        conversation = await agent.create_conversation()
        await conversation.send_message("The release is on the 4th.")
        await conversation.send_message("No, a week later.")
        assert [(one.text, one.state) for one in await kept(agent, conversation)] == [(new, "valid")]
        states = {one.text: one.state for one in await kept(agent, conversation, current=False)}
    assert states == {new: "valid", "The release is on 4 December.": "replaced"}
    assert [event.text for event in events if isinstance(event, Notice) and "/memory" in event.text] == [
        "Remembered: “The release is on 4 December.”. /memory shows and changes it.",
        f"Remembered: “{new}”, in place of “The release is on 4 December.”. /memory shows and changes it.",
    ]
    assert "Nothing like “Tabs in Makefiles” is remembered" in server.chats()[-1]["messages"][-1]["content"]


async def test_without_a_user_nothing_is_accepted_and_never_means_never(loaded: Loaded, server: Script) -> None:
    server.script([asked_to_remember(), {"text": "I cannot."}, {"text": "Hello."}])
    async with ConversationAgent(loaded) as agent:
        conversation = await agent.create_conversation()
        await conversation.send_message("Mind what I said.")
        assert "no user can accept it" in server.chats()[-1]["messages"][-1]["content"]
        assert await kept(agent, conversation) == []
    async with ConversationAgent(with_memory(loaded, remember="never")) as agent:
        conversation = await agent.create_conversation()
        await conversation.send_message(GETATTR)
        await conversation.memory.settle()
        assert "remember" not in {schema["function"]["name"] for schema in server.chats()[-1]["tools"]}
        assert await kept(agent, conversation) == []
