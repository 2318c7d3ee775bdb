"""Commands about single turns: go to one, find a text, edit and resend, branch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragforge_tui.shared.errors import NotFoundError, RagforgeError
from ragforge_tui.shared.requests.turns import BranchConversation, FetchTurns, RetryTurn
from ragforge_tui.tui.command_registry import Command
from ragforge_tui.tui.commands.chat_commands import open_conversation_id
from ragforge_tui.tui.host import Host

if TYPE_CHECKING:
    from ragforge_tui.tui.dialogs.find_bar import FindBar
    from ragforge_tui.tui.transcript.blocks import Block


async def go_to_turn(host: Host, which: str) -> None:
    await host.show_turn(_turn_index(host, which))


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
    elif host.session.state.search_text:
        host.session.spawn(_find_again(host), group="find")
    else:
        host.hint("no search text yet")


async def _find_again(host: Host) -> None:
    from ragforge_tui.tui.dialogs.find_bar import FindBar

    await host.app.mount(FindBar(host, host.session.state.search_text, focus=False), before="#prompt-row")


def close_find(host: Host) -> bool:
    """End the search; return False if there is none."""
    if (bar := _find_bar(host)) is None:
        return False
    bar.close()
    return True


def view_block(host: Host, block: Block) -> None:
    """Show a whole block of the chat in a screen of its own."""
    from ragforge_tui.tui.dialogs.text_viewer import block_screen

    def closed(action: str | None) -> None:
        if action == "turn":
            host.go_to_turns(block.turn_index)

    host.open_screen(block_screen(host, block), closed)


async def edit(host: Host, which: str) -> None:
    """Put an earlier message into the prompt; sending it starts a branch before its turn."""
    turn = _turn_index(host, which, last=True)
    if host.prompt.text.strip():
        raise RagforgeError("The prompt holds a draft.", todo="Send or clear it first; it would be overwritten.")
    text = await _user_message(host, turn)
    host.session.state.editing = turn
    host.message_returned(text)
    host.session.changed()


def cancel_edit(host: Host) -> bool:
    """Drop an edit that was not sent; return False if there is none."""
    if not host.session.state.editing:
        return False
    host.session.state.editing = 0
    host.prompt.empty()
    host.session.changed()
    return True


def resend(host: Host, text: str) -> bool:
    """Send an edited message in a branch; return False if none is being edited."""
    turn = host.session.state.editing
    if turn:
        host.session.state.editing = 0
        host.session.spawn(_resend(host, turn, text), group="branch")
    return bool(turn)


async def _resend(host: Host, turn: int, text: str) -> None:
    try:
        await _open_branch(host, turn - 1)
    except RagforgeError:
        host.message_returned(text)
        raise
    host.session.send(text)


async def branch(host: Host, which: str) -> None:
    """Continue from a turn in a new conversation; this one stays unchanged."""
    await _open_branch(host, _turn_index(host, which, last=True))
    host.prompt.focus()


async def _open_branch(host: Host, turn: int) -> None:
    session, parent = host.session, open_conversation_id(host)
    branch = await session.ask(BranchConversation(conversation_id=parent, turn_index=turn))
    await session.open(branch.uuid)
    shared = f"It shares turns 1 to {turn}" if turn > 1 else "It shares turn 1" if turn else "It starts empty"
    session.notice(f"This is a branch. {shared}; /resume {parent[:8]} opens the original, which is unchanged.")


async def _user_message(host: Host, turn: int) -> str:
    """Return what the user wrote in a turn."""
    request = FetchTurns(conversation_id=open_conversation_id(host), start=turn, end=turn + 1)
    page = await host.session.ask(request)
    texts = [message.content for found in page.turns for message in found.messages if message.role == "user"]
    if not texts:
        raise NotFoundError(f"This conversation has no turn {turn}.")
    return texts[0]


def _turn_index(host: Host, which: str, *, last: bool = False) -> int:
    """Return the named turn, else the one at the cursor, else the last one if `last` is set."""
    open_conversation_id(host)
    if which:
        if not which.isdecimal() or not int(which):
            raise RagforgeError(f"{which!r} is not the number of a turn.")
        return int(which)
    block = host.transcript.cursor_block
    if block is not None and block.turn_index:
        return block.turn_index
    newest = max((block.turn_index for block in host.transcript.document.blocks), default=0)
    if not last or not newest:
        raise RagforgeError("Which turn?", todo="Add its number to the command.")
    return newest


async def retry(host: Host) -> None:
    await host.session.ask(RetryTurn(conversation_id=open_conversation_id(host)))


COMMANDS = (
    Command(
        "find",
        "Find a text in this conversation",
        find,
        arguments="[TEXT]",
        key="ctrl+f",
        group="This conversation",
        opens=True,
    ),
    Command("turn", "Go to a turn", go_to_turn, ("goto",), arguments="TURN", group="This conversation"),
    Command("edit", "Edit a message and send it in a branch", edit, arguments="[TURN]", group="This conversation"),
    Command(
        "branch", "Continue from a turn in a new conversation", branch, ("fork",), "[TURN]", group="This conversation"
    ),
    Command("retry", "Ask for the last answer again", lambda host, _: retry(host), group="This conversation"),
)
