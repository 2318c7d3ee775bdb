"""The schema of the graph: its released steps, how they are applied, and the node that records the version."""
