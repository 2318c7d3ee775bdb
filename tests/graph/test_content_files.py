"""Files of texts: appended by several processes, checked when they are read, and honest about what is lost."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragforge_tui.graph.content_files import FILE, ContentFiles, LostText, Reference, Text

ROOT = Path(__file__).parents[2]
WRITER = """
import asyncio, sys
from pathlib import Path
from ragforge_tui.graph.content_files import ContentFiles, Text

async def main(root, name):
    files = ContentFiles(Path(root), writes=True)
    for n in range(150):
        texts = [Text(name, "content", f"{name} {n} " + "x" * (n * 40)), Text(name, "reasoning", f"{name} thinks {n}")]
        for reference in await files.append("talk", texts):
            print(reference.encode())

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.fixture
def files(tmp_path: Path) -> ContentFiles:
    return ContentFiles(tmp_path / "contents", writes=True)


async def append(files: ContentFiles, *texts: str) -> list[str]:
    """Store texts of one conversation; their references as the graph has them."""
    found = await files.append("talk", [Text("owner", "content", text) for text in texts])
    return [reference.encode() for reference in found]


async def read(files: ContentFiles, reference: str) -> str | LostText:
    return (await files.read([reference]))[reference]


async def loss(files: ContentFiles, reference: str) -> str:
    text = await read(files, reference)
    assert isinstance(text, LostText)
    return text.loss


def path_of(files: ContentFiles) -> Path:
    return files.root / "talk" / FILE


@given(texts=st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), min_size=1, max_size=8))
async def test_any_text_comes_back(tmp_path_factory: pytest.TempPathFactory, texts: list[str]) -> None:
    files = ContentFiles(tmp_path_factory.mktemp("any"), writes=True)
    references = await append(files, *texts)
    found = await files.read(references)
    assert [found[reference] for reference in references] == texts


async def test_only_the_user_can_read_the_files(files: ContentFiles) -> None:
    await append(files, "secret")
    assert path_of(files).stat().st_mode & 0o777 == 0o600
    assert {folder.stat().st_mode & 0o777 for folder in (files.root, path_of(files).parent)} == {0o700}


async def test_a_repeated_write_adds_nothing(files: ContentFiles) -> None:
    first = await append(files, "one", "two")
    size = path_of(files).stat().st_size
    assert await append(files, "two", "one") == first[::-1]
    assert path_of(files).stat().st_size == size


async def test_a_removed_conversation_can_be_written_again(files: ContentFiles) -> None:
    await append(files, "one", "two")
    await files.remove("talk")
    [reference] = await append(files, "two")
    assert await read(files, reference) == "two"


def test_processes_append_to_one_conversation(tmp_path: Path) -> None:
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path), name],
            stdout=subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
        )
        for name in ("ada", "bob")
    ]
    references = [line for writer in writers for line in writer.communicate()[0].decode().split("\n") if line]
    assert [writer.returncode for writer in writers] == [0, 0]
    files = ContentFiles(tmp_path)
    assert len(set(references)) == 600
    assert asyncio.run(files.lost(references)) == {}
    texts = asyncio.run(files.read(references))
    assert texts[references[149 * 2]] == "ada 149 " + "x" * 5960


async def test_a_line_that_a_crash_cut_off_is_never_read(files: ContentFiles) -> None:
    [before] = await append(files, "before")
    with path_of(files).open("ab") as file:
        file.write(b'{"id":"x","kind":"content","length":9,"sha2')
    again = ContentFiles(files.root, writes=True)
    [after] = await append(again, "after")
    assert [await read(again, before), await read(again, after)] == ["before", "after"]


async def test_a_changed_byte_loses_one_text(files: ContentFiles) -> None:
    references = await append(files, "first text", "second text", "third text")
    path = path_of(files)
    path.write_bytes(path.read_bytes().replace(b"second", b"sedond"))
    assert await loss(files, references[1]) == "changed"
    assert [await read(files, references[0]), await read(files, references[2])] == ["first text", "third text"]
    assert list(await files.lost(references)) == [references[1]]


async def test_a_file_that_was_cut_off_loses_its_end(files: ContentFiles) -> None:
    first, last = await append(files, "first text", "last text")
    path = path_of(files)
    path.write_bytes(path.read_bytes()[:-20])
    assert await loss(files, last) == "changed"
    assert await read(files, first) == "first text"
    [new] = await append(files, "new text")
    assert await read(files, new) == "new text"


async def test_a_changed_line_end_loses_nothing(files: ContentFiles) -> None:
    references = await append(files, "first text", "second text")
    path = path_of(files)
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    [new] = await append(files, "new text")
    texts = [await read(files, reference) for reference in (*references, new)]
    assert texts == ["first text", "second text", "new text"]


async def test_texts_are_found_in_a_file_that_was_written_again(files: ContentFiles) -> None:
    references = await append(files, "first", "second", "third")
    path = path_of(files)
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[::-1]))
    texts = await files.read(references)
    assert [texts[reference] for reference in references] == ["first", "second", "third"]


async def test_a_missing_file_is_told_from_another_machine(files: ContentFiles, tmp_path: Path) -> None:
    [reference] = await append(files, "text")
    await files.remove("talk")
    assert await loss(files, reference) == "missing"
    other = ContentFiles(tmp_path / "other", writes=True)
    other.places = {files.folder_id: "laptop: /home/ada/contents"}
    lost = await read(other, reference)
    assert isinstance(lost, LostText)
    assert lost.loss == "elsewhere"
    assert "laptop: /home/ada/contents" in lost.placeholder("content")


async def test_a_copied_folder_is_read_on_another_machine(files: ContentFiles, tmp_path: Path) -> None:
    [reference] = await append(files, "text")
    other = ContentFiles(tmp_path / "other", writes=True)
    await append(other, "own")
    path_of(other).write_bytes(path_of(files).read_bytes())
    assert await read(other, reference) == "text"


async def test_an_unusual_id_stays_within_the_folder(files: ContentFiles) -> None:
    [reference] = await files.append("../../escape", [Text("owner", "content", "text")])
    assert await read(files, reference.encode()) == "text"
    assert not (files.root.parent.parent / "escape").exists()
    assert len(await files.folders()) == 1


async def test_files_in_use_are_not_removed(files: ContentFiles) -> None:
    [reference] = await append(files, "text")
    other = ContentFiles(files.root)
    assert not other.try_alone()
    other.close()
    files.close()
    assert other.try_alone()
    other.close()
    assert await read(files, reference) == "text"


def test_a_reference_survives_its_form_in_the_graph() -> None:
    reference = Reference("f", "c", 3, 9, "digest", 4)
    assert Reference.decode(reference.encode()) == reference
