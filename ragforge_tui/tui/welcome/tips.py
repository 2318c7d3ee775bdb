"""Tips of the first screen: features that this user has not used yet, a few of them at each start. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import msgspec

from ragforge_tui.tui.command_registry import Registry, effective_keys
from ragforge_tui.tui.keys import spoken_key

SHOWN = 4


class Tip(msgspec.Struct, frozen=True):
    """One tip.

    Attributes:
        feature: The command, or another name that `Features` knows.
        sign: What to type; empty: the command's key or name.
        text: What it does, as the end of a sentence that starts with the sign.
        action: The command that a click runs; empty for none.
    """

    feature: str
    text: str
    sign: str = ""
    action: str = ""


TIPS = (
    Tip("tree", "shows the memory: all is kept, what matters returns by itself"),
    Tip("@", "points the answer at a file of this folder", sign="@name"),
    Tip("branch", "goes back to an earlier turn; nothing is lost"),
    Tip("mode", "switches between plan, ask, accept edits and auto"),
    Tip("recall", "asks all your past conversations a question"),
    Tip("!", "runs a command of yours; the agent sees what came out", sign="!command"),
    Tip("undo", "puts files back as they were before a turn"),
    Tip("edit", "asks an earlier turn again, on a branch of its own"),
    Tip("search", "finds words in all your conversations"),
    Tip("history", "searches your earlier prompts"),
    Tip("context", "shows exactly what the model was sent"),
    Tip("personas", "lets another character answer"),
    Tip("code", "finds functions and classes by what they do"),
    Tip("standup", "lists what was done since the last working day"),
    Tip("insights", "gathers findings and open points of past conversations"),
    Tip("theme", "changes the colours"),
    Tip("help", "shows every command and key"),
)
"""All tips, the most useful first."""


def chosen_tips(used: Collection[str], starts: int) -> list[Tip]:
    """Return the tips to show: features that were never used, other ones with every start."""
    unused = [tip for tip in TIPS if tip.feature not in used]
    first = starts % len(unused) if len(unused) > SHOWN else 0
    return [*unused[first:], *unused[:first]][:SHOWN]


def sign_of(tip: Tip, registry: Registry, keymap: Mapping[str, str]) -> str:
    """Return what to type or press for a tip, with the user's own keys."""
    keys = effective_keys(keymap, registry)
    if tip.feature == "branch" and "stop" in keys:
        return f"{spoken_key(keys['stop'])} {spoken_key(keys['stop'])}"
    own = keys.get(tip.feature, "")
    return tip.sign or (spoken_key(own) if own else f"/{tip.feature}")
