"""Tools of the agent, with the confinement to the workspace and the approvals that they require.

The agent loop uses `Toolbox`; packages with tools of their own implement `Tool`. Depends on the
shared records only.
"""

from ragforge_tui.tools.base import (
    Access,
    ApprovalNeed,
    FunctionTool,
    Plan,
    Tool,
    ToolArguments,
    ToolOutcome,
    failed,
)
from ragforge_tui.tools.registry import PreparedCall, Toolbox
from ragforge_tui.tools.search.matching import match_files
from ragforge_tui.tools.undo.snapshots import UndoStore

__all__ = [
    "Access",
    "ApprovalNeed",
    "FunctionTool",
    "Plan",
    "PreparedCall",
    "Tool",
    "ToolArguments",
    "ToolOutcome",
    "Toolbox",
    "UndoStore",
    "failed",
    "match_files",
]
