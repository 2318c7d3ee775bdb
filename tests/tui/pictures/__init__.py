"""Pictures of every screen and pane: a table of named states, each at two sizes and in two themes."""
