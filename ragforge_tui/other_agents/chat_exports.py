"""Exports of ChatGPT and of Claude: a zip, or the ``conversations.json`` that is in it."""

from __future__ import annotations

import zipfile
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

from ragforge_tui.other_agents.blocks import add_reply
from ragforge_tui.other_agents.reading import MOST_FILE, fields, items, text_of, time_of, version, whole_json, word
from ragforge_tui.other_agents.transcript import Transcript
from ragforge_tui.shared.found_sessions import FoundSession
from ragforge_tui.shared.json_text import decode_json

CHATGPT = "chatgpt"
CLAUDE = "claude"
_MEMBER = "conversations.json"


def in_export(path: Path) -> list[FoundSession]:
    """Return the conversations of an export; none if the file is no export.

    Raises:
        OSError: The file cannot be read.
    """
    found = []
    for id, conversation in _conversations(str(path), version(path)).items():
        size = len(msgspec.json.encode(conversation))
        found.append(FoundSession(agent=_agent(conversation), id=id, path=str(path), bytes=size, version=str(size)))
    return found


def read(found: FoundSession) -> Transcript:
    """Read one conversation of an export.

    Raises:
        OSError: The file cannot be read.
    """
    path = Path(found.path)
    conversation = _conversations(str(path), version(path)).get(found.id, {})
    return _chatgpt(conversation) if found.agent == CHATGPT else _claude(conversation)


@lru_cache(maxsize=1)
def _conversations(path: str, _version: str) -> dict[str, dict[str, Any]]:
    """Return the conversations of an export by id. It is decoded once for all of them."""
    whole = _zipped(Path(path)) if zipfile.is_zipfile(path) else whole_json(Path(path))
    return {id: conversation for conversation in items(whole) if (id := _id(conversation))}


def _zipped(path: Path) -> Any:
    try:
        with zipfile.ZipFile(path) as archive:
            name = next((n for n in archive.namelist() if n.rsplit("/", 1)[-1] == _MEMBER), None)
            if name is None or archive.getinfo(name).file_size > MOST_FILE:
                return None
            return decode_json(archive.read(name))
    except (zipfile.BadZipFile, msgspec.MsgspecError, RuntimeError, NotImplementedError) as error:
        raise OSError(f"{path} cannot be read as a zip: {error}") from error


def _agent(conversation: dict[str, Any]) -> str:
    return CHATGPT if "mapping" in conversation else CLAUDE


def _id(conversation: dict[str, Any]) -> str:
    if "mapping" in conversation:
        return word(conversation.get("conversation_id") or conversation.get("id"))
    return word(conversation.get("uuid")) if "chat_messages" in conversation else ""


def _chatgpt(conversation: dict[str, Any]) -> Transcript:
    """Read the branch that was current; what the user edited away is not part of it."""
    transcript = Transcript(title=word(conversation.get("title")))
    nodes = fields(conversation.get("mapping"))
    path: list[dict[str, Any]] = []
    at: object = conversation.get("current_node") or next(reversed(nodes), None)
    seen: set[str] = set()
    while isinstance(at, str) and at in nodes and at not in seen:
        seen.add(at)
        path.append(fields(nodes[at]))
        at = path[-1].get("parent")
    for node in reversed(path):
        message = fields(node.get("message"))
        content, metadata = fields(message.get("content")), fields(message.get("metadata"))
        role, moment = fields(message.get("author")).get("role"), time_of(message.get("create_time"))
        text = text_of(content.get("parts")) or word(content.get("text"))
        if not text.strip() or metadata.get("is_visually_hidden_from_conversation"):
            continue
        if role == "user":
            transcript.user(text, moment)
        elif role == "assistant":
            thought = content.get("content_type") in ("thoughts", "reasoning_recap")
            model = word(metadata.get("model_slug"))
            transcript.reply("" if thought else text, moment, reasoning=text if thought else "", model=model)
        elif role == "tool":
            id, name = word(message.get("id")), word(fields(message.get("author")).get("name"))
            transcript.call(id, name, {}, moment)
            transcript.result(id, text, moment)
    return transcript


def _claude(conversation: dict[str, Any]) -> Transcript:
    transcript = Transcript(title=word(conversation.get("name")))
    for message in items(conversation.get("chat_messages")):
        at = time_of(message.get("created_at"))
        if message.get("sender") == "human":
            attached = [word(part.get("extracted_content")) for part in items(message.get("attachments"))]
            text = word(message.get("text")) or text_of(message.get("content"))
            transcript.user("\n\n".join(filter(None, [text, *attached])), at)
            continue
        content = message.get("content") or word(message.get("text"))
        add_reply(transcript, content, at)
        for block in items(content):
            if block.get("type") == "tool_result":
                failed = bool(block.get("is_error"))
                transcript.result(word(block.get("tool_use_id")), text_of(block.get("content")), at, failed=failed)
    return transcript
