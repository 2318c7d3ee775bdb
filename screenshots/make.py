"""Make the film and the pictures of the README: ``python -m screenshots.make``.

The real program runs in a terminal; the answers of the model are in ``answers.json``, the session of last week in
``last_week.json``. Their words are written to ``words.txt``, with which a test compares those that the program draws.
Needs ``pip install -e '.[test,pictures]'``, git, bash and the DejaVu fonts.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path

from screenshots import words
from screenshots.film import animated
from screenshots.past import HERE
from screenshots.stage import Stage
from screenshots.story import FILM, LONGEST_SECONDS, STILLS, played
from screenshots.svg import with_font
from screenshots.terminal import BACKGROUND

PATIENCE = 120.0


def write(stage: Stage, out: Path, fonts: Path) -> None:
    """Write the film, the pictures and their words.

    Raises:
        ValueError: The film is too long.
    """
    frames = [frame for scene in stage.scenes for _, frame in scene.frames]
    lengths = [length for scene in stage.scenes for length in scene.lengths]
    if sum(lengths) > LONGEST_SECONDS + 0.01:
        raise ValueError(f"the film has {sum(lengths):.1f} s; at most {LONGEST_SECONDS} are wanted")
    (out / f"{FILM}.svg").write_text(with_font(animated(frames, lengths, BACKGROUND), fonts), encoding="utf-8")
    for name in STILLS:
        picture = animated([stage.pictures[name]], [1.0], BACKGROUND)
        (out / f"{name}.svg").write_text(with_font(picture, fonts), encoding="utf-8")
    shown = [words.Shown(name, stage.marks[name], words.text_of(frame)) for name, frame in stage.pictures.items()]
    (out / "words.txt").write_text(words.written(shown), encoding="utf-8")


def main() -> None:
    """Make the film and the pictures."""
    parser = argparse.ArgumentParser(description="Make the film and the pictures of the README.")
    parser.add_argument("--out", type=Path, default=HERE)
    parser.add_argument("--fonts", type=Path, default=Path("/usr/share/fonts/truetype/dejavu"))
    options = parser.parse_args()
    write(asyncio.run(played(filming=True, patience=PATIENCE)), options.out, options.fonts)
    sys.stdout.write(f"film and pictures in {options.out}\n")


if __name__ == "__main__":
    main()
