"""Memory of one open conversation, updated in the background.

After each turn it creates keys, vectors, summaries, topics, the title and links to code without delaying the next
message. Work that a crash or an unreachable graph interrupted is repeated at the next turn or start. Keys, vectors and
summaries are created independently, because the vectors of an import take minutes and a summary waits for the model;
until then recall finds turns by their words. Before each turn it builds the context of the request.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial

import msgspec

from ragforge_tui.conversation.background_work import BackgroundWork
from ragforge_tui.conversation.limits import CONVERSATION
from ragforge_tui.conversation.services import Services
from ragforge_tui.conversation.similar import conversations_like
from ragforge_tui.conversation.turn_readers import TurnReaders
from ragforge_tui.conversation.wishes import SessionWishes
from ragforge_tui.graph import Store
from ragforge_tui.llm import THIS_MACHINE, ChatModel
from ragforge_tui.memory.context import (
    BuiltContext,
    ContextBuilder,
    ContextChoices,
    ContextInputs,
    ContextOptions,
    SystemPart,
    scope_with_text,
    without_memory,
)
from ragforge_tui.memory.findings.settled import NOTHING_SETTLED, Settled
from ragforge_tui.memory.language import language_of
from ragforge_tui.memory.recent_files import RecentFiles
from ragforge_tui.memory.retrieval import Recall
from ragforge_tui.memory.retrieval.recall import STILL_STARTING
from ragforge_tui.memory.retrieval.terms import asked_words
from ragforge_tui.memory.summaries import Summarizer
from ragforge_tui.memory.titles import make_title
from ragforge_tui.shared.errors import NotFoundError, RagforgeError
from ragforge_tui.shared.events import (
    ConversationChanged,
    Event,
    MemoryProgress,
    Notice,
    SummaryCreated,
    TurnsCondensed,
)
from ragforge_tui.shared.finding_records import KeptFinding
from ragforge_tui.shared.formatting import counted
from ragforge_tui.shared.limits import LIMITS
from ragforge_tui.shared.records import TITLE_CHARS, Conversation, Message, Summary, Turn

log = logging.getLogger(__name__)

FEWEST_ASKED = 2
"""Words of a subject from which a first message may be covered by an earlier conversation; a greeting has none."""
OFFER_SCORE = 0.45
"""Smallest cosine at which an earlier conversation is offered. Measured with the local model: first messages on the
subject of a summary scored 0.31 to 0.64, others at most 0.21."""
UPGRADES = 3
"""Extracted summaries that a model rewrites between two turns: enough to catch up, too few to be noticed."""
PROGRESS_SECONDS = 1.0
MANY_VECTORS = 200
"""Number of turns without vectors from which creating them takes long enough to be reported."""


class ConversationMemory:
    """The memory of one open conversation. When disabled, it only indexes turns for search.

    Args:
        record: The conversation, shared with its `Conversation`.
        turns: Its newest turns, as read when it was opened.
    """

    def __init__(self, services: Services, record: Conversation, turns: list[Turn]) -> None:
        self._services = services
        self._record = record
        self._settings = services.settings.agent.memory
        self._opening = list(turns)
        self.summaries: list[Summary] = []
        self.settled = NOTHING_SETTLED
        """Findings of the folder that hold no more, as they were when the last message was sent."""
        self.files = RecentFiles(services.workspace, services.settings.tools.ignore)
        self.recall = Recall(
            services.memory.questions,
            self._settings,
            conversation_id=record.uuid,
            workspace=record.workspace,
            pace=services.memory.pace,
            new=record.next_turn == 1,
        )
        self.choices = ContextChoices(record.uuid)
        self.wishes = SessionWishes(services, record)
        self._builder = ContextBuilder(self._settings, self.choices)
        self._ended: asyncio.Queue[Turn] = asyncio.Queue()
        self._worker: asyncio.Task[None] | None = None
        self._trial: asyncio.Task[None] | None = None
        short = record.uuid[:8]
        self._vectors = BackgroundWork(f"vectors {short}", partial(self._safely, "vectors", self._embed))
        self.readers = TurnReaders(
            services, record, self._safely, self.wishes.store_said, lambda: self.recall.index.language
        )
        self._due = BackgroundWork(f"summaries {short}", partial(self._safely, "summaries", self._summarise))
        self._upgrades = BackgroundWork(f"upgrades {short}", partial(self._safely, "upgrades", self._upgrade))
        self._condensed = 0
        """Last turn of the summaries that the user knows to stand for older turns."""
        self._asks_model = False
        """Whether a model, if any, writes the summaries that are due now."""
        self._refused: set[str] = set()
        """Ids of extracted texts for which the model gave no usable summary; this process does not retry them."""
        self.closing = False
        """Whether the process ends soon, so that no summary is rewritten any more."""
        self._untitled: Turn | None = None
        """The first turn, until the title is generated from it."""
        self._waits_for_subject = False
        """Whether the turns so far are greetings, which give no title."""
        self._idle = asyncio.Event()
        self._idle.set()
        self._loaded = asyncio.Event()
        self._files_loaded = asyncio.Event()
        self._caught_up = record.next_turn == 1
        self.given_title = ""
        """The generated title; a better one replaces it unless the user has set another."""
        self._failures: dict[str, str] = {}
        """Reason of the last failure, by kind of work."""

    @property
    def started(self) -> bool:
        """Return whether it keeps up with the conversation; it does from the first message or view on."""
        return self._worker is not None

    @property
    def behind(self) -> str:
        """Return why the memory is out of date, as a sentence; empty while it is up to date."""
        return next(iter(self._failures.values()), "") or self.recall.reason

    # --- before a turn -----------------------------------------------------------------------------------------------

    async def context(
        self,
        text: str,
        *,
        turn_index: int,
        turns: list[Turn],
        first_message: Message | None,
        system: list[SystemPart],
        model: str,
        window: int,
        overhead: int,
        options: ContextOptions | None = None,
        reasoning: bool = False,
    ) -> BuiltContext:
        """Build the context of the request for a new message."""
        if self._settings.enabled and not self._services.recorder.journaling:
            with suppress(TimeoutError), self._services.memory.pace.awaited():
                async with asyncio.timeout(LIMITS.load):
                    await self._loaded.wait()
            await self._look_up_settled()
        inputs = ContextInputs(
            conversation_id=self._record.uuid,
            turn_index=turn_index,
            text=text,
            model=model,
            window=window,
            overhead=overhead,
            reasoning=reasoning,
            system=system,
            turns=turns,
            first_message=first_message,
            summaries=self.summaries,
            files=self.files.render,
            wishes=await self.wishes.section(self.choices.excluded) if self._settings.enabled else None,
            settled=self.settled,
        )
        if self._services.recorder.journaling:
            starts = self._services.graph.state.phase == "starting" and self._services.recorder.knows_graph
            missing = STILL_STARTING if starts and self._settings.enabled else ""
            return await asyncio.to_thread(without_memory, self._settings, inputs, missing=missing)
        if not self._settings.enabled:
            return await self._builder.build(inputs, options=options)
        lookup = self._services.lookup
        code = lookup.for_context if lookup is not None and lookup.ready else None
        await self.choices.refresh(self._scope_text)
        if await self._builder.cuts(inputs, with_code=code is not None):
            await self._write_overdue()
            self.wishes.changed(cut=True)
            wishes = await self.wishes.section(self.choices.excluded)
            inputs = msgspec.structs.replace(inputs, summaries=self.summaries, wishes=wishes)
        return await self._builder.build(inputs, self.recall, code, options)

    async def _scope_text(self, uuid: str) -> tuple[str, str]:
        """Return a scope as it is sent, with its text in the file now, and why that is older; both empty if unknown."""
        lookup = self._services.lookup
        if lookup is None:
            return "", ""
        try:
            scope = await lookup.scope(uuid)
            code = await lookup.code(scope)
        except NotFoundError:
            return "", "This code no longer exists; this is its text as it was last sent."
        except RagforgeError as error:
            log.info("pinned code not read again: %s", error)
            return "", ""
        return scope_with_text(msgspec.structs.replace(scope, text=code.text)), code.stale

    async def _look_up_settled(self) -> None:
        """Look up what holds no more, unless that takes too long; the user or another chat may have changed it."""
        record = self._record
        try:
            async with asyncio.timeout(LIMITS.recall):
                store = await self._services.store()
                found = await store.findings.settled(record.workspace, asking=record.uuid)
        except (RagforgeError, TimeoutError) as error:
            log.warning("what was closed or replaced was not looked up: %s", str(error) or "that took too long")
            return
        self.settled = self.recall.settled = Settled.of(found)
        self.choices.settle(self.settled)

    def sent(self, context: BuiltContext) -> None:
        """Report, once for each new summary, that a request has summaries in place of older turns."""
        last, summaries = context.condensed
        ends = [one.end_turn_index for one in self.summaries if one.end_turn_index <= last]
        if summaries and max(ends, default=0) > self._condensed:
            self._condensed = max(ends)
            self._services.emit(TurnsCondensed(conversation_id=self._record.uuid, last_turn=last, summaries=summaries))

    async def _write_overdue(self) -> None:
        """Write the summaries that are due, since turns are about to be cut; after `LIMITS.summary` go on without.

        A remote model that is writing them gets that time first. Then they are extracted, and a model rewrites them
        after the turn. A model on this machine has to answer the message.
        """
        if not self._caught_up or not self._settings.summarization.enabled:
            return
        try:
            if not await self._overdue():
                return
            memory = self._services.memory
            model = await memory.summary_model("summary", self._record.uuid)
            with memory.pace.awaited():
                if self._due.running and model is not None and model.destination != THIS_MACHINE:
                    with suppress(TimeoutError):
                        await asyncio.wait_for(self._due.settle(), LIMITS.summary)
                    if not await self._overdue():
                        return
                await asyncio.wait_for(self._make_due(None), LIMITS.summary)
        except (RagforgeError, TimeoutError) as error:
            log.warning("turns are cut before their summary was written: %s", str(error) or "that took too long")

    async def _overdue(self) -> bool:
        return min(await self.until_next_summary()) == 0

    def begin(self, text: str) -> None:
        """Start to search for what the context of a message needs, while the message is stored."""
        if self._settings.enabled:
            self.wishes.load()
        if self._settings.enabled and self._loaded.is_set() and not self._services.recorder.journaling:
            self.recall.begin(text)
            if (lookup := self._services.lookup) is not None and lookup.ready:
                lookup.begin(text)

    # --- after a turn ------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start to load the stored memory and to create missing parts."""
        if self._worker is None:
            self._idle.clear()
            self._services.memory.warm()
            self._trial = asyncio.create_task(self._try_embedder(), name="try-embedder")
            self._worker = asyncio.create_task(self._work(), name=f"memory {self._record.uuid[:8]}")

    async def ready(self) -> None:
        """Wait until the words and files of all turns are known; vectors and summaries may follow."""
        self.start()
        await self._idle.wait()

    async def files_ready(self) -> None:
        """Wait until the files of earlier turns are known, or could not be read."""
        self.start()
        await self._files_loaded.wait()

    def turn_ended(self, turn: Turn) -> None:
        """Queue a finished turn for the background work."""
        self._idle.clear()
        self._ended.put_nowait(turn)
        self.start()

    def turns_moved(self, moved: Mapping[int, int]) -> None:
        """Correct the assumed indexes of turns; the turns between them are read with the next work."""
        self.files.turns_moved(moved)
        self.readers.turns_moved(moved)
        self._caught_up = False

    def wake(self) -> None:
        """Retry failed work, now that the graph is reachable again."""
        if self._failures:
            self._caught_up = False
            self._idle.clear()
            self._ended.put_nowait(Turn(turn_index=0))

    async def settle(self, *, model: bool = True, turns_only: bool = False) -> None:
        """Wait until all pending work except upgrades of summaries and lines on code has finished or failed.

        Args:
            model: Wait for titles and summaries that a model writes too; the next start makes them otherwise.
            turns_only: Wait until turns are indexed and read for what they decide and wish, and for nothing else.
        """
        await self._idle.wait()
        await self.wishes.settle()
        await self.readers.findings.settle()
        if turns_only:
            return
        if model or not self._asks_model:
            await self._due.settle()
        await self._vectors.settle()
        await self.readers.settle()

    async def close(self) -> None:
        """Stop all work; the next start finds the remainder by query."""
        for task in (self._worker, self._trial):
            if task is not None:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
        await self.readers.stop()
        for work in (self._due, self._upgrades, self._vectors):
            await work.stop()
        await self.wishes.close()

    async def _work(self) -> None:
        await self._safely("words", self._catch_up)
        self._files_loaded.set()
        self._loaded.set()
        while True:
            if self._ended.empty():
                self._idle.set()
            turn = await self._ended.get()
            if not self._caught_up:
                await self._safely("words", self._catch_up)
            if turn.turn_index:
                await self._safely("words", partial(self._index_turn, turn))

    async def _safely(self, kind: str, work: Callable[[], Awaitable[None]]) -> None:
        """Run `work`; record a failure for `behind` and retry it later."""
        try:
            await work()
        except RagforgeError as error:
            log.warning("memory of %s is behind (%s): %s", self._record.uuid, kind, error)
            reason = str(error)
        except Exception as error:
            log.exception("memory of %s failed (%s)", self._record.uuid, kind)
            reason = f"The memory failed unexpectedly ({type(error).__name__})."
        else:
            self._failures.pop(kind, None)
            return
        self._caught_up = False
        self._failures[kind] = reason

    async def _catch_up(self) -> None:
        """Load the stored memory of the conversation and create missing keys, vectors and summaries."""
        if self._caught_up:
            return
        store = await self._services.store()
        self.summaries = await store.summaries.of(self._record.uuid)
        await self._load_files(store)
        self._files_loaded.set()
        async with self._progress():
            await self.recall.load()
        self._loaded.set()
        await self.recall.store_missing()
        await self.recall.summaries_changed(self.summaries)
        self._caught_up = True
        self._ask_all()

    def _ask_all(self) -> None:
        self._vectors.ask()
        self._due.ask()
        self.readers.ask()

    async def _load_files(self, store: Store) -> None:
        """Load the files and mentions of earlier turns from the graph, and those of the opening turns."""
        first = self._opening[0].turn_index if self._opening else self._record.next_turn
        earlier = await store.files.accessed(self._record.uuid, before=first)
        mentions = await store.files.mentions(self._record.uuid, before=first)
        await asyncio.to_thread(self.files.load, earlier, mentions)
        for turn in self._opening:
            await asyncio.to_thread(self.files.note, turn)
        self._opening.clear()

    async def _index_turn(self, turn: Turn) -> None:
        self._services.exports.turn_stored(self._record.uuid)
        await self.wishes.store_said()
        await asyncio.to_thread(self.files.note, turn)
        await self.recall.turn_stored(turn)
        self.readers.turn_ended(turn)
        own = turn.turn_index - (self._record.branch_turn or 0)
        by_user = not any(message.role == "system" for message in turn.messages)
        if self._waits_for_subject and by_user:
            self._untitled = turn
        if own == 1 and by_user:
            self._untitled = turn
            asked = turn.messages[0].content
            subject = len(asked_words(asked, language_of(asked))) >= FEWEST_ASKED
            if not self._record.branch_turn and subject and turn.messages[-1].state == "complete":
                await self._offer_similar(turn)
        self._ask_all()

    async def _embed(self) -> None:
        """Create the missing vectors; if there are many, notify the user at the start and at the end."""
        made, turns = self.recall.progress()
        many = turns - made >= MANY_VECTORS
        if many:
            self._notify(
                f"Preparing {counted(turns - made)} turns for search by meaning. You can already search them by words."
            )
        async with self._progress():
            await self.recall.embed()
        self._warn_words_only(self.recall.reason)
        if many and not self.recall.reason:
            self._notify(f"All {counted(turns)} turns of this conversation can now be searched by meaning.")

    @asynccontextmanager
    async def _progress(self) -> AsyncIterator[None]:
        """Report while the work inside takes more than a moment how far it is."""

        reported = False

        def report(left: str) -> None:
            self._services.emit(
                MemoryProgress(conversation_id=self._record.uuid, left=left, percent=self.recall.percent())
            )

        async def repeat() -> None:
            nonlocal reported
            while True:
                await asyncio.sleep(PROGRESS_SECONDS)
                reported = True
                report(self.recall.left())

        reporting = asyncio.create_task(repeat())
        try:
            yield
        finally:
            reporting.cancel()
            if reported:
                report("")

    async def _summarise(self) -> None:
        """Create the title and the due summaries, unless the model is in its backoff time."""
        await self._upgrades.stop()
        if not self._settings.enabled:
            return
        # A summary says what was closed of what is known.
        await self.readers.findings.settle()
        model = await self._services.memory.summary_model("summary", self._record.uuid)
        backoff = self._services.memory.backoff
        resting = model is not None and backoff.seconds_left > 0
        self._asks_model = model is not None and not resting
        if self._untitled is not None:
            titling = None if resting else await self._services.memory.summary_model("title", self._record.uuid)
            await self._give_title(self._untitled, titling, provisional=resting)
        if self._settings.summarization.enabled and (not resting or backoff.given_up):
            await self._make_due(None if resting else model)
        if model is not None and backoff.seconds_left:
            self._due.ask_in(backoff.seconds_left)
        elif model is not None:
            self._upgrades.ask_in(CONVERSATION.idle)

    async def _make_due(self, model: ChatModel | None) -> None:
        store = await self._services.store()
        created: list[Event] = []

        def collect(event: Event) -> None:
            # Includes summaries that another process created first.
            if isinstance(event, SummaryCreated):
                created.append(event)
            self._services.emit(event)

        summarizer = Summarizer(
            store, self._settings.summarization, model, collect, self._services.memory.summary_locks
        )
        await summarizer.run_due(self._record.uuid, known={summary.uuid for summary in self.summaries})
        if created:
            await self._reload_summaries(store)

    async def _upgrade(self) -> None:
        """Let the model rewrite a few extracted summaries, and the text on the whole conversation, while it is idle."""
        memory = self._services.memory
        model = await memory.summary_model("summary", self._record.uuid)
        if self.closing or self._services.recorder.journaling or memory.active_turns.any:
            return  # the end of a running turn asks for this work again
        store = await self._services.store()
        summarizer = Summarizer(store, self._settings.summarization, model, self._services.emit, memory.summary_locks)
        made = await summarizer.upgrade(self._record.uuid, most=UPGRADES, refused=self._refused)
        if made or (await store.conversations.get(self._record.uuid)).summary != self._record.summary:
            await self._reload_summaries(store)

    async def _reload_summaries(self, store: Store) -> None:
        self._services.exports.turn_stored(self._record.uuid)
        self.summaries = await store.summaries.of(self._record.uuid)
        self._record.summary = (await store.conversations.get(self._record.uuid)).summary
        await self.recall.summaries_changed(self.summaries)
        self._vectors.ask()

    async def findings_changed(self, changed: KeptFinding | None = None) -> None:
        """Take in what the user did with what is remembered: wishes, pinned items, summaries that lost a finding.

        Args:
            changed: The finding as it is now; of another folder too.
        """
        self.wishes.changed()
        if changed is not None:
            self.choices.settle(Settled.of([changed]))
        if self._settings.enabled and not self._services.recorder.journaling:
            await self._look_up_settled()
        if self._caught_up:
            await self._reload_summaries(await self._services.store())

    async def summaries_elsewhere(self) -> list[Summary]:
        """Load summaries that another process created or replaced; return those new to this process."""
        loaded = {(summary.uuid, summary.made_by) for summary in self.summaries}
        self.summaries = await (await self._services.store()).summaries.of(self._record.uuid)
        added = [summary for summary in self.summaries if (summary.uuid, summary.made_by) not in loaded]
        if added:
            await self.recall.summaries_changed(self.summaries)
            self._vectors.ask()
        return added

    async def until_next_summary(self) -> tuple[int, int]:
        """Return the turns and characters left until the next level 1 summary; the first limit reached counts."""
        settings = self._settings.summarization
        if not settings.enabled:
            return 0, 0
        summarizer = Summarizer(await self._services.store(), settings, None, self._services.emit)
        first = (await summarizer.pending(self._record.uuid))[0]
        return first.turns, first.chars

    async def summarise_conversation(self) -> str:
        """Rewrite the conversation's summary now and return it."""
        store = await self._services.store()
        settings = self._settings.summarization
        model = await self._services.memory.summary_model("summary", self._record.uuid)
        summarizer = Summarizer(store, settings, model, self._services.emit)
        self._record.summary = await summarizer.summarize_conversation(self._record.uuid)
        return self._record.summary

    async def _give_title(self, turn: Turn, model: ChatModel | None, *, provisional: bool) -> None:
        """Replace the generated title unless the user has set one; a provisional title is generated again later."""
        self._untitled = None
        if not self.given_title or self._record.title != self.given_title:
            return
        title, failed = await make_title(model, turn)
        if not title:
            self._waits_for_subject = True
        if not title or self._record.title != self.given_title:
            return
        self._waits_for_subject = False
        if failed or provisional:
            self.given_title = title
            self._untitled = turn
        if title != self._record.title:
            self._record.title = title
            await self._services.recorder.save_title(self._record)
            self._emit_changed()

    async def _offer_similar(self, turn: Turn) -> None:
        """Notify the user of an earlier conversation that resembles the first message."""
        questions, record = self._services.memory.questions, self._record
        if not self._settings.enabled or questions.settings.scope == "none":
            return
        workspace = None if questions.scope is None else record.workspace
        least = max(OFFER_SCORE, questions.settings.min_score)
        asked = turn.messages[0].content
        found = await conversations_like(questions, asked, 1, least, workspace, exclude=(record.uuid,))
        if found:
            earlier = found[0].conversation
            title = f"“{' '.join(earlier.title.split())[:TITLE_CHARS]}” " if earlier.title else ""
            self._notify(
                f"An earlier conversation {title}covers this: /resume {earlier.uuid[:8]} opens it, /similar lists more."
            )

    async def _try_embedder(self) -> None:
        """Ask a configured embedding model already, so that its failure is reported before a program ends."""
        self._warn_words_only(await self._services.memory.why_no_vectors())

    def _warn_words_only(self, reason: str) -> None:
        """Warn the user once if search by meaning is enabled but unavailable."""
        if reason and reason not in self._services.memory.reported_reasons:
            self._services.memory.reported_reasons.add(reason)
            self._services.emit(Notice(text=reason, level="warning", conversation_id=self._record.uuid))

    def _notify(self, text: str) -> None:
        self._services.emit(Notice(text=text, conversation_id=self._record.uuid))

    def _emit_changed(self) -> None:
        self._services.emit(ConversationChanged(conversation=msgspec.structs.replace(self._record)))
