"""The engine host: one process per user that has imported what engines need and forks an engine for each chat."""
