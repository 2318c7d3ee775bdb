"""Requests about many past conversations: insights, questions, work done."""

from __future__ import annotations

from ragforge_tui.engine.registry import EngineContext, handles
from ragforge_tui.shared.finding_records import KeptFinding
from ragforge_tui.shared.past_records import InsightEntry, InsightPlan, InsightsMade, Recalled, WorkDone
from ragforge_tui.shared.requests import past as requests
from ragforge_tui.shared.usage_records import UsageReport
from ragforge_tui.shared.wire import Empty


@handles(requests.ListInsights)
async def insights(engine: EngineContext, request: requests.ListInsights) -> list[InsightEntry]:
    return await engine.agent.past.insights.entries(request.choice)


@handles(requests.PlanInsights)
async def plan_insights(engine: EngineContext, request: requests.PlanInsights) -> InsightPlan:
    return await engine.agent.past.insights.plan(request.choice, request.most)


@handles(requests.MakeInsights)
async def make_insights(engine: EngineContext, request: requests.MakeInsights) -> InsightsMade:
    return await engine.agent.past.insights.make(request.choice, request.most)


@handles(requests.ListKept)
async def kept(engine: EngineContext, request: requests.ListKept) -> list[KeptFinding]:
    return await engine.agent.past.insights.kept(request.choice)


@handles(requests.CancelInsights)
async def cancel_insights(engine: EngineContext, _: requests.CancelInsights) -> Empty:
    await engine.agent.past.insights.cancel()
    return Empty()


@handles(requests.RecallPast)
async def recall(engine: EngineContext, request: requests.RecallPast) -> Recalled:
    return await engine.agent.past.recall(request.question, request.choice, limit=request.limit, answer=request.answer)


@handles(requests.Standup)
async def standup(engine: EngineContext, request: requests.Standup) -> list[WorkDone]:
    return await engine.agent.past.standup(
        request.since, until=request.until, workspace=request.workspace, current=request.current
    )


@handles(requests.FetchUsage)
async def usage(engine: EngineContext, request: requests.FetchUsage) -> UsageReport:
    return await engine.agent.past.usage(
        request.by, since=request.since, workspace=request.workspace, conversation_id=request.conversation_id
    )
