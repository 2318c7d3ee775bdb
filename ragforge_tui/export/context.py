"""Contents of a request to the model as plain text, for the command line and the screen.

Each item is listed in its section with its source, its tokens and the characters cut, followed by the text sent.
"""

from __future__ import annotations

from ragforge_tui.shared.records import ContextItem, ContextRecord, ContextSection

_KINDS = {
    "system": "instructions",
    "instructions": "workspace instructions",
    "persona": "persona",
    "tools": "tool descriptions",
    "environment": "environment",
    "message": "turn",
    "goal": "first message",
    "finding": "finding",
    "summary": "summary",
    "turn": "recalled turn",
    "query": "question",
    "file": "files",
    "topic": "topic",
    "code": "code",
    "note": "message",
    "frame": "headings and separators",
}


def context_text(record: ContextRecord, *, texts: bool = True) -> str:
    """Return the record as text.

    Args:
        texts: Include the text sent; otherwise only sources, tokens and cuts.
    """
    parts = [context_headline(record)]
    if not record.verified:
        parts.append("A source has changed since: the text below differs from what was sent.")
    parts += record.missing
    for section in record.sections:
        if section.items:
            parts.append(_section(section, texts))
    return "\n\n".join(parts)


def context_headline(record: ContextRecord) -> str:
    """Return one line with turn, model, tokens and the way past turns were selected."""
    selection = "the whole conversation" if record.whole else f"strategy {record.strategy}"
    budget = f" of {record.budget}" if record.budget else ""
    tokens = f"{record.sent_tokens} tokens, {record.tokens}{budget} of them for the past"
    return f"Turn {record.turn_index} · {record.model} · {tokens} · {selection}"


def section_headline(section: ContextSection) -> str:
    """Return one line on a section: its title, tokens and the number of items that did not fit."""
    budget = f" of {section.budget}" if section.budget else ""
    left_out = f", {section.left_out} left out" if section.left_out else ""
    return f"{section.title} ({section.tokens}{budget} tokens{left_out})"


def item_kind(item: ContextItem) -> str:
    """Return the name of an item's kind, as shown to the user."""
    return _KINDS.get(item.kind, item.kind)


def item_turns(item: ContextItem) -> str:
    """Return the range of turns an item represents, such as ``t3–t5``; empty if it represents none."""
    last = f"–t{item.last_turn}" if item.last_turn > item.turn_index else ""
    return f"t{item.turn_index}{last}" if item.turn_index else ""


def item_headline(item: ContextItem) -> str:
    """Return one line on the source of an item, its tokens and its cuts."""
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
    if item.form and item.form not in ("whole", "kept", "said"):
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
