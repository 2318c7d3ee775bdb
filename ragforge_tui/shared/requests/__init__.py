"""Requests to the engine, one file a subject, each with the type of its answer."""
