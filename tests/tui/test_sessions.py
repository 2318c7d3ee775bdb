"""Resume and the sessions picker: from the command line, by command, of a turn that another process answers."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TypeVar

import pytest

from ragforge_tui.settings.schema import TuiSettings
from ragforge_tui.shared.errors import RagforgeError
from ragforge_tui.shared.events import TextDelta, TurnCompleted, TurnElsewhere, TurnStarted
from ragforge_tui.shared.records import Conversation, FileAccess, Turn
from ragforge_tui.shared.requests.sessions import (
    ArchiveConversation,
    DeleteConversation,
    LeaveConversation,
    ListConversations,
    RestoreConversation,
    UpdateConversation,
)
from ragforge_tui.shared.requests.turns import CreateConversation, FetchTurns, SendMessage
from ragforge_tui.shared.wire import Request
from ragforge_tui.tui.memory.memory_pane import MemoryPane
from ragforge_tui.tui.prompt.history import History
from ragforge_tui.tui.sessions.session_picker import SessionPicker
from ragforge_tui.tui.sidebar.files_pane import FilesPane
from ragforge_tui.tui.sidebar.trace_pane import TracePane
from ragforge_tui.tui.transcript import Transcript
from ragforge_tui.tui.transcript.tool_block import ToolBlock
from tests.support.chat_scene import tool_call
from tests.support.fake_engine import FakeEngine, conversation, message, sessions, turn
from tests.tui.conftest import Chat, ChatRunner

R = TypeVar("R")


@pytest.fixture
def engine() -> FakeEngine:
    """With three conversations."""
    fake = FakeEngine()
    list(sessions(fake))
    return fake


def title(chat: Chat) -> str:
    """Of the open conversation."""
    opened = chat.app.chat.session.state.conversation
    return opened.title if opened else ""


async def picker(chat: Chat) -> SessionPicker:
    await chat.until(lambda: isinstance(chat.app.screen, SessionPicker))
    assert isinstance(chat.app.screen, SessionPicker)
    screen = chat.app.screen
    await chat.until(lambda: screen._list.rows)
    return screen


async def test_resume_by_prefix(run_chat: ChatRunner, engine: FakeEngine) -> None:
    async with run_chat(engine, resume="00000002") as chat:
        await chat.until(lambda: title(chat) == "Index allocation")
        assert [[one.turn_index for one in page] for page in chat.loaded] == [[1]]
        await chat.type("go on")
        await chat.until(lambda: chat.happened(TurnCompleted))
        assert not chat.engine.asked(CreateConversation)


async def test_continue(run_chat: ChatRunner, engine: FakeEngine) -> None:
    async with run_chat(engine, continue_last=True) as chat:
        await chat.until(lambda: title(chat) == "Retries double turns")


async def test_nothing_to_continue(run_chat: ChatRunner) -> None:
    async with run_chat(continue_last=True) as chat:
        await chat.until(lambda: chat.noticed("There is no conversation in this folder yet."))
        await chat.type("then a new one")
        await chat.until(lambda: chat.happened(TurnCompleted))


async def test_resume_of_an_unknown_id(run_chat: ChatRunner, engine: FakeEngine) -> None:
    async with run_chat(engine, resume="ffff") as chat:
        await chat.until(lambda: chat.noticed("No conversation answers to 'ffff'."))


async def test_resume_without_id_picks(run_chat: ChatRunner, engine: FakeEngine) -> None:
    async with run_chat(engine, resume="") as chat:
        screen = await picker(chat)
        assert [row.heading for row in screen._list.rows] == ["Today", "Yesterday", "This week"]
        await chat.press("down", "enter")
        await chat.until(lambda: title(chat) == "Index allocation")


async def test_the_list_is_there_before_the_engine(run_chat: ChatRunner, engine: FakeEngine) -> None:
    gate = asyncio.Event()
    async with run_chat(engine, resume="", gate=gate) as chat:
        await chat.until(lambda: isinstance(chat.app.screen, SessionPicker))
        assert "loading" in str(chat.app.screen.query_one("#session-keys").render())
        gate.set()
        await picker(chat)


async def test_the_header_shows_what_is_on_its_way(run_chat: ChatRunner, engine: FakeEngine) -> None:
    def header(chat: Chat) -> str:
        return str(chat.app.query_one("#header").render())

    gate = asyncio.Event()
    async with run_chat(engine, continue_last=True, gate=gate) as chat:
        assert "opening …" in header(chat)
        gate.set()
        await chat.until(lambda: "Retries double turns" in header(chat))
    async with run_chat(FakeEngine(), continue_last=True) as chat:
        await chat.until(lambda: chat.noticed("no conversation in this folder"))
        assert "New conversation" in header(chat)


async def test_picker_narrows_and_leaves(run_chat: ChatRunner, engine: FakeEngine) -> None:
    async with run_chat(engine) as chat:
        await chat.ready()
        await chat.press("ctrl+o")
        screen = await picker(chat)
        await chat.press(*"caf")
        await chat.until(lambda: [row.label for row in screen._list.rows] == ["Café menu, in French"])
        await chat.press("escape")
        assert title(chat) == ""
        await chat.type("/sessions")
        await picker(chat)
        await chat.press(*"retries", "enter")
        await chat.until(lambda: title(chat) == "Retries double turns")


async def test_picker_shows_an_error(run_chat: ChatRunner, engine: FakeEngine) -> None:
    async with run_chat(engine) as chat:
        await chat.ready()
        await chat.until(lambda: engine.asked(ListConversations), "the first screen's sessions")
        engine.failures[ListConversations] = RagforgeError("The [graph] is away.")
        await chat.type("/resume")
        await chat.until(lambda: isinstance(chat.app.screen, SessionPicker))
        await chat.until(lambda: "The [graph] is away." in str(chat.app.screen.query_one("#session-note").render()))


async def test_earlier_pages(run_chat: ChatRunner) -> None:
    fake = FakeEngine()
    owner = conversation(1, "Long")
    fake.store(owner, *[turn(owner, index, f"question {index}", "answer") for index in range(1, 71)])
    async with run_chat(fake, resume=owner.uuid) as chat:
        await chat.until(lambda: chat.loaded)
        assert chat.loaded[0][0].turn_index == 59
        chat.app.chat.transcript.post_message(Transcript.NeedTurns(29, 59))
        await chat.until(lambda: chat.inserted)
        assert [one.turn_index for one in chat.inserted[0]] == list(range(29, 59))
        asked = chat.engine.asked(FetchTurns)[0]
        assert (asked.start, asked.end) == (29, 59)


async def test_an_interrupted_turn_is_offered_again(run_chat: ChatRunner, engine: FakeEngine) -> None:
    engine.interrupted[conversation(1).uuid] = 1
    async with run_chat(engine, continue_last=True) as chat:
        await chat.until(lambda: chat.noticed("/retry asks for it again"))
        await chat.type("/retry")
        await chat.until(lambda: chat.happened(TurnCompleted))


def elsewhere(owner: Conversation, index: int, text: str, state: str) -> TurnElsewhere:
    """What the engine says of a turn of another process."""
    reply = message(owner, index, "assistant", text, 1, state=state)
    stored = Turn(turn_index=index, messages=[message(owner, index, "user", f"question {index}"), reply])
    active = state == "streaming"
    return TurnElsewhere(conversation_id=owner.uuid, turn_index=index, turn=stored, active=active)


async def test_a_turn_of_another_process_is_followed(run_chat: ChatRunner, engine: FakeEngine) -> None:
    owner = engine.conversations[conversation(1).uuid]
    engine.turns[owner.uuid] = [elsewhere(owner, 1, "It", "streaming").turn]
    engine.active[owner.uuid] = 1
    async with run_chat(engine, continue_last=True) as chat:
        await chat.until(lambda: chat.app.chat.session.state.busy)
        engine.emit(elsewhere(owner, 1, "It grows", "streaming"))
        await chat.until(lambda: [e.text for e in chat.events if isinstance(e, TextDelta)] == [" grows"])
        engine.emit(elsewhere(owner, 1, "It grows up", "complete"))
        await chat.until(lambda: chat.happened(TurnCompleted))
        assert not chat.app.chat.session.state.busy


def calling(owner: Conversation, *, answered: bool, text: str = "", state: str = "complete") -> TurnElsewhere:
    """A turn of another process that waits for leave to make a call, or goes on after it."""
    call = tool_call(owner, 1, "read_file", {"path": "notes.md"}, "1\tnotes", 12)
    reply = message(owner, 1, "assistant", "", 1, tool_calls=[call])
    turn = Turn(turn_index=1, messages=[message(owner, 1, "user", "question 1"), reply])
    if not answered:
        call.result = call.success = None
    if text:
        turn.messages.append(message(owner, 1, "assistant", text, 2, state=state))
    active = not text or state == "streaming"
    return TurnElsewhere(conversation_id=owner.uuid, turn_index=1, turn=turn, active=active)


async def test_calls_of_a_turn_that_is_followed_stay(run_chat: ChatRunner, engine: FakeEngine) -> None:
    owner = engine.conversations[conversation(1).uuid]
    engine.turns[owner.uuid] = [calling(owner, answered=False).turn]
    engine.active[owner.uuid] = 1
    async with run_chat(engine, continue_last=True) as chat:
        await chat.until(lambda: chat.app.chat.session.state.busy)
        document = chat.app.chat.transcript.document

        def calls() -> list[str]:
            return [str(block.state) for block in document.blocks if isinstance(block, ToolBlock)]

        assert calls() == ["running"]
        engine.emit(calling(owner, answered=True))
        await chat.until(lambda: calls() == ["ok"])
        for event in (
            calling(owner, answered=True, text="Done", state="streaming"),
            calling(owner, answered=True, text="Done."),
        ):
            engine.emit(event)
        await chat.until(lambda: chat.happened(TurnCompleted))
        assert [block.kind for block in document.blocks][:4] == ["user", "head", "tool", "text"]


async def test_turns_of_another_process_appear_in_an_idle_chat(run_chat: ChatRunner, engine: FakeEngine) -> None:
    owner = engine.conversations[conversation(1).uuid]
    async with run_chat(engine, continue_last=True) as chat:
        await chat.until(lambda: chat.loaded)
        state, document = chat.app.chat.session.state, chat.app.chat.transcript.document
        engine.emit(elsewhere(owner, 2, "Words", "streaming"))
        await chat.until(lambda: state.busy)
        engine.emit(elsewhere(owner, 2, "Words come", "streaming"))
        engine.emit(elsewhere(owner, 2, "Words come.", "complete"))
        await chat.until(lambda: not state.busy)
        said = [(block.kind, block.source) for block in document.blocks if block.turn_index == 2 and block.source]
        assert ("user", "question 2") in said and ("text", "Words come.") in said
        assert state.spent.tokens == 0


async def test_a_message_sent_during_a_local_turn_is_shown_once(run_chat: ChatRunner, engine: FakeEngine) -> None:
    owner = engine.conversations[conversation(1).uuid]
    async with run_chat(engine, continue_last=True) as chat:
        await chat.until(lambda: chat.loaded)
        state, document = chat.app.chat.session.state, chat.app.chat.transcript.document
        engine.emit(elsewhere(owner, 2, "Words", "streaming"))
        await chat.until(lambda: state.followed == 2)
        ours = message(owner, 3, "user", "ours")
        engine.emit(TurnStarted(conversation_id=owner.uuid, turn_index=3, message=ours))
        engine.emit(elsewhere(owner, 2, "Words come", "streaming"))
        engine.emit(TurnCompleted(conversation_id=owner.uuid, turn_index=3, text=""))
        engine.emit(elsewhere(owner, 2, "Words come in", "streaming"))
        await chat.until(lambda: [e.text for e in chat.events if isinstance(e, TextDelta)][-1].endswith(" in"))
        said = [block.source for block in document.blocks if block.turn_index == 2 and block.kind == "text"]
        assert said == ["Words come in"]


async def test_a_turn_that_began_before_one_of_ours_is_before_it(run_chat: ChatRunner, engine: FakeEngine) -> None:
    owner = engine.conversations[conversation(1).uuid]
    async with run_chat(engine, continue_last=True) as chat:
        await chat.until(lambda: chat.loaded)
        last = len(engine.turns[owner.uuid])
        await chat.type("ours")
        await chat.until(lambda: chat.happened(TurnCompleted))
        document = chat.app.chat.transcript.document
        engine.emit(elsewhere(owner, last + 3, "later", "complete"))
        await chat.until(lambda: document.holds(last + 3))
        document.gaps.clear()
        engine.emit(elsewhere(owner, last + 2, "between", "complete"))
        await chat.until(lambda: document.holds(last + 2))
        shown = [block.turn_index for block in document.blocks if block.source]
        assert shown == sorted(shown)
        assert [block.serial for block in document.blocks] == sorted(block.serial for block in document.blocks)


async def test_leaving_a_conversation_ends_its_following(run_chat: ChatRunner, engine: FakeEngine) -> None:
    async with run_chat(engine, continue_last=True) as chat:
        await chat.until(lambda: chat.loaded)
        await chat.press("ctrl+n")
        await chat.until(lambda: engine.asked(LeaveConversation))


async def test_new_rename_archive_delete(run_chat: ChatRunner, engine: FakeEngine) -> None:
    async with run_chat(engine, continue_last=True) as chat:
        await chat.until(lambda: title(chat))
        await chat.type("/rename [b]Better[/x]")
        await chat.until(lambda: title(chat) == "[b]Better[/x]")
        assert chat.engine.asked(UpdateConversation)[0].title == "[b]Better[/x]"
        await chat.type("/rename ")
        await chat.until(lambda: chat.app.chat.prompt.text == "/rename [b]Better[/x]")
        chat.app.chat.prompt.empty()
        await chat.type("/delete")
        await chat.until(lambda: chat.engine.asked(DeleteConversation) and not title(chat))
        await chat.type("/undo-delete")
        await chat.until(lambda: chat.engine.asked(RestoreConversation) and title(chat) == "[b]Better[/x]")
        await chat.type("/archive")
        await chat.until(lambda: chat.engine.asked(ArchiveConversation) and not title(chat))
        await chat.type("/resume 00000003")
        await chat.until(lambda: title(chat) == "Café menu, in French")
        await chat.press("ctrl+n")
        await chat.until(lambda: not title(chat))


async def test_tag_and_private(run_chat: ChatRunner, engine: FakeEngine) -> None:
    async with run_chat(engine, continue_last=True) as chat:
        await chat.until(lambda: title(chat))
        await chat.type("/tag work, #rust work")
        await chat.until(lambda: chat.engine.asked(UpdateConversation))
        assert chat.engine.asked(UpdateConversation)[0].tags == ["work", "rust"]
        await chat.type("/tag ")
        await chat.until(lambda: chat.app.chat.prompt.text == "/tag work rust")
        chat.app.chat.prompt.empty()
        await chat.type("/tag -")
        await chat.until(lambda: len(chat.engine.asked(UpdateConversation)) == 2)
        assert chat.engine.asked(UpdateConversation)[1].tags == []
        for line, private in (("/private", True), ("/private", False), ("/private on", True), ("/private off", False)):
            await chat.type(line)
            await chat.until(lambda wanted=private: chat.engine.asked(UpdateConversation)[-1].private is wanted)


@pytest.mark.parametrize("line", ["hello", "!ls"])
async def test_private_before_the_first_message(run_chat: ChatRunner, tmp_path: Path, line: str) -> None:
    def marked(chat: Chat) -> bool:
        return "(private)" in str(chat.app.query_one("#header").render())

    async with run_chat() as chat:
        await chat.ready()
        for private in (True, False, True):
            await chat.type("/private")
            await chat.until(lambda wanted=private: marked(chat) is wanted)
        assert not chat.engine.asked(CreateConversation)
        await chat.type(line)
        elsewhere = History(tmp_path, "/w")
        assert not elsewhere.prompts(everywhere=True)
        await chat.until(lambda: chat.app.chat.session.state.conversation_id)
        assert [made.private for made in chat.engine.asked(CreateConversation)] == [True]
        assert not chat.engine.asked(UpdateConversation)
        assert marked(chat)
        assert not elsewhere.prompts(everywhere=True)
        await chat.until(lambda: not chat.app.chat.session.state.busy)
        await chat.press("ctrl+n")
        await chat.until(lambda: not marked(chat))


class SlowToCreate(FakeEngine):
    """An engine whose answer that a conversation was created takes until `goes_on` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.goes_on = asyncio.Event()

    async def request(self, request: Request[R]) -> R:
        answer = await super().request(request)
        if isinstance(request, CreateConversation):
            await self.goes_on.wait()
        return answer


async def test_private_while_the_first_message_is_being_sent(run_chat: ChatRunner) -> None:
    engine = SlowToCreate()
    async with run_chat(engine) as chat:
        await chat.ready()
        state = chat.app.chat.session.state
        await chat.type("hello")
        await chat.until(lambda: chat.engine.asked(CreateConversation))
        await chat.type("/private on")
        await chat.until(lambda: state.next_private)
        assert not chat.engine.asked(SendMessage)
        engine.goes_on.set()
        await chat.until(lambda: chat.engine.asked(SendMessage))
        assert state.conversation is not None and state.conversation.private and not state.next_private


async def test_export(run_chat: ChatRunner, engine: FakeEngine, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("exports")
    async with run_chat(engine, continue_last=True) as chat:
        await chat.until(lambda: title(chat))
        for name, word in (("a.json", b'"format"'), ("a.md", b"# Retries double turns")):
            await chat.type(f"/export {folder / name}")
            await chat.until((folder / name).exists)
            await chat.until(lambda name=name: chat.noticed(f"Written to {folder / name}"))
            assert word in (folder / name).read_bytes()
        await chat.type(f"/export {folder / 'a.md'}")
        await chat.until(lambda: chat.noticed("already exists; it was not overwritten"))


async def test_an_export_without_a_file_goes_to_the_folder_of_exports(
    run_chat: ChatRunner, engine: FakeEngine, tmp_path: Path
) -> None:
    async with run_chat(engine, continue_last=True, exports_dir=tmp_path / "new" / "exports") as chat:
        await chat.until(lambda: title(chat))
        file = tmp_path / "new" / "exports" / f"Retries-double-turns-{conversation(1).uuid[:8]}.md"
        for _ in range(2):
            await chat.type("/export")
            await chat.until(lambda: chat.noticed(f"Written to {file}"))
            assert file.read_bytes().startswith(b"# Retries double turns")
            chat.notices.clear()


async def test_a_turn_of_ours_that_is_retried_elsewhere_is_shown_again(
    run_chat: ChatRunner, engine: FakeEngine
) -> None:
    owner = engine.conversations[conversation(1).uuid]
    async with run_chat(engine, continue_last=True) as chat:
        await chat.until(lambda: chat.loaded)
        await chat.type("ours")
        await chat.until(lambda: chat.happened(TurnCompleted))
        document, state = chat.app.chat.transcript.document, chat.app.chat.session.state
        index = len(engine.turns[owner.uuid])

        def remote_turn(text: str, mark: str, turn_state: str) -> TurnElsewhere:
            event = elsewhere(owner, index, text, turn_state)
            event.turn.messages[1].uuid = mark
            event.turn.messages.insert(1, message(owner, index, "assistant", "gone", 9, state="superseded"))
            return event

        def shown() -> list[str]:
            return [block.source for block in document.blocks if block.turn_index == index and block.kind == "text"]

        engine.emit(remote_turn("Better", "new", "streaming"))
        await chat.until(lambda: state.followed == index)
        assert shown() == ["Better"]
        again = remote_turn("Best", "newest", "streaming")
        again.turn.messages[1].uuid = "new"
        engine.emit(again)
        await chat.until(lambda: shown() == ["Best"])
        engine.emit(remote_turn("Best.", "newest", "complete"))
        await chat.until(lambda: not state.busy)
        assert shown() == ["Best."]


async def test_panes_take_in_what_others_do_while_a_turn_runs_here(run_chat: ChatRunner, engine: FakeEngine) -> None:
    owner = engine.conversations[conversation(1).uuid]
    async with run_chat(engine, continue_last=True, size=(140, 40), tui=TuiSettings()) as chat:
        await chat.until(lambda: chat.loaded)
        await chat.press("f8")
        await chat.until(lambda: chat.app.chat.sidebar.pane("memory"))
        trace, files = chat.app.chat.sidebar.pane("trace"), chat.app.chat.sidebar.pane("files")
        memory = chat.app.chat.sidebar.pane("memory")
        assert isinstance(trace, TracePane) and isinstance(files, FilesPane) and isinstance(memory, MemoryPane)
        last = len(engine.turns[owner.uuid])
        ours = message(owner, last + 2, "user", "ours")
        engine.emit(TurnStarted(conversation_id=owner.uuid, turn_index=last + 2, message=ours))
        await chat.until(lambda: chat.app.chat.session.state.running)
        theirs = calling(owner, answered=True, text="Done", state="streaming")
        theirs.turn_index = theirs.turn.turn_index = last + 1
        theirs.turn.messages[1].tool_calls[0].files = [FileAccess(path="notes.md", access="read")]
        engine.emit(theirs)
        await chat.until(lambda: [row.turn for row in trace.trace.rows] == [last + 1])
        assert trace.trace.newest_turn == last + 2, "what runs here stays the newest"
        assert files.files.file("notes.md") is not None
        assert memory.memory.last_turn == last + 2 and chat.app.chat.session.state.running
