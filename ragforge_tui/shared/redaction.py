"""Masking of keys and passwords, applied to every text before it is stored, logged, exported or sent to a model.

`RULES` is data: one rule for each published format of a key, and a few that recognise a secret by the words around it.
A masked key keeps its first characters, so that a reader can tell which key it was. Shared by all packages; imports
no other module of the package.

Cost: formats that start with a literal and continue for at least `_RUN` word characters are searched for only where a
run of that length exists. Every pattern is bounded, so time grows linearly with the text, even a hostile one.
"""

from __future__ import annotations

import bisect
import functools
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

MASK = "…[masked]"
"""Replacement for the hidden part of a secret."""

_SHOWN = 6
_JUDGED = 64
"""Number of leading characters by which a value is judged to be random or not."""
_RUN = 20
_BEFORE_RUN = 24
"""Largest distance from the start of a literal to the run of word characters after it (`xapp-1-A0123456789-`)."""


class Rule(NamedTuple):
    """Format of a secret.

    Attributes:
        literals: Literal starts of the pattern; it is tried only where one of them occurs.
        pattern: Matched at a literal; its first group, or the whole match without one, is masked.
        example: Template of a text in this format: ``<36>`` means 36 random letters and digits, ``<36d>`` digits,
            ``<36h>`` hexadecimal digits, ``<36U>`` and ``<36l>`` digits with capital or small letters, ``<36b>``
            base64.
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


def _assigned(match: re.Match[str]) -> bool:
    value = match[1][:_JUDGED]
    if _is_random(value) or (match[0][:1] in "pP" and _is_strong(value)):
        return True
    # As in a .env file or the output of `env`: an upper-case name at the start of a word, without spaces.
    line = _ENV_LINE.search(match.string, max(0, match.start() - 64), match.start(1))
    return line is not None and _is_given(value)


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
    _prefixed("Docker", "dckr_pat_<27>", f"{_W}{{20,}}", "dckr_pat_", "dckr_oat_"),
    # Clouds and hosting
    _prefixed("AWS key id", "AKIA<16U>", "[0-9A-Z]{16}(?![0-9A-Za-z])", "AKIA", "ASIA"),
    Rule(
        "AWS secret key",
        ("secret_access_key", "secretaccesskey", "secret-access-key", "secret access key"),
        r"(?i:secret[_ -]?access[_ -]?key)" + _SEPARATOR + r"([A-Za-z0-9+/]{40})(?![A-Za-z0-9+/=])",
        "aws_secret_access_key = <40b>",
        folded=True,
        short=True,
    ),
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
    _prefixed("Fly", "fo1_<43>", f"{_W}{{40,}}", "fo1_", "fm1_", "fm1r_", "fm1a_", "fm2_", "fm2r_", "fm2a_"),
    _prefixed("Supabase", "sbp_<40h>", f"{_W}{{30,}}", "sbp_", "sb_secret_"),
    _prefixed("Databricks", "dapi<32h>", f"[0-9a-f]{{32}}(?:-\\d)?{_END}", "dapi"),
    _prefixed("Terraform Cloud", "<14>.atlasv1.<64>", rf"{_A}{{14}}\.atlasv1\.{_W}{{40,}}", ".atlasv1.", lead=14),
    _prefixed("HashiCorp Vault", "hvs.<90>", f"{_W}{{20,}}", "hvs.", "hvb.", "hvr."),
    _prefixed("Doppler", "dp.pt.<43>", rf"[\w-]{{0,40}}\.?{_A}{{40,44}}", "dp.pt.", "dp.st.", "dp.ct.", "dp.sa."),
    # Messages and mail
    _prefixed(
        "Slack",
        "xoxb-<12d>-<12d>-<24>",
        "[A-Za-z0-9.-]{10,}",
        *("xoxa-", "xoxb-", "xoxe-", "xoxe.", "xoxo-", "xoxp-", "xoxr-", "xoxs-", "xoxc-"),
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
    _prefixed("Telegram bot token", "<10d>:AA<33>", rf"\d{{8}}:AA{_W}{{33}}(?!{_W})", ":AA", lead=8),
    _prefixed("SendGrid", "SG.<22>.<43>", rf"{_W}{{20,24}}\.{_W}{{39,50}}", "SG."),
    _prefixed("Twilio", "SK<32h>", f"[0-9a-f]{{32}}{_END}", "SK"),
    _prefixed("Mailgun", "key-<32h>", f"[0-9a-f]{{32}}{_END}", "key-"),
    # Money and shops
    _prefixed(
        "Stripe", "sk_live_<24>", f"{_A}{{20,}}", "sk_live_", "sk_test_", "rk_live_", "rk_test_", "sk_org_", "whsec_"
    ),
    _prefixed("Shopify", "shpat_<32h>", "[0-9a-fA-F]{32}", "shpat_", "shpca_", "shppa_", "shpss_"),
    _prefixed("Square", "sq0atp-<22>", f"{_W}{{22,}}", "sq0atp-", "sq0csp-", "sq0idp-"),
    _prefixed("Square access token", "EAAA<60>", f"{_W}{{56,64}}(?!{_W})", "EAAA"),
    # Work and watching
    _prefixed("Linear", "lin_api_<40>", f"{_A}{{32,}}", "lin_api_", "lin_oauth_"),
    _prefixed("Notion", "ntn_<46>", f"{_A}{{40,}}", "ntn_"),
    _prefixed("Notion, earlier", "secret_<43>", f"{_A}{{43}}{_END}", "secret_"),
    _prefixed("Atlassian", "ATATT3<180>", f"{_W}{{20,}}=?", "ATATT3", "ATCTT3", "ATBB"),
    _prefixed("Grafana", "glsa_<32>_<8h>", f"{_W}{{32,}}", "glsa_", "glc_"),
    _prefixed("New Relic", "NRAK-<27U>", "[A-Z0-9]{20,}", "NRAK-", "NRJS-", "NRII-", "NRRA-"),
    _prefixed("New Relic licence", "<36h>NRAL", "[0-9a-f]{36}NRAL", "NRAL", lead=36),
    _prefixed("Postman", "PMAK-<24h>-<34h>", "[0-9a-f]{24}-[0-9a-f]{34}", "PMAK-"),
    _prefixed("Sentry", "sntrys_<80>", "[A-Za-z0-9_=+/-]{40,}", "sntrys_", "sntryu_", "sntrya_"),
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
    ),
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
    """Replace each secret by its first characters and `MASK`; idempotent.

    In JSON no mask extends past the end of a string, so that the result is still valid JSON.
    """
    spans = sorted(_spans(text))
    if not spans:
        return text
    pieces: list[str] = []
    done = 0
    for start, end in spans:
        if start < done:  # two rules match here; the longer match counts
            if end > done:
                done = end
            continue
        pieces += [text[done:start], text[start : start + min(_SHOWN, (end - start) // 4)], MASK]
        done = end
    return "".join([*pieces, text[done:]])


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


def _spans(text: str) -> Iterator[tuple[int, int]]:
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


def _matches(rule: Rule, text: str, plain: bytes, offsets: Iterator[int]) -> Iterator[tuple[int, int]]:
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
            yield start, done


def _offsets(plain: bytes, needle: bytes) -> Iterator[int]:
    at = plain.find(needle)
    while at >= 0:
        yield at
        at = plain.find(needle, at + 1)


class _Dense:
    """Concatenated parts of a text that hold `_RUN` consecutive word characters: a few percent of most texts."""

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
            start = max(done, at - _BEFORE_RUN)
            pieces.append(plain[start:end])
            self._starts.append(size)
            self._shifts.append(start - size)
            size += end - start + 1
            done = end
            at = words.find(needle, end)
        self.text = b"\n".join(pieces)

    def offsets(self, needle: bytes) -> Iterator[int]:
        """Yield the offsets of a literal in the whole text."""
        for at in _offsets(self.text, needle):
            yield at + self._shifts[bisect.bisect_right(self._starts, at) - 1]


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
