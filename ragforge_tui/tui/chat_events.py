"""What each event of the engine does to the state of the chat and to its screen, in one place.

The transcript's document and the panes get the events of turns that they draw from here.
"""

from __future__ import annotations

from collections.abc import Callable

from ragforge_tui.shared import events
from ragforge_tui.shared.errors import RagforgeError
from ragforge_tui.shared.records import Turn
from ragforge_tui.shared.requests.memory import FetchDue
from ragforge_tui.shared.requests.turns import ConversationView, FetchTurns, OpenConversation
from ragforge_tui.tui.command_registry import effective_keys
from ragforge_tui.tui.commands.extension_commands import own_commands
from ragforge_tui.tui.engine_questions import EngineQuestions
from ragforge_tui.tui.host import EventScreen, Host
from ragforge_tui.tui.keys import spoken_key
from ragforge_tui.tui.session.remote_turns import RemoteTurns
from ragforge_tui.tui.session.state import Retry, sent_tokens
from ragforge_tui.tui.sidebar.sidebar import Sidebar
from ragforge_tui.tui.terminal import Attention
from ragforge_tui.tui.welcome.welcome import Welcome

RETRY = "/retry asks for it again."


class ChatEvents:
    """Applies the events of the engine to one chat.

    Args:
        clock: Gives monotonic seconds, for the duration of turns.
    """

    def __init__(
        self,
        host: Host,
        *,
        sidebar: Sidebar,
        welcome: Welcome,
        attention: Attention,
        questions: EngineQuestions,
        clock: Callable[[], float],
    ) -> None:
        self._host = host
        self._session = host.session
        self._transcript = host.transcript
        self._sidebar = sidebar
        self._welcome = welcome
        self._attention = attention
        self._questions = questions
        self._clock = clock
        self._repeat_problems = host.options.resume is not None or host.options.continue_last
        """Whether the first conversation that is opened clears away the notices about the settings."""
        self._remote = RemoteTurns(host.session, host.transcript, handle=self.handle, show_in_panes=sidebar.event)

    def handle(self, event: events.Event) -> None:
        """Apply an event to the state, then show it."""
        session, state, shows = self._session, self._session.state, True
        here = getattr(event, "conversation_id", "") == state.conversation_id
        if here and isinstance(event, events.TurnEvent):
            state.retry = None
        match event:
            case events.TextDelta() | events.ReasoningDelta():
                self._text_arrived(event, here=here)
                return
            case events.TurnStarted():
                session.message_started(event)
                state.turn_starts(event.conversation_id, event.turn_index, self._clock())
            case events.Steered():
                session.message_started(event)
            case events.TurnCompleted() | events.TurnCancelled() | events.TurnFailed():
                self._turn_ended(event, here=here)
                return
            case events.MessageStarted():
                state.answering = state.answering and not here
            case events.MessageFinished():
                state.spent.add(event.message.usage)
                if here:
                    state.context_used = sent_tokens([event.message]) or state.context_used
            case events.ToolCallStarted():
                if here:
                    state.tools.add(event.call.uuid)
            case events.ToolCallFinished():
                state.tools.discard(event.call.uuid)
            case events.ModelRetry():
                if here:
                    word = "rate limited" if event.limited else "retrying"
                    state.retry = Retry(word, self._clock() + event.wait_seconds)
            case events.TurnReset():
                state.stale, shows = state.stale or here, False
            case events.TurnElsewhere():
                if here:
                    self._turn_elsewhere(event)
            case events.TurnsMoved():
                self._turns_moved(event)
            case events.ApprovalRequested():
                self._questions.approval(event)
            case events.QuestionAsked():
                self._questions.asked(event)
            case events.ApprovalResolved():
                self._host.questions.withdraw(event.approval_id)
            case events.CostLimitReached():
                self._questions.cost(event)
                shows = False
            case events.TrustRequested():
                self._questions.trust(event)
            case events.OwnPromptsFound(prompts=prompts):
                state.own_prompts = prompts
                self._host.registry.use(own_commands(prompts))
            case events.SummaryStarted():
                if here:
                    state.summarising.add((event.level, event.start_turn_index))
            case events.SummaryCreated(summary=summary):
                if here:
                    state.summarising.discard((summary.level, summary.start_turn_index))
                self._refresh_due(event.conversation_id)
            case events.TurnsCondensed():
                if here:
                    session.notice(self._condensed(event))
            case events.SummaryFailed():
                if here:
                    state.summarising.discard((event.level, event.start_turn_index))
                self._refresh_due(event.conversation_id)
            case events.MemoryProgress():
                if here:
                    state.memory = event if event.left else None
                self._sidebar.due_changed()
            case events.ConversationChanged():
                session.conversation_changed(event.conversation)
                self._host.prompt.earlier.changed(event.conversation)
            case events.CodeIndexChanged():
                state.code = event
            case events.ProcessesChanged(running=running):
                state.processes = running
            case events.GraphChanged():
                session.graph_changed(event)
                self._welcome.refresh_recent()
            case events.ModelChanged():
                session.model_changed(event)
            case events.Notice():
                if here or not event.conversation_id:
                    session.notice(event.text, event.level)
            case _:
                pass
        self._show(event, in_transcript=shows and here)
        session.changed()

    def _condensed(self, event: events.TurnsCondensed) -> str:
        """Return what the request holds of older turns now, and how to bring something back."""
        keys = effective_keys(self._host.options.tui.keymap, self._host.registry)
        opens = spoken_key(keys["tree"]) if "tree" in keys else "/tree"
        turns = "Turn 1 is" if event.last_turn == 1 else f"Turns 1–{event.last_turn} are"
        count = f"{event.summaries} summar{'y' if event.summaries == 1 else 'ies'}"
        rest = f"turns from {event.last_turn + 1} on are sent as they are"
        return f"{turns} now {count} in the request; {rest}. {opens} opens the summaries, /context what is sent."

    def _show(self, event: events.Event, *, in_transcript: bool) -> None:
        """Show an event in the transcript, in the panes, and in the screens over the chat."""
        if in_transcript and isinstance(event, events.TurnEvent):
            self._transcript.apply(event)
        self._sidebar.event(event)
        for screen in self._host.app.screen_stack:
            if isinstance(screen, EventScreen):
                screen.engine_event(event)

    def _text_arrived(self, event: events.TextDelta | events.ReasoningDelta, *, here: bool) -> None:
        """Show a piece of text; hundreds arrive in a second, and only the first one changes the status line."""
        if not here:
            return
        self._transcript.apply(event)
        answering = isinstance(event, events.TextDelta)
        if self._session.state.answering != answering:
            self._session.state.answering = answering
            self._session.changed()

    # -- turns

    def _turn_ended(self, event: events.TurnEnd, *, here: bool) -> None:
        session, state = self._session, self._session.state
        stopped = isinstance(event, events.TurnCancelled)
        started = state.turn_started if here and not stopped else None
        state.turn_ends(event.conversation_id)
        if here:
            state.followed = None
            if state.stale:
                state.stale = False
                session.spawn(self._read_again(event.conversation_id, event.turn_index), group="reread")
        self._refresh_due(event.conversation_id)
        self._show(event, in_transcript=here)
        session.read_branch()
        if isinstance(event, events.TurnCompleted):
            self._questions.plan(event)
        if started is not None:
            self._attention.answer_finished(self._clock() - started)
        elif stopped and here and not session.message_queue.items:
            session.notice("Enter sends your next message; /retry asks again.", passing=True)
        session.changed()

    async def _read_again(self, conversation_id: str, index: int) -> None:
        """Show a turn from its records, since events of it were missed."""
        page = await self._session.ask(FetchTurns(conversation_id=conversation_id, start=index, end=index + 1))
        if page.turns and conversation_id == self._session.state.conversation_id:
            self._transcript.show_turn(page.turns[0])

    def _turn_elsewhere(self, event: events.TurnElsewhere) -> None:
        self._remote.show(event)
        if event.interrupted and not event.active and event.conversation_id not in self._session.state.running:
            self._session.notice(f"The answer was interrupted. {RETRY}", passing=True)

    def _turns_moved(self, event: events.TurnsMoved) -> None:
        """Follow turns that got other numbers, since another process added some while the graph was away."""
        state, prompt, uuid = self._session.state, self._host.prompt, event.conversation_id
        if (index := state.running.get(uuid)) is not None:
            state.running[uuid] = event.moved.get(index, index)
        if uuid == state.conversation_id:
            prompt.editing = event.moved.get(prompt.editing, prompt.editing)
            self._session.spawn(self._show_again(uuid), group="moved", exclusive=True)

    async def _show_again(self, conversation_id: str) -> None:
        """Show the open conversation from its records, since its turns have other numbers than those on the screen."""
        state, prompt = self._session.state, self._host.prompt
        view = await self._session.ask(OpenConversation(ref=conversation_id))
        if conversation_id == state.conversation_id:
            editing, started = prompt.editing, state.turn_started
            self._session.show(view)
            prompt.editing, state.turn_started = editing, started
            self._session.notice("Another process added turns while the graph was away: some turns have new numbers.")

    # -- the open conversation

    def conversation_opened(self, view: ConversationView) -> None:
        """Show a conversation from its newest turns."""
        self._host.prompt.editing = 0
        self._transcript.clear()
        self._transcript.load(view.page.turns, first=view.page.first, last=view.page.last)
        called = any(message.tool_calls for turn in view.page.turns for message in turn.messages)
        self._sidebar.conversation_changed(filled=called or bool(view.conversation.summary))
        if self._repeat_problems:
            self._repeat_problems = False
            show_problems(self._host)
        self._continue(view)

    def _continue(self, view: ConversationView) -> None:
        """Follow the turn that is being answered in a conversation, or offer to ask again."""
        state = self._session.state
        if view.interrupted_turn is not None:
            self._session.notice(f"The last answer was interrupted. {RETRY}", passing=True)
        self._remote.forget()
        if view.active_turn is None:
            return
        if state.conversation_id in state.running:
            state.stale = True  # Events between the stored checkpoint and now were missed.
        else:
            known = next((turn for turn in view.page.turns if turn.turn_index == view.active_turn), None)
            self._remote.follow(known or Turn(turn_index=view.active_turn))
            self._transcript.resume_turn(view.active_turn)

    def conversation_created(self) -> None:
        self._sidebar.conversation_changed()

    def conversation_closed(self) -> None:
        """Show an empty screen."""
        self._host.prompt.editing = 0
        self._transcript.clear()
        self._sidebar.conversation_changed()
        self._remote.forget()
        self._welcome.choose_tips()
        self._welcome.refresh_recent()

    # -- the engine

    def engine_ready(self) -> None:
        """List the newest conversations on an empty screen."""
        self._welcome.refresh_recent()

    def engine_lost(self, ended: events.TurnEvent | None) -> None:
        """Show the end of the turn on the screen and withdraw all questions: the engine that asked is gone."""
        if ended is not None:
            self._show(ended, in_transcript=True)
        self._host.questions.clear()
        self._sidebar.due_changed()

    def _refresh_due(self, conversation_id: str) -> None:
        """Ask what the summarizer is waiting for, if that conversation is open and its graph answers."""
        graph = self._session.state.graph
        if conversation_id == self._session.state.conversation_id and graph is not None and graph.phase == "ready":
            self._session.spawn(self._fetch_due(conversation_id), group="due", exclusive=True)

    async def _fetch_due(self, conversation_id: str) -> None:
        try:
            due = await self._session.ask(FetchDue(conversation_id=conversation_id))
        except RagforgeError:
            return  # The user did not ask for it: no notice.
        if conversation_id == self._session.state.conversation_id:
            self._session.state.due = due
            self._sidebar.due_changed()
            self._session.changed()


def show_problems(host: Host) -> None:
    """Show the problems with the settings of the screen."""
    for problem in host.settings.problems():
        host.session.notice(problem, "warning")
