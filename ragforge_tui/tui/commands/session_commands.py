"""Commands about the open conversation as a record: rename, tag, archive, delete, restore, export."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragforge_tui.shared.errors import RagforgeError
from ragforge_tui.tui.command_registry import Command
from ragforge_tui.tui.commands.chat_commands import open_conversation_id
from ragforge_tui.tui.host import Host
from ragforge_tui.tui.prompt.history import Entry
from ragforge_tui.tui.sessions.session_service import SessionService, parse_tags

if TYPE_CHECKING:
    pass


async def rename(host: Host, title: str) -> None:
    """Give the conversation a title; without one, put the current title into the prompt to edit."""
    conversation_id = open_conversation_id(host)
    conversation = host.session.state.conversation
    if not title and conversation is not None:
        host.prompt.put(Entry(f"/rename {conversation.title}"))
        return
    await SessionService(host).rename(conversation_id, title)


async def tag(host: Host, tags: str) -> None:
    """Replace the conversation's tags; without any, put the current ones into the prompt to edit."""
    conversation_id = open_conversation_id(host)
    conversation = host.session.state.conversation
    if not tags:
        present = " ".join(conversation.tags) if conversation else ""
        host.prompt.put(Entry(f"/tag {present}"))
        return
    changed = await SessionService(host).tag(conversation_id, [] if tags == "-" else parse_tags(tags))
    host.session.notice(f"Tags: {', '.join(changed.tags)}" if changed.tags else "This conversation has no tags.")


async def set_private(host: Host, wanted: str) -> None:
    """Keep the conversation from being recalled and found elsewhere, or allow it again."""
    conversation_id = open_conversation_id(host)
    conversation = host.session.state.conversation
    if wanted not in ("", "on", "off"):
        raise RagforgeError(f"/private takes on or off, not {wanted!r}.", todo="/private alone toggles it.")
    private = wanted == "on" if wanted else not (conversation and conversation.private)
    await SessionService(host).set_private(conversation_id, private)
    host.session.notice(
        "Private: no other conversation recalls or finds this one. /private again allows it."
        if private
        else "Not private: other conversations may recall this one."
    )


async def archive(host: Host) -> None:
    """Archive the conversation."""
    conversation_id = open_conversation_id(host)
    await SessionService(host).archive(conversation_id)
    host.session.notice(f"Archived. /resume {conversation_id[:8]} opens it again.")


async def delete(host: Host) -> None:
    """Hide the conversation; it is purged after seven days."""
    await SessionService(host).delete(open_conversation_id(host))
    host.session.notice("Deleted. /undo-delete restores it within 7 days.")


async def undo_delete(host: Host) -> None:
    """Restore the conversation that was deleted last, here or in another terminal."""
    service = SessionService(host)
    deleted = await service.last_deleted()
    await service.restore(deleted)
    await host.open_conversation(deleted)


async def export(host: Host, target: str) -> None:
    """Write the conversation to a file of the workspace."""
    host.session.notice(f"Written to {await SessionService(host).export(open_conversation_id(host), target)}")


COMMANDS = (
    Command("rename", "Give this conversation a title", rename, arguments="TITLE", group="This conversation"),
    Command("tag", "Give this conversation tags; - removes them", tag, arguments="TAGS", group="This conversation"),
    Command(
        "private",
        "Keep other conversations from recalling this one",
        set_private,
        arguments="[on|off]",
        completes=("on", "off"),
        group="This conversation",
    ),
    Command("archive", "Archive this conversation", lambda host, _: archive(host), group="This conversation"),
    Command(
        "delete",
        "Delete this conversation; /undo-delete restores it within 7 days",
        lambda host, _: delete(host),
        group="This conversation",
    ),
    Command(
        "undo-delete",
        "Restore the conversation deleted last",
        lambda host, _: undo_delete(host),
        group="This conversation",
    ),
    Command(
        "export",
        "Write this conversation to a file (.json or .md)",
        export,
        arguments="[FILE]",
        completes="files",
        group="This conversation",
    ),
)
