"""Approvals and trust: every choice, by key, by arrows, with words, several at once."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence

import msgspec
import pytest
from textual import events
from textual.content import Content
from textual.widgets import Static

from ragforge_tui.shared.events import (
    ApprovalRequested,
    ApprovalResolved,
    AskedChoice,
    QuestionAsked,
    TrustRequested,
    TurnStarted,
)
from ragforge_tui.shared.records import ToolCall
from ragforge_tui.shared.requests.turns import CancelTurn
from ragforge_tui.shared.requests.work import AnswerApproval, AnswerTrust
from ragforge_tui.tools.diff import unified_diff
from ragforge_tui.tui.dialogs.text_viewer import DetailScreen
from ragforge_tui.tui.limits import SCREEN
from ragforge_tui.tui.questions import question_panel
from ragforge_tui.tui.transcript.block_view import BlockView
from tests.support.fake_engine import CLOCK
from tests.support.hostile import HOSTILE
from tests.tui.conftest import Chat, ChatRunner
from tests.tui.transcript.samples import lines_made

DIFF = "--- a/app.py\n+++ b/app.py\n@@ -1,2 +1,2 @@\n-print('[/x]')\n+print('b')\n same"


def approval(key: str, kind: str = "write", scope: str = "edit_file in this workspace") -> ApprovalRequested:
    call = ToolCall(uuid=f"c-{key}", message_id="m", tool_name="edit_file", arguments="{}", timestamp=CLOCK)
    return ApprovalRequested(
        conversation_id="x",
        turn_index=1,
        approval_id=key,
        call=call,
        kind=kind,  # type: ignore[arg-type]  # a test's word
        question="Edit app.py?" if kind == "write" else "Run this command? It is not confined to the workspace.",
        detail=DIFF if kind == "write" else "rm -rf [build]",
        session_scope=scope,
    )


async def asked(chat: Chat, *keys: str) -> None:
    await chat.ready()
    for key in keys:
        chat.engine.emit(approval(key))
    await chat.until(lambda: len(chat.app.chat.questions.waiting) == len(keys))
    await chat.until(lambda: chat.app.chat.questions.has_focus)
    await chat.pilot.pause()


async def asked_command(chat: Chat, detail: str = "rm -rf [build]", always: Sequence[str] = ()) -> None:
    """Ask whether a command may run; with patterns that "always" would save."""
    await chat.ready()
    request = approval("a1", "command")
    request.detail, request.always = detail, list(always)
    chat.engine.emit(request)
    await chat.until(lambda: chat.app.chat.questions.has_focus)
    await chat.pilot.pause()


def labels(chat: Chat) -> list[str]:
    """The answers that the first question offers."""
    return [choice.label for choice in chat.app.chat.questions.waiting[0].answers]


def text(chat: Chat, selector: str) -> str:
    """What is shown in a part of the panel."""
    shown = chat.app.query_one(selector, Static).content
    assert isinstance(shown, Content)
    return shown.plain


def screen_text(chat: Chat) -> str:
    return "\n".join(strip.text for strip in chat.app.screen._compositor.render_strips())


async def answers(chat: Chat, count: int = 1) -> list[tuple[str, str, str]]:
    await chat.until(lambda: len(chat.engine.asked(AnswerApproval)) == count)
    return [(one.approval_id, one.decision, one.feedback) for one in chat.engine.asked(AnswerApproval)]


async def test_a_question_begins_with_the_reason(run_chat: ChatRunner) -> None:
    async with run_chat() as chat:
        await chat.ready()
        event = approval("k1")
        event.call.arguments = json.dumps({"path": "app.py", "reason": f"the sign\nis wrong {HOSTILE}"})
        chat.engine.emit(event)
        await chat.until(lambda: chat.app.chat.questions.has_focus)
        why, title = text(chat, "#question-title").splitlines()
        assert why.startswith("why: the sign is wrong [red]x[/]") and "\x1b" not in why
        assert title == "Edit app.py?"


async def test_a_question_says_what_memory_knows(run_chat: ChatRunner) -> None:
    async with run_chat() as chat:
        await chat.ready()
        known = f"T3 of “wrap” decided: the default stays 88 {HOSTILE}"
        chat.engine.emit(msgspec.structs.replace(approval("k1"), remembered=known))
        await chat.until(lambda: chat.app.chat.questions.has_focus)
        memory, title = text(chat, "#question-title").splitlines()
        assert (
            memory.startswith("memory: T3 of “wrap” decided: the default stays 88 [red]x[/]") and "\x1b" not in memory
        )
        assert title == "Edit app.py?"


async def test_a_long_diff_is_shown_whole_and_drawn_as_far_as_it_is_seen(
    run_chat: ChatRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with run_chat() as chat:
        await chat.ready()
        diff = unified_diff(None, "".join(f"row {number}\n" for number in range(10_000)), "a.py")
        made = lines_made(monkeypatch)
        chat.engine.emit(msgspec.structs.replace(approval("k1"), detail=diff))
        await chat.until(lambda: chat.app.chat.questions.has_focus)
        await chat.until(lambda: "1 + row 0" in screen_text(chat))
        assert len(made) < 500
        panel = chat.app.chat.questions
        await chat.until(lambda: panel.query_one(BlockView).virtual_size.height == 10_001)
        await chat.press("pagedown")
        await chat.until(lambda: "row 0" not in screen_text(chat))
        chat.app.chat.settings.use_theme("light")
        await chat.until(lambda: "+ row" in screen_text(chat))


async def test_a_diff_says_how_much_is_left_and_shows_all_of_it(run_chat: ChatRunner) -> None:
    async with run_chat(size=(80, 24)) as chat:
        await chat.ready()
        diff = unified_diff(None, "".join(f"row {number}\n" for number in range(40)), "a.py")
        chat.engine.emit(msgspec.structs.replace(approval("k1"), detail=diff))
        await chat.until(lambda: chat.app.chat.questions.has_focus)
        await chat.until(lambda: " more lines · PgDn · o whole" in screen_text(chat))
        rows = screen_text(chat).splitlines()
        shown = [row for row in rows if "+ row" in row]
        assert f"… {40 - len(shown)} more lines" in screen_text(chat) and len(shown) >= 9
        [answers_row] = [row for row in rows if "▸ y once" in row]
        assert "s session: edit_file" in answers_row and "w no, because…" in answers_row
        assert answers_row.rstrip(" │╮").endswith("n no")
        await chat.press("pagedown", "pagedown", "pagedown", "pagedown", "pagedown")
        await chat.until(lambda: "… the end · PgUp · o whole" in screen_text(chat) and "+ row 39" in screen_text(chat))
        await chat.press("o")
        await chat.until(lambda: isinstance(chat.app.screen, DetailScreen) and chat.app.screen.sections)
        assert chat.app.screen.sections[0].text == diff  # type: ignore[attr-defined]  # as just waited for
        await chat.press("escape")
        await chat.until(lambda: chat.app.chat.questions.has_focus)
        await chat.pilot.resize_terminal(80, 40)
        await chat.until(lambda: "yes, this once" in screen_text(chat), "with more rows each answer has its own")
        await chat.pilot.resize_terminal(80, 24)
        await chat.until(lambda: "▸ y once" in screen_text(chat))
        at = next(y for y, row in enumerate(screen_text(chat).splitlines()) if "▸ y once" in row)
        await chat.pilot.click(offset=(screen_text(chat).splitlines()[at].index("s session") + 4, at))
        assert await answers(chat) == [("k1", "session", "")]


async def test_answers_that_do_not_fit_on_one_line_have_one_each(run_chat: ChatRunner) -> None:
    async with run_chat(size=(50, 24)) as chat:
        await asked(chat, "a1")
        assert "yes, and allow edit_file in this" in screen_text(chat)


@pytest.mark.parametrize(
    ("keys", "decision"),
    [
        (["y"], "once"),
        (["s"], "session"),
        (["n"], "no"),
        (["escape"], "no"),
        (["enter"], "once"),
        (["down", "enter"], "session"),
        (["up", "enter"], "no"),
    ],
)
async def test_each_choice(run_chat: ChatRunner, keys: list[str], decision: str) -> None:
    async with run_chat() as chat:
        await asked(chat, "a1")
        assert "waiting for you" in chat.app.chat.status_line.render().plain
        await chat.press(*keys)
        assert await answers(chat) == [("a1", decision, "")]
        await chat.until(lambda: chat.app.chat.prompt.has_focus)
        assert not chat.app.chat.questions.display


async def test_escape_goes_back_to_the_question_and_refuses_there(run_chat: ChatRunner) -> None:
    async with run_chat() as chat:
        await chat.ready()
        await chat.press(*"draft")
        chat.engine.emit(approval("a1"))
        await chat.until(lambda: len(chat.app.chat.questions.waiting) == 1)
        assert chat.app.focused is chat.app.chat.prompt
        await chat.press("escape")
        await chat.until(lambda: chat.app.chat.questions.has_focus)
        assert not chat.engine.asked(AnswerApproval)
        await chat.press("escape")
        assert await answers(chat) == [("a1", "no", "")]
        assert chat.app.chat.prompt.text == "draft"


async def test_no_with_a_reason(run_chat: ChatRunner) -> None:
    async with run_chat() as chat:
        await asked(chat, "a1")
        await chat.press("w")
        await chat.pilot.pause()
        await chat.press(*"yes", "escape")
        await chat.until(lambda: chat.app.chat.questions.has_focus)
        await chat.press("w")
        await chat.pilot.pause()
        await chat.press(*"tabs", "enter")
        assert await answers(chat) == [("a1", "no", "tabs")]


async def test_several_wait_in_order(run_chat: ChatRunner) -> None:
    async with run_chat() as chat:
        await asked(chat, "a1", "a2", "a3")
        chat.engine.emit(ApprovalResolved(conversation_id="x", turn_index=1, approval_id="a2", decision="no"))
        await chat.until(lambda: len(chat.app.chat.questions.waiting) == 2)
        await chat.press("y", "n")
        assert [one[:2] for one in await answers(chat, 2)] == [("a1", "once"), ("a3", "no")]


async def asked_together(chat: Chat, *events: ApprovalRequested) -> None:
    await chat.ready()
    for event in events:
        chat.engine.emit(msgspec.structs.replace(event, batch="b"))
    await chat.until(lambda: len(chat.app.chat.questions.waiting) == len(events))
    await chat.until(lambda: chat.app.chat.questions.has_focus)
    await chat.pilot.pause()


def edits_and_a_command() -> list[ApprovalRequested]:
    other = approval("a2")
    other.question, other.detail = "Edit lib.py?", DIFF.replace("app.py", "lib.py").replace("'b'", "'c'")
    return [approval("a1"), other, approval("a3", "command")]


@pytest.mark.parametrize(("key", "decision"), [("y", "once"), ("n", "no"), ("escape", "no")])
async def test_a_batch_is_one_question(run_chat: ChatRunner, key: str, decision: str) -> None:
    async with run_chat() as chat:
        await asked_together(chat, *edits_and_a_command())
        assert text(chat, "#question-title").startswith(
            "Allow 2 edits in 2 files and 1 command? 1 of 3 (← →): Edit app"
        )
        assert "'b'" in screen_text(chat) and "more)" not in text(chat, "#question-title")
        await chat.press("right")
        await chat.until(lambda: "2 of 3 (← →): Edit lib.py?" in text(chat, "#question-title"))
        await chat.until(lambda: "'c'" in screen_text(chat))
        await chat.press("right")
        await chat.until(lambda: text(chat, "#question-detail") == "$ rm -rf [build]")
        await chat.press("right", key)
        assert await answers(chat, 3) == [(one, decision, "") for one in ("a1", "a2", "a3")]
        await chat.until(lambda: not chat.app.chat.questions.display)


async def test_a_batch_is_answered_one_by_one_until_a_reason_refuses_the_rest(run_chat: ChatRunner) -> None:
    async with run_chat() as chat:
        await asked_together(chat, *edits_and_a_command())
        await chat.press("e")
        await chat.until(lambda: text(chat, "#question-title").startswith("Edit app.py?   (2 more)"))
        await chat.press("y")
        await chat.until(lambda: text(chat, "#question-title").startswith("Edit lib.py?"))
        await chat.press("w")
        await chat.pilot.pause()
        await chat.press(*"tabs", "enter")
        assert await answers(chat, 3) == [("a1", "once", ""), ("a2", "no", "tabs"), ("a3", "no", "tabs")]


async def test_a_batch_offers_a_permission_that_its_calls_share(run_chat: ChatRunner) -> None:
    async with run_chat() as chat:
        await asked_together(chat, *edits_and_a_command()[:2])
        await chat.press("s")
        assert await answers(chat, 2) == [("a1", "session", ""), ("a2", "session", "")]


async def test_a_call_that_joins_a_batch_must_be_read_too(
    run_chat: ChatRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with run_chat() as chat:
        hours = Hours(chat, monkeypatch)
        first, second, third = edits_and_a_command()
        await asked_together(chat, first, second)
        hours.now += 1
        chat.engine.emit(msgspec.structs.replace(third, batch="b"))
        await chat.until(lambda: "1 of 3" in text(chat, "#question-title"))
        await chat.press("enter")
        await chat.pilot.pause()
        assert not chat.engine.asked(AnswerApproval)
        hours.now += 1
        await chat.press("right", "enter")
        assert len(await answers(chat, 3)) == 3


async def test_without_a_session_scope_it_is_not_offered(run_chat: ChatRunner) -> None:
    async with run_chat() as chat:
        await chat.ready()
        chat.engine.emit(approval("a1", "command", scope=""))
        await chat.until(lambda: chat.app.chat.questions.has_focus)
        await chat.press("s")
        await chat.until(lambda: chat.app.chat.prompt.text == "s")
        assert not chat.engine.asked(AnswerApproval)
        await chat.press("tab", "y")
        assert await answers(chat) == [("a1", "once", "")]


async def test_someone_who_types_is_not_interrupted(run_chat: ChatRunner) -> None:
    async with run_chat() as chat:
        await chat.ready()
        await chat.press("m", "a")
        chat.engine.emit(approval("a1"))
        await chat.until(lambda: chat.app.chat.questions.waiting)
        await chat.press("y")
        assert chat.app.chat.prompt.text == "may"
        assert not chat.engine.asked(AnswerApproval)
        await chat.press("tab")
        await chat.until(lambda: chat.app.chat.questions.has_focus)
        await chat.press("tab")
        await chat.until(lambda: chat.app.chat.prompt.has_focus)
        assert chat.app.chat.questions.waiting
        await chat.press("tab", "y")
        assert await answers(chat) == [("a1", "once", "")]


async def test_the_hint_for_tab_is_accurate(run_chat: ChatRunner) -> None:
    async with run_chat() as chat:
        await asked(chat, "a")
        await chat.until(lambda: "tab prompt · esc no" in chat.app.chat.status_line.render().plain)
        await chat.press("tab")
        assert chat.app.chat.prompt.has_focus
        await chat.until(lambda: "tab answer · esc question" in chat.app.chat.status_line.render().plain)
        await chat.press("tab")
        await chat.until(lambda: "tab prompt" in chat.app.chat.status_line.render().plain)


@pytest.mark.parametrize(("key", "allow"), [("y", True), ("n", False), ("escape", False), ("enter", True)])
async def test_trust(run_chat: ChatRunner, key: str, allow: bool) -> None:
    async with run_chat() as chat:
        await chat.ready()
        chat.engine.emit(TrustRequested(root="/w", files=["AGENTS.md"], text="Always use [tabs]."))
        await chat.until(lambda: chat.app.chat.questions.has_focus)
        await chat.press(key)
        await chat.until(lambda: chat.engine.asked(AnswerTrust))
        assert chat.engine.asked(AnswerTrust)[0].allow is allow


async def test_always_shows_the_pattern_that_is_saved(run_chat: ChatRunner) -> None:
    async with run_chat() as chat:
        await asked_command(chat, always=["pytest *"])
        assert "yes, and always allow `pytest *` here" in labels(chat)
        await chat.press("a")
        await chat.until(lambda: "Save this rule in your settings?" in text(chat, "#question-title"))
        assert text(chat, "#question-detail") == "pytest *"
        await chat.press("escape")
        await chat.until(lambda: text(chat, "#question-detail") == "$ rm -rf [build]")
        assert not chat.engine.asked(AnswerApproval)
        await chat.press("a")
        await chat.until(lambda: text(chat, "#question-detail") == "pytest *")
        await chat.press("enter")
        assert await answers(chat) == [("a1", "always", "")]


async def test_always_for_a_chain_names_each_of_its_commands(run_chat: ChatRunner) -> None:
    async with run_chat() as chat:
        await asked_command(chat, always=["cd src", "pytest *"])
        assert "yes, and always allow `cd src` and `pytest *` here" in labels(chat)
        await chat.press("a")
        await chat.until(lambda: "Save these 2 rules in your settings?" in text(chat, "#question-title"))
        assert text(chat, "#question-detail") == "cd src\npytest *"
        await chat.press("enter")
        assert await answers(chat) == [("a1", "always", "")]


async def test_a_message_typed_into_a_question_answers_nothing(run_chat: ChatRunner) -> None:
    """ "maybe" once lost its m, and its a saved a pattern."""
    async with run_chat() as chat:
        await asked_command(chat, always=["touch *"])
        for key in "maybe":
            chat.app.post_message(events.Key(key, key))
        await chat.until(lambda: chat.app.chat.prompt.text == "maybe")
        assert chat.app.chat.prompt.has_focus and chat.app.chat.questions.waiting
        assert not chat.engine.asked(AnswerApproval)


class Hours:
    """A clock of the panel that is set by hand."""

    def __init__(self, chat: Chat, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(SCREEN, "read", 0.7)
        monkeypatch.setattr(SCREEN, "read_next", 0.25)
        monkeypatch.setattr(SCREEN, "hint", 60.0)
        self.now = 100.0
        chat.app.chat.questions.clock = lambda: self.now


async def test_a_letter_before_the_question_can_have_been_read_answers_once_it_can(
    run_chat: ChatRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with run_chat() as chat:
        hours = Hours(chat, monkeypatch)
        await asked(chat, "a1", "a2")
        hours.now += 0.6
        await chat.press("enter", "escape")
        await chat.pilot.pause()
        assert chat.app.chat.questions.has_focus and not chat.engine.asked(AnswerApproval)
        await chat.press("y")
        await chat.pilot.pause(0.1)
        assert (
            chat.app.chat.prompt.blank and chat.app.chat.questions.has_focus and not chat.engine.asked(AnswerApproval)
        )
        hours.now += 0.2
        assert await answers(chat) == [("a1", "once", "")]
        # The next call of the same reply: a short guard, in which the letter is held as well.
        hours.now += 0.1
        await chat.press("n")
        await chat.pilot.pause(0.1)
        assert len(chat.engine.asked(AnswerApproval)) == 1
        hours.now += 0.2
        assert (await answers(chat, 2))[1] == ("a2", "no", "")
        assert chat.app.chat.prompt.blank


@pytest.mark.parametrize("message", ["no wait", "yes but", "say why"])
async def test_a_message_that_begins_in_the_guard_goes_to_the_prompt_whole(
    run_chat: ChatRunner, monkeypatch: pytest.MonkeyPatch, message: str
) -> None:
    async with run_chat() as chat:
        hours = Hours(chat, monkeypatch)
        await asked(chat, "a1")
        for key in message:
            hours.now += 0.1
            name = "space" if key == " " else key
            chat.app.post_message(events.Key(name, key))
        await chat.until(lambda: chat.app.chat.prompt.text == message)
        assert chat.app.chat.prompt.has_focus
        hours.now += 1
        await chat.pilot.pause(0.1)
        assert not chat.engine.asked(AnswerApproval) and chat.app.chat.questions.waiting


@pytest.mark.parametrize("burst", ["ny", "yyyyyyyy", "n", "yes\r"])
async def test_a_burst_of_keys_is_a_draft_and_answers_nothing(
    run_chat: ChatRunner, monkeypatch: pytest.MonkeyPatch, burst: str
) -> None:
    async with run_chat() as chat:
        await asked(chat, "a1")
        monkeypatch.setattr(SCREEN, "alone", 3600.0)
        for key in f"{burst}x":
            name = "enter" if key == "\r" else key
            chat.app.post_message(events.Key(name, key))
        await chat.until(
            lambda: chat.app.chat.prompt.text.rstrip() == f"{burst}x".replace("y\r", "y").replace("\r", "\n")
        )
        assert chat.app.chat.questions.waiting and not chat.engine.asked(AnswerApproval)
        assert not chat.happened(TurnStarted)


async def test_a_key_that_stands_alone_answers(run_chat: ChatRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    async with run_chat() as chat:
        await asked(chat, "a1")
        monkeypatch.setattr(SCREEN, "alone", 0.05)
        await chat.press("y")
        assert await answers(chat) == [("a1", "once", "")]


async def test_a_paste_goes_to_the_prompt_while_a_question_waits(run_chat: ChatRunner) -> None:
    async with run_chat() as chat:
        await asked(chat, "a1")
        chat.app.post_message(events.Paste("yes please do\nand then stop\n"))
        await chat.until(lambda: chat.app.chat.prompt.text == "yes please do\nand then stop")
        assert chat.app.chat.questions.waiting and not chat.engine.asked(AnswerApproval)


async def test_a_short_diff_can_be_opened_too(run_chat: ChatRunner) -> None:
    async with run_chat() as chat:
        await asked(chat, "a1")
        await chat.press("o")
        await chat.until(lambda: isinstance(chat.app.screen, DetailScreen))


async def test_a_letter_in_the_empty_prompt_is_for_the_question_that_just_came(
    run_chat: ChatRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with run_chat() as chat:
        hours = Hours(chat, monkeypatch)
        await chat.ready()
        chat.app.last_key = time.monotonic() + 1000  # the question waits for its focus
        chat.engine.emit(approval("a1"))
        await chat.until(lambda: chat.app.chat.questions.waiting)
        assert chat.app.chat.prompt.has_focus
        await chat.press("y")
        await chat.until(lambda: chat.app.chat.questions.has_focus)
        assert chat.app.chat.prompt.blank and not chat.engine.asked(AnswerApproval)
        await chat.pilot.pause()
        hours.now += 0.8
        assert await answers(chat) == [("a1", "once", "")]


async def test_a_message_into_the_empty_prompt_while_a_question_comes_is_not_torn(
    run_chat: ChatRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with run_chat() as chat:
        Hours(chat, monkeypatch)
        await chat.ready()
        chat.app.last_key = time.monotonic() + 1000
        chat.engine.emit(approval("a1"))
        await chat.until(lambda: chat.app.chat.questions.waiting)
        for key in "yes":
            chat.app.post_message(events.Key(key, key))
        await chat.until(lambda: chat.app.chat.prompt.text == "yes")
        await chat.pilot.pause()
        assert chat.app.chat.prompt.has_focus and not chat.engine.asked(AnswerApproval)


async def test_a_prompt_with_text_keeps_its_letters(run_chat: ChatRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    async with run_chat() as chat:
        Hours(chat, monkeypatch)
        await chat.ready()
        await chat.press("b")
        chat.engine.emit(approval("a1"))
        await chat.until(lambda: chat.app.chat.questions.waiting)
        await chat.press("y")
        await chat.until(lambda: chat.app.chat.prompt.text == "by")
        assert chat.app.chat.prompt.has_focus and not chat.engine.asked(AnswerApproval)


async def test_a_letter_between_two_questions_is_dropped_with_a_sign(
    run_chat: ChatRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engine needs a moment from the answer to the next question of the reply."""
    async with run_chat() as chat:
        hours = Hours(chat, monkeypatch)
        await asked(chat, "a1")
        hours.now += 1
        await chat.press("y")
        assert await answers(chat) == [("a1", "once", "")]
        await chat.until(lambda: chat.app.chat.prompt.has_focus)
        await chat.press("y")
        await chat.pilot.pause()
        assert chat.app.chat.prompt.blank
        chat.engine.emit(approval("a2"))
        await chat.until(lambda: "came too early" in chat.app.chat.status_line.hint)
        await chat.until(lambda: chat.app.chat.questions.has_focus)
        assert len(chat.engine.asked(AnswerApproval)) == 1
        hours.now += 0.3
        await chat.press("y")
        assert [one[:2] for one in await answers(chat, 2)] == [("a1", "once"), ("a2", "once")]


async def test_a_letter_after_the_last_answer_is_typed_when_no_question_comes(
    run_chat: ChatRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SCREEN, "gap", 0.2)
    async with run_chat() as chat:
        hours = Hours(chat, monkeypatch)
        await asked(chat, "a1")
        hours.now += 1
        await chat.press("y")
        await answers(chat)
        await chat.until(lambda: chat.app.chat.prompt.has_focus)
        await chat.press("s")
        await chat.until(lambda: chat.app.chat.prompt.text == "s")
        await chat.press("o")
        await chat.until(lambda: chat.app.chat.prompt.text == "so")


async def test_a_letter_typed_into_the_prompt_on_purpose_stays_there(
    run_chat: ChatRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with run_chat() as chat:
        Hours(chat, monkeypatch)
        await asked(chat, "a1")
        await chat.press("tab")
        await chat.until(lambda: chat.app.chat.prompt.has_focus)
        await chat.press("y")
        await chat.until(lambda: chat.app.chat.prompt.text == "y")
        assert not chat.engine.asked(AnswerApproval)


async def test_the_end_of_a_long_command_is_in_view_and_all_of_it_can_be_opened(run_chat: ChatRunner) -> None:
    async with run_chat() as chat:
        await asked_command(
            chat, detail="\n".join(f"make step{number}" for number in range(1, 62)) + "\ntouch /tmp/end"
        )
        assert "· 62 lines" in text(chat, "#question-title")
        lines = text(chat, "#question-detail").splitlines()
        assert lines[0] == " $ make step1" and lines[-1] == "62 touch /tmp/end"
        assert any("more lines" in line and "characters between" in line for line in lines)
        scroll = chat.app.query_one("#question-scroll")
        assert scroll.size.height >= len(lines) and scroll.max_scroll_y == 0
        await chat.press("o")
        await chat.until(lambda: isinstance(chat.app.screen, DetailScreen) and chat.app.screen.sections)
        screen = chat.app.screen
        assert isinstance(screen, DetailScreen)
        assert screen.sections[0].text.splitlines()[30] == "    31\tmake step31"
        await chat.press("escape")
        await chat.until(lambda: chat.app.chat.questions.has_focus)
        await chat.press("y")
        assert await answers(chat) == [("a1", "once", "")]


async def test_a_narrower_screen_wraps_a_command_again(run_chat: ChatRunner) -> None:
    async with run_chat() as chat:
        await asked_command(chat, detail="echo " + "a" * 60)
        assert text(chat, "#question-detail") == "$ echo " + "a" * 60
        await chat.pilot.resize_terminal(50, 24)
        await chat.until(lambda: "\n↪ a" in text(chat, "#question-detail"))
        lines = text(chat, "#question-detail").splitlines()
        assert all(len(line) <= chat.app.chat.questions.content_size.width for line in lines)


async def test_a_question_that_follows_an_answer_at_once_has_the_keyboard(run_chat: ChatRunner) -> None:
    """The answer to the first sends the keyboard back to the prompt, while the second is shown already."""
    async with run_chat() as chat:
        await asked(chat, "a1")
        await chat.press("w")
        await chat.pilot.pause()
        for key in ("x", "enter"):
            chat.app.post_message(events.Key(key, key if len(key) == 1 else None))
        while not chat.engine.asked(AnswerApproval):
            await asyncio.sleep(0)
        chat.engine.emit(approval("a2", "command"))
        await chat.until(lambda: chat.app.chat.questions.waiting)
        await chat.pilot.pause()
        await chat.until(lambda: chat.app.chat.questions.has_focus)
        await chat.press("y")
        assert [one[:2] for one in await answers(chat, 2)] == [("a1", "no"), ("a2", "once")]


async def test_the_marker_is_on_the_chosen_answer_and_gone_while_enter_goes_elsewhere(run_chat: ChatRunner) -> None:
    async with run_chat() as chat:
        await asked(chat, "a1")
        assert "▸ y" in screen_text(chat)
        await chat.press("tab")
        await chat.until(lambda: chat.app.chat.prompt.has_focus and "▸" not in screen_text(chat))
        await chat.press("tab")
        await chat.until(lambda: "▸ y" in screen_text(chat))
        chat.app.chat.questions.clock = lambda: float("inf")
        await chat.press("w")
        await chat.until(lambda: chat.app.query(question_panel.FeedbackInput))
        await chat.until(lambda: "▸ w" in screen_text(chat))


@pytest.mark.parametrize(
    ("keys", "answer"), [(["1"], "Decimal"), (["down", "enter"], "float"), (["3", "B", "o", "t", "h", "enter"], "Both")]
)
async def test_a_question_of_the_agent(run_chat: ChatRunner, keys: list[str], answer: str) -> None:
    async with run_chat() as chat:
        await chat.ready()
        chat.engine.emit(question_of_the_agent())
        await chat.until(lambda: chat.app.chat.questions.has_focus)
        await chat.pilot.pause()
        await chat.press(*keys)
        assert await answers(chat, 1) == [("q1", "once", answer)]


async def test_escape_stops_the_turn_of_a_question(run_chat: ChatRunner) -> None:
    async with run_chat() as chat:
        await chat.ready()
        chat.engine.emit(question_of_the_agent())
        await chat.until(lambda: chat.app.chat.questions.has_focus)
        await chat.pilot.pause()
        assert chat.app.chat.questions.refusal == "stop"
        await chat.press("escape")
        await chat.until(lambda: [one.conversation_id for one in chat.engine.asked(CancelTurn)] == ["x"])
        assert not chat.engine.asked(AnswerApproval)


def question_of_the_agent() -> QuestionAsked:
    call = ToolCall(uuid="c", message_id="m", tool_name="ask_user", arguments="{}", timestamp=CLOCK)
    choices = [AskedChoice(label="Decimal", description="exact"), AskedChoice(label="float")]
    return QuestionAsked(
        conversation_id="x",
        turn_index=1,
        approval_id="q1",
        call=call,
        question=f"Which type? {HOSTILE}",
        choices=choices,
    )


async def with_bar(chat: Chat, key: str) -> None:
    """Open the search of the history or of the conversation."""
    await chat.ready()
    await chat.type("hello")
    await chat.until(lambda: chat.app.chat.session.state.conversation_id and not chat.app.chat.session.state.busy)
    await chat.press(key)
    await chat.until(lambda: chat.app.focused not in (None, chat.app.chat.prompt))


@pytest.mark.parametrize("key", ["ctrl+r", "ctrl+f"], ids=["history", "find"])
async def test_a_question_waits_until_the_search_is_over(run_chat: ChatRunner, key: str) -> None:
    async with run_chat() as chat:
        await with_bar(chat, key)
        field, questions = chat.app.focused, chat.app.chat.questions
        for approval_id in ("a1", "a2"):
            chat.app.last_key = 0.0
            chat.engine.emit(approval(approval_id))
            await chat.until(lambda: questions.waiting)
            await chat.pilot.pause()
            assert chat.app.focused is field
            if approval_id == "a1":
                chat.engine.emit(ApprovalResolved(conversation_id="x", turn_index=1, approval_id="a1", decision="once"))
                await chat.until(lambda: not questions.waiting)
                await chat.pilot.pause()
                assert chat.app.focused is field, "it was answered elsewhere"
        await chat.press("escape")
        chat.app.last_key = 0.0
        await chat.until(lambda: questions.has_focus)
        assert not chat.engine.asked(AnswerApproval)


async def test_an_answer_leads_back_to_the_prompt_also_with_the_search_open(run_chat: ChatRunner) -> None:
    async with run_chat() as chat:
        await with_bar(chat, "ctrl+f")
        await chat.press("tab")
        await asked(chat, "a1")
        await chat.press("y")
        await answers(chat)
        await chat.until(lambda: not chat.app.chat.questions.display)
        await chat.pilot.pause()
        assert chat.app.chat.prompt.has_focus
