"""The store: everything the program keeps, behind one object.

The engine, the conversations and the command line use it; each subject stands in its own file and the store is
their sum. Every write is idempotent: repeated by a retry or from the journal, it stores once.
"""

from __future__ import annotations

from ragforge_tui.graph.accessed import AccessedFiles
from ragforge_tui.graph.call_list import CallList
from ragforge_tui.graph.changes import FileChanges
from ragforge_tui.graph.connect import Graph
from ragforge_tui.graph.contexts import Contexts
from ragforge_tui.graph.elsewhere import Elsewhere
from ragforge_tui.graph.embeddings import Embeddings
from ragforge_tui.graph.find import TextFinding
from ragforge_tui.graph.messages import Messages
from ragforge_tui.graph.outline import Outline
from ragforge_tui.graph.recall import Recalling
from ragforge_tui.graph.sampling import Sampling
from ragforge_tui.graph.session_list import SessionList
from ragforge_tui.graph.tool_calls import ToolCalls
from ragforge_tui.graph.topics import Topics
from ragforge_tui.graph.transfer import Transfer


class Store(
    Transfer,
    Messages,
    ToolCalls,
    Topics,
    AccessedFiles,
    CallList,
    FileChanges,
    Contexts,
    Outline,
    Recalling,
    Elsewhere,
    Sampling,
    Embeddings,
    SessionList,
    TextFinding,
):
    """Reads and writes conversations in a graph."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    @property
    def graph(self) -> Graph:
        """The graph underneath."""
        return self._graph
