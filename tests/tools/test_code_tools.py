"""The code tools on a scripted source: what the model is told, what is stored of a call, names that several have."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from ragforge_tui.settings.schema import ToolSettings
from ragforge_tui.shared.code_records import BrainHit, Scope, ScopeTalk, UnresolvedName
from ragforge_tui.shared.code_views import ScopeCode, ScopeLink, ScopeView
from ragforge_tui.shared.errors import GraphError, ToolError
from ragforge_tui.tools.base import ToolOutcome
from ragforge_tui.tools.data_text import PAGE_CHARS
from ragforge_tui.tools.registry import Toolbox
from tests.support.fake_code import SCOPES, SEND, scope

CODE_TOOLS = [
    "search_functions",
    "get_function_code",
    "get_dependents",
    "brain_search",
]
DAY = datetime(2026, 11, 2, tzinfo=UTC)
HITS = [
    BrainHit(kind="code", title="Session.send", file="src/a.py", start_line=10, end_line=40, snippet="sends"),
    BrainHit(kind="section", title="Retries", file="docs/x.md", start_line=3, end_line=30),
    BrainHit(kind="turn", title="Retries", conversation_id="c" * 36, turn_index=12, date=DAY, snippet="twice </found>"),
    BrainHit(kind="summary", title="Leases", conversation_id="d" * 36, turn_index=3, end_turn_index=8, date=DAY),
    BrainHit(kind="topic", title="locks"),
]


class FakeCode:
    """A `CodeSource` of the scripted workspace."""

    def __init__(self) -> None:
        self.ready = True
        self.coming = False
        self.waited = ""
        self.asked: list[tuple[Any, ...]] = []
        self.text = ScopeCode(text=SEND, first_line=41)
        self.error: GraphError | None = None

    async def pending(self) -> str:
        return self.waited

    async def search(
        self, query: str, *, also: Sequence[str] = (), path: str = "", kind: str = "", limit: int = 10
    ) -> list[Scope]:
        self.asked.append((query, path, kind, limit, *also))
        if self.error is not None:
            raise self.error
        return [one for one in SCOPES if query in one.qualified_name]

    async def named(self, name: str) -> list[Scope]:
        return [one for one in SCOPES if name in (one.name, one.qualified_name)]

    async def code(self, scope: Scope) -> ScopeCode:
        return self.text

    async def view(self, scope: Scope) -> ScopeView:
        talk = ScopeTalk(
            conversation_id="c" * 36, title="Retries", turn_index=4, message_id="m", timestamp=DAY, text="Why twice?"
        )
        links = await self.dependents(scope)
        return ScopeView(scope=scope, code=self.text, members=[SCOPES[3]], callers=links, callees=[], talks=[talk])

    async def dependents(self, scope: Scope, *, depth: int = 1) -> list[ScopeLink]:
        near = ScopeLink(scope=SCOPES[2], kind="calls", line=17, confidence=0.7)
        return [near, ScopeLink(scope=SCOPES[1], kind="uses", line=60, depth=2)][:depth]

    async def dependencies(self, scope: Scope, *, depth: int = 1) -> tuple[list[ScopeLink], list[UnresolvedName]]:
        links = [ScopeLink(scope=SCOPES[3], kind="calls", line=45)]
        return links, [UnresolvedName(source="c1", name="log.warning", kind="calls")]

    async def brain_search(self, query: str, *, also: Sequence[str] = (), limit: int = 10) -> list[BrainHit]:
        self.asked.append((query, limit, *also))
        return HITS[:limit]


@pytest.fixture
def source() -> FakeCode:
    """The source of the tools."""
    return FakeCode()


@pytest.fixture
def toolbox(tmp_path: Path, source: FakeCode) -> Toolbox:
    """A toolbox with the code tools."""
    return Toolbox(tmp_path, ToolSettings(), undo_dir=tmp_path, state_dir=tmp_path, code=source)


async def run(toolbox: Toolbox, tool: str, **arguments: Any) -> ToolOutcome:
    """Run a call."""
    return await (await toolbox.prepare(tool, json.dumps(arguments))).run()


def lines(outcome: ToolOutcome) -> list[str]:
    """The lines between the marks."""
    return outcome.text.split("<code>\n")[1].split("\n</code>")[0].split("\n")


def offered(toolbox: Toolbox) -> list[str]:
    return [each["function"]["name"] for each in toolbox.schemas() if each["function"]["name"] in CODE_TOOLS]


def test_they_are_offered_once_the_workspace_has_an_index(toolbox: Toolbox, source: FakeCode, tmp_path: Path) -> None:
    assert offered(toolbox) == CODE_TOOLS
    source.ready = False
    assert offered(toolbox) == []
    assert set(CODE_TOOLS) <= set(toolbox.names())
    without = Toolbox(tmp_path, ToolSettings(), undo_dir=tmp_path, state_dir=tmp_path)
    assert not set(CODE_TOOLS) & set(without.names())


async def test_a_search_tells_place_kind_signature_and_first_line(toolbox: Toolbox, source: FakeCode) -> None:
    outcome = await run(toolbox, "search_functions", query="Session", path="src", kind="method", limit=3)
    assert source.asked == [("Session", "src", "method", 3)]
    assert lines(outcome)[0] == (
        "src/session.py:41-48 method Session.send · async def send(self, text: str) -> int — "
        "Send a message, at most twice."
    )
    assert outcome.data["matches"] == 3
    assert [(file.path, file.access) for file in outcome.files] == [("src/session.py", "search")]


async def test_code_comes_numbered_and_names_its_scope(toolbox: Toolbox) -> None:
    outcome = await run(toolbox, "get_function_code", name="Session.send")
    assert lines(outcome)[0] == "    41\tasync def send(self, text: str) -> int:"
    assert outcome.data["scopes"] == ["c1"]
    assert [(file.path, file.access) for file in outcome.files] == [("src/session.py", "read")]
    plain = await run(toolbox, "get_function_code", name="Session.send", line_numbers=False)
    assert lines(plain)[0] == "async def send(self, text: str) -> int:"


async def test_a_long_text_comes_in_pages_and_cannot_close_its_mark(toolbox: Toolbox, source: FakeCode) -> None:
    source.text = ScopeCode(text="x = '</code>'\n" * PAGE_CHARS, first_line=0, stale="The file has changed.")
    first = await run(toolbox, "get_function_code", name="send")
    assert first.text.count("</code>") == 1
    assert "continue with offset=" in first.text
    assert first.text.endswith("[The file has changed.]")
    offset = int(first.text.split("offset=")[1].split(".")[0])
    second = await run(toolbox, "get_function_code", name="send", offset=offset)
    assert lines(second)[0].startswith("x = ")


async def test_several_scopes_of_one_name_are_listed(toolbox: Toolbox, monkeypatch: pytest.MonkeyPatch) -> None:
    twin = scope("c9", "Other.send", "method", "src/other.py", 1, 9)
    monkeypatch.setattr("tests.tools.test_code_tools.SCOPES", [*SCOPES, twin])
    outcome = await run(toolbox, "get_function_code", name="send")
    assert outcome.text.startswith("2 scopes have this name; repeat the call with path:name of one.")
    assert [line.split(" ")[0] for line in lines(outcome)] == ["src/session.py:41-48", "src/other.py:1-9"]
    assert "scopes" not in outcome.data


async def test_an_unknown_name_is_an_error_that_says_what_to_do(toolbox: Toolbox) -> None:
    outcome = await run(toolbox, "get_dependents", name="nothing")
    assert not outcome.success
    assert "search_functions" in outcome.text


async def test_references_tell_kind_place_confidence_and_depth(toolbox: Toolbox) -> None:
    callers = await run(toolbox, "get_dependents", name="Session.send", depth=2)
    assert lines(callers)[1:] == [
        "src/app.py:17 calls function main, 70% sure",
        "src/session.py:60 uses class Session, at depth 2",
    ]
    callees = await run(toolbox, "get_dependencies", name="Session.send")
    assert lines(callees)[1:] == [
        "src/session.py:45 calls method Session.open",
        "Outside the workspace or unresolved: log.warning.",
    ]


async def test_details_tell_members_counts_and_conversations(toolbox: Toolbox) -> None:
    outcome = await run(toolbox, "get_function_details", name="Session.send")
    text = "\n".join(lines(outcome))
    assert "Referred to by 1; refers to 0." in text
    assert "src/session.py:20-39 method Session.open" in text
    assert "[t4] of conversation cccccccc (Retries), 2026-11-02: Why twice?" in text


async def test_each_hit_of_brain_search_tells_what_and_where_it_is(toolbox: Toolbox) -> None:
    outcome = await run(toolbox, "brain_search", query="retries")
    found = outcome.text.split("<found>\n")[1].split("\n</found>")[0].split("\n")
    assert found == [
        "code src/a.py:10-40 Session.send: sends",
        "section docs/x.md:3-30 Retries",
        'turn [t12] of "Retries" cccccccc 2026-11-02: twice <\u200b/found>',
        'summary t3-t8 of "Leases" dddddddd 2026-11-02',
        "topic locks",
    ]
    assert [(file.path, file.access) for file in outcome.files] == [("src/a.py", "search"), ("docs/x.md", "search")]


async def test_a_failed_source_is_reported_to_the_model(toolbox: Toolbox, source: FakeCode) -> None:
    source.error = GraphError("The graph is unreachable.", todo="")
    outcome = await run(toolbox, "search_functions", query="x")
    assert outcome.error is not None
    assert outcome.error.startswith("The graph is unreachable.")
    with pytest.raises(ToolError):
        await toolbox.prepare("search_functions", "{}")


async def test_other_wordings_reach_both_searches(toolbox: Toolbox, source: FakeCode) -> None:
    await run(toolbox, "search_functions", query="Session", also=["connection", "client"])
    await run(toolbox, "brain_search", query="Session", also=["connection"])
    assert source.asked == [("Session", "", "", 10, "connection", "client"), ("Session", 10, "connection")]
