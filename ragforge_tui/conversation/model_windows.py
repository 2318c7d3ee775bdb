"""Learned limits of model servers: context windows, and parts of requests that they refuse.

A window comes from the settings, the model's server or a table of models. What a server states is kept with its day,
so that the next start knows it before it is asked again. Settings and table can be wrong: a local server is started
with any size.
A smaller window that a rejected request revealed is kept for a week, so that each session does not repeat the failure,
and a server that was restarted with a larger one gets a new chance. It is never below a number that the provider named.
Users see that a window was learned, and choosing the model again forgets it, and what its server refuses.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import datetime, timedelta
from pathlib import Path

import msgspec

from ragforge_tui.llm import ChatModel
from ragforge_tui.shared.files import STATE_BYTES, atomic_write, locked, read_regular
from ragforge_tui.shared.json_text import decode_json
from ragforge_tui.shared.records import now

log = logging.getLogger(__name__)

KEPT = timedelta(days=7)
MOST_FORMS = 200
"""Parts that one server refuses, with each image that it did."""


class _Window(msgspec.Struct):
    tokens: int
    at: datetime
    named: bool = False
    """Whether the provider named this number; otherwise it is a guess from a request that was rejected."""


class _Refused(msgspec.Struct):
    forms: list[str]
    at: datetime


class _Windows(msgspec.Struct):
    """The file, by model and server."""

    learned: dict[str, _Window] = {}
    stated: dict[str, _Window] = {}
    refused: dict[str, _Refused] = {}


class ModelWindows:
    """Windows by model and server.

    Args:
        path: JSON file with the learned windows; it does not have to exist.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._windows = self._read()

    def _read(self) -> _Windows:
        try:
            return decode_json(read_regular(self._path, STATE_BYTES), _Windows)
        except FileNotFoundError:
            pass
        except (OSError, msgspec.MsgspecError) as error:
            log.warning("learned context windows are unreadable: %s", error)
        return _Windows()

    def stated(self, model: ChatModel) -> int | None:
        """Return the window that a model's server stated last; None if it never did."""
        stated = self._windows.stated.get(_key(model))
        return None if stated is None else stated.tokens

    def state(self, model: ChatModel, tokens: int) -> None:
        """Keep the window that a model's server states; another one than before replaces a learned window."""
        before = self._windows.stated.get(_key(model))
        if before is not None and before.tokens == tokens and before.at.date() == now().date():
            return
        with self._changing() as windows:
            if before is not None and before.tokens != tokens:
                windows.learned.pop(_key(model), None)
            windows.stated[_key(model)] = _Window(tokens, now(), named=True)

    def of(self, model: ChatModel) -> int:
        """Return the tokens a model can read."""
        learned = self._of(model)
        return model.context_window if learned is None else learned.tokens

    def learned_at(self, model: ChatModel) -> datetime | None:
        """Return when the window of a model was learned; None for one that is as configured."""
        learned = self._of(model)
        return None if learned is None else learned.at

    def named(self, model: ChatModel) -> int | None:
        """Return the window that the provider named in an earlier rejection, None if it named none."""
        learned = self._of(model)
        return learned.tokens if learned is not None and learned.named else None

    def learn(self, model: ChatModel, tokens: int, *, named: bool) -> None:
        """Keep a smaller window; a file that cannot be written is logged, and the window kept in this process.

        Args:
            named: Whether the provider named the number.
        """
        with self._changing() as windows:
            windows.learned[_key(model)] = _Window(tokens, now(), named)

    def refused(self, model: ChatModel) -> set[str]:
        """See `KnownServers.refused`."""
        refused = self._windows.refused.get(_key(model))
        return set() if refused is None or now() - refused.at > KEPT else set(refused.forms)

    def refuse(self, model: ChatModel, forms: set[str]) -> None:
        """See `KnownServers.refuse`."""
        with self._changing() as windows:
            windows.refused[_key(model)] = _Refused(sorted(forms)[:MOST_FORMS], now())

    def forget(self, model: ChatModel) -> bool:
        """Forget what was learned about a model; return whether anything was."""
        with self._changing() as windows:
            windows.refused.pop(_key(model), None)
            return windows.learned.pop(_key(model), None) is not None

    def _of(self, model: ChatModel) -> _Window | None:
        learned = self._windows.learned.get(_key(model))
        if learned is None or now() - learned.at > KEPT or learned.tokens >= model.context_window:
            return None
        return learned

    @contextmanager
    def _changing(self) -> Iterator[_Windows]:
        """Change the file as it is now: other processes change it too."""
        with ExitStack() as held:
            try:
                held.enter_context(locked(self._path.with_suffix(".lock")))
                self._windows = self._read()
            except OSError as error:
                log.warning("learned context windows cannot be locked: %s", error)
            yield self._windows
            try:
                atomic_write(self._path, msgspec.json.encode(self._windows))
            except OSError as error:
                log.warning("a context window was not saved: %s", error)


def _key(model: ChatModel) -> str:
    return f"{model.name} {model.server}"
