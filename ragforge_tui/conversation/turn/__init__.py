"""One turn of a conversation, from its inputs to its final event."""
