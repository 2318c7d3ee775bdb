"""Transcript of another agent's session, built up message by message and exported as a conversation.

Readers of the formats call `user`, `reply`, `call` and `result` in the order of the session. A turn is known by the
time and words of the user's message, or by its id. Ids are derived from that, so that a second import finds
what the first one stored, and a copy of a turn in another session is the same turn.
"""

from __future__ import annotations

import re
import uuid
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import PurePosixPath, PureWindowsPath

import msgspec

from ragforge_tui.other_agents.reading import decoded, exit_status, fields, is_failure, items, text_of, word
from ragforge_tui.other_agents.stored_edits import edits_in
from ragforge_tui.shared.account import log_in_name
from ragforge_tui.shared.export_records import ConversationExport, MemoryExport, MessageCommit
from ragforge_tui.shared.found_sessions import FileEdit, FoundSession
from ragforge_tui.shared.json_text import json_object
from ragforge_tui.shared.records import (
    SHORT_ID,
    TITLE_CHARS,
    Commit,
    Conversation,
    FileAccess,
    FileAccessKind,
    Message,
    ToolCall,
    ToolResult,
    Turn,
    Usage,
)
from ragforge_tui.shared.redaction import mask_secrets
from ragforge_tui.shared.sanitize import storable
from ragforge_tui.shared.tool_calls import main_argument

ORIGIN = "from:"
"""Prefix of the tag that names the agent a conversation was imported from."""
RESCUED = "rescued"
"""Tag of a conversation that was rebuilt because its transcript is gone."""

_NAMESPACE = uuid.UUID("b0d6c3f2-41c5-5c8e-9a0f-8f6d2c1e7a54")
_UNKNOWN = datetime(1970, 1, 1, tzinfo=UTC)
_NO_MESSAGE = "(The session has no message before this reply.)"
_PATH_ARGUMENTS = ("file_path", "filePath", "path", "target_file", "absolute_path", "notebook_path", "filename")
_WRITES = {"write", "edit", "editor", "patch", "replace", "create", "insert"}
_READS = {"read", "view", "open", "cat"}
_RUNS = {"bash", "shell", "command", "commands", "exec", "execute", "terminal", "run"}
_WORD = re.compile("[A-Z]?[a-z]+")
_EXIT = re.compile(
    r"\[?(?:(?:Command|Process) exited with (?:exit )?(?:code|status)|Exit[ -]?(?:code|status)):?\s+(-?\d+)\]?", re.I
)
_EXIT_LINES = 6
"""Lines at the beginning and at the end of a command's output that may show its exit status."""
_MOST_PATH = 1_000
_MOST_TRACED = 200


def conversation_id(agent: str, session: str) -> str:
    """Return the id of the conversation that a session becomes; always the same one."""
    return str(uuid.uuid5(_NAMESPACE, f"{agent}\x1f{session}"))


class Transcript:
    """Messages of one session, in order.

    Attributes:
        title: Title that the agent gave; empty for the first words of the user.
        folder: Folder it worked in.
        tags: Further tags of the conversation.
    """

    def __init__(self, *, title: str = "", folder: str = "", tags: tuple[str, ...] = ()) -> None:
        self.title = title
        self.folder = folder
        self.tags = tags
        self._turns: list[list[Message]] = []
        self._marks: list[str] = []
        """Marks of the turns; empty where the agent stores neither ids nor times."""
        self._known: set[str] = set()
        self._calls: dict[str, ToolCall] = {}
        self._edits: list[tuple[ToolCall, FileEdit]] = []
        self._replies: dict[str, Message] = {}
        self._commits: list[tuple[Message, Commit]] = []
        self._helpers: list[tuple[ToolCall, str, Transcript]] = []
        self._time = _UNKNOWN

    def __bool__(self) -> bool:
        return bool(self._turns)

    @property
    def first_message(self) -> str:
        """First message of the user; empty without one."""
        return self._turns[0][0].content if self._turns else ""

    def user(self, text: str, at: datetime | None = None, *, id: str = "") -> None:
        """Begin a turn with a message of the user; one without text is left out, as is one that is known.

        Args:
            id: The agent's own id of the message, for one without a time: copies have the same time and words.
        """
        mark = f"{at.isoformat()}\x1f{text}" if at is not None else id
        if text.strip() and mark not in self._known:
            self._marks.append(mark)
            self._known |= {mark} if mark else set()
            self._turns.append(
                [Message(uuid="", conversation_id="", role="user", content=text, timestamp=self._at(at))]
            )

    def follow(self, parent: Transcript) -> None:
        """Take over the marks of the first turns from the session they were copied from."""
        for n, (own, copied) in enumerate(zip(self._turns, parent._turns, strict=False)):
            if _texts(own) != _texts(copied):
                return
            self._turns[n], self._marks[n] = copied, parent._marks[n]

    def reply(
        self,
        text: str,
        at: datetime | None = None,
        *,
        reasoning: str = "",
        model: str = "",
        usage: Usage | None = None,
        id: str = "",
    ) -> None:
        """Add a reply of the model, or its new parts to the reply with the same `id`."""
        known = self._replies.get(id) if id else None
        if known is None:
            known = Message(uuid="", conversation_id="", role="assistant", timestamp=self._at(at))
            self._turn().append(known)
            if id:
                self._replies[id] = known
        known.content = _joined(known.content, text)
        known.reasoning = _joined(known.reasoning, reasoning)
        known.model = model or known.model
        if usage is not None and (known.usage is None or usage.output_tokens >= known.usage.output_tokens):
            known.usage = usage  # the last count of a streamed reply is the whole one

    def count(self, usage: Usage | None) -> None:
        """Set the tokens of the last reply."""
        if usage is not None and self._turns and (last := self._turns[-1][-1]).role == "assistant":
            last.usage = usage

    def call(self, id: str, name: str, arguments: object, at: datetime | None = None) -> None:
        """Add a tool call to the last reply, once; `arguments` are an object, or the text the model wrote."""
        if id and id in self._calls:
            return
        turn = self._turn()
        if turn[-1].role != "assistant":
            self.reply("", at)
        text = arguments if isinstance(arguments, str) else msgspec.json.encode(arguments).decode()
        call = ToolCall(uuid="", message_id="", tool_name=name or "tool", arguments=text, timestamp=self._at(at))
        turn[-1].tool_calls.append(call)
        if id:
            self._calls[id] = call

    def result(
        self, id: str, value: object, at: datetime | None = None, *, failed: bool = False, details: object = None
    ) -> None:
        """Set the result of a call; one whose call is unknown is left out, as is a second one.

        Args:
            value: The result as it was stored, which may report a failure or the exit status of a command.
            details: What the agent stored in addition to it.
        """
        call = self._calls.get(id)
        if call is None or call.result is not None:
            return
        value = _unpacked(value)
        moment, text = self._at(at), text_of(value) or _as_json(value)
        status = exit_status(details)
        status = exit_status(value) if status is None else status
        if status is None and _words(call) & _RUNS:
            status = _status_in(text)
        failed = failed or bool(status) or is_failure(value) or fields(details).get("success") is False
        call.success = not failed
        call.duration_ms = max(0, int((moment - call.timestamp).total_seconds() * 1_000))
        call.result = ToolResult(
            uuid="",
            tool_call_id="",
            success=not failed,
            result=msgspec.json.encode(
                {"text": _clean(text), **({} if status is None else {"exit_status": status})}
            ).decode(),
            error=(f"exit status {status}" if status else "failed") if failed else None,
            timestamp=moment,
            result_size_bytes=len(text.encode("utf-8", "replace")),
        )
        if not failed:
            arguments = json_object(call.arguments) or call.arguments
            for edit in edits_in(details or value, arguments, writes=bool(_words(call) & _WRITES)):
                self._edits.append((call, edit))

    def edited(self, path: str, edits: list[FileEdit]) -> None:
        """Add a file that the program wrote by itself after a reply, as a call of a tool named `edit`."""
        id = f"edit {len(self._calls)}"
        self.call(id, "edit", {"path": path})
        self.result(id, f"{path} was edited.")
        self._edits += [(self._calls[id], edit) for edit in edits]

    @property
    def last_time(self) -> datetime:
        """Time of the last message or result."""
        return self._time

    def helper(self, call: str, id: str, transcript: Transcript) -> None:
        """Add the work of a helper that a call started; left out if the call is unknown or it said nothing.

        Args:
            id: The agent's own id of the helper's session.
        """
        if transcript and (known := self._calls.get(call)) is not None:
            self._helpers.append((known, id, transcript))

    def calls_with(self, argument: str) -> dict[str, str]:
        """Return an argument's text by the id of each call that has one, such as the task of a helper."""
        found = {}
        for id, call in self._calls.items():
            value = json_object(call.arguments).get(argument)
            if isinstance(value, str):
                found[id] = value
        return found

    def commit(self, commit: Commit) -> None:
        """Link a commit to the last message."""
        self._commits.append((self._turn()[-1], commit))

    def export(self, found: FoundSession) -> ConversationExport | None:
        """Return the session as a conversation, with secrets masked; None if nothing is left of it.

        Args:
            found: Where the session comes from.
        """
        if not self._turns:
            return None
        own = conversation_id(found.agent, found.id)
        folder = self.folder or found.folder
        edited: dict[int, list[FileEdit]] = {}
        for call, edit in self._edits:
            edited.setdefault(id(call), []).append(edit)
        kept: list[Turn] = []
        words: Counter[str] = Counter()
        for index, (mark, messages) in enumerate(zip(self._marks, self._turns, strict=True), start=1):
            placed = [message for message in messages if _says_something(message)]
            said = messages[0].content
            words[said] += 1
            key = _derived(found.agent, mark) if mark else _derived(own, said, words[said])
            for position, message in enumerate(placed):
                _place(message, own, key, index, position)
                for call in message.tool_calls:
                    call.files = _files(call, edited.get(id(call), []), folder)
            kept.append(Turn(turn_index=index, messages=placed))
        messages = [message for turn in kept for message in turn.messages]
        for call, helper_session, helper in self._helpers:
            if call.result is not None and call.uuid:
                helper_id = conversation_id(found.agent, f"{found.id}/{helper_session}")
                data = {**json_object(call.result.result), "helper": helper_id, "trace": helper.trace(helper_id)}
                call.result.result = msgspec.json.encode(data).decode()
        title = self.title or next((m.content for m in messages if m.role == "user"), "")
        conversation = Conversation(
            uuid=own,
            title=_short(mask_secrets(title)),
            tags=[ORIGIN + found.agent, *self.tags],
            created_at=messages[0].timestamp,
            updated_at=max(message.timestamp for message in messages),
            message_count=len(messages),
            total_chars=sum(len(message.content) for message in messages),
            next_turn=len(kept) + 1,
            model=next((m.model for m in reversed(messages) if m.model), ""),
            workspace=storable(folder),
            owner=log_in_name(),
        )
        commits = [
            MessageCommit(turn_index=m.turn_index, message=m.uuid, workspace=folder, commit=commit)
            for m, commit in self._commits
        ]
        return ConversationExport(conversation=conversation, turns=kept, memory=MemoryExport(commits=commits))

    @property
    def edits(self) -> list[tuple[ToolCall, FileEdit]]:
        """Edits with the calls that made them, in order."""
        return self._edits

    def helper_exports(self, found: FoundSession, parent: Conversation) -> list[ConversationExport]:
        """Return the work of the helpers as conversations of their own, as those of this program's helpers are stored.

        Args:
            found: Where the session comes from.
            parent: The conversation that `export` made of it.
        """
        exports = []
        for call, id, helper in self._helpers:
            session = msgspec.structs.replace(found, id=f"{found.id}/{id}", folder=parent.workspace)
            export = helper.export(session) if call.uuid else None
            if export is not None:
                record = export.conversation
                record.private, record.branch_of, record.branch_turn = True, parent.uuid, 0
                record.helper_of = call.uuid
                exports.append(export)
        return exports

    def trace(self, conversation: str) -> list[str]:
        """Return the calls of a helper as lines, and where its conversation is."""
        calls = [call for turn in self._turns for message in turn for call in message.tool_calls]
        lines = [f"{call.tool_name} {main_argument(call)}".strip() for call in calls[-_MOST_TRACED:]]
        return [mask_secrets(storable(line)) for line in lines] + [
            f"{len(calls)} calls · /resume {conversation[:SHORT_ID]}"
        ]

    def _turn(self) -> list[Message]:
        if not self._turns:
            self.user(_NO_MESSAGE, self._time)
        return self._turns[-1]

    def _at(self, at: datetime | None) -> datetime:
        """Return the time of an event; one without a time comes right after the one before it."""
        self._time = at if at is not None else self._time + timedelta(milliseconds=1)
        return self._time


def _joined(before: str, more: str) -> str:
    """Return a text with the new end of another: agents store a grown text again."""
    if not before or more.startswith(before):
        return more or before
    known = any(part.startswith(more) for part in before.split("\n\n")) or before.endswith(more)
    return before if known else f"{before}\n\n{more}"


def _says_something(message: Message) -> bool:
    return bool(message.role == "user" or message.content or message.reasoning or message.tool_calls)


def _texts(turn: list[Message]) -> list[tuple[str, str]]:
    return [(message.role, message.content.strip()) for message in turn if _says_something(message)]


def _short(title: str) -> str:
    line = " ".join(storable(title).split())
    return line if len(line) <= TITLE_CHARS else line[: TITLE_CHARS - 1].rstrip() + "…"


def _place(message: Message, conversation: str, key: str, turn: int, position: int) -> None:
    """Set the ids of a message and its calls, and mask the secrets in its texts."""
    message.uuid = _derived(key, position)
    message.conversation_id = conversation
    message.turn_index, message.position = turn, position
    message.content, message.reasoning = _clean(message.content), _clean(message.reasoning)
    message.char_count = len(message.content)
    for ordinal, call in enumerate(message.tool_calls):
        call.uuid = _derived(key, position, ordinal)
        call.message_id = message.uuid
        call.ordinal = ordinal
        call.iteration = position
        call.arguments = _clean(call.arguments)
        if call.result is not None:
            call.result.uuid = _derived(key, position, ordinal, "result")
            call.result.tool_call_id = call.uuid


def _clean(text: str) -> str:
    return mask_secrets(storable(text)) if text else ""


def _derived(*place: object) -> str:
    return str(uuid.uuid5(_NAMESPACE, "\x1f".join(str(part) for part in place)))


def _words(call: ToolCall) -> set[str]:
    """Return the words of a tool's name; a tool that reads does not write."""
    name = f"{call.tool_name} {word(json_object(call.arguments).get('command')).partition(' ')[0]}"
    words = {each.lower() for each in _WORD.findall(name)}
    return words - _WRITES if words & _READS else words


def _status_in(text: str) -> int | None:
    """Return the exit status that the output of a command names on a line of its own."""
    lines = text.splitlines()
    ends = [*lines[:_EXIT_LINES], *lines[-_EXIT_LINES:]]
    found = [int(match[1]) for line in ends if (match := _EXIT.fullmatch(line.strip()))]
    return max(found, key=abs, default=None)


def _unpacked(value: object) -> object:
    """Return a result whose text is the JSON of an outcome with its text as the object it stands for."""
    inner = next((fields(value)[key] for key in ("content", "output") if key in fields(value)), value)
    told = decoded(inner) if isinstance(inner, str) and inner.lstrip().startswith("{") else None
    outcome = isinstance(told, dict) and {"output", "result"} & told.keys() and {"metadata", "success"} & told.keys()
    return told if outcome else value


def _as_json(value: object) -> str:
    """Return an object without a text as it is, so that nothing of a result is lost."""
    told = fields(value)
    inner = next((told[key] for key in ("output", "response", "structured_content") if fields(told.get(key))), None)
    return msgspec.json.encode(inner).decode() if inner else ""


def _files(call: ToolCall, edits: list[FileEdit], folder: str) -> list[FileAccess]:
    """Return the files that a call wrote, or else those that it names."""
    words = _words(call)
    wrote = words & _WRITES
    paths = [edit.path for edit in edits]
    if not paths and (wrote or words & _READS):
        arguments = json_object(call.arguments)
        named = [arguments, *items(arguments.get("files"))]
        paths = [path for entry in named for key in _PATH_ARGUMENTS if (path := word(entry.get(key)))]
    access: FileAccessKind = "write" if wrote or edits else "read"
    relative = dict.fromkeys(relative_path(path, folder) for path in paths)
    return [FileAccess(path=path, access=access) for path in relative if path]


def relative_path(path: str, folder: str) -> str:
    """Return a path relative to the folder, with forward slashes; empty if it lies outside."""
    if not path or len(path) > _MOST_PATH:
        return ""
    kind = PureWindowsPath if "\\" in folder or ":" in folder[:3] else PurePosixPath
    parts = kind(path)
    if parts.is_absolute():
        try:
            parts = parts.relative_to(kind(folder))
        except ValueError:
            return ""
    return "" if ".." in parts.parts else storable(parts.as_posix())
