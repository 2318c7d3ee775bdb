"""A tool added from outside the package: one class and one line, and every part of the program knows it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from ragforge_tui.conversation import ConversationAgent
from ragforge_tui.engine.in_process import InProcessEngine
from ragforge_tui.export.markdown import turn_text
from ragforge_tui.graph import GraphTarget
from ragforge_tui.memory.summaries.offline.extract import extract
from ragforge_tui.settings.schema import Loaded, Paths
from ragforge_tui.shared import tool_calls
from ragforge_tui.shared.events import ToolCallFinished
from ragforge_tui.shared.records import FileAccess, ToolCall, Turn
from ragforge_tui.shared.tool_calls import ShownArgument, ToolInfo, describe_tools
from ragforge_tui.shared.wire import EngineState, Hello
from ragforge_tui.tools import registry
from ragforge_tui.tools.base import Tool, ToolArguments, ToolOutcome
from ragforge_tui.tui.command_registry import Registry
from ragforge_tui.tui.commands import all_commands
from ragforge_tui.tui.dialogs.detail import call_sections
from ragforge_tui.tui.dialogs.help_screen import help_text
from ragforge_tui.tui.sidebar.trace_pane import row_of
from ragforge_tui.tui.transcript.tool_block import ToolBlock
from tests.conftest import EMBEDDED
from tests.support.model_script import Script
from tests.tui.transcript.samples import DARK, called, said, text_of


class ForecastArguments(ToolArguments):
    city: str
    days: int = 1


class Forecast(Tool):
    """Toy tool."""

    info = ToolInfo(
        name="forecast",
        help="forecast the weather",
        main_argument="city",
        shown=(ShownArgument(names=("city",)), ShownArgument(names=("days",), before=" for days: ", muted=True)),
        counted=("day", "days"),
        result="prose",
        verb="forecast {}",
        translations={"fr": "prévu le temps de {}"},
    )
    description = "Forecast the weather of a city."
    arguments = ForecastArguments

    async def run(self, arguments: ForecastArguments) -> ToolOutcome:
        return ToolOutcome(
            text=f"Sun over {arguments.city}.",
            data={"count": arguments.days},
            files=[FileAccess(path="weather.csv", access="read")],
        )


@pytest.fixture(autouse=True)
def added(monkeypatch: pytest.MonkeyPatch) -> None:
    """The one line, taken back after the test."""
    monkeypatch.setattr(registry, "TOOLS", [*registry.TOOLS, Forecast])
    monkeypatch.setattr(tool_calls, "_tools", dict(tool_calls._tools))
    tool_calls.describe_tools([Forecast.info])


@pytest.fixture
def graph_target(embedded_paths: Paths) -> GraphTarget:
    """The embedded graph alone: no dialect can change what a tool is."""
    return EMBEDDED


def a_call() -> ToolCall:
    return called("forecast", {"city": "Lyon", "days": 3}, {"text": "Sun over Lyon.", "count": 3})


def a_turn(call: ToolCall) -> Turn:
    message = msgspec.structs.replace(said(""), uuid="a", role="assistant", tool_calls=[call])
    return Turn(turn_index=1, messages=[said("What will the weather be?"), message])


async def test_a_model_is_offered_the_tool_and_runs_it(loaded: Loaded, server: Script) -> None:
    call: dict[str, Any] = {"name": "forecast", "arguments": {"city": "Lyon", "days": 2}}
    server.script([{"tool_calls": [call]}, {"text": "It will be sunny."}])
    async with ConversationAgent(loaded) as agent:
        conversation = await agent.create_conversation()
        finished = [e.call async for e in conversation.stream("The weather?") if isinstance(e, ToolCallFinished)]
    schemas = {tool["function"]["name"]: tool["function"] for tool in server.chats()[0]["tools"]}
    assert schemas["forecast"]["description"] == Forecast.description
    assert set(schemas["forecast"]["parameters"]["properties"]) == {"city", "days", "reason"}
    assert [(one.success, one.files) for one in finished] == [(True, [FileAccess(path="weather.csv", access="read")])]
    assert server.chats()[1]["messages"][-1]["content"] == "Sun over Lyon."


async def test_the_screen_gets_the_description_with_the_greeting(
    loaded: Loaded, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = InProcessEngine(loaded)
    state = await engine.request(Hello())
    await engine.close()
    coded = msgspec.json.decode(msgspec.json.encode(state), type=EngineState)
    assert Forecast.info in coded.tools
    monkeypatch.setattr(tool_calls, "_tools", {})  # as in the screen's own process
    describe_tools(coded.tools)
    assert row_of(1, 1, a_call()).argument == "Lyon for days: 3"


def test_transcript_trace_and_call_window_show_its_calls() -> None:
    (line,) = text_of(ToolBlock(1, a_call(), gap=0).draw(80, DARK))
    assert "forecast" in line and "Lyon for days: 3" in line and "3 days" in line
    assert row_of(1, 1, a_call()).argument == "Lyon for days: 3"
    cut = msgspec.structs.replace(a_call(), arguments='{"days": 3, "city": "Lyon", "unit": "cel')
    assert row_of(1, 1, cut).argument == "Lyon"
    assert [section.kind for section in call_sections(a_call()) if section.title == "Result"] == ["prose"]


@pytest.mark.parametrize(
    ("language", "told"),
    [("en", "Forecast `Lyon` (Sun over Lyon.)"), ("fr", "Prévu le temps de `Lyon`"), ("de", "Forecast(Lyon) benutzt")],
)
def test_summaries_without_a_model_tell_what_it_did(language: str, told: str) -> None:
    assert told in extract([a_turn(a_call())], language=language).actions_summary


def test_exports_and_help_name_it() -> None:
    assert "<code>forecast</code> Lyon" in turn_text(a_turn(a_call()))
    help_lines = help_text(Registry(all_commands()), {}).plain.splitlines()
    assert any(line.split() == ["forecast", "forecast", "the", "weather"] for line in help_lines)


def test_a_call_of_an_unknown_tool_is_shown_by_its_usual_arguments() -> None:
    gone = called("removed_tool", {"depth": 2, "path": "src"}, {"text": "ok"})
    assert row_of(1, 1, gone).argument == "src"
    assert row_of(1, 1, called("removed_tool", {"city": "Lyon"}, {"text": "ok"})).argument == "Lyon"
    assert tool_calls.main_argument(gone) == "src"
    assert "removed_tool(src)" in extract([a_turn(gone)], language="en").actions_summary


def test_no_other_module_lists_tools_by_name() -> None:
    """The offline assistant plays a model, which knows tools by name; undo stores its own call.

    Hooks know them by the names of another program, and rules are written by users.
    """
    package = Path(registry.__file__).parents[1]
    names = {kind.info.name for kind in registry.TOOLS}
    by_name = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if any(f'"{name}"' in path.read_text("utf-8") for name in names)
    }
    assert {path for path in by_name if not path.startswith(("tools/", "llm/offline"))} == {
        "conversation/hooks.py",
        "shared/rules.py",
    }
