"""Bytes that a change was not asked to touch stay: over encodings, marks, line ends and last lines."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragforge_tui.shared.encoding import decode
from ragforge_tui.shared.errors import ToolError
from ragforge_tui.shared.sanitize import unshown, visible
from ragforge_tui.tools.diff import line_opcodes
from ragforge_tui.tools.files.patches import Part, apply_parts
from ragforge_tui.tools.files.replacing import closest, replace, whole_rewritten
from tests.tools.conftest import Call

WORDS = {
    "utf-8": "naïve café 設定 кнопка",
    "utf-8-sig": "naïve café 設定",
    "utf-16": "設定 Größe",
    "utf-32": "設定 Größe",
    "utf-16-le": "plain text of two bytes each, Größe",
    "cp1252": "Größe “quoted” – 5 € déjà vu",
    "iso8859-15": "œuvre à 5 €",
    "cp1251": "описание кнопки",
    "koi8-r": "описание кнопки",
    "cp932": "説明 表示する能力 ソート",
    "euc-jp": "説明 表示する",
    "gb18030": "说明 显示能力",
    "big5": "說明 顯示能力 功",
    "cp949": "설명 파란색 버튼",
    "iso2022-jp": "説明 表示する",
    "mac-roman": "Größe ‘x’",
}


def by_edit(text: str, lines: list[str], at: int, new: str) -> str:
    return replace(text, lines[at], new, "a").text


def by_patch(text: str, lines: list[str], at: int, new: str) -> str:
    above, below = lines[max(at - 1, 0) : at], lines[at + 1 : at + 2]
    shown = [line.rstrip() for line in above], [line.rstrip() for line in below]
    part = Part(old=[*shown[0], lines[at], *shown[1]], new=[*shown[0], new, *shown[1]])
    return apply_parts(text, [part], "a").text


def by_write(text: str, lines: list[str], at: int, new: str) -> str:
    last = "\n" if text.endswith("\n") else ""
    return whole_rewritten(text, "\n".join([*lines[:at], new, *lines[at + 1 :]]) + last)


@settings(deadline=None, max_examples=150)
@given(
    codec=st.sampled_from(sorted(WORDS)),
    change=st.sampled_from([by_edit, by_patch, by_write]),
    lines=st.lists(
        st.tuples(st.sampled_from(["", "x = 1", "  y", "same", "{}", "end  "]), st.sampled_from(["\n", "\r\n"])),
        min_size=1,
        max_size=8,
    ),
    at=st.integers(0, 7),
    last=st.booleans(),
    new=st.sampled_from(["x = 2", "one\ntwo", ""]),
)
def test_only_the_line_that_was_asked_about_changes(
    codec: str, change: Callable[..., str], lines: list[tuple[str, str]], at: int, last: bool, new: str
) -> None:
    at %= len(lines)
    rows = [(body.replace("{}", WORDS[codec]), end) for body, end in lines]
    rows[at] = ("the line to change", rows[at][1])
    if not last:
        rows[-1] = (rows[-1][0] or "tail", "")
    whole = "".join(body + end for body, end in rows)
    decoded = decode(whole.encode(codec))
    assert decoded is not None
    text, encoding = decoded
    assert encoding.encode(text) == whole.encode(codec)
    end = rows[at][1] or (rows[at - 1][1] if at else "\n")
    wanted = "".join([*(a + b for a, b in rows[:at]), new.replace("\n", end) + rows[at][1]])
    wanted += "".join(a + b for a, b in rows[at + 1 :])
    shown = text.replace("\r\n", "\n").split("\n")[: len(rows)]
    assert encoding.encode(change(text, shown, at, new)) == wanted.encode(codec)


@pytest.mark.parametrize(
    ("raw", "old", "new", "expected"),
    [
        ("{t = “café”}\n".encode(), '{t = "café"}', '{t = "bar"}', "{t = “bar”}\n".encode()),
        ("cafe\u0301 = 1\n".encode(), "café = 1", "café = 2", "cafe\u0301 = 2\n".encode()),
        ("café = 1\n".encode(), "cafe\u0301 = 1", "cafe\u0301 = 2", "café = 2\n".encode()),
        ("a – b … c\r\n".encode(), "a - b ... c", "a - b ... d", "a – b … d\r\n".encode()),
        (
            "un\u00a0deux\u202f: 3\nzwei\n".encode(),
            "un deux : 3\nzwei",
            "un deux : 4\nzwei",
            "un\u00a0deux\u202f: 4\nzwei\n".encode(),
        ),
        ("a\u200bb = 1\n".encode(), "ab = 1", "ab = 2", "a\u200bb = 2\n".encode()),
        # An old Macintosh's file, and one with bytes of two encodings.
        (b"one\rtwo\rthree\r", "one\ntwo", "one\n2\n2b", b"one\r2\r2b\rthree\r"),
        ("é ü ö\n".encode() + b"caf\xe9\nx\n", "x", "ù", "é ü ö\n".encode() + b"caf\xe9\n\xc3\xb9\n"),
        (b"a\r\r\nb\nc\r\n", "b", "B", b"a\r\r\nB\nc\r\n"),
    ],
)
def test_what_looks_alike_is_matched_and_kept(raw: bytes, old: str, new: str, expected: bytes) -> None:
    decoded = decode(raw)
    assert decoded is not None
    assert decoded[1].encode(replace(decoded[0], old, new, "a").text) == expected
    lines = [old.split("\n"), new.split("\n")]
    assert decoded[1].encode(apply_parts(decoded[0], [Part(old=lines[0], new=lines[1])], "a").text) == expected


def test_two_look_alikes_are_refused() -> None:
    with pytest.raises(ToolError, match="not unique"):
        replace("say “a”\nsay ”a“\n", 'say "a"', 'say "b"', "a")


def test_an_accent_is_not_cut_from_its_letter() -> None:
    with pytest.raises(ToolError, match="does not occur"):
        replace("caf\u00e9\n", "cafe", "x", "a")


def test_what_was_shown_by_symbols_is_written_as_it_was() -> None:
    text = "a\x1b[0m \udc90b\r"
    assert unshown(visible(text), text) == text
    assert unshown("<U+0090> ␛", "plain") == "<U+0090> ␛"


@pytest.mark.parametrize(
    ("raw", "seen", "new", "expected"),
    [
        ("# 設定\n名前 = 1\n".encode("cp932"), "# 設定", "追加", "追加\n名前 = 1\n".encode("cp932")),
        ("// настройки кнопки\n".encode("cp1251"), "// настройки кнопки", "// цвет", "// цвет\n".encode("cp1251")),
        ("5 €\n".encode("cp1252"), "5 €", "6 €", "6 €\n".encode("cp1252")),
        (b"x\n\x81\x8d\x9d\x90\xa0\xff\n", "x", "y", b"y\n\x81\x8d\x9d\x90\xa0\xff\n"),
    ],
)
async def test_old_encodings_are_edited_as_they_are(
    folder: Path, call: Call, raw: bytes, seen: str, new: str, expected: bytes
) -> None:
    (folder / "a.txt").write_bytes(raw)
    assert seen in (await call("read_file", path="a.txt")).text
    assert (await call("edit_file", path="a.txt", old_string=seen, new_string=new)).success
    assert (folder / "a.txt").read_bytes() == expected


async def test_a_character_that_the_encoding_lacks_is_refused(folder: Path, call: Call) -> None:
    (folder / "a.txt").write_bytes("x = 1 # кнопка справа\n".encode("cp1251"))
    with pytest.raises(ToolError, match="cp1251, which lacks '設'"):
        await call("edit_file", path="a.txt", old_string="x = 1", new_string="設 = 1")


@pytest.mark.parametrize("size", [60, 190])
@pytest.mark.parametrize("width", [12, 2_000])
def test_the_work_for_an_edit_that_fits_nowhere_is_bounded(size: int, width: int) -> None:
    row = "".join(chr(97 + at % 17) + (" " if at % 7 == 0 else "") for at in range(width))
    lines = [f"{at} {row}" for at in range(500_000 // (width + 8))]
    old = "\n".join(line if at % 10 == 0 else f"z{line}z" for at, line in enumerate((lines * 2)[100 : 100 + size]))
    started = time.process_time()
    for piece in (old, old.replace("\n", " ")):
        with pytest.raises(ToolError, match="does not occur"):
            replace("\n".join(lines), piece, "x", "a")
    assert time.process_time() - started < 4


def test_the_lines_shown_are_the_closest_however_long() -> None:
    text = "".join(f"{at} " + "word " * 900 + f"{at * 7}\n" for at in range(100))
    assert "    43\t42" in closest(text, "42 " + "word " * 900 + "293\n43 other")
    assert len(closest(text, text[:9_000])) < 2_000


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ([str(at) for at in range(9_000)], [str(at) for at in reversed(range(9_000))]),
        (["x"] * 9_000, ["y", *["x"] * 8_000, "z"]),
        ([str(at // 2) for at in range(9_000)], [str(at // 3) for at in range(9_000)]),
    ],
)
def test_a_long_diff_is_bounded_and_right(old: list[str], new: list[str]) -> None:
    started = time.process_time()
    built: list[str] = []
    for tag, i, j, k, m in line_opcodes(old, new):
        built += old[i:j] if tag == "equal" else new[k:m]
    assert built == new
    assert time.process_time() - started < 3
