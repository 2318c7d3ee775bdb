"""Requests to the engine, by subject; `wire` joins them, and all other modules import them from there."""
