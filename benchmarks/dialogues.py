"""Conversations with questions whose evidence is known, read from files in LoCoMo's format.

Used by `benchmarks.recall`. A file is a list of ``{sample_id, conversation, qa}``: `conversation` has, for each sitting
n, ``session_n_date_time`` and ``session_n``, a list of ``{speaker, dia_id, text, blip_caption?}``; `qa` has
``question``, ``evidence`` (ids of utterances), ``category`` (5 has no answer in the conversation and is left out).

Two utterances of a sitting that follow each other are one turn of ours, the first as the person's message; a speaker's
name stands before what is said, unless the speakers are called user and assistant.
"""

from __future__ import annotations

import json
import re
import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec

from ragforge_tui.shared.export_records import ConversationExport
from ragforge_tui.shared.records import Conversation, Message, Turn

NAMESPACE = uuid.UUID("0d3c0f0e-2f8f-5f6b-9f59-6f3b1b8a1c11")
UNANSWERABLE = 5
BETWEEN = timedelta(seconds=40)
"""Between utterances of a sitting, of which only the beginning is known."""
_ID = re.compile(r"D\d+:\d+")
_PLAIN_SPEAKERS = {"user", "assistant"}


class Question(msgspec.Struct, frozen=True):
    """A question, the ids of the utterances that answer it, and its category."""

    text: str
    evidence: tuple[str, ...]
    category: int


class Dialogue(msgspec.Struct, frozen=True):
    """A conversation as it is imported, with its questions.

    Attributes:
        turn_of: Turn of each utterance, by its id.
        text_of: What was said, by the same.
    """

    name: str
    export: ConversationExport
    questions: tuple[Question, ...]
    turn_of: dict[str, int]
    text_of: dict[str, str]


def read(path: Path, workspace: str) -> list[Dialogue]:
    """All conversations of a file; each gets a workspace of its own below `workspace`."""
    return [_dialogue(sample, f"{workspace}/{sample['sample_id']}") for sample in json.loads(path.read_text("utf-8"))]


def _dialogue(sample: dict[str, Any], workspace: str) -> Dialogue:
    name = str(sample["sample_id"])
    conversation_id = str(uuid.uuid5(NAMESPACE, f"{workspace} {uuid.uuid4()}"))
    turns: list[Turn] = []
    turn_of: dict[str, int] = {}
    text_of: dict[str, str] = {}
    for began, utterances in _sittings(sample["conversation"]):
        for first in range(0, len(utterances), 2):
            pair = utterances[first : first + 2]
            turn = Turn(turn_index=len(turns) + 1, messages=[])
            for place, utterance in enumerate(pair):
                text = _said(utterance)
                turn_of[utterance["dia_id"]] = turn.turn_index
                text_of[utterance["dia_id"]] = text
                turn.messages.append(
                    Message(
                        uuid=str(uuid.uuid5(NAMESPACE, f"{conversation_id} {turn.turn_index} {place}")),
                        conversation_id=conversation_id,
                        turn_index=turn.turn_index,
                        position=place,
                        role="user" if place == 0 else "assistant",
                        content=text,
                        char_count=len(text),
                        timestamp=began + (first + place) * BETWEEN,
                    )
                )
            turns.append(turn)
    messages = [message for turn in turns for message in turn.messages]
    record = Conversation(
        uuid=conversation_id,
        title=name,
        created_at=messages[0].timestamp,
        updated_at=messages[-1].timestamp,
        message_count=len(messages),
        total_chars=sum(message.char_count for message in messages),
        next_turn=len(turns) + 1,
        workspace=workspace,
    )
    return Dialogue(
        name=name,
        export=ConversationExport(conversation=record, turns=turns),
        questions=tuple(_questions(sample["qa"], turn_of)),
        turn_of=turn_of,
        text_of=text_of,
    )


def _sittings(conversation: dict[str, Any]) -> list[tuple[datetime, list[dict[str, Any]]]]:
    numbers = sorted(int(key.split("_")[1]) for key in conversation if re.fullmatch(r"session_\d+", key))
    return [
        (_moment(conversation[f"session_{number}_date_time"]), conversation[f"session_{number}"])
        for number in numbers
        if conversation[f"session_{number}"]
    ]


def _moment(text: str) -> datetime:
    """``1:56 pm on 8 May, 2023``."""
    return datetime.strptime(text.replace(",", "").replace(" on ", " "), "%I:%M %p %d %B %Y").replace(tzinfo=UTC)


def _said(utterance: dict[str, Any]) -> str:
    text = str(utterance["text"])
    if utterance.get("blip_caption"):
        text = f"{text} [shares {utterance['blip_caption']}]".strip()
    speaker = str(utterance["speaker"])
    return text if speaker.lower() in _PLAIN_SPEAKERS else f"{speaker}: {text}"


def _questions(rows: list[dict[str, Any]], turn_of: dict[str, int]) -> list[Question]:
    found = []
    for row in rows:
        cited = [one for text in row.get("evidence", []) for one in _ID.findall(str(text))]
        evidence = tuple(dict.fromkeys(one for one in cited if one in turn_of))
        if evidence and row.get("category") != UNANSWERABLE:
            found.append(Question(str(row["question"]), evidence, int(row.get("category", 0))))
    return found
