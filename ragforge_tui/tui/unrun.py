"""Work for a worker that may never get to run it.

A worker that is replaced, or whose screen closes, before its first step drops its coroutine; Python then warns that
it was never awaited.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any
from weakref import finalize

from textual.dom import DOMNode
from textual.worker import Worker


def begin(
    node: DOMNode, work: Coroutine[Any, Any, None], *, group: str, exclusive: bool = False, inner: Any = None
) -> Worker[None]:
    """Run work beside the screen; an error in it does not end the app.

    Args:
        node: Whose worker it is: it ends with that.
        inner: A coroutine that `work` awaits.
    """
    worker: Worker[None] = node.run_worker(work, name=group, group=group, exclusive=exclusive, exit_on_error=False)
    for coroutine in (work, inner):
        if coroutine is not None:
            # Closing what has run does nothing.
            finalize(worker, coroutine.close).atexit = False
    return worker
