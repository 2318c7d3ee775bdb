"""Commands over all past conversations: insights, a question to them, a report of the work done since a date."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import datetime
from itertools import groupby
from pathlib import Path
from typing import Annotated

import typer

from ragforge_tui.cli.common import JsonFlag, ModelOption, not_empty, settings, with_engine, with_memory
from ragforge_tui.cli.output import bold, local_time, print_json, print_styled, print_text
from ragforge_tui.cli.start import FAILED, complain
from ragforge_tui.export import standup_markdown
from ragforge_tui.shared.errors import RagforgeError
from ragforge_tui.shared.events import InsightsProgress
from ragforge_tui.shared.finding_records import SUMMED, KeptFinding, finding_sums
from ragforge_tui.shared.formatting import counted
from ragforge_tui.shared.moments import last_working_day, parse_moment
from ragforge_tui.shared.own_command import resume_command
from ragforge_tui.shared.past_records import (
    InsightEntry,
    InsightPlan,
    InsightsMade,
    PastChoice,
    PastStatus,
    Quote,
    Recalled,
)
from ragforge_tui.shared.records import EXTRACTIVE, SHORT_ID, Finding, now
from ragforge_tui.shared.requests.past import (
    ListInsights,
    ListKept,
    MakeInsights,
    PlanInsights,
    RecallPast,
    Standup,
)
from ragforge_tui.shared.sanitize import plain_text
from ragforge_tui.shared.wire import Engine

MOST_LISTED = 5
"""Findings of a kind that are listed above the insights."""
MOST_ASKED = 20
"""Default of --limit: conversations that a model is asked about in one run."""


def moment_of(text: str | None, *, end: bool = False) -> datetime | None:
    """Return the time that an option names."""
    if text is None:
        return None
    try:
        return parse_moment(text, now(), end=end)
    except RagforgeError as error:
        raise typer.BadParameter(error.info.sentence()) from None


def _checked(value: str | None) -> str | None:
    moment_of(value)
    return value


SinceOption = Annotated[
    str | None, typer.Option(metavar="WHEN", help="From then on: 2026-11-20, yesterday, monday, 3d.", callback=_checked)
]
UntilOption = Annotated[
    str | None, typer.Option(metavar="WHEN", help="Up to then; a day is included.", callback=_checked)
]
FolderOption = Annotated[str | None, typer.Option(metavar="DIR", help="Only conversations of this folder.")]


def folder_of(given: str | None) -> str | None:
    return str(Path(given).expanduser().resolve()) if given else None


def insights(
    ctx: typer.Context,
    ids: Annotated[list[str] | None, typer.Argument(metavar="[ID]...", help="Only these conversations.")] = None,
    tag: Annotated[list[str] | None, typer.Option(help="Only with this tag; repeat for any of several.")] = None,
    topic: Annotated[str, typer.Option(metavar="T", help="Only conversations about this topic.")] = "",
    workspace: FolderOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
    status: Annotated[PastStatus, typer.Option(help="Which conversations.")] = "active",
    limit: Annotated[
        int, typer.Option(min=0, help="Most conversations to ask the model about in this run; 0 for all.")
    ] = MOST_ASKED,
    stored: Annotated[bool, typer.Option("--stored", help="Make nothing, print what is stored.")] = False,
    model: ModelOption = None,
    json: JsonFlag = False,
) -> None:
    """Print topic, findings and action items of past conversations; missing ones are made first."""
    choice = PastChoice(
        refs=ids or [],
        tags=tag or [],
        topic=topic,
        workspace=folder_of(workspace),
        since=moment_of(since),
        until=moment_of(until, end=True),
        status=status,
    )
    made = InsightsMade(made=0)
    kept: list[KeptFinding] = []

    async def known(engine: Engine) -> list[InsightEntry]:
        found = await engine.request(ListKept(choice=choice))
        kept.extend(found)
        return await engine.request(ListInsights(choice=choice))

    if stored:
        found = with_memory(ctx, known)
    else:
        made, found = with_engine(settings(ctx, model=model), lambda engine: _made(engine, choice, limit, known))
    if json:
        print_json(found)
    else:
        if kept:
            print_styled(_sums(kept))
        if not found:
            print_text("No insights.")
        for entry in found:
            print_styled(insight_text(entry))
    if made.problem:
        complain(f"{made.problem} {made.made} made and kept, {made.left} left: run it again.")
        raise typer.Exit(FAILED)


async def _made(
    engine: Engine, choice: PastChoice, limit: int, known: Callable[[Engine], Awaitable[list[InsightEntry]]]
) -> tuple[InsightsMade, list[InsightEntry]]:
    """Make the missing insights with progress on stderr; return the outcome and all that are stored now."""
    plan = await engine.request(PlanInsights(choice=choice, most=limit))
    made = InsightsMade(made=0)
    if plan.count:
        _announce(plan)
        request = engine.request(MakeInsights(choice=choice, most=limit))
        made = await _with_progress(engine, request, plan.count)
        if made.left and not made.problem:
            complain(f"{made.left} conversations are left: run it again, or raise --limit.")
    return made, await known(engine)


def _announce(plan: InsightPlan) -> None:
    many = counted(plan.count, "conversation")
    if plan.model:
        about = f"about {counted(plan.tokens)} tokens at most"
        complain(f"asking {plan.model} ({plan.destination}) about {many}, {about}; ctrl+c stops, what is done is kept.")
    else:
        complain(f"extracting from {many}, without a model.")


async def _with_progress(engine: Engine, request: Awaitable[InsightsMade], total: int) -> InsightsMade:
    done = 0
    printed = asyncio.Event()

    async def show() -> None:
        nonlocal done
        async for event in engine.events():
            if isinstance(event, InsightsProgress) and event.entry is not None:
                done = event.done
                complain(f"{done} of {event.total}: {event.entry.title or event.entry.conversation_id[:SHORT_ID]}")
                printed.set()

    watcher = asyncio.create_task(show())
    try:
        made = await request
        while done < made.made:  # its last events are queued, but not printed yet
            printed.clear()
            await printed.wait()
        return made
    except asyncio.CancelledError:
        complain(f"stopped; {done} of {total} are made and kept, the next run makes the rest.")
        raise
    finally:
        watcher.cancel()


def _sums(kept: Sequence[KeptFinding]) -> str:
    """Return how much of each kind is kept, and the newest of each."""
    lines = [bold(finding_sums(kept))]
    for kind, _ in SUMMED:
        of_kind = [finding for finding in kept if finding.kind == kind]
        for finding in of_kind[:MOST_LISTED]:
            place = f"{finding.conversation_id[:SHORT_ID]} t{finding.turn_index}"
            mark = "[ ]" if kind == "open" else f"- {kind}:"
            lines.append(f"    {mark} {_one_line(finding.text)} [{place}]")
        if (more := len(of_kind) - MOST_LISTED) > 0:
            lines.append(f"    … and {more} more")
    return "\n".join(lines)


def insight_text(entry: InsightEntry) -> str:
    """Return an insight as lines, without its invalid findings."""
    facts = [entry.conversation_id[:SHORT_ID], local_time(entry.updated_at), _one_line(entry.title) or "untitled"]
    if entry.made_by == EXTRACTIVE:
        facts.append("extracted")
    if entry.outdated:
        facts.append(f"up to t{entry.up_to_turn} of {entry.turns}")
    lines = [" · ".join(facts), f"    {bold(_one_line(entry.main_topic))}"]
    told = [f"- {f'{one.kind}: ' if one.kind else ''}{_cited(one)}" for one in entry.key_findings]
    told += [f"[ ] {_cited(item)}" for item in entry.action_items]
    lines += [f"    {line}" for at, line in enumerate(told) if at not in entry.gone]
    return "\n".join(lines)


def _cited(finding: Finding) -> str:
    turns = f" [{', '.join(f't{turn}' for turn in finding.turns)}]" if finding.turns else ""
    return f"{_one_line(finding.text)}{turns}"


def _one_line(text: str) -> str:
    return " ".join(plain_text(text).split())


def recall(
    ctx: typer.Context,
    question: Annotated[str, typer.Argument(metavar="QUESTION", help="What you want to know.", callback=not_empty)],
    limit: Annotated[int, typer.Option(min=1, max=100, help="Most quotes.")] = 10,
    workspace: FolderOption = None,
    everywhere: Annotated[bool, typer.Option("--all", help="Ask the conversations of all folders.")] = False,
    tag: Annotated[list[str] | None, typer.Option(help="Only with this tag; repeat for any of several.")] = None,
    since: SinceOption = None,
    until: UntilOption = None,
    answer: Annotated[bool, typer.Option("--answer", help="Also let the model answer in two sentences.")] = False,
    json: JsonFlag = False,
) -> None:
    """Answer a question from past conversations, with quotes, dates and where they are.

    By default those of this folder, or of all folders if `recall.scope` is `all`.
    """
    if everywhere and workspace:
        raise typer.BadParameter("--all and --workspace cannot be combined.")
    loaded = settings(ctx)
    everywhere = everywhere or (not workspace and loaded.settings.agent.memory.recall.scope == "all")
    folder = None if everywhere else folder_of(workspace) or loaded.workspace
    choice = PastChoice(
        tags=tag or [], workspace=folder, since=moment_of(since), until=moment_of(until, end=True), status="any"
    )
    request = RecallPast(question=question, choice=choice, limit=limit, answer=answer)
    if answer:
        found = with_engine(loaded, lambda engine: engine.request(request))
    else:
        found = with_memory(ctx, lambda engine: engine.request(request))
    if found.problem:
        complain(found.problem)
    if json:
        print_json([*_answer(found), *(_plain(quote) for quote in found.quotes)])
        return
    if found.answer:
        print_text(f"{found.answer}\n")
    if not found.quotes:
        print_text("Nothing in these conversations answers that." + ("" if everywhere else " --all asks all folders."))
        return
    print_styled("\n\n".join(_conversation(group) for group in _by_conversation(found.quotes)))


def _answer(found: Recalled) -> list[dict[str, object]]:
    """Return the model's answer in the form of the quotes it comes from; nothing if there is none."""
    if not found.answer:
        return []
    answer = Quote(
        conversation_id="",
        title=found.answered_by,
        turn_index=0,
        date=now(),
        role="assistant",
        quote=found.answer,
        score=0.0,
        kind="answer",
    )
    return [_plain(answer)]


def _plain(quote: Quote) -> dict[str, object]:
    """Return a quote as scripts read it."""
    names = ("conversation_id", "title", "turn_index", "date", "role", "quote", "score", "kind", "note")
    return {name: getattr(quote, name) for name in names}


def _by_conversation(quotes: Iterable[Quote]) -> list[list[Quote]]:
    """Group quotes by conversation, in the order of each one's best; in order of the turns inside."""
    groups: dict[str, list[Quote]] = {}
    for quote in quotes:
        groups.setdefault(quote.conversation_id, []).append(quote)
    return [sorted(group, key=lambda quote: quote.turn_index) for group in groups.values()]


def _conversation(quotes: list[Quote]) -> str:
    first = quotes[0]
    lines = [f"{bold(_one_line(first.title) or 'Untitled')} · {resume_command(first.conversation_id)}"]
    for day, of_day in groupby(quotes, key=lambda quote: quote.date.astimezone().date()):
        for quote in of_day:
            who = quote.role if quote.kind == "turn" else quote.kind
            note = f" ({_one_line(quote.note)})" if quote.note else ""
            lines.append(f"  {day} [t{quote.turn_index}] {who}: {_marked(quote)}{note}")
    return "\n".join(lines)


def _marked(quote: Quote) -> str:
    """Return the quote on one line, with the question's words in bold on a terminal."""
    pieces, at = [], 0
    for start, end in quote.highlights:
        pieces += [plain_text(quote.quote[at:start]), bold(quote.quote[start:end])]
        at = end
    return " ".join("".join([*pieces, plain_text(quote.quote[at:])]).split())


def standup(
    ctx: typer.Context,
    since: SinceOption = None,
    until: UntilOption = None,
    workspace: FolderOption = None,
    json: JsonFlag = False,
) -> None:
    """Print the work done in each folder, as Markdown; by default since the start of the last working day."""
    start = moment_of(since) or last_working_day(now())
    request = Standup(since=start, until=moment_of(until, end=True), workspace=folder_of(workspace))
    found = with_memory(ctx, lambda engine: engine.request(request))
    if json:
        print_json(found)
    else:
        print_text(standup_markdown(found, start))
