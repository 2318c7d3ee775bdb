"""What would make a picture depend on how long it took to get there."""

from __future__ import annotations

import pytest

from ragforge_tui.tui.limits import SCREEN


@pytest.fixture(autouse=True)
def hints_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """A word that goes by itself after two seconds would be in one picture and not in the next."""
    monkeypatch.setattr(SCREEN, "hint", 3600.0)
