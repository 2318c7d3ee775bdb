"""Phrases that an extractive summary adds around quotations, read from `phrases.toml`.

Used by `extract`, `levels` and `actions`.
"""

from __future__ import annotations

import functools
import tomllib
from pathlib import Path

import msgspec

from ragforge_tui.shared.tool_calls import ToolInfo


class Phrases(msgspec.Struct, frozen=True, kw_only=True):
    """Phrases of one language; `{}` marks the place of the quoted text.

    Attributes:
        user: Label of a finding that quotes the user.
        by_user: Mark of what the user did without the model.
        verbs: Translations of what tools did, by the English verb of their description.
    """

    quote: str
    asked: str
    said: str
    then_asked: str
    then_said: str
    answer: str
    no_answer: str
    turn: str
    turns: str
    about: str
    began: str
    done: str
    found: str
    open: str
    user: str
    by_user: str
    used: str
    failed: str
    refused_by_user: str
    refused: str
    unknown: str
    matches: str
    entries: str
    lines: str
    exit: str
    times: str
    why: str
    and_more: str
    nothing: str
    conjunction: str
    verbs: dict[str, str] = {}
    language: str = "en"

    def verb(self, tool: ToolInfo) -> str:
        """Return what a call of a tool did; empty without a translation, where `used` with its name reads better."""
        translated = tool.translations.get(self.language) or self.verbs.get(tool.verb, "")
        return tool.verb if self.language == "en" else translated

    def without_label(self, finding: str) -> tuple[str, bool]:
        """Return the text of a finding without its label, and whether it quotes the user."""
        prefix = self.user.removesuffix("{}")
        return finding.removeprefix(prefix), finding.startswith(prefix)


@functools.cache
def phrases(language: str) -> Phrases:
    """Return the phrases of a language, the English ones for a language without a table."""
    tables = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
    known = language if language in tables else "en"
    return msgspec.convert({**tables[known], "language": known}, Phrases)
