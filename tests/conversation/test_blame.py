"""`blame` over a long story: many turns, commits, undo, a rebase, a formatter and hand edits, line by line."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from ragforge_tui.conversation import ConversationAgent
from ragforge_tui.conversation.blame import blame
from ragforge_tui.conversation.conversation import Conversation
from ragforge_tui.graph import Graph, Store
from ragforge_tui.settings.schema import Loaded
from ragforge_tui.shared.requests.work import BlamedLines
from tests.support.model_script import Script
from tests.support.repositories import git, repository


class Story:
    """A conversation that changes files of a repository. Each line ends with who writes it: ``# t3``, ``# hand``."""

    def __init__(self, conversation: Conversation, server: Script, folder: Path) -> None:
        self.conversation = conversation
        self.folder = folder
        self._server = server

    async def _turn(self, number: int, *calls: tuple[str, dict[str, Any]]) -> None:
        tools = [{"name": name, "arguments": arguments} for name, arguments in calls]
        self._server.script([{"tool_calls": [tool]} for tool in tools] + [{"text": "Done."}])
        answer = await self.conversation.send_message(f"Turn {number}")
        assert answer.turn_index == number
        assert all(call.success for call in answer.tool_calls), [call.result for call in answer.tool_calls]

    async def write(self, number: int, path: str, *lines: str) -> None:
        await self._turn(number, ("write_file", {"path": path, "content": "".join(f"{line}\n" for line in lines)}))

    async def edit(self, number: int, path: str, old: str, *new: str) -> None:
        """A turn that replaces a line, given without its end, by lines."""
        text = (self.folder / path).read_text()
        (line,) = [line for line in text.split("\n") if line.strip().startswith(old)]
        change = {"path": path, "old_string": line, "new_string": "\n".join(new)}
        await self._turn(number, ("read_file", {"path": path}), ("edit_file", change))

    async def run(self, number: int, command: str) -> None:
        await self._turn(number, ("run_command", {"command": command}))

    async def undo(self, number: int, turn: int) -> None:
        assert await self.conversation.undo(turn) == number
        await self.conversation.wait_idle()

    def by_hand(self, path: str, old: str, *new: str) -> None:
        """An edit in the user's editor: replace the line that starts with `old`."""
        lines = (self.folder / path).read_text().split("\n")
        at = next(n for n, line in enumerate(lines) if line.strip().startswith(old))
        (self.folder / path).write_text("\n".join([*lines[:at], *new, *lines[at + 1 :]]))


async def lines_of(store: Store, folder: Path, path: str) -> list[tuple[str, BlamedLines]]:
    texts = (folder / path).read_text().splitlines()
    found = await blame(store, folder, path, 0)
    spans = [lines for lines in found.lines for _ in range(lines.first, lines.last + 1)]
    return list(zip(texts, spans, strict=True))


@pytest.mark.slow
async def test_fifty_lines_of_thirty_turns(loaded: Loaded, graph: Graph, server: Script) -> None:
    folder = repository(Path(loaded.workspace))
    store = Store(graph)
    async with ConversationAgent(loaded, approve_all=True) as agent:
        conversation = await agent.create_conversation()
        t = Story(conversation, server, folder)
        await t.write(1, "app.py", *(f"app_{n} = {n}  # t1" for n in range(14)))
        await t.edit(2, "app.py", "app_3 ", "app_3 = 33  # t2", "more = 3  # t2")
        await t.write(3, "util.py", *(f"util_{n} = {n}  # t3" for n in range(17)))
        await t.edit(4, "util.py", "util_5 ", "util_5 = 55  # t4")
        await t.run(5, "git add . && git commit -qm 'First, of four turns'")
        t.by_hand("app.py", "app_7 ", "app_7 = 77  # hand", "mine = 7  # hand")
        await t.edit(6, "app.py", "app_8 ", "app_8 = 88  # t6", "next = 8  # t6")
        await t.edit(7, "util.py", "util_2 ", "util_2 = 22  # t7")
        await t.edit(8, "app.py", "app_1 ", "app_1 = 'undone'  # t8", "gone = 1  # t8")
        await t.undo(9, 8)
        await t.edit(10, "app.py", "app_10 ", "app_10 = 100  # t10")
        git(folder, "commit", "-qam", "Second, by hand")
        await t.write(11, "notes.md", *(f"note {n}  # t11" for n in range(13)))
        await t.edit(12, "notes.md", "note 4 ", "note 4, longer  # t12", "note 4 and a half  # t12")
        await t.edit(13, "util.py", "util_9 ", "util_9 = 99  # t13")
        await t.edit(14, "app.py", "app_5 ", "app_5 = 'five'  # t14")
        await t.run(15, "sed -i -e 's/^/    /; s/ = /=/' -e 's/app_0=0  # t1/app_0 = None  # command/' app.py util.py")
        await t.edit(16, "util.py", "util_7", "    util_7=77  # t16")
        await t.run(17, "git add . && git commit -qm 'Third, with a formatter'")
        await t.edit(18, "app.py", "more", "    more=33  # t18", "    most=333  # t18")
        t.by_hand("notes.md", "note 9 ", "note 9 in other words  # hand", "note 10  # hand")
        git(folder, "commit", "-qam", "Fourth, by hand")
        await t.run(19, "git checkout -qb side")
        await t.edit(20, "util.py", "util_0", "    util_0='side'  # t20")
        await t.run(21, "git commit -qam 'Fifth, on the side'")
        await t.run(22, "git checkout -q main")
        await t.edit(23, "app.py", "app_11", "    app_11=111  # t23")
        git(folder, "commit", "-qam", "Sixth, by hand on main")
        await t.run(24, "git checkout -q side && git rebase -q main")
        await t.edit(25, "util.py", "util_11", "    util_11=1111  # t25")
        git(folder, "mv", "util.py", "tools.py")
        await t.edit(26, "tools.py", "util_4", "    util_4=44  # t26")
        await t.edit(27, "notes.md", "note 0 ", "note 0, at last  # t27")
        await t.edit(28, "notes.md", "note 1 ", "note 1, redone  # t28")
        await t.undo(29, 28)
        await t.undo(30, 29)
        t.by_hand("notes.md", "note 2 ", "note 2, mine  # hand")
        uuid = conversation.record.uuid

    lines = [line for path in ("app.py", "tools.py", "notes.md") for line in await lines_of(store, folder, path)]
    assert len(lines) == 50
    writers = {text: f"t{found.turn.turn_index}" if found.turn else "nobody" for text, found in lines}
    assert writers == {text: re.sub("^hand$|^command$", "nobody", text.rpartition("# ")[2]) for text in writers}
    assert all(found.turn is None or found.turn.conversation_id == uuid for _, found in lines)
    commits = {
        text.strip().rpartition("  # ")[0]: (found.commit.subject, found.committed_by and found.committed_by.turn_index)
        for text, found in lines
        if found.commit
    }
    assert commits["app_1=1"] == commits["app_3=33"] == ("First, of four turns", 5)
    assert commits["app_7=77"] == commits["app_8=88"] == ("Second, by hand", None)
    assert commits["util_9=99"] == commits["util_7=77"] == ("Third, with a formatter", 17)
    assert commits["more=33"] == ("Fourth, by hand", None)
    assert commits["util_0='side'"] == ("Fifth, on the side", 24), "the rebase made it again"
    assert commits["app_11=111"] == ("Sixth, by hand on main", None)
    assert "util_11=1111" not in commits, "not committed"
