"""The embedded server: its process and its supervisor, and how a chat attaches to it. Imports no driver."""
