"""What the settings ask of persistence that is not there yet is said."""

from __future__ import annotations

from ragforge_tui.settings.check import without_effect
from ragforge_tui.settings.schema import ExportSettings, MemorySettings, PersistenceSettings


def test_what_is_not_there_is_reported() -> None:
    assert without_effect(MemorySettings()) == []
    (said,) = without_effect(MemorySettings(persistence=PersistenceSettings(type="hybrid")))
    assert "Set it to graph." in said and "export.enabled" in said
    exporting = MemorySettings(persistence=PersistenceSettings(type="hybrid"), export=ExportSettings(enabled=True))
    (said,) = without_effect(exporting)
    assert "export.enabled" not in said
