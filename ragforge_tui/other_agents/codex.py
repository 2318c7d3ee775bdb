"""Sessions of Codex: rollouts ``sessions/YYYY/MM/DD/rollout-*.jsonl`` and ``archived_sessions``, also compressed.

A session may have several rollouts, and a fork only names where it left its parent. Format: openai/codex,
codex-rs/protocol/src/protocol.rs (RolloutItem). The oldest rollouts hold bare response items.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from glob import escape
from pathlib import Path
from typing import Any

import msgspec

from ragforge_tui.other_agents.blocks import add_parts, own_words, usage_of
from ragforge_tui.other_agents.reading import (
    COMPRESSED,
    fields,
    file_sessions,
    head,
    items,
    session_lines,
    text_of,
    time_of,
    word,
)
from ragforge_tui.other_agents.transcript import Transcript
from ragforge_tui.shared.found_sessions import FoundSession

AGENT = "codex"
_PROGRAM_TEXTS = ("# AGENTS.md instructions", "Another language model started to solve this problem", "<user_shell")
_REQUEST = "## My request for Codex:"
"""Heading in the texts of editors, below which the user's words follow."""
_PLACES = ("sessions", "archived_sessions")
_MOST_FORKS = 20


def store(home: Path) -> Path:
    """Return the folder in which sessions are kept."""
    return Path(os.environ.get("CODEX_HOME") or home / ".codex")


def find(home: Path) -> Iterator[FoundSession]:
    """Yield the rollouts; those of one session have its id. The work of helpers is left out."""
    root = store(home)
    for found in file_sessions(AGENT, _rollouts(root, "rollout-*")):
        lines = head(Path(found.path))
        if lines and not _is_helper(meta := _meta(lines)):
            yield msgspec.structs.replace(found, id=session_id(lines) or found.id, folder=_folder([meta, *lines]))


def is_ours(lines: list[dict[str, Any]]) -> bool:
    """Return whether a file that begins with these lines is a rollout."""
    return any(line.get("type") == "session_meta" and "payload" in line for line in lines)


def session_id(lines: list[dict[str, Any]]) -> str:
    """Return the id in the first lines of a rollout."""
    meta = _meta(lines)
    return word(meta.get("id") or meta.get("session_id")) or word(lines[0].get("id"))


def read(found: FoundSession) -> Transcript:
    """Read the rollouts of a session, after the turns a fork shares with its parent.

    Raises:
        OSError: A file cannot be read.
    """
    return _read(found, list(session_lines(found)), _MOST_FORKS)


def _read(found: FoundSession, lines: list[dict[str, Any]], forks: int) -> Transcript:
    transcript = Transcript(folder=found.folder)
    meta = _meta(lines)
    reader = _Reader(transcript, found.id)
    parent = _parent(found, word(meta.get("forked_from_id"))) if forks else None
    if parent is not None:
        before = list(session_lines(parent))
        end = meta.get("forked_from_ordinal_exclusive")
        if isinstance(end, int):  # the rollout itself holds only what came after
            before = [line for line in before if isinstance(at := line.get("ordinal"), int) and at < end]
            transcript = _read(parent, before, forks - 1)
            reader = _Reader(transcript, found.id)
        else:
            copied = _read(parent, before, forks - 1)
            reader.read(lines)
            transcript.follow(copied)
            return transcript
    reader.read(lines)
    return transcript


class _Reader:
    """Reader of the lines of rollouts. Items until a result or a count of tokens are one reply."""

    def __init__(self, transcript: Transcript, session: str) -> None:
        self._transcript = transcript
        self._session = session
        self._model = ""
        self._replies = 0
        self._details: dict[str, dict[str, Any]] = {}
        """Records of the program about calls: exit status, changed files."""

    def read(self, lines: list[dict[str, Any]]) -> None:
        """Add the lines; where the program noted the user's words, other texts of that role are its own."""
        events = [_event(line) for line in lines]
        noted = any(kind == "user" for kind, _ in events)
        answered = any(_item(line).get("role") == "assistant" for line in lines)
        for line, (kind, event) in zip(lines, events, strict=True):
            at, item = time_of(line.get("timestamp")), _item(line)
            if kind == "user" or (not noted and item.get("role") == "user"):
                text = text_of(event.get("message") or event.get("content") or item.get("content"))
                self._next()
                self._transcript.user(_own_words(text), at, id=word(event.get("client_id") or event.get("id")))
            elif kind == "agent" and not answered:
                add_parts(self._transcript, "assistant", text_of(event.get("message") or event.get("content")), at)
            elif item and item.get("role") != "user":
                self._add(line, item)
            elif kind == "details":
                self._details[word(event.get("call_id") or event.get("id"))] = event
            elif kind == "tokens":
                info = fields(event.get("info"))
                self._transcript.count(usage_of(info.get("last_token_usage") or event.get("usage")))
            elif line.get("type") in ("turn_context", "session_meta"):
                self._model = word(event.get("model")) or self._model
                self._transcript.folder = self._transcript.folder or word(event.get("cwd"))

    def _add(self, line: dict[str, Any], item: dict[str, Any]) -> None:
        at, call = time_of(line.get("timestamp")), word(item.get("call_id") or item.get("id"))
        if item.get("role", "assistant") != "assistant":
            return
        if word(item.get("type")).endswith("output"):
            self._next()
            self._transcript.result(call, item.get("output"), at, details=self._details.get(call))
        else:
            reply = f"{self._session} {self._replies}"
            parts = item.get("content") if "role" in item else [item]
            add_parts(self._transcript, "assistant", parts, at, id=reply, model=self._model)

    def _next(self) -> None:
        self._replies += 1


def _item(line: dict[str, Any]) -> dict[str, Any]:
    """Return the part of a message that a line holds; empty for other lines."""
    item = fields(line.get("payload")) if line.get("type") == "response_item" else line if "payload" not in line else {}
    return item if "role" in item or word(item.get("type")) != "compacted" else {}


def _event(line: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the event of a line with its kind: user, agent, details or tokens."""
    event = fields(line.get("payload"))
    if line.get("type") == "token_usage_record":
        return "tokens", event
    if line.get("type") != "event_msg":
        return "", event
    kind = word(event.get("type"))
    if kind == "item_completed":
        event = fields(event.get("item"))
        kind = {"UserMessage": "user_message", "AgentMessage": "agent_message"}.get(word(event.get("type")), "end")
    if kind == "user_message":
        return ("user" if event.get("kind", "plain") == "plain" else ""), event
    kinds = {"agent_message": "agent", "token_count": "tokens"}
    return kinds.get(kind, "details" if kind.endswith("end") else ""), event


def _own_words(text: str) -> str:
    text = own_words(text)
    text = text.partition(_REQUEST)[2].strip() or text
    return "" if text.startswith(_PROGRAM_TEXTS) else text


def _parent(found: FoundSession, id: str) -> FoundSession | None:
    """Return the session that a fork came from, which lies in the same store; None without one."""
    folders = [folder for folder in Path(found.path).parents if folder.name in _PLACES]
    root = folders[0].parent if folders else None
    paths = _rollouts(root, f"rollout-*{escape(id)}*") if id and root else []
    first, *rest = [str(path) for path in paths] or [""]
    return FoundSession(agent=AGENT, id=id, folder=found.folder, path=first, parts=tuple(rest)) if first else None


def _rollouts(root: Path, name: str) -> list[Path]:
    return sorted(
        path for place in _PLACES for end in ("", COMPRESSED) for path in root.glob(f"{place}/**/{name}.jsonl{end}")
    )


def _meta(lines: list[dict[str, Any]]) -> dict[str, Any]:
    return next((fields(line.get("payload")) for line in lines if line.get("type") == "session_meta"), {})


def _is_helper(meta: dict[str, Any]) -> bool:
    return "subagent" in fields(meta.get("source")) or meta.get("thread_source") in ("subagent", "review")


def _folder(lines: list[dict[str, Any]]) -> str:
    places = (word(line.get("cwd")) or word(fields(line.get("payload")).get("cwd")) for line in items(lines))
    return next(filter(None, places), "")
