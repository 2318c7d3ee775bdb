"""Formatting of values for display."""

from __future__ import annotations


def dollars(amount: float) -> str:
    """Format an amount in US dollars, with enough digits to show a small one."""
    if amount >= 0.1 or not amount:
        return f"${amount:.2f}"
    return f"${amount:.4f}" if amount >= 0.0001 else f"${amount:.1g}"


def size_text(count: float) -> str:
    """Return a number of bytes with a suitable unit."""
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.0f} {unit}"
        count /= 1000
    return f"{count:.1f} GB"


def counted(number: int, noun: str = "") -> str:
    """Return a number with blanks between its thousands, such as 12 345; with a noun, as many: 1 line, 12 345 lines."""
    shown = f"{number:,}".replace(",", " ")
    return f"{shown} {noun}{'' if number == 1 else 's'}" if noun else shown


def short_count(number: int) -> str:
    """Return a number in short form, such as 12.3k."""
    if number >= 999_950:
        return f"{number / 1_000_000:.1f}M".replace(".0M", "M")
    return f"{number / 1000:.1f}k".replace(".0k", "k") if number >= 1000 else str(number)


_EIGHTHS = " ▏▎▍▌▋▊▉"


def bar(part: float, whole: float, cells: int) -> str:
    """Return a bar of block characters, as long as `part` is of `whole`; what is not nothing is seen."""
    if part <= 0 or whole <= 0:
        return ""
    eighths = max(1, round(min(part / whole, 1.0) * cells * 8))
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()
