"""Earlier prompts: their file, who may see them, and the search for one."""

from __future__ import annotations

import multiprocessing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest
from textual import events

from ragforge_tui.shared.prompt_files import HISTORY, forget_prompts
from ragforge_tui.shared.records import Conversation
from ragforge_tui.shared.requests.turns import SendMessage
from ragforge_tui.tui.dialogs.history_search import Found, HistorySearch, found_with, prompt_row
from ragforge_tui.tui.prompt.draft import Draft
from ragforge_tui.tui.prompt.history import MAX_ENTRY_CHARS, MAX_FILE_BYTES, Entry, History, Sent
from ragforge_tui.tui.widgets.choice_list import Choice, ChoiceList
from tests.support.fake_engine import conversation
from tests.tui.conftest import Chat, ChatRunner

PRIVATE = conversation(1, private=True)
OTHER = conversation(2)


def in_conversation(folder: Path, owner: Conversation | None = None, workspace: str = "/w") -> History:
    """The history of a chat with an open conversation."""
    history = History(folder, workspace)
    history.open(owner)
    return history


def texts(history: History, *, everywhere: bool = False) -> list[str]:
    return [sent.text for sent in history.prompts(everywhere=everywhere)]


def _append(folder: str, name: str, count: int) -> None:
    history = History(Path(folder), "/w")
    for number in range(count):
        history.add(Entry(f"{name} {number}"))


class TestWalking:
    def test_walk(self, tmp_path: Path) -> None:
        history = History(tmp_path, "/w")
        for text in ("one", "two", "two"):
            history.add(Entry(text))
        assert history.older(Entry("draft")) == Entry("two")
        assert history.older(Entry("two")) == Entry("one")
        assert history.older(Entry("one")) is None
        assert history.newer() == Entry("two")
        assert history.newer() == Entry("draft")
        assert history.newer() is None

    def test_kept_with_pastes_and_per_workspace(self, tmp_path: Path) -> None:
        entry = Entry("see [pasted 9 lines]", {"[pasted 9 lines]": "a\n" * 8})
        History(tmp_path, "/w").add(entry)
        assert History(tmp_path, "/w").older(Entry("")) == entry
        assert History(tmp_path, "/other").older(Entry("")) is None

    def test_another_terminal_is_seen(self, tmp_path: Path) -> None:
        mine, other = History(tmp_path, "/w"), History(tmp_path, "/w")
        mine.add(Entry("mine"))
        other.add(Entry("theirs"))
        assert mine.older(Entry("")) == Entry("theirs")


class TestFile:
    def test_a_broken_line_takes_no_other_with_it(self, tmp_path: Path) -> None:
        History(tmp_path, "/w").add(Entry("good"))
        file = tmp_path / HISTORY
        file.write_bytes(file.read_bytes() + b'\xff\n[]\n\n{"text": "ha')
        history = History(tmp_path, "/w")
        assert texts(history) == ["good"]
        history.add(Entry("after it"))
        assert texts(history) == ["after it", "good"]

    def test_several_processes_lose_nothing(self, tmp_path: Path) -> None:
        spawn = multiprocessing.get_context("spawn")
        writers = [spawn.Process(target=_append, args=(str(tmp_path), name, 50)) for name in "ab"]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join(60)
        seen = texts(History(tmp_path, "/w"))
        assert len(seen) == 100
        assert [text for text in seen if text.startswith("a")] == [f"a {n}" for n in reversed(range(50))]

    def test_it_does_not_grow_for_ever(self, tmp_path: Path) -> None:
        watching, history = History(tmp_path, "/w"), History(tmp_path, "/w")
        for number in range(30):
            history.add(Entry(f"{number} {'x' * (MAX_ENTRY_CHARS - 10)}"))
            assert texts(watching)[0].startswith(f"{number} ")
        assert (tmp_path / HISTORY).stat().st_size <= MAX_FILE_BYTES + MAX_ENTRY_CHARS + 200
        kept = [int(text.partition(" ")[0]) for text in texts(history)]
        assert kept == list(range(29, 29 - len(kept), -1)) and len(kept) >= 8
        assert texts(watching) == texts(history), "a terminal that saw the file before it was cut"

    def test_a_message_that_is_too_long_is_not_kept(self, tmp_path: Path) -> None:
        History(tmp_path, "/w").add(Entry("x" * (MAX_ENTRY_CHARS + 1)))
        assert not (tmp_path / HISTORY).exists()

    def test_only_its_owner_can_read_it(self, tmp_path: Path) -> None:
        History(tmp_path, "/w").add(Entry("mine"))
        file = tmp_path / HISTORY
        assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)

    def test_an_unwritable_folder_is_no_error(self, tmp_path: Path) -> None:
        (tmp_path / "history").write_text("a file where the folder should be")
        history = History(tmp_path, "/w")
        history.add(Entry("kept in memory"))
        assert history.older(Entry("")) == Entry("kept in memory")

    def test_a_folder_that_is_no_utf8(self, tmp_path: Path) -> None:
        History(tmp_path, "/caf\udce9").add(Entry("un café"))
        assert texts(History(tmp_path, "/caf\udce9")) == ["un café"]


class TestSearched:
    def test_each_once_the_last_sent_first(self, tmp_path: Path) -> None:
        history = History(tmp_path, "/w")
        for text in ("one", "two", "one"):
            history.add(Entry(text))
        assert texts(history) == ["one", "two"]

    def test_this_folder_or_everywhere(self, tmp_path: Path) -> None:
        in_conversation(tmp_path, OTHER, "/other").add(Entry("elsewhere"))
        history = in_conversation(tmp_path)
        history.add(Entry("here"))
        assert texts(history) == ["here"]
        assert texts(history, everywhere=True) == ["here", "elsewhere"]
        assert history.prompts(everywhere=True)[1].folder == "/other"


class TestPrivate:
    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        in_conversation(tmp_path, PRIVATE).add(Entry("a secret"))
        in_conversation(tmp_path, OTHER).add(Entry("no secret"))
        return tmp_path

    @pytest.mark.parametrize("owner", [None, OTHER, conversation(3, private=True)], ids=["none", "other", "private"])
    @pytest.mark.parametrize("everywhere", [False, True])
    def test_it_stays_in_its_conversation(self, folder: Path, owner: Conversation | None, everywhere: bool) -> None:
        history = in_conversation(folder, owner)
        assert texts(history, everywhere=everywhere) == ["no secret"]
        assert history.older(Entry("")) == Entry("no secret")
        assert history.older(Entry("no secret")) is None

    def test_its_own_conversation_has_it_and_the_others(self, folder: Path) -> None:
        assert texts(in_conversation(folder, PRIVATE)) == ["no secret", "a secret"]

    def test_what_was_sent_before_it_became_private(self, tmp_path: Path) -> None:
        here, elsewhere = in_conversation(tmp_path, OTHER), in_conversation(tmp_path)
        here.add(Entry("later a secret"))
        assert texts(elsewhere) == ["later a secret"]
        here.changed(conversation(2, private=True))
        here.add(Entry("a secret now"))
        assert texts(elsewhere) == []
        here.changed(OTHER)
        assert texts(elsewhere) == ["a secret now", "later a secret"]

    def test_the_message_that_started_it(self, tmp_path: Path) -> None:
        here, elsewhere = in_conversation(tmp_path), in_conversation(tmp_path)
        here.add(Entry("the first one"))
        here.open(OTHER)
        assert texts(elsewhere) == ["the first one"]
        here.changed(conversation(2, private=True))
        assert (texts(elsewhere), texts(here)) == ([], ["the first one"])
        here.open(None)
        assert texts(here) == [], "the next conversation is another one"
        assert texts(in_conversation(tmp_path, conversation(2, private=True))) == ["the first one"]

    def test_what_is_sent_to_begin_a_private_one(self, tmp_path: Path) -> None:
        here, elsewhere = in_conversation(tmp_path), in_conversation(tmp_path)
        here.add(Entry("sent before"))
        here.open(None, private=True)
        here.add(Entry("a secret"))
        assert texts(elsewhere) == []
        here.open(PRIVATE)
        assert (texts(elsewhere), texts(here)) == ([], ["a secret", "sent before"])
        here.open(None)
        here.add(Entry("no secret"))
        assert texts(elsewhere) == ["no secret"]

    def test_another_terminal_that_does_not_know_yet(self, folder: Path) -> None:
        late = History(folder, "/w")
        late._read()
        late._hidden.clear()
        late._conversation = PRIVATE.uuid
        late.add(Entry("sent as if it were not private"))
        assert texts(in_conversation(folder, OTHER)) == ["no secret"]

    def test_a_deleted_conversation_until_it_is_restored(self, folder: Path) -> None:
        history = in_conversation(folder)
        history.hide(OTHER.uuid)
        assert texts(history) == []
        history.changed(OTHER)
        assert texts(history) == ["no secret"]

    def test_a_conversation_that_is_private_from_the_start(self, tmp_path: Path) -> None:
        history = in_conversation(tmp_path, PRIVATE)
        assert not (tmp_path / HISTORY).exists(), "there is nothing to hide yet"
        history.add(Entry("a secret"))
        assert texts(in_conversation(tmp_path, OTHER)) == []

    def test_a_change_is_written_once(self, folder: Path) -> None:
        lines = (folder / HISTORY).read_bytes().splitlines()
        for _ in range(3):
            history = in_conversation(folder, PRIVATE)
            history.changed(msgspec.structs.replace(PRIVATE, title="another title"))
        assert (folder / HISTORY).read_bytes().splitlines() == lines


class TestPurged:
    def test_its_prompts_and_drafts_leave_the_disk(self, tmp_path: Path) -> None:
        here = in_conversation(tmp_path)
        here.add(Entry("the first secret"))
        here.open(PRIVATE)
        here.add(Entry("a secret"))
        watching = in_conversation(tmp_path, OTHER)
        watching.add(Entry("no secret"))
        assert texts(watching) == ["no secret"]
        with (tmp_path / HISTORY).open("ab") as file:
            file.write(b"{half a li\n")
        for pid, owner, private in ((1, PRIVATE, True), (2, PRIVATE, False), (3, OTHER, True)):
            draft = Draft(tmp_path, "/w", pid)
            draft.open(owner.uuid, private=private)
            draft.save(Entry("a draft"))
        forget_prompts(tmp_path, [PRIVATE.uuid])
        kept = (tmp_path / HISTORY).read_bytes()
        assert b"a secret" not in kept and b"first secret" not in kept and PRIVATE.uuid.encode() not in kept
        assert b"no secret" in kept and b"{half a li\n" in kept
        assert {path.stem.rpartition("-")[2] for path in (tmp_path / "drafts").iterdir()} == {"2", "3"}
        here.add(Entry("after it"))
        assert texts(here) == ["after it", "no secret"]
        assert texts(watching) == ["no secret"]

    def test_nothing_is_lost_that_is_sent_meanwhile(self, tmp_path: Path) -> None:
        in_conversation(tmp_path, PRIVATE).add(Entry("a secret"))
        spawn = multiprocessing.get_context("spawn")
        writer = spawn.Process(target=_append, args=(str(tmp_path), "a", 50))
        writer.start()
        while writer.is_alive():
            in_conversation(tmp_path, PRIVATE).add(Entry("a secret"))
            forget_prompts(tmp_path, [PRIVATE.uuid])
        assert len(texts(History(tmp_path, "/w"))) == 50

    def test_without_a_file_nothing_is_made(self, tmp_path: Path) -> None:
        forget_prompts(tmp_path, [PRIVATE.uuid])
        assert list(tmp_path.iterdir()) == []


NOW = datetime(2026, 11, 27, 12, tzinfo=UTC)


def row(text: str, words: str = "", *, width: int = 40, folder: str = "/w") -> Choice:
    """A prompt that was sent five minutes ago, as a row of the chat in /w."""
    return prompt_row(Sent(at=NOW - timedelta(minutes=5), text=text, folder=folder), words, NOW, width, "/w")


def found(text: str, words: str) -> list[str]:
    """What is highlighted of a prompt."""
    choice = row(text, words)
    return [choice.label[start:end] for start, end in choice.found]


class TestRow:
    def test_several_lines_are_one_row_with_their_age(self) -> None:
        choice = row("first\n\n  second\nthird\n")
        assert (choice.label, choice.detail) == ("first second third", "4 lines · 5 min")

    def test_every_match_is_highlighted(self) -> None:
        assert found("The lease, the LEASES\nand the renewal", "lease renew") == ["lease", "LEASE", "renew"]
        assert found("what is .* for", ".*") == [".*"], "words are no patterns"
        assert row("no words").found == ()

    def test_a_late_match_is_in_view(self) -> None:
        choice = row(f"{'early ' * 900}needle{' late' * 900}", "needle", width=40)
        assert choice.label[:40].startswith("…") and "needle" in choice.label[:40]
        assert row(f"{'early ' * 20}needle", "needle", width=40).label == f"…{('early ' * 20 + 'needle')[-39:]}"

    def test_another_folder_is_named(self) -> None:
        assert (row("x").path, row("x", folder="/other").path) == ("", "/other")

    def test_foreign_text_is_no_markup_and_no_escape_sequence(self) -> None:
        assert row("[red]a\x1b[31mb\tc").label == "[red]ab c"


def test_all_words_in_any_order_and_case() -> None:
    prompts = [Found(Sent(at=NOW, text=text), text.lower()) for text in ("Renew the LEASE", "lease", "renewal")]
    assert [sent.text for sent in found_with("lease RENEW", prompts)] == ["Renew the LEASE"]
    assert len(found_with("  ", prompts)) == 3


def fill(folder: Path) -> None:
    """Prompts of two folders, the last one sent first in the list."""
    for workspace, text in [
        ("/w", "fix the lease"),
        ("/other", "lease elsewhere"),
        ("/w", "two\nlines"),
        ("/w", "new"),
    ]:
        History(folder, workspace).add(Entry(text))


async def searching(chat: Chat, *keys: str) -> HistorySearch:
    """Open the search and press keys in it."""
    await chat.press("ctrl+r")
    await chat.until(lambda: chat.app.focused is not chat.app.chat.prompt and chat.app.query(HistorySearch))
    search = chat.app.query_one(HistorySearch)
    await chat.press(*keys)
    return search


def labels(search: HistorySearch) -> list[str]:
    return [choice.label for choice in search.query_one(ChoiceList).rows]


def chosen(search: HistorySearch) -> str:
    choice = search.query_one(ChoiceList).chosen
    return choice.label if choice else ""


def closed(chat: Chat) -> bool:
    return not chat.app.query(HistorySearch) and chat.app.chat.prompt.has_focus


async def test_the_chosen_prompt_is_taken_and_not_sent(run_chat: ChatRunner, tmp_path: Path) -> None:
    fill(tmp_path)
    async with run_chat() as chat:
        await chat.ready()
        await chat.press(*"dra")
        search = await searching(chat)
        assert labels(search) == ["new", "two lines", "fix the lease"]
        await chat.press("ctrl+r")
        assert chosen(search) == "two lines"
        await chat.press("ctrl+r", "ctrl+r", "up")
        assert chosen(search) == "two lines", "the oldest is the last"
        await chat.press("enter")
        await chat.until(lambda: closed(chat))
        assert chat.app.chat.prompt.text == "two\nlines"
        assert not chat.engine.asked(SendMessage)
        await chat.press("ctrl+underscore")
        assert chat.app.chat.prompt.text == "dra", "undo brings the draft back"
        await chat.press("up")
        assert chat.app.chat.prompt.text == "new", "the arrow keys begin at the newest"


async def test_words_narrow_it_and_escape_leaves_the_draft(run_chat: ChatRunner, tmp_path: Path) -> None:
    fill(tmp_path)
    async with run_chat() as chat:
        await chat.ready()
        await chat.press(*"dra")
        search = await searching(chat, *"lease")
        await chat.until(lambda: labels(search) == ["fix the lease"])
        await chat.press("alt+w")
        assert labels(search) == ["lease elsewhere", "fix the lease"]
        await chat.press("alt+w", *"zzz")
        assert labels(search) == []
        await chat.press("enter")
        assert not closed(chat), "there is nothing to take"
        await chat.press("escape")
        await chat.until(lambda: closed(chat))
        assert chat.app.chat.prompt.text == "dra"
        await chat.press("f")
        assert chat.app.chat.prompt.text == "draf"


async def test_a_command_is_taken_without_its_menu_and_a_paste_with_its_text(
    run_chat: ChatRunner, tmp_path: Path
) -> None:
    label = "[pasted 9 lines, 18 B]"
    for entry in (Entry(f"see {label}", {label: "a\n" * 9}), Entry("/model ")):
        History(tmp_path, "/w").add(entry)
    async with run_chat() as chat:
        await chat.ready()
        await searching(chat, "enter")
        await chat.until(lambda: closed(chat))
        assert chat.app.chat.prompt.text == "/model " and not chat.app.chat.prompt.completing.open
        await searching(chat, "down", "tab")
        await chat.until(lambda: closed(chat))
        assert (chat.app.chat.prompt.text, chat.app.chat.prompt.whole) == (f"see {label}", "see " + "a\n" * 9)


async def test_the_command_takes_words_and_the_mouse_a_row(run_chat: ChatRunner, tmp_path: Path) -> None:
    fill(tmp_path)
    async with run_chat() as chat:
        await chat.ready()
        await chat.type("/history lease")
        await chat.until(lambda: chat.app.query(HistorySearch))
        search = chat.app.query_one(HistorySearch)
        await chat.until(lambda: "fix the lease" in labels(search))
        await chat.pilot.click(ChoiceList, offset=(4, labels(search).index("fix the lease")))
        await chat.until(lambda: closed(chat))
        assert chat.app.chat.prompt.text == "fix the lease"


async def test_a_private_conversation_keeps_its_prompts(run_chat: ChatRunner) -> None:
    async with run_chat() as chat:
        await chat.ready()
        await chat.type("the first secret")
        await chat.until(lambda: chat.app.chat.session.state.conversation_id)
        await chat.until(lambda: not chat.app.chat.session.state.busy)
        await chat.type("/private on")
        await chat.until(lambda: chat.noticed("Private:"))
        search = await searching(chat)
        assert "the first secret" in labels(search)
        await chat.press("escape", "ctrl+n")
        await chat.until(lambda: not chat.app.chat.session.state.conversation_id)
        search = await searching(chat)
        assert not {"the first secret", "/private on"} & set(labels(search))


async def test_it_ends_when_something_else_gets_the_keyboard(run_chat: ChatRunner, tmp_path: Path) -> None:
    fill(tmp_path)
    async with run_chat() as chat:
        await chat.ready()
        search = await searching(chat)
        chat.app.post_message(events.AppBlur())
        await chat.until(lambda: not search.has_focus_within)
        chat.app.post_message(events.AppFocus())
        await chat.until(lambda: search.has_focus_within)
        await chat.pilot.click("#prompt")
        await chat.until(lambda: closed(chat))
