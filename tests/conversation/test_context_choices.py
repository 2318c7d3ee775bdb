"""Choices of the user for the next requests: items left out, items pinned, the next request seen before it is sent."""

from __future__ import annotations

import pytest

from ragforge_tui.engine.in_process import InProcessEngine
from ragforge_tui.settings.schema import Loaded
from ragforge_tui.shared.context_choices import PINNED_SECTION, Choice
from ragforge_tui.shared.errors import RagforgeError
from ragforge_tui.shared.records import ContextItem, ContextRecord
from ragforge_tui.shared.requests.memory import ChooseContext, FetchNext, FetchSent
from tests.conversation.test_memory import SECRET
from tests.support.model_script import Script

QUESTION = "Where is the deploy key kept?"


def of_section(record: ContextRecord, name: str) -> list[ContextItem]:
    """The items of a section, without its heading."""
    items = [item for section in record.sections if section.name == name for item in section.items]
    return [item for item in items if item.kind != "frame"]


async def test_recalled_items_are_left_out_or_pinned(loaded: Loaded, server: Script) -> None:
    engine = InProcessEngine(loaded)
    try:
        server.script([{"text": "Noted."}, {"text": "In Bluebird."}, {"text": "Yes."}, {"text": "Four."}])
        earlier = await engine.agent.create_conversation("Keys")
        await earlier.send_message(SECRET)
        await earlier.memory.settle()
        here = await engine.agent.create_conversation()
        uuid = here.record.uuid
        await here.send_message(QUESTION)
        sent = await engine.request(FetchSent(conversation_id=uuid))
        (recalled,) = of_section(sent.record, "recalled")
        assert SECRET in recalled.text

        async def choose(choice: Choice) -> list[bool]:
            chosen = await engine.request(ChooseContext(conversation_id=uuid, item=recalled, choice=choice))
            return [one.pinned for one in chosen]

        def texts() -> str:
            return "\n".join(message["content"] for message in server.chats()[-1]["messages"][-2:])

        # What is pinned is sent with a message that recalls nothing, and shown as it was sent.
        assert await choose("pin") == [True]
        await here.send_message("Thanks!")
        assert f"## Pinned by the user\n[Keys, {recalled.date:%Y-%m-%d}, t1] " in texts()
        shown = await engine.request(FetchSent(conversation_id=uuid))
        assert shown.record.verified
        assert SECRET in of_section(shown.record, PINNED_SECTION)[0].text
        assert [one.item.turn_index for one in shown.chosen] == [1]
        # What is left out is not recalled, however well it matches.
        assert await choose("exclude") == [False]
        await here.send_message(QUESTION)
        assert SECRET not in texts()
        assert await choose("usual") == []
        after = await engine.request(FetchNext(conversation_id=uuid))
        assert SECRET in of_section(after.record, "recalled")[0].text
        with pytest.raises(RagforgeError, match="sent with each request"):
            system = of_section(sent.record, "system")[0]
            await engine.request(ChooseContext(conversation_id=uuid, item=system, choice="exclude"))
    finally:
        await engine.close()


async def test_a_turn_of_this_conversation_is_left_out(loaded: Loaded, server: Script) -> None:
    engine = InProcessEngine(loaded)
    try:
        server.script([{"text": "Noted."}, {"text": "Two."}, {"text": "I do not know."}])
        here = await engine.agent.create_conversation()
        uuid = here.record.uuid
        await here.send_message(SECRET)
        await here.send_message("What is one and one?")
        sent = await engine.request(FetchSent(conversation_id=uuid))
        (first,) = of_section(sent.record, "past")
        await engine.request(ChooseContext(conversation_id=uuid, item=first, choice="exclude"))
        before = len(server.chats())
        following = await engine.request(FetchNext(conversation_id=uuid, text=QUESTION))
        assert len(server.chats()) == before
        assert following.preview
        assert [item.turn_index for item in of_section(following.record, "past")] == [2]
        assert of_section(following.record, "message")[0].text == QUESTION
        await here.send_message(QUESTION)
        assert not any(SECRET in message["content"] for message in server.chats()[-1]["messages"])
        really = await engine.request(FetchSent(conversation_id=uuid))
        assert really.record.verified
        # The preview is the request, but for the note that a message gets when it is stored.
        assert [item.text for item in of_section(really.record, "past")] == [
            item.text for item in of_section(following.record, "past")
        ]
    finally:
        await engine.close()


async def test_a_pinned_finding_is_sent_until_it_is_forgotten(loaded: Loaded, server: Script) -> None:
    engine = InProcessEngine(loaded)
    try:
        server.script([{"text": "Noted."}] * 5)
        earlier = await engine.agent.create_conversation("Keys")
        await earlier.send_message("Decision: the deploy key is kept in Bluebird.")
        await earlier.memory.settle()
        here = await engine.agent.create_conversation()
        uuid = here.record.uuid
        await here.send_message("Hello")
        [kept] = await engine.agent.remembered.findings()
        item = ContextItem(
            kind="finding",
            conversation_id=kept.conversation_id,
            turn_index=1,
            date=kept.since,
            text=f"[Keys, 2026-10-03, t1] decision: {kept.text}",
        )

        def sent() -> str:
            return "\n".join(message["content"] for message in server.chats()[-1]["messages"][-2:])

        pinned = await engine.request(ChooseContext(conversation_id=uuid, item=item, choice="pin"))
        assert [one.item.text for one in pinned] == [item.text]
        await here.send_message("Thanks!")
        assert kept.text in sent()
        edited = await engine.agent.remembered.act(kept.uuid, "edit", "The deploy key is kept in Goldfinch.")
        await here.send_message("Thanks again!")
        assert edited.text in sent() and kept.text not in sent()
        await engine.agent.remembered.act(edited.uuid, "forget")
        assert (await engine.request(FetchSent(conversation_id=uuid))).chosen == []
        await here.send_message("And once more, thanks!")
        assert "Pinned" not in sent() and "Goldfinch" not in sent()
    finally:
        await engine.close()
