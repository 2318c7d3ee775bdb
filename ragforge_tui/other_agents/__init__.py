"""Sessions that other coding agents left on this machine, read as conversations of this program."""

from ragforge_tui.other_agents.agents import AGENTS, detect, find_sessions, read_session
from ragforge_tui.other_agents.claude_code import is_rescued
from ragforge_tui.other_agents.reading import merged
from ragforge_tui.other_agents.transcript import ORIGIN, Transcript, conversation_id, relative_path

__all__ = [
    "AGENTS",
    "ORIGIN",
    "Transcript",
    "conversation_id",
    "detect",
    "find_sessions",
    "is_rescued",
    "merged",
    "read_session",
    "relative_path",
]
