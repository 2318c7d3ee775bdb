"""Repositories of the records in a graph, one for each subject; `Store` holds them."""
