"""The one registry of commands: slash menu, key bindings, palette, footer and /help all come from it.

Pure; loads no widgets. Handlers call `Actions`, which `actions.py` implements.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Awaitable, Callable
from typing import Protocol

import msgspec

from ragforge_tui.tui import fuzzy


class Actions(Protocol):
    """What commands can do to the chat."""

    async def help(self) -> None: ...
    async def new(self) -> None: ...
    async def resume(self, ref: str) -> None: ...
    async def pick_session(self) -> None: ...
    async def search(self, words: str) -> None: ...
    async def model(self, name: str) -> None: ...
    async def personas(self) -> None: ...
    async def set_persona(self, wanted: str) -> None: ...
    async def create_persona(self, line: str) -> None: ...
    async def edit_persona(self, name: str) -> None: ...
    async def delete_persona(self, name: str) -> None: ...
    async def undo_delete_persona(self) -> None: ...
    async def context(self, turn: str) -> None: ...
    async def memory(self) -> None: ...
    async def trace(self) -> None: ...
    async def files(self) -> None: ...
    async def sidebar(self) -> None: ...
    async def summary(self) -> None: ...
    async def topics(self, query: str) -> None: ...
    async def similar(self) -> None: ...
    async def find(self, text: str) -> None: ...
    async def turn(self, which: str) -> None: ...
    async def edit(self, which: str) -> None: ...
    async def branch(self, which: str) -> None: ...
    async def retry(self) -> None: ...
    async def rename(self, title: str) -> None: ...
    async def tag(self, tags: str) -> None: ...
    async def private(self, wanted: str) -> None: ...
    async def archive(self) -> None: ...
    async def delete(self) -> None: ...
    async def undo_delete(self) -> None: ...
    async def export(self, target: str) -> None: ...
    async def mode(self, wanted: str) -> None: ...
    async def diff(self) -> None: ...
    async def undo(self, turn: str) -> None: ...
    async def redo(self) -> None: ...
    async def edit_prompt(self) -> None: ...
    async def settings(self, query: str) -> None: ...
    async def theme(self, name: str) -> None: ...
    async def stop(self) -> None: ...
    async def quit(self) -> None: ...


class Command(msgspec.Struct, frozen=True):
    """One thing a person can ask of the chat.

    Attributes:
        arguments: How they are written, such as ``[ID]``; empty when it takes none.
        key: The key it is bound to, empty for none; `name` is its id in `tui.keymap`.
        hint: A word for the footer; empty keeps it out.
        completes: What its argument is completed from: the words themselves, or the name of a source in
            `completion_actions.py`; empty for nothing.
        opens: Whether its key takes the keyboard elsewhere: what is typed behind it waits until that stands.
        group: The heading it and those after it stand under in /help; empty: that of the one before.
    """

    name: str
    help: str
    handler: Callable[[Actions, str], Awaitable[None]]
    aliases: tuple[str, ...] = ()
    arguments: str = ""
    key: str = ""
    hint: str = ""
    completes: str | tuple[str, ...] = ""
    group: str = ""
    opens: bool = False

    @property
    def usage(self) -> str:
        """As it is typed."""
        return f"/{self.name} {self.arguments}".rstrip()


COMMANDS: tuple[Command, ...] = (
    Command("help", "Commands and keys", lambda do, _: do.help(), ("?", "keys"), key="f1", group="Chat", opens=True),
    Command("new", "Start a new conversation", lambda do, _: do.new(), ("clear",), key="ctrl+n"),
    Command(
        "resume",
        "Open a conversation by id, or pick one",
        lambda do, ref: do.resume(ref),
        arguments="[ID]",
        completes="sessions",
    ),
    Command(
        "sessions", "Find and open an earlier conversation", lambda do, _: do.pick_session(), key="ctrl+o", opens=True
    ),
    Command(
        "search",
        "Find words in all sessions",
        lambda do, words: do.search(words),
        arguments="[WORDS]",
        key="ctrl+t",
        opens=True,
    ),
    Command(
        "model",
        "Choose the model that answers next",
        lambda do, name: do.model(name),
        arguments="[NAME]",
        completes="models",
    ),
    Command(
        "personas",
        "See who can speak, and choose",
        lambda do, who: do.set_persona(who) if who else do.personas(),
        ("persona",),
        arguments="[NAME]",
        key="f2",
        completes="personas",
        group="Personas",
        opens=True,
    ),
    Command(
        "set-persona",
        "Let another persona speak next",
        lambda do, who: do.set_persona(who),
        arguments="NAME|NUMBER",
        completes="personas",
    ),
    Command(
        "create-persona",
        "Make a persona: Name | colour | language | description, or step by step",
        lambda do, line: do.create_persona(line),
        arguments="[LINE]",
    ),
    Command(
        "edit-persona",
        "Edit a persona in $EDITOR",
        lambda do, who: do.edit_persona(who),
        arguments="[NAME]",
        completes="personas",
    ),
    Command(
        "delete-persona",
        "Delete a persona of yours",
        lambda do, who: do.delete_persona(who),
        arguments="NAME",
        completes="personas",
    ),
    Command("undo-delete-persona", "Bring back the persona deleted last", lambda do, _: do.undo_delete_persona()),
    Command(
        "context",
        "What the model was sent in a turn",
        lambda do, turn: do.context(turn),
        arguments="[TURN]",
        group="Memory, tools and files",
    ),
    Command(
        "memory",
        "The tree of summaries and the topics of this conversation",
        lambda do, _: do.memory(),
        key="f3",
        opens=True,
    ),
    Command("trace", "Calls of tools: arguments, results, diffs", lambda do, _: do.trace(), key="f4", opens=True),
    Command("files", "Files that were read, changed or found", lambda do, _: do.files(), key="f5", opens=True),
    Command("sidebar", "Show or fold the sidebar", lambda do, _: do.sidebar(), key="f8"),
    Command("summary", "Write this conversation's summary now", lambda do, _: do.summary()),
    Command(
        "topics",
        "Topics of this folder's conversations; merge them, take them apart",
        lambda do, words: do.topics(words),
        arguments="[WORDS]",
        completes="topics",
    ),
    Command("similar", "Conversations like this one", lambda do, _: do.similar()),
    Command(
        "find",
        "Find a text in this conversation",
        lambda do, text: do.find(text),
        arguments="[TEXT]",
        key="ctrl+f",
        group="This conversation",
        opens=True,
    ),
    Command("turn", "Go to a turn", lambda do, which: do.turn(which), ("goto",), arguments="TURN"),
    Command("edit", "Write a message anew and send it in a branch", lambda do, t: do.edit(t), arguments="[TURN]"),
    Command("branch", "Go on from a turn in a new conversation", lambda do, t: do.branch(t), ("fork",), "[TURN]"),
    Command("retry", "Ask again for the last answer", lambda do, _: do.retry()),
    Command("rename", "Give this conversation a title", lambda do, title: do.rename(title), arguments="TITLE"),
    Command("tag", "Give this conversation tags; - removes them", lambda do, tags: do.tag(tags), arguments="TAGS"),
    Command(
        "private",
        "Keep others from recalling this one",
        lambda do, wanted: do.private(wanted),
        arguments="[on|off]",
        completes=("on", "off"),
    ),
    Command("archive", "Put this conversation away", lambda do, _: do.archive()),
    Command("delete", "Delete it; /undo-delete brings it back for 7 days", lambda do, _: do.delete()),
    Command("undo-delete", "Bring back the conversation deleted last", lambda do, _: do.undo_delete()),
    Command(
        "export",
        "Write this conversation to a file (.json or .md)",
        lambda do, to: do.export(to),
        arguments="[FILE]",
        completes="files",
    ),
    Command(
        "mode",
        "What the agent may do unasked: plan (only read), ask, or edits",
        lambda do, wanted: do.mode(wanted),
        arguments="[plan|ask|edits]",
        group="The agent's work",
        completes=("plan", "ask", "edits"),
        key="shift+tab",
    ),
    Command("diff", "What the agent changed in files during this conversation", lambda do, _: do.diff()),
    Command(
        "undo", "Put files back to what they were before a turn", lambda do, turn: do.undo(turn), arguments="[TURN]"
    ),
    Command("redo", "Take the last undo back", lambda do, _: do.redo()),
    Command(
        "settings",
        "See and change every setting",
        lambda do, words: do.settings(words),
        ("config",),
        "[WORDS]",
        group="Screen",
    ),
    Command("theme", "Choose the colours", lambda do, name: do.theme(name), arguments="[NAME]", completes="themes"),
    Command("editor", "Write the prompt in $VISUAL or $EDITOR", lambda do, _: do.edit_prompt(), key="ctrl+g"),
    Command("stop", "Stop the answer under way", lambda do, _: do.stop(), key="escape", hint="stop"),
    Command("quit", "Leave the chat", lambda do, _: do.quit(), ("exit", "q"), key="ctrl+q", hint="quit"),
)

_SHAPE = re.compile(r"/([A-Za-z?][\w-]*|\?)?$")


class Parsed(msgspec.Struct, frozen=True):
    """A line that has the shape of a command; `command` is None when there is none of that name."""

    name: str
    argument: str
    command: Command | None


class Registry:
    """Commands by name and alias."""

    def __init__(self, commands: tuple[Command, ...] = COMMANDS) -> None:
        self.commands = commands
        self._by_name = {name: command for command in commands for name in (command.name, *command.aliases)}

    def get(self, name: str) -> Command | None:
        """By name or alias."""
        return self._by_name.get(name.lower())

    def groups(self) -> dict[str, list[Command]]:
        """All commands under their headings."""
        found: dict[str, list[Command]] = {}
        heading = ""
        for command in self.commands:
            heading = command.group or heading
            found.setdefault(heading, []).append(command)
        return found

    def parse(self, text: str) -> Parsed | None:
        """What a prompt asks for, or None when it is a message.

        A path such as ``/usr/bin`` at the start of a message is not a command.
        """
        word, _, argument = text.strip().partition(" ")
        match = _SHAPE.match(word)
        if match is None or "\n" in word:
            return None
        name = match[1] or ""
        return Parsed(name, argument.strip(), self.get(name))

    def suggest(self, name: str) -> Command | None:
        """The command that was probably meant."""
        close = difflib.get_close_matches(name.lower(), self._by_name, n=3, cutoff=0.6)
        close.sort(key=lambda near: sorted(near) != sorted(name.lower()))  # Swapped letters are the commonest slip.
        return self._by_name[close[0]] if close else None

    def complete(self, text: str) -> list[Command]:
        """Commands for the menu while a prompt's first word is being typed, best first."""
        if not text.startswith("/") or not _SHAPE.match(text):
            return []
        return fuzzy.best(text[1:], self.commands, lambda command: " ".join((command.name, *command.aliases)))


def key_name(keys: str) -> str:
    """A key as people write it: ``ctrl+o`` is ``^o``; the first of several."""
    key = keys.partition(",")[0].strip()
    if key[:1] == "f" and key[1:].isdecimal():
        return key.upper()
    return "esc" if key == "escape" else key.replace("ctrl+", "^")
