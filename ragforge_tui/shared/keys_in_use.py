"""API keys in use: trimmed and checked where one is read, and masked in every text whatever form it takes there.

`redaction` knows a key by its shape. Many gateways' keys have none, and libraries quote what they were given: as it is,
as Python or JSON writes it, in an address, or in base64. So every key that is read is remembered here, for this
process, and the functions of `redaction` hide it.
"""

from __future__ import annotations

import base64
import json
import re
import unicodedata
from collections.abc import Mapping
from urllib.parse import quote, quote_plus

from ragforge_tui.shared.errors import ModelError

MASK = "…[masked]"
"""Replacement for a secret, or for the hidden part of one."""
_LEAST = 6
"""Characters of the shortest key that is masked in the words of a library."""
_STRONG = 12
"""Characters of the shortest key that is masked everywhere: a shorter one may be a word of the conversation."""
_BLANK = r"[\s\x00-\x20\x7f-\xa0\u200b-\u200f\u2060\ufeff]+"
_EDGES = re.compile(rf"\A{_BLANK}|{_BLANK}\Z")
_NOT_IN_HEADERS = re.compile(r"[^\x20-\x7e]")
_NAMES = ("_API_KEY", "_ACCESS_KEY", "_TOKEN")

_forms: dict[str, bool] = {}
"""Each form of each key in use, the longest first, and whether it is masked everywhere."""


def usable_key(value: str, name: str) -> str:
    """Return a key without blanks, line ends and byte order marks around it, and mask it from now on.

    Args:
        name: Where it is from, for the error: a variable, a setting, the keyring.

    Raises:
        ModelError: kind ``bad_key``: no HTTP header can hold it.
    """
    key = _EDGES.sub("", value)
    hide(key)
    if (odd := _NOT_IN_HEADERS.search(key)) is not None:
        sign = odd[0] if odd[0].isprintable() else unicodedata.name(odd[0], "").lower() or f"U+{ord(odd[0]):04X}"
        raise ModelError(
            f"The key in {name} cannot be sent: its character {odd.start() + 1} is “{sign}”.",
            kind="bad_key",
            todo="Copy it again: keys have only letters, digits and signs of ASCII.",
        )
    return key


def keys_of(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that hold keys by their names, trimmed, and mask them from now on."""
    found = {name: _EDGES.sub("", value) for name, value in environment.items() if name.endswith(_NAMES)}
    for key in found.values():
        hide(key)
    return found


def hide(secret: str) -> None:
    """Mask a secret from now on, in every form."""
    if len(secret) < _LEAST or secret in _forms:
        return
    strong = len(secret) >= _STRONG and any(map(str.isdigit, secret)) and any(map(str.isalpha, secret))
    for form in (*_written(secret), *_encoded(secret)):
        _forms[form] = strong or _forms.get(form, False)
    ordered = sorted(_forms.items(), key=lambda entry: -len(entry[0]))
    _forms.clear()
    _forms.update(ordered)


def mask_keys(text: str, *, weak: bool = True) -> str:
    """Replace the keys in use in a text.

    Args:
        weak: Also those that may be words, as in a text that a library wrote.
    """
    for form, strong in _forms.items():
        if (weak or strong) and form in text:
            text = text.replace(form, MASK)
    return text


def _written(secret: str) -> set[str]:
    python, in_json = repr(secret)[1:-1], json.dumps(secret)[1:-1]
    percent = {quote(secret, safe=""), quote(secret), quote_plus(secret)}
    lower = {re.sub("%[0-9A-F]{2}", lambda code: code[0].lower(), form) for form in percent}
    return {secret, python, in_json} | percent | lower


def _encoded(secret: str) -> set[str]:
    """Return the common part of the base64 of all texts with a secret, for each of three offsets."""
    found: set[str] = set()
    for before in range(3):
        data = bytes(before) + secret.encode("utf-8", "surrogatepass")
        whole = base64.b64encode(data).rstrip(b"=").decode()
        # The characters at both ends depend on the neighbours of the secret too.
        core = whole[-(-before * 8 // 6) : len(data) * 8 // 6]
        found |= {core, core.replace("+", "-").replace("/", "_")}
    return {form for form in found if len(form) >= _LEAST}
