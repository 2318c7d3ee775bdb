"""The transcript: one widget that draws lines, in which everything of a conversation is shown.

Used by the chat screen. A room of its own because drawing thousands of turns while one streams needs care that
the rest of the screen should not have to know about.
"""

from ragforge_tui.tui.transcript.blocks import Block
from ragforge_tui.tui.transcript.transcript import Transcript

__all__ = ["Block", "Transcript"]
