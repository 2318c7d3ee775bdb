"""ragforge-chat: a terminal chat with an agent whose memory is a graph."""

__version__ = "0.1.0"
