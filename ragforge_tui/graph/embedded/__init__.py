"""The embedded server: its process, and how a chat attaches to it. Imports no driver."""
