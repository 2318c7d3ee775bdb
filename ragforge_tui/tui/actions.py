"""What the slash commands do. `commands.py` names them; this is where they reach the engine and the screen."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from ragforge_tui.errors import NotFoundError, RagforgeError
from ragforge_tui.models import ConversationExport, ConversationFilter
from ragforge_tui.protocol import (
    ArchiveConversation,
    DeleteConversation,
    ExportConversation,
    ListConversations,
    ListModels,
    RestoreConversation,
    RetryTurn,
    SetModel,
    UpdateConversation,
)
from ragforge_tui.tui.choices import Choice
from ragforge_tui.tui.history import Entry
from ragforge_tui.tui.memory_actions import MemoryActions
from ragforge_tui.tui.persona_actions import PersonaActions
from ragforge_tui.tui.picking import model_rows, session_rows
from ragforge_tui.tui.sidebar_actions import SidebarActions
from ragforge_tui.tui.work_actions import WorkActions

if TYPE_CHECKING:
    from ragforge_tui.tui.app import ChatApp

PICKED_SESSIONS = 500


class ChatActions(PersonaActions, MemoryActions, WorkActions, SidebarActions):
    """The commands of one chat screen. Pickers, help and exports are imported when first wanted."""

    def __init__(self, app: ChatApp) -> None:
        self._app = app
        self._deleted = ""

    async def help(self) -> None:
        """Show all commands and keys."""
        from ragforge_tui.tui.help import HelpScreen

        self._app.push_screen(HelpScreen(self._app.registry, self._app.options.version))

    async def new(self) -> None:
        """An empty screen; a turn under way goes on in the engine."""
        self._app.controller.leave_conversation()

    async def resume(self, ref: str) -> None:
        """Open by id or prefix, or pick."""
        if ref:
            await self._app.controller.open(ref)
        else:
            self.pick_session_soon()

    async def pick_session(self) -> None:
        """Pick one."""
        self.pick_session_soon()

    def pick_session_soon(self) -> None:
        """Show the sessions; the picked one is opened."""
        from ragforge_tui.tui.picker import Picker

        def picked(key: str | None) -> None:
            if key:
                self._app.controller.spawn(self._app.controller.open(key), group="open", exclusive=True)

        picker = Picker("Sessions", self._sessions, empty="no conversation in this folder yet", verb="open")
        self._app.push_screen(picker, picked)

    async def _sessions(self) -> list[Choice]:
        wanted = ConversationFilter(workspace=self._app.options.workspace or None, limit=PICKED_SESSIONS)
        found = await self._app.controller.ask(ListConversations(filter=wanted))
        state = self._app.controller.state
        glyphs = {name: glyph for name, (glyph, _) in state.looks.items()}
        return session_rows(found, self._app.now(), current=state.conversation_id, glyphs=glyphs)

    async def model(self, name: str) -> None:
        """Use a model from the next turn on, or pick one."""
        if name:
            changed = await self._app.controller.ask(SetModel(name=name))
            self._app.controller.model_changed(changed)
            self._app.refresh_chrome()
            if changed.error is None:
                where = f" ({changed.destination})" if changed.destination else ""
                self._notice(f"{changed.name}{where} answers from the next message on.")
            return
        from ragforge_tui.tui.picker import Picker

        def picked(key: str | None) -> None:
            if key:
                self._app.controller.spawn(self.model(key), group="model", exclusive=True)

        self._app.push_screen(Picker("Models", self._models, empty="no model was found", verb="use"), picked)

    async def _models(self) -> list[Choice]:
        names = await self._app.controller.ask(ListModels())
        model = self._app.controller.state.model
        return model_rows(names, model.name if model else "")

    async def retry(self) -> None:
        """Ask again for the last answer."""
        await self._app.controller.ask(RetryTurn(conversation_id=self._open_id()))

    async def rename(self, title: str) -> None:
        """Give the conversation a title; without one the present title is put into the prompt to edit."""
        conversation_id = self._open_id()
        conversation = self._app.controller.state.conversation
        if not title and conversation is not None:
            self._app.prompt.put(Entry(f"/rename {conversation.title}"))
            return
        self._app.controller.state.conversation = await self._app.controller.ask(
            UpdateConversation(conversation_id=conversation_id, title=title)
        )
        self._app.refresh_chrome()

    async def tag(self, tags: str) -> None:
        """Replace the conversation's tags; without any the present ones are put into the prompt to edit."""
        conversation_id = self._open_id()
        conversation = self._app.controller.state.conversation
        if not tags:
            present = " ".join(conversation.tags) if conversation else ""
            self._app.prompt.put(Entry(f"/tag {present}"))
            return
        wanted = [] if tags == "-" else list(dict.fromkeys(tag.lstrip("#") for tag in tags.replace(",", " ").split()))
        changed = await self._app.controller.ask(
            UpdateConversation(conversation_id=conversation_id, tags=[tag for tag in wanted if tag])
        )
        self._app.controller.state.conversation = changed
        self._notice(f"Tags: {', '.join(changed.tags)}" if changed.tags else "This conversation has no tags.")

    async def private(self, wanted: str) -> None:
        """Keep the conversation from being recalled and found elsewhere, or let it be again."""
        conversation_id = self._open_id()
        conversation = self._app.controller.state.conversation
        if wanted not in ("", "on", "off"):
            raise RagforgeError(f"{wanted!r} is neither on nor off.", todo="/private alone switches.")
        private = wanted == "on" if wanted else not (conversation and conversation.private)
        changed = await self._app.controller.ask(UpdateConversation(conversation_id=conversation_id, private=private))
        self._app.controller.state.conversation = changed
        self._notice(
            "Private: no other conversation recalls or finds this one. /private again lets them."
            if private
            else "Not private: other conversations may recall this one."
        )

    async def archive(self) -> None:
        """Put the conversation away."""
        conversation_id = self._open_id()
        await self._app.controller.ask(ArchiveConversation(conversation_id=conversation_id))
        self._app.controller.leave_conversation()
        self._notice(f"Archived. /resume {conversation_id[:8]} opens it again.")

    async def delete(self) -> None:
        """Hide the conversation; it is purged after seven days."""
        conversation_id = self._open_id()
        await self._app.controller.ask(DeleteConversation(conversation_id=conversation_id))
        self._deleted = conversation_id
        self._app.controller.leave_conversation()
        self._notice("Deleted; it is kept for 7 days. /undo-delete brings it back.")

    async def undo_delete(self) -> None:
        """Bring back what was deleted last, here or in another terminal."""
        deleted = self._deleted or await self._last_deleted()
        if not deleted:
            raise NotFoundError("No deleted conversation of this folder is left.")
        await self._app.controller.ask(RestoreConversation(conversation_id=deleted))
        self._deleted = ""
        await self._app.controller.open(deleted)

    async def _last_deleted(self) -> str:
        wanted = ConversationFilter(status="deleted", workspace=self._app.options.workspace or None)
        found = await self._app.controller.ask(ListConversations(filter=wanted))
        newest = max(found, key=lambda conversation: conversation.deleted_at or conversation.updated_at, default=None)
        return newest.uuid if newest else ""

    async def export(self, target: str) -> None:
        """Write the conversation to a file of the workspace."""
        from ragforge_tui.export import file_name

        conversation_id = self._open_id()
        data = await self._app.controller.ask(ExportConversation(ref=conversation_id))
        path = Path(self._app.options.workspace or ".") / (target or file_name(conversation_id, "json"))
        try:
            await asyncio.to_thread(_write, path, data, replace=not target)
        except FileExistsError:
            raise RagforgeError(f"{path} exists and was left as it is.", todo="Name another file.") from None
        except OSError as error:
            raise RagforgeError(f"{path} could not be written: {error.strerror}.") from error
        self._notice(f"Written to {path}")

    async def stop(self) -> None:
        """Stop the answer under way."""
        await self._app.controller.stop()

    async def quit(self) -> None:
        """Leave the chat."""
        await self._app.leave()

    def _open_id(self) -> str:
        conversation_id = self._app.controller.state.conversation_id
        if not conversation_id:
            raise NotFoundError("No conversation is open yet.", todo="Send a message, or /resume one.")
        return conversation_id

    def _notice(self, text: str) -> None:
        self._app.controller.notice(text, "info")


def _write(path: Path, data: ConversationExport, *, replace: bool) -> None:
    from ragforge_tui.export import to_json, to_markdown

    markdown = path.suffix.lower() == ".md"
    content = to_markdown(data).encode("utf-8", "replace") if markdown else to_json(data)
    with path.open("wb" if replace else "xb") as file:
        file.write(content)
