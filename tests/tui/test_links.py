"""Links opened by key and by mouse: copied where there is no browser, files in their preview."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import msgspec
import pytest

from ragforge_tui.shared.errors import NotFoundError
from ragforge_tui.tui.commands.link_commands import open_link
from ragforge_tui.tui.dialogs.text_viewer import DetailScreen
from ragforge_tui.tui.widgets.list_screen import Picker
from tests.support.fake_engine import CLOCK, FakeEngine, conversation, turn
from tests.tui.conftest import Chat, ChatRunner


@pytest.fixture(autouse=True)
def no_browser(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSH_TTY", "1")


def with_answer(text: str) -> FakeEngine:
    fake = FakeEngine()
    owner = conversation(1, "Links")
    fake.store(owner, turn(owner, 1, "where?", text))
    return fake


async def at_the_answer(chat: Chat) -> None:
    await chat.until(lambda: chat.loaded)
    await chat.press("tab", "k")


async def test_the_only_link_is_opened_at_once(run_chat: ChatRunner) -> None:
    async with run_chat(with_answer("At [docs](https://example.org/x)."), continue_last=True) as chat:
        await at_the_answer(chat)
        await chat.press("o")
        await chat.until(lambda: chat.noticed("no browser here: https://example.org/x"))
        assert chat.app.clipboard == "https://example.org/x"
        assert not chat.app.chat.prompt.text


async def test_of_several_links_one_is_chosen_by_where_it_leads(run_chat: ChatRunner) -> None:
    async with run_chat(with_answer("[one](https://a.org/) or https://b.org/2"), continue_last=True) as chat:
        await at_the_answer(chat)
        await chat.press("o")
        await chat.until(lambda: isinstance(chat.app.screen, Picker) and chat.app.screen._list.rows)
        await chat.press("down", "enter")
        await chat.until(lambda: chat.app.clipboard == "https://b.org/2")


async def test_a_click_opens_a_file_of_the_workspace_and_nothing_outside(run_chat: ChatRunner, tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "a.py").write_text("print(1)\n")
    (tmp_path / "secret").write_text("no")
    engine = with_answer("[a](a.py#L1) [b](../secret)")
    async with run_chat(engine, continue_last=True) as chat:
        chat.app.chat.settings.options = msgspec.structs.replace(
            chat.app.chat.options, workspace=str(tmp_path / "work")
        )
        await chat.until(lambda: chat.loaded)
        await open_link(chat.app.chat, "a.py")
        await chat.until(lambda: isinstance(chat.app.screen, DetailScreen) and chat.app.screen.sections)
        await chat.press("escape")
        transcript = chat.app.chat.transcript
        row = next(y for y in range(transcript.size.height) if "../secret" in transcript.render_line(y).text)
        column = transcript.render_line(row).text.index("../secret")
        await chat.pilot.click(transcript, offset=(column + 2, row))
        await chat.until(lambda: chat.noticed("There is no file ../secret in the workspace"))


async def test_no_link(run_chat: ChatRunner) -> None:
    async with run_chat(with_answer("nothing"), continue_last=True) as chat:
        await at_the_answer(chat)
        await chat.press("o")
        await chat.until(lambda: chat.app.chat.status_line.hint == "no link here")


async def test_cited_turns_lead_to_their_turn_here_and_elsewhere(run_chat: ChatRunner) -> None:
    fake = FakeEngine()
    there = conversation(2, "Wrapping kit", updated_at=CLOCK - timedelta(days=1))
    fake.store(there, *(turn(there, n, f"asked {n}", f"answer {n}") for n in (1, 2)))
    here = conversation(1, "Here")
    lines = "\n".join(f"line {n}\n" for n in range(60))
    answers = [turn(here, 1, "first?", "the beginning"), turn(here, 2, "long?", lines)]
    fake.store(here, *answers, turn(here, 3, "where?", "At [t1], see [Wrapping kit · t2] and [gone · t9]."))
    async with run_chat(fake, continue_last=True) as chat:
        await at_the_answer(chat)
        await chat.press("enter")
        await chat.until(lambda: isinstance(chat.app.screen, Picker) and chat.app.screen._list.rows)
        await chat.press("enter")
        await chat.until(lambda: "the beginning" in shown(chat))
        await open_link(chat.app.chat, "turn:2:Wrapping kit")
        await chat.until(lambda: "answer 2" in shown(chat))
        assert chat.app.chat.session.state.conversation_id == there.uuid
        with pytest.raises(NotFoundError, match="gone"):
            await open_link(chat.app.chat, "turn:9:gone")


def shown(chat: Chat) -> str:
    transcript = chat.app.chat.transcript
    return "\n".join(transcript.render_line(y).text for y in range(transcript.size.height))


async def test_failed_tests_stand_under_the_answer(run_chat: ChatRunner) -> None:
    fake = FakeEngine()
    owner = conversation(1, "Tests")
    failed = "1 failed, 673 passed"
    fake.store(owner, turn(owner, 1, "fix", "All pass.", failed_tests=failed))
    async with run_chat(fake, continue_last=True) as chat:
        await chat.until(lambda: chat.loaded)
        await chat.until(lambda: failed in shown(chat))
        rows = shown(chat).splitlines()
        at = next(n for n, row in enumerate(rows) if failed in row)
        assert rows[at].strip() == f"! the last test run: {failed}"
        assert "All pass." in rows[at - 1]
