"""Prose of a message without markup and quotations, its sentences, and cuts at the end of a sentence.

Used by both writers of summaries, and for titles, as is the form in which a model's text is stored. Pure.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from typing import Any

from ragforge_tui.shared.formulas import formulas, replace_formulas
from ragforge_tui.shared.redaction import mask_secrets
from ragforge_tui.shared.sanitize import plain_text, storable

FENCE = re.compile(r"^[ \t]*(`{3,}+|~{3,}+)[^\n]*\n.*?(?:^[ \t]*\1[`~]*[ \t]*$|\Z)", re.M | re.S)
_TABLE_ROW = re.compile(r"^[ \t]*\|.*$|^[ \t:-]*\|[ \t:|-]+$", re.M)
_RULE = re.compile(r"^[ \t]*(?:[-*_=][ \t]*){3,}$", re.M)
_HEADING = re.compile(r"^[ \t]*#{1,6}[ \t]+(.*)$", re.M)
_BULLET = re.compile(r"^[ \t]*(?:[-*+•]|\d{1,3}[.)]|>)[ \t]+(?:\[[ xX]\][ \t]+)?", re.M)
_LINK = re.compile(r"!?\[([^\[\]\n]*)\]\([^()\n]*(?:\([^()\n]*\)[^()\n]*)*\)")
_EMPHASIS = re.compile(r"(\*\*\*|\*\*|~~)(?=\S)((?:(?!\1).)+)(?<=\S)\1", re.S)
_ITALIC = re.compile(r"(?<![\w*])\*(?=[^\s*])([^*\n]+?)(?<=[^\s*])\*(?![\w*])")
_TAG = re.compile(r"</?[a-zA-Z][^<>\n]{0,100}>")

_CODE_LINE = re.compile(
    r"""
      [;{}]\s*$ | => | ^\W+$                                            # ends or brackets of a block, a table's rule
    | ^\s*(?://|/\*|\*/|<[!/?]|<\w+[ >/]|\$[ ]|>>>|--->|@\w|\#include|\#!)
    | ^\s*(?:[+-]\s*)?["']?[\w.$[\]]+["']?\s*[-+*/|&?:]?=\s*\S          # an assignment
    | ^\s*(?:[+-]\s*)?["'][\w$.-]+["']\s*:\s                            # a pair of JSON
    | ^\s*(?:[+-]\s*)?[\w.$]+\(.*\)[,;:]?\s*$                           # a call and nothing else
    | ^\s*(?:[+-]\s*)?(?:async\ def|def|class|if|elif|for|while|with|except|return|function|func|fn)\b.*[:({]\s*$
    | ^\s*(?:import|from)\ [\w.{}*, ]+(?:\ (?:from|import|as)\ \S.*)?$
    | ^\s*(?:export|const|let|var|using|public|private|protected|static|pub|return|raise|throw|await)\ .*[({=;]
    | ^\s*(?:CREATE|SELECT|INSERT|UPDATE|DELETE|ALTER|DROP)\ (?:[A-Z*]|\w+,)
    | ^\s*at\ [\w.<>$]+\( | ^\s*(?:<{7}|={7}|>{7})
    | ^(?:[A-Za-z]:\\|/)\S+$ | \b[A-Za-z]:\\\w
    """,
    re.X,
)
"""Line of code, output or a merge conflict outside of a fence, as users paste it."""
_COMMENT_LINE = re.compile(r"^\s*(?:#|--|\*)\s")
_END = re.compile(
    r"(?<=[.!?…])[\"'”’»)\]]*(?=\s)|(?<=[。！？])[」』”]*",
)
_ABBREVIATION = re.compile(
    r"\b(?:[A-Z]|e\.g|i\.e|etc|vs|cf|approx|nos?|fig|Mrs?|Ms|Dr|Prof|St|Jr|Mme|p\. ?ex|env|ex|z\.B|bzw|ca|Nr|Sra?)\.$"
)
_LONGEST_ABBREVIATION = 12
"""Characters before the end of a sentence that tell an abbreviation or an ordinal."""
_ORDINAL = re.compile(r"(?:^|[^\w.,:])\d{1,2}\.$")
"""Number of a list or day of a month ("31. Oktober"), unless it ends the text."""
_OPENER = re.compile(
    r"^(?:(?:yes|yeah|yep|no|nope|ok|okay|so|well|wow|oh|ah|hey|hi|hello|thanks|thank you|sure|of course|great|right|"
    r"absolutely|definitely|actually|honestly|also|and|but|oui|non|alors|eh bien|bon|merci|bonjour|salut|d['’]accord|"
    r"bien sûr|en fait|et|mais)\b(?:,? (?-i:[A-ZÀ-Þ])[\w'’-]+(?=\s*[,!.–-]))?"
    r"\s*(?:[!.:–-]|,(?! (?:for|to|that|de|pour|d['’])\b))\s*|(?:and|but|so|et|mais) (?=\w))",
    re.I,
)
_GREETING = re.compile(
    r"^(?:hi|hello|hey|good (?:morning|afternoon|evening)|bonjour|bonsoir|salut|hallo|guten (?:tag|morgen|abend)|hola|"
    r"buenos días|buenas tardes|ciao|buongiorno|olá|bom dia|привет|здравствуйте|добрый день)\b[^.!?]{0,24}[.!?]*$",
    re.I,
)
_CLAUSE_END = re.compile(r"[,;:](?=\s)|\s[–—-]\s")
ELLIPSIS = "…"

_INTRODUCTION = re.compile(r"\A(?:I am the offline assistant|Je suis l['’]assistant hors ligne)[^\n]*\n*")
"""Introduction of the built-in assistant in its first answer."""
_MEMORY = re.compile(r"^(?:From the memory|Dans la mémoire) ?:\s*\n(?=`{3}|- \[)", re.M)
_EVIDENCE = re.compile(r"^[ \t]*[-*] (?:`[^`\n]+:\d+`.*|(?:you|me|vous|moi) ?:.*|`[^`\n ]+`)$", re.M)
_LEAD_IN = re.compile(r"^[^\n`]{1,40}:[ \t]*$", re.M)
_CODE_SPAN = re.compile(r"`[^`\n]*`")
PASTED = re.compile(r"(?:^[^\n]*[^\s.!?…:;][ \t]*\n){12,}", re.M)
"""Many lines in a row without the end of a sentence: a log or a file, not the user's own words."""
_QUOTED_PLACE = re.compile(r"^(`[^`\n]+:\d+(?:-\d+)?`)[ \t]*\n+(?=\S)", re.M)
_QUOTED_COMMAND = re.compile(r"^(`[^`\n]+`)[ \t]*\n+(?=\S)", re.M)
_LINE_NUMBER = re.compile(r"^\s*\d+\t")
_DEFINED = re.compile(
    r"^[ \t]*(?:(?:export|pub|public|private|static|async|default)[ \t]+)*(?:def|class|function|func|fn|struct|"
    r"interface|type|trait|enum)\s+([\w.]+)",
    re.M,
)
_COMMENT = re.compile(
    r'"""\s*+([^"]{8,}?)(?:"""|\Z)|/\*\*?\s*+((?:(?!/\*).){8,}?)\*/|^[ \t]*(?:#|//)[ \t]*(\S[^\n]{8,})$', re.M | re.S
)
_LETTERS = re.compile(r"[^\W\d_]{2}")
_NOTHING = "∅"
"""Placeholder for a quotation without a name or comment, until its line is dropped."""
_FEWEST_WORDS = 6
_LISTED = 3


def user_prose(text: str) -> str:
    """Return the user's text without code blocks, one paragraph a line; other marks may be intended and stay."""
    return _lines(_BULLET.sub("", without_code(_joined_formulas(FENCE.sub("\n", text)))))


def without_code(text: str) -> str:
    """Return a text without lines of code outside of fences and the comments next to them; the text if all is code."""
    lines = [line for line in text.splitlines() if line.strip()]
    code = [_CODE_LINE.search(line) is not None for line in lines]
    kept = [
        line
        for place, line in enumerate(lines)
        if not code[place] and not (_COMMENT_LINE.match(line) and any(code[max(0, place - 1) : place + 2]))
    ]
    return "\n".join(kept) if kept else text


def strip_markdown(text: str) -> str:
    """Return the prose of a Markdown text, without code blocks, tables and marks, one paragraph a line."""
    text = _joined_formulas(FENCE.sub("\n", text))
    text = _RULE.sub("", _TABLE_ROW.sub("", text))
    text = _HEADING.sub(_heading, text)
    text = _BULLET.sub("", text)
    text = _LINK.sub(r"\1", text)
    text = _ITALIC.sub(r"\1", _EMPHASIS.sub(r"\2", text))
    return _lines(_TAG.sub("", text))


def _heading(match: re.Match[str]) -> str:
    words = match[1].rstrip(" \t").rstrip("#").rstrip(" \t")
    return f"{words}\n" if words else ""


def _joined_formulas(text: str) -> str:
    """Return a text in which each formula is on one line."""
    return replace_formulas(text, lambda formula: " ".join(formula.split()))


def without_formulas(text: str) -> str:
    """Return a text with "…" for each formula."""
    return replace_formulas(text, lambda _: ELLIPSIS)


def _lines(text: str) -> str:
    return "\n".join(line for line in (" ".join(line.split()) for line in text.splitlines()) if line)


def answer_prose(text: str) -> str:
    """Return the prose of an answer, one paragraph a line; of one that only quotes code or output, a digest of it.

    Lists of places and quotations from the memory are evidence, not statements: they count only if there is nothing
    else.
    """
    text = _INTRODUCTION.sub("", text, count=1)
    own = own_words(text)
    text_only = _without_lead_ins(strip_markdown(own))
    if len(_CODE_SPAN.sub("", text_only).split()) >= _FEWEST_WORDS:
        return text_only
    digest = strip_markdown(_QUOTED_COMMAND.sub(r"\1: ", _QUOTED_PLACE.sub(r"\1 ", FENCE.sub(_digest, own))))
    digest = "\n".join(line for line in digest.splitlines() if not line.endswith(_NOTHING))
    return _without_lead_ins(digest) or _without_lead_ins(strip_markdown(text)) or strip_markdown(text)


def own_words(text: str) -> str:
    """Return an answer without its lists of places and its quotations from the memory."""
    memory = _MEMORY.search(text)
    return _EVIDENCE.sub("", text[: memory.start()] if memory else text)


def _without_lead_ins(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if not _LEAD_IN.match(line))


def _digest(block: re.Match[str]) -> str:
    """Return the first definition in a code block with its comment, else its first lines."""
    numbered = [line for line in block[0].splitlines()[1:-1] if line.strip()]
    lines = [_LINE_NUMBER.sub("", line) for line in numbered]
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


def code_lines(text: str) -> list[str]:
    """Return the lines inside fences, without blank ones."""
    lines = (line.strip() for block in FENCE.finditer(text) for line in block[0].splitlines()[1:])
    return [line for line in lines if line and not line.startswith(("```", "~~~"))]


def sentences(text: str) -> list[str]:
    """Return the sentences of plain text, line by line."""
    return [sentence for line in text.splitlines() for sentence in _split(line)]


def opening_sentence(text: str) -> str:
    """Return the first sentence of the user's text that is not only a greeting, else the first one."""
    candidates = sentences(user_prose(text))
    return next((sentence for sentence in candidates if not _GREETING.match(sentence)), next(iter(candidates), ""))


def first_sentence(text: str) -> str:
    """Return the first sentence of a Markdown text, empty if it has no prose."""
    return next(iter(sentences(strip_markdown(text))), "")


def cut(text: str, limit: int) -> str:
    """Return at most `limit` characters on one line: whole sentences if they fill half of it, else words and "…"."""
    text = " ".join(text.split())
    if len(text) <= limit:
        return text
    whole = ""
    for sentence in _split(text):
        longer = f"{whole} {sentence}".strip()
        if len(longer) > limit:
            break
        whole = longer
    if len(whole) >= limit // 2:
        return _closed(whole)[:limit]
    head = text[: limit - 3]
    space = head.rfind(" ")
    if space > limit // 2:
        head = head[:space]
    head = head[: _start_of_formula(text, len(head))] or head
    return _closed(head.rstrip(" ,;:–—-(«“\"'") + ELLIPSIS)


def cut_before_end(text: str, limit: int) -> str:
    """Return a text within `limit` characters like `cut`, but with its last sentence, which names the open points."""
    *earlier, last = _split(" ".join(text.split())) or [""]
    if len(text) <= limit or not earlier or len(last) > limit // 2:
        return cut(text, limit)
    return f"{cut(' '.join(earlier), limit - len(last) - 1)} {last}"


def compress(sentence: str, limit: int) -> str:
    """Return a sentence without an introductory word, cut at the end of a clause if it is too long."""
    text = " ".join(sentence.split())
    for _ in range(3):
        shorter = _OPENER.sub("", text)
        if shorter == text or len(shorter.split()) < 3:
            break
        text = shorter[:1].upper() + shorter[1:]
    if len(text) <= limit:
        return text
    ends = [match.start() for match in _CLAUSE_END.finditer(text[: limit - 3])]
    ends = [end for end in ends if _start_of_formula(text, end) == end]
    if ends and ends[-1] >= limit // 2:
        return _closed(text[: ends[-1]].rstrip(" ,;:–—-") + ELLIPSIS)
    return cut(text, limit)


def _start_of_formula(text: str, end: int) -> int:
    """Return where the formula starts that a cut at `end` would break, or `end` if there is none."""
    return next((found.start() for found in formulas(text) if found.start() < end < found.end()), end)


def _closed(text: str) -> str:
    """Return a cut text with closing marks for the quotations it opens."""
    for opening, closing in (("“", "”"), ("« ", " »")):
        if text.count(opening.strip()) > text.count(closing.strip()):
            text += closing
    return text


def _split(line: str) -> list[str]:
    pieces: list[str] = []
    start = 0
    line = line.rstrip()
    spans = [found.span() for found in formulas(line)]
    starts = [first for first, _ in spans]
    for match in _END.finditer(line):
        end = match.end()
        before = bisect_left(starts, match.start()) - 1
        if before >= 0 and match.start() < spans[before][1]:
            continue
        last = line[max(start, end - _LONGEST_ABBREVIATION) : end]
        if _ABBREVIATION.search(last) or (_ORDINAL.search(last) and end < len(line)):
            continue
        if piece := line[start:end].strip():
            pieces.append(piece)
        start = end
    rest = line[start:].strip()
    return [*pieces, rest] if rest else pieces


def clean_text(value: Any) -> str:
    """Return a model's text on one line, without escapes and with known shapes of keys masked, safe to store."""
    return " ".join(mask_secrets(plain_text(storable(value))).split()) if isinstance(value, str) else ""
