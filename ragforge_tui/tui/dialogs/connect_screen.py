"""Dialog that connects one provider: its address if the user has to name it, and its key, which is never shown.

The engine checks and stores them; the screen is left once it has.
"""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widgets import Input, Static

from ragforge_tui.shared.errors import RagforgeError
from ragforge_tui.shared.requests.models import CancelConnect, Connected, ConnectProvider, ProviderInfo
from ragforge_tui.tui.drawing.lines import one_line
from ragforge_tui.tui.host import Host
from ragforge_tui.tui.widgets.key_bar import KeyBar, KeyHint
from ragforge_tui.tui.widgets.list_screen import BACK, Dialog

CANCELLED = "cancelled"
"""Kind of the error of a check that was cancelled."""
KEYS = (KeyHint("connect", "enter", "connect"), BACK)


class ConnectScreen(Dialog[Connected | None]):
    """Fields for the address and the key of a provider.

    Args:
        why: Why the user is asked, as a sentence; empty if they asked for it.
    """

    DEFAULT_CSS = """
    ConnectScreen > Vertical { width: 76; height: auto; }
    ConnectScreen Input { margin: 1 0 0 0; }
    ConnectScreen .note { color: $text-muted; }
    ConnectScreen .why { color: $warning; }
    ConnectScreen KeyBar { margin: 1 0 0 0; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", show=False)]

    def __init__(self, host: Host, provider: ProviderInfo, *, why: str = "") -> None:
        super().__init__()
        self._host = host
        self._provider = provider
        self._why = why
        self._checking = False
        self._keys = KeyBar(self, KEYS)

    def compose(self) -> ComposeResult:
        provider = self._provider
        with Vertical():
            yield Static(f"Connect · {one_line(provider.title)}", classes="title", markup=False)
            if self._why:
                yield Static(self._why, classes="why", markup=False)
            yield Static(self._note(), classes="note", markup=False)
            if provider.asks_url:
                yield Input(provider.url, placeholder="http://127.0.0.1:8000/v1", compact=True, id="connect-url")
            placeholder = "API key" if provider.needs_key else "API key, if the server wants one"
            yield Input(password=True, placeholder=placeholder, compact=True, id="connect-key")
            yield self._keys

    def _note(self) -> str:
        provider = self._provider
        if provider.key_from:
            return f"Its key comes from {one_line(provider.key_from)}. Enter alone uses that key; another replaces it."
        if provider.needs_key:
            return f"Paste your key for {one_line(provider.host)}. It is checked with one request, then stored."
        return "The server is asked for its models."

    def on_mount(self) -> None:
        """Begin where something is missing."""
        ask_url = self._provider.asks_url
        self.query_one("#connect-url" if ask_url else "#connect-key", Input).focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.action_connect()

    def action_connect(self) -> None:
        """Check what was entered."""
        if self._checking:
            return
        url = self.query_one("#connect-url", Input).value if self._provider.asks_url else ""
        key = self.query_one("#connect-key", Input).value
        self.run_guarded(self._connect(url, key), group="connect")

    async def _connect(self, url: str, key: str) -> None:
        self._checking = True
        self._keys.show_keys([KeyHint("leave", "esc", "cancel")], lead="checking …")
        try:
            connected = await self._host.session.ask(
                ConnectProvider(provider=self._provider.id, url=url.strip(), key=key.strip())
            )
        except RagforgeError as error:
            if error.info.kind != CANCELLED:
                raise
            self._keys.show_keys(KEYS, lead="cancelled; nothing was stored")
            return
        finally:
            self._checking = False
        self.dismiss(connected)

    def action_leave(self) -> None:
        """Cancel the check, or leave."""
        if self._checking:
            self._host.session.spawn(self._host.session.ask(CancelConnect()), group="cancel-connect")
        else:
            self.dismiss(None)
