"""Storage of a conversation in the graph, or in the journal while the graph is unreachable."""
