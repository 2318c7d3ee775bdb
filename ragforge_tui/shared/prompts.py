"""Skills and own commands: texts of the user or of a project that a word in the prompt brings in."""

from __future__ import annotations

import re
import shlex
from typing import Literal

import msgspec

_PLACE = re.compile(r"\$(ARGUMENTS\b|[1-9]\b)")


class OwnPrompt(msgspec.Struct, frozen=True, kw_only=True):
    """A skill or an own command, as the screen lists and sends it.

    Attributes:
        origin: Whether it is the user's or the project's.
        arguments: What may follow its name, for the menu.
        text: The message that a command sends; empty for a skill, which the agent reads itself.
    """

    kind: Literal["skill", "command"]
    name: str
    description: str
    origin: Literal["own", "project"]
    arguments: str = ""
    text: str = ""


def message_of(prompt: OwnPrompt, arguments: str) -> str:
    """Return the message that a skill or a command sends.

    In a command, ``$ARGUMENTS`` is what follows its name and ``$1`` to ``$9`` are the words of it; a command with
    none of them gets the arguments at its end.
    """
    if prompt.kind == "skill":
        order = f"Use the skill {prompt.name}: read it with read_skill, then follow it."
        return f"{order}\n\n{arguments}" if arguments else order
    try:
        words = shlex.split(arguments)
    except ValueError:  # an unpaired quote
        words = arguments.split()

    def value(match: re.Match[str]) -> str:
        if match[1] == "ARGUMENTS":
            return arguments
        number = int(match[1])
        return words[number - 1] if number <= len(words) else ""

    text, places = _PLACE.subn(value, prompt.text)
    return text.strip() if places or not arguments else f"{prompt.text.strip()}\n\n{arguments}"
