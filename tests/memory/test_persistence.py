"""What the settings ask of persistence that is not there yet is said."""

from __future__ import annotations

from ragforge_tui.memory.persistence import differences
from ragforge_tui.settings.schema import ExportSettings, MemorySettings, PersistenceSettings


def test_what_is_not_there_is_said() -> None:
    assert differences(MemorySettings()) == []
    (said,) = differences(MemorySettings(persistence=PersistenceSettings(type="hybrid")))
    assert "Set it to graph." in said and "export.enabled" in said
    exporting = MemorySettings(persistence=PersistenceSettings(type="hybrid"), export=ExportSettings(enabled=True))
    (said,) = differences(exporting)
    assert "export.enabled" not in said
