"""Handlers of the requests to the engine, one file a subject."""
