"""Masking of keys and passwords, applied to every text before it is stored, logged, exported or sent to a model.

`RULES` is data: one rule for each published format of a key, and a few that recognise a secret by the words around it.
A masked key keeps its first characters, so that a reader can tell which key it was. Shared by all packages.

Cost: formats that start with a literal and continue for at least `_RUN` word characters are searched for only where a
run of that length exists. Every pattern is bounded, so time grows linearly with the text, even a hostile one.
"""

from __future__ import annotations

import base64
import bisect
import functools
import re
from array import array
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from ragforge_tui.shared.keys_in_use import MASK as MASK
from ragforge_tui.shared.keys_in_use import mask_keys
from ragforge_tui.shared.sanitize import plain_text

_SHOWN = 6
_JUDGED = 64
"""Number of leading characters by which a value is judged to be random or not."""
_RUN = 22
_BEFORE_RUN = 24
"""Largest distance from the start of a literal to the run of word characters after it (`xapp-1-A0123456789-`)."""


class Rule(NamedTuple):
    """Format of a secret.

    Attributes:
        literals: Literal starts of the pattern; it is tried only where one of them occurs.
        pattern: Matched at a literal; its first group, or the whole match without one, is masked.
        example: Template of a text in this format: ``<36>`` means 36 random letters and digits, ``<36d>`` digits,
            ``<36h>`` hexadecimal digits, ``<36U>`` and ``<36l>`` digits with capital or small letters, ``<36b>``
            base64, ``<36B>`` base58.
        lead: Number of characters before the literal that belong to the match.
        folded: Whether the literals, in lower case, match in any case.
        short: Whether the format may lack a run of `_RUN` word characters.
        inside: Whether the literal may follow a letter or digit.
        check: Predicate that decides whether a match is indeed a secret.
    """

    name: str
    literals: tuple[str, ...]
    pattern: str
    example: str
    lead: int = 0
    folded: bool = False
    short: bool = False
    inside: bool = False
    check: Callable[[re.Match[str]], bool] | None = None


# --- checks of values -------------------------------------------------------------------------------------------------

_PLACEHOLDER = re.compile(
    r"(?i)(.)\1{7}|example|placeholder|your|dummy|change_?me|sample|redacted|insert|xxxx|\.\.\.|<|>|0123456|1234567|abcdef"
)
_WORD = re.compile(r"[a-z]{8}|[A-Z]{8}|(?:[A-Z]?[a-z]{3,12}[_./-]?){3}")
_STEP = re.compile(r"[0-9](?=[A-Za-z])|[A-Za-z](?=[0-9])|[a-z](?=[A-Z])")


def _is_random(value: str) -> bool:
    """Return whether a value looks generated rather than written: letters and digits mixed, without words."""
    if len(value) < 16 or _PLACEHOLDER.search(value) or _WORD.search(value):
        return False
    digits = sum(character.isdigit() for character in value)
    letters = sum(character.isalpha() for character in value)
    return digits >= 2 and letters >= 4 and len(_STEP.findall(value)) * 8 >= len(value)


def _is_given(value: str) -> bool:
    """Return whether a value of 8 characters or more looks like a password, not like a word or a placeholder."""
    return any(map(str.isdigit, value)) and any(map(str.isalpha, value)) and not _PLACEHOLDER.search(value)


def _is_strong(value: str) -> bool:
    """Return whether a value mixes cases, digits and symbols as password rules require, and is not an expression."""
    return _is_given(value) and all(re.search(kind, value) for kind in ("[a-z]", "[A-Z]", "[^A-Za-z0-9_.]"))


def _generated(match: re.Match[str]) -> bool:
    """Tell a key whose prefix is also the beginning of ordinary names (`as-`, `re_`) from such a name."""
    value = match[match.re.groups and 1]
    return not (_PLACEHOLDER.search(value) or _WORD.search(value)) and len(_STEP.findall(value)) * 6 >= len(value)


def _is_key_body(match: re.Match[str]) -> bool:
    """Return whether most of a PEM block is base64: its first and last line may also frame code."""
    body = match[0].partition("KEY")[2].rpartition("-----END ")[0] or match[0].partition("KEY")[2]
    return 2 * sum(map(len, re.findall("[A-Za-z0-9+/=]{16,}", body))) >= len(body)


_NOT_SECRET = re.compile(
    r"(?i)(?:next|prev(?:ious)?|page|paging|pagination|continuation|start(?:ing)?|client_?request|idempotency|sync)_?-?"
    r"(?:token|key)[^A-Za-z]*$"
)
"""Names of marks in a listing or a request, which are no secrets."""
_WIREGUARD = re.compile(r"(?i)(?:private|preshared)_?key\s{0,4}[=:]\s{0,4}[\"']?$")
_MEMBER = re.compile(r"[A-Za-z_]\w{0,20}(?:\.[A-Za-z_]\w{0,20})+")


def _assigned(match: re.Match[str]) -> bool:
    value = match[1][:_JUDGED]
    name = match.string[max(0, match.start() - 20) : match.start(1)]
    if _NOT_SECRET.search(name):
        return False
    if _WIREGUARD.search(name) and len(match[1]) == len(value) == 44:
        return True
    if _is_random(value) and (name[-1:] in "\"'" or not _MEMBER.fullmatch(value)):
        return True
    if match[0][:1] in "pP" and _is_strong(value):
        return True
    if _JSON_MEMBER.search(match.string, max(0, match.start() - 64), match.start(1)):
        return match.string[match.end(1) : match.end(1) + 1] in "\"'\\" and _is_given(value)
    # As in a .env file or the output of `env`: an upper-case name at the start of a word, without spaces.
    line = _ENV_LINE.search(match.string, max(0, match.start() - 64), match.start(1))
    return line is not None and _is_given(value)


_JSON_MEMBER = re.compile(
    r"(?i)[\"'][\w.-]{0,60}(?:(?:api|access|admin|auth|bearer|bot|client|master|private|refresh|secret|service|signing)"
    r"[_.-]?(?:key|token|secret)|passw(?:or)?d|passphrase)\\?[\"']\s{0,8}:\s{0,8}\\?[\"']$"
)
_ENV_LINE = re.compile(r"(?:^|[\s\x00\"';,]|\\n|\\u0000)(?:export )?[A-Z][A-Z0-9_]{0,60}=[\"']?$")


def _not_words(match: re.Match[str]) -> bool:
    """Reject hyphenated names, as style sheets contain them (`sk-folding-cube-animation`)."""
    parts = re.split(r"[_-]+", match[0])[1:]
    return any(len(part) > 14 or not (part.isalpha() and (part.islower() or part.isupper())) for part in parts)


_USUAL_WORDS = frozenset(
    ["", "pass", "passwd", "password", "pwd", "pw", "secret", "token", "key", "credentials", "foo", "bar", "test"]
)


def _is_password(match: re.Match[str]) -> bool:
    value = match[1]
    return value.lower() not in _USUAL_WORDS and not _PLACEHOLDER.search(value) and value[0] not in "$%{*"


def _authorizes(match: re.Match[str]) -> bool:
    value = match[1]
    if _PLACEHOLDER.search(value):
        return False
    return _is_given(value) if len(value) < 16 else any(map(str.isdigit, value)) or not value.islower()


# --- the rules --------------------------------------------------------------------------------------------------------

_W = "[A-Za-z0-9_-]"
_A = "[A-Za-z0-9]"
_END = "(?![A-Za-z0-9])"
_UUID = "[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}"
_ID_BEFORE = re.compile(rf"(?<![0-9])(?:[12]/\d{{12,20}}(?:/\d{{12,20}})?|{_UUID})$")
_BASE58 = "[1-9A-HJ-NP-Za-km-z]"


def _prefixed(name: str, example: str, pattern: str, *literals: str, lead: int = 0) -> Rule:
    """Return a rule for a format that starts with a literal; `pattern` matches the rest."""
    start = "|".join(re.escape(literal) for literal in literals)
    return Rule(name, literals, f"(?:{start}){pattern}" if not lead else pattern, example, lead=lead)


_EQUALS = r"(?:=|\\u003[dD])"
_SEPARATOR = r"[\"'\]\\]{0,3}\s{0,8}(?::=|=>|=|:|\\u003[dD])\s{0,8}\\{0,2}[\"']?"

RULES = (
    # Models and their gateways
    Rule(
        "OpenAI, Anthropic, OpenRouter, DeepSeek",
        ("sk-",),
        f"sk-(?:ant-|proj-|or-v1-|svcacct-|admin-)?{_W}{{20,}}",
        "sk-proj-<48>",
        check=_not_words,
    ),
    _prefixed("Google API key", "AIza<35>", f"{_W}{{35}}", "AIza"),
    _prefixed("Groq", "gsk_<52>", f"{_A}{{30,}}", "gsk_"),
    _prefixed("xAI", "xai-<80>", f"{_A}{{30,}}", "xai-"),
    _prefixed("Hugging Face", "hf_<34>", f"{_A}{{30,}}", "hf_", "api_org_"),
    _prefixed("Replicate", "r8_<37>", f"{_A}{{30,}}", "r8_"),
    _prefixed("Perplexity", "pplx-<48>", f"{_A}{{30,}}", "pplx-"),
    _prefixed("NVIDIA", "nvapi-<64>", f"{_W}{{40,}}", "nvapi-"),
    _prefixed("Cerebras", "csk-<48l>", f"[a-z0-9]{{40,}}{_END}", "csk-"),
    _prefixed("Fireworks", "fw_<24>", f"{_A}{{22,32}}{_END}", "fw_")._replace(check=_generated),
    _prefixed("Together", "tgp_v1_<43>", f"{_W}{{40,}}", "tgp_v1_"),
    _prefixed("Tavily", "tvly-dev-<32>", f"(?:dev-|prod-)?{_A}{{20,}}", "tvly-"),
    _prefixed("Firecrawl", "fc-<32h>", f"[0-9a-f]{{32}}{_END}", "fc-"),
    _prefixed("Jina", "jina_<60>", f"{_W}{{40,}}", "jina_"),
    _prefixed("Voyage", "pa-<43>", f"{_W}{{40,48}}(?!{_W})", "pa-")._replace(check=_generated),
    _prefixed("Pinecone", "pcsk_<6>_<63>", "[A-Za-z0-9_]{40,}", "pcsk_"),
    _prefixed("LangSmith", "lsv2_pt_<32h>_<10h>", f"(?:pt|sk)_[0-9a-f]{{32}}_[0-9a-f]{{10}}{_END}", "lsv2_"),
    _prefixed("E2B", "e2b_<40h>", f"[0-9a-f]{{40}}{_END}", "e2b_"),
    _prefixed("ElevenLabs", "sk_<48h>", f"[0-9a-f]{{40,64}}{_END}", "sk_"),
    _prefixed("RunPod", "rpa_<40U><6l>", f"{_A}{{36,}}", "rpa_"),
    _prefixed("Modal", "as-<22>", f"{_A}{{22}}{_END}", "as-", "ak-")._replace(check=_generated),
    _prefixed("Cursor", "key_<64h>", f"[0-9a-f]{{64}}{_END}", "key_"),
    # Code hosts and registries
    _prefixed("GitHub token", "ghp_<36>", f"{_A}{{30,}}", "ghp_", "gho_", "ghu_", "ghs_", "ghr_"),
    _prefixed("GitHub fine-grained token", "github_pat_<22>_<59>", "[A-Za-z0-9_]{40,}", "github_pat_"),
    _prefixed(
        "GitLab",
        "glpat-<20>",
        f"{_W}{{20,}}",
        *("glpat-", "glrt-", "gldt-", "glptt-", "glcbt-", "glimt-", "glft-", "gloas-", "glagent-", "glsoat-"),
    ),
    _prefixed("npm", "npm_<36>", f"{_A}{{36}}{_END}", "npm_"),
    _prefixed("PyPI", "pypi-AgEIcHlwaS5vcmc<80>", f"Ag{_W}{{50,}}", "pypi-"),
    _prefixed("RubyGems", "rubygems_<48h>", f"[0-9a-f]{{40,}}{_END}", "rubygems_"),
    _prefixed("crates.io", "cio<32>", f"{_A}{{32}}{_END}", "cio")._replace(
        check=lambda match: bool(re.search("[0-9]", match[0]) and re.search("[A-Z]", match[0]))
    ),
    _prefixed("NuGet", "oy2<43l>", f"[a-z0-9]{{43}}{_END}", "oy2"),
    _prefixed("Clojars", "CLOJARS_<60h>", f"{_A}{{50,}}", "CLOJARS_"),
    _prefixed(
        "JetBrains",
        "perm:<16b>.<16b>.<30>",
        r"[A-Za-z0-9+/=_-]{4,128}\.[A-Za-z0-9+/=_-]{2,128}\.[A-Za-z0-9+/=_-]{20,}",
        "perm:",
        "perm-",
    )._replace(short=True),
    _prefixed("Buildkite", "bkua_<40h>", f"[0-9a-f]{{40}}{_END}", "bkua_"),
    _prefixed("CircleCI", "CCIPAT_<22>_<40h>", f"(?:PAT|PRJ)_{_A}{{20,24}}_[0-9a-f]{{40}}", "CCI"),
    _prefixed("SonarQube", "sqp_<40h>", f"[0-9a-f]{{40}}{_END}", "sqp_", "squ_", "sqa_"),
    _prefixed("Sourcegraph", "sgp_<40h>", f"(?:local_|[0-9a-f]{{16}}_)?[0-9a-f]{{40}}{_END}", "sgp_"),
    _prefixed("Segment", "sgp_<64>", f"{_A}{{64}}{_END}", "sgp_"),
    _prefixed("Docker", "dckr_pat_<27>", f"{_W}{{20,}}", "dckr_pat_", "dckr_oat_"),
    # Clouds and hosting
    _prefixed("AWS key id", "AKIA<16U>", f"[0-9A-Z]{{16}}{_END}", "AKIA", "ASIA")._replace(short=True),
    Rule(
        "AWS secret key",
        ("secret_access_key", "secretaccesskey", "secret-access-key", "secret access key"),
        r"(?i:secret[_ -]?access[_ -]?key)" + _SEPARATOR + r"([A-Za-z0-9+/]{40})(?![A-Za-z0-9+/=])",
        "aws_secret_access_key = <40b>",
        folded=True,
        short=True,
    ),
    _prefixed("AWS Bedrock key", "ABSK<120b>", "[A-Za-z0-9+/]{60,}={0,2}", "ABSK")._replace(short=True),
    _prefixed("Alibaba key id", "LTAI5t<18>", f"{_A}{{12,20}}{_END}", "LTAI")._replace(short=True),
    _prefixed("Tencent key id", "AKID<32>", f"{_A}{{32}}{_END}", "AKID"),
    _prefixed("Yandex", "AQVN<36>", f"{_W}{{35,38}}(?!{_W})", "AQVN"),
    _prefixed("Google key, current", "AQ.Ab8<48>", f"{_W}{{40,}}", "AQ."),
    _prefixed("Google refresh token", "1//0<60>", f"{_W}{{40,}}", "1//0", "1//1")._replace(check=_generated),
    _prefixed("Google OAuth token", "ya29.<100>", f"{_W}{{30,}}", "ya29."),
    _prefixed("Google OAuth client secret", "GOCSPX-<28>", f"{_W}{{28}}", "GOCSPX-"),
    Rule(
        "Azure client secret",
        ("Q~",),
        r"[A-Za-z0-9_~.-]{3}\dQ~[A-Za-z0-9_~.-]{31,34}",
        "<3>8Q~<34>",
        lead=4,
        short=True,
    ),
    Rule(
        "Azure storage and service bus key",
        ("accountkey", "accesskey"),
        rf"(?i:accountkey|accesskey){_EQUALS}([A-Za-z0-9+/%]{{40,88}}(?:={{1,2}}|(?:%3[dD]){{1,2}})?)",
        "AccountKey=<86b>==",
        folded=True,
        short=True,
    ),
    Rule(
        "Azure shared access signature",
        ("sig=", "sig\\u003d"),
        rf"(?i:sig){_EQUALS}([A-Za-z0-9%+/]{{40,90}}(?:=|%3[dD]))",
        "&sig=<43b>%3D",
        folded=True,
        short=True,
    ),
    _prefixed("DigitalOcean", "dop_v1_<64h>", "[0-9a-f]{64}", "dop_v1_", "doo_v1_", "dor_v1_"),
    _prefixed("Fly", "fo1_<43>", f"[ar]?_?{_W}{{40,}}", "fo1_", "fm1", "fm2"),
    _prefixed("Supabase", "sbp_<40h>", f"{_W}{{30,}}", "sbp_", "sb_secret_"),
    _prefixed("Databricks", "dapi<32h>", f"[0-9a-f]{{32}}(?:-\\d)?{_END}", "dapi"),
    _prefixed("Cloudflare", "cfut_<48>", f"{_W}{{36,}}", "cfut_", "cfat_", "cfk_"),
    _prefixed("Cloudflare origin key", "v1.0-<24h>-<146h>", "[0-9a-f]{24}-[0-9a-f]{100,}", "v1.0-"),
    _prefixed("Vercel", "vcp_<56>", f"[aciprk]_{_A}{{24,}}", "vc"),
    _prefixed("Netlify", "nfp_<40>", f"{_A}{{32,}}", "nfp_", "nfc_", "nfo_", "nfu_", "nfb_"),
    _prefixed("Render", "rnd_<32>", f"{_A}{{28,40}}{_END}", "rnd_"),
    _prefixed("Heroku", "HRKU-AA<58>", f"{_W}{{36,}}", "HRKU-"),
    _prefixed("Tailscale", "tskey-auth-<17>-<32>", f"[a-z]{{3,12}}-{_A}{{8,}}(?:-{_A}{{16,}})?", "tskey-"),
    _prefixed("Pulumi", "pul-<40h>", f"[0-9a-f]{{40}}{_END}", "pul-"),
    _prefixed("1Password", "ops_eyJ<200>", f"eyJ{_W}{{60,}}", "ops_"),
    _prefixed(
        "Bitwarden", "0.<8h>-<4h>-<4h>-<4h>-<12h>.<30>:<22b>==", rf"{_UUID}\.{_A}{{30}}:[A-Za-z0-9+/]{{22}}==", "0."
    ),
    _prefixed("Infisical", "st.<24h>.<32h>.<32h>", r"[0-9a-f]{24}\.[0-9a-f]{32}(?:\.[0-9a-f]{32})?", "st."),
    _prefixed("PlanetScale", "pscale_tkn_<43>", f"(?:tkn|pw|oauth)_{_W}{{30,}}", "pscale_"),
    _prefixed("Neon", "napi_<64l>", f"[a-z0-9]{{40,}}{_END}", "napi_"),
    _prefixed("MongoDB Atlas", "mdb_sa_sk_<40>", f"{_W}{{36,}}", "mdb_sa_sk_"),
    _prefixed("Elastic", "essu_<80b>", "[A-Za-z0-9+/_-]{40,}={0,2}", "essu_", "essa_")._replace(short=True),
    _prefixed("Terraform Cloud", "<14>.atlasv1.<64>", rf"{_A}{{14}}\.atlasv1\.{_W}{{40,}}", ".atlasv1.", lead=14),
    _prefixed("HashiCorp Vault", "hvs.<90>", rf"[sbr]\.{_W}{{20,}}", "hv"),
    _prefixed("Doppler", "dp.pt.<43>", rf"(?:pt|st|ct|sa)\.[\w-]{{0,40}}\.?{_A}{{40,44}}", "dp."),
    # Messages and mail
    _prefixed(
        "Slack",
        "xoxb-<12d>-<12d>-<24>",
        "[a-ceopr-s][.-][A-Za-z0-9.-]{10,}",
        "xox",
    ),
    _prefixed("Slack cookie", "xoxd-<80>", "[A-Za-z0-9%/+=-]{20,}", "xoxd-"),
    _prefixed("Slack app token", "xapp-1-<11U>-<13d>-<64h>", r"\d-[A-Za-z0-9]{5,}-\d+-[A-Za-z0-9]{20,}", "xapp-"),
    Rule(
        "Slack webhook",
        ("hooks.slack.com/",),
        r"hooks\.slack\.com/(?:services|workflows|triggers)/([A-Za-z0-9/_-]{30,})",
        "https://hooks.slack.com/services/T<10U>/B<10U>/<24>",
        short=True,
    ),
    Rule(
        "Discord webhook",
        ("discord.com/api/", "discordapp.com/api/"),
        rf"discord(?:app)?\.com/api/(?:v\d+/)?webhooks/(\d{{15,20}}/{_W}{{40,}})",
        "https://discord.com/api/webhooks/<18d>/<68>",
        short=True,
    ),
    Rule(
        "Discord bot token",
        (".",),
        # The part before the first full stop is the bot's public id.
        rf"\.(?:(?<=[MNO]{_W}{{23}}\.)|(?<=[MNO]{_W}{{25}}\.))({_W}{{6}}\.{_W}{{27,40}})(?!{_W})",
        "M<13><12>.<6>.<38>",
        inside=True,
    ),
    Rule(
        "Teams webhook",
        (".webhook.office.com/",),
        rf"\.webhook\.office\.com/webhookb2/({_UUID}@{_UUID}/IncomingWebhook/[0-9a-f]{{32}}/{_UUID}(?:/{_W}{{1,80}})?)",
        "https://a.webhook.office.com/webhookb2/<8h>-<4h>-<4h>-<4h>-<12h>@<8h>-<4h>-<4h>-<4h>-<12h>/IncomingWebhook/"
        "<32h>/<8h>-<4h>-<4h>-<4h>-<12h>",
        short=True,
        inside=True,
    ),
    Rule(
        "Zapier webhook",
        ("hooks.zapier.com/",),
        r"hooks\.zapier\.com/hooks/catch/(\d{4,12}/[a-z0-9]{6,12})",
        "https://hooks.zapier.com/hooks/catch/<8d>/<7l>",
        short=True,
    ),
    _prefixed("Resend", "re_<8>_<24>", f"{_A}{{8}}_{_A}{{20,}}", "re_")._replace(check=_generated),
    _prefixed("Brevo", "xkeysib-<64h>-<16>", f"[0-9a-f]{{64}}-{_A}{{16}}", "xkeysib-", "xsmtpsib-"),
    _prefixed("Telegram bot token", "<10d>:AA<33>", rf"\d{{8}}:AA{_W}{{33}}(?!{_W})", ":AA", lead=8),
    _prefixed("SendGrid", "SG.<22>.<43>", rf"{_W}{{20,24}}\.{_W}{{39,50}}", "SG."),
    _prefixed("Twilio", "SK<32h>", f"[0-9a-f]{{32}}{_END}", "SK"),
    _prefixed("Mailgun", "key-<32h>", f"[0-9a-f]{{32}}{_END}", "key-"),
    # Money and shops
    _prefixed(
        "Stripe", "sk_live_<24>", f"{_A}{{20,}}", "sk_live_", "sk_test_", "rk_live_", "rk_test_", "sk_org_", "whsec_"
    ),
    _prefixed("Shopify", "shpat_<32h>", "(?:at|ca|pa|ss)_[0-9a-fA-F]{32}", "shp"),
    _prefixed("Square", "sq0atp-<22>", f"(?:atp|csp|idp)-{_W}{{22,}}", "sq0"),
    _prefixed("Square access token", "EAAA<60>", f"{_W}{{56,64}}(?!{_W})", "EAAA"),
    _prefixed(
        "Plaid", "access-production-<8h>-<4h>-<4h>-<4h>-<12h>", f"(?:production|development|sandbox)-{_UUID}", "access-"
    ),
    Rule(
        "PayPal and Braintree",
        ("access_token$",),
        r"access_token\$(?:production|sandbox)\$[a-z0-9]{16}\$[0-9a-f]{32}",
        "access_token$production$<16l>$<32h>",
        short=True,
    ),
    _prefixed("Razorpay", "rzp_live_<14>", f"(?:live|test)_{_A}{{14,}}", "rzp_"),
    _prefixed("Cal", "cal_live_<32h>", f"[0-9a-f]{{32}}{_END}", "cal_live_"),
    Rule(
        "Bitcoin key",
        ("5H", "5J", "5K", "K", "L"),
        f"(?:5[HJK]{_BASE58}{{49}}|[KL]{_BASE58}{{51}}){_END}",
        "5J<49B>",
        check=lambda match: len(re.findall("[0-9]", match[0])) >= 3,
    ),
    # Work and watching
    _prefixed("Airtable", "pat<14>.<64h>", rf"{_A}{{14}}\.[0-9a-f]{{64}}", "pat"),
    _prefixed("Figma", "figd_<40>", f"{_W}{{36,}}", "figd_", "figo", "figu_"),
    Rule(
        "Asana and FAL",
        (":",),
        rf":([0-9a-f]{{32}}){_END}",
        "2/<15d>/<15d>:<32h>",
        inside=True,
        check=lambda match: bool(_ID_BEFORE.search(match.string, max(0, match.start() - 44), match.start())),
    ),
    _prefixed("ClickUp", "pk_<8d>_<32U>", rf"\d{{6,10}}_[A-Z0-9]{{32}}{_END}", "pk_"),
    _prefixed("Trello", "ATTA<72h>", f"{_A}{{60,80}}{_END}", "ATTA"),
    _prefixed("HubSpot", "pat-na1-<8h>-<4h>-<4h>-<4h>-<12h>", rf"(?:na|eu|ap)\d-{_UUID}", "pat-"),
    _prefixed("Mapbox", "sk.eyJ<60>.<22>", rf"eyJ{_W}{{20,}}\.{_W}{{20,}}", "sk."),
    _prefixed("Dynatrace", "dt0c01.<24U>.<64U>", r"[a-z]\d\d\.[A-Z0-9]{24}\.[A-Z0-9]{64}", "dt0"),
    _prefixed("Honeycomb", "hcaik_<58l>", f"[abx][ilm]k_[a-z0-9]{{40,}}{_END}", "hc"),
    _prefixed("PostHog", "phx_<44>", f"{_A}{{32,}}", "phx_", "phs_"),
    _prefixed("LaunchDarkly", "sdk-<8h>-<4h>-<4h>-<4h>-<12h>", f"{_UUID}{_END}", "sdk-", "api-"),
    _prefixed("Contentful", "CFPAT-<43>", f"{_W}{{40,}}", "CFPAT-"),
    _prefixed("Webflow", "ws-<64h>", f"[0-9a-f]{{64}}{_END}", "ws-"),
    _prefixed("Zuplo", "zpka_<32h>_<8h>", f"{_A}{{24,}}(?:_{_A}{{6,}})?", "zpka_"),
    _prefixed("Apify", "apify_api_<36>", f"{_A}{{30,}}", "apify_api_"),
    _prefixed("Linear", "lin_api_<40>", f"{_A}{{32,}}", "lin_api_", "lin_oauth_"),
    _prefixed("Notion", "ntn_<46>", f"{_A}{{40,}}", "ntn_"),
    _prefixed("Notion, earlier", "secret_<43>", f"{_A}{{43}}{_END}", "secret_"),
    _prefixed("Atlassian", "ATATT3<180>", f"{_W}{{20,}}=?", "ATATT3", "ATCTT3", "ATBB"),
    _prefixed("Grafana", "glsa_<32>_<8h>", f"{_W}{{32,}}", "glsa_", "glc_"),
    _prefixed("New Relic", "NRAK-<27U>", "(?:AK|JS|II|RA)-[A-Z0-9]{20,}", "NR"),
    _prefixed("New Relic licence", "<36h>NRAL", "[0-9a-f]{36}NRAL", "NRAL", lead=36),
    _prefixed("Postman", "PMAK-<24h>-<34h>", "[0-9a-f]{24}-[0-9a-f]{34}", "PMAK-"),
    _prefixed("Sentry", "sntrys_<80>", "[sua]_[A-Za-z0-9_=+/-]{40,}", "sntry"),
    # Keys themselves
    Rule(
        "PEM private key and PGP block",
        ("-----BEGIN ",),
        r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
        r"(?:(?:[^\"-]|-(?!----)|\"(?![,:}\]])){0,20000}+-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
        # Without its end, as in the head of a file: the subsequent lines of base64 and headers.
        r"|(?:(?:\\[nrt]|[\s+>|]|\d{1,6}\t){0,24}+"
        r"(?:[A-Za-z0-9+/=]{16,}+|[A-Z][A-Za-z-]{2,20}: [^\n\\\"]{0,80})){1,400}+"
        r"(?:(?:\\[nrt]|[\s+>|]|\d{1,6}\t){1,24}+[A-Za-z0-9+/]{0,63}={1,2})?)",
        "-----BEGIN RSA PRIVATE KEY-----\n<64b>\n<64b>\n<20b>==\n-----END RSA PRIVATE KEY-----",
        short=True,
        check=_is_key_body,
    ),
    _prefixed(
        "OpenSSH key without its frame",
        "b3BlbnNzaC1rZXktdjEA<200b>",
        r"[A-Za-z0-9+/]{40,}+(?:(?:\\[nr]|\s){1,8}+[A-Za-z0-9+/]{32,}+){0,400}+={0,2}",
        "b3BlbnNzaC1rZXktdjEA",
    )._replace(short=True),
    _prefixed("age", "AGE-SECRET-KEY-1<58U>", "[A-Z0-9]{50,60}", "AGE-SECRET-KEY-1"),
    _prefixed("JSON web token", "eyJ<30>.eyJ<60>.<43>", rf"{_W}{{10,512}}+\.eyJ{_W}{{10,}}\.{_W}{{10,}}", "eyJ"),
    # By the words around them
    Rule(
        "password in an address",
        ("://",),
        r"://[^\s/:@\"'<>\\]{0,64}:([!#-.0-9;=?A-Z^-~]{3,256})@[\w\[.{$-]",
        "postgres://app:<12>@db.internal/app",
        short=True,
        inside=True,
        check=_is_password,
    ),
    Rule(
        "password in a connection string",
        ("password", "pwd"),
        rf"(?<=[;?&])(?i:password|pwd){_EQUALS}([A-Za-z0-9_.~!@#^*+/-]{{3,128}}+)",
        "jdbc:postgresql://db/app?user=me&password=<12>",
        folded=True,
        short=True,
        check=_is_password,
    ),
    Rule(
        "HTTP authorization",
        ("authorization",),
        r"(?i:authorization)[\"'\]\\]{0,3}\s{0,4}[:=,]\s{0,4}\\{0,2}[\"']?(?i:basic|bearer|token)\s([A-Za-z0-9+/=._~-]{8,4096})",
        "Authorization: Basic <24b>==",
        folded=True,
        short=True,
        check=_authorizes,
    ),
    Rule(
        "value with the name of a secret",
        ("key", "token", "secret", "passwd", "password", "passphrase", "pwd", "credential", "auth"),
        r"(?i:key|token|secret|passwd|password|passphrase|pwd|credentials?|auth)(?:_?\d{1,2})?"
        + _SEPARATOR
        + r"([A-Za-z0-9+/_.~!@#%^*-]{8,4096}+={0,2})(?!\()",
        "MISTRAL_API_KEY=<32>",
        folded=True,
        short=True,
        check=_assigned,
    ),
)


# --- masking ----------------------------------------------------------------------------------------------------------

_WORDS = bytes(ord("a") if chr(code).isalnum() or chr(code) in "_-" else ord(" ") for code in range(128)) + b" " * 128
_SHORT = [(rule, literal.encode()) for rule in RULES if rule.short for literal in rule.literals]
_LONG = [(rule, literal.encode()) for rule in RULES if not rule.short for literal in rule.literals]
_JOINED = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789")


def mask_secrets(text: str) -> str:
    """Replace keys in use by `MASK`, and other secrets by their first characters and `MASK`; idempotent.

    In JSON no mask extends past the end of a string, so that the result is still valid JSON.
    """
    text = mask_keys(text, weak=False)
    spans = sorted([*_spans(text), *_carried(text)])
    if not spans:
        return text
    pieces: list[str] = []
    done = 0
    for start, end, shown in spans:
        if start < done:  # two rules match here; the longer match counts
            if end > done:
                done = end
            continue
        pieces += [text[done:start], text[start : start + min(shown, (end - start) // 4)], MASK]
        done = end
    return "".join([*pieces, text[done:]])


def mask_words(text: str) -> str:
    """Return the words of a library or another program for screen and log: plain, keys masked."""
    return mask_secrets(mask_keys(plain_text(text)))


def mask_value(value: Any) -> Any:
    """Apply `mask_secrets` to lists and mappings; keys stay unchanged."""
    if isinstance(value, str):
        return mask_secrets(value)
    if isinstance(value, dict):
        return {key: mask_value(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [mask_value(inner) for inner in value]
    return value


def adds_mask(before: str, after: str) -> bool:
    """Return whether a new text contains more masks than the old one: writing it would overwrite the secret."""
    return MASK in after and after.count(MASK) > before.count(MASK)


class _Span(NamedTuple):
    """Characters to mask; the first `shown` may stay."""

    start: int
    end: int
    shown: int = _SHOWN


def _spans(text: str, *, decode: bool = True) -> Iterator[_Span]:
    plain = text.encode("ascii", "replace")  # one byte per character, so that offsets are the same
    folded = plain.lower()
    dense = _Dense(plain)
    for rule, needle in _SHORT:
        haystack = folded if rule.folded else plain
        if needle in haystack:
            yield from _matches(rule, text, plain, _offsets(haystack, needle))
    for rule, needle in _LONG if dense.text else ():
        if needle in dense.text:
            yield from _matches(rule, text, plain, dense.offsets(needle))
    for word in _BASE64.finditer(dense.text) if decode else ():
        if _decodes_to_secret(word[0]):
            start = dense.offset(word.start())
            yield _Span(start, start + len(word[0]))


_BASE64 = re.compile(rb"(?<![A-Za-z0-9_-])[A-Za-z0-9_-]{40,}")
_PRINTABLE = frozenset(b"\t\n\r" + bytes(range(32, 127)))


def _decodes_to_secret(word: bytes) -> bool:
    """Return whether a word is the base64 of a text with a secret, as Kubernetes writes them; decoded only once."""
    try:
        text = base64.b64decode(word[: len(word) // 4 * 4], altchars=b"-_")
    except ValueError:
        return False
    return _PRINTABLE.issuperset(text[:_SURE]) and any(
        True for _ in _spans(text.decode("ascii", "replace"), decode=False)
    )


_SURE = 24
"""Bytes by which decoded text is told from a random value or an identifier."""

_INVISIBLE = "\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\u2061\u2062\u2063\u2064\ufeff"
_CARRIERS = (
    (("\x1b[",), r"\x1b\[[0-9;]{0,16}[mK]"),
    (("\\u",), r"\\u(?:001[bB]\[[0-9;]{0,16}[mK]|00([0-7][0-9A-Fa-f])|200[b-fB-F]|(?:feff|FEFF))"),
    (("%",), "%([2-7][0-9A-Fa-f])"),
    (_INVISIBLE, f"[{_INVISIBLE}]"),
)
"""What hides a key from a search for its characters: colours, two ways of escaping, invisible characters. Each by what
a text with one contains, and its pattern."""
_CARRIER = re.compile("|".join(pattern for _, pattern in _CARRIERS))
_SPACE = re.compile(r"\s")
_LONGEST_CARRIED = 4_096


def _carried(text: str) -> Iterator[_Span]:
    """Yield the secrets in words that hold carriers, with what carries them."""
    offsets = array("q")
    decoded: list[str] = []
    for start, end in _carrying(text):
        at = start
        for carrier in _CARRIER.finditer(text, start, end):
            decoded.append(text[at : carrier.start()])
            offsets.extend(range(at, carrier.start()))
            if code := carrier[1] or carrier[2]:
                decoded.append(chr(int(code, 16)))
                offsets.append(carrier.start())
            at = carrier.end()
        decoded += text[at:end], "\n"
        offsets.extend(range(at, end + 1))
    for span in _spans("".join(decoded)):
        yield _Span(offsets[span.start], offsets[span.end], 0)


def _length_of_word(text: str) -> int:
    """Return how many characters come before the first blank."""
    blank = _SPACE.search(text)
    return blank.start() if blank else len(text)


def _carrying(text: str) -> Iterator[tuple[int, int]]:
    """Yield the words of a text that hold carriers, in order."""
    kinds = [pattern for needles, pattern in _CARRIERS if any(needle in text for needle in needles)]
    done = 0
    for start in sorted(found.start() for kind in kinds for found in _compiled(kind).finditer(text)):
        if start < done:
            continue
        begin = start - _length_of_word(text[max(done, start - _LONGEST_CARRIED) : start][::-1])
        done = start + _length_of_word(text[start : start + _LONGEST_CARRIED])
        if done - begin >= _RUN:
            yield begin, done


def _matches(rule: Rule, text: str, plain: bytes, offsets: Iterator[int]) -> Iterator[_Span]:
    pattern = _compiled(rule.pattern)
    done = 0
    for at in offsets:
        if at < done or not (rule.folded or rule.lead or rule.inside or _may_start(plain, at)):
            continue
        match = pattern.match(text, max(0, at - rule.lead))
        if match is None or (rule.check is not None and not rule.check(match)):
            continue
        start, done = match.span(pattern.groups and 1)
        if not text.startswith(MASK, done):  # otherwise the secret is masked already
            yield _Span(start, done)


def _offsets(plain: bytes, needle: bytes) -> Iterator[int]:
    at = plain.find(needle)
    while at >= 0:
        yield at
        at = plain.find(needle, at + 1)


def _is_name(run: bytes) -> bool:
    """Return whether a run of word characters is a name in one case without digits, which no key is."""
    return (run.islower() or run.isupper()) and not _DIGIT.search(run)


_DIGIT = re.compile(rb"\d")


class _Dense:
    """Concatenated parts of a text that hold `_RUN` consecutive word characters and are not names: a few percent."""

    def __init__(self, plain: bytes) -> None:
        words = plain.translate(_WORDS)
        needle = b"a" * _RUN
        pieces: list[bytes] = []
        self._starts: list[int] = []
        self._shifts: list[int] = []
        size = done = 0
        at = words.find(needle)
        while at >= 0:
            end = words.find(b" ", at)
            if end < 0:
                end = len(words)
            if not _is_name(plain[at:end]):
                start = max(done, at - _BEFORE_RUN)
                pieces.append(plain[start:end])
                self._starts.append(size)
                self._shifts.append(start - size)
                size += end - start + 1
                done = end
            at = words.find(needle, end)
        self.text = b"\n".join(pieces)

    def offsets(self, needle: bytes) -> Iterator[int]:
        """Return the offsets of a literal in the whole text."""
        return map(self.offset, _offsets(self.text, needle))

    def offset(self, at: int) -> int:
        """Return the offset in the whole text of an offset in the dense one."""
        return at + self._shifts[bisect.bisect_right(self._starts, at) - 1]


def _may_start(plain: bytes, at: int) -> bool:
    """Return whether a key can start here: not inside a word, except after an escape (`\\n`, `\\u003d`, `%3D`)."""
    if at == 0 or plain[at - 1] not in _JOINED:
        return True
    return (
        (plain[at - 2 : at - 1] == b"\\" and plain[at - 1] in b"bfnrt")
        or plain[max(0, at - 6) : max(0, at - 4)] == b"\\u"
        or (at > 2 and plain[at - 3] == ord("%"))
    )


@functools.cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)
