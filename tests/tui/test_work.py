"""What the agent changed, seen and taken back from the screen; commands of the person's own."""

from __future__ import annotations

from datetime import UTC, datetime

from ragforge_tui.shared.events import ProcessesChanged, TurnCompleted
from ragforge_tui.shared.process_records import ProcessEntry
from ragforge_tui.shared.requests.turns import SendMessage
from ragforge_tui.shared.requests.work import FileDiff, RunShell, StopProcess, UndoPlan, UndoTurn
from ragforge_tui.tui.dialogs.text_viewer import DiffScreen, Viewer
from tests.support.fake_engine import FakeEngine
from tests.tui.conftest import Chat, ChatRunner
from tests.tui.test_questions import screen_text

DIFF = "--- a/src/a.py\n+++ b/src/a.py\n@@ -1,2 +1,2 @@\n def a():\n-    return 1\n+    return \x1b[31m2\n"
MADE = "--- /dev/null\n+++ b/b.md\n@@ -0,0 +1 @@\n+# B\n"


async def talked(chat: Chat) -> None:
    await chat.ready()
    await chat.type("hello")
    await chat.until(lambda: chat.happened(TurnCompleted))


def lines(chat: Chat) -> list[str]:
    view = chat.app.screen.query_one(Viewer)
    return [view.render_line(y).text.rstrip() for y in range(view.size.height)]


async def test_diff(run_chat: ChatRunner) -> None:
    engine = FakeEngine()
    engine.work.diffs = [FileDiff(path="src/a.py", diff=DIFF, note="somebody else changed it since")]
    engine.work.diffs.append(FileDiff(path="b.md", diff=MADE))
    async with run_chat(engine) as chat:
        await talked(chat)
        await chat.type("/diff")
        await chat.until(lambda: isinstance(chat.app.screen, DiffScreen) and lines(chat)[0])
        assert "src/a.py  +1 −1  somebody else changed it since" in lines(chat)[0]
        assert "2 +     return 2" in "\n".join(lines(chat)), "no escape reaches the terminal"
        await chat.press("y")
        assert chat.app.clipboard.startswith("--- a/src/a.py")
        await chat.press("escape")
        assert chat.app.chat.prompt.has_focus


async def test_diff_of_nothing(run_chat: ChatRunner) -> None:
    async with run_chat() as chat:
        await chat.ready()
        await chat.type("/diff")
        await chat.until(lambda: chat.noticed("This conversation has no messages yet"))


async def test_undo_asks_first(run_chat: ChatRunner) -> None:
    engine = FakeEngine()
    engine.work.undo_plan = UndoPlan(
        turn_index=4,
        restored=[FileDiff(path="b.md", diff=MADE)],
        refused=[FileDiff(path="a.py", diff="", note="it was changed by someone else since")],
    )
    async with run_chat(engine) as chat:
        await talked(chat)
        await chat.type("/undo")
        await chat.until(lambda: chat.app.chat.questions.waiting)
        question = chat.app.chat.questions.waiting[0]
        assert question.title.startswith("Undo turn 4? 1 file will be restored; 1 unchanged.")
        assert question.detail.startswith("a.py stays unchanged: it was changed by someone else since.")
        await chat.until(lambda: chat.app.chat.questions.has_focus)
        await chat.press("n")
        await chat.until(lambda: not chat.app.chat.questions.waiting)
        assert not engine.asked(UndoTurn)
        await chat.type("/undo t4")
        await chat.until(lambda: chat.app.chat.questions.has_focus)
        await chat.press("y")
        await chat.until(lambda: engine.asked(UndoTurn))
        assert engine.asked(UndoTurn)[0].turn_index == 4


async def test_an_undo_that_can_do_nothing_gives_the_reason(run_chat: ChatRunner) -> None:
    engine = FakeEngine()
    engine.work.undo_plan = UndoPlan(
        turn_index=4, refused=[FileDiff(path="a.py", diff="", note="it was changed since")]
    )
    async with run_chat(engine) as chat:
        await talked(chat)
        await chat.type("/undo")
        await chat.until(lambda: chat.noticed("a.py stays unchanged: it was changed since."))
        await chat.type("/undo last")
        await chat.until(lambda: chat.noticed("'last' is not the number of a turn"))


async def test_a_command_of_the_user(run_chat: ChatRunner) -> None:
    async with run_chat() as chat:
        await chat.ready()
        chat.app.chat.prompt.insert("!")
        await chat.until(lambda: chat.app.chat.prompt.has_class("shell"), "a command looks unlike a message")
        await chat.type("git status")
        assert not chat.app.chat.prompt.has_class("shell")
        await chat.until(lambda: chat.happened(TurnCompleted))
        assert [asked.command for asked in chat.engine.asked(RunShell)] == ["git status"]
        assert not chat.engine.asked(SendMessage)
        live = chat.app.chat.transcript.document.blocks
        assert [block.kind for block in live] == ["user", "tool"], "nobody is named as its speaker"
        assert live[1].folded is False and "output of git status" in live[1].source
        assert "command: git status" not in screen_text(chat), "the user's message says it"
        await chat.app.chat.session.open(chat.app.chat.session.state.conversation_id)
        again = chat.app.chat.transcript.document.blocks
        assert [(b.kind, b.source, b.folded) for b in again] == [(b.kind, b.source, b.folded) for b in live]
        await chat.type(" !not a command")
        await chat.until(lambda: chat.engine.asked(SendMessage))


async def test_background_processes_are_counted_listed_and_stopped(run_chat: ChatRunner) -> None:
    engine = FakeEngine()
    engine.work.processes = [
        ProcessEntry(number=3, command="npm run dev", started=datetime.now(UTC), lines=["ready on port 3000"])
    ]
    async with run_chat(engine) as chat:
        await talked(chat)
        engine.emit(ProcessesChanged(running=1))
        await chat.until(lambda: "1 process" in screen_text(chat))
        await chat.type("/processes")
        await chat.until(lambda: "npm run dev" in screen_text(chat))
        await chat.press("enter")
        await chat.until(lambda: chat.app.chat.questions.has_focus)
        question = chat.app.chat.questions.waiting[0]
        assert question.title == "Stop process 3?" and "ready on port 3000" in question.detail
        await chat.press("y")
        await chat.until(lambda: engine.asked(StopProcess))
        assert engine.asked(StopProcess)[0].number == 3
