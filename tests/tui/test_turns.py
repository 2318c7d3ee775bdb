"""Single turns from the keyboard: find a text, go to a turn, edit and resend, branch."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from textual._compositor import ChopsUpdate, Compositor

from ragforge_tui.shared.errors import ErrorInfo, GraphUnavailableError
from ragforge_tui.shared.events import ApprovalRequested, ApprovalResolved, TurnCancelled, TurnCompleted, TurnFailed
from ragforge_tui.shared.records import ToolCall
from ragforge_tui.shared.requests.turns import BranchConversation, FetchTurns, FindText, SendMessage
from ragforge_tui.tui.dialogs.find_bar import FindBar
from ragforge_tui.tui.widgets.choice_list import Choice, ChoiceList
from ragforge_tui.tui.widgets.list_screen import Picker
from ragforge_tui.tui.widgets.status_bar import StatusLine
from tests.support.fake_engine import CLOCK, FakeEngine, conversation, turn
from tests.tui.conftest import Chat, ChatRunner

ANIMALS = {7: "an okapi, and one more okapi", 33: "the OKAPI again", 98: "last okapi"}


def zoo() -> FakeEngine:
    """A hundred turns, in three of which an okapi is."""
    engine = FakeEngine()
    owner = conversation(1, "Zoo")
    engine.store(owner, *[turn(owner, n, f"question {n}", ANIMALS.get(n, "answer")) for n in range(1, 101)])
    return engine


def where(chat: Chat) -> str:
    """What the find line says."""
    return str(chat.app.query_one("#find-where").render())


def status(chat: Chat) -> str:
    """What the line at the bottom says."""
    return chat.app.query_one(StatusLine).render().plain


def reversed_text(chat: Chat) -> Iterator[str]:
    """What is made visible in the window."""
    view = chat.app.chat.transcript
    for y in range(view.size.height):
        for segment in view.render_line(y):
            if segment.style is not None and segment.style.reverse:
                yield segment.text


def in_window(chat: Chat, text: str) -> bool:
    """Whether the window shows a text."""
    view = chat.app.chat.transcript
    return any(text in view.render_line(y).text for y in range(view.size.height))


async def test_a_text_is_found_wherever_it_is_and_walked_through(run_chat: ChatRunner) -> None:
    async with run_chat(zoo(), continue_last=True) as chat:
        await chat.until(lambda: chat.loaded)
        await chat.press("ctrl+f", *"okapi")
        # A part of the word was found at the same place, and marked, before the last letters were searched for.
        await chat.until(lambda: "turn 98, 3 of 3" in where(chat) and list(reversed_text(chat)) == ["okapi"])
        await chat.press("enter")
        await chat.until(lambda: "turn 7, 1 of 3" in where(chat) and list(reversed_text(chat)) == ["okapi", "okapi"])
        await chat.press("down")
        await chat.until(lambda: "turn 33, 2 of 3" in where(chat) and list(reversed_text(chat)) == ["OKAPI"])
        await chat.press("up", "up")
        await chat.until(lambda: "turn 98, 3 of 3" in where(chat))
        await chat.press("tab")
        assert chat.app.focused is chat.app.chat.transcript
        await chat.press("N")
        await chat.until(lambda: "turn 33" in where(chat))
        await chat.press("n")
        await chat.until(lambda: "turn 98" in where(chat))
        chat.app.query_one(FindBar).search_for("no such animal")
        await chat.until(lambda: "no match" in where(chat))
        await chat.press("escape")
        await chat.until(lambda: not chat.app.query(FindBar))
        assert chat.app.focused is chat.app.chat.prompt
        await chat.press("tab", "n")
        await chat.until(lambda: "no match" in where(chat))
        assert chat.app.chat.prompt.text == ""


async def test_each_place_in_a_long_answer_comes_into_view(run_chat: ChatRunner) -> None:
    engine = FakeEngine()
    owner = conversation(1, "Zoo")
    answer = "\n".join(f"- {'a whale' if n % 60 == 30 else 'nothing'} in line {n}\n" for n in range(240))
    engine.store(owner, turn(owner, 1, "what is there?", answer), turn(owner, 2, "and?", "nothing more\n\n" * 50))
    async with run_chat(engine, continue_last=True) as chat:
        await chat.until(lambda: chat.loaded)
        await chat.press("ctrl+f", *"whale")
        for line in (30, 90, 150, 210, 30):
            await chat.until(partial(in_window, chat, f"in line {line}"), str(line))
            assert list(reversed_text(chat)) == ["whale"]
            await chat.press("enter")
            await chat.pilot.pause()


async def test_matches_leave_with_their_conversation(run_chat: ChatRunner) -> None:
    async with run_chat(zoo(), continue_last=True) as chat:
        await chat.until(lambda: chat.loaded)
        await chat.press("ctrl+f", *"okapi")
        await chat.until(lambda: "turn 98, 3 of 3" in where(chat))
        await chat.press("ctrl+n")
        await chat.until(lambda: not chat.app.query(FindBar))
        assert chat.app.focused is chat.app.chat.prompt


async def test_without_the_graph_what_is_loaded_is_looked_through(run_chat: ChatRunner) -> None:
    engine = zoo()
    async with run_chat(engine, continue_last=True) as chat:
        await chat.until(lambda: chat.loaded)
        engine.failures[FindText] = GraphUnavailableError("The graph is away.")
        await chat.type("/find okapi")
        await chat.until(lambda: "turn 98, 1 of 1 loaded turn" in where(chat))


async def test_any_turn_can_be_opened(run_chat: ChatRunner) -> None:
    async with run_chat(zoo(), continue_last=True) as chat:
        await chat.until(lambda: chat.loaded)
        await chat.type("/turn 50")
        await chat.until(lambda: chat.app.chat.transcript.turn_in_view == 50)
        assert (chat.engine.asked(FetchTurns)[0].start, chat.engine.asked(FetchTurns)[0].end) == (40, 70)
        await chat.type("/turn 101")
        await chat.until(lambda: chat.noticed("This conversation has no turn 101"))
        await chat.type("/turn x")
        await chat.until(lambda: chat.noticed("'x' is not the number of a turn"))
        chat.app.chat.transcript.focus()
        await chat.press("home")
        await chat.until(lambda: chat.app.chat.transcript.document.holds(1))


async def test_the_keyboard_goes_along_to_a_turn(run_chat: ChatRunner) -> None:
    engine = zoo()
    async with run_chat(engine, continue_last=True) as chat:
        await chat.until(lambda: chat.loaded)
        await chat.type("/turn 50")
        await chat.until(lambda: chat.app.chat.transcript.turn_in_view == 50)
        await chat.press("tab", "b")
        await chat.until(lambda: chat.noticed("shares turns 1 to 50"))


async def test_an_edited_message_is_sent_in_a_branch(run_chat: ChatRunner) -> None:
    engine = zoo()
    parent = conversation(1).uuid
    async with run_chat(engine, continue_last=True) as chat:
        await chat.until(lambda: chat.loaded)
        chat.app.chat.transcript.focus()
        await chat.press("e")
        assert chat.app.chat.prompt.text == "", "a key of the chat types nothing where it has nothing to do"
        await chat.press("k", "k", "e")
        await chat.until(lambda: chat.app.chat.prompt.text == "question 100")
        assert chat.app.chat.prompt.editing == 100
        await chat.press("escape")
        assert chat.app.chat.prompt.text == ""
        assert not chat.app.chat.prompt.editing
        await chat.type("/edit 60")
        await chat.until(lambda: chat.app.chat.prompt.text == "question 60")
        await chat.type(", otherwise")
        await chat.until(lambda: engine.asked(SendMessage))
        asked = engine.asked(BranchConversation)[0]
        assert (asked.conversation_id, asked.turn_index) == (parent, 59)
        sent = engine.asked(SendMessage)[0]
        assert sent.text == "question 60, otherwise"
        assert sent.conversation_id != parent
        assert len(engine.turns[parent]) == 100
        assert chat.noticed("shares turns 1 to 59")


async def test_a_branch_that_cannot_be_made_gives_the_text_back(run_chat: ChatRunner) -> None:
    engine = zoo()
    async with run_chat(engine, continue_last=True) as chat:
        await chat.until(lambda: chat.loaded)
        await chat.type("/edit")
        await chat.until(lambda: chat.app.chat.prompt.text == "question 100")
        engine.failures[BranchConversation] = GraphUnavailableError("The graph is away.")
        await chat.press("enter")
        await chat.until(lambda: chat.noticed("The graph is away."))
        assert chat.app.chat.prompt.text == "question 100"
        assert not engine.asked(SendMessage)


async def test_a_branch_begins_at_a_turn(run_chat: ChatRunner) -> None:
    engine = zoo()
    async with run_chat(engine, continue_last=True) as chat:
        await chat.until(lambda: chat.loaded)
        await chat.type("/branch 3")
        await chat.until(lambda: chat.noticed("shares turns 1 to 3"))
        await chat.until(lambda: "(branch from turn 3)" in chat.app.chat.header.render().plain)
        assert chat.app.chat.transcript.document.holds(3)
        assert not chat.app.chat.transcript.document.holds(4)
        await chat.type("go on")
        await chat.until(lambda: engine.asked(SendMessage))
        assert len(engine.turns[engine.asked(SendMessage)[0].conversation_id]) == 4


async def test_where_one_is_counts_lines_apart_from_turns(run_chat: ChatRunner) -> None:
    engine = FakeEngine()
    owner = conversation(1, "Zoo")
    engine.store(owner, turn(owner, 1, "the okapi", "An okapi.\n\nAnother okapi."), turn(owner, 2, "no", "okapi"))
    async with run_chat(engine, continue_last=True) as chat:
        await chat.until(lambda: chat.loaded)
        await chat.type("/find okapi")
        await chat.until(lambda: "line 1 of 3 in turn 1, 1 of 2 turns" in where(chat))
        await chat.press("down")
        await chat.until(lambda: "line 2 of 3 in turn 1, 1 of 2 turns" in where(chat))
        await chat.press("down", "down")
        await chat.until(lambda: where(chat).strip().startswith("turn 2, 2 of 2 turns"))


async def test_how_fast_a_text_is_typed_does_not_decide_what_is_found(run_chat: ChatRunner) -> None:
    engine = FakeEngine()
    owner = conversation(1, "Zoo")
    said = {10: "ok", 20: "okapi one", 58: "okapi two", 59: "o, another one"}
    engine.store(owner, *[turn(owner, n, f"question {n}", said.get(n, "this")) for n in range(1, 61)])
    async with run_chat(engine, continue_last=True) as chat:
        await chat.until(lambda: chat.loaded)
        await chat.press("home")
        await chat.type("/turn 30")
        await chat.until(lambda: chat.app.chat.transcript.turn_in_view == 30)
        await chat.press("ctrl+f", "ctrl+f", *"another")
        await chat.until(lambda: "turn 59" in where(chat))
        await chat.press(*["backspace"] * len("another"), *"okapi")
        await chat.until(lambda: "turn 58, 2 of 2 turns" in where(chat))


async def test_escape_leads_from_the_chat_to_the_prompt(run_chat: ChatRunner) -> None:
    async with run_chat(zoo(), continue_last=True) as chat:
        await chat.until(lambda: chat.loaded)
        await chat.press("tab", "k")
        assert chat.app.chat.transcript.cursor.block is not None
        await chat.press("escape")
        assert chat.app.chat.prompt.has_focus and chat.app.chat.transcript.cursor.block is None


async def test_escape_in_the_chat_ends_the_search_and_n_takes_it_up_again(run_chat: ChatRunner) -> None:
    async with run_chat(zoo(), continue_last=True) as chat:
        await chat.until(lambda: chat.loaded)
        await chat.type("/find okapi")
        await chat.until(lambda: "turn" in where(chat))
        await chat.press("tab", "escape")
        await chat.until(lambda: not chat.app.query(FindBar))
        assert chat.app.chat.prompt.has_focus
        await chat.press("tab", "n")
        await chat.until(lambda: "turn" in where(chat))
        assert chat.app.chat.transcript.has_focus


async def test_escape_closes_the_search_at_the_keyboard_before_it_drops_an_edit(run_chat: ChatRunner) -> None:
    async with run_chat(zoo(), continue_last=True) as chat:
        await chat.until(lambda: chat.loaded)
        await chat.type("/edit 60")
        await chat.until(lambda: chat.app.chat.prompt.text == "question 60")
        await chat.press("ctrl+f")
        await chat.until(lambda: chat.app.query("FindBar") and chat.app.query_one("FindBar").has_focus_within)
        await chat.press("escape")
        await chat.until(lambda: not chat.app.query("FindBar") and chat.app.chat.prompt.has_focus)
        assert chat.app.chat.prompt.editing == 60
        await chat.press("escape")
        await chat.until(lambda: not chat.app.chat.prompt.editing and chat.app.chat.prompt.blank)


def rows(chat: Chat) -> list[str]:
    """The screen, row by row."""
    return [strip.text.rstrip() for strip in chat.app.screen._compositor.render_strips()]


def chip(chat: Chat) -> str:
    """What is over the right end of the chat's last row."""
    view = chat.app.chat.transcript
    word = view.last_row_word()
    shown = word.text.strip() if word is not None else ""
    assert shown in view.render_line(view.size.height - 1).text
    return shown


async def test_what_happens_below_the_window_is_told_over_the_prompt(run_chat: ChatRunner) -> None:
    async with run_chat(zoo(), continue_last=True) as chat:
        await chat.until(lambda: chat.loaded)
        assert not chip(chat)
        await chat.press("pageup")
        await chat.until(lambda: chip(chat).startswith("↓ ") and chip(chat).endswith(" lines · End"))
        strip = chat.app.query_one("#notice-strip")
        for _ in range(2):
            await chat.type("/tag -")
            await chat.until(lambda: strip.display and any("has no tags" in row for row in rows(chat)[-8:]))
        assert not chat.app.chat.transcript.follow, "what was being read stays where it is"
        await chat.press(*"draft", "end")
        await chat.until(lambda: chat.app.chat.transcript.follow and not strip.display and not chip(chat))
        assert chat.app.chat.prompt.text == "draft"
        chat.app.chat.session.notice("In sight anyway.")
        await chat.until(lambda: any("In sight anyway." in row for row in rows(chat)))
        assert not strip.display


async def test_the_word_at_the_end_says_what_went_wrong_and_leads_there(run_chat: ChatRunner) -> None:
    async with run_chat(zoo(), continue_last=True) as chat:
        await chat.until(lambda: chat.loaded)
        await chat.press("pageup")
        await chat.until(lambda: bool(chip(chat)))
        where: dict[str, Any] = {"conversation_id": chat.app.chat.session.state.conversation_id, "turn_index": 100}
        call = ToolCall(uuid="c1", message_id="m", tool_name="run_command", arguments="{}", timestamp=CLOCK)
        asking = ApprovalRequested(
            approval_id="a1", call=call, kind="command", question="Run it?", detail="ls", session_scope="", **where
        )
        chat.engine.emit(asking)
        await chat.until(lambda: " · waits · End" in chip(chat))
        chat.engine.emit(ApprovalResolved(approval_id="a1", decision="no", **where))
        await chat.until(lambda: "waits" not in chip(chat))
        chat.engine.emit(TurnCancelled(**where))
        await chat.until(lambda: " · interrupted · End" in chip(chat))
        chat.engine.emit(TurnFailed(error=ErrorInfo(kind="model", what="It broke."), **where))
        await chat.until(lambda: " · failed · End" in chip(chat))
        await chat.pilot.pause()
        view = chat.app.chat.transcript
        at = view.size.height - 1
        await chat.pilot.click(view, offset=(view.render_line(at).text.index("↓") + 2, at))
        await chat.until(lambda: view.follow and not chip(chat))
        await chat.press("pageup")
        await chat.until(lambda: chip(chat).endswith(" lines · End"), "once seen it warns no more")


async def test_a_change_of_focus_draws_no_row_of_the_chat(
    run_chat: ChatRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with run_chat(zoo(), continue_last=True) as chat:
        await chat.until(lambda: chat.loaded)
        await chat.pilot.pause()
        drawn: list[tuple[int, int]] = []
        rows_of_chat = chat.app.chat.transcript.region.line_range

        def note(compositor: Compositor, *, full: bool = False, **given: Any) -> object:
            update = render(compositor, full=full, **given)
            spans = update.spans if isinstance(update, ChopsUpdate) else [(y, 0, 999) for y in rows_of_chat]
            drawn.extend((y, end - start) for y, start, end in spans if y in rows_of_chat)
            return update

        render: Any = Compositor.render_update
        monkeypatch.setattr(Compositor, "render_update", note)
        await chat.press("tab")
        await chat.until(lambda: "j k choose" in status(chat))
        await chat.press("escape")
        await chat.until(lambda: "/ commands" in status(chat))
        assert all(cells == 1 for _, cells in drawn), "no more than the scrollbar, which shows the focus"


# -- back to an earlier turn


def choices(chat: Chat) -> list[Choice]:
    """The rows of the picker on the screen."""
    return chat.app.screen.query_one(ChoiceList).rows


async def test_one_goes_back_to_a_message_which_is_in_the_prompt_again(run_chat: ChatRunner) -> None:
    engine = zoo()
    parent = conversation(1).uuid
    async with run_chat(engine, continue_last=True) as chat:
        await chat.until(lambda: chat.loaded)
        await chat.type("/branch")
        await chat.until(lambda: isinstance(chat.app.screen, Picker) and choices(chat))
        rows = choices(chat)
        assert [(row.key, row.lead, row.label) for row in rows[:2]] == [
            ("100", "100  ", "question 100"),
            ("99", " 99  ", "question 99"),
        ]
        assert chat.app.screen.query_one(ChoiceList).chosen == rows[0]
        assert len(rows) == 100
        await chat.press("down", "down", "enter")
        await chat.until(lambda: chat.app.chat.prompt.text == "question 98")
        asked = engine.asked(BranchConversation)[0]
        assert (asked.conversation_id, asked.turn_index) == (parent, 97)
        assert chat.noticed("shares turns 1 to 97")
        assert chat.app.chat.prompt.has_focus
        assert chat.app.chat.transcript.newest_turn == 97
        assert len(engine.turns[parent]) == 100
        assert not engine.asked(SendMessage)


async def test_the_first_message_can_be_written_again(run_chat: ChatRunner) -> None:
    engine = zoo()
    async with run_chat(engine, continue_last=True) as chat:
        await chat.until(lambda: chat.loaded)
        await chat.type("/rewind")
        await chat.until(lambda: isinstance(chat.app.screen, Picker) and choices(chat))
        await chat.press("up", *["pagedown"] * 10, "enter")
        await chat.until(lambda: chat.app.chat.prompt.text == "question 1")
        assert engine.asked(BranchConversation)[0].turn_index == 0
        assert chat.noticed("It starts empty")


async def test_escape_twice_in_an_empty_prompt_offers_the_messages(run_chat: ChatRunner) -> None:
    async with run_chat(zoo(), continue_last=True) as chat:
        await chat.until(lambda: chat.loaded)
        await chat.press("x", "escape", "escape")
        assert "again" not in chat.app.chat.status_line.hint, "the prompt holds something"
        assert chat.app.chat.status_line.hint == "esc esc goes back when the prompt is empty"
        await chat.press("backspace", "escape")
        assert chat.app.chat.status_line.hint == "esc again: go back to an earlier turn"
        assert len(chat.app.screen_stack) == 1
        await chat.press("escape")
        await chat.until(lambda: isinstance(chat.app.screen, Picker) and choices(chat))
        await chat.press("escape")
        await chat.until(lambda: len(chat.app.screen_stack) == 1)
        assert chat.app.chat.prompt.has_focus


async def test_after_a_message_the_newest_turn_is_offered_and_not_one_that_was_looked_at(run_chat: ChatRunner) -> None:
    async with run_chat(zoo(), continue_last=True) as chat:
        await chat.until(lambda: chat.loaded)
        chat.app.chat.transcript.scroll_to_turn(chat.app.chat.transcript.newest_turn - 1)
        await chat.type("hello")
        await chat.until(lambda: chat.happened(TurnCompleted))
        await chat.press("escape", "escape")
        await chat.until(lambda: isinstance(chat.app.screen, Picker) and choices(chat))
        assert chat.app.screen.query_one(ChoiceList).chosen == choices(chat)[0]


async def test_the_hints_name_the_users_own_key_for_escape(run_chat: ChatRunner) -> None:
    async with run_chat(zoo(), continue_last=True) as chat:
        await chat.until(lambda: chat.loaded)
        chat.app.chat.settings.apply("tui.keymap", {"stop": "f8"})
        await chat.until(lambda: "F8 F8 go back" in status(chat))
        await chat.press("x", "f8")
        assert chat.app.chat.status_line.hint == "F8 F8 goes back when the prompt is empty"
        await chat.press("backspace", "f8")
        assert chat.app.chat.status_line.hint == "F8 again: go back to an earlier turn"
        await chat.press("f8")
        await chat.until(lambda: isinstance(chat.app.screen, Picker) and choices(chat))


async def test_a_letter_between_two_escapes_offers_nothing(run_chat: ChatRunner) -> None:
    async with run_chat(zoo(), continue_last=True) as chat:
        await chat.until(lambda: chat.loaded)
        await chat.press("escape", "x", "backspace", "escape")
        await chat.pilot.pause()
        assert len(chat.app.screen_stack) == 1
        assert "again" in chat.app.chat.status_line.hint


async def test_without_a_turn_escape_offers_nothing(run_chat: ChatRunner) -> None:
    async with run_chat() as chat:
        await chat.ready()
        await chat.press("escape", "escape")
        assert "again" not in chat.app.chat.status_line.hint
        assert len(chat.app.screen_stack) == 1


async def test_a_draft_is_not_mixed_with_an_earlier_message(run_chat: ChatRunner) -> None:
    async with run_chat(zoo(), continue_last=True) as chat:
        await chat.until(lambda: chat.loaded)
        await chat.press(*"draft")
        chat.app.chat.run_command("branch")
        await chat.until(lambda: chat.noticed("The prompt holds a draft."))
        assert chat.app.chat.prompt.text == "draft"


async def test_the_message_at_the_cursor_says_how_to_go_back_to_it(run_chat: ChatRunner) -> None:
    async with run_chat(zoo(), continue_last=True) as chat:
        await chat.until(lambda: chat.loaded)
        await chat.type("/turn 50")
        await chat.until(lambda: chat.app.chat.transcript.turn_in_view == 50)
        assert not in_window(chat, "go back here"), "the letters go to the prompt"
        await chat.press("tab")
        await chat.until(lambda: in_window(chat, "b go back here"))
        await chat.until(lambda: "e edit it · y copy · esc back to prompt" in status(chat))
        await chat.press("j")
        await chat.until(lambda: not in_window(chat, "go back here"))
        await chat.until(lambda: "y copy · v view · b go back here" in status(chat))
        await chat.press("k", "escape")
        await chat.until(lambda: not in_window(chat, "go back here") and "/ commands" in status(chat))


async def test_a_click_on_what_the_mouse_uncovers_goes_back(run_chat: ChatRunner) -> None:
    engine = zoo()
    async with run_chat(engine, continue_last=True) as chat:
        await chat.until(lambda: chat.loaded)
        await chat.type("/turn 50")
        await chat.until(lambda: chat.app.chat.transcript.turn_in_view == 50)
        view = chat.app.chat.transcript
        top = next(y for y in range(view.size.height) if "50 · " in view.render_line(y).text)
        await chat.pilot.hover(view, offset=(4, top + 1))
        await chat.until(lambda: "go back here" in view.render_line(top).text)
        assert "b go" not in view.render_line(top).text, "the keyboard is elsewhere"
        at = view.render_line(top).text.index("go back here")
        await chat.pilot.click(view, offset=(at + 2, top))
        await chat.until(lambda: chat.noticed("shares turns 1 to 50"))


async def test_an_offer_is_not_copied_with_the_message(run_chat: ChatRunner) -> None:
    async with run_chat(zoo(), continue_last=True) as chat:
        await chat.until(lambda: chat.loaded)
        view = chat.app.chat.transcript
        top = next(y for y in range(view.size.height) if "100 · " in view.render_line(y).text)
        await chat.pilot.hover(view, offset=(4, top))
        await chat.until(lambda: "go back here" in view.render_line(top).text)
        await chat.pilot.mouse_down(view, offset=(4, top))
        assert "go back here" not in view.render_line(top).text
