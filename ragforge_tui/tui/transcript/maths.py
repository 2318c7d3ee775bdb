"""Formulas in Markdown, as one line of Unicode.

A formula with a command that has no letter here is shown as it was written. Pure.
"""

from __future__ import annotations

import re
from html.entities import html5
from typing import TYPE_CHECKING

from ragforge_tui.shared.formulas import formula_at

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_inline import StateInline

_INNER_BLANK = re.compile(r"(?<=[(\[]) | (?=[)\]])")


def maths_plugin(parser: MarkdownIt) -> None:
    """Let a Markdown parser make tokens of formulas: `content` is what is shown, `meta["source"]` what was written."""
    parser.inline.ruler.before("escape", "maths", _rule)


def _rule(state: StateInline, silent: bool) -> bool:
    if state.src[state.pos] not in "$\\":
        return False
    match = formula_at(state.src, state.pos, state.posMax)
    if match is None:
        return False
    if not silent:
        # As it was written, if it has no such form: Markdown would take its backslashes.
        shown = as_unicode(match[match.lastgroup or 0]) or " ".join(match[0].split())
        token = state.push("maths", "", 0)
        token.content = shown
        token.markup = match[0][: 1 if match.lastgroup == "dollars" else 2]
        token.meta = {"source": match[0]}
    state.pos = match.end()
    return True


def as_unicode(source: str) -> str | None:
    """Return a formula as one line of Unicode; None if there is something in it that has no such form."""
    try:
        shown = _Reader(source).until("")
    except _UnknownError:
        return None
    return _INNER_BLANK.sub("", " ".join(shown.split()))


class _UnknownError(Exception):
    """A command or an environment that one line cannot show."""


_TOKEN = re.compile(r"\\[A-Za-z]+\s*|\\.|.", re.DOTALL)
_DEEPEST = 40
_RAISED = str.maketrans(
    "0123456789+−=()abcdefghijklmnoprstuvwxyzABDEGHIJKLMNOPRTUVW⊤*′∘",
    "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ᵃᵇᶜᵈᵉᶠᵍʰⁱʲᵏˡᵐⁿᵒᵖʳˢᵗᵘᵛʷˣʸᶻᴬᴮᴰᴱᴳᴴᴵᴶᴷᴸᴹᴺᴼᴾᴿᵀᵁⱽᵂᵀ*′°",
)
_LOWERED = str.maketrans("0123456789+−=()aehijklmnoprstuvx", "₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎ₐₑₕᵢⱼₖₗₘₙₒₚᵣₛₜᵤᵥₓ")
_SYMBOLS: dict[str, str | None] = {
    "backslash": "\\",
    "cdot": "·",
    "cdots": "⋯",
    "circ": "∘",
    "degree": "°",
    "dots": "…",
    "exists": "∃",
    "gets": "←",
    "implies": "⇒",
    "infty": "∞",
    "land": "∧",
    "ldots": "…",
    "lnot": "¬",
    "lor": "∨",
    "lvert": "|",
    "lVert": "‖",
    "neg": "¬",
    "neq": "≠",
    "not": None,
    "partial": "∂",
    "rvert": "|",
    "rVert": "‖",
    "star": "⋆",
    "to": "→",
    "vdots": "⋮",
    "{": "{",
    "}": "}",
    "|": "‖",
    "%": "%",
    "$": "$",
    "#": "#",
    "&": "&",
    "_": "_",
    ",": " ",
    ":": " ",
    ";": " ",
    " ": " ",
    "!": "",
    "quad": "  ",
    "qquad": "  ",
}
"""Commands that HTML has no name for, or that mean something else there; None for one that has no form here."""
_NOTHING = re.compile("[bB]igg?[lr]?|(?:display|text)style|(?:no)?limits|left|right|middle")
_NAMES = re.compile(
    "(?:arc)?(?:cos|sin|tan)|(?:cos|sin|tan)h|arg(?:max|min)?|cot|csc|sec|deg|det|dim|exp|gcd|hom|inf|ker|l[gn]|log"
    "|lim(?:inf|sup)?|max|min|Pr|sup"
)
_WORDS = re.compile("text(?:bf|it|rm|tt)?|math(?:rm|bf|it|sf|tt)|operatorname|mbox")
_ACCENTS = {"hat": "\u0302", "bar": "\u0304", "tilde": "\u0303", "vec": "\u20d7", "dot": "\u0307", "overline": "\u0305"}


class _Reader:
    """Reads TeX from left to right."""

    def __init__(self, source: str) -> None:
        self._tokens: list[str] = _TOKEN.findall(source)
        self._at = 0
        self._depth = 0

    def until(self, end: str) -> str:
        """Return everything up to a closing bracket, or to the end of the source."""
        parts: list[str] = []
        while self._at < len(self._tokens):
            if self._tokens[self._at] == end:
                self._at += 1
                return "".join(parts)
            parts.append(self._next())
        if end:
            raise _UnknownError
        return "".join(parts)

    def _next(self) -> str:
        if self._at >= len(self._tokens) or self._depth == _DEEPEST:
            raise _UnknownError
        token = self._tokens[self._at]
        self._at += 1
        self._depth += 1
        shown = self._shown(token)
        self._depth -= 1
        return shown

    def _shown(self, token: str) -> str:
        if token.startswith("\\"):
            return self._command(token)
        match token:
            case "{":
                return self.until("}")
            case "^":
                return self._script("^", _RAISED)
            case "_":
                return self._script("_", _LOWERED)
            case "}" | "&" | "%" | "#" | "$":
                raise _UnknownError
            case "-":
                return "−"
            case "'":
                return "′"
            case "~":
                return " "
            case _:
                return token

    def _command(self, token: str) -> str:
        name = token[1:].strip()
        after = token[1 + len(name) :][:1]
        if _NAMES.fullmatch(name):
            return self._apart(name, after)
        if _NOTHING.fullmatch(name):
            if self._tokens[self._at : self._at + 1] == ["."]:
                self._at += 1  # A bracket without a shape.
            return ""
        if _WORDS.fullmatch(name):
            return self._words()
        if name in ("frac", "dfrac", "tfrac"):
            return f"{_bracketed(self._argument())}/{_bracketed(self._argument())}"
        if name == "sqrt":
            return f"{self._option().translate(_RAISED)}√{_bracketed(self._argument(), powers=False)}"
        if name == "binom":
            return f"C({self._argument()}, {self._argument()})"
        if name == "mathbb":
            return "".join(html5.get(f"{letter}opf;", letter) for letter in self._argument())
        if name == "mathcal":
            return self._argument()
        if name == "bmod":
            return " mod "
        if name == "pmod":
            return f" (mod {self._argument()})"
        if name in _ACCENTS:
            base = self._argument()
            if len(base) != 1:
                raise _UnknownError
            return base + _ACCENTS[name]
        symbol = _SYMBOLS.get(name, html5.get(f"{name};"))
        if symbol is None or not symbol.isprintable():
            raise _UnknownError
        return symbol + after

    def _apart(self, name: str, after: str) -> str:
        """Return a function's name, apart from a letter that follows it."""
        following = self._tokens[self._at] if self._at < len(self._tokens) else ""
        return f"{name} " if after or following[:1].isalnum() or following.startswith("\\") else name

    def _script(self, mark: str, letters: dict[int, int]) -> str:
        inner = self._argument().strip()
        small = inner.replace(" ", "")
        if small and all(ord(char) in letters for char in small):
            return small.translate(letters)
        return f"{mark}{inner}" if len(inner) == 1 else f"{mark}({inner})"

    def _argument(self) -> str:
        while self._tokens[self._at : self._at + 1] == [" "]:
            self._at += 1
        return self._next()

    def _option(self) -> str:
        if self._tokens[self._at : self._at + 1] != ["["]:
            return ""
        self._at += 1
        return self.until("]")

    def _words(self) -> str:
        """Return the words of an argument as they are written."""
        if self._tokens[self._at : self._at + 1] != ["{"]:
            raise _UnknownError
        end = self._tokens.index("}", self._at) if "}" in self._tokens[self._at :] else 0
        words = self._tokens[self._at + 1 : end]
        if not end or any(token.startswith(("\\", "{", "$")) for token in words):
            raise _UnknownError
        self._at = end + 1
        return "".join(words)


def _bracketed(text: str, *, powers: bool = True) -> str:
    """Return a part of a fraction or a root, in brackets if it would run into what is around it.

    Args:
        powers: A number or name with an exponent needs none.
    """
    text = text.strip()
    whole = re.fullmatch(r"[\w.′\u0300-\u036f\u2070-\u209f]+", text)
    return text if whole and (powers or text.isascii() or len(text) == 1) else f"({text})"
