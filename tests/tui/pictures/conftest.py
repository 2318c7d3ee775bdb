"""What would make a picture depend on how long it took to get there."""

from __future__ import annotations

import pytest

from ragforge_tui.tui.widgets import status_bar


@pytest.fixture(autouse=True)
def hints_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    """A word that goes by itself after two seconds would be in one picture and not in the next."""
    monkeypatch.setattr(status_bar, "HINT_SECONDS", 3600.0)
