"""What the screen decides without widgets."""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ragforge_tui.shared.events import (
    MessageFinished,
    MessageStarted,
    ModelChanged,
    Steered,
    TextDelta,
    ToolCallFinished,
    ToolCallStarted,
    TurnCancelled,
    TurnCompleted,
)
from ragforge_tui.shared.records import ToolCall, ToolResult, Turn, Usage
from ragforge_tui.tui import fuzzy
from ragforge_tui.tui.command_registry import Registry
from ragforge_tui.tui.commands import all_commands
from ragforge_tui.tui.drawing.theme import choose
from ragforge_tui.tui.keys import key_name
from ragforge_tui.tui.memory.context_screen import window_note
from ragforge_tui.tui.prompt.draft import Draft
from ragforge_tui.tui.prompt.history import Entry, History
from ragforge_tui.tui.prompt.prompt import Pastes, is_large
from ragforge_tui.tui.session.message_queue import MessageQueue
from ragforge_tui.tui.session.remote_turns import ending, events_between
from ragforge_tui.tui.session.state import EngineState
from ragforge_tui.tui.sessions.session_list_model import date_group, model_rows
from ragforge_tui.tui.terminal import copy_sequence
from tests.support.fake_engine import CLOCK, conversation, message
from tests.support.key_shapes import GITHUB_KEY


class TestFuzzy:
    def test_letters_in_order(self) -> None:
        assert fuzzy.score("mdl", "model") is not None
        assert fuzzy.score("ldm", "model") is None

    def test_start_of_a_word_wins(self) -> None:
        assert fuzzy.best("re", ["more", "retry", "undo-delete rename"], str)[0] == "retry"

    def test_words_in_any_order_and_case(self) -> None:
        assert fuzzy.best("TURNS retries", ["Retries double turns", "turns"], str) == ["Retries double turns"]

    def test_no_query_keeps_the_order(self) -> None:
        assert fuzzy.best("  ", ["b", "a"], str) == ["b", "a"]


class TestPastes:
    def test_small_ones_stay(self) -> None:
        assert not is_large("a\n" * 7)
        assert is_large("a\n" * 8)
        assert is_large("a" * 2_001)

    def test_label_and_back(self) -> None:
        pastes = Pastes()
        text = "line\n" * 1_233 + "end"
        label = pastes.collapse(text)
        assert label == "[pasted 1 234 lines, 6 kB]"
        assert pastes.expand(f"see {label}!") == f"see {text}!"
        assert pastes.label_before(f"see {label}") == label
        assert pastes.label_before("see [pasted 2 lines]") == ""

    def test_equal_sizes_get_own_labels(self) -> None:
        pastes = Pastes()
        first, second = pastes.collapse("a" * 3_000), pastes.collapse("b" * 3_000)
        assert first != second
        assert pastes.expand(first + second) == "a" * 3_000 + "b" * 3_000
        assert pastes.collapse("a" * 3_000) == first

    def test_what_of_a_text_was_pasted(self) -> None:
        pastes = Pastes()
        log, line, name = "a line of a log\n" * 20, "From now on run this.", "src/app.py"
        text = f"see {pastes.collapse(log)}, {pastes.collapse(line)} and {pastes.collapse(name)}"
        assert pastes.within(pastes.expand(text)) == [log, line]
        assert pastes.label_before(f"{line} [x y z]") == "" and pastes.used(text).keys() == {
            line,
            "[pasted 21 lines, 320 B]",
        }
        edited = "Never do this.\nAlways do that here."
        pastes.collapse(edited)
        assert pastes.within("Never say this.\nAlways do that here.") == ["Always do that here."]

    def test_a_pasted_label_is_not_expanded(self) -> None:
        pastes = Pastes()
        inner = pastes.collapse("x" * 3_000)
        outer = pastes.collapse(f"{inner}\n" * 20)
        assert pastes.expand(outer) == f"{inner}\n" * 20


class TestMessageQueue:
    def test_life_of_a_message(self) -> None:
        box = MessageQueue()
        item = box.add("one")
        assert box.next_waiting() is item
        item.place = "sending"
        assert box.next_waiting() is None
        box.accepted(item.message_id, queued=True)
        assert box.queued
        box.drop(item.message_id)
        assert len(box) == 0

    def test_the_newest_is_taken_back_but_not_what_is_being_stored(self) -> None:
        box = MessageQueue()
        assert box.newest is None
        first = box.add("a")
        second = box.add("b")
        assert box.newest is second
        second.place = "sending"
        assert box.newest is first

    def test_a_lost_engine_makes_all_wait_again(self) -> None:
        box = MessageQueue()
        item = box.add("a")
        box.accepted(item.message_id, queued=True)
        box.engine_lost()
        assert box.next_waiting() is item


class TestDraft:
    def test_of_a_dead_process_is_given_once(self, tmp_path: Path) -> None:
        gone = 4_194_304 + 1
        Draft(tmp_path, "/w", gone).save(Entry("half a thought"))
        assert Draft(tmp_path, "/other").restore() is None
        assert Draft(tmp_path, "/w").restore() == Entry("half a thought")
        assert Draft(tmp_path, "/w").restore() is None

    def test_of_a_living_process_stays_there(self, tmp_path: Path) -> None:
        Draft(tmp_path, "/w", 1).save(Entry("typed elsewhere"))
        assert Draft(tmp_path, "/w").restore() is None

    def test_of_a_private_conversation_waits_for_it(self, tmp_path: Path) -> None:
        private, other = conversation(1).uuid, conversation(2).uuid
        gone = Draft(tmp_path, "/w", 4_194_305)
        assert gone.open(private, private=True)
        gone.save(Entry("a secret"))
        next_one = Draft(tmp_path, "/w")
        assert next_one.restore() is None
        assert next_one.open(other, private=False) and next_one.restore() is None
        assert next_one.open(private, private=False), "it is no longer private"
        assert next_one.restore() == Entry("a secret")
        assert next_one.restore() is None

    def test_a_conversation_that_becomes_private_takes_its_draft_along(self, tmp_path: Path) -> None:
        gone = Draft(tmp_path, "/w", 4_194_305)
        gone.open("1", private=False)
        assert gone.open("1", private=True)
        assert not gone.open("1", private=True)
        gone.save(Entry("a secret"))
        assert Draft(tmp_path, "/w").restore() is None

    def test_before_a_private_conversation_nothing_is_kept(self, tmp_path: Path) -> None:
        draft = Draft(tmp_path, "/w")
        draft.save(Entry("typed before /private"))
        assert draft.open("", private=True)
        draft.save(Entry("a secret"))
        assert list((tmp_path / "drafts").iterdir()) == []

    def test_an_empty_prompt_leaves_nothing(self, tmp_path: Path) -> None:
        draft = Draft(tmp_path, "/w")
        draft.save(Entry("x"))
        draft.save(Entry(" "))
        assert list((tmp_path / "drafts").iterdir()) == []


class TestCommands:
    registry = Registry(all_commands())

    def test_names_and_keys_are_unique(self) -> None:
        names = [name for command in all_commands() for name in (command.name, *command.aliases)]
        keys = [command.key for command in all_commands() if command.key]
        assert len(names) == len(set(names))
        assert len(keys) == len(set(keys))

    def test_parse(self) -> None:
        parsed = self.registry.parse("/resume  3f2a ")
        assert parsed is not None and parsed.command is not None
        assert (parsed.command.name, parsed.argument) == ("resume", "3f2a")
        alias = self.registry.parse("/EXIT")
        assert alias is not None and alias.command is not None and alias.command.name == "quit"

    @pytest.mark.parametrize("text", ["hello", "/usr/bin/env is broken", "a /quit", "/help\nme", "// comment"])
    def test_messages(self, text: str) -> None:
        assert self.registry.parse(text) is None

    def test_unknown(self) -> None:
        parsed = self.registry.parse("/modle x")
        assert parsed is not None and parsed.command is None
        meant = self.registry.suggest("modle")
        assert meant is not None and meant.name == "model"

    def test_completion(self) -> None:
        assert len(self.registry.complete("/")) == len(all_commands())
        assert self.registry.complete("/ses")[0].name == "sessions"
        for typed in ("/e", "/se"):
            found = self.registry.complete(typed)
            assert 1 < len(found) < len(all_commands()) / 4
            assert all(any(name.startswith(typed[1:]) for name in (one.name, *one.aliases)) for one in found)
            of_name = [one.name.startswith(typed[1:]) for one in found]
            assert of_name == sorted(of_name, reverse=True), "aliases come after names"
        assert self.registry.complete("/mdl")[0].name == "model"
        assert "resume" in [one.name for one in self.registry.complete("/rs")], "no name starts with it"
        assert self.registry.complete("/model x") == []
        assert self.registry.complete("hello") == []

    def test_key_names(self) -> None:
        assert [key_name(key) for key in ("ctrl+o", "escape", "f1")] == ["^o", "esc", "F1"]


class TestClipboard:
    def test_plain_and_in_tmux(self) -> None:
        payload = base64.b64encode("é".encode()).decode()
        assert copy_sequence("é", {}) == f"\x1b]52;c;{payload}\x07"
        assert copy_sequence("é", {"TMUX": "x"}).endswith(f"\x1bPtmux;\x1b\x1b]52;c;{payload}\x07\x1b\\")


class TestPicking:
    def test_groups(self) -> None:
        today = datetime(2026, 11, 8, tzinfo=UTC).date()
        days = [(8, "Today"), (7, "Yesterday"), (3, "This week"), (1, "November 2026")]
        assert [date_group(today.replace(day=day), today) for day, _ in days] == [name for _, name in days]

    def test_the_model_in_use_comes_first(self) -> None:
        rows = model_rows(["b", "c", "a"], ModelChanged(phase="ready", name="c"))
        assert [(row.key, row.detail) for row in rows] == [("c", "in use"), ("a", ""), ("b", "")]

    def test_a_learned_window_is_shown_with_the_way_to_reset_it(self) -> None:
        day = datetime(2026, 11, 24, 12, tzinfo=UTC)
        model = ModelChanged(phase="ready", name="c", context_window=8_192, window_learned=day)
        (row,) = model_rows(["c"], model)
        assert row.detail == "in use · window 8.2k, learned 24 Nov; choose again to reset"
        assert "found to be 8.2k on 24 Nov. /settings model.context_window changes it" in window_note(model)

    def test_an_assumed_window_is_said_to_be_assumed(self) -> None:
        model = ModelChanged(phase="ready", name="c", context_window=32_768, window_assumed=True)
        (row,) = model_rows(["c"], model)
        assert row.detail == "in use · window 32.8k assumed"
        assert "assumed: 32.8k" in window_note(model)
        known = ModelChanged(phase="ready", name="c", context_window=32_768)
        assert window_note(known) == "" == window_note(None)


class TestState:
    def test_activity(self) -> None:
        state = EngineState(conversation=conversation(1))
        assert state.activity == "idle"
        state.turn_starts(state.conversation_id, 1, 0.0)
        assert state.activity == "thinking"
        state.tools.add("t")
        assert state.activity == "running"
        state.engine_lost()
        assert state.activity == "idle" and not state.busy

    def test_spent(self) -> None:
        state = EngineState()
        state.spent.add(Usage(input_tokens=10, output_tokens=5, cost_usd=0.5))
        state.spent.add(None)
        state.spent.add(Usage(input_tokens=1))
        assert (state.spent.tokens, state.spent.cost) == (16, 0.5)


class TestTheme:
    def test_choice(self) -> None:
        assert choose("nord", {}) == "nord"
        assert choose("auto", {}) == "ragforge-dark"
        assert choose("auto", {"COLORFGBG": "0;15"}) == "ragforge-light"
        assert choose("auto", {"TEXTUAL_THEME": "nord"}) == "nord"


def _call(done: bool) -> ToolCall:
    result = ToolResult(uuid="r", tool_call_id="c", success=True, result="{}", timestamp=CLOCK) if done else None
    return ToolCall(uuid="c", message_id="m", tool_name="grep", arguments="{}", timestamp=CLOCK, result=result)


class TestFollow:
    owner = conversation(1)

    def _turn(self, text: str, state: str, calls: list[ToolCall]) -> Turn:
        reply = message(self.owner, 1, "assistant", text, 1, state=state, tool_calls=calls)
        return Turn(turn_index=1, messages=[message(self.owner, 1, "user", "q"), reply])

    def test_growth_becomes_events(self) -> None:
        empty = Turn(turn_index=1, messages=[message(self.owner, 1, "user", "q")])
        some = self._turn("Hel", "streaming", [])
        more = self._turn("Hello", "complete", [_call(False)])
        done = self._turn("Hello", "complete", [_call(True)])
        kinds = [type(event) for event in events_between(self.owner.uuid, empty, some)]
        assert kinds == [MessageStarted, TextDelta]
        events = list(events_between(self.owner.uuid, some, more))
        assert [type(event) for event in events] == [TextDelta, MessageFinished, ToolCallStarted]
        assert isinstance(events[0], TextDelta) and events[0].text == "lo"
        assert [type(event) for event in events_between(self.owner.uuid, more, done)] == [ToolCallFinished]
        assert list(events_between(self.owner.uuid, done, done)) == []
        said = message(self.owner, 1, "user", "use Decimal", 2)
        steered = Turn(turn_index=1, messages=[*done.messages, said])
        assert [type(event) for event in events_between(self.owner.uuid, done, steered)] == [Steered]

    def test_how_it_ends(self) -> None:
        done = ending(self.owner.uuid, self._turn("Hello", "complete", []))
        assert isinstance(done, TurnCompleted) and done.text == "Hello"
        assert isinstance(ending(self.owner.uuid, self._turn("H", "interrupted", [])), TurnCancelled)


def test_keys_in_prompts_are_masked_on_disk(tmp_path: Path) -> None:
    history, draft = History(tmp_path, "/w"), Draft(tmp_path, "/w")
    entry = Entry(f"use {GITHUB_KEY}", {"[pasted]": GITHUB_KEY})
    history.add(entry)
    draft.save(entry)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) >= 2
    assert not any(GITHUB_KEY.encode() in path.read_bytes() for path in files)
    assert history.older(Entry("")) == Entry("use github…[masked]", {"[pasted]": "github…[masked]"})
