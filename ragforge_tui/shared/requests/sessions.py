"""Requests about stored conversations: list, edit, search, export and import."""

from __future__ import annotations

from datetime import datetime

import msgspec

from ragforge_tui.shared.export_records import ConversationExport, Imported
from ragforge_tui.shared.records import (
    Conversation,
    ConversationChanges,
    ConversationFilter,
    ConversationPeek,
    SearchHit,
)
from ragforge_tui.shared.wire import Empty, Request


class ListConversations(Request[list[Conversation]]):
    filter: ConversationFilter = ConversationFilter()


class UpdateConversation(Request[Conversation]):
    """Change fields that users may edit; None leaves a field unchanged."""

    conversation_id: str
    title: str | None = None
    tags: list[str] | None = None
    private: bool | None = None


class ArchiveConversation(Request[Conversation]):
    """Archive a conversation, or restore it to the active ones with `archived` false."""

    conversation_id: str
    archived: bool = True


class Deleted(msgspec.Struct, frozen=True, kw_only=True):
    """Outcome of a deletion.

    Attributes:
        conversation: As it was.
        branches: Branches that were deleted with it.
        kept_turns: Turns that stay because a branch shares them; the branch owns them now.
        kept_by: That branch; the one that will, where the conversation is only hidden so far.
        left: Sentences on what could not be removed.
    """

    conversation: Conversation
    branches: list[Conversation] = []
    kept_turns: int = 0
    kept_by: Conversation | None = None
    left: list[str] = []


class DeleteConversation(Request[Deleted]):
    """Hide a conversation at once and purge it after seven days; `immediately` purges it now, without undo.

    A branch takes over the turns it shares, unless `with_branches` deletes all branches too.
    """

    conversation_id: str
    immediately: bool = False
    with_branches: bool = False


class RestoreConversation(Request[Conversation]):
    """Undo the deletion of a conversation."""

    conversation_id: str


class Search(Request[list[SearchHit]]):
    query: str
    limit: int = 20
    conversation_id: str = ""
    workspace: str | None = None
    """Only conversations of this folder; None: of all folders."""
    topic: str = ""
    """Only turns whose summaries have this topic."""


class ExportConversation(Request[ConversationExport]):
    ref: str


class ImportConversation(Request[Imported]):
    data: ConversationExport
    merge: bool = False
    """Whether turns may be added to a conversation that already exists in the graph."""


class PeekConversation(Request[ConversationPeek]):
    """Start and end of a stored conversation, without opening it. Also works for deleted ones."""

    conversation_id: str
    chars: int = 600
    """Most characters of each message."""


class FollowConversations(Request[ConversationChanges]):
    """Changed conversations of a workspace or of all, regardless of their status.

    A list on the screen polls it: without changes the cost does not depend on the number of conversations.
    """

    since: datetime
    """Earliest time of the changes, inclusive."""
    workspace: str | None = None


class LeaveConversation(Request[Empty]):
    """Stop reporting changes by other processes, because no conversation is displayed any more."""
