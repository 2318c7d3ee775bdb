"""Commands about the open conversation: its turns, branches, title and tags; archive, delete and export it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from ragforge_tui.shared.errors import NotFoundError, RagforgeError
from ragforge_tui.shared.moments import age_text
from ragforge_tui.shared.records import PURGE_AFTER_DAYS, Message
from ragforge_tui.shared.requests.memory import FetchTurnLines, TurnLine
from ragforge_tui.shared.requests.turns import BranchConversation, FetchTurns, RetryTurn
from ragforge_tui.tui.code.opening import open_call_code
from ragforge_tui.tui.command_registry import Commands
from ragforge_tui.tui.commands.chat_commands import open_conversation_id
from ragforge_tui.tui.host import Host
from ragforge_tui.tui.prompt.history import Entry
from ragforge_tui.tui.widgets.choice_list import Choice

if TYPE_CHECKING:
    from ragforge_tui.tui.dialogs.find_bar import FindBar
    from ragforge_tui.tui.sessions.session_service import SessionService
    from ragforge_tui.tui.transcript.blocks import Block

COMMANDS = Commands("This conversation")
MOST_TURNS = 1_000
"""Messages that are offered to go back to; `/branch TURN` reaches the ones before."""


@COMMANDS.add("find", "Find a text in this conversation", arguments="[TEXT]", key="ctrl+f", opens=True)
async def find(host: Host, text: str) -> None:
    """Open the bar that finds a text in the conversation, or put another text into it."""
    from ragforge_tui.tui.dialogs.find_bar import FindBar

    open_conversation_id(host)
    if (bar := _find_bar(host)) is not None:
        bar.search_for(text)
    else:
        await host.app.mount(FindBar(host, text), before="#prompt-row")


def _find_bar(host: Host) -> FindBar | None:
    from ragforge_tui.tui.dialogs.find_bar import FindBar

    return next(iter(host.app.query(FindBar)), None)


def find_step(host: Host, by: int) -> None:
    """Go to the next (1) or previous (-1) match of the current search, or of the last one."""
    if (bar := _find_bar(host)) is not None:
        bar.action_step(by)
    elif host.transcript.finder.last_text:
        host.session.spawn(_find_again(host), group="find")
    else:
        host.hint("no search text yet")


async def _find_again(host: Host) -> None:
    from ragforge_tui.tui.dialogs.find_bar import FindBar

    await host.app.mount(FindBar(host, host.transcript.finder.last_text, focus=False), before="#prompt-row")


@COMMANDS.add("copy", "Copy the last answer")
async def copy_answer(host: Host, _: str) -> None:
    """Copy the block at the chat's cursor, or the last answer."""
    host.transcript.copier.block()


@COMMANDS.add("copy-code", "Copy the last answer's code, its next piece each time")
async def copy_code(host: Host, _: str) -> None:
    """Copy the next piece of code of the last answer that has any."""
    host.transcript.copier.code()


def view_block(host: Host, block: Block) -> None:
    """Show a whole block of the chat in a screen of its own."""
    from ragforge_tui.tui.dialogs.answer_screen import AnswerScreen
    from ragforge_tui.tui.dialogs.text_viewer import CODE_ACTION, block_screen
    from ragforge_tui.tui.transcript.blocks import TextBlock
    from ragforge_tui.tui.transcript.tool_block import ToolBlock

    def closed(action: str) -> None:
        if action == CODE_ACTION and isinstance(block, ToolBlock):
            open_call_code(host, block.call)
        else:
            host.navigator.go_to_turns(block.turn_index)

    answer = isinstance(block, TextBlock)
    host.open_screen(AnswerScreen(block.turn_index, block.source) if answer else block_screen(host, block), closed)


@COMMANDS.add("turn", "Go to a turn", ("goto",), arguments="TURN")
async def go_to_turn(host: Host, which: str) -> None:
    await host.navigator.show_turn(_turn_index(host, which))


@COMMANDS.add("edit", "Edit a message and send it in a branch", arguments="[TURN]")
async def edit(host: Host, which: str) -> None:
    """Put an earlier message into the prompt; sending it starts a branch before its turn."""
    turn = _turn_index(host, which, last=True)
    _require_empty_prompt(host)
    message = await _user_message(host, turn)
    host.prompt.editing = turn
    host.prompt.put_back(message.content, message.materials)
    host.session.changed()


def _require_empty_prompt(host: Host) -> None:
    if host.prompt.text.strip():
        raise RagforgeError("The prompt holds a draft.", todo="Send or clear it first; it would be overwritten.")


def resend(host: Host, text: str, materials: Sequence[str]) -> bool:
    """Send an edited message in a branch; return False if none is being edited."""
    turn, host.prompt.editing = host.prompt.editing, 0
    if turn:
        host.session.spawn(_resend(host, turn, text, materials), group="branch")
    return bool(turn)


async def _resend(host: Host, turn: int, text: str, materials: Sequence[str]) -> None:
    try:
        await _open_branch(host, turn - 1)
    except RagforgeError:
        host.prompt.put_back(text, materials)
        raise
    host.session.send(text, materials)


@COMMANDS.add(
    "branch",
    "Go back to an earlier turn, in a branch; this conversation stays as it is",
    ("fork", "back", "rewind"),
    arguments="[TURN]",
)
async def branch(host: Host, which: str) -> None:
    """Continue from a turn in a new conversation; without one, offer the user's messages to go back to."""
    if which:
        await _open_branch(host, _turn_index(host, which))
        host.prompt.focus()
    else:
        _pick_message(host)


def _pick_message(host: Host) -> None:
    """Show the messages of the conversation, the newest first; the picked one is edited in a branch."""
    from ragforge_tui.tui.widgets.list_screen import Picker

    at = _turn_index(host, "", last=True)
    _require_empty_prompt(host)

    async def rows() -> list[Choice]:
        newest = host.transcript.newest_turn
        first = max(host.session.state.first_turn, newest - MOST_TURNS + 1)
        request = FetchTurnLines(conversation_id=open_conversation_id(host), first=first, last=newest)
        lines = await host.session.ask(request)
        return turn_rows(lines, host.now())

    def picked(turn: str) -> None:
        host.session.spawn(_go_back(host, int(turn)), group="branch", exclusive=True)

    title = "Go back to an earlier turn · this conversation stays as it is"
    verb = "edit this message in a branch"
    host.open_screen(Picker(title, rows, empty="no messages yet", verb=verb, at=str(at)), picked)


def turn_rows(lines: Sequence[TurnLine], now: datetime) -> list[Choice]:
    """Return the messages of turns as rows with number, first words and age, the newest first."""
    cells = len(str(max((line.turn_index for line in lines), default=0)))
    return [
        Choice(str(line.turn_index), line.text, age_text(line.timestamp, now), lead=f"{line.turn_index:>{cells}}  ")
        for line in sorted(lines, key=lambda line: -line.turn_index)
    ]


async def _go_back(host: Host, turn: int) -> None:
    """Open a branch of the turns before a turn, with its message in the prompt."""
    message = await _user_message(host, turn)
    await _open_branch(host, turn - 1)
    host.prompt.put_back(message.content, message.materials)


async def _open_branch(host: Host, turn: int) -> None:
    session, parent = host.session, open_conversation_id(host)
    branch = await session.ask(BranchConversation(conversation_id=parent, turn_index=turn))
    await session.open(branch.uuid)
    shared = f"It shares turns 1 to {turn}" if turn > 1 else "It shares turn 1" if turn else "It starts empty"
    session.notice(
        f"This is a branch. {shared}; /resume {parent[:8]} opens the original, which is unchanged. "
        "Files are unchanged. /undo in the original reverts its edits."
    )


async def _user_message(host: Host, turn: int) -> Message:
    """Return the user's message of a turn."""
    request = FetchTurns(conversation_id=open_conversation_id(host), start=turn, end=turn + 1)
    page = await host.session.ask(request)
    messages = [message for found in page.turns for message in found.messages if message.role == "user"]
    if not messages:
        raise NotFoundError(f"This conversation has no turn {turn}.")
    return messages[0]


def _turn_index(host: Host, which: str, *, last: bool = False) -> int:
    """Return the named turn, else the one at the cursor, else the last one if `last` is set."""
    open_conversation_id(host)
    if which:
        if not which.isdecimal() or not int(which):
            raise RagforgeError(f"{which!r} is not the number of a turn.")
        return int(which)
    block = host.transcript.cursor.block
    if block is not None and block.turn_index:
        return block.turn_index
    newest = host.transcript.newest_turn
    if not last or not newest:
        raise RagforgeError("Which turn?", todo="Add its number to the command.")
    return newest


@COMMANDS.add("retry", "Ask for the last answer again")
async def retry(host: Host, _: str) -> None:
    await host.session.ask(RetryTurn(conversation_id=open_conversation_id(host)))


@COMMANDS.add("rename", "Give this conversation a title", arguments="TITLE")
async def rename(host: Host, title: str) -> None:
    """Give the conversation a title; without one, put the current title into the prompt to edit."""
    conversation_id = open_conversation_id(host)
    conversation = host.session.state.conversation
    if not title and conversation is not None:
        host.prompt.put(Entry(f"/rename {conversation.title}"))
        return
    await _service(host).rename(conversation_id, title)


@COMMANDS.add("tag", "Give this conversation tags; - removes them", arguments="TAGS")
async def tag(host: Host, tags: str) -> None:
    """Replace the conversation's tags; without any, put the current ones into the prompt to edit."""
    conversation_id = open_conversation_id(host)
    conversation = host.session.state.conversation
    if not tags:
        present = " ".join(conversation.tags) if conversation else ""
        host.prompt.put(Entry(f"/tag {present}"))
        return
    from ragforge_tui.tui.sessions.session_service import parse_tags

    changed = await _service(host).tag(conversation_id, [] if tags == "-" else parse_tags(tags))
    host.session.notice(f"Tags: {', '.join(changed.tags)}" if changed.tags else "This conversation has no tags.")


@COMMANDS.add(
    "private", "Keep other conversations from recalling this one", arguments="[on|off]", completes=("on", "off")
)
async def set_private(host: Host, wanted: str) -> None:
    """Keep the conversation, or the next one if none is open, from being recalled and found elsewhere; or allow it."""
    state = host.session.state
    if wanted not in ("", "on", "off"):
        raise RagforgeError(f"/private takes on or off, not {wanted!r}.", todo="/private alone toggles it.")
    private = wanted == "on" if wanted else not state.private
    if state.conversation is None and not state.opening:
        which = "the one that your next message begins"
        state.next_private = private
        host.session.changed()
    else:
        which = "this one"
        await _service(host).set_private(open_conversation_id(host), private)
    host.session.notice(
        f"Private: no other conversation recalls or finds {which}. /private again allows it."
        if private
        else f"Not private: other conversations may recall {which}."
    )


@COMMANDS.add("archive", "Archive this conversation", removes=True)
async def archive(host: Host, _: str) -> None:
    """Archive the conversation."""
    conversation_id = open_conversation_id(host)
    await _service(host).archive(conversation_id)
    host.session.notice(f"Archived. /resume {conversation_id[:8]} opens it again.")


@COMMANDS.add(
    "delete", f"Delete this conversation; /undo-delete restores it within {PURGE_AFTER_DAYS} days", removes=True
)
async def delete(host: Host, _: str) -> None:
    """Hide the conversation; it is purged after seven days."""
    from ragforge_tui.tui.sessions.session_list_model import session_title

    deleted = await _service(host).delete(open_conversation_id(host))
    shared = f" A branch keeps the turns it shares: {session_title(deleted.kept_by)}." if deleted.kept_by else ""
    host.session.notice(f"Deleted. /undo-delete restores it within {PURGE_AFTER_DAYS} days.{shared}")


@COMMANDS.add("undo-delete", "Restore the conversation deleted last")
async def undo_delete(host: Host, _: str) -> None:
    """Restore the conversation that was deleted last, here or in another terminal."""
    service = _service(host)
    deleted = await service.last_deleted()
    await service.restore(deleted)
    await host.navigator.open_conversation(deleted)


@COMMANDS.add(
    "export", "Write this conversation as Markdown, a web page or JSON", arguments="[FILE|html|json]", completes="files"
)
async def export(host: Host, target: str) -> None:
    """Write the conversation to a file of the workspace, or in a format to the folder of exports."""
    host.session.notice(f"Written to {await _service(host).export(open_conversation_id(host), target)}")


def _service(host: Host) -> SessionService:
    from ragforge_tui.tui.sessions.session_service import SessionService

    return SessionService(host)
