"""Large pastes: shown in the prompt as a short label, sent in full.

Pure. A prompt of a megabyte would make every key slow, since the whole text is wrapped again.
"""

from __future__ import annotations

MAX_LINES = 8
MAX_CHARS = 2_000


def is_large(text: str) -> bool:
    """Return whether a paste is shown as a label."""
    return len(text) > MAX_CHARS or text.count("\n") >= MAX_LINES


class Pastes:
    """The texts of the labels in one prompt."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    def collapse(self, text: str) -> str:
        """Remember a text; return its label."""
        lines = text.count("\n") + 1
        size = f"{lines:,} lines" if lines > 1 else f"{len(text):,} characters"
        size = size.replace(",", " ")
        label = f"[pasted {size}]"
        number = 2
        while label in self._texts and self._texts[label] != text:
            label = f"[pasted {size} #{number}]"
            number += 1
        self._texts[label] = text
        return label

    def expand(self, text: str) -> str:
        """Replace every label in a text by its paste."""
        pieces = [text]
        for label, whole in self._texts.items():
            # Piece by piece, so that a pasted text that happens to hold a label is not expanded again.
            pieces = [part for piece in pieces for part in _split(piece, label, whole)]
        return "".join(str(piece) for piece in pieces)

    def shorten(self, text: str) -> str:
        """Replace every paste in a text by its label, the longest first."""
        for label, whole in sorted(self._texts.items(), key=lambda item: -len(item[1])):
            text = text.replace(whole, label)
        return text

    @property
    def texts(self) -> dict[str, str]:
        return dict(self._texts)

    def label_before(self, text: str) -> str:
        """Return the label at the end of a text, or an empty string."""
        if not text.endswith("]"):
            return ""
        return next((label for label in self._texts if text.endswith(label)), "")

    def used(self, text: str) -> dict[str, str]:
        """Return the labels in a text and their texts."""
        return {label: whole for label, whole in self._texts.items() if label in text}

    def restore(self, texts: dict[str, str]) -> None:
        self._texts.update(texts)

    def clear(self) -> None:
        self._texts.clear()


class _Whole(str):
    """A pasted text, which is not searched for labels."""

    __slots__ = ()


def _split(piece: str, label: str, whole: str) -> list[str]:
    if isinstance(piece, _Whole) or label not in piece:
        return [piece]
    parts: list[str] = []
    for index, part in enumerate(piece.split(label)):
        if index:
            parts.append(_Whole(whole))
        parts.append(part)
    return parts
