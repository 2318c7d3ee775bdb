"""Content blocks in the form of Anthropic's API, which several agents store as they sent them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from ragforge_tui.other_agents.reading import fields, items, text_of, word
from ragforge_tui.other_agents.transcript import Transcript
from ragforge_tui.shared.records import Usage


def add_reply(
    transcript: Transcript,
    content: object,
    at: datetime | None,
    *,
    model: str = "",
    usage: Usage | None = None,
    id: str = "",
) -> None:
    """Add a reply of the model: its texts and thinking, then its tool calls."""
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else items(content)
    text = "\n\n".join(filter(None, (word(b.get("text")) for b in blocks if b.get("type") == "text")))
    thinking = "\n\n".join(filter(None, (word(b.get("thinking")) for b in blocks if b.get("type") == "thinking")))
    transcript.reply(text, at, reasoning=thinking, model=model, usage=usage, id=id)
    for block in blocks:
        if block.get("type") in ("tool_use", "server_tool_use"):
            transcript.call(word(block.get("id")), word(block.get("name")), block.get("input", {}), at)


def add_user(
    transcript: Transcript, content: object, at: datetime | None, *, own_words: Callable[[str], str] = str
) -> None:
    """Add a user's message: the results of calls it carries, then its text as the start of a turn.

    Args:
        own_words: Returns what the user wrote of a text; empty for a text of the program.
    """
    blocks: list[dict[str, Any]] = [{"type": "text", "text": content}] if isinstance(content, str) else items(content)
    texts = []
    for block in blocks:
        if block.get("type") == "tool_result":
            failed = bool(block.get("is_error"))
            transcript.result(word(block.get("tool_use_id")), text_of(block.get("content")), at, failed=failed)
        elif block.get("type") == "text":
            texts.append(own_words(word(block.get("text"))))
        elif block.get("type") in ("image", "document"):
            texts.append(f"[{block['type']}: {word(fields(block.get('source')).get('media_type')) or 'attached'}]")
    transcript.user("\n\n".join(text for text in texts if text.strip()), at)
