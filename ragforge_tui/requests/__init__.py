"""Requests to the engine, by subject; `protocol` joins them, and all other modules import them from there."""
