"""Functions as tools: schema and description from signature and docstring, arguments, results, errors, approval."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import threading
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import pytest

from ragforge_tui.settings.schema import ToolSettings
from ragforge_tui.shared.errors import ToolError
from ragforge_tui.shared.tool_calls import tool_info
from ragforge_tui.tools.base import Tool, ToolArguments, ToolOutcome
from ragforge_tui.tools.functions import tool, tool_of
from ragforge_tui.tools.registry import Toolbox


@dataclasses.dataclass
class Line:
    item: str
    count: int = 1


class Place(msgspec.Struct):
    city: str


def toolbox(folder: Path, *given: Any, **settings: Any) -> Toolbox:
    folder.mkdir(exist_ok=True)
    return Toolbox(
        folder,
        ToolSettings(**settings),
        undo_dir=folder / "undo",
        state_dir=folder / "state",
        added=[tool_of(each) for each in given],
    )


def parameters(box: Toolbox, name: str) -> dict[str, Any]:
    (schema,) = [each["function"] for each in box.schemas() if each["function"]["name"] == name]
    found: dict[str, Any] = schema["parameters"]
    return found


async def called(box: Toolbox, name: str, **arguments: Any) -> ToolOutcome:
    return await (await box.prepare(name, json.dumps(arguments))).run()


async def test_signature_and_docstring_become_the_schema(tmp_path: Path) -> None:
    def forecast(
        city: str,
        days: Annotated[int, "How many days"] = 1,
        unit: Literal["c", "f"] = "c",
        places: list[Place] | None = None,
        counts: dict[str, int] = {},  # noqa: B006
    ) -> str:
        """Forecast the weather.

        Asks the service.

        Args:
            city: The city,
                in English.
            days: Not used: the annotation says it.
            unit (str): Unit of the temperature.

        Returns:
            A sentence.
        """
        return f"{city} {days} {unit} {places} {counts}"

    box = toolbox(tmp_path, forecast)
    (schema,) = [each["function"] for each in box.schemas() if each["function"]["name"] == "forecast"]
    assert schema["description"] == "Forecast the weather.\n\nAsks the service."
    found = parameters(box, "forecast")
    assert found["required"] == ["city"]
    assert found["properties"]["city"] == {"type": "string", "description": "The city, in English."}
    assert found["properties"]["days"] == {"type": "integer", "description": "How many days", "default": 1}
    assert found["properties"]["unit"]["enum"] == ["c", "f"]
    assert found["properties"]["unit"]["description"] == "Unit of the temperature."
    assert found["properties"]["places"]["items"]["properties"] == {"city": {"type": "string"}}
    assert found["properties"]["counts"]["additionalProperties"] == {"type": "integer"}
    assert tool_info("forecast").help == "Forecast the weather"
    outcome = await called(box, "forecast", city="Lyon", days="2", places=[{"city": "Nice"}], reason="Asked for.")
    assert outcome.text == "Lyon 2 c [Place(city='Nice')] {}"


async def test_sync_functions_run_in_a_thread_and_results_are_texts(tmp_path: Path) -> None:
    def where() -> bool:
        return threading.current_thread() is threading.main_thread()

    async def add(lines: list[Line]) -> dict[str, int]:
        await asyncio.sleep(0)
        return {line.item: line.count for line in lines}

    def nothing() -> None:
        return None

    class Shop:
        def name(self) -> str:
            """Name the shop."""
            return "Bolts & Nuts"

    box = toolbox(tmp_path, where, add, nothing, Shop().name)
    assert (await called(box, "where")).text == "false"
    assert json.loads((await called(box, "add", lines=[{"item": "bolt", "count": 2}])).text) == {"bolt": 2}
    assert (await called(box, "nothing")).text == "Done."
    assert (await called(box, "name")).text == "Bolts & Nuts"


async def test_exceptions_of_a_function_are_reported_to_the_model(tmp_path: Path) -> None:
    def stock(item: str) -> int:
        return {"bolt": 12}[item]

    box = toolbox(tmp_path, stock)
    outcome = await called(box, "stock", item="nut")
    assert (outcome.success, outcome.text) == (False, "stock failed: KeyError: 'nut'")
    with pytest.raises(ToolError, match="required field `item`"):
        await box.prepare("stock", "{}")


async def test_declared_access_needs_approval_and_undeclared_does_not(tmp_path: Path) -> None:
    @tool(access="command", name="deploy_now")
    def deploy(target: str) -> str:
        return f"Deployed {target}."

    @tool
    def look() -> str:
        return "Nothing."

    box = toolbox(tmp_path, deploy, look)
    assert (box.access("deploy_now"), box.access("look")) == ("command", "read")
    prepared = await box.prepare("deploy_now", '{"target": "web"}')
    assert prepared.approval is not None
    assert (prepared.approval.kind, '"web"' in prepared.approval.detail) == ("command", True)
    assert (await prepared.run()).text == "Deployed web."
    assert (await box.prepare("look", "{}")).approval is None
    assert deploy("x") == "Deployed x."


def test_functions_stay_offered_when_the_settings_name_the_built_in_tools(tmp_path: Path) -> None:
    def look() -> str:
        return ""

    names = [each["function"]["name"] for each in toolbox(tmp_path, look, enabled=["read_file"]).schemas()]
    assert names == ["read_file", "look"]


def _untyped(item) -> str:  # type: ignore[no-untyped-def]
    return str(item)


def _variable(*items: str) -> str:
    return ""


def _path(where: Path) -> str:
    return ""


def _unknown(where: "Nowhere") -> str:  # type: ignore[name-defined]  # noqa: F821, UP037
    return ""


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (_untyped, "its parameter item has no type"),
        (_variable, "by name, which"),
        (_path, "have no JSON schema"),
        (_unknown, "cannot be read"),
        (Line, "Line is a class"),
        ("read_file", "must be a function"),
        (lambda: "", "cannot be a tool's name"),
    ],
)
def test_a_function_that_cannot_be_a_tool_is_rejected_with_the_reason(given: Any, reason: str) -> None:
    with pytest.raises(TypeError, match=reason):
        tool_of(given)


def test_a_tool_class_is_taken_as_it_is_and_a_taken_name_is_rejected(tmp_path: Path) -> None:
    class Look(Tool):
        info = msgspec.structs.replace(tool_info("read_file"), name="look")
        description = "Look."
        arguments = ToolArguments

    def read_file(path: str) -> str:
        return path

    assert tool_of(Look) is Look
    with pytest.raises(ValueError, match="already a tool read_file"):
        toolbox(tmp_path, read_file)
    with pytest.raises(ValueError, match="already a tool look"):
        toolbox(tmp_path, Look, Look)


async def test_a_built_in_that_is_left_out_gives_its_name_away(tmp_path: Path) -> None:
    def read_file(path: str) -> str:
        return f"mine: {path}"

    @tool(access="command")
    def run_command(command: str) -> str:
        return f"not run: {command}"

    given = [tool_of(read_file), tool_of(run_command)]
    own = Toolbox(tmp_path, ToolSettings(enabled=[]), undo_dir=tmp_path / "u", state_dir=tmp_path / "s", added=given)
    assert own.names() == ["read_file", "run_command"]
    prepared = await own.prepare("read_file", '{"path": "a.py"}')
    assert (await prepared.run()).text == "mine: a.py"
    assert own.access("run_command") == "command" and own.processes.running == 0
