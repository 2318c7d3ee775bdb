"""Sessions of Claude Code, and the rescue of those it deleted.

Transcripts are ``projects/<folder>/<session>.jsonl`` below its folder. They are deleted after thirty days by default;
``history.jsonl`` keeps the user's half for ever. A session that is only there is rebuilt from the user's messages and
the commits made in its folder meanwhile. Format: its own files; vshulcz/deja-vu, docs/registry/claude-code.md.
"""

from __future__ import annotations

import itertools
import os
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec

from ragforge_tui.other_agents.blocks import add_parts, own_words, usage_of, without_elements
from ragforge_tui.other_agents.reading import (
    fields,
    file_sessions,
    head,
    items,
    json_lines,
    session_lines,
    text_of,
    time_of,
    word,
)
from ragforge_tui.other_agents.transcript import RESCUED, Transcript
from ragforge_tui.shared.found_sessions import FoundSession
from ragforge_tui.shared.git import commits_between
from ragforge_tui.shared.records import Commit

AGENT = "claude-code"
HISTORY = "history.jsonl"

_HELPER = "agent-"
"""Beginning of the names of files with the work of a helper."""
_PAUSE = timedelta(hours=2)
"""Pause that ends a session in a history without ids of sessions: old lines name the folder only."""
_MOST_COMMITS = 500
_GIT_SECONDS = 10.0
_COMMAND, _COMMAND_ARGUMENTS = re.compile("command-name"), re.compile("command-args")
_PROGRAM_TEXTS = ("Caveat: The messages below", "[Request interrupted", "This session is being continued from a")
_TITLES = (("customTitle", ""), ("aiTitle", ""), ("summary", "leafUuid"))
"""Titles, the user's own first, each with the key of the message that it must be about."""
_RESCUED_REPLY = "(The transcript of this session was deleted; its replies are lost.)"


def store(home: Path) -> Path:
    """Return the folder in which sessions are kept."""
    return Path(os.environ.get("CLAUDE_CONFIG_DIR") or home / ".claude")


def find(home: Path) -> Iterator[FoundSession]:
    """Yield the transcripts, then the sessions that only the history still knows."""
    root = store(home)
    kept = set()
    for found in file_sessions(AGENT, root.glob("projects/*/*.jsonl")):
        if found.id.startswith(_HELPER):  # the work of a helper comes with its parent
            continue
        kept.add(found.id)
        first = head(Path(found.path))
        folder = next((word(line.get("cwd")) for line in first if line.get("cwd")), "")
        kept |= {word(line.get("sessionId")) for line in first}
        yield msgspec.structs.replace(found, folder=folder)
    history = root / HISTORY
    if history.is_file():
        yield from _deleted(history, kept)


def is_rescued(found: FoundSession) -> bool:
    """Return whether a session is one that only the history still knows."""
    return found.agent == AGENT and Path(found.path).name == HISTORY


def is_ours(lines: list[dict[str, Any]]) -> bool:
    """Return whether a file that begins with these lines is a transcript."""
    return any("sessionId" in line and "content" in fields(line.get("message")) for line in lines)


def read(found: FoundSession) -> Transcript:
    """Read a transcript, or rebuild one from the history.

    Raises:
        OSError: The file cannot be read.
    """
    path = Path(found.path)
    return _rebuilt(found) if path.name == HISTORY else _read(found)


def _read(found: FoundSession) -> Transcript:
    transcript = Transcript(folder=found.folder)
    seen: set[str] = set()
    titles: dict[str, list[tuple[str, str]]] = {}
    helpers, queue = _Helpers(), _Queue(transcript)
    for line in session_lines(found):
        if line.get("isSidechain"):
            helpers.add(line)
            continue
        for key, about in _TITLES:
            if title := word(line.get(key)):
                titles.setdefault(key, []).append((title, word(line.get(about)) if about else ""))
        transcript.folder = transcript.folder or word(line.get("cwd"))
        queue.add(line)
        if not (own := word(line.get("uuid"))) or own not in seen:
            seen.add(own)
            _add(transcript, line)
            helpers.note_call(line)
    ranked = (named for key, _ in _TITLES for named in reversed(titles.get(key, [])))
    transcript.title = next((title for title, about in ranked if not about or about in seen), "")
    for path in (found.path, *found.parts):
        helpers.read_files(Path(path))
    helpers.add_to(transcript)
    return transcript


def _add(transcript: Transcript, line: dict[str, Any]) -> None:
    kind, message, at = line.get("type"), fields(line.get("message")), time_of(line.get("timestamp"))
    if kind == "assistant":
        model, id = word(message.get("model")), word(message.get("id"))
        model = "" if model == "<synthetic>" else model
        usage = usage_of(message.get("usage"), cached_apart=True)
        add_parts(transcript, kind, message.get("content"), at, id=id, model=model, usage=usage)
    elif kind == "user":
        said = not (line.get("isMeta") or line.get("isCompactSummary") or line.get("isVisibleInTranscriptOnly"))
        said = said and fields(line.get("origin")).get("kind", "human") == "human"
        details = line.get("toolUseResult")
        words = _own_words if said else _nothing
        id = word(line.get("uuid"))
        add_parts(transcript, kind, message.get("content"), at, id=id, words=words, details=details)


class _Queue:
    """Message typed while the agent worked, stored in either of two forms or both.

    A message that waited until the end becomes a line of the user's. One that was taken into the running work is
    attached to it, or is only removed from the queue.
    """

    def __init__(self, transcript: Transcript) -> None:
        self._transcript = transcript
        self._waiting: list[str] = []
        self._taken: dict[str, Counter[str]] = {"attached": Counter(), "removed": Counter()}

    def add(self, line: dict[str, Any]) -> None:
        """Take in a line; most have nothing to do with the queue."""
        at, attached = time_of(line.get("timestamp")), fields(line.get("attachment"))
        if attached.get("type") == "queued_command" and attached.get("commandMode", "prompt") == "prompt":
            self._take("attached", text_of(attached.get("prompt")), at)
        if line.get("type") != "queue-operation":
            return
        operation, text = line.get("operation"), text_of(line.get("content"))
        if operation == "enqueue":
            self._waiting.append(text)
        elif operation == "popAll":
            self._waiting.clear()
        elif text or self._waiting:
            text = text or self._waiting[0]
            if text in self._waiting:
                self._waiting.remove(text)
            if operation == "remove":
                self._take("removed", text, at)

    def _take(self, how: str, text: str, at: datetime | None) -> None:
        mine, other = self._taken[how], next(count for name, count in self._taken.items() if name != how)
        mine[text] += 1
        if mine[text] > other[text]:
            self._transcript.user(_own_words(text), at)


class _Helpers:
    """Work of the helpers of one session: in files of their own, or in older versions among its own lines.

    A helper belongs to the call whose result names it, or else to the call that gave it its first message as its task.
    """

    def __init__(self) -> None:
        self._lines: dict[str, list[dict[str, Any]]] = {}
        """Lines of each helper by its id, or by the id of its first line."""
        self._roots: dict[str, str] = {}
        self._calls: dict[str, str] = {}
        """Calls by the helper that their result names."""

    def add(self, line: dict[str, Any]) -> None:
        """Add a line of a helper that stands among those of the session."""
        own, before = word(line.get("uuid")), word(line.get("parentUuid"))
        root = word(line.get("agentId")) or self._roots.get(before, own)
        self._roots[own] = root
        self._lines.setdefault(root, []).append(line)

    def note_call(self, line: dict[str, Any]) -> None:
        """Remember the helper that the result of a call names."""
        if agent := word(fields(line.get("toolUseResult")).get("agentId")):
            for block in items(fields(line.get("message")).get("content")):
                if block.get("type") == "tool_result":
                    self._calls[agent] = word(block.get("tool_use_id"))

    def read_files(self, session: Path) -> None:
        """Read the helpers that have files of their own, next to the session's or in a folder of its name."""
        near = [path for agent in self._calls for path in session.parent.glob(f"{_HELPER}{agent}.jsonl")]
        for path in [*near, *session.with_suffix("").glob(f"subagents/{_HELPER}*.jsonl")]:
            with suppress(OSError):
                self._lines[path.stem.removeprefix(_HELPER)] = list(json_lines(path))

    def add_to(self, transcript: Transcript) -> None:
        """Add the helpers whose call is known."""
        tasks = {task.strip(): call for call, task in transcript.calls_with("prompt").items()}
        for id, lines in self._lines.items():
            helper = Transcript(folder=transcript.folder)
            for line in lines:
                _add(helper, line)
            call = self._calls.get(id) or tasks.get(helper.first_message.strip(), "")
            transcript.helper(call, id, helper)


def _own_words(text: str) -> str:
    if command := without_elements(text, _COMMAND)[1]:
        arguments = without_elements(text, _COMMAND_ARGUMENTS)[1]
        return f"/{command[0].lstrip('/')} {arguments[0] if arguments else ''}".strip()
    text = own_words(text)
    return "" if text.startswith(_PROGRAM_TEXTS) else text


def _nothing(_text: str) -> str:
    return ""


def _deleted(history: Path, kept: set[str]) -> Iterator[FoundSession]:
    for id, lines in _by_session(history).items():
        if id not in kept:
            texts = [word(line.get("display")) for line in lines]
            yield FoundSession(
                agent=AGENT,
                id=id,
                folder=word(lines[0].get("project")),
                path=str(history),
                bytes=sum(len(text.encode("utf-8", "replace")) for text in texts),
                version=f"{len(lines)}",
            )


def _by_session(history: Path) -> dict[str, list[dict[str, Any]]]:
    """Return the lines of the history by session; where no id is given, by folder and pauses."""
    sessions: dict[str, list[dict[str, Any]]] = {}
    last: dict[str, tuple[datetime, str]] = {}
    for line in json_lines(history):
        at, folder = time_of(line.get("timestamp")), word(line.get("project"))
        if at is None or not word(line.get("display")).strip():
            continue
        id = word(line.get("sessionId"))
        if not id:
            before = last.get(folder)
            going_on = before is not None and at - before[0] < _PAUSE
            id = before[1] if before is not None and going_on else f"{folder}@{int(at.timestamp())}"
            last[folder] = at, id
        sessions.setdefault(id, []).append(line)
    return sessions


def _rebuilt(found: FoundSession) -> Transcript:
    lines = _by_session(Path(found.path)).get(found.id, [])
    transcript = Transcript(folder=found.folder, tags=(RESCUED,))
    times = [time_of(line.get("timestamp")) or datetime.now(UTC) for line in lines]
    commits: list[Commit] = []
    if times and Path(found.folder).is_dir():
        until = times[-1] + _PAUSE
        commits = commits_between(Path(found.folder), times[0], until, most=_MOST_COMMITS, timeout=_GIT_SECONDS)
    ends = [*times[1:], datetime.max.replace(tzinfo=UTC)]
    for line, start, end in zip(lines, times, ends, strict=True):
        transcript.user(_with_pasted(line), start)
        made = [commit for commit in commits if start <= commit.committed_at < end]
        listed = "".join(f"\n- commit {commit.hash[:10]}: {commit.subject}" for commit in made)
        transcript.reply(_RESCUED_REPLY + ("\nMeanwhile in this folder:" + listed if made else ""), start)
        for commit in made:
            transcript.commit(commit)
    return transcript


def _with_pasted(line: dict[str, Any]) -> str:
    """Return a message with the pasted texts that its line keeps beside it."""
    text = word(line.get("display"))
    pasted = [word(fields(part).get("content")) for part in fields(line.get("pastedContents")).values()]
    return "\n\n".join(itertools.chain([text], filter(None, pasted)))
