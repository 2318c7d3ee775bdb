"""Commands for stored conversations: list, show, search, archive, delete and restore."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
import typer

from ragforge_tui.cli.common import ConversationArgument, JsonFlag, settings, with_memory
from ragforge_tui.cli.output import bold, local_time, print_json, print_styled, print_text, shorten, table
from ragforge_tui.export import to_markdown
from ragforge_tui.export.context import context_text
from ragforge_tui.shared.errors import NotFoundError
from ragforge_tui.shared.export_records import ConversationExport
from ragforge_tui.shared.formatting import counted
from ragforge_tui.shared.records import PURGE_AFTER_DAYS, SHORT_ID, Conversation, ConversationFilter, SearchHit, Topic
from ragforge_tui.shared.requests import sessions as requests
from ragforge_tui.shared.requests.memory import FetchSent, FindSimilar, ResolveTopic
from ragforge_tui.shared.requests.turns import OpenConversation
from ragforge_tui.shared.sanitize import plain_text
from ragforge_tui.shared.wire import Engine

if TYPE_CHECKING:
    from ragforge_tui.tui.prompt.history import History

Status = Literal["active", "archived", "deleted", "any"]


def sessions(
    ctx: typer.Context,
    status: Annotated[Status, typer.Option(help="Status of the conversations.")] = "active",
    tag: Annotated[
        list[str] | None, typer.Option(help="Only with this tag; repeat the option to match any of several.")
    ] = None,
    query: Annotated[str, typer.Option(help="Words in title and summary.")] = "",
    order: Annotated[Literal["updated", "created"], typer.Option(help="Time to sort by, newest first.")] = "updated",
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of results.")] = 50,
    workspace: Annotated[str | None, typer.Option(metavar="DIR", help="Only conversations of this folder.")] = None,
    json: JsonFlag = False,
) -> None:
    """List conversations, newest first."""
    filter = ConversationFilter(
        status=status,
        tags=tag or [],
        query=query,
        order=order,
        limit=limit,
        # A removed folder still has its conversations.
        workspace=str(Path(workspace).expanduser().resolve()) if workspace else None,
    )
    found = with_memory(ctx, lambda engine: engine.request(requests.ListConversations(filter=filter)))
    if json:
        print_json(found)
        return
    if not found:
        print_text("No conversations.")
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
        typer.Option("--context", metavar="TURN", min=0, help="Show the request of this turn; 0 for the last turn."),
    ] = None,
    json: JsonFlag = False,
) -> None:
    """Print a whole conversation, or the request of one turn."""
    if context is not None:
        request = FetchSent(conversation_id=id, turn_index=context)
        record = with_memory(ctx, lambda engine: engine.request(request)).record
        if json:
            print_json(record)
        else:
            print_text(context_text(record))
        return
    export = with_memory(ctx, lambda engine: engine.request(requests.ExportConversation(ref=id)))
    if json:
        print_json(shown(export))
    else:
        print_text(to_markdown(export).rstrip())


def shown(export: ConversationExport) -> dict[str, Any]:
    """Return the object that `show --json` prints: the conversation, its messages, summaries, insight and topics.

    A summary lists its children in `parent_summaries` and its own parent in `parent`.
    """
    return {
        "conversation": msgspec.to_builtins(export.conversation),
        "messages": msgspec.to_builtins([message for turn in export.turns for message in turn.messages]),
        "summaries": msgspec.to_builtins(export.memory.summaries),
        "insight": msgspec.to_builtins(export.memory.insight),
        "topics": msgspec.to_builtins(export.memory.topics),
    }


def search(
    ctx: typer.Context,
    query: Annotated[str, typer.Argument(metavar="QUERY", help="Words to search for.")],
    topic: Annotated[str, typer.Option(metavar="T", help="Only turns about this topic, by its name or id.")] = "",
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of matches.")] = 20,
    json: JsonFlag = False,
) -> None:
    """Find turns by their words, in all conversations that are not private."""
    request = requests.Search(query=query, limit=limit, topic=topic)

    async def work(engine: Engine) -> tuple[list[SearchHit], list[Topic]]:
        hits = await engine.request(request)
        return hits, await engine.request(ResolveTopic(ref=topic)) if topic else []

    hits, topics = with_memory(ctx, work)
    if any(found.similarity is not None for found in topics):
        names = plain_text(", ".join(found.name for found in topics))
        typer.echo(f"No topic is named {topic!r}; limited to similar topics: {names}.", err=True)
    if json:
        print_json(hits)
        return
    if not hits:
        print_text("No matches.")
    for hit in hits:
        print_styled(_hit(hit))


def similar(
    ctx: typer.Context,
    id: ConversationArgument,
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of results.")] = 10,
    min_score: Annotated[
        float | None, typer.Option(min=-1, max=1, help="Minimum cosine of the summaries; by default recall.min_score.")
    ] = None,
    json: JsonFlag = False,
) -> None:
    """List conversations with a similar summary, most similar first."""
    found = with_memory(ctx, lambda engine: engine.request(FindSimilar(ref=id, limit=limit, min_score=min_score)))
    if json:
        print_json(found)
        return
    if not found:
        print_text("No similar conversations. A conversation can be compared once its first turns are summarised.")
        return
    table(
        [
            (
                match.conversation.uuid[:SHORT_ID],
                f"{match.score:.2f}",
                local_time(match.conversation.updated_at),
                shorten(match.conversation.title or "(untitled)", 60),
            )
            for match in found
        ],
        ("ID", "SCORE", "UPDATED", "TITLE"),
    )


def _hit(hit: SearchHit) -> str:
    head = f"{hit.conversation_id[:SHORT_ID]} t{hit.turn_index} · {local_time(hit.timestamp)} · {hit.title}"
    return f"{' '.join(plain_text(head).split())}\n    {highlighted(hit)}"


def highlighted(hit: SearchHit) -> str:
    """Return a hit's snippet on one line, with its matches in bold on a terminal."""
    pieces, at = [], 0
    for start, end in hit.highlights:
        pieces += [plain_text(hit.snippet[at:start]), bold(hit.snippet[start:end])]
        at = end
    return " ".join("".join([*pieces, plain_text(hit.snippet[at:])]).split())


def archive(ctx: typer.Context, id: ConversationArgument, json: JsonFlag = False) -> None:
    """Archive a conversation; `restore` undoes it."""
    conversation = with_memory(ctx, lambda engine: engine.request(requests.ArchiveConversation(conversation_id=id)))
    _done(f"Archived {_named(conversation)}.", conversation, json=json)


def delete(
    ctx: typer.Context,
    id: ConversationArgument,
    now: Annotated[bool, typer.Option("--now", help="Remove it permanently at once.")] = False,
    with_branches: Annotated[bool, typer.Option("--with-branches", help="Delete its branches too.")] = False,
    json: JsonFlag = False,
) -> None:
    """Delete a conversation; `restore` undoes it for seven days, then it is removed permanently."""

    async def work(engine: Engine) -> requests.Deleted:
        try:
            conversation = (await engine.request(OpenConversation(ref=id, turns=0))).conversation
        except NotFoundError:
            if not now:
                raise
            # A deleted conversation can only be restored.
            conversation = await engine.request(requests.RestoreConversation(conversation_id=id))
        return await engine.request(
            requests.DeleteConversation(conversation_id=conversation.uuid, immediately=now, with_branches=with_branches)
        )

    deleted = with_memory(ctx, work)
    for conversation in (deleted.conversation, *deleted.branches):
        _prompts(ctx).hide(conversation.uuid)
    if json:
        rest = msgspec.to_builtins(deleted)
        print_json({**rest.pop("conversation"), **rest})
    else:
        print_text(deletion_text(deleted, now=now))
    for sentence in deleted.left:
        typer.echo(plain_text(sentence), err=True)
    if deleted.left:
        raise typer.Exit(1)


def deletion_text(deleted: requests.Deleted, *, now: bool) -> str:
    """Return the sentences of `delete` on removed and kept parts."""
    short = deleted.conversation.uuid[:SHORT_ID]
    named = ", ".join(_named(one) for one in (deleted.conversation, *deleted.branches))
    sentences = [
        f"Removed {named} permanently."
        if now
        else f"Deleted {named}. `ragforge-chat restore {short}` restores it within {PURGE_AFTER_DAYS} days."
    ]
    if deleted.kept_by is not None:
        keeps = f"keeps {counted(deleted.kept_turns, 'turn')}" if now else "will keep the turns"
        sentences.append(f"Its branch {_named(deleted.kept_by)} {keeps} that it shares.")
        sentences.append("--with-branches deletes branches too.")
    return " ".join(sentences)


def restore(ctx: typer.Context, id: ConversationArgument, json: JsonFlag = False) -> None:
    """Undo a delete or an archive."""

    async def work(engine: Engine) -> Conversation:
        try:
            return await engine.request(requests.ArchiveConversation(conversation_id=id, archived=False))
        except NotFoundError:
            return await engine.request(requests.RestoreConversation(conversation_id=id))

    conversation = with_memory(ctx, work)
    _prompts(ctx).changed(conversation)
    _done(f"Restored {_named(conversation)}.", conversation, json=json)


def _prompts(ctx: typer.Context) -> History:
    """Return the prompts of all chats, which a deleted conversation hides."""
    from ragforge_tui.tui.prompt.history import History

    return History(Path(settings(ctx).paths.state), "")


def _named(conversation: Conversation) -> str:
    title = shorten(conversation.title, 60)
    return f"{conversation.uuid[:SHORT_ID]} ({title})" if title else conversation.uuid[:SHORT_ID]


def _done(message: str, conversation: Conversation, *, json: bool) -> None:
    if json:
        print_json(conversation)
    else:
        print_text(message)
