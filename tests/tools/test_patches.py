"""Patches, moves and deletions by edit_file: all files of a call or none."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from ragforge_tui.shared.errors import ToolError
from ragforge_tui.tools.files.patches import apply_parts, parse_patch
from ragforge_tui.tools.registry import Toolbox
from ragforge_tui.tools.workspace import Place
from tests.tools.conftest import Call

CODE = "def one():\n    total = 0\n    return total\n\n\ndef two():\n    total = 0\n    return total\n"
PATCH = """\
*** Begin Patch
*** Update File: code.py
@@ def two():
-    total = 0
+    total = 2
     return total
*** Update File: old.py
*** Move to: lib/new.py
-x = 1
+x = 2

*** Add File: added.txt
+first
+
+third
*** Delete File: gone.txt
*** End Patch"""


def patched(text: str, patch: str) -> str:
    """The text of a file after a patch of it."""
    (file,) = parse_patch(f"*** Update File: a.py\n{patch}")
    return apply_parts(text, file.parts, "a.py").text


@pytest.fixture
def files(folder: Path) -> Path:
    """A workspace to patch."""
    (folder / "code.py").write_text(CODE)
    (folder / "old.py").write_text("x = 1\ny = 1\n")
    (folder / "old.py").chmod(0o755)
    (folder / "gone.txt").write_text("bye\n")
    return folder


def state(folder: Path) -> dict[str, str]:
    return {path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("tool", ["edit_file", "apply_patch"])
async def test_a_patch_changes_several_files_with_one_diff(files: Path, box: Toolbox, tool: str) -> None:
    prepared = await box.prepare(tool, json.dumps({"patch": PATCH}))
    assert prepared.approval is not None and prepared.approval.question == "Change 4 files?"
    for line in ("+++ b/lib/new.py", "+    total = 2", "+++ b/added.txt", "--- a/gone.txt", "+++ /dev/null", "-bye"):
        assert line in prepared.approval.detail.splitlines()
    outcome = await prepared.run()
    assert outcome.success
    assert state(files) == {
        "code.py": CODE.replace("def two():\n    total = 0", "def two():\n    total = 2"),
        "lib/new.py": "x = 2\ny = 1\n",
        "added.txt": "first\n\nthird\n",
    }
    assert stat.S_IMODE((files / "lib/new.py").stat().st_mode) == 0o755
    assert "Moved old.py to lib/new.py (+1 -1 lines)." in outcome.text and "Deleted gone.txt." in outcome.text
    assert "     7\t    total = 2" in outcome.text
    assert {change["path"] for change in outcome.data["changes"]} == {
        "code.py",
        "lib/new.py",
        "old.py",
        "added.txt",
        "gone.txt",
    }


async def test_one_part_that_does_not_fit_leaves_all_files_alone(files: Path, box: Toolbox) -> None:
    before = state(files)
    for bad in ("-x = 1", "-x = 7"), ("Delete File: gone.txt", "Delete File: nowhere.txt"), ("added.txt", "code.py"):
        with pytest.raises(ToolError):
            await box.prepare("edit_file", json.dumps({"patch": PATCH.replace(*bad)}))
    assert state(files) == before


async def test_a_file_that_cannot_be_written_takes_the_others_back(
    files: Path, box: Toolbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = state(files)
    prepared = await box.prepare("edit_file", json.dumps({"patch": PATCH}))

    def refuse(place: Place) -> None:
        if place.shown == "gone.txt":
            raise ToolError("The disk is gone.")
        (files / place.relative).unlink()

    monkeypatch.setattr("ragforge_tui.tools.files.changes.remove_file", refuse)
    outcome = await prepared.run()
    assert not outcome.success and "The disk is gone" in outcome.text
    assert state(files) == before


async def test_a_file_is_moved_and_deleted_by_simple_arguments(files: Path, box: Toolbox, call: Call) -> None:
    moving = await box.prepare("edit_file", json.dumps({"path": "old.py", "move_to": "new.py"}))
    assert moving.approval is not None and moving.approval.question == "Move old.py to new.py?"
    assert moving.approval.detail == "rename from old.py\nrename to new.py\n"
    assert moving.approval.session_scope == "moving and deleting files in this workspace"
    assert (await moving.run()).text == "Moved old.py to new.py."
    edited = await call("edit_file", path="new.py", old_string="x = 1", new_string="x = 3", move_to="newer.py")
    assert "Moved new.py to newer.py (+1 -1 lines)." in edited.text
    assert (await call("edit_file", path="gone.txt", delete=True)).text == "Deleted gone.txt."
    assert state(files) == {"code.py": CODE, "newer.py": "x = 3\ny = 1\n"}
    with pytest.raises(ToolError, match="already exists"):
        await box.prepare("edit_file", json.dumps({"path": "newer.py", "move_to": "code.py"}))
    with pytest.raises(ToolError, match="old_string is empty"):
        await box.prepare("edit_file", json.dumps({"path": "newer.py"}))


async def test_what_files_and_settings_protect_is_protected_in_a_patch_too(files: Path, box: Toolbox) -> None:
    (files / ".env").write_text("A=1\n")
    patch = "*** Update File: code.py\n@@ def one():\n-    total = 0\n+    total = 1\n*** Add File: conftest.py\n+x\n"
    prepared = await box.prepare("edit_file", json.dumps({"patch": patch}))
    assert prepared.approval is not None
    assert prepared.approval.session_scope == "" and "conftest.py" in prepared.approval.why
    move = await box.prepare("edit_file", json.dumps({"path": ".env", "move_to": "notes.txt"}))
    assert move.approval is not None and move.approval.why and not move.approval.session_key
    with pytest.raises(ToolError, match="outside the workspace"):
        await box.prepare("edit_file", json.dumps({"path": "code.py", "move_to": "../code.py"}))
    with pytest.raises(ToolError, match="was not read"):
        await box.prepare("edit_file", json.dumps({"patch": "*** Update File: .env\n-A=1\n+A=2\n"}))


@pytest.mark.parametrize(
    ("patch", "expected"),
    [
        ("-    total = 0\n+    total = 1", "not unique in a.py: it starts on lines 2, 7"),
        ("@@ def three():\n-x", "No line of a.py below line 0 is 'def three"),
        ("@@ def one():\n-    totals = 0", "The closest lines"),
        (" def one():", "Line 3 of the patch"),
        ("", "changes nothing"),
    ],
)
def test_a_part_that_fits_nowhere_or_twice(patch: str, expected: str) -> None:
    with pytest.raises(ToolError) as refused:
        patched(CODE, patch + ("\n?" if patch.startswith(" ") else ""))
    assert expected in str(refused.value)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_parts_follow_each_other_and_keep_the_line_ends(end: str) -> None:
    text = CODE.replace("\n", end)
    patch = (
        "@@ def one():\n     total = 0\n+    total += 1\n@@ def two():\n-    total = 0\n+    total = 2\n@@\n+# end\n"
    )
    expected = CODE.replace("0\n", "0\n    total += 1\n", 1).replace(
        "def two():\n    total = 0", "def two():\n    total = 2"
    )
    assert patched(text, patch) == (expected + "# end\n").replace("\n", end)


def test_lines_that_differ_in_indentation_are_found() -> None:
    assert "    if total:\n        return 1\n" in patched(
        CODE, "@@ def two():\n     total = 0\n@@\n-return total\n+if total:\n+    return 1\n"
    )
