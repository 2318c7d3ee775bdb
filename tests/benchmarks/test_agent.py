"""The evaluation of the agent: its data holds together, its scores tell apart, and two tasks run."""

from __future__ import annotations

import json
from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from benchmarks.agent.answers import EvaluationServer, file_answers, model_answers
from benchmarks.agent.play import Stage, patient
from benchmarks.agent.scoring import kept_prefix, parts_of, score
from benchmarks.agent.tasks import Task, read_history, read_tasks, written_summary
from ragforge_tui.settings.schema import Paths
from ragforge_tui.shared.records import now
from tests.support.model_script import Call, Step
from tests.support.openai_server import OpenAIServer
from tests.support.sizes import DIMENSION, HEAP_MB, LINGER

TASK = Task(id="port", kind="decision", history="kit", ask="Which port?", gold=[["8443"], ["tls", "https"]])


def request(past: str = "", block: str = "", system: str = "") -> dict[str, Any]:
    calls = [{"id": "1", "function": {"name": "edit_file", "arguments": json.dumps({"new_string": past})}}]
    return {
        "messages": [
            {"role": "system", "content": system},
            {"role": "user", "content": "Edit it."},
            {"role": "assistant", "content": "", "tool_calls": calls},
            {"role": "tool", "tool_call_id": "1", "content": "Edited."},
            {"role": "user", "content": f"{block}\n\nWhich port?"},
        ],
        "tools": [],
    }


def test_there_are_at_least_three_tasks_of_each_kind_and_none_gives_its_answer_away() -> None:
    tasks = read_tasks()
    assert len(tasks) >= 30
    assert min(Counter(task.kind for task in tasks).values()) >= 3
    for task in tasks:
        if not task.calls:
            assert not any(fact.casefold() in task.ask.casefold() for group in task.gold for fact in group), task.id


OF_THE_PROGRAM = """left out, open_turn( (36 files, t3) [memory: tried on [memory: this command needed `--offline`
[memory: `runcheck` was not found"""
"""What the program writes where it cuts or counts: tasks ask for it, but no history holds it."""


def test_each_fact_is_in_the_history_it_is_asked_about() -> None:
    for task in read_tasks():
        history = read_history(task.history)
        texts = [task.ask if task.calls else "", OF_THE_PROGRAM]
        for turn in (turn for part in history.conversations() for turn in part.turn):
            texts += [turn.ask, turn.answer, *(str(value) for call in turn.calls for value in call.values())]
        said = " ".join("\n".join(texts).casefold().split())
        for group in task.gold:
            assert any(" ".join(fact.casefold().split()) in said for fact in group), (task.id, group)


def test_a_fact_is_found_in_the_part_that_holds_it() -> None:
    found = score(TASK, 8_000, [request(past="port =\n 8443", block="[t3] TLS it is")])
    assert found.gold == ["past", "block"]
    assert found.block_tokens > 0
    assert score(TASK, 8_000, [request(past="port = 8443")]).gold == ["past", ""]
    assert not score(TASK, 8_000, [], failed="no connection").complete


def test_yesterday_needs_its_date() -> None:
    yesterday = msgspec.structs.replace(TASK, day=1)
    date = now() - timedelta(days=1)
    assert score(yesterday, 8_000, [request(past="8443 with TLS")]).gold == ["past", "past", ""]
    block = f"# {date.day} {date:%B %Y}"
    assert score(yesterday, 8_000, [request(past="8443 with TLS", block=block)]).gold == ["past", "past", "block"]


def test_the_message_itself_counts_as_nothing_next_to_it() -> None:
    assert parts_of(request(), TASK.ask)["block"] == ""


def test_a_prefix_is_kept_up_to_the_first_difference() -> None:
    before = request(past="a", block="b")
    assert kept_prefix(before, before) == 1
    assert kept_prefix(before, request(past="a", block="c")) > kept_prefix(before, request(past="c", block="b"))


def test_a_written_summary_holds_decisions_before_other_facts() -> None:
    turns = read_history("kit").turn
    answer = json.loads(written_summary(turns, "You summarise turns 1 to 8 of a conversation", ""))
    assert {finding["kind"] for finding in answer["key_findings"]} >= {"decision", "preference"}
    assert 3 in [turn for finding in answer["key_findings"] for turn in finding["turns"]]
    assert written_summary(turns, "You find a title", "Hello") == "{}"


async def test_an_answer_is_read_from_a_file(tmp_path: Path) -> None:
    answer = file_answers(tmp_path / "answers")
    (tmp_path / "answers/001.answer.json").write_text('{"calls": [{"name": "glob_files", "arguments": {}}]}')
    assert (await answer(request())).tool_calls[0].name == "glob_files"
    assert "Which port?" in (tmp_path / "answers/001.request.txt").read_text()


@pytest.mark.slow
@pytest.mark.http
async def test_a_model_answers_through_litellm(server: OpenAIServer) -> None:
    server.script(
        [Step(text="Let me look.", tool_calls=[Call(name="glob_files", arguments={"pattern": "*"}, id="c1")])]
    )
    body = request(block="[t3] TLS") | {"tools": [{"type": "function", "function": {"name": "glob_files"}}]}
    step = await model_answers("openai/scripted", server.base_url)(body)
    assert step.text == "Let me look."
    assert [(call.name, call.arguments) for call in step.tool_calls] == [("glob_files", '{"pattern": "*"}')]
    assert "TLS" in server.chats()[0]["messages"][-1]["content"]


@pytest.mark.slow
async def test_two_tasks_run(tmp_path: Path, embedded_paths: Paths) -> None:
    history = read_history("kit")
    history.turn = history.turn[1:5]
    history.turn[0].day = 2
    flags = {
        "graph.heap_mb": HEAP_MB,
        "graph.linger_seconds": LINGER,
        "agent.memory.embeddings.enabled": False,
        "agent.memory.embeddings.dimension": DIMENSION,
    }
    tasks = [task for task in read_tasks() if task.id in ("decision-sniffer", "other-copy")]
    async with EvaluationServer() as server:
        stage = Stage(tmp_path, server, paths=embedded_paths, flags=flags)
        try:
            with patient():
                played = await stage.play("kit", history, 32_000)

                async def answer(body: dict[str, Any]) -> Step:
                    return Step(text="By name: the Sniffer guessed wrong.")

                server.turns = answer
                results = [await stage.ask(played, task, 32_000) for task in tasks]
        finally:
            await stage.close()
    first, second = (result for result, _ in results)
    assert first.gold == ["past", "past"]
    assert first.answer == "By name: the Sniffer guessed wrong."
    assert second.gold == ["block", "block"]
    assert 0 < second.recalled_tokens <= second.block_tokens + 50
    assert played.prefixes and min(played.prefixes) > 0
    assert [len(requests) for _, requests in results] == [1, 1]
