"""What the agent can do, and what keeps it inside the workspace and asking first.

The agent loop uses `Toolbox` and `ApprovalPolicy`; rooms with tools of their own implement `Tool`. Leans on the
shared words only.
"""

from ragforge_tui.tools.approval import ApprovalPolicy
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
from ragforge_tui.tools.matching import match_files
from ragforge_tui.tools.toolbox import PreparedCall, Toolbox
from ragforge_tui.tools.undo import UndoStore

__all__ = [
    "Access",
    "ApprovalNeed",
    "ApprovalPolicy",
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
