"""Export files that are kept up to date while a conversation grows."""
