"""Masking: every usual shape of a key, in the places it is met, and nothing of ordinary text.

Shapes are templates (see `Rule.example`), filled in here, so that no file of this repository holds the text of a key.
"""

from __future__ import annotations

import re

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragforge_tui.shared.redaction import MASK, RULES, Rule, adds_mask, mask_secrets, mask_value
from tests.support.key_shapes import filled

SHAPES = {
    "OpenAI, earlier": "sk-<48>",
    "OpenAI, service account": "sk-svcacct-<60>",
    "Anthropic": "sk-ant-api03-<93>",
    "OpenRouter": "sk-or-v1-<64h>",
    "Mistral": "MISTRAL_API_KEY=<32>",
    "Cohere": "CO_API_KEY=<40>",
    "GitHub OAuth": "gho_<36>",
    "GitHub user": "ghu_<36>",
    "GitHub server": "ghs_<36>",
    "GitHub refresh": "ghr_<76>",
    "GitLab runner": "glrt-<20>",
    "GitLab deploy": "gldt-<20>",
    "GitLab trigger": "glptt-<40h>",
    "PyPI test": "pypi-AgENdGVzdC5weXBp<80>",
    "Docker organisation": "dckr_oat_<32>",
    "AWS session key id": "ASIA<16U>",
    "AWS secret in JSON": '"SecretAccessKey": "<40b>"',
    "AWS session token": "AWS_SESSION_TOKEN=<300b>==",
    "Azure service bus": "SharedAccessKeyName=Root;SharedAccessKey=<43b>=",
    "DigitalOcean OAuth": "doo_v1_<64h>",
    "Fly, current": "FlyV1 fm2_<120b>",
    "Supabase secret": "sb_secret_<31>",
    "Vault batch": "hvb.<120>",
    "Doppler service": "dp.st.dev.<43>",
    "Slack user": "xoxp-<12d>-<12d>-<12d>-<32h>",
    "Slack client": "xoxc-<12d>-<12d>-<12d>-<64h>",
    "Slack refresh": "xoxe.xoxp-1-<146>",
    "Twilio auth token": "TWILIO_AUTH_TOKEN=<32h>",
    "Stripe restricted": "rk_live_<99>",
    "Stripe test": "sk_test_<24>",
    "Stripe webhook": "whsec_<32>",
    "Shopify shared secret": "shpss_<32h>",
    "Square secret": "sq0csp-<43>",
    "Linear OAuth": "lin_oauth_<64h>",
    "Atlassian app password": "ATBB<32>",
    "Grafana cloud": "glc_eyJ<100>",
    "Sentry user": "sntryu_<64h>",
    "PGP": "-----BEGIN PGP PRIVATE KEY BLOCK-----\nVersion: 1\n\n<64b>\n=<4b>\n-----END PGP PRIVATE KEY BLOCK-----",
    "PEM without its end": "-----BEGIN OPENSSH PRIVATE KEY-----\n<70b>\n<70b>\n<70b>",
    "bearer": "Authorization: Bearer <40>",
    "bearer in a header of curl": '-H "authorization: bearer <20l>"',
    "redis": "redis://:<16>@cache:6379/0",
    "password in .env": "DB_PASSWORD=Summer<4d>!",
    "lower-case name": "api_key: <32>",
    "quoted": 'clientSecret = "<40>"',
}


def secret_parts(template: str, text: str) -> list[str]:
    """The random parts of a filled template that are too long to be guessed."""
    pattern = re.sub(r"<\\?(\d+)([a-zA-Z]?)>", r"(.{\1})", re.escape(template))
    match = re.fullmatch(pattern, text, re.DOTALL)
    assert match is not None
    return [part for part in match.groups() if len(part) >= 16]


ALL = {**{rule.name: rule.example for rule in RULES}, **SHAPES}


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("around", ["{}", "before\n{}\nafter", "a b {} c", "'{}'", "x_{}", "\u5bc6\u94a5{}\u3002"])
def test_the_shape_is_masked(name: str, around: str) -> None:
    template = ALL[name]
    text = filled(template)
    masked = mask_secrets(around.format(text))
    assert MASK in masked
    parts = secret_parts(template, text)
    assert not any(part in masked for part in parts)
    before, after = around.split("{}")
    assert masked.startswith(before)
    assert masked.endswith(after)
    assert mask_secrets(masked) == masked


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
@pytest.mark.parametrize("before", ["", "line\n", "\t", "a=", "<", "\u2028"])
def test_the_shape_is_masked_within_json(rule: Rule, before: str) -> None:
    text = filled(rule.example)
    encoded = msgspec.json.encode({"text": f"{before}{text}\nafter"}).decode()
    for written in (encoded, encoded.replace("=", "\\u003d"), encoded.replace("<", "\\u003c")):
        masked = mask_secrets(written)
        assert MASK in masked
        assert msgspec.json.decode(masked)["text"].endswith("after")


def test_the_start_of_a_key_shows_which_it_was_and_no_more_than_a_quarter() -> None:
    assert mask_secrets(filled("my ghp_<36> here")) == filled("my ghp_<36>")[:9] + MASK + " here"
    assert mask_secrets("postgres://app:hunter22@db/x") == f"postgres://app:hu{MASK}@db/x"


@pytest.mark.parametrize(
    "text",
    [
        "task-list sk-short ghost AKIA eyJ high",
        "sk-folding-cube-animation-delay-long { color: red }",
        "key = some_long_identifier_name_2",
        "token = base64.b64encode(random_bytes).decode()",
        "password = getpass('Password: ')",
        "API_KEY=your-api-key-1234567",
        "MISTRAL_API_KEY=$MISTRAL_API_KEY",
        "postgresql://user:password@localhost/db",
        "https://$USER:$PASSWORD@host",
        "sort(key=lambda item: item.created_at_1)",
        "see https://example.com:8080/a@b",
        "-----BEGIN PRIVATE KEY----- is the first line, then base64, then the END line",
        "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
        "Authorization: Bearer YOUR_TOKEN",
        "Authorization: Basic authentication",
        "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08  file",
        "commit 3b18e512dba79e4c8300dd08aeb37f8e728b8dad",
        "123e4567-e89b-12d3-a456-426614174000",
    ],
)
def test_ordinary_text_is_not_masked(text: str) -> None:
    assert mask_secrets(text) == text


def test_what_follows_a_key_without_its_end_is_kept() -> None:
    text = filled("-----BEGIN RSA PRIVATE KEY-----\n<64b>\n<64b>\n\nThe next paragraph, with words.")
    assert mask_secrets(text).endswith("\n\nThe next paragraph, with words.")


@given(st.lists(st.sampled_from(["sk-", "key", "=", "://", ":", "@", "a1B2c3D4e5F6g7H8", "\n", "é", "-----BEGIN "])))
def test_masking_twice_is_masking_once(pieces: list[str]) -> None:
    once = mask_secrets("".join(pieces))
    assert mask_secrets(once) == once


def test_values_are_masked_all_through() -> None:
    key = filled("ghp_<36>")
    masked = mask_value({"a": [key, {"b": f"x {key}"}], "n": 7})
    assert key not in str(masked)
    assert masked["n"] == 7


def test_a_text_adds_a_mask() -> None:
    assert adds_mask("KEY=x", f"KEY=ab{MASK}")
    assert not adds_mask(f"KEY=ab{MASK}", f"# moved\nKEY=ab{MASK}")
    assert adds_mask(f"KEY=ab{MASK}", f"KEY=ab{MASK}\nOTHER=cd{MASK}")
    assert not adds_mask("", "no mask")
