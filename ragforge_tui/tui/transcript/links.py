"""Links in messages: which may be opened, and their real targets.

Pure. Only web and mail addresses, files of the workspace and cited turns (`[t12]`, `[title · t12]`, `“title” · t12`,
`t12 of “title”`) can be opened. An address is always written out in plain
characters, so that neither a look-alike letter nor a label can hide its target.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Literal, NamedTuple
from urllib.parse import quote, unquote, urlsplit, urlunsplit

from rich.style import Style

from ragforge_tui.shared.sanitize import plain_text

META = "opens"
"""Key in the meta of a link's style; its value is the target that a click opens."""
BARE = re.compile(r"https?://[^\s<>\"'`|\\^{}\[\]]+")
_MAX_CHARS = 2_000
_KEPT = "!#%&()*+,/:;=?@[]~-._"
"""Allowed besides letters and digits. No `$` and no quotes: an opener may pass the address to a shell."""
_HOST = re.compile(r"[a-z0-9](?:[a-z0-9._-]*[a-z0-9.])?|[0-9a-f:.]+")
"""A name or a number; browsers read other signs as the end of the host, or not at all."""
_LINE = re.compile(r"(?::\d+(?:[:-]\d+)*|#.*)$")
"""A line number or an anchor after the path of a file."""


_CITED = re.compile(
    r"\[(?:(?P<session>[^\[\]\n]{1,120}?)\s*·\s*)?(?P<turns>t\d{1,6}(?:\s*(?:[,–-]|and|to)\s*t\d{1,6})*)\](?!\()|"
    r"[“\"«](?P<title>[^“”\"«»\n]{1,120})[”\"»] · (?P<after>t\d{1,6})\b|"
    r"\b(?P<before>t\d{1,6}) of [“\"](?P<of>[^“”\"\n]{1,120})[”\"]"
)
_TURN = re.compile(r"t(\d{1,6})")
_TURN_TARGET = re.compile(r"turn:(\d{1,6}):(.*)", re.DOTALL)


class CitedTurn(NamedTuple):
    """A turn that a message cites.

    Attributes:
        session: Title or id of its conversation; empty for the one of the message.
    """

    session: str
    turn: int


class Link(NamedTuple):
    """A link of a message.

    Attributes:
        target: A full address, the path of a file as it was written, or a cited turn as `cited_turn` reads it.
        label: The text of the link.
    """

    kind: Literal["web", "file", "turn"]
    target: str
    label: str


@lru_cache(maxsize=2_048)
def web_address(href: str) -> str:
    """Return the ASCII form of an address that may be opened; empty for anything else."""
    href = plain_text(href).strip()
    if not href or len(href) > _MAX_CHARS or any(character.isspace() for character in href):
        return ""
    try:
        parts = urlsplit(href)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return ""
    if parts.scheme == "mailto" and "@" in parts.path:
        return f"mailto:{quote(parts.path, safe=_KEPT)}"
    # A name before the host is read as the host by a hasty eye.
    if parts.scheme not in ("http", "https") or not host or "@" in parts.netloc:
        return ""
    try:
        plain = host if host.isascii() else host.encode("idna").decode("ascii")
    except UnicodeError:
        return ""
    if not _HOST.fullmatch(plain):
        return ""
    netloc = f"[{plain}]" if ":" in plain else plain
    where = f"{netloc}:{port}" if port else netloc
    rest = (quote(part, safe=_KEPT) for part in (parts.path, parts.query, parts.fragment))
    return urlunsplit((parts.scheme, where, *rest))


def file_path(href: str) -> str:
    """Return the workspace path that a link without a scheme names; empty for none."""
    path = _LINE.sub("", plain_text(href).strip())
    if not path or len(path) > _MAX_CHARS or path.startswith(("/", "~", "//")) or "\n" in path:
        return ""
    return "" if re.match(r"[A-Za-z][\w+.-]*:", path) else unquote(path).removeprefix("./")


@lru_cache(maxsize=2_048)
def link_style(href: str) -> Style | None:
    """Return the style of a link's text; None for a link that cannot be opened."""
    if address := web_address(href):
        # The terminal's own link (OSC 8) as well, for those who hold a key and click.
        return Style(link=address) + Style.from_meta({META: address})
    if path := file_path(href):
        return Style.from_meta({META: path})
    return None


def trimmed(found: str) -> str:
    """Return an address without the punctuation of the sentence around it."""
    end, unopened = len(found), found.count(")") - found.count("(")
    while end and found[end - 1] in ".,;:!?)*_":
        if found[end - 1] == ")":
            if unopened <= 0:
                break
            unopened -= 1
        end -= 1
    return found[:end]


def bare_links(text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of addresses that are not marked up as links."""
    if "://" in text:
        for match in BARE.finditer(text):
            end = match.start() + len(trimmed(match[0]))
            if web_address(text[match.start() : end]):
                yield match.start(), end


def cited_turns(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield the spans of cited turns with their targets; of several in one bracket each by itself."""
    if "t" not in text:
        return
    for match in _CITED.finditer(text):
        session = " ".join((match["session"] or match["title"] or match["of"] or "").split())
        places = list(_TURN.finditer(text, *match.span("turns"))) if match["turns"] else []
        if len(places) > 1:
            for place in places:
                yield *place.span(), f"turn:{place[1]}:{session}"
        else:
            number = (match["turns"] or match["after"] or match["before"])[1:]
            yield *match.span(), f"turn:{number}:{session}"


def cited_turn(target: str) -> CitedTurn | None:
    """Return the turn that a target names; None for an address or a file."""
    match = _TURN_TARGET.fullmatch(target)
    return CitedTurn(match[2], int(match[1])) if match is not None else None


def linked_runs(text: str, style: Style, link: Style) -> list[tuple[str, Style]]:
    """Return a text as runs with its addresses and cited turns as links.

    An international host is followed by its ASCII form.
    """
    runs: list[tuple[str, Style]] = []
    at = 0
    cited = [(start, end, Style.from_meta({META: target})) for start, end, target in cited_turns(text)]
    for start, end, opens in sorted([*cited, *_addresses(text)], key=lambda span: span[:2]):
        if start < at:
            continue
        written = text[start:end]
        runs += [(text[at:start], style), (written, style + link + opens)]
        if "://" in written and not urlsplit(written).netloc.isascii():
            runs.append((f" ({web_address(written)})", style))
        at = end
    return [run for run in (*runs, (text[at:], style)) if run[0]] or [("", style)]


def _addresses(text: str) -> Iterator[tuple[int, int, Style]]:
    for start, end in bare_links(text):
        yield start, end, link_style(text[start:end]) or Style()
