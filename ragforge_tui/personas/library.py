"""Finding personas by name: the person's own before the shipped ones.

Used by the conversation for its system prompt and by the command line for its listings. The text of a file is
never rewritten; only the placeholder ``{USER_NAME}`` is filled in when it is sent.
"""

from __future__ import annotations

import codecs
import getpass
import hashlib
import html
import re
import subprocess
from pathlib import Path
from typing import Literal

import msgspec

from ragforge_tui.errors import NotFoundError

SUFFIX = ".luciform"
PLACEHOLDER = "{USER_NAME}"
DESCRIPTION_CHARS = 200

# No parser: such a file need not be well-formed, nor are the names of its tags always made of letters.
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_TAG = re.compile(r"""<[^<>\s](?>=\s*"[^"]*"|=\s*'[^']*'|[^<>])*+>""")
_DESCRIPTION = re.compile(r"""\sdescription\s*=\s*(?:"([^"]*)"|'([^']*)')""")

_SHIPPED = (
    Path(__file__).parent / "shipped",  # in an installed wheel
    Path(__file__).parents[2] / "personas",  # in a checkout
)


class Persona(msgspec.Struct, frozen=True, kw_only=True):
    """A character: `text` is the file as written, less a byte order mark; `digest` its SHA-256 in hex."""

    name: str
    origin: Literal["own", "shipped"]
    text: str
    digest: str
    path: str

    def prompt(self, user: str) -> str:
        """The text as it reaches the model, with the person's name filled in."""
        return self.text.replace(PLACEHOLDER, user)

    @property
    def description(self) -> str:
        """One line for listings: the root tag's `description`, else the first line that is more than tags."""
        text = _COMMENT.sub("", self.text)
        root = next((tag[0] for tag in _TAG.finditer(text) if not tag[0].startswith(("<?", "<!"))), "")
        said = _DESCRIPTION.search(root)
        lines = [said[1] or said[2] or "" if said else "", *_TAG.sub("", text).splitlines()]
        first = next((line for line in lines if line.strip()), "")
        return " ".join(html.unescape(first).split())[:DESCRIPTION_CHARS]


class PersonaLibrary:
    """The personas a person can choose from."""

    def __init__(self, own_folder: Path) -> None:
        self._own = own_folder

    def names(self) -> list[str]:
        """All names, in alphabetical order; an own persona hides a shipped one of the same name."""
        return sorted({path.stem for folder in (self._own, *_SHIPPED) for path in _files(folder)}, key=str.casefold)

    def load(self, name: str) -> Persona:
        """The persona of that name, upper and lower case alike.

        Raises:
            NotFoundError: When there is none; names the ones there are.
        """
        for folder in (self._own, *_SHIPPED):
            for path in _files(folder):
                if path.stem.casefold() == name.casefold():
                    return _read(path, "own" if folder == self._own else "shipped")
        known = ", ".join(self.names())
        raise NotFoundError(f"There is no persona named {name!r}.", todo=f"Choose one of: {known}.")


def _files(folder: Path) -> list[Path]:
    return sorted(folder.glob(f"*{SUFFIX}")) if folder.is_dir() else []


def _read(path: Path, origin: Literal["own", "shipped"]) -> Persona:
    raw = path.read_bytes()
    text = _decode(raw)
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return Persona(name=path.stem, origin=origin, text=text, digest=digest, path=str(path))


def _decode(raw: bytes) -> str:
    if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return raw.decode("utf-16", "replace")
    return raw.decode("utf-8-sig", "replace")


def user_name(configured: str) -> str:
    """How the agent may call the person: the setting, else git's user.name, else the log-in name."""
    if configured:
        return configured
    try:
        git = subprocess.run(
            ["git", "config", "--get", "user.name"], capture_output=True, text=True, timeout=2, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return _log_in_name()
    return git.stdout.strip() or _log_in_name()


def _log_in_name() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "friend"
