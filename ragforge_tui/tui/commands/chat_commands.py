"""Commands about the chat itself: help, new conversation, model, retry, panes, prompt, stop, quit."""

from __future__ import annotations

from ragforge_tui.shared.errors import NotFoundError
from ragforge_tui.shared.requests.turns import RetryTurn
from ragforge_tui.shared.requests.work import ListModels, SetModel
from ragforge_tui.tui.host import Host
from ragforge_tui.tui.sessions.session_rows import model_rows
from ragforge_tui.tui.widgets.choice_list import Choice


async def show_help(host: Host) -> None:
    """Show all commands and keys."""
    from ragforge_tui.tui.dialogs.help_screen import HelpScreen

    host.open_screen(HelpScreen(host.registry, host.options.version, host.options.tui.keymap))


async def new_conversation(host: Host) -> None:
    """Show an empty screen; a running turn continues in the engine."""
    host.session.leave_conversation()


async def use_model(host: Host, name: str) -> None:
    """Use a model from the next turn on; without a name, show a list."""
    session = host.session
    if name:
        changed = await session.ask(SetModel(name=name))
        session.model_changed(changed)
        session.changed()
        if changed.error is None:
            where = f" ({changed.destination})" if changed.destination else ""
            session.notice(f"{changed.name}{where} answers from the next message on.")
        return
    from ragforge_tui.tui.dialogs.picker import Picker

    async def rows() -> list[Choice]:
        model = session.state.model
        names = await session.ask(ListModels())
        return model_rows(names, model.name if model else "")

    def picked(key: str | None) -> None:
        if key:
            session.spawn(use_model(host, key), group="model", exclusive=True)

    host.open_screen(Picker("Models", rows, empty="no model was found", verb="use"), picked)


async def retry(host: Host) -> None:
    await host.session.ask(RetryTurn(conversation_id=open_conversation_id(host)))


async def edit_prompt(host: Host) -> None:
    """Edit the prompt in the user's editor; leaving the editor sends nothing."""
    from ragforge_tui.tui.dialogs.external_editor import edited

    # The chat is suspended meanwhile: the draft must survive if it is killed.
    host.save_draft()
    text = await edited(host.app, host.prompt.whole, "prompt.md")
    host.prompt.put_whole(text.rstrip())
    host.prompt.focus()


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
