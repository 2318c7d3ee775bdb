"""The variables by which agents name their folders are unset: a developer's own sessions are no test data."""

from __future__ import annotations

import pytest

_NAMES = (
    "CLAUDE_CONFIG_DIR",
    "CODEX_HOME",
    "XDG_DATA_HOME",
    "XDG_CONFIG_HOME",
    "GEMINI_CLI_HOME",
    "QWEN_HOME",
    "VIBE_HOME",
    "CRUSH_GLOBAL_DATA",
    "CLINE_DATA_DIR",
    "CLINE_DIR",
    "AIDER_CHAT_HISTORY_FILE",
)


@pytest.fixture(autouse=True)
def _no_folders_of_agents(monkeypatch: pytest.MonkeyPatch) -> None:
    unset_folders(monkeypatch)


def unset_folders(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unset the variables by which agents name their folders."""
    for name in _NAMES:
        monkeypatch.delenv(name, raising=False)
