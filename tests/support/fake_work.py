"""What the fake engine knows of modes, changed files and the person's own commands."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from msgspec import structs

from ragforge_tui.shared.events import MessageFinished, ToolCallFinished, ToolCallStarted, TurnCompleted, TurnStarted
from ragforge_tui.shared.process_records import ProcessEntry
from ragforge_tui.shared.records import ToolCall, ToolResult, Turn
from ragforge_tui.shared.requests.rules import ChangeRule, ListRules, RuleEntry, RuleList
from ragforge_tui.shared.requests.work import (
    FileDiff,
    ListProcesses,
    Mode,
    PlanUndo,
    RunShell,
    SessionDiff,
    SetMode,
    StopProcess,
    UndoPlan,
    UndoTurn,
)
from ragforge_tui.shared.rules import Rule
from tests.support.fake_answers import answers

if TYPE_CHECKING:
    from tests.support.fake_engine import FakeEngine


class WorkShelf:
    """Answers the requests about work; a test sets what it finds."""

    def __init__(self, engine: FakeEngine) -> None:
        self._engine = engine
        self.modes: dict[str, Mode] = {}
        self.diffs: list[FileDiff] = []
        self.undo_plan = UndoPlan(turn_index=0)
        self.rules: list[Rule] = []
        self.processes: list[ProcessEntry] = []

    @answers(SetMode)
    def _set_mode(self, request: SetMode) -> Any:
        self.modes[request.conversation_id] = request.mode
        return request.mode

    @answers(SessionDiff)
    def _session_diff(self, request: SessionDiff) -> Any:
        return self.diffs

    @answers(PlanUndo)
    def _plan_undo(self, request: PlanUndo) -> Any:
        return self.undo_plan

    @answers(UndoTurn)
    def _undo_turn(self, request: UndoTurn) -> Any:
        return self._engine.conversations[request.conversation_id].next_turn

    @answers(RunShell)
    def _run_shell(self, request: RunShell) -> Any:
        return _run(self._engine, request)

    @answers(ListRules)
    def _list_rules(self, request: ListRules) -> Any:
        return RuleList(rules=[RuleEntry(rule=rule) for rule in self.rules], folder="/w", file="/c/config.yaml")

    @answers(ChangeRule)
    def _change_rule(self, request: ChangeRule) -> Any:
        rules = [request.new if rule == request.old else rule for rule in self.rules]
        self.rules = [rule for rule in (*rules, *([] if request.old else [request.new])) if rule is not None]
        return self._list_rules(ListRules())

    @answers(ListProcesses)
    def _list_processes(self, request: ListProcesses) -> Any:
        return list(self.processes)

    @answers(StopProcess)
    def _stop_process(self, request: StopProcess) -> Any:
        self.processes = [structs.replace(one, ending="Stopped by the user.") for one in self.processes]
        return next(one for one in self.processes if one.number == request.number)


def _run(engine: FakeEngine, request: RunShell) -> int:
    """A turn of the person's own, as the engine stores and tells it."""
    from tests.support.fake_engine import CLOCK, message

    if request.conversation_id in engine.active:
        engine.queue.append((request.conversation_id, request.message_id, f"!{request.command}"))
        return 0
    owner = engine.conversations[request.conversation_id]
    index = owner.next_turn
    owner.next_turn += 1
    said = message(owner, index, "user", f"!{request.command}")
    said.uuid = request.message_id
    own = message(owner, index, "system", "", 1)
    where: dict[str, Any] = {"conversation_id": owner.uuid, "turn_index": index}
    engine.emit(TurnStarted(message=said, **where))
    engine.emit(MessageFinished(message=structs.replace(own), **where))
    call = ToolCall(
        uuid=f"shell-{index}",
        message_id=own.uuid,
        tool_name="run_command",
        arguments=json.dumps({"command": request.command}),
        timestamp=CLOCK,
    )
    engine.emit(ToolCallStarted(call=structs.replace(call), **where))
    text = json.dumps({"text": f"output of {request.command}\n[Exit status 0.]", "exit_status": 0})
    call.result = ToolResult(uuid="r", tool_call_id=call.uuid, success=True, result=text, timestamp=CLOCK)
    call.success, call.duration_ms = True, 12
    own.tool_calls = [call]
    engine.turns[owner.uuid].append(Turn(turn_index=index, messages=[said, own]))
    engine.emit(ToolCallFinished(call=call, **where))
    engine.emit(TurnCompleted(text="", **where))
    return index
