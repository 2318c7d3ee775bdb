"""What one open conversation remembers, kept up to date behind the prompt.

After a turn has ended its keys, vectors, summaries, topics and title are made here, in the background: nothing of it
delays the next message, and what a crash or a lost graph interrupted is caught up with at the next turn or start. Keys,
vectors and summaries are made independently of each other, since vectors of an import take minutes and a summary waits
for the model: turns are found by their words meanwhile. Before a turn it builds what the request holds.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from ragforge_tui import models
from ragforge_tui.conversation.background_work import BackgroundWork
from ragforge_tui.errors import GraphError, RagforgeError
from ragforge_tui.events import ConversationChanged, Event, Notice, SummaryCreated
from ragforge_tui.memory.context import (
    BuiltContext,
    ContextBuilder,
    ContextInputs,
    SystemPart,
    without_memory,
)
from ragforge_tui.memory.files import RecentFiles
from ragforge_tui.memory.recall import Recall, Recalled
from ragforge_tui.memory.summaries import Summarizer
from ragforge_tui.memory.titles import make_title
from ragforge_tui.models import Message, Summary, Turn

if TYPE_CHECKING:
    from ragforge_tui.conversation.agent import ConversationAgent
    from ragforge_tui.graph import Store
    from ragforge_tui.llm import ChatModel

log = logging.getLogger(__name__)

OFFER_SCORE = 0.45
"""Cosine from which an earlier conversation is offered. With the local model, first messages on the subject of a
summary had 0.31 to 0.64, others at most 0.21."""
TITLE_CHARS = 60
LOAD_SECONDS = 0.1
"""The most a request waits until what is known of the conversation is loaded; then it uses what is loaded so far."""
RECALL_SECONDS = 0.2
"""The most a request waits for its vector and for other conversations. Both waits together stay below what is felt."""
UPGRADES = 3
"""Extracted summaries a model writes again between two turns: enough to catch up, few enough not to be noticed."""
MANY_VECTORS = 200
"""From so many turns without vectors on, making them takes long enough to be reported."""


class ConversationMemory:
    """The memory of one open conversation. Switched off, it still makes turns searchable, and nothing else.

    Args:
        record: The conversation, shared with whoever talks in it.
        turns: Its newest turns, as read when it was opened.
    """

    def __init__(self, agent: ConversationAgent, record: models.Conversation, turns: list[Turn]) -> None:
        self._agent = agent
        self._record = record
        self._settings = agent.settings.agent.memory
        self._opening = list(turns)
        self.summaries: list[Summary] = []
        self.files = RecentFiles(agent.workspace, agent.settings.tools.ignore)
        self.recall = Recall(
            agent.store,
            self._settings,
            agent.memory.embedder,
            conversation_id=record.uuid,
            workspace=record.workspace,
            private=record.private,
        )
        self._builder = ContextBuilder(self._settings)
        self._ended: asyncio.Queue[Turn] = asyncio.Queue()
        self._worker: asyncio.Task[None] | None = None
        short = record.uuid[:8]
        self._vectors = BackgroundWork(f"vectors {short}", partial(self._safely, "vectors", self._embed))
        self._due = BackgroundWork(f"summaries {short}", partial(self._safely, "summaries", self._summarise))
        self._upgrades = BackgroundWork(f"upgrades {short}", partial(self._safely, "upgrades", self._upgrade))
        self._refused: set[str] = set()
        """Ids of extracted texts for which the model gave nothing of use; it is not asked for them again here."""
        self._untitled: Turn | None = None
        """The first turn, while the title is to be made of it."""
        self._idle = asyncio.Event()
        self._idle.set()
        self._loaded = asyncio.Event()
        self._caught_up = record.next_turn == 1
        self.given_title = ""
        """The title made of the first line: replaced by a better one as long as the person gave no other."""
        self._failures: dict[str, str] = {}
        """Why a kind of work failed the last time."""

    @property
    def behind(self) -> str:
        """Why the memory is not up to date, in a sentence; empty while it is."""
        why = next(iter(self._failures.values()), "") or self.recall.reason
        if not why and self._vectors.running:
            made, turns = self.recall.progress()
            if turns - made >= MANY_VECTORS:
                why = f"{made:,} of {turns:,} turns are searchable by meaning so far, all by their words."
        return why

    # --- before a turn -----------------------------------------------------------------------------------------------

    async def context(
        self,
        text: str,
        *,
        turn_index: int,
        turns: list[Turn],
        first_message: Message | None,
        system: list[SystemPart],
        model: ChatModel,
        overhead: int,
    ) -> BuiltContext:
        """What the request for a new message holds."""
        if self._settings.enabled and not self._agent.recorder.journaling:
            with suppress(TimeoutError):
                async with asyncio.timeout(LOAD_SECONDS):
                    await self._loaded.wait()
        inputs = ContextInputs(
            conversation_id=self._record.uuid,
            turn_index=turn_index,
            text=text,
            model=model.name,
            window=model.context_window,
            overhead=overhead,
            system=system,
            turns=turns,
            first_message=first_message,
            summaries=self.summaries,
            files=self.files.render,
        )
        if self._agent.recorder.journaling:
            return without_memory(inputs)
        recall = self._recalled if self._settings.enabled else None
        return await self._builder.build(inputs, recall)

    async def _recalled(
        self, query: str, *, exclude: Collection[int], max_tokens: int, own: bool, summaries: Collection[str]
    ) -> Recalled:
        """What recall finds in time, in what is loaded; nothing when the graph fails meanwhile, which is logged."""
        try:
            return await self.recall.recall(
                query,
                exclude=exclude,
                max_tokens=max_tokens,
                own=own,
                exclude_summaries=summaries,
                seconds=RECALL_SECONDS,
            )
        except GraphError as error:
            log.warning("nothing recalled: %s", error)
        except Exception:
            # A turn without what was recalled is worth more than no turn.
            log.exception("recall failed")
        return Recalled()

    # --- after a turn ------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to load what is known, and to catch up with what is not."""
        if self._worker is None:
            self._idle.clear()
            self._agent.memory.warm()
            self._worker = asyncio.create_task(self._work(), name=f"memory {self._record.uuid[:8]}")

    def turn_ended(self, turn: Turn) -> None:
        """Take a finished turn in, later."""
        self._idle.clear()
        self._ended.put_nowait(turn)
        self.start()

    def wake(self) -> None:
        """The graph is back: catch up with what could not be stored."""
        if self._failures:
            self._caught_up = False
            self._idle.clear()
            self._ended.put_nowait(Turn(turn_index=0))

    async def settle(self) -> None:
        """Wait until everything that was said is remembered, or cannot be. Upgrades of summaries are not waited for."""
        await self._idle.wait()
        await self._due.settle()
        await self._vectors.settle()

    async def close(self) -> None:
        """Stop; what is left is found by query at the next start."""
        if self._worker is not None:
            self._worker.cancel()
            await asyncio.gather(self._worker, return_exceptions=True)
        for work in (self._due, self._upgrades, self._vectors):
            await work.stop()

    async def _work(self) -> None:
        await self._safely("words", self._catch_up)
        self._loaded.set()
        while True:
            if self._ended.empty():
                self._idle.set()
            turn = await self._ended.get()
            if not self._caught_up:
                await self._safely("words", self._catch_up)
            if turn.turn_index:
                await self._safely("words", partial(self._remember, turn))

    async def _safely(self, kind: str, work: Callable[[], Awaitable[None]]) -> None:
        """Do a piece of work; a failure is kept for who looks at the memory, and caught up with later."""
        try:
            await work()
            self._failures.pop(kind, None)
        except RagforgeError as error:
            log.warning("memory of %s is behind (%s): %s", self._record.uuid, kind, error)
            self._behind(kind, str(error))
        except Exception as error:
            log.exception("memory of %s failed (%s)", self._record.uuid, kind)
            self._behind(kind, f"The memory failed unexpectedly ({type(error).__name__}).")

    def _behind(self, kind: str, why: str) -> None:
        self._caught_up = False
        self._failures[kind] = why

    async def _catch_up(self) -> None:
        """Load what is known of the conversation and make what is missing."""
        if self._caught_up:
            return
        store = await self._agent.store()
        self.summaries = await store.summaries.of(self._record.uuid)
        await self._load_files(store)
        await self.recall.load()
        self._loaded.set()
        await self.recall.store_missing()
        await self.recall.summaries_changed(self.summaries)
        self._caught_up = True
        self._vectors.ask()
        self._due.ask()

    async def _load_files(self, store: Store) -> None:
        """Files of earlier turns from the graph, those of the turns read at opening with what was mentioned in them."""
        first = self._opening[0].turn_index if self._opening else self._record.next_turn
        earlier = await store.files.accessed(self._record.uuid, before=first)
        await asyncio.to_thread(self.files.load, earlier)
        for turn in self._opening:
            await asyncio.to_thread(self.files.note, turn)
        self._opening.clear()

    async def _remember(self, turn: Turn) -> None:
        self._agent.exports.turn_stored(self._record.uuid)
        await asyncio.to_thread(self.files.note, turn)
        await self.recall.turn_stored(turn)
        if turn.turn_index == 1 and not any(message.role == "system" for message in turn.messages):
            self._untitled = turn
            await self._offer_similar(turn)
        self._vectors.ask()
        self._due.ask()

    async def _embed(self) -> None:
        """Make the vectors that are missing; when they are many, the user is told at the beginning and at the end."""
        made, turns = self.recall.progress()
        many = turns - made >= MANY_VECTORS
        if many:
            self._say(
                f"Making {turns - made:,} turns searchable by meaning, in the background. Their words are searched now."
            )
        await self.recall.embed()
        self._say_words_only()
        if many and not self.recall.reason:
            self._say(f"All {turns:,} turns of this conversation are searchable by meaning.")

    async def _summarise(self) -> None:
        """Make the title and the summaries that are due, unless the model is left alone for a while."""
        await self._upgrades.stop()
        if not self._settings.enabled:
            return
        model = await self._agent.memory.summary_model()
        patience = self._agent.memory.patience
        resting = model is not None and patience.seconds_left > 0
        if self._untitled is not None:
            await self._give_title(self._untitled, None if resting else model, provisional=resting)
        if self._settings.summarization.enabled and (not resting or patience.given_up):
            await self._make_due(None if resting else model)
        if model is not None and patience.seconds_left:
            self._due.ask_in(patience.seconds_left)
        elif model is not None:
            self._upgrades.ask()

    async def _make_due(self, model: ChatModel | None) -> None:
        store = await self._agent.store()
        grown: list[Event] = []

        def tell(event: Event) -> None:
            # Also of summaries that another process was first to make.
            if isinstance(event, SummaryCreated):
                grown.append(event)
            self._agent.emit(event)

        await Summarizer(store, self._settings.summarization, model, tell).run_due(self._record.uuid)
        if grown:
            await self._take_in_summaries(store)

    async def _upgrade(self) -> None:
        """Have the model write a few of the summaries that were extracted, while nobody waits for anything."""
        model = await self._agent.memory.summary_model()
        if self._agent.closing or self._agent.recorder.journaling:
            return
        store = await self._agent.store()
        summarizer = Summarizer(store, self._settings.summarization, model, self._agent.emit)
        if await summarizer.upgrade(self._record.uuid, most=UPGRADES, refused=self._refused):
            await self._take_in_summaries(store)

    async def _take_in_summaries(self, store: Store) -> None:
        self._agent.exports.turn_stored(self._record.uuid)
        self.summaries = await store.summaries.of(self._record.uuid)
        self._record.summary = (await store.conversations.get(self._record.uuid)).summary
        await self.recall.summaries_changed(self.summaries)
        self._vectors.ask()

    async def summaries_elsewhere(self) -> list[Summary]:
        """Take in the summaries that another process made or replaced; those that are new here."""
        known = {(summary.uuid, summary.made_by) for summary in self.summaries}
        found = await (await self._agent.store()).summaries.of(self._record.uuid)
        self.summaries = found
        fresh = [summary for summary in found if (summary.uuid, summary.made_by) not in known]
        if fresh:
            await self.recall.summaries_changed(found)
            self._vectors.ask()
        return fresh

    async def until_next_summary(self) -> tuple[int, int]:
        """Turns and characters until the next level 1 summary, whichever comes first."""
        settings = self._settings.summarization
        if not settings.enabled:
            return 0, 0
        summarizer = Summarizer(await self._agent.store(), settings, None, self._agent.emit)
        first = (await summarizer.pending(self._record.uuid))[0]
        return first.turns, first.chars

    async def summarise_conversation(self) -> str:
        """Write the conversation's summary anew, now."""
        store = await self._agent.store()
        settings = self._settings.summarization
        summarizer = Summarizer(store, settings, await self._agent.memory.summary_model(), self._agent.emit)
        self._record.summary = await summarizer.summarize_conversation(self._record.uuid)
        return self._record.summary

    async def _give_title(self, turn: Turn, model: ChatModel | None, *, provisional: bool) -> None:
        """A better title than the first line, unless the user has given one; a provisional one is made again later."""
        self._untitled = None
        if not self.given_title or self._record.title != self.given_title:
            return
        title, failed = await make_title(model, turn)
        if not title or self._record.title != self.given_title:
            return
        if failed or provisional:
            self.given_title = title
            self._untitled = turn
        if title != self._record.title:
            self._record.title = title
            await self._agent.recorder.save_title(self._record)
            self._say_changed()

    async def _offer_similar(self, turn: Turn) -> None:
        """Tell the person when an earlier conversation was about what this one begins with."""
        if not self._settings.enabled:
            return
        found = await self.recall.resembling(turn.messages[0].content, min_score=OFFER_SCORE)
        if found is not None:
            earlier = found.conversation
            title = f"“{' '.join(earlier.title.split())[:TITLE_CHARS]}” " if earlier.title else ""
            self._say(
                f"An earlier conversation {title}was about this: /resume {earlier.uuid[:8]}, or /similar for more."
            )

    def _say_words_only(self) -> None:
        """Tell the person, once, when the past is searched by its words alone though it should not be."""
        why = self.recall.reason
        if why and why not in self._agent.memory.said:
            self._agent.memory.said.add(why)
            self._agent.emit(Notice(text=why, level="warning", conversation_id=self._record.uuid))

    def _say(self, text: str) -> None:
        self._agent.emit(Notice(text=text, conversation_id=self._record.uuid))

    def _say_changed(self) -> None:
        self._agent.emit(ConversationChanged(conversation=msgspec.structs.replace(self._record)))
