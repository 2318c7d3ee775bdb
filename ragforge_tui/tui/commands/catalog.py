"""All commands: the slash menu, key bindings, palette, footer and /help are made from this table."""

from __future__ import annotations

from ragforge_tui.tui.command_registry import Command
from ragforge_tui.tui.commands.chat_commands import (
    edit_prompt,
    new_conversation,
    retry,
    show_help,
    use_model,
)
from ragforge_tui.tui.commands.memory_commands import show_context, show_similar, show_topics, summarize
from ragforge_tui.tui.commands.persona_commands import (
    create_persona,
    delete_persona,
    edit_persona,
    set_persona,
    show_personas,
    undo_delete_persona,
)
from ragforge_tui.tui.commands.session_commands import (
    archive,
    delete,
    export,
    rename,
    resume,
    search,
    set_private,
    show_sessions,
    tag,
    undo_delete,
)
from ragforge_tui.tui.commands.settings_commands import set_theme, show_settings
from ragforge_tui.tui.commands.turn_commands import branch, edit, find, go_to_turn
from ragforge_tui.tui.commands.work_commands import redo, set_mode, show_diff, undo
from ragforge_tui.tui.host import Host
from ragforge_tui.tui.sidebar.pane import PANES, PaneEntry


async def toggle_sidebar(host: Host, _: str) -> None:
    host.toggle_pane()


def _pane_command(entry: PaneEntry) -> Command:
    async def show(host: Host, _: str) -> None:
        host.toggle_pane(entry.name)

    return Command(entry.name, entry.help, show, key=entry.key, opens=True, keys=entry.keys)


def all_commands() -> tuple[Command, ...]:
    """Return all commands, those of the registered panes among them."""
    return (
        Command(
            "help",
            "Show commands and keys",
            lambda host, _: show_help(host),
            ("?", "keys"),
            key="f1",
            group="Chat",
            opens=True,
        ),
        Command("new", "Start a new conversation", lambda host, _: new_conversation(host), ("clear",), key="ctrl+n"),
        Command(
            "resume",
            "Open a conversation by id, or pick one",
            resume,
            arguments="[ID]",
            completes="sessions",
        ),
        Command(
            "sessions",
            "Find and open an earlier conversation",
            lambda host, _: show_sessions(host),
            key="ctrl+o",
            opens=True,
        ),
        Command(
            "search",
            "Find words in all sessions",
            search,
            arguments="[WORDS]",
            key="ctrl+t",
            opens=True,
        ),
        Command(
            "model",
            "Choose the model that answers next",
            use_model,
            arguments="[NAME]",
            completes="models",
        ),
        Command(
            "personas",
            "Show the personas and choose one",
            show_personas,
            ("persona",),
            arguments="[NAME]",
            key="f2",
            completes="personas",
            group="Personas",
            opens=True,
        ),
        Command(
            "set-persona",
            "Switch to another persona",
            set_persona,
            arguments="NAME|NUMBER",
            completes="personas",
        ),
        Command(
            "create-persona",
            "Create a persona: Name | colour | language | description, or step by step",
            create_persona,
            arguments="[LINE]",
        ),
        Command(
            "edit-persona",
            "Edit a persona in $EDITOR",
            edit_persona,
            arguments="[NAME]",
            completes="personas",
        ),
        Command(
            "delete-persona",
            "Delete one of your personas",
            delete_persona,
            arguments="NAME",
            completes="personas",
        ),
        Command("undo-delete-persona", "Restore the persona deleted last", lambda host, _: undo_delete_persona(host)),
        Command(
            "context",
            "Show what the model was sent in a turn",
            show_context,
            arguments="[TURN]",
            group="Memory, tools and files",
        ),
        *(_pane_command(entry) for entry in sorted(PANES, key=lambda entry: entry.key)),
        Command("sidebar", "Show or hide the sidebar", toggle_sidebar, key="f8"),
        Command("summary", "Write this conversation's summary now", lambda host, _: summarize(host)),
        Command(
            "topics",
            "Show the topics of this folder's conversations; merge or split them",
            show_topics,
            arguments="[WORDS]",
            completes="topics",
        ),
        Command("similar", "Show similar conversations", lambda host, _: show_similar(host)),
        Command(
            "find",
            "Find a text in this conversation",
            find,
            arguments="[TEXT]",
            key="ctrl+f",
            group="This conversation",
            opens=True,
        ),
        Command("turn", "Go to a turn", go_to_turn, ("goto",), arguments="TURN"),
        Command("edit", "Edit a message and send it in a branch", edit, arguments="[TURN]"),
        Command("branch", "Continue from a turn in a new conversation", branch, ("fork",), "[TURN]"),
        Command("retry", "Ask for the last answer again", lambda host, _: retry(host)),
        Command("rename", "Give this conversation a title", rename, arguments="TITLE"),
        Command("tag", "Give this conversation tags; - removes them", tag, arguments="TAGS"),
        Command(
            "private",
            "Keep other conversations from recalling this one",
            set_private,
            arguments="[on|off]",
            completes=("on", "off"),
        ),
        Command("archive", "Archive this conversation", lambda host, _: archive(host)),
        Command(
            "delete", "Delete this conversation; /undo-delete restores it within 7 days", lambda host, _: delete(host)
        ),
        Command("undo-delete", "Restore the conversation deleted last", lambda host, _: undo_delete(host)),
        Command(
            "export",
            "Write this conversation to a file (.json or .md)",
            export,
            arguments="[FILE]",
            completes="files",
        ),
        Command(
            "mode",
            "Set what the agent may do without asking: plan (only read), ask, or edits",
            set_mode,
            arguments="[plan|ask|edits]",
            group="The agent's work",
            completes=("plan", "ask", "edits"),
            key="shift+tab",
        ),
        Command(
            "diff", "Show what the agent changed in files during this conversation", lambda host, _: show_diff(host)
        ),
        Command("undo", "Restore files as they were before a turn", undo, arguments="[TURN]"),
        Command("redo", "Revert the last undo", lambda host, _: redo(host)),
        Command(
            "settings",
            "Show and change every setting",
            show_settings,
            ("config",),
            "[WORDS]",
            group="Screen",
        ),
        Command("theme", "Choose the colours", set_theme, arguments="[NAME]", completes="themes"),
        Command("editor", "Write the prompt in $VISUAL or $EDITOR", lambda host, _: edit_prompt(host), key="ctrl+g"),
        Command("stop", "Stop the running answer", lambda host, _: host.session.stop(), key="escape", hint="stop"),
        Command("quit", "Leave the chat", lambda host, _: host.leave(), ("exit", "q"), key="ctrl+q", hint="quit"),
    )
