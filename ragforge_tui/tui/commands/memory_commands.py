"""Commands about the memory: sent context, summary, topics, similar and past conversations.

Screens are imported when first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragforge_tui.shared.formatting import counted, short_count
from ragforge_tui.tui.command_registry import Commands
from ragforge_tui.tui.commands.chat_commands import conversation_with_messages, turn_number
from ragforge_tui.tui.host import Host

if TYPE_CHECKING:
    from ragforge_tui.shared.past_records import Quote
    from ragforge_tui.shared.requests.memory import RecalledUse, TopicPlace
    from ragforge_tui.tui.dialogs.detail import Section
    from ragforge_tui.tui.widgets.choice_list import Choice

COMMANDS = Commands("Memory, tools and files")


@COMMANDS.add("context", "Show what the model was sent in a turn, or is sent next", arguments="[TURN|next [TEXT]]")
async def show_context(host: Host, argument: str) -> None:
    """Show the requests of a turn; without a number, of the last one.

    ``next`` shows the next request, for a text or for the draft in the prompt.
    """
    from ragforge_tui.tui.memory.context_screen import ContextScreen, window_note

    word, _, text = argument.partition(" ")
    preview = word == "next"
    wanted = 0 if preview else turn_number(argument, "context 12 shows turn 12")
    uuid = conversation_with_messages(host)
    conversation = host.session.state.conversation
    newest = conversation.next_turn - 1 if conversation is not None else 0

    def picked(source: tuple[str, int, int]) -> None:
        conversation_id, first, last = source
        host.navigator.go_to_turns(first, last, conversation_id=conversation_id)

    window = window_note(host.session.state.model)
    screen = ContextScreen(
        host.session.ask,
        uuid,
        turn=newest + 1 if preview else wanted,
        last_turn=newest,
        draft=text.strip() or host.prompt.text.strip(),
        window=window,
    )
    host.open_screen(screen, picked)


@COMMANDS.add("memory", "Show what is remembered: pin, edit, forget, confirm", arguments="[WORDS]")
async def show_remembered(host: Host, query: str) -> None:
    """Show wishes, decisions, open points and facts of this folder, and go to the turn of the picked one."""
    from ragforge_tui.tui.memory.remembered_screen import RememberedScreen

    screen = RememberedScreen(
        host.session.ask,
        workspace=host.options.workspace or None,
        conversation_id=host.session.state.conversation_id,
        now=host.now,
        query=query,
    )
    host.open_screen(screen, lambda place: _go_to(host, *place))


@COMMANDS.add("why", "Show which recalled items an answer used", arguments="[TURN]")
async def show_why(host: Host, turn: str) -> None:
    """Show what the last answer used of what memory recalled for it, and what was sent for nothing."""
    from ragforge_tui.shared.requests.memory import FetchWhy
    from ragforge_tui.tui.widgets.list_screen import Picker

    wanted = turn_number(turn, "why 12 shows turn 12")
    uuid = conversation_with_messages(host)
    items: list[RecalledUse] = []

    async def load() -> list[Choice]:
        found = await host.session.ask(FetchWhy(conversation_id=uuid, turn_index=wanted))
        groups = (
            (f"Used by the answer of t{found.turn_index}", [item for item in found.items if item.used]),
            ("Your wishes, sent with every session", [item for item in found.items if item.always and not item.used]),
            ("Sent for nothing", [item for item in found.items if not (item.always or item.used)]),
        )
        headings = [f"{heading} ({len(of_group)})" for heading, of_group in groups for _ in of_group]
        items.extend(item for _, of_group in groups for item in of_group)
        return [
            _use_row(number, item, heading) for number, (item, heading) in enumerate(zip(items, headings, strict=True))
        ]

    def picked(key: str | None) -> None:
        if key is not None and (item := items[int(key)]).turn_index:
            host.navigator.go_to_turns(item.turn_index, item.last_turn, conversation_id=item.conversation_id)

    title = "Why this answer: recalled items, judged by cited turns and rare words in common"
    empty = "nothing was recalled for this answer"
    host.open_screen(Picker(title, load, empty=empty, verb="go to its turn", detail_right=False), picked)


def _use_row(number: int, item: RecalledUse, heading: str) -> Choice:
    """Return the row of a recalled item: where it is from, its beginning, and why it counts as used."""
    from ragforge_tui.tui.widgets.choice_list import Choice

    place = f"t{item.turn_index}" if item.turn_index else item.kind
    if item.last_turn > item.turn_index:
        place += f"-t{item.last_turn}"
    if item.conversation_id:
        place = f"{item.title or item.conversation_id[:8]} · {place}"
    return Choice(
        str(number),
        item.text,
        heading=heading,
        lead="● " if item.used else "○ ",
        detail=f"{place} · {item.reason or f'{short_count(item.tokens)} tokens'}",
    )


@COMMANDS.add("summary", "Write this conversation's summary now")
async def summarize(host: Host, _: str) -> None:
    """Write the summary of the conversation now and show it."""
    from ragforge_tui.shared.requests.memory import SummarizeConversation
    from ragforge_tui.tui.dialogs.detail import Section
    from ragforge_tui.tui.dialogs.text_viewer import DetailScreen

    uuid = conversation_with_messages(host)
    title = "Summary of this conversation"

    async def load() -> tuple[str, list[Section]]:
        found = await host.session.ask(SummarizeConversation(conversation_id=uuid))
        text = found.summary or "There is nothing to summarise yet."
        return title, [Section(title=found.title or "Untitled", text=text, kind="prose")]

    host.open_screen(DetailScreen(title, load, actions={}))


@COMMANDS.add(
    "topics",
    "Show the topics of this folder's conversations; merge or split them",
    arguments="[WORDS]",
    completes="topics",
)
async def show_topics(host: Host, query: str) -> None:
    """Show the topics of all conversations of this folder, or those with these words."""
    from ragforge_tui.tui.memory.topics_screen import TopicsScreen

    def picked(place: TopicPlace) -> None:
        host.navigator.go_to_turns(place.first, place.last, conversation_id=place.conversation_id)

    screen = TopicsScreen(
        host.session.ask,
        conversation_id=host.session.state.conversation_id,
        workspace=host.options.workspace or None,
        query=query,
    )
    host.open_screen(screen, picked)


@COMMANDS.add("similar", "Show similar conversations")
async def show_similar(host: Host, _: str) -> None:
    """Show similar conversations and open the picked one."""
    from ragforge_tui.shared.requests.memory import FindSimilar
    from ragforge_tui.tui.widgets.choice_list import Choice
    from ragforge_tui.tui.widgets.list_screen import Picker

    uuid = conversation_with_messages(host)

    async def load() -> list[Choice]:
        return [
            Choice(
                one.conversation.uuid,
                one.conversation.title or f"untitled {one.conversation.uuid[:8]}",
                f"{one.score:.2f} · {one.conversation.updated_at:%Y-%m-%d}",
            )
            for one in await host.session.ask(FindSimilar(ref=uuid))
        ]

    empty = "no similar conversation, or this one has no summary yet"
    host.open_screen(Picker("Similar conversations", load, empty=empty, verb="open"), host.navigator.go_to_conversation)


@COMMANDS.add(
    "insights",
    "Show topic, findings and to-dos of past conversations; make the missing ones",
    arguments="[WORDS]",
)
async def show_insights(host: Host, text: str) -> None:
    """Show the insights of this folder's conversations and open the picked one, at the turn a finding cites.

    ``all``, ``#tag``, ``topic:NAME``, ``since:WHEN`` and ``until:WHEN`` choose others; further words filter.
    """
    from ragforge_tui.shared.past_records import PastChoice
    from ragforge_tui.shared.requests.past import CancelInsights
    from ragforge_tui.tui.past.insight_list import parse_choice
    from ragforge_tui.tui.past.insights_screen import InsightsScreen

    session = host.session
    folder = PastChoice(workspace=host.options.workspace or None, current=session.state.conversation_id)
    choice, words = parse_choice(text, folder, host.now())

    def cancel() -> None:
        session.spawn(session.ask(CancelInsights()), group="insights")

    def picked(place: tuple[str, int]) -> None:
        _go_to(host, *place)

    host.open_screen(InsightsScreen(session.ask, choice, now=host.now, cancel=cancel, query=words), picked)


@COMMANDS.add("recall", "Ask all past conversations a question", arguments="[QUESTION]")
async def recall(host: Host, question: str) -> None:
    """Show quotes that answer a question and open the picked one at its turn."""
    from ragforge_tui.tui.past.recall_screen import RecallScreen
    from ragforge_tui.tui.sessions.session_service import SessionService

    def picked(quote: Quote) -> None:
        _go_to(host, quote.conversation_id, quote.turn_index)

    host.open_screen(RecallScreen(host.session.ask, SessionService(host), question), picked)


def _go_to(host: Host, conversation_id: str, turn: int) -> None:
    if turn:
        host.navigator.go_to_turns(turn, conversation_id=conversation_id)
    elif conversation_id != host.session.state.conversation_id:
        host.navigator.go_to_conversation(conversation_id)


@COMMANDS.add("standup", "Show the work done since a date, to paste elsewhere", arguments="[SINCE]")
async def show_standup(host: Host, since: str) -> None:
    """Show the work done in all folders, as Markdown to copy; by default since the last working day."""
    from ragforge_tui.export import standup_markdown
    from ragforge_tui.shared.moments import last_working_day, parse_moment
    from ragforge_tui.shared.requests.past import Standup
    from ragforge_tui.tui.dialogs.detail import Section
    from ragforge_tui.tui.dialogs.text_viewer import DetailScreen

    start = parse_moment(since, host.now()) if since else last_working_day(host.now())

    async def load() -> tuple[str, list[Section]]:
        found = await host.session.ask(Standup(since=start, current=host.session.state.conversation_id))
        count = counted(len(found), "conversation")
        return "Standup", [Section(title=count, text=standup_markdown(found, start), kind="markdown")]

    host.open_screen(DetailScreen("Standup", load, actions={}))
