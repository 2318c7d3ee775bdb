"""One file for each language: which nodes of its syntax tree define, import and mention names."""
