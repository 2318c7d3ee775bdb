"""Masking: every usual shape of a key, in the places it is met, and nothing of ordinary text.

Shapes are templates (see `Rule.example`), filled in here, so that no file of this repository holds the text of a key.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragforge_tui.shared.redaction import MASK, RULES, adds_mask, mask_secrets, mask_value
from tests.support.key_shapes import filled

SHAPES = {
    "OpenAI, earlier": "sk-<48>",
    "OpenAI, service account": "sk-svcacct-<60>",
    "Anthropic": "sk-ant-api03-<93>",
    "OpenRouter": "sk-or-v1-<64h>",
    "Tavily, earlier": "tvly-<32>",
    "LangSmith service": "lsv2_sk_<32h>_<10h>",
    "Modal id": "ak-<22>",
    "Tailscale api": "tskey-api-<12>-<32>",
    "PlanetScale password": "pscale_pw_<43>",
    "PlanetScale OAuth": "pscale_oauth_<43>",
    "Heroku, earlier": "HRKU-<8h>-<4h>-<4h>-<4h>-<12h>",
    "Sourcegraph, current": "sgp_<16h>_<40h>",
    "SonarQube user": "squ_<40h>",
    "Vercel, in a .env file": "VERCEL_TOKEN=<24>",
    "Plaid sandbox": "access-sandbox-<8h>-<4h>-<4h>-<4h>-<12h>",
    "LaunchDarkly API": "api-<8h>-<4h>-<4h>-<4h>-<12h>",
    "Razorpay test": "rzp_test_<14>",
    "FAL": "<8h>-<4h>-<4h>-<4h>-<12h>:<32h>",
    "Asana, one id": "1/<15d>:<32h>",
    "Bitcoin, compressed": "L<51B>",
    "WireGuard": "PrivateKey = <43b>=",
    "WireGuard, preshared": "PresharedKey = <43b>=",
    "Honeycomb management": "hcamk_<58l>",
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


def test_no_format_is_given_up() -> None:
    """A rule brings its own example, so that without this one, its removal would be seen by no test."""
    assert len(RULES) >= 128
    assert sum(len(rule.literals) for rule in RULES) >= 194


def faults_of(template: str, around: str) -> list[str]:
    """What is wrong with the masked text of a shape within another text."""
    text = filled(template)
    masked = mask_secrets(around.format(text))
    before, after = around.split("{}")
    shown = [part for part in secret_parts(template, text) if part in masked]
    expected = {
        "not masked": MASK in masked and not shown,
        "masked beyond": masked.startswith(before) and masked.endswith(after),
        "masked differently the second time": mask_secrets(masked) == masked,
    }
    return [fault for fault, holds in expected.items() if not holds]


@pytest.mark.parametrize("around", ["{}", "before\n{}\nafter", "a b {} c", "'{}'", "x_{}", "\u5bc6\u94a5{}\u3002"])
def test_every_shape_is_masked(around: str) -> None:
    assert {name: faults for name, template in ALL.items() if (faults := faults_of(template, around))} == {}


@pytest.mark.parametrize("before", ["", "line\n", "\t", "a=", "<", "\u2028"])
@pytest.mark.parametrize("escaped", ["", "=", "<"])
def test_every_shape_is_masked_within_json(before: str, escaped: str) -> None:
    wrong = []
    for rule in RULES:
        encoded = msgspec.json.encode({"text": f"{before}{filled(rule.example)}\nafter"}).decode()
        masked = mask_secrets(encoded.replace(escaped, f"\\u{ord(escaped):04x}") if escaped else encoded)
        if MASK not in masked or not msgspec.json.decode(masked)["text"].endswith("after"):
            wrong.append(rule.name)
    assert wrong == []


def test_the_start_of_a_key_shows_which_it_was_and_no_more_than_a_quarter() -> None:
    assert mask_secrets(filled("my ghp_<36> here")) == filled("my ghp_<36>")[:9] + MASK + " here"
    assert mask_secrets("postgres://app:hunter22@db/x") == f"postgres://app:hu{MASK}@db/x"


NAMED = [
    *("tvly-dev-<10><2d>", "<20><4d>", "tskey-auth-<9><2d>", "pscale_tkn_<12><2d>", "napi_<20l><2d>", "dt0c01.<8U>"),
    *("LTAI<10U><2d>", "apify_api_<12><2d>", "zpka_<12><2d>", "rpa_<9U><2d>", "access-dev-<8h>", "Wint<3d>er!"),
]


@pytest.mark.parametrize(
    "member",
    [
        '{"apiKey": "{}", "a": 1}',
        '{"client_secret":"{}"}',
        "{'service': {'access-token': '{}'}}",
        '{\\"db.password\\": \\"{}\\"}',
        "SERVICE_API_KEY={}\n",
    ],
)
def test_a_member_of_json_is_judged_like_a_variable(member: str) -> None:
    before, after = member.split("{}")
    for value in NAMED:
        text = filled(value, seed=3)
        masked = mask_secrets(f"{before}{text}{after}")
        assert MASK in masked and text not in masked
        assert masked.startswith(before) and masked.endswith(after)


def base64_of(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


CARRIERS: dict[str, Callable[[str], str]] = {
    "colours": lambda key: f"{key[:9]}\x1b[1;31m{key[9:14]}\x1b[0m{key[14:]}",
    "erased to the end": lambda key: f"{key[:12]}\x1b[K{key[12:]}",
    "zero width": lambda key: "\u200b".join([key[:10], key[10:20], key[20:]]),
    "soft hyphen": lambda key: f"{key[:6]}\u00ad{key[6:]}",
    "escaped in JSON": lambda key: key.replace("_", "\\u005f"),
    "every letter escaped": lambda key: "".join(f"\\u{ord(letter):04x}" for letter in key),
    "coloured in JSON": lambda key: json.dumps(f"{key[:9]}\x1b[1m{key[9:]}"),
    "zero width in JSON": lambda key: json.dumps(f"{key[:9]}\u200b{key[9:]}"),
    "in an address": lambda key: key.replace("_", "%5F"),
    "every letter in an address": lambda key: "".join(f"%{ord(letter):02X}" for letter in key),
    "base64": base64_of,
    "base64 of a file": lambda key: base64_of(f"# a comment\nTOKEN={key}\n"),
    "Kubernetes": lambda key: f"data:\n  token: {base64_of(key)}\ntype: Opaque",
}


@pytest.mark.parametrize("carrier", CARRIERS)
def test_a_key_is_masked_with_what_carries_it(carrier: str) -> None:
    key = filled("ghp_<36>")
    carried = CARRIERS[carrier](key)
    for around in ("{}", "a {} c", '{"x": "{}"}', "n {} %41 \u200b\nz"):
        masked = mask_secrets(around.replace("{}", carried))
        assert MASK in masked and carried not in masked
        assert not any(base64_of(part)[:-2] in masked for part in (key, key[3:], key[6:]))
        assert key[14:20] not in masked
        assert mask_secrets(masked) == masked


def test_an_escape_is_masked_whole_so_that_json_stays_valid() -> None:
    key = filled("ghp_<36>")
    text = msgspec.json.encode({"a": f"\x1b[1m{key[:8]}\x1b[0m{key[8:]}", "b": "\x1b[31mred"}).decode()
    decoded = msgspec.json.decode(mask_secrets(text))
    assert key[8:] not in decoded["a"] and MASK in decoded["a"]
    assert decoded["b"] == "\x1b[31mred"


FRAME = "-----{} OPENSSH " + "PRIVATE KEY-----"


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
        "RegEnumKey = win32api.RegEnumKey",
        f'_START = b"{FRAME.format("BEGIN")}"\n_BODY = decode(data)\n_END = b"{FRAME.format("END")}"',
        "\x1b[1mbold\x1b[0m and 100%25 and caf\\u00e9_with_a_long_name_in_it_1234567890",
        "as-a-matter-of-course-and-then re_export_all_of_these_names fw_update_of_the_device_2",
        "patch.object pattern.match_everything_there_is_in_1_file 0.5 st.write",
    ],
)
def test_ordinary_text_is_not_masked(text: str) -> None:
    assert mask_secrets(text) == text


@pytest.mark.parametrize("form", ['"{}": "{}"', "{}={}", "{} = '{}'"])
def test_the_mark_of_a_request_is_no_secret(form: str) -> None:
    for name in ("NextToken", "next_page_token", "ClientRequestToken", "continuation-token"):
        text = form.format(name, filled("<32>"))
        assert mask_secrets(text) == text


def test_text_after_an_unterminated_key_is_kept() -> None:
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
