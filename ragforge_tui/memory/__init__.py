"""Memory of the agent: summaries, recall, the context of a turn, topics, recent files. Used by conversation/."""
