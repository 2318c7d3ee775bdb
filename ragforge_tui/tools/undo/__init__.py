"""Undo of file changes: stored contents, the changes of a conversation, and their restoration."""
