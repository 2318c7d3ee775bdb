"""The engine host: a process that has imported what an engine needs, and forks one for each chat that asks."""
