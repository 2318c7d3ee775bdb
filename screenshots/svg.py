"""Pictures as files that look the same on every machine: SVG with its font embedded, and PNG."""

from __future__ import annotations

import base64
import html
import io
import re
from pathlib import Path

import resvg_py
from fontTools import subset
from fontTools.ttLib import TTFont

from screenshots.film import FONT

FONT_FILES = {"400": "DejaVuSansMono.ttf", "700": "DejaVuSansMono-Bold.ttf"}
"""Weight and file name of each face."""

_TEXT = re.compile(r'textLength="(?P<length>[\d.]+)"(?P<more>[^>]*)>(?P<text>[^<]*)<')
"""A piece of text and its drawn length, which does not depend on the font."""
_FACES = re.compile(r"@font-face \{.*?\}", re.DOTALL)
_FAMILY = re.compile(r"font-family:\s*[^;]+;")


def without_folder(picture: str, folder: str) -> str:
    """Return the picture with ``~`` for a folder, the text that names it shortened by as much."""

    def shorter(match: re.Match[str]) -> str:
        before = match["text"]
        if folder not in before:
            return match[0]
        after = before.replace(folder, "~")
        length = float(match["length"]) * len(html.unescape(after)) / len(html.unescape(before))
        return f'textLength="{length:g}"{match["more"]}>{after}<'

    return _TEXT.sub(shorter, picture)


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
    plain = _FAMILY.sub(f'font-family: "{FONT}", monospace;', _FACES.sub("", picture))
    return plain.replace("<style>", f"<style>\n{faces}\n", 1)


def _subset(file: Path, letters: str) -> str:
    font = TTFont(file)
    options = subset.Options(layout_features=[], hinting=False, flavor="woff2")
    subsetter = subset.Subsetter(options)
    subsetter.populate(text=letters)
    subsetter.subset(font)
    font.flavor = "woff2"
    out = io.BytesIO()
    font.save(out)
    return base64.b64encode(out.getvalue()).decode()


def png(picture: str, fonts: Path, *, zoom: float = 1.25) -> bytes:
    """Return the picture as PNG, `zoom` times the size of the SVG."""
    named = _FAMILY.sub(f'font-family: "{FONT}";', _FACES.sub("", picture))
    files = [str(fonts / name) for name in FONT_FILES.values()]
    return bytes(
        resvg_py.svg_to_bytes(svg_string=named, zoom=zoom, font_files=files, skip_system_fonts=True, font_family=FONT)
    )
