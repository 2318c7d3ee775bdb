"""Context windows of models, corrected by what providers rejected.

A window comes from the settings or a table of models, and both can be wrong: a local server is started with any size.
A smaller window that a rejected request revealed is kept for a week, so that each session does not repeat the failure,
and a server that was restarted with a larger one gets a new chance. It is never below a number that the provider named.
Users see that a window was learned, and choosing the model again forgets it.
"""

from __future__ import annotations

import logging
from datetime import datetime, timedelta
from pathlib import Path

import msgspec

from ragforge_tui.llm import ChatModel
from ragforge_tui.shared.files import STATE_BYTES, atomic_write, read_regular
from ragforge_tui.shared.json_text import decode_json
from ragforge_tui.shared.records import now

log = logging.getLogger(__name__)

KEPT = timedelta(days=7)


class _Learned(msgspec.Struct):
    tokens: int
    at: datetime
    named: bool = False
    """Whether the provider named this number; otherwise it is a guess from a request that was rejected."""


class ModelWindows:
    """Windows by model and server.

    Args:
        path: JSON file with the learned windows; it does not have to exist.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._learned: dict[str, _Learned] = {}
        try:
            self._learned = decode_json(read_regular(path, STATE_BYTES), dict[str, _Learned])
        except FileNotFoundError:
            pass
        except (OSError, msgspec.MsgspecError) as error:
            log.warning("learned context windows are unreadable: %s", error)

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
        self._learned[_key(model)] = _Learned(tokens, now(), named)
        self._save()

    def forget(self, model: ChatModel) -> bool:
        """Forget what was learned about a model; return whether anything was."""
        if self._learned.pop(_key(model), None) is None:
            return False
        self._save()
        return True

    def _of(self, model: ChatModel) -> _Learned | None:
        learned = self._learned.get(_key(model))
        if learned is None or now() - learned.at > KEPT or learned.tokens >= model.context_window:
            return None
        return learned

    def _save(self) -> None:
        try:
            atomic_write(self._path, msgspec.json.encode(self._learned))
        except OSError as error:
            log.warning("a learned context window was not saved: %s", error)


def _key(model: ChatModel) -> str:
    return f"{model.name} {model.server}"
