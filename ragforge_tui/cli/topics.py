"""Command `topics`: list the topics of all conversations that are not private, merge and unmerge them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ragforge_tui.cli.common import JsonFlag, with_memory
from ragforge_tui.cli.output import print_json, print_text, shorten, table
from ragforge_tui.shared.records import Topic
from ragforge_tui.shared.requests.memory import ListTopics, MergeTopics, UnmergeTopic


def topics(
    ctx: typer.Context,
    query: Annotated[str, typer.Argument(metavar="[QUERY]", help="Words of topics, or what they are about.")] = "",
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of results.")] = 50,
    workspace: Annotated[str | None, typer.Option(metavar="DIR", help="Only topics of this folder.")] = None,
    merge: Annotated[
        tuple[str, str] | None, typer.Option(metavar="A B", help="Merge these two topics, by name or id.")
    ] = None,
    undo: Annotated[str | None, typer.Option(metavar="NAME", help="Undo the merge of this topic.")] = None,
    json: JsonFlag = False,
) -> None:
    """List topics of conversations; --merge and --undo change which topics are the same."""
    if merge and undo:
        raise typer.BadParameter("--merge and --undo cannot be combined.")
    if merge or undo:
        request = MergeTopics(a=merge[0], b=merge[1]) if merge else UnmergeTopic(ref=undo or "")
        changed = with_memory(ctx, lambda engine: engine.request(request))
        _show([changed], json=json, message=f"{'Merged into' if merge else 'Unmerged'} {changed.name}.")
        return
    folder = str(Path(workspace).expanduser().resolve()) if workspace else None
    listing = ListTopics(query=query, limit=limit, workspace=folder)
    _show(with_memory(ctx, lambda engine: engine.request(listing)), json=json)


def _show(found: list[Topic], *, json: bool, message: str = "") -> None:
    if json:
        print_json(found)
    elif message:
        print_text(message)
    elif not found:
        print_text("No topics.")
    else:
        table([_row(topic) for topic in found], ("CONVERSATIONS", "SUMMARIES", "TOPIC", "ABOUT", "ALSO", "NEAR"))


def _row(topic: Topic) -> tuple[str, ...]:
    near = ", ".join(other.name for other in topic.related if other.relation == "related")
    return (
        str(topic.conversations),
        str(topic.summaries),
        shorten(topic.name, 40),
        shorten(topic.description, 60),
        shorten(", ".join(topic.aliases), 40),
        shorten(near, 40),
    )
