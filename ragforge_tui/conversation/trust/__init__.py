"""Permission to use instructions and personas that a project brings."""
