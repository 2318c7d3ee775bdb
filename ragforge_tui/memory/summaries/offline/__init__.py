"""Summaries without a model, from sentences selected and compressed: over turns, over summaries, over a conversation.

Used if there is no model, or if its answers are unusable.
"""
