"""What the settings ask of persistence that this version does otherwise, in sentences a person can act on.

Said by the engine when it starts and by `doctor`.
"""

from __future__ import annotations

from ragforge_tui.config import MemorySettings


def differences(settings: MemorySettings) -> list[str]:
    """A sentence for each setting that has no effect as it stands; empty for the defaults."""
    found: list[str] = []
    if settings.persistence.type == "hybrid":
        files = (
            "" if settings.export.enabled else " For files beside the graph set agent.memory.export.enabled to true."
        )
        found.append(
            "agent.memory.persistence.type: hybrid is not available in this version; everything is kept in the graph. "
            f"Set it to graph.{files}"
        )
    return found
