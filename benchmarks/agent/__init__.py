"""Evaluation of what the agent is given and, with a model, of what it makes of it; see `__main__`."""
