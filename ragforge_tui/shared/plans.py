"""What a plan looks like, so that planning mode asks about plans and not about a greeting."""

from __future__ import annotations

import re

CARRY_OUT = "Carry out the plan."
"""The message that an approved plan is carried out with."""
_FENCE = re.compile(r"^ {0,3}(```|~~~).*?(?:^ {0,3}\1|\Z)", re.DOTALL | re.MULTILINE)
_STEP = re.compile(r"^ {0,3}(?:[-*+•]|\d{1,3}[.)]|#{1,6}|\|)[ \t]+\S", re.MULTILINE)
_NAMED = re.compile(r"`[^`\n]+`|(?<![\w.-])[.-]*\w[\w.-]*/[\w./-]*\w|(?<![\w-])[\w-]{2,}\.[A-Za-z]\w{0,4}\b")
_FEWEST_STEPS = 2


def is_plan(answer: str) -> bool:
    """Return whether an answer, given while planning, can be carried out.

    That is what planning mode asks the model for: several steps, as a list, below headings or in a table, and the
    files or commands they are about.
    """
    prose = _FENCE.sub("`code`", answer)
    return len(_STEP.findall(prose)) >= _FEWEST_STEPS and _NAMED.search(prose) is not None
