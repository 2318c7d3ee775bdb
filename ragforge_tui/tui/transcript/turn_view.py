"""The blocks of one turn, built step by step from events or records.

A stored turn goes through the same steps as a live one, so that a resumed session looks like the live one.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, tzinfo
from typing import TYPE_CHECKING

import msgspec

from ragforge_tui.shared import events
from ragforge_tui.shared.errors import told
from ragforge_tui.shared.records import Message, ToolCall, Turn, recalled_places
from ragforge_tui.shared.tool_calls import commit_line, commits_of, is_reasoning
from ragforge_tui.tui.drawing.palette import DEFAULT_GLYPH
from ragforge_tui.tui.transcript.blocks import Block, HeadBlock, Level, NoteBlock, RecallBlock, TextBlock, UserBlock
from ragforge_tui.tui.transcript.failure_block import FailureBlock

if TYPE_CHECKING:
    from ragforge_tui.tui.transcript.tool_block import ToolBlock


class DisplayOptions(msgspec.Struct):
    """Options for names, times and reasoning.

    Attributes:
        user_name: Heading of the user's messages.
        unfold_reasoning: Show reasoning unfolded.
        now: The clock; a message of another day shows its date.
        zone: The time zone of the times; None for the machine's.
    """

    user_name: str = "you"
    unfold_reasoning: bool = False
    now: Callable[[], datetime] = datetime.now
    zone: tzinfo | None = None

    def when(self, moment: datetime) -> str:
        """Return the time of a message, with the date unless it is today."""
        local = moment.astimezone(self.zone)
        today = self.now().astimezone(self.zone).date()
        if local.date() == today:
            return f"{local:%H:%M}"
        year = f" {local.year}" if local.year != today.year else ""
        return f"{local.day} {local:%b}{year} {local:%H:%M}"


class TurnView:
    """The blocks of one turn, in order."""

    def __init__(self, turn_index: int, shown: DisplayOptions) -> None:
        self.turn_index = turn_index
        self.shown = shown
        self.blocks: list[Block] = []
        self._forget()

    def _forget(self) -> None:
        self.heads: dict[str, HeadBlock] = {}
        self.texts: dict[str, TextBlock] = {}
        self.tools: dict[str, ToolBlock] = {}
        self.replies: set[str] = set()
        self.own: set[str] = set()
        self.approvals: dict[str, ToolBlock] = {}
        self.retry: NoteBlock | None = None
        self.ended = False
        self.named = False

    def user(self, message: Message) -> None:
        """Show the user's message; a second time the turn is retried, and the answer so far is dropped."""
        self.reset_answer()
        name, when = self.shown.user_name, self.shown.when(message.timestamp)
        block = UserBlock(self.turn_index, message.uuid, message.content, name=name, when=when)
        if self.blocks:
            self.blocks[0] = block
        else:
            self.blocks.append(block)

    def steered(self, message: Message) -> None:
        """Show a message that joined the running turn; the reply after it names its persona again."""
        if any(block.record_id == message.uuid for block in self.blocks):
            return
        when = f"{self.shown.when(message.timestamp)} · while it worked"
        self.blocks.append(
            UserBlock(self.turn_index, message.uuid, message.content, name=self.shown.user_name, when=when)
        )
        self.named = False

    def reset_answer(self) -> None:
        """Drop everything but the user's messages."""
        self.blocks = [block for block in self.blocks if isinstance(block, UserBlock)]
        self._forget()

    def reply(self, message_id: str, persona: str, glyph: str = "", color: str = "", recalled: str = "") -> None:
        """Start a reply; the first of a turn gets the persona's name as a heading, below the recalled conversations."""
        if message_id in self.replies:
            return
        if self.ended:
            self.reset_answer()
        self.replies.add(message_id)
        if places := recalled_places(recalled):
            self.blocks.append(RecallBlock(self.turn_index, message_id, places))
        if not self.named:
            self.named = True
            self._head(message_id, persona or "Assistant", glyph, color)

    def reply_of(self, message: Message) -> None:
        self.reply(message.uuid, message.persona, message.persona_glyph, message.persona_color, message.recalled)

    def _head(self, message_id: str, name: str, glyph: str = "", color: str = "") -> HeadBlock:
        glyph = glyph or DEFAULT_GLYPH
        unfolded = self.shown.unfold_reasoning
        block = HeadBlock(self.turn_index, message_id, name=name, glyph=glyph, color=color, unfolded=unfolded)
        self.heads[message_id] = block
        text = self.texts.get(message_id)
        at = self.blocks.index(text) if text is not None else len(self.blocks)
        self.blocks.insert(at, block)
        if text is not None:
            text.gap = 0
            text.touch()
        return block

    @property
    def speaker(self) -> str:
        """The persona that answers, empty before the answer."""
        return next((block.name for block in self.blocks if isinstance(block, HeadBlock) and block.name), "")

    def mark_switch(self, before: str) -> bool:
        """Insert a note above the answer if its persona differs from `before`; return whether it did."""
        name = self.speaker
        if not before or not name or name == before or any(block.kind == "switch" for block in self.blocks):
            return False
        note = NoteBlock("switch", self.turn_index, f"{name} speaks from here on", "info")
        at = next(place for place, block in enumerate(self.blocks) if isinstance(block, HeadBlock))
        self.blocks.insert(at, note)
        return True

    def own_command(self, message_id: str) -> None:
        """Mark a message as the user's own command: no persona is named, and it is shown unfolded."""
        self.replies.add(message_id)
        self.own.add(message_id)

    def thinking(self, message_id: str) -> HeadBlock:
        """Return the block with the reasoning of a reply."""
        self.reply(message_id, "")
        return self.heads.get(message_id) or self._head(message_id, "")

    def text(self, message_id: str) -> TextBlock:
        """Return the block with the text of a reply."""
        self.reply(message_id, "")
        block = self.texts.get(message_id)
        if block is None:
            head = self.heads.get(message_id)
            gap = 0 if head is not None and self.blocks[-1] is head else 1
            block = self.texts[message_id] = TextBlock(self.turn_index, message_id, gap=gap)
            self.blocks.append(block)
        return block

    def growing(self, message_id: str) -> TextBlock | None:
        """Return the streaming text block of a reply if more text changes nothing else in the turn."""
        head = self.heads.get(message_id)
        if self.retry is not None or (head is not None and head.thinking):
            return None
        return self.texts.get(message_id)

    def finish(self, message: Message) -> None:
        """Replace the streamed reply by its stored record."""
        if message.role == "system":
            self.own_command(message.uuid)
        self.reply_of(message)
        if is_reasoning(message.reasoning, message.tool_calls):
            self.thinking(message.uuid).thought(message.reasoning)
        if message.content.strip() or message.uuid in self.texts:
            self.text(message.uuid).finish(message.content)
        self._show_failed_tests(message)
        if message.state == "interrupted":
            # One that was stopped has no sentence; the others ended short by themselves.
            self.state_line("incomplete" if message.error else "interrupted", message.error, "warning")
        elif message.state == "failed":
            self.state_line("failed", message.error, "error")

    def _show_failed_tests(self, message: Message) -> None:
        """Show right under the answer that the last test run of the turn failed, whatever the answer says."""
        self.blocks = [block for block in self.blocks if block.kind != "tests"]
        text = self.texts.get(message.uuid)
        if message.failed_tests and text is not None:
            note = NoteBlock("tests", self.turn_index, f"the last test run: {message.failed_tests}", "warning")
            note.gap = 0
            self.blocks.insert(self.blocks.index(text) + 1, note)

    def state_line(self, state: str, sentence: str, level: Level) -> None:
        """Show how a reply ended, if not well; once per turn."""
        self.blocks = [block for block in self.blocks if block.kind != "state"]
        if level == "error":
            self.blocks.append(FailureBlock(self.turn_index, sentence or "The answer failed."))
            return
        text = f"{state} · {sentence}" if sentence else state
        self.blocks.append(NoteBlock("state", self.turn_index, text, level))

    def tool(self, call: ToolCall) -> ToolBlock:
        """Return the block of a tool call, updated with this record."""
        self.reply(call.message_id, "")
        self._drop_reasons(call)
        block = self.tools.get(call.uuid)
        if block is not None:
            block.update(call)
            self._show_commits(call, block)
            self._space_after(block)
            return block
        from ragforge_tui.tui.transcript.tool_block import ToolBlock  # not needed before the first call

        at = self._place_of(call)
        gap = self._gap_at(at)
        block = self.tools[call.uuid] = ToolBlock(self.turn_index, call, gap=gap)
        if call.message_id in self.own:
            block.own, block.folded = True, False
        self.blocks.insert(at, block)
        self._space_after(block)
        self._show_commits(call, block)
        return block

    def _gap_at(self, at: int) -> int:
        """Return the blank lines before a call: calls of one line are not set apart."""
        before = self.blocks[at - 1] if at else None
        return 0 if before is not None and before.kind == "tool" and not getattr(before, "has_body", False) else 1

    def _space_after(self, block: ToolBlock) -> None:
        """Correct the space before the call that follows another."""
        at = self.blocks.index(block) + 1
        if at < len(self.blocks) and (following := self.blocks[at]).kind == "tool":
            gap = self._gap_at(at)
            if gap != following.gap:
                following.gap = gap
                following.touch()

    def _drop_reasons(self, call: ToolCall) -> None:
        """Remove reasoning that turns out to be a copy of the calls' reasons."""
        head = self.heads.get(call.message_id)
        if head is not None and head.source:
            calls = [block.call for block in self.tools.values() if block.message_id == call.message_id]
            if not is_reasoning(head.source, [*calls, call]):
                head.thought("")
                if not head.name:
                    self.blocks.remove(self.heads.pop(call.message_id))

    def _show_commits(self, call: ToolCall, block: ToolBlock) -> None:
        """Name the commits that a call made below it, once."""
        at = self.blocks.index(block) + 1
        shown = at < len(self.blocks) and self.blocks[at].kind == "commit"
        if call.result is None or shown:
            return
        notes = [NoteBlock("commit", self.turn_index, commit_line(commit), "info") for commit in commits_of(call)]
        for note in notes:
            note.gap = 0
        self.blocks[at:at] = notes

    def _place_of(self, call: ToolCall) -> int:
        """Return the position of a call: calls of one reply in the order of the model, before the state line."""
        later = [
            block
            for block in self.tools.values()
            if block.message_id == call.message_id and block.call.ordinal > call.ordinal
        ]
        if later:
            return self.blocks.index(min(later, key=lambda block: block.call.ordinal))
        ended = bool(self.blocks) and self.blocks[-1].kind == "state"
        return len(self.blocks) - 1 if ended else len(self.blocks)

    def passing(self, text: str) -> None:
        """Show the state of the request, in place of its last state."""
        self.drop_retry()
        self.retry = NoteBlock("retry", self.turn_index, text, "info")
        self.blocks.append(self.retry)

    def drop_retry(self) -> None:
        """Remove the note about a repeated or waiting request."""
        if self.retry is not None:
            self.blocks.remove(self.retry)
            self.retry = None

    def resume(self) -> None:
        """Show the turn as still being answered by another process."""
        self.ended = False
        for block in self.tools.values():
            block.over = False
            block.touch()

    def end(self) -> None:
        """Show nothing in the turn as running any more."""
        self.ended = True
        for head in self.heads.values():
            head.pause()
        for text in self.texts.values():
            if not text.finished:
                text.finish(text.source)
        for block in self.tools.values():
            block.over = True
            block.waiting = False
            block.touch()


def stored_turn(turn: Turn, shown: DisplayOptions) -> TurnView:
    """Return the view of a stored turn."""
    view = TurnView(turn.turn_index, shown)
    for message in turn.messages:
        if message.role == "user":
            (view.steered if view.blocks else view.user)(message)
        elif message.state != "superseded":
            _apply_stored(view, message)
    if not any(message.state == "streaming" for message in turn.messages):
        view.end()
    return view


def apply_event(view: TurnView, event: events.TurnEvent) -> Block | None:
    """Apply an event to a view; return the changed block if there is only one."""
    match event:
        case events.TurnStarted():
            view.user(event.message)
        case events.Steered():
            view.steered(event.message)
        case events.MessageStarted():
            view.reply(event.message_id, event.persona, event.persona_glyph, event.persona_color, event.recalled)
        case events.ReasoningDelta():
            head = view.thinking(event.message_id)
            head.thinking = True
            head.think(event.text)
            return head
        case events.TextDelta():
            thought = view.heads.get(event.message_id)
            if thought is not None and thought.thinking:
                thought.pause()
            text = view.text(event.message_id)
            text.append(event.text)
            return text
        case events.MessageFinished():
            # Reasoning that did not stream is a copy of the calls' reasons, which their lines show.
            streamed = event.message.uuid in view.heads and view.heads[event.message.uuid].source
            view.finish(event.message if streamed else msgspec.structs.replace(event.message, reasoning=""))
        case events.ToolCallStarted() | events.ToolCallFinished():
            return view.tool(event.call)
        case events.ToolCallOutput():
            running = view.tools.get(event.call_id)
            if running is not None:
                running.show_output(event.lines)
            return running
        case events.ApprovalRequested() | events.QuestionAsked():
            block = view.tools.get(event.call.uuid) or view.tool(event.call)
            block.waiting = True
            block.touch()
            view.approvals[event.approval_id] = block
            return block
        case events.ApprovalResolved():
            waiting = view.approvals.pop(event.approval_id, None)
            if waiting is not None:
                waiting.waiting = False
                waiting.touch()
            return waiting
        case events.ModelRetry():
            # The status line counts the seconds down.
            view.passing(f"retrying ({event.attempt} of {event.attempts}): {told(event.reason).cause}")
        case events.ModelWaiting():
            view.passing(f"{event.sentence()} · esc stops")
        case events.TurnCompleted():
            view.end()
        case events.TurnCancelled():
            _show_end(view, "interrupted", "", "warning")
        case events.TurnFailed():
            _show_end(view, "failed", event.error.sentence(), "error")
        case _:
            pass
    return None


def _show_end(view: TurnView, state: str, sentence: str, level: Level) -> None:
    if not any(block.kind == "state" for block in view.blocks):
        view.state_line(state, sentence, level)
    view.end()


def _apply_stored(view: TurnView, message: Message) -> None:
    """Apply a stored reply: its text, its calls, then how it ended."""
    if message.state == "streaming":
        view.reply_of(message)
        if message.reasoning:
            view.thinking(message.uuid).thought(message.reasoning)
        if message.content:
            view.text(message.uuid).append(message.content)
    else:
        view.finish(message)
    for call in message.tool_calls:
        view.tool(call)
