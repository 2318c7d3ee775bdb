"""Stored conversations: list, show, search, archive, delete and bring back."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import typer

from ragforge_tui.cli.common import ConversationArgument, JsonFlag, with_memory
from ragforge_tui.cli.output import bold, local_time, say, say_json, say_styled, shorten, table
from ragforge_tui.errors import NotFoundError
from ragforge_tui.export import to_markdown
from ragforge_tui.export.context import context_text
from ragforge_tui.export_records import ConversationExport
from ragforge_tui.models import Conversation, ConversationFilter, SearchHit
from ragforge_tui.protocol import (
    ArchiveConversation,
    DeleteConversation,
    Engine,
    ExportConversation,
    FetchContext,
    FindSimilar,
    ListConversations,
    OpenConversation,
    RestoreConversation,
    Search,
)
from ragforge_tui.text import plain_text

SHORT_ID = 8
KEPT_DAYS = 7

Status = Literal["active", "archived", "deleted", "any"]


def sessions(
    ctx: typer.Context,
    status: Annotated[Status, typer.Option(help="Which ones.")] = "active",
    tag: Annotated[list[str] | None, typer.Option(help="With this tag; repeat it for any of several.")] = None,
    query: Annotated[str, typer.Option(help="Words in title and summary.")] = "",
    order: Annotated[Literal["updated", "created"], typer.Option(help="Newest first by this time.")] = "updated",
    limit: Annotated[int, typer.Option(min=1, help="How many at most.")] = 50,
    workspace: Annotated[str | None, typer.Option(metavar="DIR", help="Only those of this folder.")] = None,
    json: JsonFlag = False,
) -> None:
    """List conversations, newest first."""
    wanted = ConversationFilter(
        status=status,
        tags=tag or [],
        query=query,
        order=order,
        limit=limit,
        # A folder that is gone still has its conversations.
        workspace=str(Path(workspace).expanduser().resolve()) if workspace else None,
    )
    found = with_memory(ctx, lambda engine: engine.request(ListConversations(filter=wanted)))
    if json:
        say_json(found)
        return
    if not found:
        say("No conversations.")
        return
    table(
        [
            (
                conversation.uuid[:SHORT_ID],
                local_time(getattr(conversation, f"{order}_at")),
                str(conversation.message_count),
                conversation.status,
                shorten(conversation.persona, 20),
                shorten(conversation.workspace, 40),
                shorten(conversation.title or "(untitled)", 60),
            )
            for conversation in found
        ],
        ("ID", order.upper(), "MESSAGES", "STATUS", "PERSONA", "FOLDER", "TITLE"),
    )


def show(
    ctx: typer.Context,
    id: ConversationArgument,
    context: Annotated[
        int | None,
        typer.Option("--context", metavar="TURN", min=0, help="What the model was sent in this turn; 0: the last one."),
    ] = None,
    json: JsonFlag = False,
) -> None:
    """Print a whole conversation, or what a turn's request held."""
    if context is not None:
        record = with_memory(ctx, lambda engine: engine.request(FetchContext(conversation_id=id, turn_index=context)))
        if json:
            say_json(record)
        else:
            say(context_text(record))
        return
    export = with_memory(ctx, lambda engine: engine.request(ExportConversation(ref=id)))
    if json:
        say_json(shown(export))
    else:
        say(to_markdown(export).rstrip())


def shown(export: ConversationExport) -> dict[str, Any]:
    """The object `show --json` prints: the conversation, its messages in order, and its tree of summaries with topics.

    A summary names those below it in `parent_summaries` and the one above it in `parent`.
    """
    return {
        "conversation": msgspec.to_builtins(export.conversation),
        "messages": msgspec.to_builtins([message for turn in export.turns for message in turn.messages]),
        "summaries": msgspec.to_builtins(export.memory.summaries),
        "topics": msgspec.to_builtins(export.memory.topics),
    }


def search(
    ctx: typer.Context,
    query: Annotated[str, typer.Argument(metavar="QUERY", help="Words to look for.")],
    topic: Annotated[str, typer.Option(metavar="T", help="Only turns about this topic, by its name or id.")] = "",
    limit: Annotated[int, typer.Option(min=1, help="How many hits at most.")] = 20,
    json: JsonFlag = False,
) -> None:
    """Find turns by their words, in all conversations that are not private."""
    hits = with_memory(ctx, lambda engine: engine.request(Search(query=query, limit=limit, topic=topic)))
    if json:
        say_json(hits)
        return
    if not hits:
        say("Nothing found.")
    for hit in hits:
        say_styled(_hit(hit))


def similar(
    ctx: typer.Context,
    id: ConversationArgument,
    limit: Annotated[int, typer.Option(min=1, help="How many at most.")] = 10,
    min_score: Annotated[
        float | None, typer.Option(min=-1, max=1, help="Smallest cosine of the summaries; else recall.min_score.")
    ] = None,
    json: JsonFlag = False,
) -> None:
    """List conversations whose summary is like this one's, most similar first."""
    found = with_memory(ctx, lambda engine: engine.request(FindSimilar(ref=id, limit=limit, min_score=min_score)))
    if json:
        say_json(found)
        return
    if not found:
        say("Nothing similar; a conversation is compared by its summary, which comes with its first turns' summary.")
        return
    table(
        [
            (
                one.conversation.uuid[:SHORT_ID],
                f"{one.score:.2f}",
                local_time(one.conversation.updated_at),
                shorten(one.conversation.title or "(untitled)", 60),
            )
            for one in found
        ],
        ("ID", "SCORE", "UPDATED", "TITLE"),
    )


def _hit(hit: SearchHit) -> str:
    head = f"{hit.conversation_id[:SHORT_ID]} t{hit.turn_index} · {local_time(hit.timestamp)} · {hit.title}"
    return f"{' '.join(plain_text(head).split())}\n    {highlighted(hit)}"


def highlighted(hit: SearchHit) -> str:
    """A hit's snippet on one line, its matches in bold on a terminal and plain elsewhere."""
    pieces, at = [], 0
    for start, end in hit.highlights:
        pieces += [plain_text(hit.snippet[at:start]), bold(hit.snippet[start:end])]
        at = end
    return " ".join("".join([*pieces, plain_text(hit.snippet[at:])]).split())


def archive(ctx: typer.Context, id: ConversationArgument, json: JsonFlag = False) -> None:
    """Put a conversation away; `restore` brings it back."""
    conversation = with_memory(ctx, lambda engine: engine.request(ArchiveConversation(conversation_id=id)))
    _done(f"Archived {_named(conversation)}.", conversation, json=json)


def delete(
    ctx: typer.Context,
    id: ConversationArgument,
    now: Annotated[bool, typer.Option("--now", help="Remove it for good at once.")] = False,
    json: JsonFlag = False,
) -> None:
    """Hide a conversation; it is removed for good after seven days, until then `restore` brings it back."""

    async def work(engine: Engine) -> Conversation:
        try:
            conversation = (await engine.request(OpenConversation(ref=id, turns=0))).conversation
        except NotFoundError:
            if not now:
                raise
            # One that is hidden already answers to nothing but a restore.
            conversation = await engine.request(RestoreConversation(conversation_id=id))
        await engine.request(DeleteConversation(conversation_id=conversation.uuid, immediately=now))
        return conversation

    conversation = with_memory(ctx, work)
    if now:
        said = f"Removed {_named(conversation)} for good."
    else:
        said = (
            f"Deleted {_named(conversation)}. "
            f"For {KEPT_DAYS} days `ragforge-chat restore {conversation.uuid[:SHORT_ID]}` brings it back."
        )
    _done(said, conversation, json=json)


def restore(ctx: typer.Context, id: ConversationArgument, json: JsonFlag = False) -> None:
    """Undo a delete or an archive."""

    async def work(engine: Engine) -> Conversation:
        try:
            return await engine.request(ArchiveConversation(conversation_id=id, archived=False))
        except NotFoundError:
            return await engine.request(RestoreConversation(conversation_id=id))

    conversation = with_memory(ctx, work)
    _done(f"Restored {_named(conversation)}.", conversation, json=json)


def _named(conversation: Conversation) -> str:
    title = shorten(conversation.title, 60)
    return f"{conversation.uuid[:SHORT_ID]} ({title})" if title else conversation.uuid[:SHORT_ID]


def _done(said: str, conversation: Conversation, *, json: bool) -> None:
    if json:
        say_json(conversation)
    else:
        say(said)
