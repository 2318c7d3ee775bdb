"""Statements of an answer: its prose, or, if it only quotes code or output, a digest of the quotations.

Used by the extractive writer. Lists of places and quotations from the memory are evidence, not statements: they are
used only if there is nothing else. Pure.
"""

from __future__ import annotations

import re

from ragforge_tui.memory.prose import ELLIPSIS, FENCE, plain, sentences

_INTRODUCTION = re.compile(r"\A(?:I am the offline assistant|Je suis l['’]assistant hors ligne)[^\n]*\n*")
"""Introduction of the built-in assistant in its first answer."""
_MEMORY = re.compile(r"^(?:From the memory|Dans la mémoire) ?:\s*\n+(?=`{3})", re.M)
_EVIDENCE = re.compile(r"^[ \t]*[-*] (?:`[^`\n]+:\d+`.*|(?:you|me|vous|moi) ?:.*|`[^`\n ]+`)$", re.M)
_HEADING = re.compile(r"^[^\n`]{1,40}:[ \t]*$", re.M)
_MARKS = re.compile(r"`[^`\n]*`")
_PLACE = re.compile(r"^(`[^`\n]+:\d+(?:-\d+)?`)[ \t]*\n+(?=\S)", re.M)
_COMMAND = re.compile(r"^(`[^`\n]+`)[ \t]*\n+(?=\S)", re.M)
_NUMBER = re.compile(r"^\s*\d+\t")
_DEFINED = re.compile(
    r"^[ \t]*(?:(?:export|pub|public|private|static|async|default)\s+)*(?:def|class|function|func|fn|struct|interface|"
    r"type|trait|enum)\s+([\w.]+)",
    re.M,
)
_COMMENT = re.compile(
    r'"""\s*([^"]{8,}?)(?:"""|\Z)|/\*\*?\s*(.{8,}?)\*/|^[ \t]*(?:#|//)[ \t]*(\S[^\n]{8,})$', re.M | re.S
)
_LETTERS = re.compile(r"[^\W\d_]{2}")
_NOTHING = "∅"
"""Placeholder for a quotation without a name or comment, until its line is dropped."""
_FEWEST_WORDS = 6
_LISTED = 3


def statements(text: str) -> str:
    """Return the prose of an answer, one paragraph a line."""
    text = _INTRODUCTION.sub("", text, count=1)
    memory = _MEMORY.search(text)
    own = _EVIDENCE.sub("", text[: memory.start()] if memory else text)
    prose = _without_headings(plain(own))
    if len(_MARKS.sub("", prose).split()) >= _FEWEST_WORDS:
        return prose
    digest = plain(_COMMAND.sub(r"\1: ", _PLACE.sub(r"\1 ", FENCE.sub(_digest, own))))
    digest = "\n".join(line for line in digest.splitlines() if not line.endswith(_NOTHING))
    return _without_headings(digest) or _without_headings(plain(text)) or plain(text)


def _without_headings(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if not _HEADING.match(line))


def _digest(block: re.Match[str]) -> str:
    """Return the first definition in a code block with its comment, else its first lines."""
    numbered = [line for line in block[0].splitlines()[1:-1] if line.strip()]
    lines = [_NUMBER.sub("", line) for line in numbered]
    text = "\n".join(lines)
    name = _DEFINED.search(text)
    # The comment of a definition comes after its name; that of a module or file comes before any.
    comment = (name and _COMMENT.search(text, name.end())) or _COMMENT.search(text)
    if comment is not None:
        doc = sentences(" ".join(next(group for group in comment.groups() if group).split()))[0]
        return f"`{name[1]}`: {doc}\n" if name and comment.start() > name.start() else f"{doc}\n"
    if name:
        return f"`{name[1]}`.\n"
    if lines != numbered:
        return f"{_NOTHING}\n"
    shown = [" ".join(line.split()) for line in lines if _LETTERS.search(line) and not line.startswith("[Exit status")]
    return ", ".join(shown[:_LISTED]) + (f", {ELLIPSIS}" if len(shown) > _LISTED else "") + "\n"
