"""What is known of the servers of models is one file for all chats."""

from __future__ import annotations

from pathlib import Path

from ragforge_tui.conversation.model_windows import ModelWindows
from ragforge_tui.llm.functions import FunctionModel


def model(name: str) -> FunctionModel:
    return FunctionModel(lambda messages: "", name=name, context_window=32_000)


def test_chats_that_learn_at_once_lose_nothing_of_each_other(tmp_path: Path) -> None:
    chats = [ModelWindows(tmp_path / "windows.json") for _ in range(4)]
    for number, windows in enumerate(chats):
        windows.learn(model(f"learned {number}"), 4_000 + number, named=True)
        windows.state(model(f"stated {number}"), 8_000 + number)
        windows.refuse(model(f"refused {number}"), {f"option:{number}"})
    later = ModelWindows(tmp_path / "windows.json")
    for number in range(4):
        assert later.of(model(f"learned {number}")) == 4_000 + number
        assert later.stated(model(f"stated {number}")) == 8_000 + number
        assert later.refused(model(f"refused {number}")) == {f"option:{number}"}
    assert not later.forget(model("refused 1"))
    assert not ModelWindows(tmp_path / "windows.json").refused(model("refused 1")), "choosing a model again forgets it"


def test_what_cannot_be_written_holds_for_this_chat(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    windows = ModelWindows(tmp_path / "file" / "windows.json")
    windows.learn(model("m"), 4_000, named=False)
    assert windows.of(model("m")) == 4_000
