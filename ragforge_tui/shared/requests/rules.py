"""Requests about the user's rules for tool calls."""

from __future__ import annotations

import msgspec

from ragforge_tui.shared.rules import Rule
from ragforge_tui.shared.wire import Request


class RuleEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A rule in a list.

    Attributes:
        session: Whether it ends with the chat.
    """

    rule: Rule
    session: bool = False


class RuleList(msgspec.Struct, frozen=True, kw_only=True):
    """All rules of the user.

    Attributes:
        folder: The workspace, which the rules of this folder name.
        file: The settings file that has them; empty if they cannot be saved.
    """

    rules: list[RuleEntry]
    folder: str
    file: str = ""


class ListRules(Request[RuleList]):
    """All rules of the user, also those for other folders."""


class ChangeRule(Request[RuleList]):
    """Put a rule in the place of another one; without one of them, add or remove one. It is saved at once.

    Fails with kind ``rule`` if the new one has a fault.
    """

    old: Rule | None = None
    new: Rule | None = None
