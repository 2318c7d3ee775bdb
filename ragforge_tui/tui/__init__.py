"""The chat screen: renders the engine's events, decides nothing about memory.

Importing the package loads no Textual: `cli` reaches `options` before it knows whether a screen is needed.
"""
