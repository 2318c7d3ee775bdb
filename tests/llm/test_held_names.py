"""Private names of LiteLLM that the program holds; see `tests/test_private_names.py`."""

from __future__ import annotations

import pytest

from ragforge_tui.llm.litellm_loader import _ENVIRONMENT
from tests.test_private_names import HELD, OF_LITELLM, Held, assert_held


@pytest.mark.parametrize("held", [held for held in HELD if held.package in OF_LITELLM], ids=lambda held: held.name)
def test_a_private_name_of_litellm_is_where_it_was(held: Held, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in _ENVIRONMENT.items():
        monkeypatch.setenv(name, value)  # without it, importing LiteLLM asks the network for prices
    assert_held(held)
