"""Ways to the screens of code: from a command, a file, a tool call. The screens are imported when first used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragforge_tui.shared.code_views import code_of
from ragforge_tui.shared.records import ToolCall
from ragforge_tui.tui.host import Host

if TYPE_CHECKING:
    from ragforge_tui.shared.code_records import ScopeTalk


def open_code(host: Host, query: str = "") -> None:
    """Show the search for code; without words, what the conversation touched."""
    from ragforge_tui.tui.code.code_screen import CodeScreen

    screen = CodeScreen(host.session.ask, conversation_id=host.session.state.conversation_id, query=query)
    host.open_screen(screen, lambda talk: _go_to(host, talk))


def open_file_code(host: Host, path: str) -> None:
    """Show the scopes of a file."""
    from ragforge_tui.tui.code.code_screen import in_file

    open_code(host, in_file(path))


def open_call_code(host: Host, call: ToolCall) -> None:
    """Show the scope that a call was about, or those of its file."""
    found = code_of(call)
    if found is None:
        host.hint("this call is about no code")
    elif found.scope:
        _open_scope(host, found.scope)
    else:
        open_file_code(host, found.path)


def _open_scope(host: Host, uuid: str) -> None:
    from ragforge_tui.tui.code.code_screen import scope_loader
    from ragforge_tui.tui.code.scope_screen import ScopeScreen

    host.open_screen(ScopeScreen(scope_loader(host.session.ask), uuid), lambda talk: _go_to(host, talk))


def _go_to(host: Host, talk: ScopeTalk) -> None:
    host.navigator.go_to_turns(talk.turn_index, conversation_id=talk.conversation_id)
