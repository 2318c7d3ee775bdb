"""The key paths of the sidebar: what shows, folds and moves it, the calls, the files; keyboard and mouse."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest
from textual.widgets import Input

from ragforge_tui.settings.schema import TuiSettings
from ragforge_tui.shared.errors import GraphUnavailableError
from ragforge_tui.shared.events import ApprovalResolved, ToolCallFinished, ToolCallStarted, TurnCompleted, TurnStarted
from ragforge_tui.shared.records import AccessedFile
from ragforge_tui.shared.requests.memory import FetchFiles
from ragforge_tui.shared.requests.work import FetchCall, ListCalls
from ragforge_tui.tui.dialogs.text_viewer import DetailScreen
from ragforge_tui.tui.sidebar.files_pane import FilesPane
from ragforge_tui.tui.sidebar.pane import PaneTitle
from ragforge_tui.tui.sidebar.sidebar import FILE_NAME, Divider, Layout, load_layout
from ragforge_tui.tui.sidebar.trace_pane import TracePane
from ragforge_tui.tui.transcript.tool_block import ToolBlock
from ragforge_tui.tui.widgets.key_bar import KeyBar
from tests.support.calls_scene import calls_engine, calls_of
from tests.support.fake_engine import CLOCK, FakeEngine, conversation, message, turn
from tests.support.no_resize import take_new_places
from tests.tui.conftest import Chat, ChatRunner
from tests.tui.test_questions import approval, screen_text

WIDE, NARROW = (140, 40), (80, 24)
SHOWN = TuiSettings(reduced_motion=True)
OWNER = conversation(1).uuid


def trace_of(chat: Chat) -> TracePane:
    return cast(TracePane, chat.app.chat.sidebar.pane("trace"))


def strip_text(chat: Chat) -> str:
    return chat.app.chat.sidebar.strip.render().plain


def files_of(chat: Chat) -> FilesPane:
    return cast(FilesPane, chat.app.chat.sidebar.pane("files"))


async def traced(chat: Chat) -> TracePane:
    """The trace with its calls, in use."""
    await chat.until(lambda: chat.app.chat.session.state.conversation)
    await chat.press("f4")
    await chat.until(lambda: trace_of(chat) and trace_of(chat).trace.rows and trace_of(chat).has_focus_within)
    return trace_of(chat)


async def filed(chat: Chat) -> FilesPane:
    """The files with what the memory knows, in use."""
    await chat.until(lambda: chat.app.chat.session.state.conversation)
    await chat.press("f5")
    await chat.until(lambda: files_of(chat) and len(files_of(chat).files) and files_of(chat).has_focus_within)
    return files_of(chat)


async def opened(chat: Chat) -> list[str]:
    """The titles of what Enter shows."""
    await chat.press("enter")
    await chat.until(lambda: isinstance(chat.app.screen, DetailScreen) and chat.app.screen.sections)
    return [section.title for section in cast(DetailScreen, chat.app.screen).sections]


# -- where it stands


async def test_next_to_the_chat_where_there_is_room(run_chat: ChatRunner) -> None:
    async with run_chat(calls_engine(), size=WIDE, tui=SHOWN, continue_last=True) as chat:
        await chat.until(lambda: trace_of(chat) and trace_of(chat).trace.rows, "the calls are listed unasked")
        sidebar, transcript = chat.app.chat.sidebar, chat.app.chat.transcript
        assert sidebar.region.x == transcript.region.right
        assert sidebar.region.right == WIDE[0]
        assert chat.app.chat.prompt.has_focus
        await chat.press("f8")
        await chat.until(lambda: not sidebar.display)
        assert transcript.region.width > WIDE[0] - 5
        assert not load_layout(chat.app.chat.options.state_dir).open


async def test_below_140_columns_it_starts_closed_and_a_line_counts_what_is_in_it(run_chat: ChatRunner) -> None:
    engine = calls_engine()
    async with run_chat(engine, size=(120, 40), tui=SHOWN, continue_last=True) as chat:
        sidebar = chat.app.chat.sidebar
        await chat.until(lambda: "F4 trace 48 · F3 memory" in strip_text(chat) and "F5 files 3" in strip_text(chat))
        assert not sidebar.display and sidebar.strip.region.right == 120
        await chat.press("f4")
        await chat.until(lambda: sidebar.display and trace_of(chat).has_focus_within)
        assert not sidebar.strip.display, "next to the chat the panes tell it themselves"
        await chat.press("f8")
        await chat.until(lambda: not sidebar.display)
        assert not sidebar.strip.display, "who hides it wants it hidden"


async def test_the_key_of_a_pane_closes_what_it_opened_and_keeps_no_choice(run_chat: ChatRunner) -> None:
    async with run_chat(calls_engine(), size=(120, 40), tui=SHOWN, continue_last=True) as chat:
        sidebar, prompt = chat.app.chat.sidebar, chat.app.chat.prompt
        await traced(chat)
        await chat.press("escape")
        assert sidebar.display and prompt.has_focus, "Escape leads back to the prompt"
        await chat.press("f4", "f4")
        await chat.until(lambda: not sidebar.display and prompt.has_focus)
        await chat.until(lambda: sidebar.strip.display, "the line counts it again")
        assert load_layout(chat.app.chat.options.state_dir).open is None
        await chat.press("f8")
        await chat.until(lambda: trace_of(chat).has_focus_within)
        await chat.press("f4")
        await chat.until(lambda: prompt.has_focus)
        assert sidebar.display, "F8 opened it, and keeps it that way"
        assert load_layout(chat.app.chat.options.state_dir).open


async def test_not_shown_where_it_is_not_wanted(run_chat: ChatRunner) -> None:
    engine = calls_engine()
    async with run_chat(engine, size=WIDE, continue_last=True) as chat:
        await chat.until(lambda: chat.app.chat.session.state.conversation)
        assert not chat.app.chat.sidebar.display
        assert not engine.asked(ListCalls)
        await traced(chat)
        assert chat.app.chat.sidebar.display


async def test_over_the_chat_where_it_is_narrow(run_chat: ChatRunner) -> None:
    async with run_chat(calls_engine(), size=NARROW, tui=SHOWN, continue_last=True) as chat:
        await chat.until(lambda: chat.app.chat.session.state.conversation)
        await chat.until(lambda: chat.app.chat.sidebar.strip.region.height == 1 and "trace" in strip_text(chat))
        before = chat.app.chat.transcript.region
        assert not chat.app.chat.sidebar.display
        await traced(chat)
        assert chat.app.chat.transcript.region == before, "the chat is not wrapped anew"
        assert chat.app.chat.sidebar.region.width == trace_of(chat).region.width == NARROW[0], "nor seen in part"
        await chat.press("less_than_sign")
        assert load_layout(chat.app.chat.options.state_dir).width is None, "its width next to the chat stays"
        await chat.press("escape")
        assert not chat.app.chat.sidebar.display
        assert chat.app.chat.prompt.has_focus
        await chat.press("f4", "f4")
        assert not chat.app.chat.sidebar.display, "the key that shows it puts it away"


@pytest.mark.parametrize("size", [(60, 20), NARROW, (120, 40), (160, 50)])
async def test_at_every_size_each_pane_can_be_used(run_chat: ChatRunner, size: tuple[int, int]) -> None:
    async with run_chat(calls_engine(), size=size, tui=SHOWN, continue_last=True) as chat:
        for show in (traced, filed):
            pane = await show(chat)
            await chat.pilot.pause()
            assert pane.region.height >= 4
            assert pane.region.right <= size[0]


async def test_another_width_of_the_terminal(run_chat: ChatRunner) -> None:
    async with run_chat(calls_engine(), size=NARROW, tui=SHOWN, continue_last=True) as chat:
        await chat.until(lambda: chat.app.chat.session.state.conversation)
        await chat.pilot.resize_terminal(*WIDE)
        await chat.until(lambda: trace_of(chat) and trace_of(chat).trace.rows)
        await chat.pilot.resize_terminal(*NARROW)
        await chat.until(lambda: not chat.app.chat.sidebar.display)


async def test_keys_for_width_and_heights_and_what_is_kept(run_chat: ChatRunner) -> None:
    async with run_chat(calls_engine(), size=WIDE, tui=SHOWN, continue_last=True) as chat:
        pane = await traced(chat)
        await chat.pilot.pause()
        width = chat.app.chat.sidebar.region.width
        await chat.press("less_than_sign", "ctrl+left", "plus")
        await chat.pilot.pause()
        assert chat.app.chat.sidebar.region.width == width + 4
        assert pane.region.height > files_of(chat).region.height
        assert load_layout(chat.app.chat.options.state_dir).share("trace") == 5
    async with run_chat(calls_engine(), size=WIDE, tui=SHOWN, continue_last=True) as chat:
        await chat.until(lambda: trace_of(chat) and trace_of(chat).trace.rows)
        assert chat.app.chat.sidebar.region.width == width + 4


async def test_the_pane_that_is_asked_for_gets_most_of_the_rows(run_chat: ChatRunner) -> None:
    engine = calls_engine()
    engine.memory.files = [
        AccessedFile(path=f"src/{name}.py", group="read", tool="read_file", turn_index=1, timestamp=CLOCK)
        for name in range(60)
    ]
    async with run_chat(engine, size=WIDE, tui=SHOWN, continue_last=True) as chat:
        trace, files = await traced(chat), files_of(chat)
        await chat.until(lambda: trace.region.height > 2 * files.region.height > 4)
        await filed(chat)
        await chat.until(lambda: files.region.height > 2 * trace.region.height > 4)
        await chat.press("escape")
        await chat.pilot.pause()
        assert files.region.height > 2 * trace.region.height, "what is read stays in place"
        await chat.press("f5", "tab")
        await chat.until(lambda: trace.has_focus_within and trace.region.height > 2 * files.region.height)


async def test_one_pane_is_alone_until_the_sidebar_is_hidden(run_chat: ChatRunner) -> None:
    async with run_chat(calls_engine(), size=WIDE, tui=SHOWN, continue_last=True) as chat:
        await traced(chat)
        await chat.press("z")
        await chat.until(lambda: not files_of(chat).display)
        await chat.press("f5")
        await chat.until(lambda: files_of(chat).has_focus_within)
        assert not trace_of(chat).display, "another pane takes its place"
        await chat.press("f8")
        await chat.until(lambda: not chat.app.chat.sidebar.display)
        await chat.press("f4")
        await chat.until(lambda: trace_of(chat).has_focus_within)
        assert files_of(chat).display, "opened again, it shows all panes"


async def test_the_mouse_moves_the_divider_and_folds_panes(run_chat: ChatRunner) -> None:
    async with run_chat(calls_engine(), size=WIDE, tui=SHOWN, continue_last=True) as chat:
        await traced(chat)
        x = chat.app.chat.sidebar.region.x
        await chat.pilot.mouse_down(Divider, offset=(0, 5))
        await chat.pilot.hover(chat.app.chat.transcript, offset=(x - 10, 5))
        await chat.pilot.mouse_up(chat.app.chat.transcript, offset=(x - 10, 5))
        await chat.until(lambda: chat.app.chat.sidebar.region.x == x - 10)
        assert load_layout(chat.app.chat.options.state_dir).width == WIDE[0] - (x - 10)
        title = chat.app.query(PaneTitle).first()
        await chat.pilot.click(title)
        await chat.until(lambda: not trace_of(chat).display)
        await chat.pilot.click(title)
        await chat.until(lambda: trace_of(chat).display)


# -- calls


async def test_a_call_is_opened_and_its_turn_shown(run_chat: ChatRunner) -> None:
    engine = calls_engine(60)
    async with run_chat(engine, size=WIDE, tui=SHOWN, continue_last=True) as chat:
        pane = await traced(chat)
        assert pane.note == "this turn 4 · all 200+"
        await chat.press("home", "down")
        row = pane.trace.row(pane.rows.chosen)
        assert row is not None and row.turn < 20
        assert await opened(chat) == ["Why", "Arguments", "Result"]
        keys = chat.app.screen.query_one(KeyBar).render().plain
        assert "n next section" in keys and "N previous" in keys
        assert [request.call_id for request in engine.asked(FetchCall)] == [row.key]
        await chat.press("g")
        await chat.until(lambda: chat.app.chat.transcript.document.holds(row.turn))
        assert not isinstance(chat.app.screen, DetailScreen)
        assert pane.has_focus_within, "one can go on to the next call"


async def test_from_a_call_in_the_chat_to_its_row(run_chat: ChatRunner) -> None:
    async with run_chat(calls_engine(), size=WIDE, tui=SHOWN, continue_last=True) as chat:
        pane = await traced(chat)
        await chat.press("escape")
        chat.app.chat.transcript.focus()
        while (
            not isinstance(block := chat.app.chat.transcript.cursor.block, ToolBlock)
            or block.call.uuid == pane.rows.chosen
        ):
            await chat.press("k")
        await chat.press("f4")
        await chat.until(lambda: pane.has_focus_within)
        assert pane.rows.chosen == block.call.uuid


async def test_earlier_calls_come_as_one_scrolls_up(run_chat: ChatRunner) -> None:
    engine = calls_engine(120)
    async with run_chat(engine, size=WIDE, tui=SHOWN, continue_last=True) as chat:
        pane = await traced(chat)
        first = pane.trace.rows[0].key
        await chat.press("home")
        await chat.until(lambda: pane.trace.first_turn < 71)
        assert pane.rows.chosen == first, "what is read stays"
        while pane.trace.first_turn > 1:
            await chat.press("home")
        assert len(pane.trace.rows) == 480


async def test_filters(run_chat: ChatRunner) -> None:
    async with run_chat(calls_engine(), size=WIDE, tui=SHOWN, continue_last=True) as chat:
        pane = await traced(chat)
        await chat.press("1")
        assert pane.note == "4 of 48"
        await chat.press("2")
        assert pane.note == "1 of 48"
        await chat.press("0", "3")
        assert pane.note == "12 of 48"
        await chat.press("0", "slash", *"retry")
        await chat.until(lambda: pane.note == "12 of 48")
        assert isinstance(chat.app.focused, Input)
        await chat.press("enter")
        assert pane.rows.has_focus
        await chat.press("slash", "escape")
        await chat.until(lambda: pane.note == "this turn 4 · all 48")
        bar = pane.query_one(KeyBar)
        await chat.pilot.click(bar, offset=(3, 0))
        assert pane.note == "4 of 48"


async def test_a_call_running_is_a_row_that_changes(run_chat: ChatRunner) -> None:
    engine = calls_engine()
    async with run_chat(engine, size=WIDE, tui=SHOWN, continue_last=True) as chat:
        pane = await traced(chat)
        where: dict[str, Any] = {"conversation_id": OWNER, "turn_index": 13}
        said = message(conversation(1), 13, "user", "more")
        done = calls_of(engine, 13)[1]
        running = calls_of(engine, 13)[1]
        running.result = running.success = running.duration_ms = None
        engine.emit(TurnStarted(message=said, **where))
        engine.emit(ToolCallStarted(call=running, **where))
        await chat.until(lambda: pane.trace.rows[-1].state == "running" and pane.note == "this turn 1 · all 49")
        engine.emit(ToolCallFinished(call=done, **where))
        await chat.until(lambda: pane.trace.rows[-1].state == "ok")
        await chat.until(lambda: pane.rows.chosen == done.uuid, "the end stays in view")
        engine.emit(ToolCallStarted(call=calls_of(engine, 14)[0], conversation_id="other", turn_index=1))
        engine.emit(TurnCompleted(text="", **where))
        await asyncio.sleep(0.2)
        assert len(pane.trace.rows) == 49, "other conversations are not listed"


async def test_an_opened_call_continues_while_it_runs(run_chat: ChatRunner) -> None:
    engine = calls_engine()
    async with run_chat(engine, size=WIDE, tui=SHOWN, continue_last=True) as chat:
        pane = await traced(chat)
        where: dict[str, Any] = {"conversation_id": OWNER, "turn_index": 13}
        done, running = calls_of(engine, 13)[1], calls_of(engine, 13)[1]
        running.result = running.success = running.duration_ms = None
        engine.emit(TurnStarted(message=message(conversation(1), 13, "user", "more"), **where))
        engine.emit(ToolCallStarted(call=running, **where))
        await chat.until(lambda: pane.rows.chosen == running.uuid)
        assert "Result" not in await opened(chat)
        screen = cast(DetailScreen, chat.app.screen)
        assert " · running · " in screen._title.render().plain
        engine.emit(ToolCallFinished(call=done, **where))
        await chat.until(lambda: "Result" in [section.title for section in screen.sections])
        await chat.until(lambda: " · done · " in screen._title.render().plain)


async def test_without_the_graph_the_pane_reports_it_and_no_notice_nags(run_chat: ChatRunner) -> None:
    engine = calls_engine()
    engine.failures[ListCalls] = GraphUnavailableError("The graph is away.")
    async with run_chat(engine, size=WIDE, tui=SHOWN, continue_last=True) as chat:
        await chat.until(lambda: engine.asked(ListCalls))
        await chat.pilot.pause()
        assert not chat.noticed("The graph is away")
        await traced(chat)


async def test_another_conversation_has_its_own_calls(run_chat: ChatRunner) -> None:
    async with run_chat(calls_engine(), size=WIDE, tui=SHOWN, continue_last=True) as chat:
        pane = await traced(chat)
        await chat.press("ctrl+n")
        await chat.until(lambda: not pane.trace.rows)
        assert len(files_of(chat).files) == 0
        assert pane.note == ""


# -- files


async def test_files_are_listed_and_put_into_the_prompt(run_chat: ChatRunner) -> None:
    async with run_chat(calls_engine(), size=NARROW, tui=SHOWN, continue_last=True) as chat:
        chat.app.chat.prompt.insert("look at")
        pane = await filed(chat)
        assert pane.rows.chosen == "ragforge_tui/graph/schema.py"
        await chat.press("at")
        assert chat.app.chat.prompt.text == "look at @ragforge_tui/graph/schema.py "
        assert chat.app.chat.prompt.has_focus
        assert not chat.app.chat.sidebar.display
        await chat.press("f5", "end", "enter", "end", "at")
        await chat.until(lambda: chat.app.chat.prompt.text.endswith('@"a folder/with blanks.py" '))


async def test_a_click_opens_a_file(run_chat: ChatRunner) -> None:
    async with run_chat(calls_engine(), size=WIDE, tui=SHOWN, continue_last=True) as chat:
        pane = await filed(chat)
        await chat.pilot.click(pane.rows, offset=(6, 3))
        await chat.until(lambda: isinstance(chat.app.screen, DetailScreen) and chat.app.screen.sections)
        assert pane.rows.chosen == "ragforge_tui/graph/store.py"
        await chat.pilot.pause()
        await chat.pilot.click(chat.app.screen.query_one(KeyBar), offset=(15, 0))
        await chat.until(lambda: chat.app.chat.prompt.text == "@ragforge_tui/graph/store.py ")


async def test_a_file_is_opened_with_what_was_changed(run_chat: ChatRunner) -> None:
    async with run_chat(calls_engine(), size=WIDE, tui=SHOWN, continue_last=True) as chat:
        await filed(chat)
        assert await opened(chat) == ["Changed in this conversation", "File"]
        await chat.press("escape")
        await chat.press("down")
        assert await opened(chat) == ["File"]
        await chat.press("at")
        await chat.until(lambda: chat.app.chat.prompt.text == "@ragforge_tui/graph/store.py ")


async def test_from_a_file_to_its_last_turn(run_chat: ChatRunner) -> None:
    async with run_chat(calls_engine(60), size=NARROW, tui=SHOWN, continue_last=True) as chat:
        await filed(chat)
        await chat.press("g")
        await chat.until(lambda: chat.app.chat.transcript.document.holds(12))
        assert not chat.app.chat.sidebar.display, "the chat can be seen"


async def test_files_follow_the_turn_running(run_chat: ChatRunner) -> None:
    engine = calls_engine()
    async with run_chat(engine, size=WIDE, tui=SHOWN, continue_last=True) as chat:
        pane = await filed(chat)
        call = calls_of(engine, 13)[3]
        engine.emit(ToolCallFinished(call=call, conversation_id=OWNER, turn_index=13))
        await chat.until(lambda: pane.files.file("ragforge_tui/graph/schema.py").turn_index == 13)  # type: ignore[union-attr]
        assert pane.rows.chosen == "ragforge_tui/graph/schema.py", "the newest is at hand until one moves"
        assert pane.rows.scroll_y == 0
        asked = len(engine.asked(FetchFiles))
        engine.emit(TurnCompleted(text="", conversation_id=OWNER, turn_index=13))
        await chat.until(lambda: len(engine.asked(FetchFiles)) > asked)


async def test_a_damaged_layout_is_ignored(run_chat: ChatRunner, tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_text('{"width": "wide"')
    async with run_chat(calls_engine(), size=WIDE, tui=SHOWN, continue_last=True) as chat:
        await chat.until(lambda: chat.app.chat.sidebar.display)
        assert chat.app.chat.sidebar.region.width == Layout().columns(WIDE[0])


async def test_foreign_text_stays_text(run_chat: ChatRunner) -> None:
    engine = calls_engine()
    hostile = "\x1b]0;owned\x07\x1b[31m[bold]x[/bold]\u202e"
    call = engine.turns[OWNER][-1].messages[1].tool_calls[-1]
    call.tool_name, call.arguments = hostile, json.dumps({"path": hostile, "content": f"{hostile}\n{hostile}"})
    call.reasoning = hostile
    call.result = msgspec.structs.replace(call.result, error=hostile, result=json.dumps({"text": f"{hostile}!"}))
    engine.memory.files = [
        AccessedFile(path=f"{hostile}/a.py", group="read", tool=hostile, turn_index=1, timestamp=CLOCK)
    ]
    async with run_chat(engine, size=WIDE, tui=SHOWN, continue_last=True) as chat:
        await filed(chat)
        await traced(chat)
        for step in ("", "enter", "escape", "f5", "enter"):
            if step:
                await chat.press(step)

            def drawn() -> str:
                return "".join(strip.text for strip in chat.app.screen._compositor.render_strips())

            await chat.until(lambda drawn=drawn: "[bold]x[/bold]" in drawn(), "markup is shown as it was written")
            assert not any(letter in drawn() for letter in "\x1b\x07\u202e")
        await chat.press("at")
        await chat.until(lambda: "@" in chat.app.chat.prompt.text)
        assert "\x1b" not in chat.app.chat.prompt.text


# -- when it appears


async def test_it_appears_with_the_first_call_and_goes_with_the_conversation(run_chat: ChatRunner) -> None:
    engine = calls_engine()
    async with run_chat(engine, size=WIDE, tui=SHOWN) as chat:
        await chat.ready()
        await chat.type("hello")
        await chat.until(lambda: chat.app.chat.session.state.conversation and not chat.app.chat.session.state.busy)
        assert not chat.app.chat.sidebar.display
        call = msgspec.structs.replace(calls_of(engine, 1)[0], uuid="first", success=None, result=None)
        uuid = chat.app.chat.session.state.conversation_id
        engine.emit(ToolCallStarted(conversation_id=uuid, turn_index=1, call=call))
        await chat.until(lambda: chat.app.chat.sidebar.display and trace_of(chat) and trace_of(chat).trace.rows)
        assert [row.state for row in trace_of(chat).trace.rows] == ["running"]
        assert chat.app.chat.prompt.has_focus
        await chat.press("ctrl+n")
        await chat.until(lambda: not chat.app.chat.sidebar.display)


async def test_the_users_own_choice_wins_and_is_kept(run_chat: ChatRunner, tmp_path: Path) -> None:
    async with run_chat(calls_engine(), size=WIDE, tui=SHOWN, continue_last=True) as chat:
        await chat.until(lambda: chat.app.chat.sidebar.display)
        await chat.press("f8")
        await chat.until(lambda: not chat.app.chat.sidebar.display)
        chat.app.chat.sidebar.conversation_changed(filled=False)
        chat.app.chat.sidebar.conversation_changed(filled=True)
        await chat.pilot.pause()
        assert not chat.app.chat.sidebar.display
    assert load_layout(tmp_path).open is False
    async with run_chat(calls_engine(), size=WIDE, tui=SHOWN) as chat:
        await chat.press("f8")
        await chat.until(lambda: chat.app.chat.sidebar.display)
    async with run_chat(FakeEngine(), size=WIDE, tui=SHOWN) as chat:
        await chat.ready()
        assert chat.app.chat.sidebar.display


async def test_a_pane_without_entries_has_no_keys_and_leaves_its_room(run_chat: ChatRunner) -> None:
    engine = FakeEngine()
    owner = engine.store(conversation(1), turn(conversation(1), 1, "question", "answer"))
    engine.memory.files = []
    async with run_chat(engine, size=WIDE, tui=SHOWN, continue_last=True) as chat:
        await chat.press("f8")
        await chat.until(lambda: chat.app.chat.session.state.conversation and trace_of(chat) and files_of(chat))
        await chat.until(lambda: trace_of(chat).region.height == 2 and files_of(chat).region.height == 0)
        await chat.until(lambda: "FILES  nothing yet" in screen_text(chat))
        assert not trace_of(chat).query_one(KeyBar).display and not files_of(chat).query_one(KeyBar).display
        call = msgspec.structs.replace(calls_of(calls_engine(), 1)[0], uuid="first")
        engine.emit(ToolCallStarted(conversation_id=owner.uuid, turn_index=1, call=call))
        # A heading, the call and the keys: as tall as what it holds.
        await chat.until(lambda: trace_of(chat).region.height == 3 and trace_of(chat).query_one(KeyBar).display)


async def test_a_wide_screen_has_two_columns_of_panes(run_chat: ChatRunner) -> None:
    async with run_chat(calls_engine(), size=(220, 55), tui=SHOWN, continue_last=True) as chat:
        await chat.until(lambda: trace_of(chat) and trace_of(chat).trace.rows)
        memory = chat.app.chat.sidebar.pane("memory")
        assert memory is not None
        await chat.until(lambda: memory.region.x < trace_of(chat).region.x)
        # The columns are laid out first, their heights behind them.
        await chat.until(lambda: memory.region.height == memory.needed and trace_of(chat).region.height > 30)
        assert trace_of(chat).region.x == files_of(chat).region.x
        assert trace_of(chat).region.right == 220
        await chat.pilot.resize_terminal(150, 55)
        await chat.until(lambda: memory.region.x == trace_of(chat).region.x)


async def test_panes_fit_where_textual_sends_no_resize(run_chat: ChatRunner) -> None:
    async with run_chat(calls_engine(), size=(160, 40), tui=SHOWN, continue_last=True) as chat:
        await traced(chat)
        await chat.pilot.pause()
        body = chat.app.chat.query_one("#body")
        body.styles.height = 22
        take_new_places(chat.app.chat)
        await chat.until(lambda: chat.app.chat.sidebar.size.height == 22)
        await chat.until(lambda: not files_of(chat).display, "in little height one pane is open")


async def test_titles_follow_panes_that_a_question_folds(run_chat: ChatRunner) -> None:
    async with run_chat(calls_engine(), size=(120, 40), tui=SHOWN, continue_last=True) as chat:
        await traced(chat)
        await chat.until(lambda: "▾ MEMORY" in screen_text(chat))
        chat.engine.emit(msgspec.structs.replace(approval("k"), detail="x\n" * 8, kind="command"))
        await chat.until(lambda: "▸ MEMORY" in screen_text(chat))
        chat.engine.emit(ApprovalResolved(conversation_id="", turn_index=1, approval_id="k", decision="no"))
        await chat.until(lambda: "▾ MEMORY" in screen_text(chat))


@pytest.mark.parametrize("size", [WIDE, NARROW])
async def test_tab_goes_round_the_panes_and_shift_tab_back(run_chat: ChatRunner, size: tuple[int, int]) -> None:
    async with run_chat(calls_engine(), size=size, tui=SHOWN, continue_last=True) as chat:
        await traced(chat)
        sidebar, mode = chat.app.chat.sidebar, chat.app.chat.session.state.mode

        async def goes(key: str, name: str) -> None:
            await chat.press(key)
            await chat.until(lambda: (pane := sidebar.pane(name)) is not None and pane.has_focus_within, name)

        for name in ("memory", "files", "trace"):
            await goes("tab", name)
        for name in ("files", "memory"):
            await goes("shift+tab", name)
        assert chat.app.chat.session.state.mode == mode, "in a pane it is no key for the mode"
        await chat.press("escape", "shift+tab")
        await chat.until(lambda: chat.app.chat.session.state.mode != mode)


async def test_a_turn_without_calls_counts_as_this_turn_also_when_resumed(run_chat: ChatRunner) -> None:
    engine = calls_engine()
    owner = engine.conversations[OWNER]
    engine.store(owner, *engine.turns[OWNER], turn(owner, 13, "and now?", "Nothing to look up."))
    async with run_chat(engine, size=WIDE, tui=SHOWN, continue_last=True) as chat:
        pane = await traced(chat)
        assert pane.note == "this turn 0 · all 48"


async def test_no_file_was_used_yet(run_chat: ChatRunner) -> None:
    engine = calls_engine()
    engine.memory.files = []
    async with run_chat(engine, size=WIDE, tui=SHOWN, continue_last=True) as chat:
        await traced(chat)
        await chat.until(lambda: "▸ FILES  nothing yet" in screen_text(chat))
        await chat.press("f5")
        await chat.until(lambda: "nothing read or changed yet" in screen_text(chat))
