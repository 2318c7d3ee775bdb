"""Topics of all conversations that are not private: listed, merged, taken apart again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ragforge_tui.cli.common import JsonFlag, with_memory
from ragforge_tui.cli.output import say, say_json, shorten, table
from ragforge_tui.models import Topic
from ragforge_tui.protocol import ListTopics, MergeTopics, UnmergeTopic


def topics(
    ctx: typer.Context,
    query: Annotated[str, typer.Argument(metavar="[QUERY]", help="Words of their names.")] = "",
    limit: Annotated[int, typer.Option(min=1, help="How many at most.")] = 50,
    workspace: Annotated[str | None, typer.Option(metavar="DIR", help="Only those of this folder.")] = None,
    merge: Annotated[
        tuple[str, str] | None, typer.Option(metavar="A B", help="Make these two topics one, by name or id.")
    ] = None,
    undo: Annotated[str | None, typer.Option(metavar="NAME", help="Undo the merge of this topic.")] = None,
    json: JsonFlag = False,
) -> None:
    """List what conversations are about; with --merge or --undo, change which topics are the same."""
    if merge and undo:
        raise typer.BadParameter("--merge and --undo exclude each other.")
    if merge or undo:
        request = MergeTopics(a=merge[0], b=merge[1]) if merge else UnmergeTopic(ref=undo or "")
        changed = with_memory(ctx, lambda engine: engine.request(request))
        _show([changed], json=json, said=f"{'Merged into' if merge else 'Separate again:'} {changed.name}.")
        return
    folder = str(Path(workspace).expanduser().resolve()) if workspace else None
    wanted = ListTopics(query=query, limit=limit, workspace=folder)
    _show(with_memory(ctx, lambda engine: engine.request(wanted)), json=json)


def _show(found: list[Topic], *, json: bool, said: str = "") -> None:
    if json:
        say_json(found)
    elif said:
        say(said)
    elif not found:
        say("No topics.")
    else:
        table([_row(topic) for topic in found], ("CONVERSATIONS", "SUMMARIES", "TOPIC", "ALSO", "NEAR"))


def _row(topic: Topic) -> tuple[str, ...]:
    near = ", ".join(other.name for other in topic.related if other.relation == "related")
    return (
        str(topic.conversations),
        str(topic.summaries),
        shorten(topic.name, 40),
        shorten(", ".join(topic.aliases), 40),
        shorten(near, 40),
    )
