"""Reading, writing, editing and creating files."""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path

import pytest

from ragforge_tui.settings.schema import ToolSettings
from ragforge_tui.shared.errors import ToolError
from ragforge_tui.shared.redaction import MASK, mask_secrets
from ragforge_tui.tools.base import CallStopped
from ragforge_tui.tools.registry import Toolbox
from tests.support.key_shapes import GITHUB_KEY
from tests.tools.conftest import Call


async def test_lines_are_numbered_and_ranges_cut(folder: Path, call: Call) -> None:
    (folder / "a.txt").write_text("one\ntwo\nthree\n")
    assert (await call("read_file", path="a.txt")).text == "     1\tone\n     2\ttwo\n     3\tthree"
    part = (await call("read_file", path="a.txt", start_line="2", end_line=2.0)).text
    assert part == "     2\ttwo\n[Lines 2 to 2 of 3.]"
    assert "has 3 lines" in (await call("read_file", path="a.txt", start_line=9)).text


async def test_an_empty_file_is_created(folder: Path, call: Call) -> None:
    outcome = await call("create_file", path="empty.txt")
    assert outcome.text == "Created empty.txt (+0 -0 lines)."
    assert (folder / "empty.txt").read_bytes() == b""


async def test_long_files_and_lines_are_cut_with_a_way_on(folder: Path, tmp_path: Path) -> None:
    settings = ToolSettings(max_output_chars=3_000)
    box = Toolbox(folder, settings, undo_dir=tmp_path / "undo", state_dir=tmp_path / "state")
    (folder / "long.txt").write_text("x" * 5_000 + "\n" + "line\n" * 2_000)
    outcome = await (await box.prepare("read_file", '{"path": "long.txt"}')).run()
    assert len(outcome.text) < 3_200
    assert "[line cut, 5000 characters]" in outcome.text
    assert "continue with start_line=" in outcome.text
    shown = outcome.text.count("\n")
    assert outcome.data["lines"] == shown
    assert outcome.full_size == len(f"     1\t{'x' * 2_000} [line cut, 5000 characters]\n") + 2_000 * len(
        "     2\tline\n"
    )


async def test_sizes_and_counts_are_those_of_the_result_not_of_the_file(folder: Path, call: Call) -> None:
    (folder / "a.txt").write_text("line\n" * 10_000)
    read = await call("read_file", path="a.txt", start_line=3, end_line=5)
    assert (read.data["lines"], read.full_size) == (3, len(read.text))
    edited = await call("edit_file", path="a.txt", old_string="line\n" * 10_000, new_string="other\n")
    assert edited.full_size == len(edited.text)
    assert (await call("grep_files", pattern="missing")).data["matches"] == 0
    assert (await call("grep_files", pattern="other")).data["matches"] == 1
    assert (await call("glob_files", pattern="*.none")).data["count"] == 0
    assert (await call("list_directory", path=".")).data["count"] == 1


@pytest.mark.parametrize(
    "content",
    [
        "héllo wörld\nsecond\n".encode(),
        "héllo wörld\nsecond\n".encode("utf-8-sig"),
        b"\xff\xfe" + "héllo wörld\nsecond\n".encode("utf-16-le"),
        b"\xfe\xff" + "héllo wörld\nsecond\n".encode("utf-16-be"),
        "héllo wörld\nsecond\n".encode("latin-1"),
        "héllo wörld\r\nsecond\r\n".encode(),
        "héllo wörld\r\nsecond\r\n".encode("latin-1"),
    ],
)
async def test_encoding_and_line_ends_survive_an_edit(folder: Path, call: Call, content: bytes) -> None:
    (folder / "a.txt").write_bytes(content)
    assert "héllo wörld" in (await call("read_file", path="a.txt")).text
    outcome = await call("edit_file", path="a.txt", old_string="second\n", new_string="2nd\nthird\n")
    assert outcome.success, outcome.text
    reverted = await call("edit_file", path="a.txt", old_string="2nd\nthird", new_string="second")
    assert reverted.success, reverted.text
    assert (folder / "a.txt").read_bytes() == content


async def test_write_keeps_encoding_and_line_ends_of_what_was_there(folder: Path, call: Call) -> None:
    (folder / "a.txt").write_bytes(b"\xef\xbb\xbfone\r\ntwo\r\n")
    await call("write_file", path="a.txt", content="three\n")
    assert (folder / "a.txt").read_bytes() == b"\xef\xbb\xbfthree\r\n"


async def test_binary_is_refused(folder: Path, call: Call) -> None:
    (folder / "a.bin").write_bytes(b"\x7fELF\x00\x01\x02")
    outcome = await call("read_file", path="a.bin")
    assert not outcome.success
    assert "binary" in outcome.text


async def test_missing_file_and_folder(folder: Path, call: Call) -> None:
    (folder / "sub").mkdir()
    assert "does not exist" in (await call("read_file", path="nope.txt")).text
    assert "glob_files" in (await call("read_file", path="sub")).text


async def test_escape_sequences_in_a_file_are_shown_not_sent(folder: Path, box: Toolbox, call: Call) -> None:
    (folder / "evil.txt").write_text("a\x1b]0;owned\x07b\u202ec\n")
    text = (await call("read_file", path="evil.txt")).text
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "a␛]0;owned␇b" in text
    prepared = await box.prepare(
        "write_file", json.dumps({"path": "x.sh", "content": "\x1b[8mrm -rf /\x1b[0m\r\x00\n"})
    )
    assert prepared.approval is not None
    assert "\x1b" not in prepared.approval.detail
    assert "␛[8mrm -rf /" in prepared.approval.detail


async def test_a_file_that_was_not_read_is_edited_where_old_string_is_unique(folder: Path, call: Call) -> None:
    (folder / "a.py").write_text("".join(f"line {number}\n" for number in range(1, 31)))
    outcome = await call("edit_file", path="a.py", old_string="line 20", new_string="twenty\nmore")
    assert outcome.text.splitlines() == [
        "Wrote a.py (+2 -1 lines). It now reads:",
        *(f"    {n}\tline {n}" for n in (17, 18, 19)),
        "    20\ttwenty",
        "    21\tmore",
        *(f"    {n}\tline {n - 1}" for n in (22, 23, 24)),
    ]


async def test_a_file_with_secrets_is_read_before_an_edit_shows_anything_of_it(folder: Path, box: Toolbox) -> None:
    (folder / ".env").write_text("PASSWORD=tulip\n")
    with pytest.raises(ToolError, match="not read in this session") as refused:
        await box.prepare("edit_file", json.dumps({"path": ".env", "old_string": "PASSWORD=t", "new_string": "x"}))
    assert "tulip" not in str(refused.value)


async def test_an_edit_of_a_file_that_changed_shows_its_lines_and_may_be_repeated(
    folder: Path, box: Toolbox, call: Call
) -> None:
    (folder / "a.txt").write_text("one\n")
    edit = {"path": "a.txt", "old_string": "one", "new_string": "two"}
    await call("read_file", path="a.txt")
    (folder / "a.txt").write_text("one and a half\n")
    for name, arguments in (("write_file", '{"path": "a.txt", "content": "x"}'), ("edit_file", json.dumps(edit))):
        with pytest.raises(ToolError, match="changed since it was read") as refused:
            await box.prepare(name, arguments)
    assert "     1\tone and a half" in str(refused.value)
    assert (await call("edit_file", **edit)).success
    assert (folder / "a.txt").read_text() == "two and a half\n"


async def test_a_write_that_is_stopped_too_late_shows_what_it_wrote(
    folder: Path, box: Toolbox, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "a.txt").write_text("one\n")
    await call("read_file", path="a.txt")
    begun, go_on = threading.Event(), threading.Event()
    keep = box.undo.keep

    def slowly(content: bytes, **options: bool) -> str:
        begun.set()
        go_on.wait(30)
        return keep(content)

    monkeypatch.setattr(box.undo, "keep", slowly)
    writing = asyncio.create_task(call("write_file", path="a.txt", content="two\n"))
    await asyncio.to_thread(begun.wait, 30)
    writing.cancel()
    go_on.set()
    with pytest.raises(CallStopped) as stopped:
        await writing
    assert (folder / "a.txt").read_text() == "two\n"
    outcome = stopped.value.outcome
    assert outcome.success and outcome.data["before"] and outcome.data["after"], "an undo has to know of it"


async def test_file_that_changes_while_the_approval_waits_is_left_alone(folder: Path, box: Toolbox, call: Call) -> None:
    (folder / "a.txt").write_text("one\n")
    await call("read_file", path="a.txt")
    prepared = await box.prepare("edit_file", '{"path": "a.txt", "old_string": "one", "new_string": "two"}')
    (folder / "a.txt").write_text("one, by somebody else\n")
    outcome = await prepared.run()
    assert not outcome.success
    assert (folder / "a.txt").read_text() == "one, by somebody else\n"


@pytest.mark.parametrize(
    ("old", "expected"),
    [("x = 1", "not unique in a.py: it starts on lines 1, 3"), ("x = 2", "does not occur"), ("", "empty")],
)
async def test_edit_that_fits_nowhere_or_twice(folder: Path, box: Toolbox, call: Call, old: str, expected: str) -> None:
    (folder / "a.py").write_text("x = 1\n\nx = 1\n")
    await call("read_file", path="a.py")
    with pytest.raises(ToolError, match=expected):
        await box.prepare("edit_file", json.dumps({"path": "a.py", "old_string": old, "new_string": "y"}))


async def test_edit_replaces_where_only_white_space_differs(folder: Path, call: Call) -> None:
    (folder / "a.py").write_text("def f():\n    return 1\n")
    await call("read_file", path="a.py")
    outcome = await call("edit_file", path="a.py", old_string="\treturn 1", new_string="\treturn 2")
    assert (folder / "a.py").read_text() == "def f():\n    return 2\n"
    assert "white space of old_string differed from line 2" in outcome.text


async def test_several_edits_of_a_file_are_made_together_or_not_at_all(folder: Path, box: Toolbox, call: Call) -> None:
    (folder / "a.py").write_text("x = 1\ny = 2\nx = 3\n")
    await call("read_file", path="a.py")
    rest = [{"old_string": "x =", "new_string": "z =", "replace_all": True}]
    outcome = await call("edit_file", path="a.py", old_string="y = 2", new_string="y = 4", edits=rest)
    assert (folder / "a.py").read_text() == "z = 1\ny = 4\nz = 3\n"
    assert "2 places were replaced" in outcome.text
    wrong = {"path": "a.py", "old_string": "y = 4", "new_string": "y"}
    with pytest.raises(ToolError, match="does not occur"):
        missing = [{"old_string": "missing", "new_string": ""}]
        await box.prepare("edit_file", json.dumps(wrong | {"edits": missing}))
    assert (folder / "a.py").read_text() == "z = 1\ny = 4\nz = 3\n"


async def test_edit_shows_a_diff_and_may_follow_itself(folder: Path, box: Toolbox, call: Call) -> None:
    (folder / "a.txt").write_text("".join(f"line {number}\n" for number in range(1, 41)))
    await call("read_file", path="a.txt")
    prepared = await box.prepare("edit_file", '{"path": "a.txt", "old_string": "line 20", "new_string": "twenty"}')
    assert prepared.approval is not None
    assert prepared.approval.kind == "write"
    assert prepared.approval.detail.splitlines() == [
        "--- a/a.txt",
        "+++ b/a.txt",
        "@@ -17,7 +17,7 @@",
        " line 17",
        " line 18",
        " line 19",
        "-line 20",
        "+twenty",
        " line 21",
        " line 22",
        " line 23",
    ]
    outcome = await prepared.run()
    assert outcome.data["diff"] == prepared.approval.detail
    assert (await call("edit_file", path="a.txt", old_string="twenty", new_string="20")).success


async def test_create_fails_when_present_also_in_the_last_moment(folder: Path, box: Toolbox, call: Call) -> None:
    prepared = await box.prepare("create_file", '{"path": "deep/er/a.txt", "content": "mine"}')
    assert (await prepared.run()).success
    with pytest.raises(ToolError, match="already exists"):
        await box.prepare("create_file", '{"path": "deep/er/a.txt", "content": "x"}')
    late = await box.prepare("create_file", '{"path": "b.txt", "content": "mine"}')
    (folder / "b.txt").write_text("theirs")
    assert not (await late.run()).success
    assert (folder / "b.txt").read_text() == "theirs"


async def test_undo_of_writes(folder: Path, box: Toolbox, call: Call) -> None:
    (folder / "a.txt").write_bytes(b"old \xff")
    data = (await call("write_file", path="a.txt", content="new")).data
    box.undo.restore(box.workspace, "a.txt", data["before"], data["after"])
    assert (folder / "a.txt").read_bytes() == b"old \xff"
    box.undo.restore(box.workspace, "a.txt", data["after"], data["before"])
    assert (folder / "a.txt").read_text() == "new"
    created = (await call("create_file", path="b.txt", content="x")).data
    assert created["before"] == ""
    box.undo.restore(box.workspace, "b.txt", created["before"], created["after"])
    assert not (folder / "b.txt").exists()


async def test_undo_leaves_a_file_that_changed_since(folder: Path, box: Toolbox, call: Call) -> None:
    (folder / "a.txt").write_text("old")
    data = (await call("write_file", path="a.txt", content="new")).data
    (folder / "a.txt").write_text("by hand")
    with pytest.raises(ToolError, match="changed since"):
        box.undo.restore(box.workspace, "a.txt", data["before"], data["after"])
    assert (folder / "a.txt").read_text() == "by hand"


async def test_undo_store_notices_damage_and_nonsense(box: Toolbox, tmp_path: Path) -> None:
    digest = box.undo.keep(b"content")
    assert box.undo.keep(b"content") == digest
    assert box.undo.load(digest) == b"content"
    stored = next(path for path in (tmp_path / "undo").rglob("*") if path.is_file())
    assert stored.stat().st_mode & 0o077 == 0
    stored.write_bytes(b"damaged")
    for bad in (digest, "0" * 64, "../../etc/passwd", ""):
        with pytest.raises(ToolError):
            box.undo.load(bad)


async def test_nothing_is_written_when_the_earlier_content_cannot_be_kept(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "undo").write_text("a file where the folder should be")
    box = Toolbox(folder, ToolSettings(), undo_dir=tmp_path / "undo", state_dir=tmp_path / "state")
    (folder / "a.txt").write_text("old")
    outcome = await (await box.prepare("write_file", '{"path": "a.txt", "content": "new"}')).run()
    assert not outcome.success
    assert (folder / "a.txt").read_text() == "old"


async def test_secrets_and_git_are_never_covered_by_a_session_grant(folder: Path, box: Toolbox, call: Call) -> None:
    (folder / ".env").write_text("A=old-secret\n")
    for path, scope in ((".env", ""), (".git/hooks/pre-commit", "writing .git/hooks/pre-commit")):
        prepared = await box.prepare("write_file", json.dumps({"path": path, "content": "x"}))
        assert prepared.approval is not None
        assert prepared.approval.session_scope == scope
    outcome = await call("write_file", path=".env", content="A=new")
    assert "old-secret" not in outcome.text + str(outcome.data)


SECRET_FILE = f"# settings\nKEY={GITHUB_KEY}\nSIZE=1\n"


async def test_a_mask_is_never_written_in_place_of_a_secret(folder: Path, call: Call) -> None:
    (folder / "settings.txt").write_text(SECRET_FILE)
    await call("read_file", path="settings.txt")
    seen = mask_secrets(SECRET_FILE)
    for name, arguments in (
        ("write_file", {"content": seen.replace("SIZE=1", "SIZE=2")}),
        ("edit_file", {"old_string": seen, "new_string": "KEY="}),
        ("edit_file", {"old_string": "SIZE=1", "new_string": f"SIZE=2\nOTHER=ab{MASK}"}),
    ):
        with pytest.raises(ToolError, match="hidden from you"):
            await call(name, path="settings.txt", **arguments)
    with pytest.raises(ToolError, match="hidden from you"):
        await call("create_file", path="new.txt", content=seen)
    assert (folder / "settings.txt").read_text() == SECRET_FILE
    await call("edit_file", path="settings.txt", old_string="SIZE=1", new_string="SIZE=2")
    assert (folder / "settings.txt").read_text() == SECRET_FILE.replace("SIZE=1", "SIZE=2")


async def test_a_file_that_holds_a_mask_itself_can_be_changed(folder: Path, call: Call) -> None:
    (folder / "log.txt").write_text(f"KEY=ab{MASK}\nend\n")
    await call("read_file", path="log.txt")
    await call("edit_file", path="log.txt", old_string=f"KEY=ab{MASK}", new_string=f"TOKEN=ab{MASK}")
    await call("write_file", path="log.txt", content=f"KEY=cd{MASK}\n")
    assert (folder / "log.txt").read_text() == f"KEY=cd{MASK}\n"


async def test_a_command_with_a_mask_is_refused(box: Toolbox) -> None:
    command = json.dumps({"command": f"echo 'KEY=ab{MASK}' > .env"})
    with pytest.raises(ToolError, match="hidden from you"):
        await box.prepare("run_command", command)
    assert await box.prepare_for_user("run_command", command)


MARK = "[… 12 lines left out …]"


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("write_file", {"path": "a.py", "content": f"def f():\n{MARK}\n"}),
        ("write_file", {"path": "new.py", "content": "x = [323 characters left out]\n"}),
        ("create_file", {"path": "new.py", "content": f"{MARK}\n"}),
        ("edit_file", {"path": "a.py", "old_string": "one", "new_string": f"1\n{MARK}\n"}),
        ("edit_file", {"path": "a.py", "old_string": "one", "new_string": "… [8 characters left out] …"}),
    ],
)
async def test_a_text_with_a_mark_of_a_shortened_one_is_refused(
    folder: Path, call: Call, name: str, arguments: dict[str, str]
) -> None:
    (folder / "a.py").write_text("one\ntwo\n")
    await call("read_file", path="a.py")
    with pytest.raises(ToolError, match="Read the file and give the new text in full"):
        await call(name, **arguments)
    assert (folder / "a.py").read_text() == "one\ntwo\n"
    assert not (folder / "new.py").exists()


async def test_a_file_that_holds_such_a_mark_can_still_be_edited(folder: Path, call: Call) -> None:
    (folder / "test_cuts.py").write_text(f"assert cut == '{MARK}'\n")
    await call("read_file", path="test_cuts.py")
    assert (await call("edit_file", path="test_cuts.py", old_string="cut ==", new_string=f"# {MARK}\ncut ==")).success
    assert (await call("write_file", path="test_cuts.py", content=f"assert short == '{MARK}'\n")).success
    source = "note = '[{cut} characters left out]'\n"
    assert (await call("create_file", path="text.py", content=source)).success
