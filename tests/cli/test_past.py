"""All past conversations from the command line: insights, a question, the work of some days."""

from __future__ import annotations

import asyncio
import json
import signal
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from ragforge_tui.cli.past import insight_text
from ragforge_tui.graph import GraphTarget, Store
from ragforge_tui.settings.schema import Paths
from ragforge_tui.shared.finding_records import ShownFinding
from ragforge_tui.shared.records import Finding, now
from tests.cli.conftest import Cli
from tests.conftest import ONE_BACKEND, open_graph
from tests.support.fake_past import insight
from tests.support.model_script import Script, Step
from tests.support.stored_memory import talk
from tests.support.turns import imported

LEASES = [("How long should a lease last?", "We decided that leases last 30 seconds. They are renewed every ten.")]


def fill(cli: Cli, target: GraphTarget, paths: Paths, count: int, **fields: Any) -> list[str]:
    """Store conversations with different titles, the oldest first."""

    async def work() -> list[str]:
        graph = await open_graph(target, paths)
        try:
            start = now() - timedelta(days=count)
            return [
                await imported(
                    Store(graph),
                    LEASES,
                    **{
                        "title": f"Talk {n}",
                        "workspace": str(cli.workspace),
                        "created_at": start,
                        "updated_at": start + timedelta(days=n),
                        **fields,
                    },
                )
                for n in range(count)
            ]
        finally:
            await graph.close()

    return asyncio.run(work())


def step(topic: str, **fields: Any) -> Step:
    findings = [{"kind": "decision", "text": f"{topic}: 30 seconds.", "turns": [1]}]
    body = {"main_topic": topic, "key_findings": findings, "action_items": ["Test it."]}
    return Step(when="plain", text=json.dumps(body), chunk=2_000, **fields)


def asked(model: Script) -> int:
    """How many requests for insights there were."""
    bodies = [request.body for request in model.requests if request.path.endswith("/chat/completions")]
    return sum("main_topic" in body["messages"][0]["content"] for body in bodies)


@ONE_BACKEND
def test_insights_are_made_once(cli: Cli, graph_target: GraphTarget, graph_paths: Paths, model: Script) -> None:
    [_, newer] = fill(cli, graph_target, graph_paths, 2)
    fill(cli, graph_target, graph_paths, 1, private=True)
    assert "No insights." in cli.ok("insights", "--stored").out
    model.script([step("Leases"), step("Locks")])
    ran = cli.ok("insights", "--limit", "1", "--json")
    [only] = ran.json
    assert (only["conversation_id"], only["main_topic"], only["made_by"]) == (newer, "Leases", "openai/scripted")
    assert only["key_findings"] == [{"text": "Leases: 30 seconds.", "turns": [1], "kind": "decision"}]
    assert only["action_items"] == [{"text": "Test it.", "turns": [], "kind": "open"}]
    assert only["outdated"] is False
    assert "asking openai/scripted" in ran.err and "1 conversation, about" in ran.err
    assert "1 of 1: Talk 1" in ran.err and "1 conversations are left" in ran.err
    assert len(cli.ok("insights", "--json").json) == 2
    ran = cli.ok("insights")
    assert "Leases: 30 seconds. [t1]" in ran.out and "[ ] Test it." in ran.out
    assert "asking" not in ran.err
    assert asked(model) == 2
    assert [one["main_topic"] for one in cli.ok("insights", newer[:8], "--stored", "--json").json] == ["Leases"]


@ONE_BACKEND
def test_a_run_that_fails_says_what_is_kept(
    cli: Cli, graph_target: GraphTarget, graph_paths: Paths, model: Script
) -> None:
    fill(cli, graph_target, graph_paths, 3)
    model.script([step("Leases"), *[Step(when="plain", status=400, message="no such thing")] * 8])
    ran = cli.run("insights", "--json")
    assert ran.code == 1
    assert "no such thing" in ran.err and "1 made and kept, 2 left" in ran.err
    assert {one["made_by"] for one in ran.json} == {"openai/scripted", "extractive"}


@pytest.mark.http
@pytest.mark.slow
@ONE_BACKEND
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_changes_of_an_interrupted_run_are_kept(
    cli: Cli, graph_target: GraphTarget, graph_paths: Paths, model: Script, number: signal.Signals
) -> None:
    fill(cli, graph_target, graph_paths, 5)
    model.script([step("One"), step("Two"), step("Never", gate="never")])
    running = cli.start("insights")
    assert running.stderr is not None
    told = b""
    for line in running.stderr:
        told += line
        if b"2 of 5" in line:
            break
    assert b"2 of 5" in told, told
    running.send_signal(number)
    _, rest = running.communicate()
    assert running.returncode == (-9 if number == signal.SIGKILL else 130)
    assert number == signal.SIGKILL or b"stopped; 2 of 5 are made and kept" in rest
    before = asked(model)
    model.script([step("Three"), step("Four"), step("Five")])
    found = cli.ok("insights", "--json").json
    assert {one["main_topic"] for one in found} == {"One", "Two", "Three", "Four", "Five"}
    assert asked(model) == before + 3


def test_a_question_to_the_past(cli: Cli, graph_target: GraphTarget, graph_paths: Paths) -> None:
    [here] = fill(cli, graph_target, graph_paths, 1, title="Lease \x1b[31mtimes")
    [away] = fill(cli, graph_target, graph_paths, 1, workspace="/elsewhere")
    fill(cli, graph_target, graph_paths, 1, private=True)
    [quote] = cli.ok("recall", "What did we decide about leases?", "--json").json
    assert set(quote) == {"conversation_id", "title", "turn_index", "date", "role", "quote", "score", "kind", "note"}
    assert (quote["conversation_id"], quote["turn_index"], quote["role"], quote["kind"]) == (
        here,
        1,
        "assistant",
        "turn",
    )
    assert datetime.fromisoformat(quote["date"]).astimezone(UTC) < now()
    ran = cli.ok("recall", "leases")
    assert f"ragforge-chat --resume {here[:8]}" in ran.out
    assert "[t1] assistant: We decided that leases last 30 seconds." in ran.out
    assert "\x1b" not in ran.out
    assert {one["conversation_id"] for one in cli.ok("recall", "leases", "--all", "--json").json} == {here, away}
    assert "--all asks all folders" in cli.ok("recall", "zebras").out
    assert cli.run("recall", " ").code == 2
    assert cli.run("recall", "leases", "--all", "--workspace", ".").code == 2
    assert "No model is configured" in cli.ok("recall", "leases", "--answer").err


@ONE_BACKEND
def test_the_work_of_some_days(cli: Cli, graph_target: GraphTarget, graph_paths: Paths) -> None:
    [uuid] = fill(cli, graph_target, graph_paths, 1)

    async def work() -> None:
        graph = await open_graph(graph_target, graph_paths)
        try:
            await talk(Store(graph), uuid, "Write the backup command.", ("src/backup.py", "write"))
        finally:
            await graph.close()

    asyncio.run(work())
    [done] = cli.ok("standup", "--since", "today", "--json").json
    assert (done["conversation_id"], done["files"]) == (uuid, ["src/backup.py"])
    ran = cli.ok("standup")
    assert ran.out.startswith("# Since ")
    assert f"## {cli.workspace}" in ran.out
    assert "- Changed `src/backup.py`" in ran.out
    assert "Nothing was done" in cli.ok("standup", "--since", "today", "--workspace", "/elsewhere").out
    ran = cli.run("standup", "--since", "someday")
    assert ran.code == 2
    assert "is not a time" in ran.err


def test_usage_is_printed_by_each_grouping(cli: Cli, model: Script) -> None:
    model.script([Step(text="Thirty seconds.")])
    cli.ok("ask", "How long is a lease?")
    [row] = cli.ok("usage", "--json").json
    assert row["name"] == f"{now().astimezone():%Y-%m-%d}" and row["input_tokens"] > 100 and row["requests"] >= 1
    ran = cli.ok("usage", "--by", "cause", "--since", "yesterday")
    assert "Sent, by part of the request" in ran.out and "Tools" in ran.out and "█" in ran.out
    assert "openai/scripted" in cli.ok("usage", "--by", "model").out
    assert str(cli.workspace) in cli.ok("usage", "--by", "folder").out
    assert cli.ok("usage", "--workspace", "/elsewhere").out == "No request to a model is stored.\n"
    assert cli.run("usage", "--by", "colour").code == 2


def test_what_no_longer_holds_is_not_listed() -> None:
    points = {
        "key_findings": [Finding(text="Wait 5 s", kind="decision"), Finding(text="Wait 9 s", kind="decision")],
        "action_items": [Finding(text="Write docs"), Finding(text="Write a test")],
    }
    gone = {at: ShownFinding(text="", became="replaced") for at in (0, 2)}
    text = insight_text(insight("00000001", "Retries", gone=gone, **points))
    assert [line.strip() for line in text.splitlines()[2:]] == ["- decision: Wait 9 s", "[ ] Write a test"]
