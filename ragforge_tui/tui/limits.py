"""Limits of the screen: how long something stays, is waited for, or is too early to be meant; how little is too
little.

The times are one value, so that a test that measures what is shown, and not how fast the machine is, sets them in one
place.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class ScreenLimits:
    """Times of the screen, in seconds.

    Attributes:
        read: No key counts as an answer for this long after a question was shown or got the focus: it was typed before.
        read_next: The same for a question about the next call of a reply: the user is answering already.
        batch: Time after an answer in which a question about the next call counts as such.
        gap: Time after an answer in which a letter like it is not taken for a message: the next question may be on its
            way.
        alone: A key closer to another than this is part of a paste, or held down, and answers nothing.
        type_ahead: Longest time for which keys are buffered, whatever happened to the key before them.
        hint: For which the status line shows a hint in place of the keys.
        key_note: For which a note takes the place of the keys.
        lit: For which a summary stays highlighted after it was made or recalled.
        mark: For which the turns that were jumped to stay marked.
        mode: A mode that answers the waiting question holds only after this long: shift+tab may be passing it by.
        settle: A search starts this long after the last letter.
        rest: Only an entry on which the cursor rests this long is fetched: walking through a list requests nothing.
        follow: The list of conversations is read again this often.
        draft: A draft is stored at most this often.
        blink: Least time without a key after which the cursor stops blinking, as in most terminals; each blink draws
            the prompt.
    """

    read: float = 0.7
    read_next: float = 0.25
    batch: float = 3.0
    gap: float = 0.7
    alone: float = 0.1
    type_ahead: float = 3.0
    hint: float = 2.0
    key_note: float = 4.0
    lit: float = 4.0
    mark: float = 4.0
    mode: float = 0.8
    settle: float = 0.15
    rest: float = 0.1
    follow: float = 2.0
    draft: float = 0.5
    blink: float = 10.0


SCREEN = ScreenLimits()
LEAST_BESIDE = 24
"""Columns of the chat next to a dialog over it; fewer show nothing but cut words, so all are covered."""
