"""API keys in use: trimmed where they are read, refused by name, masked in every form."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from urllib.parse import quote

import pytest

from ragforge_tui.llm.provider_errors import to_model_error
from ragforge_tui.settings.load import load
from ragforge_tui.shared import keys_in_use
from ragforge_tui.shared.errors import ConfigError, ModelError
from ragforge_tui.shared.keys_in_use import hide, keys_of, usable_key
from ragforge_tui.shared.redaction import mask_secrets, mask_words
from ragforge_tui.tools.mcp.config import header_values

KEY = 'Vq7/tR2+mN"4xB\\6 cK%hS3'
"""Of no known shape, with signs that each form writes in its own way."""


@pytest.fixture(autouse=True)
def none_in_use(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(keys_in_use, "_forms", {})
    yield


@pytest.mark.parametrize("around", ["\n", "\r\n", " ", "\t", "\ufeff", "\u00a0", "\u200b", "\ufeff \n\n", "\x00", "\v"])
def test_what_surrounds_a_key_is_removed(around: str) -> None:
    assert usable_key(f"{around}{KEY}{around}", "X_KEY") == KEY


@pytest.mark.parametrize(
    ("odd", "shown"), [("\u2014", "\u2014"), ("\u0430", "\u0430"), ("\n", "U+000A"), ("\ufeff", "zero width no-break")]
)
def test_a_key_that_no_header_holds_is_refused_by_name(odd: str, shown: str) -> None:
    with pytest.raises(ModelError) as caught:
        usable_key(f"sk{odd}{KEY}", "X_KEY")
    message = str(caught.value)
    assert "X_KEY" in message and "character 3" in message and shown in message
    assert caught.value.info.kind == "bad_key"
    assert not any(piece in message for piece in (KEY[:5], KEY[-5:], "sk"))


FORMS = [
    KEY,
    repr(KEY),
    repr(f"Bearer {KEY}\n".encode()),
    json.dumps({"key": KEY}),
    f"https://host/?key={quote(KEY, safe='')}&x=1",
    f"https://host/{quote(KEY)}",
    *(base64.b64encode((before + KEY + "@host").encode()).decode() for before in ("", "u", "us", "user:", "Bearer ")),
    base64.urlsafe_b64encode(f"u:{KEY}".encode()).decode(),
]


@pytest.mark.parametrize("text", FORMS)
def test_a_key_is_masked_in_every_form(text: str) -> None:
    hide(KEY)
    for masked in (mask_secrets(text), mask_words(text)):
        assert "[masked]" in masked
        assert not any(KEY[at : at + 5] in masked for at in range(len(KEY) - 5))
        middle = base64.b64encode(KEY.encode()).decode()[4:12]
        assert middle not in masked


def test_a_short_key_is_masked_in_the_words_of_a_library_only() -> None:
    hide("lm-studio")
    assert mask_secrets("Start lm-studio first.") == "Start lm-studio first."
    assert "lm-studio" not in mask_words("Illegal header value b'Bearer lm-studio'")


def test_an_error_never_quotes_a_key_even_cut_at_its_limit() -> None:
    environment = {"SOME_API_KEY": f"{KEY}\r\n", "OTHER": KEY[:9]}
    assert keys_of(environment) == {"SOME_API_KEY": KEY}
    for filler in range(270, 300):
        error = to_model_error(ValueError(f"{'x' * filler} {KEY} was refused"), model="m", destination="host")
        assert KEY[:4] not in str(error)


def test_a_key_in_the_settings_is_trimmed_or_refused_with_its_variable() -> None:
    assert load(env={"RAGFORGE_API_KEY": f"\ufeff{KEY}\n"}).settings.model.api_key == KEY
    with pytest.raises(ConfigError, match="RAGFORGE_API_KEY") as caught:
        load(env={"RAGFORGE_API_KEY": f"{KEY}\u2013"})
    assert KEY[:4] not in str(caught.value)


def test_headers_of_a_server_hold_trimmed_keys() -> None:
    headers = {"Authorization": "Bearer ${TOKEN} ", "X-Team": "core"}
    assert header_values(headers, {"TOKEN": f"{KEY}\n"}) == {"Authorization": f"Bearer {KEY}", "X-Team": "core"}
    assert KEY not in mask_words(f"refused {KEY}")
    with pytest.raises(ModelError, match="TOKEN"):
        header_values(headers, {"TOKEN": f"{KEY}\u2028x"})
