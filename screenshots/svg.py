"""Pictures as files that look the same on every machine: SVG with its font embedded."""

from __future__ import annotations

import base64
import html
import io
import re
from pathlib import Path

from fontTools import subset
from fontTools.ttLib import TTFont

from screenshots.film import FONT

FONT_FILES = {"400": "DejaVuSansMono.ttf", "700": "DejaVuSansMono-Bold.ttf"}
"""Weight and file name of each face."""

_TEXT = re.compile(r'textLength="(?P<length>[\d.]+)"(?P<more>[^>]*)>(?P<text>[^<]*)<')
"""A piece of text and its drawn length, which does not depend on the font."""
_FAMILY = re.compile(r"font-family:\s*[^;]+;")


def with_font(picture: str, fonts: Path) -> str:
    """Return the picture with the letters it uses embedded, instead of a font loaded from the network.

    Args:
        fonts: Folder with the files of `FONT_FILES`.
    """
    letters = html.unescape("".join(match["text"] for match in _TEXT.finditer(picture)))
    faces = "\n".join(
        f'@font-face {{ font-family: "{FONT}"; font-weight: {weight}; src: url("data:font/woff2;base64,'
        f'{_subset(fonts / name, letters)}") format("woff2"); }}'
        for weight, name in FONT_FILES.items()
    )
    plain = _FAMILY.sub(f'font-family: "{FONT}", monospace;', picture)
    return plain.replace("<style>", f"<style>\n{faces}\n", 1)


def _subset(file: Path, letters: str) -> str:
    font = TTFont(file)
    options = subset.Options(layout_features=[], hinting=False, flavor="woff2", drop_tables=["FFTM"])
    subsetter = subset.Subsetter(options)
    subsetter.populate(text=letters)
    subsetter.subset(font)
    font.flavor = "woff2"
    out = io.BytesIO()
    font.save(out)
    return base64.b64encode(out.getvalue()).decode()
