"""Histories and tasks of the evaluation, as read from ``histories/*.toml`` and ``tasks.toml``."""

from __future__ import annotations

import importlib
import inspect
import json
import re
from pathlib import Path
from typing import Any

import msgspec

HERE = Path(__file__).parent
_KINDS = {
    "decision": ("Decision", "Entscheidung", "Décision", "Correction", "Korrektur"),
    "preference": ("Preference", "Vorliebe", "Préférence"),
    "open": ("Open", "Offen", "En suspens", "À faire"),
}
_OVER_TURNS = re.compile(r"turns? (\d+) to (\d+)")
_OVER_SUMMARIES = re.compile(r"(?s)Turns (\d+) to .*Turns \d+ to (\d+)")
_MAX_FINDINGS = 5
_MAX_SUMMARY_CHARS = 500


class PlayedTurn(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Turn of a history.

    Attributes:
        day: Days before now; a turn without one belongs to the sitting of the turn before.
        calls: Tool calls before the answer, one for each reply of the model, as ``{tool, argument…}``.
        fails: Numbers of the calls that fail, from 1.
        own: Shell command that the user runs.
        undo: Turn that the user undoes.
        gist: What a written summary keeps of the turn.
    """

    day: int | None = None
    ask: str = ""
    calls: list[dict[str, Any]] = []
    fails: list[int] = []
    answer: str = ""
    own: str = ""
    undo: int = 0
    gist: str = ""
    topics: list[str] = []


class Beside(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Another conversation of the same folder."""

    title: str
    turn: list[PlayedTurn]


class History(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Conversation to play, with its workspace.

    Attributes:
        copies: Files that are copies of standard library modules, so that results have realistic sizes.
    """

    title: str
    copies: dict[str, str] = {}
    files: dict[str, str] = {}
    turn: list[PlayedTurn]
    beside: list[Beside] = []

    def conversations(self) -> list[Beside]:
        """Return all its conversations, the one that tasks continue last."""
        return [*self.beside, Beside(title=self.title, turn=self.turn)]

    def write_files(self, folder: Path) -> None:
        """Write the workspace as it is before the first turn."""
        texts = {path: inspect.getsource(importlib.import_module(name)) for path, name in self.copies.items()}
        for path, text in (texts | self.files).items():
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text.removeprefix("\n"), encoding="utf-8")


class Task(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """Last message of a history; see the head of ``tasks.toml``.

    Attributes:
        stale: Groups of texts of which none may be next to the message: what was closed or replaced.
        window: Tokens of the model's window; 0: those that the run names.
        day: Days before now that the message is about, 0 for none: a request has to name that date, since a model that
            reads turns without dates cannot tell which were yesterday's.
    """

    id: str
    kind: str
    history: str
    ask: str
    gold: list[list[str]] = []
    stale: list[list[str]] = []
    judge: str = ""
    calls: list[dict[str, Any]] = []
    window: int = 0
    day: int = 0


def read_history(name: str) -> History:
    """Return the history of that name."""
    return msgspec.toml.decode((HERE / "histories" / f"{name}.toml").read_bytes(), type=History)


def read_tasks(ids: list[str] | None = None) -> list[Task]:
    """Return the tasks whose id or history contains one of `ids`, by default all."""
    tasks = msgspec.toml.decode((HERE / "tasks.toml").read_bytes(), type=dict[str, list[Task]])["task"]
    return [task for task in tasks if not ids or any(part in f"{task.id} {task.history}" for part in ids)]


def written_summary(turns: list[PlayedTurn], system: str, material: str) -> str:
    """Return the answer of a model to a request for a summary, assembled from the gists of the turns it covers.

    Gists were written before the questions. Fields that a version of the product does not know are ignored by it.
    """
    found = _OVER_TURNS.search(system) or _OVER_SUMMARIES.search(material)
    if found is None:
        return "{}"
    start, end = int(found[1]), int(found[2])
    gists = {n: turns[n - 1].gist for n in range(start, end + 1) if turns[n - 1].gist}
    kinds = {n: _kind(text) for n, text in gists.items()}
    first = sorted(gists, key=lambda n: (kinds[n] == "fact", n))[:_MAX_FINDINGS]
    topics = dict.fromkeys(topic for n in gists for topic in turns[n - 1].topics)
    return json.dumps(
        {
            "title": ", ".join([*topics][:3]),
            "conversation_summary": " ".join(gists.values())[:_MAX_SUMMARY_CHARS],
            "actions_summary": "",
            "key_findings": [{"text": gists[n], "turns": [n], "kind": kinds[n]} for n in sorted(first)],
            "files_mentioned": [],
            "topics": [{"name": topic, "confidence": 0.9} for topic in [*topics][:4]],
        }
    )


def _kind(gist: str) -> str:
    return next((kind for kind, begins in _KINDS.items() if gist.startswith(begins)), "fact")
