"""Earlier prompts: their file, who may see them, and the search for one."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

import msgspec
import pytest

from ragforge_tui.shared.records import Conversation
from ragforge_tui.tui.prompt.history import FILE_NAME, MAX_ENTRY_CHARS, MAX_FILE_BYTES, Entry, History
from tests.support.fake_engine import conversation

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
        file = tmp_path / FILE_NAME
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
        assert (tmp_path / FILE_NAME).stat().st_size <= MAX_FILE_BYTES + MAX_ENTRY_CHARS + 200
        kept = [int(text.partition(" ")[0]) for text in texts(history)]
        assert kept == list(range(29, 29 - len(kept), -1)) and len(kept) >= 8
        assert texts(watching) == texts(history), "a terminal that saw the file before it was cut"

    def test_a_message_that_is_too_long_is_not_kept(self, tmp_path: Path) -> None:
        History(tmp_path, "/w").add(Entry("x" * (MAX_ENTRY_CHARS + 1)))
        assert not (tmp_path / FILE_NAME).exists()

    def test_only_its_owner_can_read_it(self, tmp_path: Path) -> None:
        History(tmp_path, "/w").add(Entry("mine"))
        file = tmp_path / FILE_NAME
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

    def test_a_change_is_written_once(self, folder: Path) -> None:
        lines = (folder / FILE_NAME).read_bytes().splitlines()
        for _ in range(3):
            history = in_conversation(folder, PRIVATE)
            history.changed(msgspec.structs.replace(PRIVATE, title="another title"))
        assert (folder / FILE_NAME).read_bytes().splitlines() == lines
