"""Words for the end of a command."""

from __future__ import annotations

import signal


def ending(status: int | None, timed_out: float | None, *, any_left: bool, program: str = "", failed: str = "") -> str:
    """Return how a command ended, as a sentence.

    Args:
        status: Its exit status, negative for a signal.
        timed_out: The limit in seconds, if it was ended at it.
        any_left: Whether processes of it still ran, and were ended.
        program: The program whose status it is, where others ran before it.
        failed: The outcome of the tests that it ran, if some failed.
    """
    if timed_out is not None:
        return f"Timed out after {timed_out:g} s; the command and its children were ended."
    if status is not None and status < 0:
        text = f"Ended by signal {_signal_name(-status)}."
    else:
        text = f"Exit status {status}{f' of {program}' if program else ''}{f'; tests: {failed}' if failed else ''}."
    return f"{text} Its background processes were ended." if any_left else text


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)
