"""Times of a conversation beside those of a request (`shared/limits.py`): what is stored, looked at or tried how often.

They are one value, so that a test that measures what happens, and not how fast the machine is, sets them in one place.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class ConversationLimits:
    """Times of a conversation, in seconds.

    Attributes:
        checkpoint: Between two stored states of an answer; together with the write it stays below the one second of
            text that a crash may lose.
        silence: A silent model is reported after this time, then after twice that, and after the first minute every
            minute.
        export_running: Least time between two exports of a conversation while its turn is running.
        export_ended: Longest delay of a turn's end by the write of its files, which takes a few milliseconds on an idle
            machine.
        first_pause: Of background work after a failed request; doubled after each further one.
        longest_pause: The most that this becomes.
        idle: Rest after a turn before the text on the whole conversation is written and extracts are rewritten.
        first_patience: Rest after a turn before a model on this machine is asked in the background, once a turn has
            cut off such a request; doubled each time, halved after an answer.
        longest_patience: The most that this becomes.
        look: Between two looks at what other processes do in a conversation.
        quiet: Time without a change after which looks are rarer: most chats that stay open are not in use.
        quiet_look: Between two looks from then on.
        reminder: For what memory says before a call runs; what takes longer is not said.
    """

    checkpoint: float = 0.8
    silence: float = 15.0
    export_running: float = 3.0
    export_ended: float = 5.0
    first_pause: float = 60.0
    longest_pause: float = 1_800.0
    idle: float = 20.0
    first_patience: float = 5.0
    longest_patience: float = 60.0
    look: float = 1.0
    quiet: float = 60.0
    quiet_look: float = 3.0
    reminder: float = 0.15


CONVERSATION = ConversationLimits()
