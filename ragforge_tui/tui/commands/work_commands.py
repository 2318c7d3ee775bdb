"""Commands about the agent's work: its mode, the changed files, undo and redo.

Screens are imported when first used.
"""

from __future__ import annotations

import asyncio
from uuid import uuid4

from ragforge_tui.shared.errors import RagforgeError
from ragforge_tui.shared.formatting import counted
from ragforge_tui.shared.process_records import ProcessEntry
from ragforge_tui.shared.requests.work import (
    MODES,
    FileDiff,
    ListProcesses,
    PlanUndo,
    SessionDiff,
    StopProcess,
    UndoPlan,
    UndoTurn,
)
from ragforge_tui.tui.command_registry import Commands
from ragforge_tui.tui.commands.chat_commands import conversation_with_messages, turn_number
from ragforge_tui.tui.host import Host
from ragforge_tui.tui.limits import SCREEN
from ragforge_tui.tui.widgets.choice_list import Choice

COMMANDS = Commands("The agent's work")

UNCHANGED = "The files are as they were before this conversation."
BRANCH_UNCHANGED = (
    "The turns of this branch, including those it shares, made no lasting changes to files. To see what its parent "
    "changed later, open the parent with /sessions and use /diff there."
)
MODE_HINTS = {
    "plan": "planning: nothing is written or run",
    "ask": "asks before each write and command",
    "edits": "edits freely; commands and secrets ask",
    "auto": "edits freely; commands run in a sandbox, what needs more asks",
}


@COMMANDS.add(
    "mode",
    "Set what the agent may do without asking: plan (only read), ask, edits, or auto (commands in a sandbox)",
    arguments="[plan|ask|edits|auto]",
    completes=MODES,
    key="shift+tab",
)
async def set_mode(host: Host, wanted: str) -> None:
    """Let the agent continue in another mode, the next one if none is named, from its next tool call on.

    In the modes of accepted edits and auto the engine lets what waits through. A user who cycles through the modes by
    key passes them, so while a question waits they take effect only if the user stays in one.
    """
    session, state = host.session, host.session.state
    name = {"accept": "edits", "accept edits": "edits"}.get(wanted.strip().lower(), wanted.strip().lower())
    following = MODES[(MODES.index(state.mode) + 1) % len(MODES)]
    mode = next((known for known in MODES if known == name), None) if name else following
    if mode is None:
        raise RagforgeError(f"There is no mode {wanted!r}.", todo=f"The modes are {', '.join(MODES)}.")
    state.mode = mode
    state.mode_unsent = True
    session.changed()
    host.hint(MODE_HINTS[mode])
    if not name and mode in ("edits", "auto") and host.questions.waiting:
        await asyncio.sleep(SCREEN.mode)
    if state.connection == "up":
        await session.send_mode()


@COMMANDS.add("rules", "Show and change what runs without asking, always asks or is refused", ("permissions",))
async def show_rules(host: Host, _: str) -> None:
    """Show the user's rules for the agent's calls; changes are saved."""
    from ragforge_tui.shared.requests.rules import ChangeRule, ListRules, RuleList
    from ragforge_tui.tui.settings.rules_screen import RulesScreen

    async def load() -> RuleList:
        return await host.session.ask(ListRules())

    async def change(request: ChangeRule) -> RuleList:
        return await host.session.ask(request)

    host.open_screen(RulesScreen(load, change))


@COMMANDS.add("diff", "Show what the agent changed in files during this conversation")
async def show_diff(host: Host, _: str) -> None:
    """Show what the agent changed in this conversation."""
    from ragforge_tui.tui.dialogs.text_viewer import DiffScreen

    uuid = conversation_with_messages(host)

    async def load() -> list[FileDiff]:
        return await host.session.ask(SessionDiff(conversation_id=uuid))

    conversation = host.session.state.conversation
    branch = conversation is not None and conversation.branch_of is not None
    host.open_screen(DiffScreen(load, empty=BRANCH_UNCHANGED if branch else UNCHANGED))


@COMMANDS.add("processes", "List the agent's background processes and stop one", arguments="[NUMBER]")
async def show_processes(host: Host, number: str) -> None:
    """Show the background processes, and stop the picked one after a question; with a number, stop that one at once."""
    from ragforge_tui.tui.widgets.list_screen import Picker

    if number.strip():
        if not number.strip().isdecimal():
            raise RagforgeError(f"{number!r} is no number of a process.", todo="/processes lists them.")
        await _stop_process(host, int(number))
        return

    async def load() -> list[Choice]:
        entries = await host.session.ask(ListProcesses())
        # What runs comes first.
        entries.sort(key=lambda entry: (bool(entry.ending), entry.number))
        return [_process_row(entry) for entry in entries]

    def picked(key: str) -> None:
        host.session.spawn(_offer_stop(host, int(key)), group="processes", exclusive=True)

    title = "Background processes of the agent · they end with the session"
    host.open_screen(Picker(title, load, empty="none was started", verb="show and stop"), picked)


def _process_row(entry: ProcessEntry) -> Choice:

    heading = "ended" if entry.ending else "running"
    detail = entry.ending or f"since {entry.started.astimezone():%H:%M}"
    command = " ".join(entry.command.split())
    return Choice(str(entry.number), command, detail, heading=heading, lead=f"{entry.number}  ")


async def _offer_stop(host: Host, number: int) -> None:
    from ragforge_tui.tui.questions.question_panel import Question

    entry = next((one for one in await host.session.ask(ListProcesses()) if one.number == number), None)
    if entry is None or entry.ending:
        last = "\n".join(entry.lines) if entry is not None else ""
        raise RagforgeError(f"Process {number} has ended. {entry.ending if entry else ''} {last}".strip())

    def answer(decision: str, _: str) -> None:
        if decision == "yes":
            host.session.spawn(_stop_process(host, number), group="processes")

    answers = [Choice("yes", "stop it", mark="y"), Choice("no", "let it run", mark="n")]
    detail = "\n".join([entry.command, "", *entry.lines])
    host.ask_user(Question(f"process:{number}", "command", f"Stop process {number}?", detail, answers, answer))


async def _stop_process(host: Host, number: int) -> None:
    entry = await host.session.ask(StopProcess(number=number))
    host.hint(f"process {number}: {entry.ending}")


@COMMANDS.add("undo", "Restore files as they were before a turn", arguments="[TURN]")
async def undo(host: Host, turn: str) -> None:
    """Offer to restore the files as they were before a turn, by default the last one that changed files."""
    wanted = turn_number(turn, "undo 12 undoes turn 12")
    await _offer_undo(host, PlanUndo(conversation_id=conversation_with_messages(host), turn_index=wanted))


@COMMANDS.add("redo", "Revert the last undo")
async def redo(host: Host, _: str) -> None:
    await _offer_undo(host, PlanUndo(conversation_id=conversation_with_messages(host), redo=True))


async def _offer_undo(host: Host, request: PlanUndo) -> None:
    from ragforge_tui.tui.questions.question_panel import Question

    plan = await host.session.ask(request)
    left = [f"{one.path} stays unchanged: {one.note}." for one in plan.refused]
    if not plan.restored:
        raise RagforgeError(" ".join(left) or f"The files are already as they were before turn {plan.turn_index}.")

    def answer(decision: str, _: str) -> None:
        if decision == "yes":
            undo = UndoTurn(conversation_id=request.conversation_id, message_id=uuid4().hex, turn_index=plan.turn_index)
            host.session.spawn(host.session.ask(undo), group="undo")

    detail = "\n".join([*left, "".join(one.diff for one in plan.restored)])
    answers = [Choice("yes", "restore them", mark="y"), Choice("no", "no", mark="n")]
    host.ask_user(Question(f"undo:{plan.turn_index}", "diff", _question(plan), detail, answers, answer))


def _question(plan: UndoPlan) -> str:
    files = counted(len(plan.restored), "file")
    what = f"Revert the undo of turn {plan.turn_index}" if plan.redo else f"Undo turn {plan.turn_index}"
    unchanged = f"; {len(plan.refused)} unchanged" if plan.refused else ""
    back = "/undo" if plan.redo else "/redo"
    return f"{what}? {files} will be restored{unchanged}. {back} reverts this."
