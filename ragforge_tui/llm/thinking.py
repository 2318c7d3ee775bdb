"""Separation of a model's reasoning from its answer where both arrive as one text.

Small models behind OpenAI-compatible servers write ``<think>…</think>`` at the start of their answer instead of using a
field of its own. Used by `assemble`; safe wherever the text is split into chunks.
"""

from __future__ import annotations

from collections.abc import Iterator

from ragforge_tui.llm.parts import ReasoningPart, TextPart

_OPEN, _CLOSE = "<think>", "</think>"


class ThoughtSplitter:
    """Splitter of one answer's text, fed in pieces. Tags count only at its very start: later on they are text."""

    def __init__(self) -> None:
        self._held = ""
        self._place = "start"
        self._thought = False

    def feed(self, text: str) -> Iterator[TextPart | ReasoningPart]:
        """Yield the parts that can be shown now; text that may turn out to be a tag is held back."""
        self._held += text
        if self._place == "start":
            self._begin()
        if self._place == "thought":
            yield from self._think()
        if self._place == "gap":
            self._held = self._held.lstrip()
            self._place = "text" if self._held else "gap"
        if self._place == "text" and self._held:
            yield TextPart(self._held)
            self._held = ""

    def rest(self) -> Iterator[TextPart | ReasoningPart]:
        """Yield the text held back, once no more arrives."""
        if self._held and self._place != "gap":
            yield ReasoningPart(self._held) if self._place == "thought" else TextPart(self._held)
        self._held = ""

    def _begin(self) -> None:
        begun = self._held.lstrip()
        if begun.startswith(_OPEN):
            self._held = begun.removeprefix(_OPEN)
            self._place = "thought"
        elif not _OPEN.startswith(begun):
            self._place = "text"

    def _think(self) -> Iterator[ReasoningPart]:
        thought, closed, after = self._held.partition(_CLOSE)
        if closed:
            self._held, self._place = after, "gap"
        else:
            count = _partial_close(thought)
            self._held, thought = thought[len(thought) - count :], thought[: len(thought) - count]
        # White space around the thought is layout; so is a line end that arrives with the closing tag.
        thought = thought if self._thought else thought.lstrip()
        thought = thought.rstrip() if closed else thought
        if thought:
            self._thought = True
            yield ReasoningPart(thought)


def _partial_close(text: str) -> int:
    """Return how many characters at the end may be the start of the closing tag."""
    return next((n for n in range(min(len(_CLOSE) - 1, len(text)), 0, -1) if text.endswith(_CLOSE[:n])), 0)
