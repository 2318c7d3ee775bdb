"""What a request held, as plain text: for the command line and the screen.

Every item stands under its section with where it came from, its tokens and what was cut, followed by what was sent.
"""

from __future__ import annotations

from ragforge_tui.models import ContextItem, ContextRecord, ContextSection

_KINDS = {
    "system": "instructions",
    "instructions": "workspace instructions",
    "persona": "persona",
    "message": "turn",
    "goal": "first message",
    "summary": "summary",
    "turn": "recalled turn",
    "query": "question",
    "file": "files",
    "topic": "topic",
    "code": "code",
    "note": "message",
}


def context_text(record: ContextRecord, *, texts: bool = True) -> str:
    """The record as text.

    Args:
        texts: With what was sent; without, only sources, tokens and cuts.
    """
    parts = [context_headline(record)]
    if not record.verified:
        parts.append("A source has changed since: this is not to the letter what was sent.")
    for section in record.sections:
        if section.items:
            parts.append(_section(section, texts))
    return "\n\n".join(parts)


def context_headline(record: ContextRecord) -> str:
    """One line: turn, model, tokens, how the past was chosen."""
    how = "the whole conversation" if record.whole else f"strategy {record.strategy}"
    budget = f" of {record.budget}" if record.budget else ""
    return f"Turn {record.turn_index} · {record.model} · {record.tokens}{budget} tokens of the past · {how}"


def section_headline(section: ContextSection) -> str:
    """One line on a section: its title, tokens and what had no room."""
    budget = f" of {section.budget}" if section.budget else ""
    left_out = f", {section.left_out} left out" if section.left_out else ""
    return f"{section.title} ({section.tokens}{budget} tokens{left_out})"


def item_kind(item: ContextItem) -> str:
    """What an item is, in words."""
    return _KINDS.get(item.kind, item.kind)


def item_turns(item: ContextItem) -> str:
    """The turns an item stands for; empty when it stands for none."""
    last = f"–t{item.last_turn}" if item.last_turn > item.turn_index else ""
    return f"t{item.turn_index}{last}" if item.turn_index else ""


def item_headline(item: ContextItem) -> str:
    """One line on where an item came from."""
    parts = [item_kind(item)]
    if turns := item_turns(item):
        parts.append(turns)
    if item.level:
        parts.append(f"L{item.level}")
    if item.title:
        parts.append(item.title)
    if item.conversation_id:
        parts.append(f"from {item.conversation_id[:8]}")
    if item.date is not None:
        parts.append(f"{item.date:%Y-%m-%d}")
    if item.form and item.form not in ("whole", "kept"):
        parts.append(item.form)
    parts.append(f"{item.tokens} tokens")
    if item.cut:
        parts.append(f"{item.cut} characters cut")
    return " · ".join(parts)


def _section(section: ContextSection, texts: bool) -> str:
    lines = [f"## {section_headline(section)}"]
    for item in section.items:
        lines.append(f"--- {item_headline(item)}")
        if texts:
            lines.append(item.text)
    return "\n".join(lines)
