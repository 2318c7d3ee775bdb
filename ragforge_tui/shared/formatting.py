"""Formatting of values for display."""

from __future__ import annotations


def dollars(amount: float) -> str:
    """Format an amount in US dollars, with enough digits to show a small one."""
    if amount >= 0.1 or not amount:
        return f"${amount:.2f}"
    return f"${amount:.4f}" if amount >= 0.0001 else f"${amount:.1g}"


def counted(number: int) -> str:
    """Return a number with blanks between its thousands, such as 12 345."""
    return f"{number:,}".replace(",", " ")
