"""Requests about the user's rules for tool calls."""

from __future__ import annotations

from ragforge_tui.conversation.approvals.rules import valid_rule
from ragforge_tui.engine.registry import EngineContext, handles
from ragforge_tui.shared.errors import RagforgeError
from ragforge_tui.shared.requests import rules as requests


@handles(requests.ListRules)
async def list_rules(engine: EngineContext, _: requests.ListRules) -> requests.RuleList:
    rules = engine.agent.services.approvals.rules
    entries = [requests.RuleEntry(rule=rule, session=True) for rule in rules.session]
    entries += [requests.RuleEntry(rule=rule) for rule in (*rules.saved, *rules.patterns)]
    return requests.RuleList(rules=entries, folder=rules.guard.root, file=engine.loaded.config_file)


@handles(requests.ChangeRule)
async def change_rule(engine: EngineContext, request: requests.ChangeRule) -> requests.RuleList:
    if request.new is not None:
        try:
            valid_rule(str(request.new))
        except ValueError as error:
            raise RagforgeError(
                f"This rule would have no effect, because {error}.", todo="Change it, or press Escape.", kind="rule"
            ) from error
    await engine.agent.services.approvals.rules.replace(request.old, request.new)
    return await list_rules(engine, requests.ListRules())
