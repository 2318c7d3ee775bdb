"""The command that starts this program again from the user's folder, for lines that tell what to type next."""

from __future__ import annotations

import shlex
import shutil
import sys
from pathlib import Path

from ragforge_tui.shared.records import SHORT_ID

NAME = "ragforge-chat"
_PACKAGE = Path(__file__).parents[1]


def own_command() -> str:
    """Return how this program is called here: its name if the shell finds it by that, else the path of the script.

    The virtual environment of a clone is usually not on the PATH.
    """
    script = Path(sys.argv[0])
    if script.name == "__main__.py" and script.is_relative_to(_PACKAGE):
        return f"{_from_here(Path(sys.executable))} -m ragforge_tui"
    if script.name != NAME or not script.is_file():
        return NAME
    found = shutil.which(NAME)
    return NAME if found is not None and script.samefile(found) else _from_here(script)


def resume_command(conversation_id: str) -> str:
    """Return the command that resumes a conversation."""
    return f"{own_command()} --resume {conversation_id[:SHORT_ID]}"


def _from_here(path: Path) -> str:
    try:
        place, here = path.absolute(), Path.cwd()
    except FileNotFoundError:  # The current folder is gone.
        return shlex.quote(str(path))
    below = place.is_relative_to(here) and place.parent != here
    return shlex.quote(str(place.relative_to(here) if below else place))
