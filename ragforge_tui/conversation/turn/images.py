"""Images that a message names, read and stored when it is sent, and put into the requests that hold it.

The bytes are stored once, by their digest, among the contents kept for undo; the note of the message holds a line that
names them (`shared.images`). Only the user's own words bring in a file from outside the workspace.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from ragforge_tui.llm import IMAGES
from ragforge_tui.memory.history import ChatMessage
from ragforge_tui.memory.recent_files import mentions
from ragforge_tui.shared.errors import ToolError
from ragforge_tui.shared.files import open_regular
from ragforge_tui.shared.formatting import size_text
from ragforge_tui.shared.images import HEAD_BYTES, ImageLine, dimensions, image_lines, media_type, replaced_lines
from ragforge_tui.shared.redaction import mask_secrets
from ragforge_tui.shared.sanitize import storable, visible
from ragforge_tui.tools.registry import Toolbox

MOST_BYTES = 5_000_000
"""Size of an image that providers take."""
MOST_IMAGES = 8
"""Images of one message."""
MOST_OF_REQUEST = 20_000_000
"""Bytes of all images of a request; providers refuse requests above some 32 MB, in base64."""
MOST_IN_REQUEST = 20
"""Images of one request; some providers take no more, or only smaller ones."""

UNSEEN = "(an image the model cannot see)"
LOST = "(this image is no longer stored)"
NOT_AGAIN = "(not sent again: later messages have enough images)"

_SUFFIXES = (".png", ".jpg", ".jpeg", ".gif", ".webp")
_PASTED = re.compile(r"""(?<![^\s(\[])(?:'(~?/[^'\n]+)'|"(~?/[^"\n]+)"|(~?/(?:\\.|[^\s\\'"`<>|])+))""")
"""Whole path as terminals insert it for a file that is dropped on them: quoted, or with backslashes."""
_PUNCTUATION = ".,;:!?)]}…"


class NamedImage(NamedTuple):
    """Image that a message names.

    Attributes:
        written: The name as written.
        text: What the note says of it: its line, or why it is not sent.
    """

    written: str
    text: str
    sent: bool


def named_images(toolbox: Toolbox, message: str, *, anywhere: bool) -> list[NamedImage]:
    """Read and store the images that a message names; blocks.

    Args:
        anywhere: Whether files outside the workspace count, as they do in the user's own words.
    """
    found: list[NamedImage] = []
    seen: set[Path] = set()
    for written in dict.fromkeys([*mentions(message), *_pasted(message)]):
        path = _path(toolbox, written, anywhere=anywhere)
        if path is None:
            continue
        try:
            image = _read(
                toolbox, written, path, room=sum(each.sent and bool(each.text) for each in found) < MOST_IMAGES
            )
        except (OSError, ValueError, ToolError):
            continue
        if image is not None:
            found.append(image._replace(text="") if path in seen else image)
            seen.add(path)
    return found


def _pasted(message: str) -> list[str]:
    names = (match[1] or match[2] or re.sub(r"\\(.)", r"\1", match[3]) for match in _PASTED.finditer(message))
    return [name for name in names if name.rstrip(_PUNCTUATION).lower().endswith(_SUFFIXES)]


def _path(toolbox: Toolbox, written: str, *, anywhere: bool) -> Path | None:
    """Return the file that a name means, None for a folder, a file that may hold secrets, or nothing at all."""
    for name in dict.fromkeys((written, written.rstrip(_PUNCTUATION))):
        try:
            path = (toolbox.workspace.root / Path(name).expanduser()).resolve()
            inside = path.is_relative_to(toolbox.workspace.root)
            if path.is_file():
                return path if (inside or anywhere) and toolbox.workspace.guard.of_file(str(path)) != "secret" else None
        except (OSError, ValueError, RuntimeError):
            continue
    return None


def _read(toolbox: Toolbox, written: str, path: Path, *, room: bool) -> NamedImage | None:
    """Return an image, stored if it is to be sent; None if the file is none."""
    with open_regular(path) as file:
        content = file.read(HEAD_BYTES)
        if not media_type(content):
            return None
        content += file.read(MOST_BYTES)
    size = max(path.stat().st_size, len(content))
    name = re.sub(r"[\[\]\n]", "_", mask_secrets(visible(storable(path.name))))
    if size > MOST_BYTES:
        return NamedImage(written, f"{name} is an image of more than {size_text(MOST_BYTES)}", sent=False)
    if (measured := dimensions(content)) is None:
        return None
    if not room:
        return NamedImage(written, f"{name} is one image too many, at most {MOST_IMAGES} are sent", sent=False)
    shown = f"{name}, {measured[0]}x{measured[1]}, {size_text(size)}"
    return NamedImage(written, str(ImageLine(shown, toolbox.undo.keep(content, text=False))), sent=True)


def has_images(messages: list[ChatMessage]) -> bool:
    """Return whether a request names stored images."""
    return any(message["role"] == "user" and image_lines(message["content"]) for message in messages)


def with_images(messages: list[ChatMessage], load: Callable[[str], bytes], *, seen: bool) -> list[ChatMessage]:
    """Return the messages of a request with the images that their lines name, the newest within the limits; blocks.

    Args:
        load: Returns stored bytes by their digest; raises `ToolError`.
        seen: Whether the model takes images; if not, words stand for them.
    """
    sent: list[ChatMessage] = []
    left, number = MOST_OF_REQUEST, MOST_IN_REQUEST
    for message in reversed(messages):
        lines = image_lines(message["content"]) if message["role"] == "user" else []
        remarks: dict[str, str] = {}
        urls: list[str] = []
        for line in lines:
            content = _loaded(load, line.digest) if seen else b""
            remark = LOST if seen else UNSEEN
            if content:
                remark = NOT_AGAIN if len(content) > left or not number else ""
            if content and not remark:
                urls.append(f"data:{media_type(content)};base64,{base64.b64encode(content).decode()}")
                left, number = left - len(content), number - 1
            remarks[line.digest] = remark
        if lines:
            text = replaced_lines(message["content"], lambda line, said=remarks: _shown(line, said[line.digest]))  # type: ignore[misc]
            message = {**message, "content": text, **({IMAGES: urls} if urls else {})}
        sent.append(message)
    return sent[::-1]


def _loaded(load: Callable[[str], bytes], digest: str) -> bytes:
    """Return the bytes of an image, none if they are not stored or are no image."""
    try:
        content = load(digest)
    except (ToolError, OSError):
        return b""
    return content if media_type(content) else b""


def _shown(line: ImageLine, remark: str) -> str:
    return " ".join(filter(None, (f"[image {line.shown}]", remark)))
