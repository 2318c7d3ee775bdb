"""Command `ask`: one turn without a user interface.

The answer goes to stdout, everything else to stderr; with --json every event is a line on stdout. The command asks no
questions: calls that need approval, and that neither --yes nor --allow covers, are refused and the model is informed.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import sys
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from ragforge_tui.cli.common import (
    ConfigOption,
    GraphOption,
    ModelOption,
    PersonaOption,
    WorkspaceOption,
    not_empty,
    settings,
    with_engine,
)
from ragforge_tui.cli.output import print_json_line, print_text
from ragforge_tui.cli.start import CANCELLED, FAILED, complain
from ragforge_tui.settings.schema import Loaded
from ragforge_tui.shared import events
from ragforge_tui.shared.errors import RagforgeError
from ragforge_tui.shared.files import read_regular
from ragforge_tui.shared.json_text import decode_json
from ragforge_tui.shared.output_schema import OutputSchema
from ragforge_tui.shared.records import call_end
from ragforge_tui.shared.requests.memory import FetchDue
from ragforge_tui.shared.requests.turns import (
    CancelTurn,
    ConversationView,
    CreateConversation,
    OpenConversation,
    SendMessage,
    TurnLimits,
)
from ragforge_tui.shared.tool_calls import CALL_MARKS, main_argument, tool_label
from ragforge_tui.shared.wire import CLOSE_SECONDS, Engine

SETTLE_SECONDS = 30.0
"""Longest wait at the end for due vectors and summaries; the next start finishes the rest."""

MOST_SCHEMA_BYTES = 1024 * 1024

Show = Callable[[events.Event], None]


def ask(
    ctx: typer.Context,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The question; '-' reads it from standard input.")],
    resume: Annotated[
        str | None, typer.Option("--resume", "-r", metavar="ID", help="Conversation to continue.", callback=not_empty)
    ] = None,
    persona: PersonaOption = None,
    model: ModelOption = None,
    graph: GraphOption = None,
    workspace: WorkspaceOption = None,
    config: ConfigOption = None,
    json: Annotated[bool, typer.Option("--json", help="Print every event as a line of JSON.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Approve every tool call.")] = False,
    allow: Annotated[
        list[str] | None,
        typer.Option(
            "--allow",
            metavar="RULE",
            help="Approve calls by a rule, such as '@tests', 'git commit *' or 'write(src/)'; repeatable.",
        ),
    ] = None,
    max_cost: Annotated[
        float | None,
        typer.Option("--max-cost", metavar="AMOUNT", help="Stop before a request that would cost more US dollars."),
    ] = None,
    max_turns: Annotated[
        int | None,
        typer.Option("--max-turns", metavar="N", min=1, help="Requests to the model; the last asks for the answer."),
    ] = None,
    output_schema: Annotated[
        Path | None,
        typer.Option("--output-schema", metavar="FILE", help="JSON Schema that the answer has to match."),
    ] = None,
) -> None:
    """Ask once and print the answer; tools that need approval are refused unless --yes or --allow covers them."""
    piped = text == "-"
    if piped:
        text = sys.stdin.buffer.read().decode("utf-8", "replace")
    if not text.strip():
        raise typer.BadParameter("The question is empty.", param_hint="TEXT")
    message = SendMessage(
        conversation_id="",
        message_id=uuid.uuid4().hex,
        text=text,
        materials=[text] if piped else [],
        limits=TurnLimits(max_requests=max_turns or 0, output_schema=_schema(output_schema)),
    )
    loaded = settings(ctx, config=config, workspace=workspace, graph=graph, model=model, persona=persona)
    if max_cost is not None:
        loaded = _with_max_cost(loaded, max_cost)
    end = with_engine(
        _with_rules(loaded, allow) if allow else loaded,
        lambda engine: _turn(engine, message, resume or "", persona or "", json=json),
        approve_all=yes,
        settle_seconds=SETTLE_SECONDS,
        start_host=True,
    )
    if isinstance(end, events.TurnFailed):
        todo = "A higher --max-cost lets it continue." if end.error.kind == "max_cost" and max_cost else end.error.todo
        complain(msgspec.structs.replace(end.error, todo=todo).sentence())
        raise typer.Exit(FAILED)
    if isinstance(end, events.TurnCancelled):
        raise typer.Exit(CANCELLED)


def _with_rules(loaded: Loaded, allow: list[str]) -> Loaded:
    """Return settings with more rules, which nothing saves."""
    from ragforge_tui.conversation.approvals.rules import valid_rule

    rules = [f"allow {rule}" for rule in allow]
    for rule in rules:
        try:
            valid_rule(rule)
        except ValueError as error:
            raise typer.BadParameter(f"{rule.removeprefix('allow ')!r}: {error}.", param_hint="--allow") from error
    tools = loaded.settings.tools
    tools = msgspec.structs.replace(tools, rules=[*tools.rules, *rules])
    return msgspec.structs.replace(loaded, settings=msgspec.structs.replace(loaded.settings, tools=tools))


def _schema(file: Path | None) -> dict[str, Any] | bool | None:
    """Return the schema in a file, checked; None without one."""
    if file is None:
        return None
    try:
        schema = decode_json(read_regular(file, MOST_SCHEMA_BYTES))
        if not isinstance(schema, dict | bool):
            raise RagforgeError("A JSON Schema is an object.")
        OutputSchema(schema)
    except OSError as error:
        raise typer.BadParameter(f"{file}: {error.strerror}.", param_hint="--output-schema") from None
    except msgspec.MsgspecError as error:
        raise typer.BadParameter(f"{file} holds no JSON Schema: {error}.", param_hint="--output-schema") from None
    except RagforgeError as error:
        raise typer.BadParameter(f"{file}: {error}", param_hint="--output-schema") from None
    return schema


def _with_max_cost(loaded: Loaded, dollars: float) -> Loaded:
    """Return the settings with a cost limit of the turn."""
    if not 0 < dollars < math.inf:
        raise typer.BadParameter("The amount has to be more than 0.", param_hint="--max-cost")
    model = msgspec.structs.replace(loaded.settings.model, max_cost=dollars)
    return msgspec.structs.replace(loaded, settings=msgspec.structs.replace(loaded.settings, model=model))


async def _turn(engine: Engine, message: SendMessage, resume: str, persona: str, *, json: bool) -> events.TurnEnd:
    """Run the turn and print its final event or answer, then why the memory is behind, if it is."""
    notices = Notices()
    try:
        end = await _answer(engine, message, resume, persona, print_json_line if json else notices.show)
    except RagforgeError as error:
        if json:
            print_json_line(events.TurnFailed(conversation_id=resume, turn_index=0, error=error.info))
        raise
    except asyncio.CancelledError:
        if json:
            print_json_line(events.TurnCancelled(conversation_id=resume, turn_index=0))
        raise
    if json:
        print_json_line(end)
    elif end.text:
        print_text(end.text)
    sys.stdout.flush()
    with contextlib.suppress(RagforgeError, TimeoutError):
        async with asyncio.timeout(CLOSE_SECONDS):
            due = await engine.request(FetchDue(conversation_id=end.conversation_id))
        notices.show(events.Notice(text=due.behind))
    return end


async def _answer(engine: Engine, message: SendMessage, resume: str, persona: str, show: Show) -> events.TurnEnd:
    watcher = asyncio.create_task(_watch(engine, message.message_id, show))
    try:
        message = msgspec.structs.replace(message, conversation_id=await _conversation(engine, resume, persona))
        await engine.request(message)
        try:
            return await asyncio.shield(watcher)
        except asyncio.CancelledError:
            await engine.request(CancelTurn(conversation_id=message.conversation_id))
            return await asyncio.wait_for(watcher, CLOSE_SECONDS)
    except TimeoutError:
        raise RagforgeError("The turn did not stop.", kept="The partial answer is stored.", kind="cancel") from None
    finally:
        watcher.cancel()


async def _conversation(engine: Engine, resume: str, persona: str) -> str:
    view: ConversationView
    if resume:
        view = await engine.request(OpenConversation(ref=resume, turns=1))
    else:
        view = await engine.request(CreateConversation(persona=persona))
    return view.conversation.uuid


async def _watch(engine: Engine, message_id: str, show: Show) -> events.TurnEnd:
    """Show events until the turn started by `message_id` ends; return its final event."""
    turn: tuple[str, int] | None = None
    async for event in engine.events():
        if isinstance(event, events.TurnStarted) and event.message.uuid == message_id:
            turn = (event.conversation_id, event.turn_index)
        elif isinstance(event, events.TurnsMoved) and turn is not None and event.conversation_id == turn[0]:
            turn = (turn[0], event.moved.get(turn[1], turn[1]))
        elif isinstance(event, events.TurnEnd) and (event.conversation_id, event.turn_index) == turn:
            return event
        show(event)
    raise RagforgeError("The engine ended before the turn did.", kind="engine_gone")


class Notices:
    """Notices on stderr for a user who waits for the answer, without repetitions."""

    def __init__(self) -> None:
        self._last_text = ""
        self._warnings: set[str] = set()
        self._model = ""

    def show(self, event: events.Event) -> None:
        """Print an event's notice, unless it has none or repeats the last one."""
        if isinstance(event, events.ModelChanged) and event.phase == "ready":
            if event.name == self._model:
                return  # only its window changed
            self._model = event.name
        text = _notice(event)
        if isinstance(event, events.Notice) and text in self._warnings:
            return
        if text and text != self._last_text:
            self._last_text = text
            self._warnings.add(text)
            complain(text)


def _notice(event: events.Event) -> str:
    match event:
        case events.Notice(text=text):
            return text
        case events.ModelChanged(phase="ready"):
            return f"{event.name} answers ({event.origin}; your messages go to {event.destination})."
        case events.GraphChanged(phase="unreachable" | "refused", error=error) if error is not None:
            return f"{error.sentence()} The journal stores the turn until the graph is reachable again."
        case events.ModelRetry():
            return f"{event.reason} Retrying in {event.wait_seconds:.0f} s ({event.attempt}/{event.attempts})."
        case events.ModelWaiting():
            return f"{event.sentence()}; ctrl+c stops."
        case events.MessageFinished(message=message) if message.state == "interrupted" and message.error:
            return message.error
        case events.MessageFinished(message=message) if message.failed_tests:
            return f"! the last test run: {message.failed_tests}"
        case events.ApprovalRequested():
            known = f" (memory: {event.remembered})" if event.remembered else ""
            return f"Refused without --yes or --allow: {event.question}{known}"
        case events.ToolCallFinished(call=call):
            end = call_end(call)
            outcome = end if end == "refused" else f"{call.duration_ms or 0} ms"
            return " ".join(f"{CALL_MARKS[end]} {tool_label(call.tool_name)} {main_argument(call)} {outcome}".split())
        case _:
            return ""
