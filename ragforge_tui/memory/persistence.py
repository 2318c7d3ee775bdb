"""Persistence settings without effect in this version, as sentences the user can act on.

Shown by the engine when it starts and by `doctor`.
"""

from __future__ import annotations

from ragforge_tui.settings.schema import MemorySettings


def differences(settings: MemorySettings) -> list[str]:
    """Return a sentence for each setting that has no effect; none for the defaults."""
    sentences: list[str] = []
    if settings.persistence.type == "hybrid":
        files = "" if settings.export.enabled else " For additional files set agent.memory.export.enabled to true."
        sentences.append(
            "agent.memory.persistence.type: hybrid is not available in this version; everything is stored in the "
            f"graph. Set it to graph.{files}"
        )
    return sentences
