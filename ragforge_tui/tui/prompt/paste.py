"""Large pastes: shown in the prompt as a short label, sent whole.

Pure. A prompt of a megabyte would make every key slow (the whole text is wrapped again); a label costs nothing.
"""

from __future__ import annotations

MAX_LINES = 8
MAX_CHARS = 2_000


def is_large(text: str) -> bool:
    """Whether a paste is better shown as a label."""
    return len(text) > MAX_CHARS or text.count("\n") >= MAX_LINES


class Pastes:
    """The texts behind the labels of one prompt."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    def collapse(self, text: str) -> str:
        """Remember `text`; returns the label that stands for it."""
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
        """`text` with every label replaced by what it stands for."""
        pieces = [text]
        for label, whole in self._texts.items():
            # Piece by piece, so that a pasted text that happens to hold a label is not expanded again.
            pieces = [part for piece in pieces for part in _split(piece, label, whole)]
        return "".join(str(piece) for piece in pieces)

    def shorten(self, text: str) -> str:
        """`text` with every pasted text in it replaced by its label, the longest first."""
        for label, whole in sorted(self._texts.items(), key=lambda item: -len(item[1])):
            text = text.replace(whole, label)
        return text

    @property
    def texts(self) -> dict[str, str]:
        """All labels and what they stand for."""
        return dict(self._texts)

    def label_before(self, text: str) -> str:
        """The label `text` ends with, or an empty string."""
        if not text.endswith("]"):
            return ""
        return next((label for label in self._texts if text.endswith(label)), "")

    def used(self, text: str) -> dict[str, str]:
        """The labels of `text` and what they stand for."""
        return {label: whole for label, whole in self._texts.items() if label in text}

    def restore(self, texts: dict[str, str]) -> None:
        """Know these labels again, as `used` gave them."""
        self._texts.update(texts)

    def clear(self) -> None:
        """Forget all labels."""
        self._texts.clear()


class _Whole(str):
    """A pasted text: not searched for labels."""

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
