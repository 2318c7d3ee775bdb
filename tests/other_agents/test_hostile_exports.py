"""Exports of web chats that are larger than they look."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from ragforge_tui.other_agents import chat_exports
from ragforge_tui.other_agents.chat_exports import in_export, read

GOOD = {"id": "a", "mapping": {"x": {"message": {"author": {"role": "user"}, "content": {"parts": ["Hello."]}}}}}
DEEP = '{"id":"d","mapping":' + "[" * 3_000 + "]" * 3_000 + "}"


def zipped(path: Path, *texts: str) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for number, text in enumerate(texts):
            archive.writestr(f"conversations-{number:03}.json", text)
    return path


def test_an_export_that_unpacks_to_too_much_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chat_exports, "MOST_WHOLE", 10_000)
    file = zipped(tmp_path / "export.zip", "x" * 6_000, "x" * 6_000)
    assert file.stat().st_size < 1_000
    with pytest.raises(OSError, match="holds more than"):
        in_export(file)


@pytest.mark.parametrize("bad", ["5", "null", '"text"', "{}", '{"id":"b"}', '{"mapping":{"x":1}, "uuid":7}', DEEP])
def test_one_bad_conversation_does_not_take_the_rest_along(tmp_path: Path, bad: str) -> None:
    file = zipped(tmp_path / "export.zip", "no JSON", "{}", f"[{bad},{json.dumps(GOOD)}]")
    found: dict[str, Any] = {one.id: one for one in in_export(file)}
    if bad != DEEP:
        assert read(found["a"]).first_message == "Hello."
    for one in found.values():
        read(one)
