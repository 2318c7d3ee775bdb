"""Texts with the shape of keys, drawn when they are needed: no file of this repository holds one."""

from __future__ import annotations

import random
import re
import string

_KINDS = {
    "": string.ascii_letters + string.digits,
    "d": string.digits,
    "h": "0123456789abcdef",
    "U": string.ascii_uppercase + string.digits,
    "l": string.ascii_lowercase + string.digits,
    "B": "".join(sorted({*string.ascii_letters, *string.digits} - {*"0OIl"})),
    "b": string.ascii_letters + string.digits + "+/",
}


def filled(template: str, seed: int = 1) -> str:
    """A text of a shape; the same for the same seed."""
    drawn = random.Random(seed)

    def piece(match: re.Match[str]) -> str:
        return "".join(drawn.choices(_KINDS[match[2]], k=int(match[1])))

    return re.sub(r"<(\d+)([a-zA-Z]?)>", piece, template)


GITHUB_KEY = filled("github_pat_<22>_<59>")
