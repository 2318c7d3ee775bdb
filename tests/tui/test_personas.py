"""Personas on the screen: list, switch, form with and without a model, editor, delete and undo."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
from textual.containers import Vertical
from textual.screen import Screen
from textual.widgets import Input

from ragforge_tui.shared.events import TrustRequested, TurnCompleted
from ragforge_tui.shared.persona_records import QUESTIONS
from ragforge_tui.shared.requests.personas import DraftPersona, ImprovePersona, SavePersona, SetPersona
from ragforge_tui.shared.requests.turns import CreateConversation
from ragforge_tui.shared.requests.work import AnswerTrust
from ragforge_tui.tui.personas.persona_editor import PersonaForm, PersonaReview
from ragforge_tui.tui.personas.persona_picker import PersonaPicker
from ragforge_tui.tui.transcript.blocks import HeadBlock
from tests.support.fake_engine import FakeEngine, conversation, turn
from tests.tui.conftest import Chat, ChatRunner

HOSTILE = (
    "<x name='Ev\x1b[31mil\u202e' glyph='\x1b]0;t\x07☠' description='[red]a[/red] \x1b[2J' "
    "greeting='[b]\x1b[1mhi'>a < b"
)


async def on(chat: Chat, kind: type[Screen[Any]]) -> Any:
    """The screen, once it is on top and drawn."""
    await chat.until(lambda: isinstance(chat.app.screen, kind) and drawn(chat).strip(), kind.__name__)
    return chat.app.screen


def drawn(chat: Chat) -> str:
    """What the terminal shows."""
    return "\n".join(strip.text for strip in chat.app.screen._compositor.render_strips())


def speakers(chat: Chat) -> list[tuple[str, str, str]]:
    blocks = chat.app.chat.transcript.document.blocks
    return [(b.name, b.glyph, b.color) for b in blocks if isinstance(b, HeadBlock)]


def kinds(chat: Chat) -> list[str]:
    return [block.kind for block in chat.app.chat.transcript.document.blocks]


class TestChoosing:
    async def test_by_name_before_the_first_message(self, run_chat: ChatRunner) -> None:
        async with run_chat() as chat:
            await chat.ready()
            await chat.type("/set-persona dev")
            await chat.until(lambda: chat.noticed("▸ Dev speaks from the next message on."))
            await chat.type("hello")
            await chat.until(lambda: chat.happened(TurnCompleted))
            assert chat.engine.asked(CreateConversation)[0].persona == "Dev"
            assert speakers(chat) == [("Dev", "▸", "green")]

    async def test_mid_conversation_it_is_seen_in_the_history(self, run_chat: ChatRunner) -> None:
        async with run_chat() as chat:
            await chat.ready()
            await chat.type("one")
            await chat.until(lambda: chat.happened(TurnCompleted))
            await chat.type("/set-persona 2")
            await chat.until(lambda: chat.noticed("◆ Assistant speaks"))
            assert chat.engine.asked(SetPersona)[0].conversation_id
            chat.events.clear()
            await chat.type("two")
            await chat.until(lambda: chat.happened(TurnCompleted))
            assert speakers(chat) == [("Ragnarök", "✶", "violet"), ("Assistant", "◆", "cyan")]
            assert kinds(chat).count("switch") == 1
            assert "Assistant speaks from here on" in drawn(chat)
            assert "◆ Assistant" in drawn(chat).splitlines()[0]

    async def test_a_resumed_conversation_shows_the_same_switches(self, run_chat: ChatRunner) -> None:
        engine = FakeEngine()
        owner = conversation(1, "Old", persona="Dev")
        turns = [turn(owner, index, f"q{index}", "a", persona=who) for index, who in enumerate(("X", "X", "Dev"), 1)]
        engine.store(owner, *turns)
        async with run_chat(engine, continue_last=True) as chat:
            await chat.until(lambda: chat.loaded)
            shown = ["user", "head", "text", "user", "head", "text", "user", "switch", "head", "text"]
            await chat.until(lambda: kinds(chat) == shown)
            document = chat.app.chat.transcript.document
            document.clear()
            document.load(turns[2:])
            assert "switch" not in kinds(chat)
            document.insert(turns[:2], start=1, end=3)
            assert kinds(chat).index("switch") == 7

    async def test_a_start_with_a_name_that_means_nothing(self, run_chat: ChatRunner) -> None:
        async with run_chat(persona="Nobody") as chat:
            await chat.until(lambda: chat.noticed("There is no persona named Nobody; Assistant answers instead."))
            await chat.type("hello")
            await chat.until(lambda: chat.happened(TurnCompleted))
            assert chat.engine.asked(CreateConversation)[0].persona == "Assistant"

    async def test_an_unknown_name_is_reported(self, run_chat: ChatRunner) -> None:
        async with run_chat() as chat:
            await chat.ready()
            await chat.type("/set-persona nobody")
            await chat.until(lambda: chat.noticed("There is no persona named 'nobody'"))

    async def test_a_name_behind_the_picker_s_command_is_not_dropped(self, run_chat: ChatRunner) -> None:
        async with run_chat() as chat:
            await chat.ready()
            await chat.type("/persona Researcher")
            await chat.until(lambda: chat.noticed("◎ Researcher speaks"))

    async def test_the_picker_narrows_and_previews(self, run_chat: ChatRunner) -> None:
        async with run_chat(size=(120, 40)) as chat:
            await chat.ready()
            await chat.type("/personas")
            await on(chat, PersonaPicker)
            await chat.until(lambda: "✶ Ragnarök (speaks)" in drawn(chat) and "greets" in drawn(chat))
            for letter in "cites":
                await chat.press(letter)
            await chat.until(lambda: "changes nothing" in drawn(chat) and "It fails since turn 12" in drawn(chat))
            frame = chat.app.screen.query(Vertical).first()
            assert "raven_of_sources" not in drawn(chat) and frame.size.height < 24
            await chat.press("tab")
            await chat.until(lambda: "raven_of_sources" in drawn(chat) and frame.size.height > 30)
            await chat.press("tab")
            await chat.until(lambda: "raven_of_sources" not in drawn(chat))
            await chat.press("enter")
            await chat.until(lambda: chat.noticed("◎ Researcher speaks"))

    async def test_a_hostile_file_harms_nothing(self, run_chat: ChatRunner) -> None:
        engine = FakeEngine()
        (engine.shelf.own / "evil.luciform").write_text(HOSTILE, encoding="utf-8")
        async with run_chat(engine, size=(120, 40)) as chat:
            await chat.ready()
            await chat.type("/personas")
            await on(chat, PersonaPicker)
            for letter in "evil":
                await chat.press(letter)
            await chat.until(lambda: "! 1 problem" in drawn(chat) and "line 1: " in drawn(chat))
            await chat.press("tab")
            await chat.until(lambda: "marked below" in drawn(chat))
            shown = drawn(chat)
            assert "☠ Evil !" in shown
            assert "[red]a[/red]" in shown
            assert "<x> is never closed" in shown
            assert not any(character in shown for character in "\x1b\x07\u202e")
            await chat.press("enter")
            await chat.until(lambda: chat.noticed("[b]hi"))
            await chat.type("hello")
            await chat.until(lambda: chat.happened(TurnCompleted))
            assert "☠ Evil" in drawn(chat)

    async def test_a_projects_one_is_asked_about(self, run_chat: ChatRunner) -> None:
        async with run_chat() as chat:
            await chat.ready()
            chat.engine.emit(TrustRequested(root="/w#g", files=["g"], text="<x>[red]hi", persona="Guide"))
            await chat.until(lambda: chat.app.chat.questions.has_focus)
            await chat.until(lambda: "Let the persona Guide speak?" in drawn(chat))
            await chat.until(lambda: "<x>[red]hi" in drawn(chat))
            await chat.press("y")
            await chat.until(lambda: chat.engine.asked(AnswerTrust))
            assert chat.engine.asked(AnswerTrust)[0].allow is True

    async def test_where_a_projects_one_is_refused_the_one_before_continues(self, run_chat: ChatRunner) -> None:
        engine = FakeEngine()
        engine.shelf.project.mkdir(parents=True)
        (engine.shelf.project / "Guide.luciform").write_text("<x>hi</x>", encoding="utf-8")
        async with run_chat(engine, persona="Dev") as chat:
            await chat.ready()
            await chat.type("/set-persona guide")
            await chat.until(lambda: chat.noticed("Guide speaks from the next message on, once you allow it."))
            chat.engine.emit(TrustRequested(root="/w#g", files=["g"], text="hi", persona="Guide"))
            await chat.until(lambda: chat.app.chat.questions.has_focus)
            await chat.press("n")
            await chat.until(lambda: chat.noticed("Dev speaks from the next message on."))
            assert chat.engine.asked(AnswerTrust)[0].allow is False
            assert "Dev" in drawn(chat).splitlines()[0]

    async def test_a_narrow_frame_still_shows_the_speaker(self, run_chat: ChatRunner) -> None:
        async with run_chat(size=(60, 20)) as chat:
            await chat.ready()
            await chat.type("a rather long first message that becomes the title")
            await chat.until(lambda: chat.happened(TurnCompleted))
            assert chat.app.chat.session.state.persona in drawn(chat).splitlines()[0]


class TestMaking:
    async def test_the_form_goes_back_skips_and_makes_a_draft(self, run_chat: ChatRunner) -> None:
        async with run_chat(size=(120, 40)) as chat:
            await chat.ready()
            await chat.type("/create-persona")
            await on(chat, PersonaForm)
            await chat.press("enter")
            await chat.until(lambda: "A name is required." in drawn(chat))
            await chat.press(*"Vega", "enter", *"Reviews", "up")
            await chat.until(lambda: all(one.title in drawn(chat) for one in QUESTIONS))
            height = chat.app.screen.query(Vertical).first().size.height
            await chat.press("enter", "enter", "enter", "enter", *"rogue", "enter")
            await chat.until(lambda: "'rogue' is no colour" in drawn(chat))
            field = chat.app.screen.focused
            assert isinstance(field, Input) and field.value == "rogue"
            assert chat.app.screen.query(Vertical).first().size.height == height
            await chat.press(*["backspace"] * 5, *"rouge", "shift+tab", "shift+tab", "shift+tab", "shift+tab", "up")
            await chat.until(lambda: "enter make the draft" in drawn(chat))
            await chat.press("enter")
            review = await on(chat, PersonaReview)
            (asked,) = chat.engine.asked(DraftPersona)
            assert (asked.brief.name, asked.brief.purpose, asked.brief.color) == ("Vega", "Reviews", "rouge")
            assert asked.brief.rules == ""
            assert review is chat.app.screen
            await chat.press("ctrl+s")
            await chat.until(lambda: chat.noticed("Saved: ✶ Vega. /set-persona Vega switches to it."))
            assert 'color="red"' in (chat.engine.shelf.own / "Vega.luciform").read_text(encoding="utf-8")

    async def test_cancelled_nothing_is_made(self, run_chat: ChatRunner) -> None:
        async with run_chat() as chat:
            await chat.ready()
            await chat.type("/create-persona")
            await on(chat, PersonaForm)
            await chat.press(*"Vega", "enter", "escape")
            await chat.until(lambda: not isinstance(chat.app.screen, PersonaForm))
            assert chat.engine.asked(DraftPersona) == []

    @pytest.mark.parametrize("key", ["escape", "ctrl+c"])
    async def test_cancelled_it_comes_back_as_it_was_left(self, run_chat: ChatRunner, key: str) -> None:
        async with run_chat() as chat:
            await chat.ready()
            await chat.type("/create-persona")
            form = await on(chat, PersonaForm)
            await chat.press(*"Vega", "enter", *"Reviews")
            await chat.until(lambda: form.answers()["purpose"] == "Reviews")
            await chat.press(key)
            await chat.until(lambda: chat.noticed("What you typed is kept"))
            for typed in ({"name": "Vega", "purpose": "Reviews"}, {}):
                await chat.type("/create-persona")
                form = await on(chat, PersonaForm)
                assert {name: text for name, text in form.answers().items() if text} == typed
                assert ("as you left it" in drawn(chat)) is bool(typed)
                for field in form.query(Input):
                    field.value = ""
                await chat.press(key)
                await chat.until(lambda form=form: chat.app.screen is not form)

    async def test_ctrl_c_copies_what_is_selected_in_a_field(self, run_chat: ChatRunner) -> None:
        async with run_chat() as chat:
            await chat.ready()
            await chat.type("/create-persona")
            form = await on(chat, PersonaForm)
            await chat.press(*"Vega", "shift+home")
            await chat.until(lambda: form.query(Input).first().selected_text == "Vega")
            await chat.press("ctrl+c")
            await chat.until(lambda: chat.app.clipboard == "Vega")
            assert chat.app.screen is form

    async def test_in_one_line_and_improved_by_the_model(self, run_chat: ChatRunner) -> None:
        async with run_chat(size=(120, 40)) as chat:
            await chat.ready()
            chat.engine.shelf.improvement = "<luciform name='Vega' color='green'>far [b]better[/b] ✶</luciform>\n"
            await chat.type("/create-persona Vega | bleu | français | Reviews SQL")
            await on(chat, PersonaReview)
            assert chat.engine.asked(DraftPersona)[0].brief.language == "français"
            await chat.press("m")
            await chat.until(
                lambda: "1 + <luciform name='Vega' color='green'>far [b]better[/b] ✶</luciform>" in drawn(chat)
            )
            await chat.press("enter")
            assert isinstance(chat.app.screen, PersonaReview), "a proposal is answered before anything is saved"
            await chat.press("n")
            await chat.until(lambda: "The draft is unchanged." in drawn(chat))
            await chat.press("m")
            await chat.until(lambda: "Proposed changes" in drawn(chat))
            await chat.press("y")
            await chat.until(lambda: "nothing is saved yet" in drawn(chat))
            assert chat.engine.asked(SavePersona) == []
            await chat.press("enter")
            await chat.until(lambda: chat.noticed("✶ Vega speaks"))
            assert "better" in (chat.engine.shelf.own / "Vega.luciform").read_text(encoding="utf-8")

    async def test_without_a_model_the_draft_stays(self, run_chat: ChatRunner) -> None:
        async with run_chat(size=(120, 40)) as chat:
            await chat.ready()
            await chat.type("/create-persona Vega")
            await on(chat, PersonaReview)
            await chat.press("m")
            await chat.until(lambda: "No language model is configured" in drawn(chat))
            assert chat.engine.asked(ImprovePersona)
            await chat.press("escape")
            await chat.until(lambda: chat.noticed("Nothing was saved."))


class TestChanging:
    async def test_the_editor_changes_a_shipped_one_into_an_own_copy(
        self, run_chat: ChatRunner, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        script = tmp_path / "edit.py"
        script.write_text("import sys; open(sys.argv[1], 'a', encoding='utf-8', newline='').write('<mine>\\r\\n')")
        monkeypatch.delenv("VISUAL", raising=False)
        monkeypatch.setenv("EDITOR", shlex.join([sys.executable, str(script)]))
        async with run_chat(size=(120, 40)) as chat:
            await chat.ready()
            await chat.type("/edit-persona Dev")
            await on(chat, PersonaReview)
            assert "1 problem, marked below" in drawn(chat)
            await chat.press("ctrl+s")
            await chat.until(lambda: chat.noticed("Saved: ▸ Dev. It hides the shipped one of the same name."))
            written = (chat.engine.shelf.own / "Dev.luciform").read_bytes()
            assert written.endswith(b"</luciform>\n<mine>\r\n")

    @pytest.mark.parametrize("codec", ["utf-16", "latin-1"])
    async def test_other_encodings_of_an_editor_are_kept(
        self, run_chat: ChatRunner, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, codec: str
    ) -> None:
        script = tmp_path / "edit.py"
        script.write_text(f"import sys; open(sys.argv[1], 'wb').write('<x>d\xe9j\xe0 vu</x>'.encode('{codec}'))")
        monkeypatch.delenv("VISUAL", raising=False)
        monkeypatch.setenv("EDITOR", shlex.join([sys.executable, str(script)]))
        engine = FakeEngine()
        (engine.shelf.own / "Vega.luciform").write_bytes("<x>a</x>".encode("utf-16"))
        async with run_chat(engine) as chat:
            await chat.ready()
            await chat.type("/edit-persona Vega")
            await on(chat, PersonaReview)
            await chat.press("ctrl+s")
            await chat.until(lambda: chat.noticed("Saved: "))
            assert (engine.shelf.own / "Vega.luciform").read_bytes() == "<x>déjà vu</x>".encode("utf-16")

    async def test_bytes_that_could_not_be_read_are_reported_before_they_are_written_over(
        self, run_chat: ChatRunner, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        script = tmp_path / "edit.py"
        script.write_text("import sys; open(sys.argv[1], 'a').write('more')")
        monkeypatch.delenv("VISUAL", raising=False)
        monkeypatch.setenv("EDITOR", shlex.join([sys.executable, str(script)]))
        engine = FakeEngine()
        (engine.shelf.own / "Vega.luciform").write_bytes("<x>déjà</x>".encode("latin-1"))
        async with run_chat(engine) as chat:
            await chat.ready()
            await chat.type("/edit-persona Vega")
            await on(chat, PersonaReview)
            assert "marks bytes of the file that could not be read" in drawn(chat)

    async def test_an_editor_that_fails_or_changes_nothing(
        self, run_chat: ChatRunner, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delenv("VISUAL", raising=False)
        async with run_chat() as chat:
            await chat.ready()
            for command, word in (("true", "Nothing was changed."), ("false", "status 1"), ("/no/editor", "started")):
                monkeypatch.setenv("EDITOR", command)
                await chat.type("/edit-persona")
                await chat.until(lambda word=word: chat.noticed(word), word)
            assert chat.engine.asked(SavePersona) == []

    async def test_delete_and_undo(self, run_chat: ChatRunner) -> None:
        engine = FakeEngine()
        (engine.shelf.own / "Vega.luciform").write_text("<x glyph='☾'>vega</x>", encoding="utf-8")
        async with run_chat(engine) as chat:
            await chat.ready()
            await chat.type("/delete-persona")
            await chat.until(lambda: chat.noticed("Which persona?"))
            await chat.type("/delete-persona Dev")
            await chat.until(lambda: chat.noticed("comes with the program"))
            await chat.type("/delete-persona vega")
            await chat.until(lambda: chat.noticed("Deleted: ☾ Vega."))
            assert not (engine.shelf.own / "Vega.luciform").exists()
            await chat.type("/undo-delete-persona")
            await chat.until(lambda: chat.noticed("Restored: ☾ Vega."))
            assert (engine.shelf.own / "Vega.luciform").exists()

    @pytest.mark.parametrize("talking", [False, True])
    async def test_where_the_one_that_speaks_is_deleted_it_is_reported_the_speaker(
        self, run_chat: ChatRunner, talking: bool
    ) -> None:
        engine = FakeEngine()
        (engine.shelf.own / "Vega.luciform").write_text("<x glyph='☾'>vega</x>", encoding="utf-8")
        async with run_chat(engine, persona="Vega") as chat:
            await chat.ready()
            if talking:
                await chat.type("hello")
                await chat.until(lambda: chat.happened(TurnCompleted))
            await chat.type("/delete-persona vega")
            await chat.until(lambda: chat.noticed("◆ Assistant speaks from the next message on."))
            notices = "\n".join(text for _, text in chat.notices)
            assert "There is no persona" not in notices
            assert notices.index("Deleted: ☾ Vega.") < notices.index("◆ Assistant speaks")
            assert "Assistant" in drawn(chat).splitlines()[0]
            assert [asked.name for asked in engine.asked(SetPersona)] == ["Assistant"]
            await chat.type("/undo-delete-persona")
            await chat.until(lambda: chat.noticed("☾ Vega speaks from the next message on."))

    async def test_the_one_it_hid_speaks_in_its_place(self, run_chat: ChatRunner) -> None:
        engine = FakeEngine()
        (engine.shelf.own / "Dev.luciform").write_text("<x glyph='☾'>mine</x>", encoding="utf-8")
        async with run_chat(engine, persona="dev") as chat:
            await chat.ready()
            await chat.type("/delete-persona Dev")
            await chat.until(lambda: chat.noticed("▸ Dev speaks from the next message on."))

    async def test_who_was_chosen_since_continues_after_the_undo(self, run_chat: ChatRunner) -> None:
        engine = FakeEngine()
        (engine.shelf.own / "Vega.luciform").write_text("<x glyph='☾'>vega</x>", encoding="utf-8")
        async with run_chat(engine, persona="Vega") as chat:
            await chat.ready()
            await chat.type("/delete-persona Vega")
            await chat.until(lambda: chat.noticed("◆ Assistant speaks"))
            await chat.type("/set-persona Dev")
            await chat.until(lambda: chat.noticed("▸ Dev speaks"))
            await chat.type("/undo-delete-persona")
            await chat.until(lambda: chat.noticed("Restored: ☾ Vega."))
            await chat.pilot.pause(0.1)
            assert not chat.noticed("☾ Vega speaks")
