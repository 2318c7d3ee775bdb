"""Requests by subject, for the parts of the fake engine."""

from __future__ import annotations

from ragforge_tui.shared.requests import code, memory, personas, rules, sessions, work

CallRequest = work.ListCalls | work.FetchCall
CodeRequest = code.SearchCode | code.FindScopes | code.FetchScope | code.ListTouchedCode
MemoryRequest = (
    memory.FetchFiles
    | memory.SummarizeConversation
    | memory.ListTopics
    | memory.MergeTopics
    | memory.UnmergeTopic
    | memory.FindSimilar
)
PersonaRequest = (
    personas.ListPersonas
    | personas.ShowPersona
    | personas.SetPersona
    | personas.DraftPersona
    | personas.ImprovePersona
    | personas.CheckPersona
    | personas.SavePersona
    | personas.DeletePersona
    | personas.RestorePersona
)
SessionRequest = sessions.PeekConversation | sessions.FollowConversations | sessions.LeaveConversation
TreeRequest = (
    memory.FetchTree
    | memory.FetchDue
    | memory.FetchSummary
    | memory.FetchTurnLines
    | memory.FetchTopicPlaces
    | memory.FetchSent
    | memory.FetchFindings
)
WorkRequest = (
    work.SetMode | work.SessionDiff | work.PlanUndo | work.UndoTurn | work.RunShell | rules.ListRules | rules.ChangeRule
)
