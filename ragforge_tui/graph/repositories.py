"""The store: a repository for each kind of record that the program keeps in a graph.

Every write is idempotent: repeated by a retry or from the journal, it stores once.
"""

from __future__ import annotations

from ragforge_tui.graph.connection import Graph
from ragforge_tui.graph.store.activity import Activity
from ragforge_tui.graph.store.attempts import Attempts
from ragforge_tui.graph.store.code import Code
from ragforge_tui.graph.store.code_links import CodeLinks
from ragforge_tui.graph.store.commits import Commits
from ragforge_tui.graph.store.contents import Contents
from ragforge_tui.graph.store.contexts import Contexts
from ragforge_tui.graph.store.conversations import Conversations
from ragforge_tui.graph.store.files import Files
from ragforge_tui.graph.store.findings import Findings
from ragforge_tui.graph.store.insights import Insights
from ragforge_tui.graph.store.memory_acts import MemoryActs
from ragforge_tui.graph.store.messages import Messages
from ragforge_tui.graph.store.other_conversations import OtherConversations
from ragforge_tui.graph.store.purge import Purges
from ragforge_tui.graph.store.recall import Recall
from ragforge_tui.graph.store.scope_words import ScopeWords
from ragforge_tui.graph.store.search import Search
from ragforge_tui.graph.store.spending import Spending
from ragforge_tui.graph.store.summaries import Summaries
from ragforge_tui.graph.store.tool_calls import ToolCalls
from ragforge_tui.graph.store.topics import Topics
from ragforge_tui.graph.store.turns import Turns
from ragforge_tui.graph.store.vectors import Vectors
from ragforge_tui.graph.transfer.export_memory import MemoryExporter
from ragforge_tui.graph.transfer.transfer import Transfer


class Store:
    """The repositories of one graph."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.conversations = Conversations(graph)
        self.turns = Turns(graph)
        self.messages = Messages(graph)
        self.tool_calls = ToolCalls(graph)
        self.files = Files(graph)
        self.code = Code(graph)
        self.code_links = CodeLinks(graph)
        self.scope_words = ScopeWords(graph)
        self.commits = Commits(graph)
        self.contexts = Contexts(graph)
        self.contents = Contents(graph)
        self.summaries = Summaries(graph)
        self.insights = Insights(graph)
        self.findings = Findings(graph)
        self.attempts = Attempts(graph)
        self.memory_acts = MemoryActs(graph)
        self.purges = Purges(graph)
        self.activity = Activity(graph)
        self.spending = Spending(graph)
        self.topics = Topics(graph)
        self.recall = Recall(graph)
        self.vectors = Vectors(graph)
        self.search = Search(graph)
        self.other_conversations = OtherConversations(graph, self.search)
        self.memory_exporter = MemoryExporter(graph, self.summaries)
        self.transfer = Transfer(graph, self.conversations, self.turns, self.memory_exporter)
