"""Starting Textual workers without "coroutine was never awaited" warnings.

A worker that is replaced, or whose screen closes, before its first step drops its coroutine unstarted.
"""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any
from weakref import finalize

from textual.dom import DOMNode
from textual.worker import Worker


def start_worker(
    node: DOMNode, work: Coroutine[Any, Any, None], *, group: str, exclusive: bool = False, inner: Any = None
) -> Worker[None]:
    """Run work in the background; an error in it does not end the app.

    Args:
        node: Owner of the worker, which ends with it.
        inner: A coroutine that `work` awaits.
    """
    worker: Worker[None] = node.run_worker(work, name=group, group=group, exclusive=exclusive, exit_on_error=False)
    for coroutine in (work, inner):
        if coroutine is not None:
            # Closing a coroutine that has run does nothing.
            finalize(worker, coroutine.close).atexit = False
    return worker
