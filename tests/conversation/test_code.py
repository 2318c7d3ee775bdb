"""Code in a conversation: tools, section of the context, links from turns, and both answers to a question."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from ragforge_tui.code.limits import INDEXING
from ragforge_tui.conversation import Conversation, ConversationAgent
from ragforge_tui.engine.in_process import InProcessEngine
from ragforge_tui.export.context import context_text
from ragforge_tui.graph.schema.migrate import record_embedding
from ragforge_tui.memory.context import BuiltContext
from ragforge_tui.memory.context.sections import CLOSING, CODE_SECTION, OPENING
from ragforge_tui.settings.schema import Loaded
from ragforge_tui.shared.code_records import Scope
from ragforge_tui.shared.errors import RagforgeError
from ragforge_tui.shared.limits import LIMITS
from ragforge_tui.shared.records import ContextSection, now
from ragforge_tui.shared.requests.code import FetchScope, FindScopes, IndexCode, ListTouchedCode, SearchCode
from ragforge_tui.shared.requests.memory import FetchSent
from ragforge_tui.shared.requests.turns import OpenConversation
from tests.conftest import ONE_BACKEND
from tests.support.agents import with_code
from tests.support.fake_embedder import FakeEmbedder
from tests.support.model_script import Script
from tests.support.sizes import DIMENSION
from tests.support.waiting import until

SESSION = '''"""Sessions with the server."""


class Session:
    """Connection that sends messages."""

    def send_message(self, text):
        """Send a message, at most twice."""
        for attempt in range(2):
            open_connection().write(text)


def open_connection():
    """Open a connection to the server."""
    return Connection("localhost")
'''
APP = '''"""The program."""

from session import Session


def run_chat_loop():
    """Read lines and send them."""
    session = Session()
    session.send_message("hello")
'''
DISCUSSED = "Why does `Session.send_message` try twice?"


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is found within 150 ms says something of the machine."""
    monkeypatch.setattr(LIMITS, "recall", 30.0)


@pytest.fixture
def indexed(loaded: Loaded) -> Loaded:
    """A small repository, and settings that index it."""
    folder = Path(loaded.workspace)
    (folder / "session.py").write_text(SESSION)
    (folder / "app.py").write_text(APP)
    return with_code(loaded)


def block(server: Script) -> str:
    """The memory block of the last request; empty when there was none."""
    asked: str = [m["content"] for m in server.chats()[-1]["messages"] if m["role"] == "user"][-1]
    return asked[asked.index(OPENING) : asked.index(CLOSING)] if CLOSING in asked else ""


def code_section(context: BuiltContext) -> ContextSection | None:
    return next((section for section in context.sections if section.name == CODE_SECTION), None)


async def talk(conversation: Conversation, server: Script, text: str, *steps: dict[str, object]) -> None:
    """One turn, and everything that follows it in the background."""
    server.script(list(steps) or [{"text": "Because the first attempt may fail."}])
    await conversation.send_message(text)
    await conversation.memory.settle()


async def test_where_was_it_discussed_and_who_calls_it(indexed: Loaded, server: Script) -> None:
    async with ConversationAgent(indexed) as agent:
        await agent.index_code()
        earlier = await agent.create_conversation(title="Retries")
        await talk(earlier, server, DISCUSSED)
        later = await agent.create_conversation(title="Questions")
        calls = [
            {"name": "get_function_details", "arguments": {"name": "send_message"}},
            {"name": "get_dependents", "arguments": {"name": "Session.send_message"}},
        ]
        asked = "Where did we discuss send_message, and who calls it?"
        await talk(later, server, asked, {"tool_calls": calls}, {"text": "In Retries; run_chat_loop calls it."})
        told = [m["content"] for m in server.chats()[-1]["messages"] if m["role"] == "tool"]
        assert f"[t1] of conversation {earlier.record.uuid[:8]} (Retries)" in told[0]
        assert "app.py:9 calls function run_chat_loop" in told[1]
        store = await agent.store()
        [scope] = await agent.services.lookup.named("Session.send_message")  # type: ignore[union-attr]
        about = await store.code.conversations_about(scope.uuid)
        assert {(one.conversation_id, one.turn_index) for one in about} == {
            (earlier.record.uuid, 1),
            (later.record.uuid, 1),
        }


@ONE_BACKEND
async def test_the_request_holds_the_code_that_the_message_names(indexed: Loaded, server: Script) -> None:
    async with ConversationAgent(indexed) as agent:
        await agent.index_code()
        conversation = await agent.create_conversation()
        await talk(conversation, server, DISCUSSED)
        assert "## Code of the workspace that may matter" in block(server)
        assert "session.py:7-10 method Session.send_message" in block(server)
        assert "for attempt in range(2):" in block(server)
        await talk(conversation, server, "thanks, that is all")
        assert CODE_SECTION not in [section.name for section in (await conversation.build_context("go on")).sections]
        assert block(server) == ""


@ONE_BACKEND
async def test_pinned_code_that_is_gone_is_sent_with_a_note_that_it_is(indexed: Loaded, server: Script) -> None:
    async with ConversationAgent(indexed) as agent:
        await agent.index_code()
        conversation = await agent.create_conversation()
        await talk(conversation, server, DISCUSSED)
        section = code_section(await conversation.build_context(DISCUSSED))
        assert section is not None
        item = next(one for one in section.items if "Session.send_message" in one.title)
        conversation.memory.choices.choose(item, "pin")
        file = Path(indexed.workspace) / "session.py"
        file.write_text(SESSION.replace("range(2)", "range(3)"))
        await talk(conversation, server, "thanks")
        assert "range(3)" in block(server) and "[The file" not in block(server)
        file.unlink()
        await talk(conversation, server, "thanks again")
        assert "for attempt in range(" in block(server) and "[The file no longer exists" in block(server)
        await (await agent.store()).graph.run("MATCH (s:Scope) DETACH DELETE s")
        for _ in range(2):
            await talk(conversation, server, "and again, thanks")
            assert "for attempt in range(" in block(server) and "[The file" not in block(server)
            assert block(server).count("[This code no longer exists") == 1


async def test_code_that_comes_too_late_is_told_with_what_was_sent(
    indexed: Loaded, server: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = InProcessEngine(indexed)
    try:
        await engine.request(IndexCode())
        conversation = await engine.agent.create_conversation()
        for limit in ("recall", "asked"):
            monkeypatch.setattr(LIMITS, limit, 0.0)
        await talk(conversation, server, DISCUSSED)
        sent = await engine.request(FetchSent(conversation_id=conversation.record.uuid, turn_index=1))
        late = "The files of this folder were not searched: that took longer than 0 ms."
        assert late in sent.record.missing
        assert (sent.record.verified, block(server)) == (True, "")
        assert late in context_text(sent.record).splitlines()
        assert late in str(server.chats()[-1]["messages"]), "the model is told"
        monkeypatch.setattr(LIMITS, "recall", 30.0)
        await talk(conversation, server, DISCUSSED)
        assert (await engine.request(FetchSent(conversation_id=conversation.record.uuid))).record.missing == []
    finally:
        await engine.close()


async def test_without_its_vector_in_time_a_message_finds_code_by_words(
    indexed: Loaded, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with ConversationAgent(indexed) as agent:
        await agent.index_code()
        found = agent.services.lookup
        assert found is not None
        embedder = FakeEmbedder()
        embedder.stuck_after = 0
        agent.services.memory.questions.model.embedder = embedder
        await record_embedding((await agent.store()).graph, "", DIMENSION)
        monkeypatch.setattr(LIMITS, "vector_share", 0.001)
        answer = await found.for_context(DISCUSSED)
        assert answer.missing == "Code was searched by words only: vectors came too late."
        assert "Session.send_message" in [scope.qualified_name for scope in answer.scopes]


async def test_sent_code_is_shown_unchanged_after_the_file_changed(indexed: Loaded, server: Script) -> None:
    engine = InProcessEngine(indexed)
    try:
        await engine.request(IndexCode())
        conversation = await engine.agent.create_conversation()
        await talk(conversation, server, DISCUSSED)
        (Path(indexed.workspace) / "session.py").write_text(SESSION.replace("range(2)", "range(3)"))
        sent = await engine.request(FetchSent(conversation_id=conversation.record.uuid, turn_index=1))
        assert sent.record.verified
        [section] = [one for one in sent.record.sections if one.name == CODE_SECTION]
        assert "range(2)" in section.items[0].text
        assert section.items[0].title == "Session.send_message session.py:7-10"
    finally:
        await engine.close()


@ONE_BACKEND
async def test_code_that_a_result_shows_is_not_sent_twice(indexed: Loaded, server: Script) -> None:
    async with ConversationAgent(indexed) as agent:
        await agent.index_code()
        conversation = await agent.create_conversation()

        async def sent() -> str:
            section = code_section(await conversation.build_context(DISCUSSED))
            return "".join(item.text for item in section.items) if section is not None else ""

        assert "def send_message" in await sent()
        read = {"tool_calls": [{"name": "read_file", "arguments": {"path": "session.py"}}]}
        await talk(conversation, server, "Read session.py", read, {"text": "Done."})
        assert "def send_message" not in await sent()


async def test_a_turn_is_linked_to_what_it_reads_writes_and_names(
    indexed: Loaded, server: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(INDEXING, "written", 0.0)
    lines = {"path": "session.py", "start_line": 13, "end_line": 15}
    edit = {"path": "session.py", "old_string": "range(2)", "new_string": "range(4)"}
    engine = InProcessEngine(indexed, approve_all=True)
    try:
        await engine.request(IndexCode())
        conversation = await engine.agent.create_conversation()
        uuid = conversation.record.uuid
        await talk(
            conversation, server, "Look", {"tool_calls": [{"name": "read_file", "arguments": {"path": "app.py"}}]}
        )
        await talk(conversation, server, "Look", {"tool_calls": [{"name": "read_file", "arguments": lines}]})
        await talk(conversation, server, "Change", {"tool_calls": [{"name": "edit_file", "arguments": edit}]})
        await talk(conversation, server, "And run_chat_loop? Not print or `text`.")
        touched = await engine.request(ListTouchedCode(conversation_id=uuid))
        assert [(one.turn_index, one.scope.kind, one.scope.name) for one in touched] == [
            (4, "function", "run_chat_loop"),
            (3, "class", "Session"),
            (3, "method", "send_message"),
            (2, "function", "open_connection"),
            (1, "module", "app"),
        ]
    finally:
        await engine.close()


async def test_the_first_message_in_a_new_folder_has_code_tools(indexed: Loaded, server: Script) -> None:
    search = {"name": "search_functions", "arguments": {"query": "send message"}}
    async with ConversationAgent(indexed) as agent:
        conversation = await agent.create_conversation()
        # Only a message to a model is a reason to index a folder.
        await agent.services.code.wait_indexed()
        assert not agent.services.code.ready
        server.script([{"tool_calls": [search]}, {"text": "In session.py."}])
        answer = await conversation.send_message("Where are messages sent?")
    assert "search_functions" in [tool["function"]["name"] for tool in server.chats()[0]["tools"]]
    told = [message["content"] for message in server.chats()[1]["messages"] if message["role"] == "tool"]
    assert answer.content == "In session.py." and "Session.send_message" in told[0]


async def test_turns_from_before_the_index_are_linked_later(loaded: Loaded, server: Script) -> None:
    folder = Path(loaded.workspace)
    async with ConversationAgent(loaded) as agent:
        conversation = await agent.create_conversation(title="Before")
        await talk(conversation, server, DISCUSSED)
    (folder / "session.py").write_text(SESSION)
    async with ConversationAgent(with_code(loaded)) as again:
        await again.index_code()
        [scope] = await again.services.lookup.named("send_message")  # type: ignore[union-attr]
        about = await (await again.store()).code.conversations_about(scope.uuid)
        assert [(one.title, one.turn_index) for one in about] == [("Before", 1)]


@ONE_BACKEND
async def test_the_code_is_told_from_the_file_as_it_is_now(indexed: Loaded, server: Script) -> None:
    engine = InProcessEngine(indexed)
    try:
        await engine.request(IndexCode())
        file = Path(indexed.workspace) / "session.py"
        file.write_text("# moved\n" + SESSION.replace("range(2)", "range(5)"))
        [scope] = await engine.request(FindScopes(name="session.py:send_message"))
        view = await engine.request(FetchScope(uuid=scope.uuid))
        assert (view.code.first_line, view.code.stale) == (8, "")
        assert "range(5)" in view.code.text
        assert [(link.scope.name, link.kind) for link in view.callers] == [("run_chat_loop", "calls")]
        assert [link.scope.name for link in view.callees] == ["open_connection"]
        file.unlink()
        gone = await engine.request(FetchScope(uuid=scope.uuid))
        assert gone.code.stale.startswith("The file no longer exists")
        assert "range(2)" in gone.code.text
    finally:
        await engine.close()


async def test_scopes_are_found_by_name_place_and_words(indexed: Loaded, server: Script) -> None:
    engine = InProcessEngine(indexed)
    try:
        await engine.request(IndexCode())
        by_line = await engine.request(FindScopes(name="session.py:9"))
        assert [one.qualified_name for one in by_line] == ["Session.send_message"]
        in_file = await engine.request(SearchCode(query="", path="session.py"))
        assert [one.name for one in in_file if one.kind != "module"] == ["Session", "send_message", "open_connection"]
        found = await engine.request(SearchCode(query="open a connection", path="session.py", kind="function"))
        assert [one.name for one in found] == ["open_connection"]
        assert await engine.request(FindScopes(name="nothing_of_this_name")) == []
    finally:
        await engine.close()


@ONE_BACKEND
async def test_without_an_index_there_are_no_tools_and_requests_say_why(loaded: Loaded, server: Script) -> None:
    engine = InProcessEngine(loaded)
    try:
        with pytest.raises(RagforgeError, match="Code is not indexed"):
            await engine.request(SearchCode(query="x"))
        conversation = await engine.agent.create_conversation()
        await engine.request(OpenConversation(ref=conversation.record.uuid))
        await talk(conversation, server, "hello")
        names = [tool["function"]["name"] for tool in server.chats()[-1]["tools"]]
        assert "search_functions" not in names
    finally:
        await engine.close()


async def test_a_program_makes_the_vectors_of_topics(loaded: Loaded, server: Script) -> None:
    async with ConversationAgent(loaded, embedder=FakeEmbedder()) as agent:
        conversation = await agent.create_conversation()
        store = await agent.store()
        await store.graph.run(
            "CREATE (:Topic {uuid: 'cookies', name: 'session cookies', aliases: [], created_at: $at})", at=now()
        )
        await talk(conversation, server, "Hello")
        row = await store.graph.one("MATCH (t:Topic {uuid: 'cookies'}) RETURN t.embed_model AS model")
        assert row is not None and row["model"] == "fake"


@pytest.mark.parametrize("wanted", [True, False])
async def test_the_model_says_what_users_would_call_code_unless_told_not_to(
    indexed: Loaded, server: Script, wanted: bool
) -> None:
    code = msgspec.structs.replace(indexed.settings.agent.code, describe=wanted)
    agent = msgspec.structs.replace(indexed.settings.agent, code=code)
    loaded = msgspec.structs.replace(indexed, settings=msgspec.structs.replace(indexed.settings, agent=agent))
    answer = {"text": json.dumps({str(n): f"gadget number {n}" for n in range(1, 5)}), "when": "plain"}

    def described() -> bool:
        asked = [str(message["content"]) for one in server.requests for message in one.body.get("messages", ())]
        return any("how a user who does not know its name would ask" in text for text in asked)

    engine = InProcessEngine(loaded, approve_all=True)
    try:
        await engine.request(IndexCode())
        conversation = await engine.agent.create_conversation()
        lines = {**answer, "match": "def open_connection"}
        asked = "What do `Session`, `send_message`, `open_connection` and `run_chat_loop` do?"
        await talk(conversation, server, asked, {"text": "This and that.", "when": "tools"}, lines)
        if not wanted:
            await conversation.memory.readers.settle()
            await conversation.memory.readers._called.settle()
            assert not described()
            return
        await until(described, "a request for the lines")

        async def found() -> list[Scope]:
            return await engine.request(SearchCode(query="gadget"))

        assert len(await until(found, "code by its line")) == 4
    finally:
        await engine.close()
