"""Reports of what requests to models took: by day, model, folder, persona, and by cause."""

from __future__ import annotations

from ragforge_tui.memory.spending.report import usage_report

__all__ = ["usage_report"]
