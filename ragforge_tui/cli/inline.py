"""The chat as lines: what was printed stays, the prompt is at the end, and a question is a line to answer.

For screen readers, slow links, logs, and everyone who wants the answers in the terminal's own scrollback. The engine is
that of the screen, so an answer is finished without the terminal here too.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
import termios
import threading
import uuid
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import msgspec

from ragforge_tui.cli.output import print_text, shorten
from ragforge_tui.shared import events
from ragforge_tui.shared.errors import RagforgeError
from ragforge_tui.shared.own_command import own_command, resume_command
from ragforge_tui.shared.plans import CARRY_OUT, is_plan
from ragforge_tui.shared.records import Conversation, ConversationFilter, Turn, call_end
from ragforge_tui.shared.requests.personas import SetPersona
from ragforge_tui.shared.requests.sessions import ListConversations
from ragforge_tui.shared.requests.turns import (
    CancelTurn,
    ConversationView,
    CreateConversation,
    OpenConversation,
    SendMessage,
)
from ragforge_tui.shared.requests.work import MODES, AnswerApproval, AnswerTrust, RunShell, SetMode, SetModel
from ragforge_tui.shared.sanitize import plain_text
from ragforge_tui.shared.tool_calls import (
    CALL_MARKS,
    describe_tools,
    given_reason,
    main_argument,
    result_text,
    tool_label,
)
from ragforge_tui.shared.wire import Engine, Hello

PROMPT = "> "
PAST_TURNS = 3
"""Turns of a resumed conversation that are printed."""
MOST_DETAIL_LINES = 200
FAILED_LINES = 5
"""Lines of what a failed call has said."""
_QUITS = ("/quit", "/q", "/exit", ":q")

Question = events.ApprovalRequested | events.QuestionAsked | events.CostLimitReached | events.TrustRequested


class Opening(msgspec.Struct, frozen=True, kw_only=True):
    """What a chat begins with.

    Attributes:
        resume: Conversation to open; empty to list them, None for a new one.
        continue_last: Open the newest conversation of the folder.
        text: First message.
        persona: Persona of a new conversation; empty for the default one.
    """

    resume: str | None = None
    continue_last: bool = False
    text: str = ""
    persona: str = ""


def run_inline(connect: Callable[[], Awaitable[Engine]], folder: str, opening: Opening) -> int:
    """Run the chat until the user leaves; return the exit status.

    Args:
        connect: Starts the engine.
        folder: The workspace.
    """
    with _terminal_restored():
        return asyncio.run(_chat(connect, folder, opening))


async def _chat(connect: Callable[[], Awaitable[Engine]], folder: str, opening: Opening) -> int:
    engine = await connect()
    chat = InlineChat(engine, Lines(), folder, opening)
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, chat.interrupt)
    try:
        await chat.run()
    finally:
        await engine.close()
    if chat.conversation_id:
        print_text(f"Conversation {chat.conversation_id}\nResume: {resume_command(chat.conversation_id)}")
    return 0


class Lines:
    """Lines that the user types. A thread reads them, since only then the terminal's own editing can be used."""

    def __init__(self) -> None:
        self._wanted: asyncio.Future[str | None] | None = None
        self._ended = False

    async def read(self, prompt: str) -> str | None:
        """Return the next line; None at the end of the input, or after `leave`."""
        if self._ended:
            return None
        loop = asyncio.get_running_loop()
        wanted: asyncio.Future[str | None] = loop.create_future()
        self._wanted = wanted

        def take(line: str | None) -> None:
            if not wanted.done():
                wanted.set_result(line)

        def read() -> None:
            with contextlib.suppress(ImportError):
                import readline  # noqa: F401  # input() edits with it.
            line: str | None
            try:
                line = input(prompt)
            except (EOFError, OSError, ValueError):
                line = None
            with contextlib.suppress(RuntimeError):  # The loop has ended.
                loop.call_soon_threadsafe(take, line)

        threading.Thread(target=read, name="input", daemon=True).start()
        line = await wanted
        self._wanted = None
        self._ended = line is None
        return line

    @property
    def waiting(self) -> bool:
        return self._wanted is not None

    def leave(self) -> None:
        """End the input: the thread that reads it is left behind."""
        self._ended = True
        if self._wanted is not None and not self._wanted.done():
            self._wanted.set_result(None)


class _TurnOverError(Exception):
    """The turn whose question was being answered has ended."""


class InlineChat:
    """One chat of lines.

    Attributes:
        conversation_id: The open conversation; empty before the first message.
    """

    def __init__(self, engine: Engine, lines: Lines, folder: str, opening: Opening) -> None:
        self._engine = engine
        self._lines = lines
        self._persona = opening.persona
        self._opening = opening
        self._folder = folder
        self.conversation_id = ""
        self._mode = "ask"
        self._questions: asyncio.Queue[Question | None] = asyncio.Queue()
        """What the running turn asks; None when it has ended. Each turn has its own."""
        self._over = asyncio.Event()
        """The running turn has ended."""
        self._pending: asyncio.Future[str | None] | None = None
        """A line that was wanted as an answer to a question of a turn that has ended: it is the next message."""
        self._message_id = ""
        self._turn: tuple[str, int] | None = None
        self._printer = Printer()
        self._end: events.TurnEnd | None = None
        self._listed: list[Conversation] = []
        self._armed = False
        self._graph_known = asyncio.Event()

    async def run(self) -> None:
        """Open the requested conversation, then read lines and answer them until the end of the input."""
        reading = asyncio.create_task(self._read_events())
        try:
            await self._begin()
            text: str | None = self._opening.text
            while text is not None:
                if text.strip():
                    with _failures_said():
                        await self._line(text.strip())
                if text.strip() in _QUITS:
                    break
                self._printer.flush()
                text = await self._whole_line()
        finally:
            reading.cancel()

    def interrupt(self) -> None:
        """Stop the running turn; at the prompt leave when pressed twice."""
        if self._message_id:
            cancel = self._engine.request(CancelTurn(conversation_id=self.conversation_id))
            self._cancelling = asyncio.ensure_future(cancel)
        elif self._armed or not self._lines.waiting:
            self._lines.leave()
        else:
            self._armed = True
            sys.stdout.write(f"\nctrl+c again leaves, as does /quit\n{PROMPT}")
            sys.stdout.flush()

    async def _begin(self) -> None:
        opening = self._opening
        hello = await self._engine.request(Hello())
        describe_tools(hello.tools)
        self._printer.show(hello.model, busy=False)
        if hello.graph.phase != "starting":
            self._graph_known.set()
        if opening.continue_last or opening.resume is not None:
            await self._graph_known.wait()
        if opening.continue_last:
            await self._open("")
        elif opening.resume:
            await self._open(opening.resume)
        elif opening.resume is not None:
            await self._list_sessions()
        print_text("/help lists the commands; ctrl+c stops an answer, ctrl+d leaves.")

    async def _whole_line(self) -> str | None:
        """Return what the user typed next; a line that ends with a backslash continues."""
        self._armed = False
        lines: list[str] = []
        while True:
            pending, self._pending = self._pending, None
            line = await (pending or self._lines.read("  " if lines else PROMPT))
            if line is None:
                return "\n".join(lines) or None
            self._armed = False
            if not line.endswith("\\"):
                return "\n".join([*lines, line])
            lines.append(line[:-1])

    # -- commands and messages

    async def _line(self, text: str) -> None:
        name, _, argument = text.partition(" ")
        command = _COMMANDS.get(name)
        if command is not None:
            await command(self, argument.strip())
        elif name.startswith("/") and "/" not in name[1:] and text not in _QUITS:
            print_text(f"There is no command {name} here; /help lists those there are.")
        elif text not in _QUITS:
            await self._send(text)

    async def _send(self, text: str) -> None:
        """Send a message, or run a shell command, and wait for the end of its turn."""
        if not self.conversation_id:
            view: ConversationView = await self._engine.request(CreateConversation(persona=self._persona))
            self.conversation_id = view.conversation.uuid
            if self._mode != "ask":
                await self._set_mode(self._mode)
        self._message_id = message_id = uuid.uuid4().hex
        self._end = None
        earlier, self._questions, self._over = self._questions, asyncio.Queue(), asyncio.Event()
        while not earlier.empty():
            if isinstance(left := earlier.get_nowait(), events.TrustRequested):
                self._questions.put_nowait(left)  # It was asked before any turn.
        conversation_id = self.conversation_id
        self._printer.shows_output = text.startswith("!")
        try:
            if text.startswith("!"):
                command = text[1:].strip()
                shell = RunShell(conversation_id=conversation_id, message_id=message_id, command=command)
                await self._engine.request(shell)
            else:
                message = SendMessage(conversation_id=conversation_id, message_id=message_id, text=text)
                await self._engine.request(message)
            with contextlib.suppress(_TurnOverError):
                while (question := await self._questions.get()) is not None:
                    await self._answer(question)
        finally:
            self._message_id, self._turn = "", None
        self._printer.end(self._end)
        if self._mode == "plan" and isinstance(self._end, events.TurnCompleted) and is_plan(self._end.text):
            print_text("? Carry out this plan? y: yes, asking before each change; anything else: no")
            answer = await self._lines.read("? ")
            if (answer or "").strip().lower() in ("y", "yes"):
                self._mode = "ask"
                await self._set_mode("ask")
                await self._send(CARRY_OUT)

    async def _set_mode(self, mode: str) -> None:
        chosen = next(known for known in MODES if known == mode)
        await self._engine.request(SetMode(conversation_id=self.conversation_id, mode=chosen))

    async def _open(self, ref: str) -> None:
        view: ConversationView = await self._engine.request(OpenConversation(ref=ref, turns=PAST_TURNS))
        self.conversation_id, self._mode = view.conversation.uuid, view.mode
        print_text(f"{view.conversation.title or 'Untitled'} · {view.conversation.uuid[:8]}")
        if view.page.turns and view.page.turns[0].turn_index > 1:
            print_text(f"… turns 1 to {view.page.turns[0].turn_index - 1} are not repeated here")
        for turn in view.page.turns:
            self._printer.past(turn)

    async def _help(self, _: str) -> None:
        print_text(
            "/new               begin a conversation\n"
            "/resume [ID]       open one by id, by number in the list, or the newest\n"
            "/sessions          list those of this folder\n"
            f"/mode [MODE]       {', '.join(MODES)}\n"
            "/model NAME, /persona NAME\n"
            "/quit              leave; an answer that runs is finished all the same\n"
            "!COMMAND           run a command; the agent sees what came out\n"
            "A line that ends with \\ continues. `ragforge-chat --help` lists what works without a chat."
        )

    async def _new(self, _: str) -> None:
        self.conversation_id, self._mode = "", "ask"
        print_text("Your next message begins a conversation.")

    async def _resume(self, ref: str) -> None:
        if ref.isdecimal() and 0 < int(ref) <= len(self._listed):
            ref = self._listed[int(ref) - 1].uuid
        await self._open(ref)

    async def _list_sessions(self, _: str = "") -> None:
        wanted = ConversationFilter(workspace=self._folder or None, limit=20)
        self._listed = await self._engine.request(ListConversations(filter=wanted))
        if not self._listed:
            print_text("There is no conversation in this folder yet.")
        for number, one in enumerate(self._listed, 1):
            day = f"{one.updated_at.astimezone():%Y-%m-%d %H:%M}"
            print_text(f"{number:>3}  {day}  {shorten(one.title, 60) or 'Untitled'}  {one.uuid[:8]}")
        if self._listed:
            print_text("/resume NUMBER opens one.")

    async def _change_mode(self, wanted: str) -> None:
        if wanted in MODES:
            self._mode = wanted
            if self.conversation_id:
                await self._set_mode(wanted)
        elif wanted:
            print_text(f"There is no mode {wanted}.")
        print_text(f"mode: {self._mode} ({', '.join(MODES)})")

    async def _change_model(self, name: str) -> None:
        changed: events.ModelChanged = await self._engine.request(SetModel(name=name))
        print_text(f"{changed.name} answers from the next message on.")

    async def _change_persona(self, name: str) -> None:
        chosen = await self._engine.request(SetPersona(name=name, conversation_id=self.conversation_id))
        self._persona = chosen.name
        print_text(f"{chosen.name} answers from the next message on.")

    # -- questions

    async def _reply(self) -> str:
        """Return what the user answers.

        Raises:
            _TurnOverError: The turn ended before; the line that is being typed is the next message.
        """
        reading = asyncio.ensure_future(self._lines.read("? "))
        over = asyncio.ensure_future(self._over.wait())
        await asyncio.wait({reading, over}, return_when=asyncio.FIRST_COMPLETED)
        over.cancel()
        if self._over.is_set():
            self._pending = reading
            raise _TurnOverError
        return (reading.result() or "").strip()

    async def _answer(self, question: Question) -> None:
        self._printer.flush()
        match question:
            case events.TrustRequested():
                files = ", ".join(question.files)
                what = question.question or f"Let the agent follow {question.persona or files} of this folder?"
                print_text(f"\n{_cut(question.text)}\n? {what} y: yes, anything else: no")
                allow = (await self._reply()).lower() in ("y", "yes")
                await self._engine.request(AnswerTrust(root=question.root, allow=allow))
            case events.QuestionAsked():
                print_text(f"\n? {question.question}")
                for number, choice in enumerate(question.choices, 1):
                    print_text(f"  {number}  {choice.label}{': ' + choice.description if choice.description else ''}")
                said = await self._reply()
                if said.isdecimal() and 0 < int(said) <= len(question.choices):
                    said = question.choices[int(said) - 1].label
                decision: events.ApprovalDecision = "once" if said else "no"
                await self._decide(question.approval_id, decision, said)
            case events.CostLimitReached():
                print_text(
                    f"\n? {question.spent:.2f} of {question.limit:.2f} dollars are spent. y: one more request, "
                    f"s: up to {question.raised:.2f}, anything else: stop"
                )
                await self._decide(question.approval_id, _decision(await self._reply()))
            case events.ApprovalRequested():
                print_text(f"\n{_cut(question.detail)}\n? {question.question}{_reason(question)}")
                more = f", s: {question.session_scope} in this session" if question.session_scope else ""
                more += f", a: always {' and '.join(question.always)}" if question.always else ""
                print_text(f"  y: once{more}, n: no, or type why not")
                said = await self._reply()
                decision = _decision(said)
                if (decision == "session" and not question.session_scope) or (
                    decision == "always" and not question.always
                ):
                    decision = "no"
                feedback = "" if decision != "no" or said.lower() in ("", "n", "no") else said
                await self._decide(question.approval_id, decision, feedback)

    async def _decide(self, approval_id: str, decision: events.ApprovalDecision, feedback: str = "") -> None:
        await self._engine.request(AnswerApproval(approval_id=approval_id, decision=decision, feedback=feedback))

    # -- events

    async def _read_events(self) -> None:
        """Print what the engine reports, and hand on what it asks."""
        async for event in self._engine.events():
            if isinstance(event, events.TurnStarted) and event.message.uuid == self._message_id:
                self._turn = (event.conversation_id, event.turn_index)
            elif isinstance(event, events.TurnsMoved) and self._turn and event.conversation_id == self._turn[0]:
                self._turn = (self._turn[0], event.moved.get(self._turn[1], self._turn[1]))
            elif isinstance(event, events.GraphChanged) and event.phase != "starting":
                self._graph_known.set()
            elif isinstance(event, Question):
                if isinstance(event, events.TrustRequested) or event.conversation_id == self.conversation_id:
                    self._questions.put_nowait(event)
                continue
            elif isinstance(event, events.TurnEnd):
                if (event.conversation_id, event.turn_index) == self._turn:
                    self._end = event
                    self._questions.put_nowait(None)
                    self._over.set()
                continue
            self._printer.show(event, busy=self._turn is not None)
        if self._message_id:
            print_text(f"The engine ended. What had arrived is stored; `{own_command()} -c` goes on.")
            self._questions.put_nowait(None)
            self._over.set()
            self._lines.leave()


_COMMANDS: dict[str, Callable[[InlineChat, str], Awaitable[None]]] = {
    "/help": InlineChat._help,
    "/new": InlineChat._new,
    "/resume": InlineChat._resume,
    "/sessions": InlineChat._list_sessions,
    "/mode": InlineChat._change_mode,
    "/model": InlineChat._change_model,
    "/persona": InlineChat._change_persona,
}


class Printer:
    """Prints events as lines. What comes while the user types waits for the next prompt.

    Attributes:
        shows_output: Print what commands print, since the user runs one.
    """

    def __init__(self) -> None:
        self.shows_output = False
        self._kept: list[str] = []
        self._column = 0
        """0 at the beginning of a line."""
        self._speaker = ""
        self._model = ""

    def show(self, event: events.Event, *, busy: bool) -> None:
        """Print an event, or keep its line while no turn runs."""
        match event:
            case events.MessageStarted():
                name = event.persona or "Assistant"
                if name != self._speaker:
                    self._line(f"\n{name}:")
                self._speaker = name
            case events.TextDelta(text=text):
                self._write(text)
            case events.ToolCallFinished(call=call):
                end = call_end(call)
                outcome = end if end == "refused" else f"{call.duration_ms or 0} ms"
                words = (CALL_MARKS[end], tool_label(call.tool_name), main_argument(call), given_reason(call), outcome)
                self._line("  " + " · ".join(filter(None, (" ".join(words[:3]), words[3], words[4]))))
                if self.shows_output or end == "failed":
                    self._line(_cut(result_text(call), MOST_DETAIL_LINES if self.shows_output else FAILED_LINES))
            case events.ModelRetry():
                self._line(f"{event.reason} Retrying in {event.wait_seconds:.0f} s.")
            case events.ModelWaiting():
                self._line(f"{event.sentence()}; ctrl+c stops.")
            case events.Notice(text=text):
                self._say(text, busy=busy)
            case events.ModelChanged(phase="ready") if event.name != self._model:
                self._model = event.name
                self._say(f"{event.name} answers; messages go to {event.destination}.", busy=busy)
            case events.GraphChanged(error=error) if error is not None:
                self._say(error.sentence(), busy=busy)
            case events.SummaryCreated(summary=summary):
                turns = f"{summary.start_turn_index} to {summary.end_turn_index}"
                self._say(f"turns {turns} are summarised: {summary.title}", busy=busy)

    def end(self, end: events.TurnEnd | None) -> None:
        """Print how a turn ended."""
        self._break()
        self._speaker = ""
        if isinstance(end, events.TurnFailed):
            print_text(f"failed · {end.error.sentence()}")
        elif isinstance(end, events.TurnCancelled):
            print_text("stopped; what had arrived is kept")
        print_text()
        sys.stdout.flush()

    def past(self, turn: Turn) -> None:
        """Print a turn of the past."""
        for message in turn.messages:
            if message.state == "superseded" or not message.content:
                continue
            if message.role == "user":
                print_text(f"\n{PROMPT}{message.content}")
            else:
                print_text(f"\n{message.persona or 'Assistant'}:\n{message.content}")
        print_text()

    def flush(self) -> None:
        """Print what has been kept."""
        self._break()
        kept, self._kept = self._kept, []
        for line in kept:
            print_text(line)
        sys.stdout.flush()

    def _say(self, text: str, *, busy: bool) -> None:
        if busy:
            self._line(text)
        elif text not in self._kept:
            self._kept.append(text)

    def _line(self, text: str) -> None:
        self._break()
        print_text(text)
        sys.stdout.flush()

    def _write(self, text: str) -> None:
        text = plain_text(text)
        if text:
            encoding = sys.stdout.encoding or "utf-8"
            sys.stdout.write(text.encode(encoding, "replace").decode(encoding))
            sys.stdout.flush()
            self._column = len(text) - text.rfind("\n") - 1

    def _break(self) -> None:
        if self._column:
            print_text()
            self._column = 0


def _decision(said: str | None) -> events.ApprovalDecision:
    known: dict[str, events.ApprovalDecision] = {"y": "once", "yes": "once", "s": "session", "a": "always"}
    return known.get((said or "").strip().lower(), "no")


def _reason(question: events.ApprovalRequested) -> str:
    reason = given_reason(question.call)
    return f" ({reason})" if reason else ""


def _cut(text: str, most: int = MOST_DETAIL_LINES) -> str:
    lines = text.splitlines()
    left = len(lines) - most
    return "\n".join([*lines[:most], *([f"… {left} more lines"] if left > 0 else [])])


@contextlib.contextmanager
def _failures_said() -> Iterator[None]:
    """Say a failure in a line; the chat goes on."""
    try:
        yield
    except RagforgeError as error:
        print_text(str(error))


@contextlib.contextmanager
def _terminal_restored() -> Iterator[None]:
    """Leave the terminal as it was, also where a line was being edited."""
    before: list[Any] | None = None
    with contextlib.suppress(termios.error, OSError, ValueError):
        before = termios.tcgetattr(sys.stdin.fileno())
    try:
        yield
    finally:
        if before is not None:
            with contextlib.suppress(termios.error):
                termios.tcsetattr(sys.stdin.fileno(), termios.TCSADRAIN, before)
