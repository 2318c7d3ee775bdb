"""What the slash commands do. `commands.py` names them; this is where they reach the engine and the screen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragforge_tui.protocol import (
    ListModels,
    RetryTurn,
    SetModel,
)
from ragforge_tui.tui.choices import Choice
from ragforge_tui.tui.completion_actions import CompletionActions
from ragforge_tui.tui.link_actions import LinkActions
from ragforge_tui.tui.looks_actions import LooksActions
from ragforge_tui.tui.memory_actions import MemoryActions
from ragforge_tui.tui.persona_actions import PersonaActions
from ragforge_tui.tui.picking import model_rows
from ragforge_tui.tui.prompt_actions import PromptActions
from ragforge_tui.tui.session_actions import SessionActions
from ragforge_tui.tui.session_desk import SessionDesk
from ragforge_tui.tui.sidebar_actions import SidebarActions
from ragforge_tui.tui.turn_actions import TurnActions
from ragforge_tui.tui.work_actions import WorkActions

if TYPE_CHECKING:
    from ragforge_tui.tui.app import ChatApp


class ChatActions(
    SessionActions,
    PersonaActions,
    MemoryActions,
    WorkActions,
    SidebarActions,
    CompletionActions,
    LooksActions,
    PromptActions,
    TurnActions,
    LinkActions,
):
    """The commands of one chat screen. Pickers, help and exports are imported when first wanted."""

    def __init__(self, app: ChatApp) -> None:
        self._app = app
        self._desk = SessionDesk(app)

    async def help(self) -> None:
        """Show all commands and keys."""
        from ragforge_tui.tui.help import HelpScreen

        options = self._app.options
        self._app.push_screen(HelpScreen(self._app.registry, options.version, options.tui.keymap))

    async def new(self) -> None:
        """An empty screen; a turn under way goes on in the engine."""
        self._app.controller.leave_conversation()

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

    async def stop(self) -> None:
        """Stop the answer under way."""
        await self._app.controller.stop()

    async def quit(self) -> None:
        """Leave the chat."""
        await self._app.leave()
