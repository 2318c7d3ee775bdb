"""Code of the workspace as knowledge: parsing, references between scopes, indexing and search."""
