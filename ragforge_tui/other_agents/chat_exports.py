"""Exports of ChatGPT and of Claude: a zip, or the files ``conversations.json``, ``conversations-000.json`` … in it."""

from __future__ import annotations

import re
import zipfile
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

from ragforge_tui.other_agents.blocks import add_parts, parts_of
from ragforge_tui.other_agents.reading import MOST_WHOLE, fields, items, text_of, time_of, version, word
from ragforge_tui.other_agents.transcript import Transcript
from ragforge_tui.shared.files import read_regular
from ragforge_tui.shared.formatting import size_text
from ragforge_tui.shared.found_sessions import FoundSession
from ragforge_tui.shared.json_text import decode_json

CHATGPT = "chatgpt"
CLAUDE = "claude"
_MEMBER = re.compile(r"(?:.*/)?conversations[^/]*\.json")


def in_export(path: Path) -> list[FoundSession]:
    """Return the conversations of an export; none if the file is no export.

    Raises:
        OSError: The file cannot be read.
    """
    found = []
    for id, written in _conversations(str(path), version(path)).items():
        size, head = len(bytes(written)), _head(written)
        found.append(FoundSession(agent=head.agent, id=id, path=str(path), bytes=size, version=str(size)))
    return found


def read(found: FoundSession) -> Transcript:
    """Read one conversation of an export.

    Raises:
        OSError: The file cannot be read.
    """
    path = Path(found.path)
    written = _conversations(str(path), version(path)).get(found.id)
    try:
        conversation = fields(decode_json(written)) if written is not None else {}
    except msgspec.MsgspecError:
        conversation = {}
    return _chatgpt(conversation) if found.agent == CHATGPT else _claude(conversation)


@lru_cache(maxsize=1)
def _conversations(path: str, _version: str) -> dict[str, msgspec.Raw]:
    """Return the conversations of an export by id, as they are written: decoded, all take many times the memory."""
    whole = _zipped(Path(path)) if zipfile.is_zipfile(path) else _listed(read_regular(Path(path), MOST_WHOLE))
    return {id: written for written in whole if (id := _head(written).name)}


def _listed(text: bytes) -> list[msgspec.Raw]:
    """Return the parts of a list; none in the place of anything else."""
    try:
        return decode_json(text, list[msgspec.Raw])
    except msgspec.MsgspecError:
        return []


def _zipped(path: Path) -> list[msgspec.Raw]:
    try:
        with zipfile.ZipFile(path) as archive:
            members = [each for each in archive.infolist() if _MEMBER.fullmatch(each.filename)]
            if sum(each.file_size for each in members) > MOST_WHOLE:
                raise OSError(f"{path} holds more than {size_text(MOST_WHOLE)} of conversations")
            names = sorted(each.filename for each in members)
            return [written for name in names for written in _listed(archive.read(name))]
    except (zipfile.BadZipFile, RuntimeError, NotImplementedError) as error:
        raise OSError(f"{path} cannot be read as a zip: {error}") from error


class _Head(msgspec.Struct):
    """Identity of a conversation, read without the messages."""

    mapping: msgspec.Raw = msgspec.Raw()
    chat_messages: msgspec.Raw = msgspec.Raw()
    conversation_id: Any = None
    id: Any = None
    uuid: Any = None
    title: Any = None
    name_: Any = msgspec.field(default=None, name="name")
    create_time: Any = None
    created_at: Any = None

    @property
    def agent(self) -> str:
        return CHATGPT if bytes(self.mapping) else CLAUDE

    @property
    def name(self) -> str:
        """Id of the conversation, or one made of its title and time; empty for another object."""
        if not bytes(self.mapping) and not bytes(self.chat_messages):
            return ""
        id = next(filter(None, map(word, (self.conversation_id, self.id, self.uuid))), "")
        return id or f"{self.title or self.name_}@{self.create_time or self.created_at}"


def _head(written: msgspec.Raw) -> _Head:
    try:
        return msgspec.json.decode(written, type=_Head)
    except (msgspec.MsgspecError, RecursionError):
        return _Head()


def _chatgpt(conversation: dict[str, Any]) -> Transcript:
    """Read the branch that was current; what the user edited away is not part of it."""
    transcript = Transcript(title=word(conversation.get("title")))
    nodes = fields(conversation.get("mapping"))
    path: list[dict[str, Any]] = []
    at: object = conversation.get("current_node")
    at = at if at in nodes else max(nodes, key=lambda id: _said_at(nodes[id]), default=None)
    seen: set[str] = set()
    while isinstance(at, str) and at in nodes and at not in seen:
        seen.add(at)
        path.append(fields(nodes[at]))
        at = path[-1].get("parent")
    for node in reversed(path):
        message = fields(node.get("message"))
        content, metadata = fields(message.get("content")), fields(message.get("metadata"))
        author, id = fields(message.get("author")), word(message.get("id"))
        role, moment = author.get("role"), time_of(message.get("create_time"))
        text = text_of(content.get("parts")) or word(content.get("text"))
        thought = "\n\n".join(filter(None, map(text_of, items(content.get("thoughts")))))
        if metadata.get("is_visually_hidden_from_conversation") or content.get("content_type") == "reasoning_recap":
            continue
        if role == "user":
            transcript.user(text, moment, id=id)
        elif role == "assistant" and (text or thought):
            model = word(metadata.get("model_slug") or conversation.get("default_model_slug"))
            transcript.reply(text, moment, reasoning=thought, model=model)
        elif role == "tool" and text.strip():
            transcript.call(id, word(author.get("name")), {}, moment)
            transcript.result(id, text, moment)
    return transcript


def _said_at(node: object) -> float:
    """Return the time of a node; later ones are nearer to the end of the conversation."""
    at = time_of(fields(fields(node).get("message")).get("create_time"))
    return at.timestamp() if at else 0.0


def _claude(conversation: dict[str, Any]) -> Transcript:
    transcript = Transcript(title=word(conversation.get("name")))
    for message in items(conversation.get("chat_messages")):
        at, id = time_of(message.get("created_at")), word(message.get("uuid"))
        if message.get("sender") == "human":
            attached = [word(part.get("extracted_content")) for part in items(message.get("attachments"))]
            text = word(message.get("text")) or text_of(message.get("content"))
            transcript.user("\n\n".join(filter(None, [text, *attached])), at, id=id)
            continue
        content = message.get("content") or word(message.get("text"))
        add_parts(transcript, "assistant", content, at)
        for part in parts_of(content):
            if part.kind == "result":  # after the calls, which stand in the same message
                transcript.result(part.id, part.value, at)
    return transcript
