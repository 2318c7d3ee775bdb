"""Interface of the engine: requests with typed responses, and a stream of events.

`Engine` is the whole interface. It has two implementations, in process and behind a pipe (package `engine`); screens,
scripts and tests work with either. On the pipe every line is one JSON object, one of

    {"id": 3, "request": {"type": "send_message", …}}      screen to engine
    {"id": 3, "result": …} | {"id": 3, "error": {…}}       engine to screen
    {"event": {"type": "text_delta", …}}                   engine to screen
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Protocol, get_args

import msgspec

from ragforge_tui.shared.errors import ErrorInfo
from ragforge_tui.shared.events import ApprovalDecision, Event, GraphChanged, ModelChanged
from ragforge_tui.shared.export_records import ConversationExport, Imported
from ragforge_tui.shared.records import (
    Conversation,
    ConversationFilter,
    SearchHit,
    Todo,
    Turn,
)
from ragforge_tui.shared.requests.base import Empty as Empty
from ragforge_tui.shared.requests.base import R as R
from ragforge_tui.shared.requests.base import Request as Request
from ragforge_tui.shared.requests.calls import CallRequest as CallRequest
from ragforge_tui.shared.requests.calls import FetchCall as FetchCall
from ragforge_tui.shared.requests.calls import ListCalls as ListCalls
from ragforge_tui.shared.requests.memory import FetchContext as FetchContext
from ragforge_tui.shared.requests.memory import FetchMemory as FetchMemory
from ragforge_tui.shared.requests.memory import FindSimilar as FindSimilar
from ragforge_tui.shared.requests.memory import ListTopics as ListTopics
from ragforge_tui.shared.requests.memory import MemoryRequest as MemoryRequest
from ragforge_tui.shared.requests.memory import MemoryView as MemoryView
from ragforge_tui.shared.requests.memory import MergeTopics as MergeTopics
from ragforge_tui.shared.requests.memory import SummarizeConversation as SummarizeConversation
from ragforge_tui.shared.requests.memory import UnmergeTopic as UnmergeTopic
from ragforge_tui.shared.requests.personas import CheckPersona as CheckPersona
from ragforge_tui.shared.requests.personas import DeletePersona as DeletePersona
from ragforge_tui.shared.requests.personas import DraftPersona as DraftPersona
from ragforge_tui.shared.requests.personas import ImprovePersona as ImprovePersona
from ragforge_tui.shared.requests.personas import ListPersonas as ListPersonas
from ragforge_tui.shared.requests.personas import PersonaRequest as PersonaRequest
from ragforge_tui.shared.requests.personas import RestorePersona as RestorePersona
from ragforge_tui.shared.requests.personas import SavePersona as SavePersona
from ragforge_tui.shared.requests.personas import SetPersona as SetPersona
from ragforge_tui.shared.requests.personas import ShowPersona as ShowPersona
from ragforge_tui.shared.requests.sessions import FollowConversations as FollowConversations
from ragforge_tui.shared.requests.sessions import LeaveConversation as LeaveConversation
from ragforge_tui.shared.requests.sessions import PeekConversation as PeekConversation
from ragforge_tui.shared.requests.sessions import SessionRequest as SessionRequest
from ragforge_tui.shared.requests.tree import FetchDue as FetchDue
from ragforge_tui.shared.requests.tree import FetchSent as FetchSent
from ragforge_tui.shared.requests.tree import FetchSummary as FetchSummary
from ragforge_tui.shared.requests.tree import FetchTopicPlaces as FetchTopicPlaces
from ragforge_tui.shared.requests.tree import FetchTree as FetchTree
from ragforge_tui.shared.requests.tree import FetchTurnLines as FetchTurnLines
from ragforge_tui.shared.requests.tree import TreeRequest as TreeRequest
from ragforge_tui.shared.requests.turns import BranchConversation as BranchConversation
from ragforge_tui.shared.requests.turns import FindText as FindText
from ragforge_tui.shared.requests.turns import TurnRequest as TurnRequest
from ragforge_tui.shared.requests.work import MODES as MODES
from ragforge_tui.shared.requests.work import FileDiff as FileDiff
from ragforge_tui.shared.requests.work import Mode as Mode
from ragforge_tui.shared.requests.work import PlanUndo as PlanUndo
from ragforge_tui.shared.requests.work import RunShell as RunShell
from ragforge_tui.shared.requests.work import SessionDiff as SessionDiff
from ragforge_tui.shared.requests.work import SetMode as SetMode
from ragforge_tui.shared.requests.work import UndoPlan as UndoPlan
from ragforge_tui.shared.requests.work import UndoTurn as UndoTurn
from ragforge_tui.shared.requests.work import WorkRequest as WorkRequest
from ragforge_tui.shared.tool_calls import ToolInfo

PROTOCOL_VERSION = 1
MAX_LINE_BYTES = 64 * 1024 * 1024
"""Longest line either side reads; asyncio's default of 64 KiB would raise on a pasted file."""


class EngineState(msgspec.Struct, kw_only=True, frozen=True):
    """State of the engine at the time of the request; events report later changes.

    Attributes:
        tools: Descriptions of all tools, for the calls that are shown.
    """

    protocol: int
    version: str
    pid: int
    workspace: str
    model: ModelChanged
    graph: GraphChanged
    log_file: str
    tools: list[ToolInfo] = []


class Hello(Request[EngineState]):
    """Open a connection; the first request on it."""

    protocol: int = PROTOCOL_VERSION


class TurnPage(msgspec.Struct, kw_only=True, frozen=True):
    """Stored turns in ascending order; `first` is the lowest existing turn index, `last` the highest."""

    turns: list[Turn]
    first: int
    last: int


class ConversationView(msgspec.Struct, kw_only=True, frozen=True):
    """Conversation that is open for reading and writing.

    Attributes:
        page: Its newest turns.
        todos: The agent's current plan.
        active_turn: Index of the turn being answered now, here or by another process; None if idle.
        interrupted_turn: Index of the last turn if it ended without an answer, so that a retry is offered.
        mode: What the agent may do in it without approval.
    """

    conversation: Conversation
    page: TurnPage
    todos: list[Todo]
    active_turn: int | None = None
    interrupted_turn: int | None = None
    mode: Mode = "ask"


class CreateConversation(Request[ConversationView]):
    title: str = ""
    tags: list[str] = msgspec.field(default_factory=list)
    persona: str = ""


class OpenConversation(Request[ConversationView]):
    """Open a conversation by id or unique prefix; with neither, the newest one of this workspace.

    Fails with kind ``not_found`` if no conversation matches, or more than one.
    """

    ref: str = ""
    turns: int = 12
    """Number of newest turns to return: one screenful, so that a long conversation opens as fast as a short one."""


class FetchTurns(Request[TurnPage]):
    """Fetch the turns with index in [start, end), both counted from 1."""

    conversation_id: str
    start: int
    end: int


class SendAccepted(msgspec.Struct, kw_only=True, frozen=True):
    """Confirmation that a message is stored in graph or journal, or queued behind the current turn (`turn_index` 0)."""

    turn_index: int
    queued: bool = False


class SendMessage(Request[SendAccepted]):
    """Send a user's message. The caller generates `message_id`, which makes the request idempotent."""

    conversation_id: str
    message_id: str
    text: str


class CancelTurn(Request[Empty]):
    """Stop the current turn and keep the text received. Stops a turn of another process too, through the graph."""

    conversation_id: str


class Unqueue(Request[bool]):
    """Drop a message queued behind the current turn; false if it is no longer queued."""

    conversation_id: str
    message_id: str


class RetryTurn(Request[SendAccepted]):
    """Request another answer for the last turn, which supersedes the earlier attempt."""

    conversation_id: str


class AnswerApproval(Request[Empty]):
    approval_id: str
    decision: ApprovalDecision
    feedback: str = ""


class AnswerTrust(Request[Empty]):
    """Allow or reject the use of instructions found in the workspace."""

    root: str
    allow: bool


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


class DeleteConversation(Request[Empty]):
    """Hide a conversation at once and purge it after seven days; `immediately` purges it now, without undo."""

    conversation_id: str
    immediately: bool = False


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


class SetModel(Request[ModelChanged]):
    """Use another model from the next turn on; an empty name selects the discovered one."""

    name: str


class ChangeModelSettings(Request[Empty]):
    """Apply settings of the model, by name, from its next request on; see `LIVE_MODEL_SETTINGS`."""

    changes: dict[str, int | float | None]


class ListModels(Request[list[str]]):
    """List the names of models that can be used with what is configured or discovered."""


class ListFiles(Request[list[str]]):
    """List files of the workspace whose path matches fuzzily, best first; .gitignore is respected.

    With `folders`, folders are listed too, with a trailing slash; the query ``src/`` then returns that folder and its
    contents.
    """

    query: str
    limit: int = 50
    folders: bool = False


class Shutdown(Request[Empty]):
    """Shut down cleanly: a turn in progress is stored as interrupted."""


AnyRequest = (
    Hello
    | CreateConversation
    | OpenConversation
    | FetchTurns
    | SendMessage
    | CancelTurn
    | Unqueue
    | RetryTurn
    | AnswerApproval
    | AnswerTrust
    | ListConversations
    | UpdateConversation
    | ArchiveConversation
    | DeleteConversation
    | RestoreConversation
    | Search
    | ExportConversation
    | ImportConversation
    | SetModel
    | ChangeModelSettings
    | ListModels
    | ListFiles
    | PersonaRequest
    | CallRequest
    | MemoryRequest
    | SessionRequest
    | TreeRequest
    | TurnRequest
    | WorkRequest
    | Shutdown
)


def response_type(request: Request[Any] | type[Request[Any]]) -> Any:
    """Return the type of a request's response: the `R` of its `Request[R]`."""
    cls = request if isinstance(request, type) else type(request)
    return get_args(cls.__orig_bases__[0])[0]  # type: ignore[attr-defined]


class RequestLine(msgspec.Struct, kw_only=True, frozen=True):
    id: int
    request: AnyRequest


class ReplyLine(msgspec.Struct, kw_only=True, frozen=True, omit_defaults=True):
    """Line written by the engine: a response (`id` with `result` or `error`) or an `event`."""

    id: int | None = None
    result: msgspec.Raw = msgspec.Raw(b"null")
    error: ErrorInfo | None = None
    event: Event | None = None


class Engine(Protocol):
    """The engine, in process or behind a pipe."""

    async def request(self, request: Request[R]) -> R:
        """Send a request and wait for its response.

        Raises:
            RagforgeError: The error that the engine raised, or `EngineGoneError` if it ended meanwhile.
        """
        ...

    def events(self) -> AsyncIterator[Event]:
        """Iterate over all events from now on, until the engine ends. Supports a single reader."""
        ...

    async def close(self) -> None:
        """Shut the engine down cleanly; a turn in progress is stored as interrupted."""
        ...
