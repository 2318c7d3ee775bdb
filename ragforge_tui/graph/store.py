"""The store: a repository for each kind of record that the program keeps in a graph.

Every write is idempotent: repeated by a retry or from the journal, it stores once.
"""

from __future__ import annotations

from ragforge_tui.graph.connect import Graph
from ragforge_tui.graph.contexts import Contexts
from ragforge_tui.graph.conversations import Conversations
from ragforge_tui.graph.elsewhere import OtherConversations
from ragforge_tui.graph.embeddings import Vectors
from ragforge_tui.graph.files import Files
from ragforge_tui.graph.messages import Messages
from ragforge_tui.graph.outline import Outline
from ragforge_tui.graph.recall import Recall
from ragforge_tui.graph.sampling import WordSamples
from ragforge_tui.graph.search import Search
from ragforge_tui.graph.session_list import Sessions
from ragforge_tui.graph.summaries import Summaries
from ragforge_tui.graph.tool_calls import ToolCalls
from ragforge_tui.graph.topics import Topics
from ragforge_tui.graph.transfer import Transfer
from ragforge_tui.graph.transfer_memory import MemoryExporter
from ragforge_tui.graph.turns import Turns


class Store:
    """The repositories of one graph."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self.conversations = Conversations(graph)
        self.sessions = Sessions(graph)
        self.turns = Turns(graph)
        self.messages = Messages(graph)
        self.tool_calls = ToolCalls(graph)
        self.files = Files(graph)
        self.contexts = Contexts(graph)
        self.summaries = Summaries(graph)
        self.outline = Outline(graph)
        self.topics = Topics(graph)
        self.recall = Recall(graph)
        self.word_samples = WordSamples(graph)
        self.vectors = Vectors(graph)
        self.search = Search(graph)
        self.other_conversations = OtherConversations(graph, self.search, self.summaries)
        self.memory_exporter = MemoryExporter(graph, self.summaries)
        self.transfer = Transfer(graph, self.conversations, self.turns, self.memory_exporter)

    @property
    def graph(self) -> Graph:
        """The graph that holds the records."""
        return self._graph
