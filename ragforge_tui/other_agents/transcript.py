"""Transcript of another agent's session, built up message by message and exported as a conversation.

Readers of the formats call `user`, `reply`, `call` and `result` in the order of the session. Ids are derived from the
agent, its id of the session and the place of the message, so that a second import finds what the first one stored and
adds only what is new.
"""

from __future__ import annotations

import re
import uuid
from datetime import UTC, datetime, timedelta
from pathlib import PurePosixPath, PureWindowsPath

import msgspec

from ragforge_tui.shared.account import log_in_name
from ragforge_tui.shared.export_records import ConversationExport, MemoryExport, MessageCommit
from ragforge_tui.shared.found_sessions import FoundSession
from ragforge_tui.shared.json_text import decode_json, json_object
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
_WRITES = {"write", "edit", "patch", "replace", "create", "insert"}
_READS = {"read", "view", "open", "cat"}
_WORD = re.compile("[A-Z]?[a-z]+")
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
        self._calls: dict[str, ToolCall] = {}
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

    @property
    def last_time(self) -> datetime:
        """Time of the last message or result."""
        return self._time

    def user(self, text: str, at: datetime | None = None) -> None:
        """Begin a turn with a message of the user; one without text is left out."""
        if text.strip():
            self._turns.append(
                [Message(uuid="", conversation_id="", role="user", content=text, timestamp=self._at(at))]
            )

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
        """Add a reply of the model, or text to the reply with the same `id`."""
        known = self._replies.get(id) if id else None
        if known is None:
            known = Message(
                uuid="", conversation_id="", role="assistant", model=model, usage=usage, timestamp=self._at(at)
            )
            self._turn().append(known)
            if id:
                self._replies[id] = known
        known.content = _joined(known.content, text)
        known.reasoning = _joined(known.reasoning, reasoning)

    def call(self, id: str, name: str, arguments: object, at: datetime | None = None) -> None:
        """Add a tool call to the last reply; `arguments` are an object, or the text the model wrote."""
        turn = self._turn()
        if turn[-1].role != "assistant":
            self.reply("", at)
        text = arguments if isinstance(arguments, str) else msgspec.json.encode(arguments).decode()
        call = ToolCall(uuid="", message_id="", tool_name=name or "tool", arguments=text, timestamp=self._at(at))
        turn[-1].tool_calls.append(call)
        if id:
            self._calls[id] = call

    def result(self, id: str, text: str, at: datetime | None = None, *, failed: bool = False) -> None:
        """Set the result of a call; one whose call is unknown is left out, as is a second one."""
        call = self._calls.get(id)
        if call is None or call.result is not None:
            return
        moment = self._at(at)
        call.success = not failed
        call.duration_ms = max(0, int((moment - call.timestamp).total_seconds() * 1_000))
        call.result = ToolResult(
            uuid="",
            tool_call_id="",
            success=not failed,
            result=text,
            error="failed" if failed else None,
            timestamp=moment,
            result_size_bytes=len(text.encode("utf-8", "replace")),
        )

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

    def export(self, found: FoundSession, *, without_last_turn: bool = False) -> ConversationExport | None:
        """Return the session as a conversation, with secrets masked; None if nothing is left of it.

        Args:
            found: Where the session comes from.
            without_last_turn: Leave the last turn out, since the agent may still be writing it.
        """
        turns = self._turns[:-1] if without_last_turn else self._turns
        if not turns:
            return None
        own = conversation_id(found.agent, found.id)
        folder = self.folder or found.folder
        kept = [
            Turn(turn_index=index, messages=[_placed(m, own, index, n, folder) for n, m in enumerate(messages)])
            for index, messages in enumerate(turns, start=1)
        ]
        messages = [message for turn in kept for message in turn.messages]
        for call, id, helper in self._helpers:
            if call.result is not None and call.uuid:
                helper_id = conversation_id(found.agent, f"{found.id}/{id}")
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
            if m.uuid
        ]
        return ConversationExport(conversation=conversation, turns=kept, memory=MemoryExport(commits=commits))

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
    return f"{before}\n\n{more}" if before and more else before or more


def _short(title: str) -> str:
    line = " ".join(storable(title).split())
    return line if len(line) <= TITLE_CHARS else line[: TITLE_CHARS - 1].rstrip() + "…"


def _placed(message: Message, conversation: str, turn: int, position: int, folder: str) -> Message:
    """Set the ids of a message and its calls, and mask the secrets in its texts."""
    message.uuid = _derived(conversation, turn, position)
    message.conversation_id = conversation
    message.turn_index, message.position = turn, position
    message.content, message.reasoning = _clean(message.content), _clean(message.reasoning)
    message.char_count = len(message.content)
    for ordinal, call in enumerate(message.tool_calls):
        call.uuid = _derived(conversation, turn, position, ordinal)
        call.message_id = message.uuid
        call.ordinal = ordinal
        call.iteration = position
        call.files = _files(call, folder)
        call.arguments = _clean(call.arguments)
        if call.result is not None:
            call.result.uuid = _derived(conversation, turn, position, ordinal, "result")
            call.result.tool_call_id = call.uuid
            call.result.result = msgspec.json.encode({"text": _clean(call.result.result)}).decode()
    return message


def _clean(text: str) -> str:
    return mask_secrets(storable(text)) if text else ""


def _derived(*place: object) -> str:
    return str(uuid.uuid5(_NAMESPACE, "\x1f".join(str(part) for part in place)))


def _files(call: ToolCall, folder: str) -> list[FileAccess]:
    """Return the file that a call names in its arguments, if the tool's name tells what it does with it."""
    words = {word.lower() for word in _WORD.findall(call.tool_name)}
    access: FileAccessKind
    if words & _WRITES:
        access = "write"
    elif words & _READS:
        access = "read"
    else:
        return []
    try:
        arguments = decode_json(call.arguments)
    except msgspec.MsgspecError:
        return []
    if not isinstance(arguments, dict):
        return []
    path = next((v for key in _PATH_ARGUMENTS if isinstance(v := arguments.get(key), str) and v), "")
    relative = _relative(path, folder)
    return [FileAccess(path=relative, access=access)] if relative else []


def _relative(path: str, folder: str) -> str:
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
