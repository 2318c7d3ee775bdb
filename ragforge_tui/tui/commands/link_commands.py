"""Opening a link of a message: a page in the browser, a file of the workspace in a preview, a cited turn in the chat.

The full target of a link is always shown.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from ragforge_tui.shared.errors import NotFoundError, RagforgeError
from ragforge_tui.shared.records import ConversationFilter
from ragforge_tui.shared.requests.sessions import ListConversations
from ragforge_tui.tui.host import Host
from ragforge_tui.tui.transcript.links import Link, cited_turn, file_path, web_address
from ragforge_tui.tui.widgets.choice_list import Choice

if TYPE_CHECKING:
    from ragforge_tui.tui.dialogs.detail import Section

_ID = re.compile(r"[0-9a-f]{8}[0-9a-f-]{0,28}")


def choose_link(host: Host, links: list[Link]) -> None:
    """Open the only link, or show a list of several with their targets."""
    if not links:
        host.hint("no link here")
        return

    def picked(target: str) -> None:
        host.session.spawn(open_link(host, target), group="link", exclusive=True)

    if len(links) == 1:
        picked(links[0].target)
        return
    from ragforge_tui.tui.widgets.list_screen import Picker

    async def rows() -> list[Choice]:
        return [
            Choice(link.target, link.label if link.kind == "turn" else link.target, detail=_label(link))
            for link in links
        ]

    host.open_screen(Picker("Links", rows, empty="no link", verb="open"), picked)


async def open_link(host: Host, target: str) -> None:
    """Open a full address, a file by its path in the workspace, or a cited turn.

    Raises:
        RagforgeError: The target is none of them.
    """
    if cited := cited_turn(target):
        host.navigator.go_to_turns(cited.turn, conversation_id=await _conversation(host, cited.session))
    elif address := web_address(target):
        await _open_page(host, address)
    elif path := file_path(target):
        await _open_file(host, path)
    else:
        raise RagforgeError(f"{target} is not a link that can be opened.")


async def _conversation(host: Host, session: str) -> str:
    """Return the id of a conversation by its title or the beginning of its id; empty for the open one.

    Of several with a title it is the newest, first of this folder.

    Raises:
        NotFoundError: There is none.
    """
    if not session:
        return ""
    title = session.removesuffix("…").rstrip().casefold()
    asked = ConversationFilter(query="" if _ID.fullmatch(session) else title, status="any", limit=200)
    found = await host.session.ask(ListConversations(filter=asked))
    if _ID.fullmatch(session):
        fitting = [one for one in found if one.uuid.startswith(session)]
    else:
        titles = [(one, " ".join(one.title.split()).casefold()) for one in found]
        fitting = [one for one, own in titles if own == title] or [one for one, own in titles if own.startswith(title)]
    here = [one for one in fitting if one.workspace == host.options.workspace] or fitting
    if not here:
        raise NotFoundError(f"There is no conversation “{session}”.")
    return here[0].uuid


async def _open_page(host: Host, address: str) -> None:
    name = urlsplit(address).hostname or "a mail"
    program = opener(os.environ)
    if program and await open_address(program, address):
        host.session.notice(f"Opened {name}: {address}")
        return
    host.app.copy_to_clipboard(address)
    why = "no browser could be started" if program else "there is no browser here"
    host.session.notice(f"Copied, since {why}: {address}")


async def _open_file(host: Host, path: str) -> None:
    workspace = Path(host.options.workspace or ".")
    found = await asyncio.to_thread(_inside, workspace, path)
    if found is None:
        raise NotFoundError(f"There is no file {path} in the workspace.")
    from ragforge_tui.tui.dialogs.detail import file_sections
    from ragforge_tui.tui.dialogs.text_viewer import DetailScreen

    async def load() -> tuple[str, list[Section]]:
        return found, await asyncio.to_thread(file_sections, workspace, found, "", "")

    host.open_screen(DetailScreen(found, load, actions={}))


def _label(link: Link) -> str:
    return " ".join(link.label.split()) if link.label != link.target and link.kind != "turn" else ""


def _inside(workspace: Path, path: str) -> str | None:
    """Return the path of an existing file relative to the workspace, None if it is outside, also through links."""
    try:
        root = workspace.resolve()
        file = (root / path).resolve()
        return file.relative_to(root).as_posix() if file.is_file() else None
    except (OSError, ValueError):
        return None


OPEN_SECONDS = 5.0
"""An opener that has not failed by then has opened it, or is the browser itself."""


def opener(env: Mapping[str, str], platform: str = sys.platform, find: Callable[[str], str | None] = which) -> str:
    """Return the program that opens an address; empty if there is none, or its window would be on another machine."""
    if env.get("SSH_CONNECTION") or env.get("SSH_TTY"):
        return ""
    if platform == "darwin":
        return find("open") or ""
    if env.get("WSL_DISTRO_NAME") and (wsl := find("wslview")):
        return wsl
    if env.get("DISPLAY") or env.get("WAYLAND_DISPLAY"):
        return find("xdg-open") or ""
    return ""


async def open_address(program: str, address: str) -> bool:
    """Open an address; return whether that worked. Output of the program never reaches the screen."""
    try:
        process = await asyncio.create_subprocess_exec(
            program,
            address,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError:
        return False
    try:
        async with asyncio.timeout(OPEN_SECONDS):
            return await process.wait() == 0
    except TimeoutError:
        return True
