"""The chat screen: renders what the engine says, decides nothing about memory.

Kept light on purpose: `cli` imports the package to reach `options` before it knows whether a screen is wanted;
Textual is loaded with `ragforge_tui.tui.app` only.
"""
