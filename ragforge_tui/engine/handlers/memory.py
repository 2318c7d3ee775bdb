"""Requests about the memory: summaries, topics, sent requests and similar conversations."""

from __future__ import annotations

import asyncio

from ragforge_tui.conversation import Conversation
from ragforge_tui.engine.registry import EngineContext, handles
from ragforge_tui.memory.context import accounted, look_up
from ragforge_tui.memory.context.usage import used_items
from ragforge_tui.memory.findings.shown import listed_findings, outcomes_of
from ragforge_tui.memory.summaries.findings import gathered_findings
from ragforge_tui.shared import records
from ragforge_tui.shared.context_choices import ChosenItem
from ragforge_tui.shared.errors import NotFoundError
from ragforge_tui.shared.events import TopicsChanged
from ragforge_tui.shared.finding_records import ShownFinding
from ragforge_tui.shared.records import AccessedFile, SimilarConversation, Topic
from ragforge_tui.shared.requests import memory as requests

MOST_TURNS_BACK = 20
"""Turns in which the last answer of a model is looked for; those between are commands of the user."""


@handles(requests.FetchFiles)
async def files(engine: EngineContext, request: requests.FetchFiles) -> list[AccessedFile]:
    memory = engine.conversation(request.conversation_id).memory
    await memory.files_ready()
    return memory.files.groups()


@handles(requests.FetchTree)
async def tree(engine: EngineContext, request: requests.FetchTree) -> requests.MemoryTree:
    conversation = engine.conversation(request.conversation_id)
    store = await engine.agent.store()
    record = conversation.record
    return requests.MemoryTree(
        summary=record.summary,
        nodes=await store.summaries.outline(record.uuid),
        topics=await store.topics.search(conversation_id=record.uuid),
        last_turn=(await store.turns.range(record.uuid))[1],
        due=await _due(engine, conversation),
    )


@handles(requests.FetchFindings)
async def findings(engine: EngineContext, request: requests.FetchFindings) -> list[ShownFinding]:
    store = await engine.agent.store()
    uuid = request.conversation_id
    workspace = engine.conversation(uuid).record.workspace
    outcomes = await outcomes_of(store, [workspace], uuid)
    told = gathered_findings(await store.summaries.of(uuid))
    return listed_findings(await store.findings.of_conversation(uuid), told, outcomes, uuid)


@handles(requests.FetchDue)
async def due(engine: EngineContext, request: requests.FetchDue) -> requests.MemoryDue:
    return await _due(engine, engine.conversation(request.conversation_id))


async def _due(engine: EngineContext, conversation: Conversation) -> requests.MemoryDue:
    turns, chars = await conversation.memory.until_next_summary()
    enabled = engine.agent.settings.agent.memory.summarization.enabled
    behind = conversation.memory.behind
    if not behind and not engine.agent.interactive:
        # The screen gets it as a notice; a program ends before.
        behind = await engine.agent.services.memory.why_no_vectors()
    words_only = bool(conversation.memory.recall.reason)
    return requests.MemoryDue(next_turns=turns, next_chars=chars, behind=behind, enabled=enabled, words_only=words_only)


@handles(requests.FetchSummary)
async def summary(engine: EngineContext, request: requests.FetchSummary) -> requests.ShownSummary:
    store = await engine.agent.store()
    found = await store.summaries.by_id([request.uuid])
    if not found:
        raise NotFoundError("This summary no longer exists.")
    uuid = found[0].conversation_id
    workspace = (await store.conversations.get(uuid)).workspace
    outcomes = await outcomes_of(store, [workspace], uuid)
    shown = outcomes.all_shown(found[0].key_findings, uuid, found[0].end_turn_index)
    fields = {name: getattr(found[0], name) for name in found[0].__struct_fields__}
    return requests.ShownSummary(**fields, gone={at: one.became for at, one in enumerate(shown) if one.became})


@handles(requests.SummarizeConversation)
async def summarize(engine: EngineContext, request: requests.SummarizeConversation) -> records.Conversation:
    conversation = await engine.agent.load_conversation(request.conversation_id)
    await conversation.memory.summarise_conversation()
    return conversation.record


@handles(requests.FetchTurnLines)
async def turn_lines(engine: EngineContext, request: requests.FetchTurnLines) -> list[requests.TurnLine]:
    return await (await engine.agent.store()).turns.lines(request.conversation_id, request.first, request.last)


@handles(requests.ListTopics)
async def topics(engine: EngineContext, request: requests.ListTopics) -> list[Topic]:
    topics = engine.agent.services.memory.topics
    return await topics.find(request.query, limit=request.limit, workspace=request.workspace)


@handles(requests.ResolveTopic)
async def resolve_topic(engine: EngineContext, request: requests.ResolveTopic) -> list[Topic]:
    return (await engine.agent.services.memory.topics.turns(request.ref, workspace=request.workspace)).topics


@handles(requests.MergeTopics)
async def merge_topics(engine: EngineContext, request: requests.MergeTopics) -> Topic:
    store = await engine.agent.store()
    first, second = await store.topics.get(request.a), await store.topics.get(request.b)
    merged = await store.topics.merge(first.uuid, second.uuid)
    await _topics_changed(engine, await store.topics.conversations(merged.uuid), merged)
    return merged


@handles(requests.UnmergeTopic)
async def unmerge_topic(engine: EngineContext, request: requests.UnmergeTopic) -> Topic:
    store = await engine.agent.store()
    touched = await store.topics.conversations((await store.topics.get(request.ref)).uuid)
    split = await store.topics.unmerge_named(request.ref)
    await _topics_changed(engine, touched, split)
    return split


async def _topics_changed(engine: EngineContext, conversations: list[str], topic: Topic) -> None:
    """Bring exports up to date, and report the change to those of the conversations that are open here."""
    await engine.agent.services.exports.memory_changed(conversations)
    for uuid in conversations:
        if engine.agent.opened(uuid) is not None:
            engine.agent.emit(TopicsChanged(conversation_id=uuid, topics=[topic]))


@handles(requests.FetchTopicPlaces)
async def topic_places(engine: EngineContext, request: requests.FetchTopicPlaces) -> list[requests.TopicPlace]:
    """Return a topic's turns in this conversation first, then those in others of the workspace."""
    store = await engine.agent.store()
    own = request.conversation_id
    places: list[requests.TopicPlace] = []
    exists = False
    for scope in ({"conversation_id": own}, {"workspace": request.workspace}):
        if scope.get("conversation_id") == "":
            continue
        try:
            found = await store.topics.turns(request.ref, **scope)
        except NotFoundError:
            continue
        exists = True
        for uuid, ranges in found.items():
            if uuid == own and "workspace" in scope:
                continue
            title = (await store.conversations.get(uuid)).title
            places += [requests.TopicPlace(conversation_id=uuid, title=title, first=a, last=b) for a, b in ranges]
    if not exists:
        raise NotFoundError(f"There is no topic {request.ref!r}.")
    return places


@handles(requests.FindSimilar)
async def similar(engine: EngineContext, request: requests.FindSimilar) -> list[SimilarConversation]:
    return await engine.agent.find_similar(id=request.ref, limit=request.limit, min_score=request.min_score)


@handles(requests.FetchSent)
async def sent(engine: EngineContext, request: requests.FetchSent) -> requests.SentRequest:
    """Return the content of a turn's request, by default its last one; shared turns are read from the parent."""
    store = await engine.agent.store()
    conversation = await store.conversations.resolve(request.conversation_id)
    last = conversation.next_turn - 1
    index = request.turn_index or last
    turns = await store.turns.between(conversation.uuid, start=index, end=index + 1) if index > 0 else []
    if not turns:
        raise NotFoundError(f"The conversation {conversation.uuid[:8]} has no turn {index}.")
    found = await store.contexts.of_turn(turns[0].messages[0].conversation_id, index)
    if not found:
        raise NotFoundError(
            f"No sent request of turn {index} is stored.",
            todo="It was imported, predates stored contexts, or did not ask a model.",
        )
    number = min(request.number or len(found), len(found))
    chosen = found[number - 1]
    record = accounted(await look_up(chosen.record, store), turns[0].messages[0])
    opened = engine.agent.opened(conversation.uuid)
    return requests.SentRequest(
        record=record,
        number=number,
        count=len(found),
        replies=chosen.replies,
        last_turn=last,
        chosen=opened.memory.choices.chosen() if opened is not None else [],
    )


@handles(requests.FetchNext)
async def next_request(engine: EngineContext, request: requests.FetchNext) -> requests.SentRequest:
    """Return the content of the next request, built as it would be for this message."""
    conversation = engine.conversation(request.conversation_id)
    text = request.text or await _last_question(engine, conversation)
    record = (await conversation.build_context(text)).record
    asked = records.Message(
        uuid="",
        conversation_id=record.conversation_id,
        turn_index=record.turn_index,
        role="user",
        content=text,
        timestamp=record.created_at,
    )
    return requests.SentRequest(
        record=accounted(record, asked),
        number=1,
        count=1,
        last_turn=record.turn_index - 1,
        preview=True,
        chosen=conversation.memory.choices.chosen(),
    )


async def _last_question(engine: EngineContext, conversation: Conversation) -> str:
    """Return the text of the newest message of the user; empty without any."""
    store = await engine.agent.store()
    end = conversation.record.next_turn
    turns = await store.turns.between(conversation.record.uuid, start=max(1, end - MOST_TURNS_BACK), end=end)
    asked = (turn.messages[0] for turn in reversed(turns) if not turn.messages[0].doing)
    return next((message.content for message in asked if message.role == "user"), "")


@handles(requests.ChooseContext)
async def choose_context(engine: EngineContext, request: requests.ChooseContext) -> list[ChosenItem]:
    choices = engine.conversation(request.conversation_id).memory.choices
    choices.choose(request.item, request.choice)
    return choices.chosen()


@handles(requests.FetchWhy)
async def why(engine: EngineContext, request: requests.FetchWhy) -> requests.AnswerUse:
    """Return what a turn's answer used of the items that memory had put into its last request."""
    store = await engine.agent.store()
    conversation = await store.conversations.resolve(request.conversation_id)
    last = conversation.next_turn - 1
    first = request.turn_index or max(1, last - MOST_TURNS_BACK)
    turns = await store.turns.between(conversation.uuid, start=first, end=(request.turn_index or last) + 1)
    for turn in reversed(turns):
        found = await store.contexts.of_turn(turn.messages[0].conversation_id, turn.turn_index)
        if found:
            record = await look_up(found[-1].record, store)
            return await asyncio.to_thread(used_items, record, turn)
    raise NotFoundError(
        f"No sent request of turn {request.turn_index or last} is stored.",
        todo="It was imported, predates stored contexts, or did not ask a model.",
    )
