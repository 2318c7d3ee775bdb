"""Longest waits of a request for what is to be in it.

Together they are the delay that the memory may add between Enter and the request, so they stand on one page. A test or
a benchmark that measures what is found, and not how fast the machine is, sets them in one place.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class RequestLimits:
    """Longest waits of a request, in seconds.

    Attributes:
        load: For the memory of its conversation to load; it then uses the part loaded so far.
        past: For older turns to be read; it then holds those read so far.
        summary: For a summary that is due, before turns are cut that it is about; then it is extracted.
        recall: For its vector, for other conversations and for code, each searched beside the others.
        asked: For the same, if the message asks for what was said or decided, or names code.
        first_recall: The same for the first message of a conversation, which has no other memory.
        wishes: For the user's wishes, which are read while its message is stored.
        vector_share: Share of `recall`, or of another limit, spent waiting for the vector; the rest is for the graph.
        code_vectors: For vectors of code that changed, before those read before are used.
        code_known: The first one, until it is known whether the workspace has an index of its code.
        head_start: Time that a request has to itself before its answer is stored as begun: both at once slow each
            other down.
        token_count: For the exact number of a message's tokens, before it is stored with an estimate.
    """

    load: float = 0.1
    past: float = 0.1
    summary: float = 2.0
    recall: float = 0.3
    asked: float = 1.0
    first_recall: float = 2.0
    wishes: float = 2.0
    vector_share: float = 0.5
    code_vectors: float = 0.1
    code_known: float = 1.0
    head_start: float = 0.03
    token_count: float = 0.004


LIMITS = RequestLimits()
