"""Commands that start, find and resume conversations, and show help and costs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragforge_tui.shared.errors import NotFoundError, RagforgeError
from ragforge_tui.shared.formatting import dollars, short_count
from ragforge_tui.shared.records import ConversationFilter
from ragforge_tui.shared.requests.sessions import ListConversations
from ragforge_tui.tui.command_registry import Commands
from ragforge_tui.tui.host import Host
from ragforge_tui.tui.session.state import Spent

if TYPE_CHECKING:
    from ragforge_tui.shared.records import SearchHit

COMMANDS = Commands("Chat")


@COMMANDS.add("help", "Show commands and keys", ("?", "keys"), key="f1", opens=True)
async def show_help(host: Host, _: str) -> None:
    """Show all commands and keys."""
    from ragforge_tui.tui.dialogs.help_screen import HelpScreen

    host.open_screen(HelpScreen(host.registry, host.options.version, host.options.tui.keymap))


@COMMANDS.add("new", "Start a new conversation", ("clear",), key="ctrl+n")
async def new_conversation(host: Host, _: str) -> None:
    """Show an empty screen; a running turn continues in the engine."""
    host.session.leave_conversation()


@COMMANDS.add("queue", "Edit, drop or send the messages that wait", key="alt+up", opens=True)
async def choose_queued(host: Host, _: str) -> None:
    """Move the focus to the queued messages."""
    if not host.queue.display:
        raise RagforgeError("No message waits.")
    host.queue.focus()


@COMMANDS.add("resume", "Open a conversation by id, or pick one", arguments="[ID]", completes="sessions")
async def resume(host: Host, ref: str) -> None:
    """Open a conversation by id or prefix; without one, show a list."""
    if ref:
        await host.navigator.open_conversation(ref)
    else:
        pick_session(host)


@COMMANDS.add("continue", "Continue the newest conversation of this folder", arguments="[NUMBER]", key="ctrl+l")
async def continue_recent(host: Host, number: str) -> None:
    """Open the newest conversation of the folder, or the one with this place among the newest."""
    place = max(turn_number(number, "continue 2 continues the conversation before the newest"), 1)
    opened = host.session.state.conversation_id
    if place == 1 and not opened:
        host.session.open_newest()
        return
    wanted = ConversationFilter(workspace=host.options.workspace or None, limit=place)
    found = await host.session.ask(ListConversations(filter=wanted))
    if len(found) < place:
        raise NotFoundError(f"This folder has {len(found)} conversations.", todo="/sessions lists them.")
    if found[place - 1].uuid == opened:
        host.hint("this is the newest conversation already" if place == 1 else "this conversation is open already")
    else:
        await host.navigator.open_conversation(found[place - 1].uuid)


@COMMANDS.add("sessions", "Find and open an earlier conversation", key="ctrl+o", opens=True)
async def show_sessions(host: Host, _: str) -> None:
    pick_session(host)


def pick_session(host: Host) -> None:
    """Show the list of conversations and open the picked one."""
    from ragforge_tui.tui.sessions.session_picker import SessionPicker
    from ragforge_tui.tui.sessions.session_service import SessionService

    host.open_screen(SessionPicker(SessionService(host)), host.navigator.go_to_conversation)


@COMMANDS.add("import", "Import the sessions of other agents", key="f9", opens=True)
async def import_sessions(host: Host, _: str) -> None:
    """Show what other agents left on this machine."""
    from ragforge_tui.tui.sessions.import_screen import ImportScreen

    host.open_screen(ImportScreen(host.session.ask, host.session.state.folder))


@COMMANDS.add("search", "Find words in sessions, here or in all folders", arguments="[WORDS]", key="ctrl+t", opens=True)
async def search(host: Host, words: str) -> None:
    """Search all conversations and open the picked hit at its turn."""
    from ragforge_tui.tui.sessions.search_screen import SearchScreen
    from ragforge_tui.tui.sessions.session_service import SessionService

    def picked(hit: SearchHit) -> None:
        host.navigator.go_to_turns(hit.turn_index, conversation_id=hit.conversation_id)

    host.open_screen(SearchScreen(SessionService(host), words), picked)


@COMMANDS.add("history", "Find an earlier prompt of yours", arguments="[WORDS]", key="ctrl+r", opens=True)
async def search_history(host: Host, words: str) -> None:
    """Open the list of earlier prompts above the prompt, or search it for other words."""
    from ragforge_tui.tui.dialogs.history_search import HistorySearch

    host.prompt.completing.close()
    if (search := next(iter(host.app.query(HistorySearch)), None)) is not None:
        search.search_for(words)
    else:
        await host.app.mount(HistorySearch(host, words), before="#prompt-row")


def open_conversation_id(host: Host) -> str:
    """Return the id of the open conversation.

    Raises:
        NotFoundError: No conversation is open.
    """
    conversation_id = host.session.state.conversation_id
    if not conversation_id:
        raise NotFoundError("No conversation is open yet.", todo="Send a message, or /resume one.")
    return conversation_id


def conversation_with_messages(host: Host) -> str:
    """Return the id of the open conversation.

    Raises:
        NotFoundError: It has no messages yet.
    """
    uuid = host.session.state.conversation_id
    if not uuid:
        raise NotFoundError("This conversation has no messages yet.", todo="Send one, or /resume a conversation.")
    return uuid


def turn_number(text: str, example: str) -> int:
    """Return the turn that a command's argument names, such as ``12`` or ``t12``; 0 for none.

    Raises:
        RagforgeError: It is not a number.
    """
    wanted = text.strip().removeprefix("t")
    if wanted and not wanted.isdecimal():
        raise RagforgeError(f"{text!r} is not the number of a turn.", todo=f"/{example}.")
    return int(wanted or 0)


@COMMANDS.add("usage", "Show tokens and cost by day, model, folder or cause", ("cost",))
async def show_usage(host: Host, _: str) -> None:
    """Show what requests to models took, and what they were spent on."""
    from ragforge_tui.tui.past.usage_screen import UsageScreen

    state = host.session.state
    places = {"all folders": {}, "this folder": {"workspace": host.options.workspace}}
    if state.conversation_id:
        places["this conversation"] = {"conversation_id": state.conversation_id}
    host.open_screen(UsageScreen(host.session.ask, places, said=usage_text(state.spent), now=host.now))


def usage_text(spent: Spent) -> str:
    """Return the tokens and the cost since the chat was started as a sentence."""
    if not spent.tokens:
        return "No tokens were counted since this chat was started."
    cost = f", {dollars(spent.cost)}" if spent.cost else ""
    return (
        f"Since this chat was started: {short_count(spent.input_tokens)} tokens sent, "
        f"{short_count(spent.output_tokens)} received{cost}. Each request sends the conversation again."
    )
