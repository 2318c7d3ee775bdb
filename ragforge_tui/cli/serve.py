"""The command `serve`: the chat in a browser on this machine. Each tab is a chat of its own."""

from __future__ import annotations

import shlex
import sys
from typing import Annotated

import typer

from ragforge_tui.cli.common import shared
from ragforge_tui.cli.output import print_text
from ragforge_tui.cli.start import Shared

_OPTIONS = ("config", "workspace", "graph", "model", "persona")


def serve(
    ctx: typer.Context,
    port: Annotated[int, typer.Option(min=0, max=65_535, help="Port on 127.0.0.1; 0 for any free one.")] = 8000,
) -> None:
    """Show the chat in a browser on this machine, at an address that holds a secret."""
    from ragforge_tui.cli.web_server import WebServer

    server = WebServer(chat_command(shared(ctx)), port)
    print_text(f"Open {server.address}\nThe address lets anyone on this machine in. Ctrl+C ends it.")
    sys.stdout.flush()
    server.run()


def chat_command(given: Shared) -> str:
    """Return the shell command that starts a chat with the options before `serve`."""
    options = [f"--{name}={value}" for name in _OPTIONS if (value := getattr(given, name))]
    return shlex.join([sys.executable, "-m", "ragforge_tui", *options, *(["--plain"] if given.plain else [])])
